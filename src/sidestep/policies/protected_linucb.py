"""Protected LinUCB (Alg. 2): CORE-SET first, then optimism over the target and the core set."""

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from sidestep.core import core_set as coreset
from sidestep.core.actions import (
    ON_A_SOLID,
    REACHED,
    Actions,
    Arms,
    Body,
    name_directions,
    off_menu,
    unreached,
    write_basis_vector,
)
from sidestep.core.arm_forms import Menu, both_forms
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.best_action import Place
from sidestep.core.confidence import Confidence, ellipsoids, widest
from sidestep.core.core_set import (
    NO_SWEEPS,
    CoreSetRule,
    Sweeps,
    core_set_of,
    end_core_set,
    printed_scale,
    write_best_rows,
)
from sidestep.core.estimator import Evidence, clear
from sidestep.core.jit import FAMILIES, by_type, kernel
from sidestep.core.linalg import cholesky, inverse_into, lowest_argmax, members, total
from sidestep.core.optimism import optimistic_in, write_chosen
from sidestep.core.optimism_arms import SURROGATES, Estimates, Surrogate
from sidestep.core.problem import Problem
from sidestep.core.validation import check_choice, check_integer, check_probability
from sidestep.errors import CoreSetError, InputError, UnreachedDirectionsWarning
from sidestep.policies.base import CORE_SET, PLAY
from sidestep.policies.builtin import (
    FOREVER,
    BuiltinPolicy,
    Choice,
    Offer,
    Watch,
    monitor_for,
    register,
)
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for
from sidestep.policies.state import Learned, State


class ProtectedLinUCBKnobs(NamedTuple):
    """Protected LinUCB as compiled code reads it."""

    metric: int
    confidence: Confidence
    surrogate: Surrogate
    adaptive: int | None  # size of the core set where it is chosen again every round
    basis: bool  # CORE-SET plays e_1..e_d
    literal: bool


@kernel
def _play_rows(size: int | None, centre: FloatArray, core_set: IntArray, rows: IntArray) -> int:
    """Write the target and the vectors projected out in this round into `rows`; returns their number."""
    if size is None:  # then numba does not compile the rest
        return members(core_set, rows)
    return write_best_rows(centre, size, rows)


@kernel(refcounts=False)
def _query(
    knobs: ProtectedLinUCBKnobs, evidence: Evidence, core_set: IntArray, action: FloatArray
) -> int:
    """The vector to measure: the one with the largest width along the action.

    Deviation from the paper: it is chosen from the target and the core set, as the proof needs. Print has
    only the core set and so never measures the target (A1); `literal` does that.
    """
    skipped = 1 if knobs.literal and total(core_set, 0) > 1 else 0
    return widest(knobs.confidence, evidence, core_set, skipped, action)


