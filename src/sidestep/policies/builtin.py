"""What all policies of this package have in common: `init`, `ask`, `tell`, and how kernels are found.

Every policy passes its knobs to its kernel as a NamedTuple of its own type. `ask` and the loops of
`experiments` call `choose`; the type of the knobs selects the policy's kernel, one for arms and solids.
So the arithmetic of every policy is written once. A policy that has a posterior registers `choose_given`
instead: `ask` computes the posterior once, for the choice and for its reasons.

The lock-in monitor (core/lock_in.py) runs rarely, so it is not part of a policy's kernels: `ask` calls it
after the policy has chosen, and the compiled loop returns to Python when the monitor is due.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from sidestep.core import jit
from sidestep.core.actions import (
    ON_A_SOLID,
    Actions,
    Arms,
    UnitBall,
    basis_vector,
    checked_actions,
)
from sidestep.core.arm_forms import Forms, Menu, empty_forms
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.best_action import Found, Place
from sidestep.core.confidence import Confidence
from sidestep.core.core_set import NO_SWEEPS, Sweeps, next_check
from sidestep.core.display import non_defaults, notebook_table, short
from sidestep.core.estimator import Evidence, absorb, absorb_with, copy_evidence, fade, no_evidence
from sidestep.core.jit import by_type, ieee_arithmetic, kernel
from sidestep.core.linalg import copy_into, dot, total
from sidestep.core.lock_in import LockInMonitor, is_due, locked_in
from sidestep.core.posterior import Posteriors, doubting_posteriors_of, posteriors_of
from sidestep.core.problem import Problem, Query, checked_feedback, checked_parts, checked_query
from sidestep.core.rank import (
    Spectrum,
    first_ranks,
    is_reviewed,
    reviewed_ranks,
    spectrum_of,
)
from sidestep.core.validation import check_choice, check_integer, check_rng, shown
from sidestep.errors import InputError
from sidestep.policies.advice.explain import reasons_for
from sidestep.policies.advice.posterior_summary import standpoint_of
from sidestep.policies.base import EXPLORE, LOCKED, PHASES, PLAY, Decision, State
from sidestep.policies.state import Fingerprint, Learned, as_json, facts_of, read_state

if TYPE_CHECKING:
    from sidestep.policies.restrictions import Restrictions

Kernel = Callable[..., Any]


class Draws(NamedTuple):
    """The random numbers of one round, drawn before it; a policy says how many of each it needs."""

    uniforms: FloatArray
    normals: FloatArray


@kernel
def rounds_left(horizon: float, evidence: Evidence) -> float:
    """Rounds that are left of a known horizon; 0 if it is not known (0), or over."""
    return max(horizon - float(total(evidence.counts, 0)), 0.0)


class Choice(NamedTuple):
    """What a policy does in a round."""

    arm: int  # row among the arms; `off_menu(axis)` or ON_A_SOLID of core/actions.py
    vector: int  # index of the measured vector
    phase: int
    value: float  # value of the action by which the policy chose it; NaN where it has none
    bound: float  # upper bound on the optimistic value of any action of the ball; NaN elsewhere


@kernel
def chosen(found: Found, vector: int, phase: int, action: FloatArray) -> Choice:
    """The choice of an action that was found; that of a solid is written into `action` (d,)."""
    if found.arm == ON_A_SOLID:
        copy_into(found.action, action)
    return Choice(found.arm, vector, phase, found.value, np.nan)


class Offer(NamedTuple):
    """What a round offers to the kernel of a policy."""

    place: Place  # the arms, or a solid
    forms: Forms  # of the arms, filled or not; only optimistic policies read them
    draws: Draws
    action: FloatArray  # (d,): a chosen action of a solid is written here


@by_type
def choose(knobs: Any, learned: Learned, offer: Offer) -> Choice:
    """What to do in a round, over arms or in a solid."""
    raise NotImplementedError


@by_type
def choose_given(knobs: Any, posteriors: Posteriors, learned: Learned, offer: Offer) -> Choice:
    """`choose` of a policy that has a posterior, given the posterior."""
    raise NotImplementedError


@kernel
def _from_posterior(knobs: Any, learned: Learned, offer: Offer) -> Choice:
    posteriors = posteriors_of(knobs.prior, learned.evidence, knobs.has_levels)
    return choose_given(knobs, posteriors, learned, offer)


@kernel(small=True)
def _from_doubting_posterior(knobs: Any, learned: Learned, offer: Offer) -> Choice:
    posteriors = doubting_posteriors_of(knobs.prior, learned.evidence, knobs.has_levels)
    return choose_given(knobs, posteriors, learned, offer)


def register(kind: type, kernel: Kernel) -> None:
    """Register the kernel that is `choose` for knobs of this NamedTuple type."""
    jit.register(choose, kind, kernel)


def register_given(kind: type, kernel: Kernel, *, doubts: bool = False) -> None:
    """Register the kernel that is `choose_given` for knobs of this type; doubts: M may be too large."""
    jit.register(choose_given, kind, kernel)
    jit.register(choose, kind, _from_doubting_posterior if doubts else _from_posterior)


SILENT, WARNS, EXPLORES = 0, 1, 2  # verdicts of the monitor on playing the last action again


def monitor_for(lock_in: str, patience: int) -> LockInMonitor:
    """The lock-in monitor, from knobs that are checked here."""
    check_choice("lock_in", lock_in, ("warn", "explore"))
    check_integer("patience", patience, low=2)
    return LockInMonitor(int(patience), lock_in == "explore")


class Watch(NamedTuple):
    """The monitor of a policy with all its inputs except the menu."""

    monitor: LockInMonitor
    confidence: Confidence
    evidence: Evidence
    rank: int  # of the subspace that the policy projects out

    def is_due(self) -> bool:
        """Whether the monitor must run if the next round repeats the last action."""
        return bool(is_due(self.monitor.patience, self.evidence.streak[0]))

    def verdict(self, menu: Menu) -> IntArray:
        """The verdict for the case that the next round repeats the last action, with this menu; (3,).

        One of SILENT, WARNS and EXPLORES; then the arm and the vector of the most informative query.
        """
        last, columns = self.evidence.last, menu.columns
        same = np.flatnonzero(columns[0] == last[0])  # few candidates, compared in full next
        same = same[(columns[:, same] == last[:, None]).all(axis=0)]
        if not same.size:
            return np.zeros(3, np.int64)
        locked, arm, vector = locked_in(
            self.monitor, self.confidence, self.evidence, menu, self.rank, int(same[0])
        )
        word = EXPLORES if self.monitor.explores else WARNS
        return np.array([word if locked else SILENT, arm, vector], dtype=np.int64)


@kernel(refcounts=False)
def after_monitor(verdict: IntArray, last: FloatArray, menu: Menu, choice: Choice) -> Choice:
    """The choice after the verdict, which applies if the choice repeats the last action."""
    if choice.phase != PLAY or verdict[0] == SILENT:
        return choice
    for j in range(last.size):
        if menu.columns[j, choice.arm] != last[j]:
            return choice
    if verdict[0] == EXPLORES:
        return Choice(verdict[1], verdict[2], EXPLORE, np.nan, np.nan)
    return Choice(choice.arm, choice.vector, LOCKED, choice.value, choice.bound)


FOREVER = 2**62
NO_DRAWS = np.empty(0)


class BuiltinPolicy:
    """The common part of all policies of this package: `init`, `ask` and `tell`, which call kernels.

    A policy has its knobs as a NamedTuple with `metric` (which quadratic form of the arms it reads) and
    `confidence`, registers its kernels for this type (`register`), and says how many random numbers
    a round needs. Work that is done only now and then, between rounds, goes into `rounds_until_review`
    and `review`: there the compiled loop returns to Python.
    """

    __slots__ = ()

    problem: Problem
    knobs: Any
    plays_solids: ClassVar[bool] = False  # not only the ball: also boxes, ellipsoids, simplices
    reviews_rank: ClassVar[bool] = False  # where the rank is not known, it is reviewed now and then
    draws_arms: ClassVar[bool] = False  # arms are drawn at random: one listed twice counts twice
    # on the ball it solves an optimisation problem per round
    solves_on_ball: ClassVar[bool] = False

    def __repr__(self) -> str:
        return short(self)

    def _repr_html_(self) -> str:
        knobs = {name: value for name, value in non_defaults(self).items() if name != "problem"}
        what = (type(self).__doc__ or "").partition("\n")[0]
        rows = {"what": what, **knobs, **non_defaults(self.problem)}
        return notebook_table(type(self).__name__, rows)

    def init(self) -> State:
        """State before the first round."""
        problem = self.problem
        evidence = no_evidence(self.knobs.confidence.rho, problem.width)
        core_set = np.ones(problem.n_vectors, dtype=np.int64)
        return State(evidence, core_set, first_ranks(problem), fingerprint=self.fingerprint())

    def ask(
        self,
        state: State,
        actions: Actions,
        rng: Generator,
        pending: Sequence[Query] = (),
        restrictions: "Restrictions | None" = None,
    ) -> Decision:
        """What to play and what to measure; `pending`: queries that are not answered yet.

        restrictions: restrictions of this ask (policies/restrictions.py)
        """
        return self._asked(state, actions, rng, pending, restrictions, explains=True)

    def ask_briefly(
        self, state: State, actions: Actions, rng: Generator, pending: Sequence[Query] = ()
    ) -> Decision:
        """`ask` without the reasons, for simulations, in which nobody reads them."""
        return self._asked(state, actions, rng, pending, None, explains=False)

    def _asked(
        self,
        state: State,
        actions: Actions,
        rng: Generator,
        pending: Sequence[Query],
        restrictions: "Restrictions | None",
        *,
        explains: bool,
    ) -> Decision:
        check_state(self, state)
        actions = self.admitted(actions)
        check_rng(rng)
        self.check(state, actions)
        learned = self._expected(state, pending)
        with ieee_arithmetic():
            posteriors = self.posteriors(learned.evidence)
            if restrictions is not None:
                from sidestep.policies.restrictions import ask_restricted  # noqa: PLC0415  (needs this file)

                return ask_restricted(self, state, learned, posteriors, actions, rng, restrictions)
            decision = self.decide(learned, posteriors, actions, rng)
            if not explains:
                return decision
            return self.explained(decision, state, learned, posteriors, actions)

    def posteriors(self, evidence: Evidence) -> Posteriors | None:
        """The posteriors of a policy that has them."""
        return None

    def explained(
        self,
        decision: Decision,
        state: State,
        learned: Learned,
        posteriors: Posteriors | None,
        actions: Actions,
    ) -> Decision:
        """The decision with the evidence about rank and core set, and its reasons from the posterior."""
        same = posteriors if learned.evidence is state.evidence else None
        seen = self.spectrum(state, same)
        decision = replace(decision, spectrum=seen, exact=self.exact(state))
        if posteriors is None:
            return decision
        here = standpoint_of(self.problem, posteriors, learned.ranks.assumed)
        alone = self.judges_alone(decision.phase, actions)
        found = reasons_for(
            here,
            self.knobs.prior,
            learned.evidence,
            actions,
            decision.query,
            alone=alone,
            averaged=alone and self.averages_slopes(),
        )
        return replace(decision, **found._asdict())

    def judges_alone(self, phase: str, actions: Actions) -> bool:
        """Whether the measurement is chosen for the action's own value, not for the comparison."""
        return False

    def averages_slopes(self) -> bool:
        """Whether an outcome weighs as much as the mean slope of the value in it (core/objective.py)."""
        return False

    def decide(
        self,
        learned: Learned,
        posteriors: Posteriors | None,
        actions: Actions,
        rng: Generator,
        knobs: Any = None,
    ) -> Decision:
        """What to play and what to measure, without the reasons; knobs: used instead of its own."""
        knobs = self.knobs if knobs is None else knobs
        draws = self._draws(rng, on_ball=not isinstance(actions, Arms))
        place: Place = _menu(self.problem, actions) if isinstance(actions, Arms) else actions.body
        action = np.empty(self.problem.dim)
        n_arms = len(actions) if isinstance(actions, Arms) and posteriors is None else 0
        forms = empty_forms(knobs.metric, learned.core_set.size, n_arms)
        offer = Offer(place, forms, draws, action)
        if posteriors is None:
            choice = choose(knobs, learned, offer)
        else:
            choice = choose_given(knobs, posteriors, learned, offer)
        if isinstance(place, Menu):
            choice = self._monitored(learned, place, choice)
        phase, value = PHASES[choice.phase], _known(choice.value)
        if not isinstance(actions, Arms):
            return Decision(Query(action, choice.vector), phase, value, None, _known(choice.bound))
        if choice.arm < 0:  # a basis vector; it need not be on the menu
            off = basis_vector(actions.dim, choice.arm)
            return Decision(Query(off, choice.vector), phase, value)
        query = Query(actions.vectors[choice.arm], choice.vector)
        return Decision(query, phase, value, actions.row(choice.arm))

    def _monitored(self, learned: Learned, menu: Menu, choice: Choice) -> Choice:
        watch = self.watch(learned)
        if watch is None or choice.phase != PLAY or not watch.is_due():
            return choice
        return after_monitor(watch.verdict(menu), learned.evidence.last, menu, choice)

    def watch(self, learned: Learned) -> Watch | None:
        """The lock-in monitor, if this policy has one."""
        return None

    def _draws(self, rng: Generator, *, on_ball: bool) -> Draws:
        uniforms, normals = self.draws_per_round(on_ball=on_ball)
        return Draws(
            rng.random(uniforms) if uniforms else NO_DRAWS,
            rng.standard_normal(normals) if normals else NO_DRAWS,
        )

    def tell(self, state: State, query: Query, feedback: float) -> State:
        """The state after one more measurement; the given state is not changed."""
        check_state(self, state)
        action, index = checked_parts(self.problem, query)
        number = checked_feedback(self.problem, feedback)
        limit = self.learns_for()
        if limit < FOREVER and state.round >= limit:
            return state
        # from Python this is faster than `copy_evidence`
        copies = Evidence._make(map(np.ndarray.copy, state.evidence))
        whose = self.fingerprint() if state.fingerprint is None else state.fingerprint
        grown = replace(state, evidence=copies, fingerprint=whose)
        confidence = self.knobs.confidence
        if confidence.discount < 1.0:
            fade(grown.evidence, confidence.rho, confidence.discount)
        action = self.problem.lifted(action)
        gain = np.empty(action.size)
        with ieee_arithmetic():
            absorb_with(gain, copies, confidence.rho, action, index, number)
            if self.rounds_until_review(state) == 1:
                return self.review(grown)
        return grown

    def admitted(self, actions: Actions) -> Actions:
        """The actions; raises one sentence if this policy cannot play them."""
        actions = checked_actions(self.problem, actions)
        if not isinstance(actions, (Arms, UnitBall)) and not self.plays_solids:
            raise InputError(
                f"{type(self).__name__} plays arms and the unit ball, got {type(actions).__name__}"
            )
        return actions

    def spectrum(self, state: State, posteriors: Posteriors | None = None) -> Spectrum | None:
        """Evidence about the rank; None if the policy knows the rank or does not need it.

        posteriors: those of the state, if they are computed already
        """
        return None

    def exact(self, state: State) -> bool | None:
        """Whether the core set is proved to be the best subset; None where none was chosen."""
        return None

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """How many uniforms and how many normals a round needs; the same numbers every round."""
        return 0, self.problem.dim if on_ball else 0

    def check(self, state: State, actions: Actions) -> None:
        """Raise if this policy cannot continue from this state; warn of known problems."""

    def learns_for(self) -> int:
        """Number of measurements after which nothing more is learned."""
        return FOREVER

    def rounds_until_review(self, state: State) -> int:
        """Rounds to play until `review` is due; at least 1."""
        return FOREVER

    def review(self, state: State) -> State:
        """The state after the work between rounds, when that is due."""
        return state

    def sweeps(self, state: State) -> Sweeps:
        """Where a compiled run need not stop for a review that would change nothing."""
        return NO_SWEEPS

    def state_from_json(self, text: str) -> State:
        """A state from its text; raises one sentence if policy, problem or rho differ."""
        whose, first = self.fingerprint(), self.init()
        return read_state(whose, self.problem, first, text, reviews_rank=self.reviews_rank)

    def fingerprint(self) -> Fingerprint:
        """Policy, problem and knobs on which the numbers of a state depend."""
        return Fingerprint(type(self).__name__, facts_of(self.problem), self.learns_by())

    def learns_by(self) -> dict[str, Any]:
        """The knobs on which the numbers of a state depend, as JSON values."""
        confidence = self.knobs.confidence
        return {"rho": as_json(confidence.rho), "discount": confidence.discount}

    def _expected(self, state: State, pending: Sequence[Query]) -> Learned:
        """What would be learned if the feedback of every pending query were as predicted.

        The estimates do not change and the confidence sets shrink, so the next ask measures something
        else.
        """
        if not pending:
            return state.learned
        evidence = copy_evidence(state.evidence)
        for query in pending:
            checked = checked_query(self.problem, query)
            action = self.problem.lifted(checked.action)
            v, guess = checked.index, dot(action, evidence.centre[checked.index])
            evidence.misfit[v] *= 1 + 1 / max(evidence.weight[v], 1.0)  # keeps the noise estimate
            absorb(evidence, self.knobs.confidence.rho, action, v, guess)
        return state.learned._replace(evidence=evidence)


