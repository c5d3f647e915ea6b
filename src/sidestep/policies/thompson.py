"""Thompson sampling for the protected bandit, and the directed query (ours; no regret bound is known).

Draw every vector from what is believed of it (core/posterior.py), pool the protected draws into their
closest s-dimensional subspace, vectors that are better known counting more, and play the best action
of that draw. There is no CORE-SET phase and no optimistic problem. What to measure is decided by how
much it would tell. ProtectedThompson looks at the reward of the action it plays. DirectedThompson draws
twice and looks at the comparison of the two winners; and where neither of them can show what separates
them, it pays for the action that can.

Where a resolution is told instead of s, play takes for real the smallest number of directions that the
measurements do not contradict (core/rank.py), looked at again whenever a tenth more has been measured.
Every SCEPTIC-th round belongs to a sceptic, who takes every direction for real that could still reach
the resolution: what he would play is the rival, and what he doubts is measured. So no direction that
matters is left open for good, and there is no separate phase.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sidestep.core import rank
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.checks import check_positive, check_probability
from sidestep.core.confidence import Confidence
from sidestep.core.coreset import next_check
from sidestep.core.estimator import Evidence, no_evidence
from sidestep.core.forms import COVARIANCE, Forms, Menu, arm_of, winner
from sidestep.core.geometry import dot, total
from sidestep.core.kernels import kernel
from sidestep.core.posterior import (
    Posterior,
    Prior,
    draw,
    most_telling,
    most_telling_action,
    most_telling_arm,
    posterior_of,
    row_weights,
    variance,
)
from sidestep.core.problem import Problem, per_vector
from sidestep.core.rank import Spectrum
from sidestep.core.sensitivity import Frame, gradient, pooled_frame
from sidestep.core.solids import Body, farthest
from sidestep.errors import InputError
from sidestep.policies.base import EXPLORE, FOREVER, PLAY, CompiledPolicy, State, confidence_for
from sidestep.policies.dispatch import Choice, ChoiceOnBall, Draws, register

SCEPTIC = 8
REAL, OPEN = 1, 2  # what core_set says of a direction where the rank is not told


class ThompsonKnobs(NamedTuple):
    """ProtectedThompson as compiled code reads it."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # s, or -1: core_set says
    costs: FloatArray  # (L+1,)