@kernel
def _core_set_query(counts: IntArray, d: int) -> tuple[int, int]:
    """Axis and index of this round of CORE-SET: p = 1..L within e_1..e_d, sweep after sweep."""
    L, at = counts.size - 1, total(counts, 0)
    return (at // L) % d, 1 + at % L


@kernel
def _broadest_arm(gram: FloatArray, menu: Menu) -> int:
    """The arm with the largest width for one vector, given what was measured (A13)."""
    metric, widths = gram.copy(), np.empty(menu.squared.size)
    for j in range(metric.shape[0]):
        metric[j, j] += REACHED
    inverse_into(cholesky(metric), metric)
    both_forms(menu.columns, np.zeros(metric.shape[0]), metric, 0.0, np.empty(widths.size), widths)
    return lowest_argmax(widths)


@by_type
def _spanning_action(
    place: Place, axis: int, knobs: ProtectedLinUCBKnobs, gram: FloatArray, action: FloatArray
) -> int:
    """What CORE-SET plays: its code among arms; on the ball e_{axis+1}, written into `action`."""
    raise NotImplementedError


@kernel(refcounts=False)
def _spanning_arm(
    menu: Menu, axis: int, knobs: ProtectedLinUCBKnobs, gram: FloatArray, action: FloatArray
) -> int:
    return off_menu(axis) if knobs.basis else _broadest_arm(gram, menu)


@kernel(refcounts=False)
def _spanning_axis(
    body: Body, axis: int, knobs: ProtectedLinUCBKnobs, gram: FloatArray, action: FloatArray
) -> int:
    write_basis_vector(off_menu(axis), action)
    return ON_A_SOLID


FAMILIES[_spanning_action].update({Menu: _spanning_arm, Body: _spanning_axis})


@kernel(refcounts=False)
def _choose(knobs: ProtectedLinUCBKnobs, learned: Learned, offer: Offer) -> Choice:
    evidence, core_set, place, action = (
        learned.evidence,
        learned.core_set,
        offer.place,
        offer.action,
    )
    if core_set[0] == 0:
        axis, index = _core_set_query(evidence.counts, evidence.centre.shape[1])
        arm = _spanning_action(place, axis, knobs, evidence.gram[index], action)
        return Choice(arm, index, CORE_SET, np.nan, np.nan)
    n = _play_rows(knobs.adaptive, evidence.centre, core_set, offer.forms.workspace.rows)
    estimates = Estimates(knobs.confidence, evidence, offer.forms)
    best = optimistic_in(place, knobs.surrogate, estimates, n, offer.draws.normals, action)
    write_chosen(place, best.arm, action)
    index = _query(knobs, evidence, core_set, action)
    return Choice(best.arm, index, PLAY, best.value, best.bound)


register(ProtectedLinUCBKnobs, _choose)


@dataclass(frozen=True, slots=True, repr=False)
class ProtectedLinUCB(BuiltinPolicy):
    """Find a spanning set of protected vectors, then play optimistically against it (Alg. 2).

    The default repairs the paper and tightens its constants; `as_intended` keeps the constants and
    repairs the slips; `as_printed` is to the letter. The regret bound (Theorem 5.2) is for the ball.
    Over finitely many fixed arms optimism may lock in (Example 5.1): nothing is proved there.

    problem   the problem to play
    rho       regulariser of the estimates
    delta     probability that a certified statement fails
    surrogate  "corrected", "printed" (to the letter), "ellipsoid" (reaches farther), or "first-order"
              (ours: exact as the sets shrink; do not use it where an arm is long, bad and the only
              informative one: its value does not fall while it is played, so it may be played for ever)
    radius    of the sets: "logdet" or "printed"
    coreset   "certified" (a guarantee at every noise level, algorithm of ours), "printed", or without
              a phase: "adaptive" (best subset of every round; no proof), "all" (ball only: every
              vector a constraint; bound of the paper with L+1 for s+1, no knowledge of s needed) and
              "lazy" (ball only: all vectors until the evidence certifies a core set, then that one;
              the bound of "all" until then, with s+1 and the share gamma after; optimism measures along
              few directions, so with much noise or a large rho the core set may never be certified)
    design    what CORE-SET plays over arms: "arms" of the menu, or the "basis" e_1..e_d off the menu
    gamma     share of the best lambda_min that the certified core set keeps
    literal   index set, clock, delta and L = s as printed (A1, A10, B1, A12)
    reset     forget the samples of CORE-SET once it ends (A8)
    max_core_set_rounds   rounds after which CORE-SET stops with an error that gives the reason
    lock_in   over fixed arms, when an uninformative arm was played `patience` times in a row although
              another could be better: "warn" in the trace, or "explore" an informative arm
    patience  rounds with one arm until the monitor tests

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.ProtectedLinUCB(world.problem), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    rho: float = 0.1
    delta: float = 0.001
    surrogate: str = "corrected"
    radius: str = "logdet"
    coreset: str = "certified"
    design: str = "arms"
    gamma: float = 1 / 3
    literal: bool = False
    reset: bool = False
    max_core_set_rounds: int = 10_000_000
    lock_in: str = "warn"
    patience: int = 50
    rule: CoreSetRule = field(init=False, repr=False, compare=False)
    knobs: ProtectedLinUCBKnobs = field(init=False, repr=False, compare=False)

    solves_on_ball = True

    def __post_init__(self) -> None:
        check_equal_costs(self.problem, "ProtectedLinUCB")
        check_probability("delta", self.delta)
        check_probability("gamma", self.gamma)
        check_choice("surrogate", self.surrogate, tuple(SURROGATES))
        check_choice("coreset", self.coreset, ("printed", "certified", "adaptive", "all", "lazy"))
        check_choice("design", self.design, ("basis", "arms"))
        check_integer("max_core_set_rounds", self.max_core_set_rounds, low=1)
        # delta is split (B1): half for CORE-SET, half over L+1 sets; print uses all of it in each
        share = self.delta if self.literal else self.delta / (2 * self.problem.n_vectors)
        confidence = confidence_for(self.problem, rho=self.rho, delta=share, radius=self.radius)
        adaptive = self.coreset == "adaptive" and self.problem.n_protected > 0
        knobs = ProtectedLinUCBKnobs(
            metric=SURROGATES[self.surrogate].metric,
            confidence=confidence,
            surrogate=SURROGATES[self.surrogate],
            adaptive=self.problem.subspace_dim if adaptive else None,
            basis=self.design == "basis",
            literal=self.literal,
        )
        monitor_for(self.lock_in, self.patience)
        object.__setattr__(self, "rule", self._rule())
        object.__setattr__(self, "knobs", knobs)
        if self.design == "basis" and self._has_phase() and self.problem.action_bound < 1:
            raise InputError(
                "design='basis' plays e_1..e_d, so that action_bound must be at least 1, got "
                f"{self.problem.action_bound:g}: scale the actions, or take design='arms'"
            )

    @classmethod
    def as_intended(
        cls, problem: Problem, *, rho: float = 0.1, delta: float = 0.001
    ) -> "ProtectedLinUCB":
        """The paper's constants with its slips (sign, index rule, split of delta) repaired."""
        return cls(problem, rho, delta, radius="printed", coreset="printed", design="basis")

    @classmethod
    def as_printed(
        cls, problem: Problem, *, rho: float = 0.1, delta: float = 0.001
    ) -> "ProtectedLinUCB":
        """The printed algorithm without repairs: it never measures the target."""
        return cls(
            problem, rho, delta, "printed", "printed", "printed", "basis", literal=True, reset=True
        )

    def _rule(self) -> CoreSetRule:
        """The stopping rule of CORE-SET: by the rank if known, else by lambda_min or the resolution."""
        problem = self.problem
        kind, size, threshold, delta = coreset.CERTIFIED, 0, 0.0, self.delta / 2
        if problem.subspace_dim is not None:
            size = problem.subspace_dim
            if self.coreset == "printed":
                kind = coreset.PRINTED if self.literal else coreset.INTENDED
                delta = (
                    self.delta if self.literal else self.delta / (2 * max(problem.n_protected, 1))
                )
        elif self.coreset == "adaptive":
            raise InputError("coreset='adaptive' needs the problem's subspace_dim, got None")
        elif problem.eigenvalue is not None:
            kind, threshold = coreset.EIGENVALUE, problem.eigenvalue
        elif problem.resolution is not None:
            kind, threshold = coreset.RESOLUTION, problem.resolution
        elif self.coreset not in ("all", "lazy"):
            raise InputError(
                "ProtectedLinUCB needs one of the problem's subspace_dim, eigenvalue or "
                "resolution (the rank cannot be certified from data alone), got none"
            )
        noise = float(max(problem.noise[1:], default=0.0))
        factor = coreset.certified_factor(self.gamma)
        basis = self.design == "basis"
        return CoreSetRule(
            kind, size, noise, problem.norm_bound, delta, factor, float(threshold), basis
        )

    def init(self) -> State:
        """State before the first round; where L = s the core set is known at once (A12)."""
        state = BuiltinPolicy.init(self)
        if self._has_phase():
            return replace(state, core_set=np.zeros_like(state.core_set))
        return state

    def watch(self, learned: Learned) -> Watch | None:
        """The lock-in monitor."""
        size = self.knobs.adaptive
        rank = int(learned.core_set.sum()) - 1 if size is None else size
        monitor = monitor_for(self.lock_in, self.patience)
        return Watch(monitor, self.knobs.confidence, learned.evidence, rank)

    def _has_phase(self) -> bool:
        """Whether there is a CORE-SET phase at the start."""
        forced = self.problem.n_protected == self.problem.subspace_dim and not self.literal
        wanted = self.coreset in ("printed", "certified") and self.problem.n_protected > 0
        return wanted and not forced

    def rounds_until_review(self, state: State) -> int:
        """CORE-SET is tested at the end of every sweep of d L rounds."""
        if self._is_lazy(state):
            return coreset.next_check(state.round) - state.round
        if state.core_set[0] != 0:
            return FOREVER
        left = max(self.max_core_set_rounds - state.round, 1)
        return min(self._sweep() - state.round % self._sweep(), left)

    def sweeps(self, state: State) -> Sweeps:
        """Where a compiled run need not stop: most tests of the paper's rules end nothing."""
        printed = self.rule.kind in (coreset.PRINTED, coreset.INTENDED) and self.rule.basis
        if state.core_set[0] != 0 or not printed:
            return NO_SWEEPS
        least = printed_scale(self.rule, self.problem.dim, self.problem.n_protected)
        return Sweeps(self._sweep(), float(least), self.max_core_set_rounds)

    def _is_lazy(self, state: State) -> bool:
        """Whether every vector is still a constraint and a core set is being looked for."""
        return self.coreset == "lazy" and bool(state.core_set.all())

    def exact(self, state: State) -> bool | None:
        """Whether the core set is proved to be the best subset; None if none was chosen."""
        chosen = self.coreset in ("printed", "certified", "lazy") and state.core_set[0] != 0
        if not chosen or self._is_lazy(state):
            return None
        return state.exact

    def learns_by(self) -> dict[str, Any]:
        """Rho, how CORE-SET is played, and whether its samples are kept."""
        knobs = ("coreset", "design", "literal", "reset")
        return {**BuiltinPolicy.learns_by(self), **{knob: getattr(self, knob) for knob in knobs}}

    def _sweep(self) -> int:
        return self.problem.dim * self.problem.n_protected

    def review(self, state: State) -> State:
        """Apply the stopping rule of CORE-SET; if it stops, the state has a core set."""
        n, is_lazy = self.problem.n_vectors, self._is_lazy(state)
        if is_lazy:
            sets = ellipsoids(self.knobs.confidence, state.evidence, np.arange(n))
            found = coreset.certified_subset(self.rule, sets)
        elif state.round % self._sweep():
            return state  # the cap is reached: `check` raises
        else:
            found = end_core_set(self.rule, state.evidence)
        if found is None:
            return state
        if self.reset and not is_lazy:
            clear(state.evidence, self.knobs.confidence.rho)
        return replace(state, core_set=core_set_of(n, found.rows), exact=found.exact)

    def check(self, state: State, actions: Actions) -> None:
        """Raise if this policy cannot continue; warn of directions that the arms do not reach."""
        if self.coreset in ("all", "lazy"):
            if isinstance(actions, Arms):
                raise InputError(f"coreset={self.coreset!r} plays the unit ball only, got arms")
            if self.problem.n_protected >= self.problem.dim:
                raise InputError(
                    f"coreset={self.coreset!r} needs fewer protected vectors than dimensions, got "
                    f"{self.problem.n_protected} in dimension {self.problem.dim}"
                )
        if state.core_set[0] != 0:
            return
        if state.round >= self.max_core_set_rounds:
            raise CoreSetError(self._why_it_does_not_end(state))
        if state.round == 0 and isinstance(actions, Arms) and self.design == "arms":
            missing = unreached(actions)
            if len(missing):
                warnings.warn(
                    f"the arms do not reach {name_directions(missing)}: nothing can be learned "
                    "along there, and CORE-SET certifies what the arms show",
                    UnreachedDirectionsWarning,
                    stacklevel=3,
                )

    def _why_it_does_not_end(self, state: State) -> str:
        estimates, strength = coreset.plain_estimates(state.evidence, self.rule.basis)
        values = np.linalg.svd(estimates, compute_uv=False)
        size = self.problem.subspace_dim
        spectrum = ", ".join(f"{value:.3g}" for value in values)
        reason = (
            f"subspace_dim = {size} protected vectors must be certainly independent; either they "
            "span fewer dimensions, and subspace_dim is too large, or the noise hides the rest"
            if size is not None
            else "the noise is too large for the eigenvalue or resolution that was asked for"
        )
        return (
            f"CORE-SET did not end within {state.round} rounds (max_core_set_rounds): {reason}. "
            f"Singular values of the estimates: {spectrum}; they are known to about "
            f"{self.rule.noise / np.sqrt(max(strength, 1e-300)):.2g} in each entry"
        )
