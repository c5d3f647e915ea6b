"""Every policy keeps the contract, every knob matters, and the contract detects violations."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest

import sidestep as ss
from sidestep import testing
from sidestep.core.actions import UnitBall
from sidestep.environments import FreshArms, Instance, Menus, blind_spot, failure, synthetic
from sidestep.errors import CoreSetError
from sidestep.policies.catalog import POLICIES, knobs_of

ON_THE_BALL_ONLY = ("protected-linucb, coreset='all'", "protected-linucb, coreset='lazy'")
PLAYERS: dict[str, Callable[..., Any]] = {
    **POLICIES,
    "protected-linucb, as_intended": ss.ProtectedLinUCB.as_intended,
    "protected-linucb, as_printed": ss.ProtectedLinUCB.as_printed,
    "protected-linucb, surrogate='ellipsoid'": partial(ss.ProtectedLinUCB, surrogate="ellipsoid"),
    "protected-linucb, surrogate='first-order'": partial(
        ss.ProtectedLinUCB, surrogate="first-order"
    ),
    "protected-linucb, coreset='adaptive'": partial(ss.ProtectedLinUCB, coreset="adaptive"),
    "protected-linucb, surrogate='ellipsoid', coreset='adaptive'": partial(
        ss.ProtectedLinUCB, surrogate="ellipsoid", coreset="adaptive"
    ),
    ON_THE_BALL_ONLY[0]: partial(ss.ProtectedLinUCB, coreset="all"),
    ON_THE_BALL_ONLY[1]: partial(ss.ProtectedLinUCB, coreset="lazy"),
}

CAREFUL = {"caution": 0.9, "safe": (1.0, 0.0, 0.0)}  # within tolerances only
OTHER_VALUES: dict[str, dict[str, Any]] = {
    "protected-linucb": {
        "rho": 1.0,
        "delta": 0.5,
        "surrogate": "ellipsoid",
        "radius": "printed",
        "coreset": "adaptive",
        "design": "basis",
        "gamma": 0.04,
        "literal": True,
        "reset": True,
        "max_core_set_rounds": 6,
        "lock_in": "explore",
        "patience": 2,
    },
    "round-robin-linucb": {
        "exponent": 0.25,
        "rho": 1.0,
        "delta": 0.5,
        "surrogate": "ellipsoid",
        "radius": "printed",
        "core_set": "all",
        "lock_in": "explore",
        "patience": 2,
    },
    "epsilon-greedy": {
        "epsilon": 2.0,
        "rho": 1.0,
        "explore_index": "protected",
        "lock_in": "explore",
        "patience": 2,
    },
    "oful": {"rho": 1.0, "delta": 0.5, "radius": "printed"},
    "protected-thompson": {"rho": 1.0, "memory": 20.0, "delta": 0.9, "query": "widest", **CAREFUL},
    "information-directed": {"rho": 1.0, "memory": 20.0, "delta": 0.9, "horizon": 60},
    "directed-thompson": {
        "rho": 1.0,
        "memory": 20.0,
        "delta": 0.9,
        "informative": 5.0,
        "share": 1e-6,
        "kappa": 0.01,
        "horizon": 5,
        **CAREFUL,
    },
    "explore-then-commit": {"rounds": 50, "rho": 1.0},
    "uniform": {},
}
RARE = {"share", "kappa"}  # these bind only where no contender can tell
WATCHING = {"lock_in", "patience"}  # these where an arm is played again and again
UNTOLD = {
    (name, "delta") for name in ("protected-thompson", "directed-thompson", "information-directed")
}  # where s is not told
PRICED = {("directed-thompson", "horizon")}  # a price that the rounds left cannot repay is not paid
ENDS_IN_AN_ERROR = {"max_core_set_rounds": CoreSetError}

QUIET = {
    "fixed arms": lambda: synthetic(3, 2, 1, ss.Arms(np.eye(3)), noise_scale=1e-4, seed=1),
    "fresh arms": lambda: synthetic(3, 2, 1, FreshArms(7, 3), noise_scale=1e-4, seed=2),
    "changing arms": lambda: synthetic(
        3, 2, 1, Menus([np.eye(3), -np.eye(3)[:2]]), noise_scale=1e-4, seed=3
    ),
    "ball": lambda: synthetic(3, 2, 1, UnitBall(3), noise_scale=1e-4, seed=4),
}


@pytest.fixture
def player(request, monkeypatch):
    """A policy of the table; where it plays the ball only, the worlds are the balls only.

    What differs by a knob alone plays half as many rounds, but for the long check of compiled code.
    """
    if request.param not in POLICIES and request.getfixturevalue("check") is not COMPILES:
        monkeypatch.setattr(testing, "ROUNDS", testing.ROUNDS // 2)
    if request.param in ON_THE_BALL_ONLY:
        for worlds in (testing.contract_worlds, testing.edge_worlds):
            balls = {
                name: world
                for name, world in worlds().items()
                if isinstance(world.actions, UnitBall)
            }
            assert balls
            monkeypatch.setattr(testing, worlds.__name__, lambda balls=balls: balls)
    return PLAYERS[request.param]


def knobs() -> list[tuple[str, str]]:
    return [(name, knob) for name, values in OTHER_VALUES.items() for knob in values]


COMPILES = testing.check_both_ways_of_playing_agree
CHECKS = [
    pytest.param(check, marks=pytest.mark.slow) if check is COMPILES else check
    for check in testing.CHECKS
]


@pytest.mark.full
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("player", PLAYERS, indirect=True)
def test_every_policy_keeps_the_contract(player, check):
    check(player)


@pytest.mark.full
@pytest.mark.parametrize("world", QUIET)
@pytest.mark.parametrize("preset", ["as_intended", "as_printed"])
def test_after_core_set_the_compiled_run_of_a_preset_equals_the_steps(preset, world):
    """In the contract worlds with more noise the paper's constants never end CORE-SET."""
    instance = QUIET[world]()
    policy = getattr(ss.ProtectedLinUCB, preset)(instance.problem)
    fast = ss.simulate(policy, instance, 80, seed=9, compiled=True)
    slow = ss.simulate(policy, instance, 80, seed=9, compiled=False)
    assert (fast.phase == "play").sum() >= 40
    assert (fast.index == slow.index).all()
    assert (fast.arm == slow.arm).all()
    # on the ball the maximum is flat: its location is accurate only to the root of rounding
    np.testing.assert_allclose(fast.action, slow.action, rtol=0, atol=1e-7)
    np.testing.assert_allclose(fast.value, slow.value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", POLICIES)
def test_the_table_of_other_values_names_every_knob(name):
    assert set(OTHER_VALUES[name]) == set(knobs_of(POLICIES[name]))


def test_the_table_of_other_values_names_every_policy_and_repeats_no_default():
    assert set(OTHER_VALUES) == set(POLICIES)
    for name, knob in knobs():
        assert OTHER_VALUES[name][knob] != knobs_of(POLICIES[name])[knob], (name, knob)


def goes_another_way(name, knob, world, problem=None, rounds=600, seeds=6, **plain):
    """Whether a policy of that name decides differently with the other value of the knob."""
    told = world.problem if problem is None else problem
    one = POLICIES[name](told, **plain)
    other = POLICIES[name](told, **{**plain, knob: OTHER_VALUES[name][knob]})
    return any(testing.first_difference(one, other, world, rounds, seed) for seed in range(seeds))


def those(wanted: Callable[[str, str], bool]) -> Any:
    """The knobs of the table for which the condition is true."""
    chosen = [pair for pair in knobs() if wanted(*pair)]
    assert chosen
    return pytest.mark.parametrize(("name", "knob"), chosen, ids=str)


def is_special(name: str, knob: str) -> bool:
    special = RARE | WATCHING | set(ENDS_IN_AN_ERROR) | set(CAREFUL)
    return knob in special or (name, knob) in UNTOLD | PRICED


@pytest.mark.full
@those(lambda name, knob: not is_special(name, knob))
def test_every_knob_changes_something(name, knob):
    testing.check_knob_matters(POLICIES[name], knob, OTHER_VALUES[name][knob])


@those(lambda _, knob: knob in ENDS_IN_AN_ERROR)
def test_a_cap_that_is_reached_ends_in_an_error_that_names_it(name, knob):
    with pytest.raises(ENDS_IN_AN_ERROR[knob], match=knob):
        testing.check_knob_matters(POLICIES[name], knob, OTHER_VALUES[name][knob])


@those(lambda _, knob: knob in WATCHING)
def test_a_knob_of_the_monitor_changes_something_where_an_arm_locks_in(name, knob):
    plain = {"patience": 5} if knob == "lock_in" else {"lock_in": "explore"}
    assert goes_another_way(name, knob, failure(1.0), **plain)


@pytest.mark.full
@those(lambda name, knob: (name, knob) in UNTOLD)
def test_the_level_of_the_rank_changes_something_where_the_rank_is_not_told(name, knob):
    world = synthetic(4, 3, 2, 8, noise_scale=0.3, seed=1)
    untold = ss.Problem(4, 3, resolution=0.2, noise_scale=0.3)
    assert goes_another_way(name, knob, world, untold, rounds=300)


@those(lambda name, knob: knob in RARE or (name, knob) in PRICED)
def test_a_knob_of_the_price_changes_something_where_no_contender_is_informative(name, knob):
    assert goes_another_way(name, knob, blind_spot(), rounds=500)


@those(lambda _, knob: knob in CAREFUL)
def test_caution_and_where_it_starts_change_something_within_tolerances(name, knob):
    arms = ss.Arms(np.vstack([np.zeros(3), np.eye(3)]))
    theta = synthetic(3, 2, 1, arms, seed=1).theta
    world = Instance(theta, arms, 0.1, tolerance=0.15, penalty=5.0)
    plain = {"caution": 0.8} if knob == "safe" else {}
    assert goes_another_way(name, knob, world, rounds=30, **plain)


@pytest.mark.parametrize(("knob", "value"), [("rho", 1.0), ("delta", 0.5)])
@pytest.mark.parametrize("preset", ["as_intended", "as_printed"])
def test_every_knob_of_a_preset_changes_something(preset, knob, value):
    make = getattr(ss.ProtectedLinUCB, preset)
    instance = synthetic(3, 2, 1, 7, noise_scale=0.005, seed=2)
    one, other = make(instance.problem), make(instance.problem, **{knob: value})
    assert testing.first_difference(one, other, instance, 200, seed=13)


def test_a_knob_that_does_nothing_is_noticed():
    @dataclass(frozen=True)
    class Idle(PlugIn):
        knob: float = 1.0

    with pytest.raises(AssertionError, match=r"the knob knob = 2.0 changes nothing"):
        testing.check_knob_matters(Idle, "knob", 2.0)


# A policy of another package: plain Python, no kernels


@dataclass(frozen=True)
class Sums:
    """What PlugIn has learned: sum of a x of every vector."""

    moment: Any
    told: int = 0

    def to_json(self) -> str:
        return json.dumps([self.moment.tolist(), self.told])


@dataclass(frozen=True)
class PlugIn:
    """Measure the vectors in turn; play along the target's sum, off the first protected one."""

    problem: ss.Problem
    lean: float = 1.0

    def init(self):
        return Sums(np.zeros((self.problem.n_vectors, self.problem.dim)))

    def ask(self, state, actions, rng, pending=()):
        index = (state.told + len(pending)) % self.problem.n_vectors
        hope = state.moment[0] - self.lean * state.moment[-1] * (self.problem.n_protected > 0)
        if isinstance(actions, UnitBall):
            length = np.linalg.norm(hope)
            action = hope / length if length > 0 else np.eye(self.problem.dim)[0]
            return ss.Decision(ss.Query(action, index), "play")
        arm = int(np.argmax(actions.vectors @ hope))
        return ss.Decision(ss.Query(actions.vectors[arm], index), "play", None, arm)

    def tell(self, state, query, feedback):
        moment = state.moment.copy()
        moment[query.index] += feedback * query.action
        return Sums(moment, state.told + 1)

    def state_from_json(self, text):
        moment, told = json.loads(text)
        return Sums(np.array(moment), told)


def test_a_policy_of_another_package_is_accepted_with_its_knobs():
    ss.testing.check_policy(PlugIn, knobs={"lean": -1.0})


class WritesIntoTheState(PlugIn):
    def tell(self, state, query, feedback):
        state.moment[query.index] += feedback * query.action
        return replace(state, told=state.told + 1)


class WritesWhileAsked(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        decision = super().ask(state, actions, rng, pending)
        state.moment[1:2] += 1.0
        return decision


class WritesIntoTheArms(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        decision = super().ask(state, actions, rng, pending)
        if isinstance(actions, ss.Arms):
            actions.squared[0] = 0.0
        return decision


class AsksDifferently(PlugIn):
    asked = count()

    def ask(self, state, actions, rng, pending=()):
        decision = super().ask(state, actions, rng, pending)
        index = next(self.asked) % self.problem.n_vectors
        return replace(decision, query=ss.Query(decision.query.action, index))


class PlaysOffTheMenu(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        decision = super().ask(state, actions, rng, pending)
        return replace(decision, query=ss.Query(0.5 * decision.query.action, decision.query.index))


class CallsItCoreSet(PlaysOffTheMenu):
    """The phase "core-set" alone does not allow actions off the menu: that needs `design = "basis"`."""

    def ask(self, state, actions, rng, pending=()):
        return replace(super().ask(state, actions, rng, pending), phase="core-set")


class MeasuresWhatIsNotThere(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        decision = super().ask(state, actions, rng, pending)
        return replace(decision, query=ss.Query(decision.query.action, self.problem.n_vectors))


class NamesNoPhase(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        return replace(super().ask(state, actions, rng, pending), phase="exploit")


class NamesAnotherRow(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        decision = super().ask(state, actions, rng, pending)
        return replace(decision, arm=None if decision.arm is None else decision.arm + 1)


class NamesARowOfTheBall(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        decision = super().ask(state, actions, rng, pending)
        return replace(decision, arm=0 if decision.arm is None else decision.arm)


class SaysNothing(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        super().ask(state, actions, rng, pending)


class TellsNothing(PlugIn):
    def tell(self, state, query, feedback):
        super().tell(state, query, feedback)


class NeedsArms(PlugIn):
    def ask(self, state, actions, rng, pending=()):
        index = state.told % self.problem.n_vectors
        return ss.Decision(ss.Query(actions.vectors[0], index), "play", None, 0)


class ForgetsInJson(PlugIn):
    def state_from_json(self, text):
        return Sums(np.zeros_like(super().state_from_json(text).moment))


class RemembersBesideTheState(PlugIn):
    """Its answers depend on how often `tell` was called on this object."""

    def __init__(self, problem):
        super().__init__(problem)
        object.__setattr__(self, "memory", [])

    def tell(self, state, query, feedback):
        self.memory.append(feedback)
        return super().tell(state, query, feedback + 0.01 * len(self.memory))


class ForgetsInAPickle(PlugIn):
    def __reduce__(self):
        return PlugIn, (self.problem, -1.0)


BROKEN = {
    WritesIntoTheState: "tell must not write into the state",
    WritesWhileAsked: "ask must not write into the state",
    WritesIntoTheArms: "ask must not write into the actions",
    AsksDifferently: "asked twice, two answers",
    PlaysOffTheMenu: "off the action set",
    CallsItCoreSet: "off the action set",
    MeasuresWhatIsNotThere: r"index of a query must lie in 0\.\.2, got 3",
    NamesNoPhase: "phase of a Decision must be one of 'play', 'explore', .*got 'exploit'",
    NamesAnotherRow: "arm of a Decision must be the row of its action, 0, got 1",
    NamesARowOfTheBall: "arm of a Decision must be the row of its action, None, got 0",
    SaysNothing: "ask must return a Decision, got None",
    TellsNothing: "tell must return the new state, got None",
    NeedsArms: r"ball: ask breaks down on a UnitBall \(AttributeError.*plays = \(ss.Arms,\)",
    ForgetsInJson: "the text changed on the way",
    RemembersBesideTheState: "replay differs",
    ForgetsInAPickle: "another ask after pickling",
}


@pytest.mark.full
@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_promise_is_named(broken):
    with pytest.raises(AssertionError, match=BROKEN[broken]):
        ss.testing.check_policy(broken)


class NoTell:
    def __init__(self, problem):
        self.problem = problem

    def init(self):
        return 0

    def ask(self, state, actions, rng):
        return None


class NoText(NoTell):
    def tell(self, state, query, feedback):
        return state


class NoTextOfState(NoText):
    def state_from_json(self, text):
        return 0


class PlaysNone(PlugIn):
    plays = None


NO_POLICIES = {
    "policy must be a class or a function of a Problem, got a PlugIn object": PlugIn(
        ss.Problem(3, 2)
    ),
    "policy must be built from a Problem alone, got PlugIn.__init__() got an": partial(
        PlugIn, wide=1
    ),
    "policy must have problem, init, ask, tell, got NoTell without tell": NoTell,
    "to be kept as text, got NoText without state_from_json": NoText,
    "to be kept as text, got int without to_json": NoTextOfState,
    "plays must be a tuple of action sets such as (Arms,), got None": PlaysNone,
}


@pytest.mark.parametrize("words", NO_POLICIES)
def test_an_object_that_is_not_a_policy_is_refused_in_a_sentence(words, refusal):
    assert words in refusal(ss.testing.check_policy, NO_POLICIES[words])


def test_a_broken_promise_says_on_which_world():
    with pytest.raises(AssertionError, match=r"fixed arms|fresh arms|changing arms|ball"):
        ss.testing.check_policy(PlaysOffTheMenu)


@dataclass(frozen=True)
class AsksInFourArguments(PlugIn):
    """Without `pending`, and for arms only: the parts that base.py says are optional."""

    plays = (ss.Arms,)

    def ask(self, state, actions, rng):
        return super().ask(state, actions, rng)


def test_a_policy_that_takes_no_pending_and_plays_arms_alone_is_accepted():
    ss.testing.check_policy(AsksInFourArguments, knobs={"lean": -1.0})


def test_a_policy_that_takes_no_pending_plays_as_one_that_has_no_use_for_it():
    instance = synthetic(3, 2, 1, 7, noise_scale=0.1, seed=2)
    traces = [
        ss.simulate(policy(instance.problem), instance, 50)
        for policy in (PlugIn, AsksInFourArguments)
    ]
    assert (traces[0].action == traces[1].action).all()


def test_a_policy_is_not_played_on_what_it_does_not_play(refusal):
    ball = synthetic(3, 2, 1, UnitBall(3), noise_scale=0.1)
    message = refusal(ss.simulate, AsksInFourArguments(ball.problem), ball, 5)
    assert message == "actions must be what AsksInFourArguments plays, Arms, got UnitBall"


def test_a_batch_needs_a_policy_that_counts_on_what_is_pending(refusal):
    policy = AsksInFourArguments(ss.Problem(dim=2, n_protected=1))
    for several in (ss.ask_batch, ss.ask_panel):
        message = refusal(
            several, policy, policy.init(), ss.Arms(np.eye(2)), np.random.default_rng(0), 2
        )
        assert "takes pending" in message


class PlaysLessThanItSays(AsksInFourArguments):
    plays = (ss.Arms, UnitBall)

    def ask(self, state, actions, rng):
        assert isinstance(actions, ss.Arms), "arms alone"
        return super().ask(state, actions, rng)


def test_a_policy_is_held_to_what_it_says_it_plays():
    with pytest.raises(AssertionError, match="arms alone"):
        ss.testing.check_policy(PlaysLessThanItSays)