class PosteriorPolicy(BuiltinPolicy):
    """The common part of the policies that draw from the posterior: it, and the review of the rank.

    Their knobs have `prior` and `has_levels` as well. Where the rank is not known, it is reviewed
    whenever a tenth more has been measured.
    """

    __slots__ = ()

    delta: float  # level of the tests for the rank
    reviews_rank = True

    def posteriors(self, evidence: Evidence) -> Posteriors:
        """The posteriors of the vectors, and of the effects with the levels integrated out."""
        return doubting_posteriors_of(self.knobs.prior, evidence, self.knobs.has_levels)

    def rounds_until_review(self, state: State) -> int:
        """Rounds until a tenth more has been measured; then an unknown rank is reviewed."""
        return next_check(state.round) - state.round if is_reviewed(self.problem) else FOREVER

    def review(self, state: State) -> State:
        """The state with the ranks that the evidence supports."""
        if not is_reviewed(self.problem):
            return state
        effects = self.posteriors(state.evidence).effects
        ranks = reviewed_ranks(self.problem, effects, self.knobs.prior.variance, self.delta)
        return replace(state, ranks=ranks)

    def spectrum(self, state: State, posteriors: Posteriors | None = None) -> Spectrum | None:
        """Evidence about the rank; None if the policy knows it."""
        if not is_reviewed(self.problem):
            return None
        effects = (posteriors or self.posteriors(state.evidence)).effects
        return spectrum_of(self.problem, effects, self.knobs.prior.variance, self.delta)

    def judges_alone(self, phase: str, actions: Actions) -> bool:
        """True of play within tolerances: the measurement is for the value of the action itself."""
        return self.problem.limits is not None and phase == PHASES[PLAY]


def check_state(policy: BuiltinPolicy, state: State) -> None:
    """Raise unless the state is one of such a policy, and of a problem of the same size.

    A state that is read from text is compared in full (state.py).
    """
    mine, whose = type(policy).__name__, state.fingerprint
    if whose is not None and whose.policy != mine:
        raise InputError(f"state must be that of a {mine}, got one of {shown(whose.policy)}")
    expected = (policy.problem.n_vectors, policy.problem.width)
    if state.evidence.centre.shape != expected:
        n, width = state.evidence.centre.shape
        raise InputError(
            f"state must hold {expected[0]} vectors of {expected[1]} numbers for this problem, "
            f"got {n} of {width}"
        )


def _menu(problem: Problem, arms: Arms) -> Menu:
    """The arms as kernels read them, with the coordinate of the level where levels are learned."""
    if not problem.intercept:
        return Menu(arms.columns, arms.squared)
    columns = np.ascontiguousarray(problem.lifted(arms.columns.T).T)
    return Menu(columns, np.einsum("jk,jk->k", columns, columns))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
