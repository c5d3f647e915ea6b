"""The contract of a policy, for anyone's policy.

    import sidestep as ss
    ss.testing.check_policy(MyPolicy)                       # MyPolicy(problem) must work
    ss.testing.check_policy(MyPolicy, knobs={"width": 2.0}) # and each knob must change something

A policy that does not play every action set says so (`plays = (Arms,)`) and is held to those it plays.
A broken promise is an AssertionError that says which one, and on which world.
"""

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sidestep.core.actions import Actions, Arms, UnitBall
from sidestep.core.problem import Query
from sidestep.environments.instance import Instance
from sidestep.environments.sources import FreshArms, Menus, draw_actions
from sidestep.environments.synthetic import synthetic
from sidestep.errors import UnreachedDirectionsWarning
from sidestep.experiments.simulate import play, simulate
from sidestep.policies.base import PHASES, CompiledPolicy
from sidestep.policies.protocol import plays_of

Maker = Callable[..., Any]

ROUNDS = 40


def contract_worlds() -> dict[str, Instance]:
    """Small worlds of every kind of action source."""
    rng = np.random.default_rng(20201102)
    arms = rng.standard_normal((12, 3))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    sizes = (3, 2, 1)
    return {
        "fixed arms": synthetic(*sizes, Arms(arms), noise_scale=0.1, seed=1),
        "fresh arms": synthetic(*sizes, 7, noise_scale=0.1, seed=2),
        "changing arms": synthetic(*sizes, Menus([arms[:5], arms[5:]]), noise_scale=0.1, seed=3),
        "ball": synthetic(*sizes, UnitBall(3), noise_scale=0.1, seed=4),
    }


def edge_worlds() -> dict[str, Instance]:
    """Worlds at the edges: no protection, full rank, one dimension, one arm, doubled arms."""
    rng = np.random.default_rng(7)
    arms = rng.standard_normal((5, 3))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    flat = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])
    return {
        "L = 0": synthetic(3, 0, 0, Arms(arms), noise_scale=0.1),
        "L = 0 on the ball": synthetic(3, 0, 0, UnitBall(3), noise_scale=0.1),
        "s = L": synthetic(3, 2, 2, FreshArms(6, 3), noise_scale=0.1),
        "s = L on the ball": synthetic(3, 2, 2, UnitBall(3), noise_scale=0.1),
        "s = d": synthetic(2, 2, 2, FreshArms(4, 2), noise_scale=0.1),
        "d = 1": synthetic(1, 1, 1, Arms(np.array([[1.0], [-0.5]])), noise_scale=0.1),
        "d = 1 on the ball": synthetic(1, 0, 0, UnitBall(1), noise_scale=0.1),
        "one arm": synthetic(3, 2, 1, Arms(arms[:1]), noise_scale=0.1),
        "doubled arms": synthetic(3, 2, 1, Arms(np.repeat(arms, 3, axis=0)), noise_scale=0.1),
        "arms that do not span": synthetic(3, 2, 1, Arms(flat), noise_scale=0.1),
        "no noise": synthetic(3, 2, 1, Arms(arms), noise_scale=0.0),
    }


def check_policy(policy: Maker, knobs: Mapping[str, Any] | None = None) -> None:
    """Hold a policy to the contract; `policy` is a class or a function of a Problem."""
    for check in CHECKS:
        check(policy)
    for knob, value in (knobs or {}).items():
        check_knob_matters(policy, knob, value)


def check_asked_twice_answers_the_same(policy: Maker) -> None:
    """A generator in the same state gives the same decision."""
    for name, player, state, actions in _situations(policy):
        first = player.ask(state, actions, np.random.default_rng(5))
        second = player.ask(state, actions, np.random.default_rng(5))
        assert _same(first.query, second.query), f"{name}: asked twice, two answers"
        assert (first.phase, first.value) == (second.phase, second.value), name


def check_nothing_is_written_into_what_goes_in(policy: Maker) -> None:
    """State, actions and query are as they were."""
    for name, player, state, actions in _situations(policy):
        before = _bytes(state, actions)
        decision = player.ask(state, actions, np.random.default_rng(5))
        query = Query(decision.query.action.copy(), decision.query.index)
        query.action.setflags(write=False)
        player.tell(state, query, 0.25)
        assert _bytes(state, actions) == before, f"{name}: something was written"


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
    """Policies travel to other processes, and are the same there."""
    for name, player, state, actions in _situations(policy):
        twin = pickle.loads(pickle.dumps(player))  # noqa: S301  (our own bytes)
        here = player.ask(state, actions, np.random.default_rng(8))
        there = twin.ask(state, actions, np.random.default_rng(8))
        assert _same(here.query, there.query), f"{name}: another ask after pickling"


