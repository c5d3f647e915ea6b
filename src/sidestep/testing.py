"""The contract of a policy, as checks for any policy.

    import sidestep as ss
    ss.testing.check_policy(MyPolicy)                       # MyPolicy(problem) must work
    ss.testing.check_policy(MyPolicy, knobs={"width": 2.0}) # and each knob must change something

A policy that does not play every action set declares which it plays (`plays = (Arms,)`), and is checked
on these only. A violation is an AssertionError that names the rule and the world; an object that is not
a policy is an InputError.
"""

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator

from sidestep.core import numba_backend as compiler
from sidestep.core.actions import ON_A_SOLID, Actions, Arms
from sidestep.core.estimator import Evidence, absorb_with
from sidestep.core.jit import ieee_arithmetic
from sidestep.core.problem import Query
from sidestep.environments.action_sources import draw_actions
from sidestep.environments.contract import contract_worlds, edge_worlds
from sidestep.environments.instance import Instance
from sidestep.errors import InputError, UnreachedDirectionsWarning
from sidestep.experiments.record import Trace
from sidestep.experiments.simulate import play, simulate
from sidestep.policies.base import Decision, check_can_play, check_decision, plays_of
from sidestep.policies.builtin import BuiltinPolicy

Maker = Callable[..., Any]

ROUNDS = 40


def check_policy(policy: Maker, knobs: Mapping[str, Any] | None = None) -> None:
    """Check a policy against the contract; an AssertionError names the first violation.

    policy   a class or a function of a Problem
    knobs    for each knob a value that must change the decisions

        ss.testing.check_policy(MyPolicy, knobs={"width": 2.0})
    """
    check_has_its_parts(policy)
    for check in CHECKS:
        check(policy)
    for knob, value in (knobs or {}).items():
        check_knob_matters(policy, knob, value)


def check_has_its_parts(policy: Maker) -> None:
    """The policy can be built from a Problem; it and its state have the required methods."""
    if not callable(policy):
        name = type(policy).__name__
        raise InputError(f"policy must be a class or a function of a Problem, got a {name} object")
    problem = next(iter(contract_worlds().values())).problem
    try:
        player = policy(problem)
    except TypeError as error:
        raise InputError(f"policy must be built from a Problem alone, got {error}") from error
    check_can_play(player)
    plays_of(player)
    for part, owner in (("state_from_json", player), ("to_json", player.init())):
        if not callable(getattr(owner, part, None)):
            raise InputError(
                f"a policy must have state_from_json and its state to_json, to be kept as text, got "
                f"{type(owner).__name__} without {part}"
            )


def check_asked_twice_answers_the_same(policy: Maker) -> None:
    """A generator in the same state gives the same decision."""
    for name, player, state, actions in _situations(policy):
        first = player.ask(state, actions, np.random.default_rng(5))
        second = player.ask(state, actions, np.random.default_rng(5))
        assert _same(first.query, second.query), f"{name}: asked twice, two answers"
        assert (first.phase, first.value) == (second.phase, second.value), name


def check_nothing_is_written_into_what_goes_in(policy: Maker) -> None:
    """State, actions and query are not changed by the policy."""
    for name, player, state, actions in _situations(policy):
        before = _bytes(state, actions)
        decision = player.ask(state, actions, np.random.default_rng(5))
        _check_unchanged(f"{name}: ask", before, state, actions)
        query = Query(decision.query.action.copy(), decision.query.index)
        query.action.setflags(write=False)
        player.tell(state, query, 0.25)
        _check_unchanged(f"{name}: tell", before, state, actions)


def _check_unchanged(
    method: str, before: tuple[bytes, bytes], state: Any, actions: Actions
) -> None:
    for what, was, now in zip(("state", "actions"), before, _bytes(state, actions), strict=True):
        assert was == now, f"{method} must not write into the {what} it is handed, and did"


def check_replay_equals_increments(policy: Maker) -> None:
    """The same tells from the start give the same state and the same next ask."""
    for name, instance in _worlds_of(policy, contract_worlds()):
        player = policy(instance.problem)
        rounds = list(play(player, instance, ROUNDS, seed=11))
        state = player.init()
        for turn in rounds:
            state = player.tell(state, turn.decision.query, turn.feedback)
        assert state.to_json() == rounds[-1].state.to_json(), f"{name}: replay differs"
        actions = draw_actions(instance.actions, np.random.default_rng(3))
        grown = player.ask(rounds[-1].state, actions, np.random.default_rng(4))
        replayed = player.ask(state, actions, np.random.default_rng(4))
        assert _same(grown.query, replayed.query), f"{name}: replay differs"


