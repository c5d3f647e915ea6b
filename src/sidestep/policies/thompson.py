"""Thompson sampling for the protected bandit, and the directed query (ours; no regret bound is known).

Draw every vector from its posterior, N(centre_v, R_v^2 V_v^-1), pool the protected draws into their
closest s-dimensional subspace, and play the best action of that draw. There is no CORE-SET phase and
no optimistic problem. What to measure is decided by how much it would tell: measuring vector v along a
takes

    red(a, v) = R_v^2 <g_v, V_v^-1 a>^2 / (1 + |a|^2_{V_v^-1})

off the variance of a quantity with gradient g (sensitivity.py). ProtectedThompson looks at the reward
of the action it plays. DirectedThompson draws twice and looks at the comparison of the two winners; and
where neither of them can show what separates them, it pays for the action that can.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sidestep.core.compiled import kernel
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.forms import COVARIANCE, Forms, Menu, arm_of, fill, scores
from sidestep.core.geometry import (
    apply,
    cholesky,
    dot,
    inverse_into,
    lowest_argmax,
    quadratic,
    scaled,
)
from sidestep.core.problem import FloatArray, Problem, per_vector, positive
from sidestep.core.sensitivity import Frame, frame, gradient
from sidestep.policies.base import (
    EXPLORE,
    PLAY,
    CompiledPolicy,
    confidence_for,
    known_rank,
    random_direction,
)
from sidestep.policies.dispatch import register


class ThompsonKnobs(NamedTuple):
    """ProtectedThompson as compiled code reads it."""

    metric: int
    confidence: Confidence
    rank: int
    costs: FloatArray  # (L+1,)


class DirectedKnobs(NamedTuple):
    """DirectedThompson as compiled code reads it."""

    metric: int
    confidence: Confidence
    rank: int
    costs: FloatArray  # (L+1,)
    informative: float  # eta
    share: float
    price: float  # kappa


@kernel
def posterior_draw(evidence: Evidence, noise: FloatArray, normals: FloatArray) -> FloatArray:
    """Every vector drawn from its posterior; normals ((L+1) d,); (L+1, d)."""
    n, d = evidence.centre.shape
    drawn = np.empty((n, d))
    for v in range(n):
        factor = cholesky(evidence.inverse[v])
        for j in range(d):
            spread = 0.0
            for k in range(j + 1):
                spread += factor[j, k] * normals[v * d + k]
            drawn[v, j] = evidence.centre[v, j] + noise[v] * spread
    return drawn


@kernel
def reduction(evidence: Evidence, noise: float, v: int, slope: FloatArray, a: FloatArray) -> float:
    """red(a, v): variance that one measurement of v along a takes off; slope is g_v."""
    moved = apply(evidence.inverse[v], a)
    return (noise * dot(slope, moved)) ** 2 / (1.0 + dot(a, moved))


@kernel
def most_telling(
    knobs: Any, evidence: Evidence, slopes: FloatArray, a: FloatArray
) -> tuple[int, float]:
    """The vector that is best measured along a, and what a unit of cost takes off; ties: lowest."""
    best, largest = 0, -1.0
    for v in range(slopes.shape[0]):
        noise = knobs.confidence.noise[v]
        here = reduction(evidence, noise, v, slopes[v], a) / knobs.costs[v]
        if here > largest * (1.0 + 1e-10):
            best, largest = v, here
    return best, largest


@kernel
def variance(knobs: Any, evidence: Evidence, slopes: FloatArray) -> float:
    """Posterior variance of a quantity with these gradients, to first order."""
    total = 0.0
    for v in range(slopes.shape[0]):
        noise = knobs.confidence.noise[v]
        total += noise**2 * max(quadratic(evidence.inverse[v], slopes[v]), 0.0)
    return total


@kernel
def difference(one: FloatArray, other: FloatArray) -> FloatArray:
    """One - other, entry by entry."""
    out = np.empty_like(one)
    for i in range(one.shape[0]):
        for j in range(one.shape[1]):
            out[i, j] = one[i, j] - other[i, j]
    return out


@kernel
def winner(menu: Menu, direction: FloatArray) -> tuple[int, float]:
    """The arm with the largest reward under a draw, and that reward."""
    values = np.empty(menu.squared.size)
    scores(menu.columns, direction, values)
    arm = lowest_argmax(values)
    return arm, values[arm]


@kernel
def most_telling_arm(
    knobs: Any, evidence: Evidence, menu: Menu, forms: Forms, slopes: FloatArray
) -> tuple[int, int, float]:
    """The arm and the vector whose measurement takes most off, and how much; all arms looked at."""
    best_arm, best_v, largest = 0, 0, -1.0
    along = np.empty(menu.squared.size)
    for v in range(slopes.shape[0]):
        fill(forms, evidence, knobs.confidence.rho, menu, v)
        scores(menu.columns, apply(evidence.inverse[v], slopes[v]), along)
        square = forms.square[v]
        weight = knobs.confidence.noise[v] ** 2 / knobs.costs[v]
        for k in range(along.size):
            along[k] = weight * along[k] * along[k] / (1.0 + square[k])
        arm = lowest_argmax(along)
        if along[arm] > largest * (1.0 + 1e-10):
            best_arm, best_v, largest = arm, v, along[arm]
    return best_arm, best_v, largest


@kernel
def most_telling_direction(
    knobs: Any, evidence: Evidence, slopes: FloatArray, reward: FloatArray
) -> tuple[FloatArray, int, float]:
    """The same on the unit ball, where the best direction for v is (I + W)^-1 W g_v, either sign."""
    n, d = slopes.shape
    best: FloatArray = np.zeros(d)
    best_v, largest = 0, -1.0
    for v in range(n):
        shifted = evidence.inverse[v].copy()
        for j in range(d):
            shifted[j, j] += 1.0
        inverse_into(cholesky(shifted), shifted)
        action = apply(shifted, apply(evidence.inverse[v], slopes[v]))
        length = np.sqrt(dot(action, action))
        if length > 0.0:
            sign = 1.0 if dot(action, reward) >= 0.0 else -1.0
            action = scaled(sign / length, action)
            noise = knobs.confidence.noise[v]
            here = reduction(evidence, noise, v, slopes[v], action) / knobs.costs[v]
            if here > largest * (1.0 + 1e-10):
                best, best_v, largest = action, v, here
    return best, best_v, largest


@kernel
def best_direction(view: Frame, otherwise: FloatArray) -> tuple[FloatArray, float]:
    """The best action of the ball under a draw, and its reward."""
    length = np.sqrt(dot(view.rest, view.rest))
    if length > 0.0:
        return scaled(1.0 / length, view.rest), length
    return random_direction(otherwise), 0.0


@kernel
def _thompson_on_arms(
    knobs: ThompsonKnobs, evidence: Any, core_set: Any, menu: Any, forms: Any, luck: Any
) -> tuple[int, int, int, float]:
    view = frame(posterior_draw(evidence, knobs.confidence.noise, luck[1]), knobs.rank)
    arm, value = winner(menu, view.rest)
    action = arm_of(menu, arm)
    index, _ = most_telling(knobs, evidence, gradient(view, action), action)
    return arm, index, PLAY, value


@kernel
def _thompson_on_ball(knobs: ThompsonKnobs, evidence: Any, core_set: Any, luck: Any) -> Any:
    view = frame(posterior_draw(evidence, knobs.confidence.noise, luck[1]), knobs.rank)
    action, value = best_direction(view, luck[1][: evidence.centre.shape[1]])
    index, _ = most_telling(knobs, evidence, gradient(view, action), action)
    return action, index, PLAY, value, np.nan


@kernel
def _is_dark(knobs: DirectedKnobs, contested: float, one: float, other: float) -> bool:
    """Whether neither contender takes a fair share off what is contested."""
    return one < knobs.share * contested and other < knobs.share * contested


@kernel
def _pays(knobs: DirectedKnobs, contested: float, seen: float, shown: float, lost: float) -> bool:
    """Whether another action shows so much more that its loss is worth it."""
    return seen < knobs.informative * shown and lost <= knobs.price * np.sqrt(contested)


@kernel
def _directed_on_arms(
    knobs: DirectedKnobs, evidence: Any, core_set: Any, menu: Any, forms: Any, luck: Any
) -> tuple[int, int, int, float]:
    half = evidence.centre.size
    view = frame(posterior_draw(evidence, knobs.confidence.noise, luck[1][:half]), knobs.rank)
    again = frame(posterior_draw(evidence, knobs.confidence.noise, luck[1][half:]), knobs.rank)
    arm, value = winner(menu, view.rest)
    rival, _ = winner(menu, again.rest)
    action, other = arm_of(menu, arm), arm_of(menu, rival)
    slopes = gradient(view, action)
    apart = False
    for j in range(action.size):
        apart = apart or action[j] != other[j]  # values, not rows: arms may be listed twice
    if apart:
        slopes = difference(slopes, gradient(view, other))
    index, told = most_telling(knobs, evidence, slopes, action)
    if apart:
        contested = variance(knobs, evidence, slopes)
        _, told_by_rival = most_telling(knobs, evidence, slopes, other)
        if _is_dark(knobs, contested, told, told_by_rival):
            seen = max(told, told_by_rival)
            paid, v, shown = most_telling_arm(knobs, evidence, menu, forms, slopes)
            lost = value - dot(arm_of(menu, paid), view.rest)
            if _pays(knobs, contested, seen, shown, lost):
                return paid, v, EXPLORE, value - lost
    return arm, index, PLAY, value


@kernel
def _directed_on_ball(knobs: DirectedKnobs, evidence: Any, core_set: Any, luck: Any) -> Any:
    half, d = evidence.centre.size, evidence.centre.shape[1]
    view = frame(posterior_draw(evidence, knobs.confidence.noise, luck[1][:half]), knobs.rank)
    again = frame(posterior_draw(evidence, knobs.confidence.noise, luck[1][half:]), knobs.rank)
    action, value = best_direction(view, luck[1][:d])
    other, _ = best_direction(again, luck[1][:d])
    slopes = difference(gradient(view, action), gradient(view, other))
    index, told = most_telling(knobs, evidence, slopes, action)
    contested = variance(knobs, evidence, slopes)
    _, told_by_rival = most_telling(knobs, evidence, slopes, other)
    if _is_dark(knobs, contested, told, told_by_rival):
        seen = max(told, told_by_rival)
        paid, v, shown = most_telling_direction(knobs, evidence, slopes, view.rest)
        lost = value - dot(paid, view.rest)
        if _pays(knobs, contested, seen, shown, lost):
            return paid, v, EXPLORE, value - lost, np.nan
    return action, index, PLAY, value, np.nan


register(ThompsonKnobs, _thompson_on_arms, _thompson_on_ball)
register(DirectedKnobs, _directed_on_arms, _directed_on_ball)


def prior_rho(problem: Problem, rho: float | None) -> FloatArray:
    """Rho of every vector: given, or that of the prior N(0, M^2 / d); (L+1,).

    A draw R_v^2 V_v^-1 is an honest posterior only for rho_v = R_v^2 d / M^2. With a larger one the
    pull towards zero dwarfs the spread that is drawn, and over fixed arms the policy locks in.
    """
    if rho is not None:
        positive("rho", rho)
        return per_vector(rho, problem.n_vectors)
    floor = 1e-6 * problem.norm_bound  # no noise at all would leave no prior
    return np.maximum(problem.noise, floor) ** 2 * problem.dim / problem.norm_bound**2


def _prior(problem: Problem, rho: float | None) -> Confidence:
    drawn = confidence_for(problem, rho=1.0, delta=0.05)
    return drawn._replace(rho=prior_rho(problem, rho))


@dataclass(frozen=True, slots=True)
class ProtectedThompson(CompiledPolicy):
    """Play the best action of a posterior draw; measure what its reward depends on most."""

    problem: Problem
    rho: float | None = None
    knobs: ThompsonKnobs = field(init=False, repr=False, compare=False)

    on_arms = staticmethod(_thompson_on_arms)
    on_ball = staticmethod(_thompson_on_ball)

    def __post_init__(self) -> None:
        rank = known_rank(self.problem, "ProtectedThompson")
        costs = per_vector(self.problem.costs, self.problem.n_vectors)
        knobs = ThompsonKnobs(COVARIANCE, _prior(self.problem, self.rho), rank, costs)
        object.__setattr__(self, "knobs", knobs)

    def luck(self, *, on_ball: bool) -> tuple[int, int]:
        """One posterior draw."""
        return 0, self.problem.n_vectors * self.problem.dim


@dataclass(frozen=True, slots=True)
class DirectedThompson(CompiledPolicy):
    """Thompson sampling that asks what separates two draws, and pays where no contender can tell.

    informative   another action must show 1 / informative times what the contenders show (eta)
    share         and they less than this share of the contested variance
    price         and it may cost at most so many standard deviations of the contest (kappa)
    """

    problem: Problem
    rho: float | None = None
    informative: float = 0.1
    share: float = 0.05
    price: float = 10.0
    knobs: DirectedKnobs = field(init=False, repr=False, compare=False)

    on_arms = staticmethod(_directed_on_arms)
    on_ball = staticmethod(_directed_on_ball)

    def __post_init__(self) -> None:
        for knob in ("informative", "share", "price"):
            positive(knob, getattr(self, knob))
        rank = known_rank(self.problem, "DirectedThompson")
        costs = per_vector(self.problem.costs, self.problem.n_vectors)
        knobs = DirectedKnobs(
            COVARIANCE,
            _prior(self.problem, self.rho),
            rank,
            costs,
            float(self.informative),
            float(self.share),
            float(self.price),
        )
        object.__setattr__(self, "knobs", knobs)

    def luck(self, *, on_ball: bool) -> tuple[int, int]:
        """Two posterior draws."""
        return 0, 2 * self.problem.n_vectors * self.problem.dim