def check_stays_within_the_rules(policy: Maker) -> None:
    """Actions come from the action set (CORE-SET on its basis apart), indices from 0..L."""
    for name, instance in _worlds_of(policy, {**contract_worlds(), **edge_worlds()}):
        player = policy(instance.problem)
        arms = np.random.default_rng(1)
        choice, noise = np.random.default_rng(2), np.random.default_rng(3)
        state = player.init()
        for _ in range(ROUNDS):
            actions = draw_actions(instance.actions, arms)
            with _unreached_ignored():
                decision = player.ask(state, actions, choice)
            query = decision.query
            assert decision.phase in PHASES, f"{name}: no such phase as {decision.phase!r}"
            assert 0 <= query.index <= instance.problem.n_protected, f"{name}: index {query.index}"
            off_menu = decision.phase == "core-set" and getattr(player, "design", "") == "basis"
            assert off_menu or actions.contains(query.action), f"{name}: off the action set"
            state = player.tell(state, query, instance.observe(query, noise))


def check_compiled_run_equals_steps(policy: Maker) -> None:
    """The whole-run loop and ask-tell give the same actions and indices, values to 1e-9."""
    for name, instance in _worlds_of(policy, {**contract_worlds(), **edge_worlds()}):
        player = policy(instance.problem)
        if not isinstance(player, CompiledPolicy):
            return
        with _unreached_ignored():
            fast = simulate(player, instance, 2 * ROUNDS, seed=9)
            slow = simulate(player, instance, 2 * ROUNDS, seed=9, compiled=False)
        assert (fast.index == slow.index).all(), f"{name}: other indices"
        assert (fast.arm == slow.arm).all(), f"{name}: other arms"
        assert (fast.phase == slow.phase).all(), f"{name}: other phases"
        assert np.allclose(fast.action, slow.action, rtol=0, atol=1e-9), f"{name}: other actions"
        for what in ("value", "width", "feedback", "regret"):
            one, other = getattr(fast, what), getattr(slow, what)
            same = np.allclose(one, other, rtol=1e-9, atol=1e-9, equal_nan=True)
            assert same, f"{name}: other {what}"


def check_knob_matters(policy: Maker, knob: str, value: Any) -> None:
    """With another value of the knob some world goes another way."""
    for _, instance in _worlds_of(policy, contract_worlds()):
        plain, turned = policy(instance.problem), policy(instance.problem, **{knob: value})
        with _unreached_ignored():
            one = simulate(plain, instance, 4 * ROUNDS, seed=13)
            other = simulate(turned, instance, 4 * ROUNDS, seed=13)
        if (one.index != other.index).any() or (one.action != other.action).any():
            return
    raise AssertionError(f"the knob {knob} = {value!r} changes nothing on any world")


CHECKS: tuple[Callable[[Maker], None], ...] = (
    check_stays_within_the_rules,
    check_asked_twice_answers_the_same,
    check_nothing_is_written_into_what_goes_in,
    check_replay_equals_increments,
    check_state_survives_json,
    check_pickles,
    check_compiled_run_equals_steps,
)


def _worlds_of(policy: Maker, worlds: Mapping[str, Instance]) -> Iterator[tuple[str, Instance]]:
    """The worlds whose action sets the policy says it plays."""
    for name, instance in worlds.items():
        plays = plays_of(policy(instance.problem))
        drawn = draw_actions(instance.actions, np.random.default_rng(0))
        if isinstance(drawn, plays):
            yield name, instance


def _situations(policy: Maker) -> Iterator[tuple[str, Any, Any, Actions]]:
    """A player at the start and in the middle of a run, on every contract world."""
    for name, instance in _worlds_of(policy, contract_worlds()):
        player = policy(instance.problem)
        actions = draw_actions(instance.actions, np.random.default_rng(3))
        yield f"{name}, first round", player, player.init(), actions
        *_, last = play(player, instance, ROUNDS, seed=17)
        yield f"{name}, round {ROUNDS}", player, last.state, actions


def _bytes(state: Any, actions: Actions) -> bytes:
    """Everything that a policy could write into."""
    arrays = (actions.columns, actions.squared) if isinstance(actions, Arms) else ()
    return pickle.dumps((state, actions, arrays))


def _same(one: Query, other: Query) -> bool:
    return one.index == other.index and bool((one.action == other.action).all())


def _unreached_ignored() -> warnings.catch_warnings:
    return warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning)
