"""What a policy is. Read this first.

A policy is frozen knobs and three pure functions:

    state = policy.init()
    decision = policy.ask(state, actions, rng, pending=())   # what to play, which vector to measure
    state = policy.tell(state, decision.query, x)     # a new state; the old one is left as it was

`ask` changes nothing but the generator it is handed: asked twice with a generator in the same state
it answers the same. What was learned is in the state alone: sums and counters, JSON in and out.

The policies of this package write their arithmetic as compiled kernels (see dispatch.py); what they
then do alike is `CompiledPolicy` below. A policy of yours may do without: any object with `problem`,
`init`, `ask` and `tell` plays in `simulate`, step by step. What it may say, or leave out:

    def ask(self, state, actions, rng, pending=()): ...   # queries that wait for their answer
    def ask(..., pending=(), restrictions=None): ...      # what this ask must keep to: restrictions.py
    plays = (Arms,)      # which action sets it plays: a class attribute; all where there is none

A state that is kept as text, and `ss.testing.check_policy`, need two more: `state.to_json()` and
`policy.state_from_json(text)`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions, Arms, UnitBall, basis_vector, checked_actions
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.checks import (
    check_choice,
    check_positive,
    check_probability,
    check_rng,
    check_scale,
    shown,
)
from sidestep.core.compiled import step
from sidestep.core.confidence import RADII, Confidence
from sidestep.core.estimator import Evidence, absorb, absorb_with, copy_evidence, fade, no_evidence
from sidestep.core.forms import Menu
from sidestep.core.geometry import dot, scaled
from sidestep.core.kernels import ieee_arithmetic, kernel
from sidestep.core.problem import (
    Problem,
    Query,
    checked_feedback,
    checked_parts,
    checked_query,
    per_vector,
)
from sidestep.core.rank import Spectrum
from sidestep.core.showing import brief, notebook_table, short, told
from sidestep.errors import InputError
from sidestep.policies.dispatch import Choice, Draws, decide_on_arms, decide_on_ball
from sidestep.policies.monitoring import EXPLORES, SILENT, Watch
from sidestep.policies.reasons import Expected, reasons_for
from sidestep.policies.restrictions import Restrictions
from sidestep.policies.state import Fingerprint, as_json, facts_of, read_state
from sidestep.policies.state import State as State  # noqa: PLC0414  (base is where people look)

PLAY, EXPLORE, CORE_SET, LOCKED, CAUTIOUS, HELD = 0, 1, 2, 3, 4, 5
PHASES = ("play", "explore", "core-set", "locked-in", "cautious", "held", "confirm")

FOREVER = 2**62
NO_DRAWS = np.empty(0)


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What to do in a round, and what a person wants to see of why.

    query      the action to play and the index to measure
    phase      why: "play", "explore", "core-set" or "locked-in"
    value      what the policy hopes the action is worth
    arm        row of the action among the arms; None on a solid and off the menu
    bound      no action of the ball is worth more, optimistically: a certificate
    spectrum   what the evidence says of the rank, where the player is not told it
    exact      whether the core set is proved the best; None where there is none
    rival      the contender: row of an arm, or an action of a solid
    shares     of the doubt, what one result of each outcome would remove; (L+1,)
    price      what this is expected to lose against today's best
    expected   the feedback to expect: estimate, low, high
    within     probability of being within every tolerance, where some are told

    >>> import numpy as np, sidestep as ss
    >>> policy = ss.DirectedThompson(ss.Problem(2, 1, subspace_dim=1, noise_scale=0.1))
    >>> rng = np.random.default_rng(0)
    >>> policy.ask(policy.init(), ss.Arms([[1.0, 0.0], [0.0, 1.0]]), rng).phase
    'play'
    """

    query: Query
    phase: str  # one of PHASES
    value: float | None = None  # what the policy hopes the action is worth
    arm: int | None = None  # row of the action among the arms; None on solids and off the menu
    bound: float | None = None  # certificate: no action of the ball is worth more, optimistically
    spectrum: Spectrum | None = None  # evidence on the rank, where the player is not told it
    exact: bool | None = None  # whether the core set is proved the best; None where there is none
    rival: int | FloatArray | None = None  # the contender: row of an arm, or an action of a solid
    shares: FloatArray | None = None  # of the doubt that one result of each outcome removes; (L+1,)
    price: float | None = None  # what this is expected to lose against today's best
    expected: Expected | None = None  # feedback: estimate, low, high
    within: float | None = None  # probability of being within every tolerance, where some are told

    def __repr__(self) -> str:
        arm = "" if self.arm is None else f", arm={self.arm}"
        value = "" if self.value is None else f", value={brief(self.value)}"
        return f"Decision({self.query!r}, {self.phase!r}{arm}{value})"

    def _repr_html_(self) -> str:
        rows = {"play": self.query.action, "measure": self._measured, "phase": self.phase}
        known = {
            "arm": self.arm,
            "hoped for": self.value,
            "price": self.price,
            "expected feedback": self.expected,
            "against": self.rival,
            "share of the doubt each outcome removes": self.shares,
        }
        known = {name: value for name, value in known.items() if value is not None}
        return notebook_table("Decision", rows | known)

    @property
    def _measured(self) -> str:
        index = self.query.index
        return f"outcome {index}" + (" (the target)" if index == 0 else "")

    @property
    def gap(self) -> float | None:
        """Relative distance from the value to its certificate."""
        if self.bound is None or self.value is None:
            return None
        slack = self.bound - self.value
        return slack / max(abs(self.value), 1e-300) if slack > 0 else 0.0