def check_state_survives_json(policy: Maker) -> None:
    """A state from its text gives the same next ask, and the same text."""
    for name, player, state, actions in _situations(policy):
        text = state.to_json()
        again = player.state_from_json(text)
        assert again.to_json() == text, f"{name}: the text changed on the way"
        here = player.ask(state, actions, np.random.default_rng(6))
        there = player.ask(again, actions, np.random.default_rng(6))
        assert _same(here.query, there.query), f"{name}: another ask after JSON"


def check_pickles(policy: Maker) -> None:
    """Policies can be pickled for other processes, and decide the same there."""
    for name, player, state, actions in _situations(policy):
        twin = pickle.loads(pickle.dumps(player))  # noqa: S301  (our own bytes)
        here = player.ask(state, actions, np.random.default_rng(8))
        there = twin.ask(state, actions, np.random.default_rng(8))
        assert _same(here.query, there.query), f"{name}: another ask after pickling"


def check_stays_within_the_rules(policy: Maker) -> None:
    """Actions are in the action set (except CORE-SET on its basis), indices in 0..L."""
    for name, instance in _worlds_of(policy, {**contract_worlds(), **edge_worlds()}):
        player = policy(instance.problem)
        arms = np.random.default_rng(1)
        choice, noise = np.random.default_rng(2), np.random.default_rng(3)
        state = player.init()
        for _ in range(ROUNDS):
            actions = draw_actions(instance.actions, arms)
            decision = _asked(name, player, state, actions, choice)
            query, most = decision.query, instance.problem.n_protected
            assert 0 <= query.index <= most, (
                f"{name}: index of a query must lie in 0..{most}, got {query.index}"
            )
            off_menu = decision.phase == "core-set" and getattr(player, "design", "") == "basis"
            assert off_menu or actions.contains(query.action), f"{name}: off the action set"
            _check_row(name, decision, actions)
            state = player.tell(state, query, instance.observe(query, noise))
            assert state is not None, f"{name}: tell must return the new state, got None"


def _asked(name: str, player: Any, state: Any, actions: Actions, rng: Generator) -> Decision:
    """A checked decision; raises one sentence if something is wrong with it."""
    try:
        with _unreached_ignored():
            decision = player.ask(state, actions, rng)
    except Exception as error:
        place = "Arms" if isinstance(actions, Arms) else f"a {type(actions).__name__}"
        words = f"{name}: ask breaks down on {place} ({type(error).__name__}: {error})"
        if hasattr(player, "plays") or isinstance(actions, Arms):
            words += f", playing {player.problem!r}"
        else:
            words += "; a policy for arms alone says so: plays = (ss.Arms,)"
        raise AssertionError(words) from error
    try:
        return check_decision(decision)
    except InputError as error:
        raise AssertionError(f"{name}: {error}") from error


def _check_row(name: str, decision: Decision, actions: Actions) -> None:
    """The arm of a decision, if it has one, is the row of the played action."""
    if decision.arm is None:
        return
    rows: list[int] = []
    if isinstance(actions, Arms):
        same = (actions.vectors == decision.query.action).all(axis=1)
        rows = [actions.row(int(arm)) for arm in np.flatnonzero(same)]
    assert decision.arm in rows, (
        f"{name}: arm of a Decision must be the row of its action, {rows[0] if rows else None}, "
        f"got {decision.arm!r}"
    )


def check_both_ways_of_playing_agree(policy: Maker) -> None:
    """Interpreted and as one compiled run it makes the same decisions.

    Arms and indices are the same, values agree to 1e-9; and the same measurements give the same sums,
    estimates and inverses, to the last bit. An action in a solid is the location of a maximum, which is
    accurate only to the square root of the accuracy of the value, and later rounds depend on it. So in
    solids actions, widths and feedback agree to 1e-5, values and regret to 1e-6.
    """
    for name, instance in _worlds_of(policy, {**contract_worlds(), **edge_worlds()}):
        player = policy(instance.problem)
        if not isinstance(player, BuiltinPolicy) or not compiler.is_installed():
            return
        with _unreached_ignored():
            plain = simulate(player, instance, 2 * ROUNDS, seed=9, compiled=False)
            whole = simulate(player, instance, 2 * ROUNDS, seed=9, compiled=True)
        _check_same_game(f"{name}, compiled", plain, whole)
        with ieee_arithmetic():
            sums = _learned(player, plain, absorb_with)
        compiled = _learned(player, plain, compiler.compiled(absorb_with))
        for field, array in sums._asdict().items():
            exact = field == "logdet" or (array == getattr(compiled, field)).all()
            assert exact, f"{name}: other last bits of {field}"