class DirectedKnobs(NamedTuple):
    """DirectedThompson as compiled code reads it."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # s, or -1: core_set says
    costs: FloatArray  # (L+1,)
    informative: float  # eta
    share: float
    price: float  # kappa


@kernel
def _ranks(known_rank: int, core_set: IntArray, counts: IntArray) -> tuple[int, int]:
    """How many directions are taken for real in this round: by the player, and by his rival."""
    if known_rank >= 0:
        return known_rank, known_rank
    real, reaching = 0, 0
    for v in range(1, core_set.size):
        real += core_set[v] == REAL
        reaching += core_set[v] != 0
    return real, reaching if total(counts, 0) % SCEPTIC == SCEPTIC - 1 else real


@kernel
def _best_action(body: Body, view: Frame, otherwise: FloatArray) -> tuple[FloatArray, float]:
    """The best action of a solid under a draw, and its reward."""
    if dot(view.rest, view.rest) > 0.0:
        action = farthest(body, view.rest)
        return action, dot(action, view.rest)
    return farthest(body, otherwise), 0.0


@kernel
def _contest(view: Frame, action: FloatArray, other: FloatArray) -> tuple[FloatArray, bool]:
    """Gradient of what is in question, and whether two actions are; (L+1, d).

    Two actions are compared by value: an arm may be listed twice.
    """
    slopes = gradient(view, action)
    apart = False
    for j in range(action.size):
        apart = apart or action[j] != other[j]
    if apart:
        rival = gradient(view, other)
        for v in range(slopes.shape[0]):
            for j in range(action.size):
                slopes[v, j] -= rival[v, j]
    return slopes, apart


@kernel
def _thompson_on_arms(
    knobs: ThompsonKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    posterior = posterior_of(knobs.prior, evidence)
    drawn, weights = draw(posterior, draws.normals, 1)[0], row_weights(posterior)
    real, doubted = _ranks(knobs.rank, core_set, evidence.counts)
    view = pooled_frame(drawn, weights, real)
    arm, value = winner(menu, view.rest)
    action = arm_of(menu, arm)
    if doubted > real:
        view = pooled_frame(drawn, weights, doubted)
    index, _ = most_telling(posterior, knobs.costs, gradient(view, action), action)
    return Choice(arm, index, PLAY, value)


@kernel
def _thompson_on_ball(
    knobs: ThompsonKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    posterior = posterior_of(knobs.prior, evidence)
    drawn, weights = draw(posterior, draws.normals, 1)[0], row_weights(posterior)
    real, doubted = _ranks(knobs.rank, core_set, evidence.counts)
    view = pooled_frame(drawn, weights, real)
    action, value = _best_action(body, view, draws.normals[: drawn.shape[1]])
    if doubted > real:
        view = pooled_frame(drawn, weights, doubted)
    index, _ = most_telling(posterior, knobs.costs, gradient(view, action), action)
    return ChoiceOnBall(action, index, PLAY, value, np.nan)


@kernel
def _is_dark(
    knobs: DirectedKnobs,
    posterior: Posterior,
    slopes: FloatArray,
    action: FloatArray,
    other: FloatArray,
) -> tuple[bool, float, float]:
    """Whether neither contender takes a fair share off what is contested; what they take; that."""
    contested = variance(posterior, slopes)
    _, mine = most_telling(posterior, knobs.costs, slopes, action)
    _, rivals = most_telling(posterior, knobs.costs, slopes, other)
    seen = max(mine, rivals)
    return seen < knobs.share * contested, seen, contested


@kernel
def _pays(
    knobs: DirectedKnobs, contested: float, seen: float, shown: float, lost: float, coin: float
) -> bool:
    """Whether another action shows so much more that its loss is worth it.

    What costs up to `price` standard deviations of the contest always is; what costs k times that is
    bought in one round of k^2, so that no contest is left undecided for good because it is dear.
    """
    affordable = lost * np.sqrt(coin) <= knobs.price * np.sqrt(contested)
    return seen < knobs.informative * shown and affordable


@kernel
def _directed_on_arms(
    knobs: DirectedKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    posterior = posterior_of(knobs.prior, evidence)
    drawn, weights = draw(posterior, draws.normals, 2), row_weights(posterior)
    real, doubted = _ranks(knobs.rank, core_set, evidence.counts)
    view = pooled_frame(drawn[0], weights, real)
    arm, value = winner(menu, view.rest)
    rival, _ = winner(menu, pooled_frame(drawn[1], weights, doubted).rest)
    action, other = arm_of(menu, arm), arm_of(menu, rival)
    slopes, apart = _contest(view, action, other)
    if apart:
        dark, seen, contested = _is_dark(knobs, posterior, slopes, action, other)
        if dark:
            paid, v, shown = most_telling_arm(posterior, knobs.costs, slopes, menu)
            lost = value - dot(arm_of(menu, paid), view.rest)
            if _pays(knobs, contested, seen, shown, lost, draws.uniforms[0]):
                return Choice(paid, v, EXPLORE, value - lost)
    if doubted > real:
        slopes, _ = _contest(pooled_frame(drawn[0], weights, doubted), action, other)
    index, _ = most_telling(posterior, knobs.costs, slopes, action)
    return Choice(arm, index, PLAY, value)


@kernel
def _directed_on_ball(
    knobs: DirectedKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    posterior = posterior_of(knobs.prior, evidence)
    drawn, weights = draw(posterior, draws.normals, 2), row_weights(posterior)
    real, doubted = _ranks(knobs.rank, core_set, evidence.counts)
    chance = draws.normals[: drawn.shape[2]]
    view = pooled_frame(drawn[0], weights, real)
    action, value = _best_action(body, view, chance)
    other, _ = _best_action(body, pooled_frame(drawn[1], weights, doubted), chance)
    slopes, apart = _contest(view, action, other)
    if apart:
        dark, seen, contested = _is_dark(knobs, posterior, slopes, action, other)
        if dark:
            paid, v, shown = most_telling_action(posterior, knobs.costs, slopes, body, view.rest)
            lost = value - dot(paid, view.rest)
            if _pays(knobs, contested, seen, shown, lost, draws.uniforms[0]):
                return ChoiceOnBall(paid, v, EXPLORE, value - lost, np.nan)
    if doubted > real:
        slopes, _ = _contest(pooled_frame(drawn[0], weights, doubted), action, other)
    index, _ = most_telling(posterior, knobs.costs, slopes, action)
    return ChoiceOnBall(action, index, PLAY, value, np.nan)


register(ThompsonKnobs, _thompson_on_arms, _thompson_on_ball)
register(DirectedKnobs, _directed_on_arms, _directed_on_ball)


class PooledPolicy(CompiledPolicy):
    """What the two have in common: the prior, solids, forgetting, and the rank where it is unknown."""

    __slots__ = ()

    plays_solids = True
    delta: float

    def init(self) -> State:
        """State before the first round; of an unknown rank one direction is taken for real."""
        problem = self.problem
        core_set = np.ones(problem.n_vectors, dtype=np.int64)
        if problem.subspace_dim is None:
            core_set[1:] = OPEN
            core_set[1 : 1 + min(1, problem.n_protected)] = REAL
            core_set[1 + problem.dim :] = 0
        return State(no_evidence(self.knobs.prior.rho, problem.dim), core_set)

    def rounds_until_review(self, state: State) -> int:
        """The rank, where it is not told, is looked at again when a tenth more has been measured."""
        if self.problem.subspace_dim is not None:
            return FOREVER
        return next_check(state.round) - state.round

    def review(self, state: State) -> None:
        """Which directions are taken for real, and which are open, in place."""
        posterior = posterior_of(self.knobs.prior, state.evidence)
        real = rank.consistent_rank(posterior, self.delta)
        real = max(real, min(1, self.problem.n_protected))
        seen = self._spectrum(posterior)
        reaching = max(seen.separated + seen.undecided, real)
        state.core_set[1:] = 0
        state.core_set[1 : 1 + reaching] = OPEN
        state.core_set[1 : 1 + real] = REAL

    def spectrum(self, state: State) -> Spectrum | None:
        """What the evidence says of the rank; None where the player is told it."""
        if self.problem.subspace_dim is not None:
            return None
        return self._spectrum(posterior_of(self.knobs.prior, state.evidence))

    def _spectrum(self, posterior: Posterior) -> Spectrum:
        bound, prior = self.problem.norm_bound, self.knobs.prior.variance
        return rank.spectrum(posterior, bound, prior, self.delta, resolution_of(self.problem))


def resolution_of(problem: Problem) -> float:
    """The smallest singular value that matters: told, or that of the spanning set with lambda_min."""
    if problem.resolution is not None:
        return problem.resolution
    if problem.eigenvalue is not None:
        return float(np.sqrt(problem.eigenvalue))
    raise InputError(
        "a Thompson player needs one of the problem's subspace_dim, eigenvalue or resolution "
        "(the rank cannot be certified from data alone), got none"
    )


def prior_of(problem: Problem, rho: float | None) -> Prior:
    """What is believed before the first round.

    A draw with covariance R_v^2 V_v^-1 is an honest posterior only for rho_v = R_v^2 d / M^2. With a
    larger one the pull towards zero dwarfs the spread that is drawn, and over fixed arms the policy
    locks in. Where R is learned rho is next to nothing: the belief is computed from the sums.
    """
    largest = problem.norm_bound * problem.action_bound
    prior = problem.norm_bound**2 / problem.dim
    noise = np.maximum(problem.known_noise, 1e-6 * largest)  # no noise would leave no prior
    honest = np.where(np.isnan(noise), 1e-8 * problem.action_bound**2, noise**2 / prior)
    if rho is not None:
        check_positive("rho", rho)
        if np.isnan(noise).any():
            raise InputError(f"rho follows from the noise where noise_scale is None, got rho={rho}")
        honest = per_vector(rho, problem.n_vectors)
    return Prior(honest, noise, prior, largest)


def _common_knobs(policy: Any) -> tuple[int, Confidence, Prior, int, FloatArray]:
    problem = policy.problem
    check_probability("delta", policy.delta)
    if problem.subspace_dim is None:
        resolution_of(problem)
    prior = prior_of(problem, policy.rho)
    confidence = confidence_for(
        problem, rho=1.0, delta=0.05, needs_noise=False, memory=policy.memory
    )
    size = -1 if problem.subspace_dim is None else problem.subspace_dim
    costs = per_vector(problem.costs, problem.n_vectors)
    return COVARIANCE, confidence._replace(rho=prior.rho), prior, size, costs


@dataclass(frozen=True, slots=True)
class ProtectedThompson(PooledPolicy):
    """Play the best action of a posterior draw; measure what its reward depends on most.

    rho      of the estimates; None: that of the prior N(0, M^2/d), the honest one
    memory   rounds after which a measurement has faded to 1/e; None: nothing is forgotten
    delta    at which the rank is decided, where a resolution is told instead of it
    """

    problem: Problem
    rho: float | None = None
    memory: float | None = None
    delta: float = 0.05
    knobs: ThompsonKnobs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "knobs", ThompsonKnobs(*_common_knobs(self)))

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """One posterior draw."""
        return 0, self.problem.n_vectors * self.problem.dim


@dataclass(frozen=True, slots=True)
class DirectedThompson(PooledPolicy):
    """Thompson sampling that asks what separates two draws, and pays where no contender can tell.

    rho, memory, delta   as in ProtectedThompson
    informative   another action must show 1 / informative times what the contenders show (eta)
    share         and they less than this share of the contested variance
    price         and it may cost so many standard deviations of the contest (kappa); one that is
                  dearer is bought the more rarely
    """

    problem: Problem
    rho: float | None = None
    memory: float | None = None
    delta: float = 0.05
    informative: float = 0.1
    share: float = 0.05
    price: float = 10.0
    knobs: DirectedKnobs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for knob in ("informative", "share", "price"):
            check_positive(knob, getattr(self, knob))
        rule = (float(self.informative), float(self.share), float(self.price))
        object.__setattr__(self, "knobs", DirectedKnobs(*_common_knobs(self), *rule))

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """Two posterior draws, and what decides about a dear action."""
        return 1, 2 * self.problem.n_vectors * self.problem.dim