StateT = TypeVar("StateT")


class Policy(Protocol[StateT]):
    """Anything that can play; see protocol.py for what of it may be left out."""

    @property
    def problem(self) -> Problem:
        """What the player is told."""

    def init(self) -> StateT:
        """State before the first round."""

    def ask(
        self, state: StateT, actions: Actions, rng: Generator, pending: Sequence[Query] = ()
    ) -> Decision:
        """What to play and what to measure; `pending` was asked and not yet answered."""

    def tell(self, state: StateT, query: Query, feedback: float) -> StateT:
        """The state after one more measurement."""

    def state_from_json(self, text: str) -> StateT:
        """A state from its text."""


class CompiledPolicy:
    """What every policy of this package does alike: `init`, `ask` and `tell` by way of its kernels.

    A policy brings its knobs as a NamedTuple with `metric` (which quadratic form of the arms it reads)
    and `confidence`, registers its kernels for them (see dispatch.py), and says how much chance a round
    takes. What it does now and then, and not in a round, goes to `rounds_until_review` and `review`: the
    compiled loop hands over to Python there.
    """

    __slots__ = ()

    problem: Problem
    knobs: Any
    plays_solids: ClassVar[bool] = False  # more than the ball: boxes, ellipsoids, simplices
    draws_arms: ClassVar[bool] = False  # by chance, so that an arm listed twice counts twice

    def __repr__(self) -> str:
        return short(self)

    def _repr_html_(self) -> str:
        knobs = {name: value for name, value in told(self).items() if name != "problem"}
        what = (type(self).__doc__ or "").partition("\n")[0]
        rows = {"what": what, **knobs, **told(self.problem)}
        return notebook_table(type(self).__name__, rows)

    def init(self) -> State:
        """State before the first round."""
        core_set = np.ones(self.problem.n_vectors, dtype=np.int64)
        evidence = no_evidence(self.knobs.confidence.rho, self.problem.width)
        return State(evidence, core_set, self.fingerprint())

    def ask(
        self,
        state: State,
        actions: Actions,
        rng: Generator,
        pending: Sequence[Query] = (),
        restrictions: Restrictions | None = None,
    ) -> Decision:
        """What to play and what to measure; `pending` was asked and not yet answered.

        restrictions: what this ask must keep to, beside the actions (policies/restrictions.py)
        """
        actions = self.admitted(actions)
        check_rng(rng)
        self.check(state, actions)
        evidence = self._expected(state.evidence, pending)
        with ieee_arithmetic():
            if restrictions is not None:
                from sidestep.policies.restricted import ask_restricted  # noqa: PLC0415  (needs this)

                return ask_restricted(self, state, evidence, actions, rng, restrictions)
            decision = self.decide(state, evidence, actions, rng)
            return self.explained(decision, evidence, state.core_set, actions)

    def explained(
        self, decision: Decision, evidence: Evidence, core_set: IntArray, actions: Actions
    ) -> Decision:
        """The decision with its reasons, of a policy that has a posterior."""
        prior = getattr(self.knobs, "prior", None)
        if prior is None:
            return decision
        known = (evidence, core_set, self.knobs.rank)
        found = reasons_for(self.problem, prior, known, actions, decision.query)
        return replace(decision, **found._asdict())

    def decide(
        self, state: State, evidence: Evidence, actions: Actions, rng: Generator, knobs: Any = None
    ) -> Decision:
        """What to play and what to measure, without the reasons; knobs: others than its own."""
        knobs = self.knobs if knobs is None else knobs
        draws = self._draws(rng, on_ball=not isinstance(actions, Arms))
        seen, exact = self.spectrum(state), self.exact(state)
        if not isinstance(actions, Arms):
            on_ball = step(decide_on_ball)(knobs, evidence, state.core_set, actions.body, draws)
            query = Query(on_ball.action, on_ball.vector)
            value, bound = _known(on_ball.value), _known(on_ball.bound)
            return Decision(query, PHASES[on_ball.phase], value, None, bound, seen, exact)
        menu = _menu(self.problem, actions)
        choice = step(decide_on_arms)(knobs, evidence, state.core_set, menu, draws)
        choice = self._monitored(state, evidence, menu, choice)
        phase, value = PHASES[choice.phase], _known(choice.value)
        if choice.arm < 0:  # a basis vector, which need not be on the menu
            return Decision(
                Query(basis_vector(actions.dim, choice.arm), choice.vector), phase, value
            )
        query = Query(actions.vectors[choice.arm], choice.vector)
        row = actions.row(choice.arm)
        return Decision(query, phase, value, row, spectrum=seen, exact=exact)

    def _monitored(self, state: State, evidence: Evidence, menu: Menu, choice: Choice) -> Choice:
        watch = self.watch(State(evidence, state.core_set))
        if watch is None or choice.phase != PLAY or not watch.is_due():
            return choice
        return after_monitor(watch.verdict(menu), evidence.last, menu, choice)

    def watch(self, state: State) -> Watch | None:
        """The lock-in monitor, where this policy has one."""
        return None

    def _draws(self, rng: Generator, *, on_ball: bool) -> Draws:
        uniforms, normals = self.draws_per_round(on_ball=on_ball)
        return Draws(
            rng.random(uniforms) if uniforms else NO_DRAWS,
            rng.standard_normal(normals) if normals else NO_DRAWS,
        )

    def tell(self, state: State, query: Query, feedback: float) -> State:
        """The state after one more measurement; the one handed in is left as it was."""
        action, index = checked_parts(self.problem, query)
        number = checked_feedback(self.problem, feedback)
        limit = self.learns_for()
        if limit < FOREVER and state.round >= limit:
            return state
        # from Python, arrays are copied faster than `copy_evidence` could hand them back
        copies = Evidence._make(map(np.ndarray.copy, state.evidence))
        whose = self.fingerprint() if state.fingerprint is None else state.fingerprint
        grown = State(copies, state.core_set.copy(), whose)
        confidence = self.knobs.confidence
        if confidence.discount < 1.0:
            step(fade)(grown.evidence, confidence.rho, confidence.discount)
        action = self.problem.lifted(action)
        gain = np.empty(action.size)
        with ieee_arithmetic():
            step(absorb_with)(gain, copies, confidence.rho, action, index, number)
            if self.rounds_until_review(state) == 1:
                self.review(grown)
        return grown

    def admitted(self, actions: Actions) -> Actions:
        """The actions, or one sentence that says why this policy cannot play them."""
        actions = checked_actions(self.problem, actions)
        if not isinstance(actions, (Arms, UnitBall)) and not self.plays_solids:
            raise InputError(
                f"{type(self).__name__} plays arms and the unit ball, got {type(actions).__name__}"
            )
        return actions

    def spectrum(self, state: State) -> Spectrum | None:
        """What the evidence says of the rank; None where the player is told it, or does not ask."""
        return None

    def exact(self, state: State) -> bool | None:
        """Whether the core set is proved to be the best subset; None where none was chosen."""
        return None

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """How many uniforms and how many normals a round takes; the same number every round."""
        return 0, self.problem.dim if on_ball else 0

    def check(self, state: State, actions: Actions) -> None:
        """Raise where this policy cannot go on from here; warn of what a person should know."""

    def learns_for(self) -> int:
        """Number of measurements after which nothing more is learned."""
        return FOREVER

    def rounds_until_review(self, state: State) -> int:
        """Rounds to play until `review` is due; at least 1."""
        return FOREVER

    def review(self, state: State) -> None:
        """What is done between rounds now and then, in place."""

    def state_from_json(self, text: str) -> State:
        """A state from its text: of this policy, this problem and this rho, or one sentence."""
        return read_state(self.fingerprint(), self.problem, self.init(), text)

    def fingerprint(self) -> Fingerprint:
        """Whose states these are."""
        return Fingerprint(type(self).__name__, facts_of(self.problem), self.learns_by())

    def learns_by(self) -> dict[str, Any]:
        """What the numbers of a state depend on beside the problem, as JSON has it."""
        confidence = self.knobs.confidence
        return {"rho": as_json(confidence.rho), "discount": confidence.discount}

    def _expected(self, evidence: Evidence, pending: Sequence[Query]) -> Evidence:
        """Evidence as it will be once what is pending has come in as predicted.

        The estimates stay where they are and the sets shrink, so the next ask looks elsewhere.
        """
        if not pending:
            return evidence
        evidence = copy_evidence(evidence)
        for query in pending:
            checked = checked_query(self.problem, query)
            action = self.problem.lifted(checked.action)
            v, guess = checked.index, dot(action, evidence.centre[checked.index])
            evidence.misfit[v] *= 1 + 1 / max(evidence.weight[v], 1.0)  # the noise is as it was
            absorb(evidence, self.knobs.confidence.rho, action, v, guess)
        return evidence