def _check_same_game(name: str, one: Trace, other: Trace) -> None:
    assert (one.index == other.index).all(), f"{name}: other indices"
    assert (one.arm == other.arm).all(), f"{name}: other arms"
    assert (one.phase == other.phase).all(), f"{name}: other phases"
    in_solid = (one.arm == ON_A_SOLID).any()
    for what in ("action", "value", "width", "feedback", "regret"):
        here, there = getattr(one, what), getattr(other, what)
        close = (1e-6 if what in ("value", "regret") else 1e-5) if in_solid else 1e-9
        same = np.allclose(here, there, rtol=close, atol=close, equal_nan=True)
        assert same, f"{name}: other {what}"


def _learned(player: BuiltinPolicy, trace: Trace, absorb: Callable[..., None]) -> Evidence:
    """Evidence after every measurement of a run."""
    evidence, rho = player.init().evidence, player.knobs.confidence.rho
    for action, index, feedback in zip(trace.action, trace.index, trace.feedback, strict=True):
        gain, lifted = np.empty(player.problem.width), player.problem.lifted(np.array(action))
        absorb(gain, evidence, rho, lifted, int(index), float(feedback))
    return evidence


def check_knob_matters(policy: Maker, knob: str, value: Any) -> None:
    """With another value of the knob the decisions change on some world."""
    for _, instance in _worlds_of(policy, contract_worlds()):
        plain, turned = policy(instance.problem), policy(instance.problem, **{knob: value})
        if first_difference(plain, turned, instance, 4 * ROUNDS, seed=13):
            return
    raise AssertionError(f"the knob {knob} = {value!r} changes nothing on any world")


def first_difference(one: Any, other: Any, instance: Instance, rounds: int, seed: int) -> int:
    """The first round in which the queries of two policies differ; 0 if there is none."""
    left, right = (play(player, instance, rounds, seed) for player in (one, other))
    with _unreached_ignored():
        for here, there in zip(left, right, strict=True):
            if not _same(here.decision.query, there.decision.query):
                return here.number
    return 0


CHECKS: tuple[Callable[[Maker], None], ...] = (
    check_stays_within_the_rules,
    check_asked_twice_answers_the_same,
    check_nothing_is_written_into_what_goes_in,
    check_replay_equals_increments,
    check_state_survives_json,
    check_pickles,
    check_both_ways_of_playing_agree,
)


def _worlds_of(policy: Maker, worlds: Mapping[str, Instance]) -> Iterator[tuple[str, Instance]]:
    """The worlds whose action sets the policy says it plays."""
    for name, instance in worlds.items():
        plays = plays_of(policy(instance.problem))
        drawn = draw_actions(instance.actions, np.random.default_rng(0))
        if isinstance(drawn, plays):
            yield name, instance


def _situations(policy: Maker) -> Iterator[tuple[str, Any, Any, Actions]]:
    """A policy at the start and in the middle of a run, on every contract world."""
    played = _played(policy)
    for name, instance in _worlds_of(policy, contract_worlds()):
        player = policy(instance.problem)
        actions = draw_actions(instance.actions, np.random.default_rng(3))
        yield f"{name}, first round", player, player.init(), actions
        yield f"{name}, round {ROUNDS}", player, deepcopy(played[name]), actions


@lru_cache(maxsize=1)  # four checks ask for the same states, one after the other
def _played(policy: Maker) -> dict[str, Any]:
    """What a policy has learned in the middle of a run, for every contract world."""
    states = {}
    for name, instance in _worlds_of(policy, contract_worlds()):
        *_, last = play(policy(instance.problem), instance, ROUNDS, seed=17)
        states[name] = last.state
    return states


def _bytes(state: Any, actions: Actions) -> tuple[bytes, bytes]:
    """Everything that a policy could write into: the state and the actions."""
    arrays = (actions.columns, actions.squared) if isinstance(actions, Arms) else ()
    return pickle.dumps(state), pickle.dumps((actions, arrays))


def _same(one: Query, other: Query) -> bool:
    return one.index == other.index and bool((one.action == other.action).all())


def _unreached_ignored() -> warnings.catch_warnings:
    return warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning)