@kernel(refcounts=False)
def after_monitor(verdict: IntArray, last: FloatArray, menu: Menu, choice: Choice) -> Choice:
    """The choice once the lock-in monitor has spoken: its verdict is on the last action, played again."""
    if choice.phase != PLAY or verdict[0] == SILENT:
        return choice
    for j in range(last.size):
        if menu.columns[j, choice.arm] != last[j]:
            return choice
    if verdict[0] == EXPLORES:
        return Choice(verdict[1], verdict[2], EXPLORE, np.nan)
    return Choice(choice.arm, choice.vector, LOCKED, choice.value)


@kernel
def random_direction(normals: FloatArray) -> FloatArray:
    """A direction drawn evenly from the sphere; (d,)."""
    return scaled(1.0 / np.sqrt(dot(normals, normals)), normals)


@kernel
def draw_one(uniform: float, count: int) -> int:
    """One of 0..count-1, evenly."""
    return min(int(uniform * count), count - 1)


def known_rank(problem: Problem, policy: str) -> int:
    """s, or one sentence that asks for it."""
    if problem.subspace_dim is None:
        raise InputError(f"{policy} needs the problem's subspace_dim, got None")
    return problem.subspace_dim


def check_equal_costs(problem: Problem, policy: str) -> None:
    """Raise where one measurement costs more than another: this policy would take no notice."""
    if np.ptp(per_vector(problem.costs, problem.n_vectors)) > 0:
        raise InputError(
            f"costs must be the same for every vector, as {policy} does not weigh them "
            f"(the Thompson players do), got {shown(problem.costs)}"
        )


def _check_aim(problem: Problem, *, follows_tolerances: bool, learns_levels: bool) -> None:
    """Refuse an aim that a policy would not follow: never play another game than was asked for."""
    if problem.tolerance is not None and not follows_tolerances:
        raise InputError(
            "this policy plays the projected reward and must be told no tolerance, got one "
            "(the Thompson players and EpsilonGreedy play within tolerances)"
        )
    if problem.intercept and problem.tolerance is None and not learns_levels:
        raise InputError(
            "intercept must be False, as this policy learns no levels for the projected reward "
            "(the Thompson players do), got True"
        )


def confidence_for(
    problem: Problem,
    *,
    rho: float,
    delta: float,
    radius: str = "logdet",
    needs_noise: bool = True,
    memory: float | None = None,
    follows_tolerances: bool = False,
    learns_levels: bool = False,
) -> Confidence:
    """How the sets are drawn, from knobs that are checked here; delta is for one vector.

    A policy that can do without being told the noise has NaN for it, and widths that are NaN.
    """
    _check_aim(problem, follows_tolerances=follows_tolerances, learns_levels=learns_levels)
    noise = problem.noise if needs_noise else problem.known_noise
    check_scale("rho", rho)
    check_probability("delta", delta)
    check_choice("radius", radius, tuple(RADII))
    if memory is not None:
        check_positive("memory", memory)
        if memory <= 1:
            raise InputError(f"memory must be more than 1 round, got {memory}")
    return Confidence(
        np.full(problem.n_vectors, float(rho)),
        noise,
        float(problem.norm_bound),
        float(problem.action_bound),
        float(delta),
        RADII[radius],
        1.0 if memory is None else 1.0 - 1.0 / memory,
    )


def _menu(problem: Problem, arms: Arms) -> Menu:
    """The arms as kernels read them, with the coordinate of the level where that is learned."""
    if not problem.intercept:
        return Menu(arms.columns, arms.squared)
    columns = np.ascontiguousarray(problem.lifted(arms.columns.T).T)
    return Menu(columns, np.einsum("jk,jk->k", columns, columns))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
