"""Posterior probability that an action is within every tolerance, and the choice of cautious actions.

The vectors are independent under the posterior. So the joint probability is exactly the product over the
outcomes,  prod_i P(low_i <= <a, theta_i> <= high_i),  and every factor is a normal probability.

`safe` is an action that is known to be within every tolerance: the zero vector unless another is given.
An action qualifies if it is `safe` or if its joint probability is at least `level`. If the wanted action
does not qualify, another is played. Among arms this is the best arm that qualifies, or the one that is
most informative about the value of the wanted action. In a solid it is the best action within tightened
limits.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sidestep.core.actions import ON_A_SOLID, Body
from sidestep.core.arm_forms import Menu, arm_of, arms_of
from sidestep.core.arrays import FloatArray
from sidestep.core.best_action import Found, Place
from sidestep.core.jit import FAMILIES, by_type, compiled_as, kernel
from sidestep.core.linalg import dot, lowest_argmax
from sidestep.core.objective import (
    NEVER_BEYOND,
    chances_above,
    probability_above,
    value_within,
    values_within,
)
from sidestep.core.posterior import Posterior, Posteriors, effect_of, spreads_of
from sidestep.core.problem import Limits
from sidestep.core.variance_reduction import most_telling_arm

TURNS = 3  # how often the limits are tightened in a solid
# points that are checked on the segment from the safe action to the best one, in a solid
POINTS = 65


class Caution(NamedTuple):
    """Required probability of being within every tolerance, and an action that is known to be."""

    level: float  # 0: no caution
    safe: FloatArray  # (d,)


@kernel
def chance_between(limits: Limits, i: int, mean: float, spread: float) -> float:
    """Probability that a normal effect on protected outcome i + 1 is within its tolerance; i from 0."""
    above = probability_above(limits.high[i] - mean, spread)
    return max(1.0 - above - probability_above(mean - limits.low[i], spread), 0.0)


@kernel
def chance_within(limits: Limits, posterior: Posterior, action: FloatArray) -> float:
    """Probability that every protected effect of an action is within its tolerance."""
    chance = 1.0
    for i in range(limits.penalty.size):
        mean, spread = effect_of(posterior, i + 1, action)
        chance *= chance_between(limits, i, mean, spread)
    return chance


def chances_within(
    limits: Limits, posterior: Posterior, columns: FloatArray, n_arms: int
) -> FloatArray:
    """Probability that all protected effects are within, for every arm; columns (d, K); (K,)."""
    effects = posterior.mean @ columns[: posterior.mean.shape[1], :n_arms]
    chances = np.ones(n_arms)
    for i in range(limits.penalty.size):
        side, spreads = effects[i + 1], spreads_of(posterior, i + 1, columns)[:n_arms]
        beyond = chances_above(limits.high[i] - side, spreads)
        beyond += chances_above(side - limits.low[i], spreads)
        chances *= np.maximum(1.0 - beyond, 0.0)
    return chances


@compiled_as(chances_within)
def _chances_within_loop(
    limits: Limits, posterior: Posterior, columns: FloatArray, n_arms: int
) -> FloatArray:
    effects = np.dot(posterior.mean, columns[: posterior.mean.shape[1]])
    chances = np.ones(n_arms)
    for i in range(limits.penalty.size):
        side, spreads = effects[i + 1, :n_arms], spreads_of(posterior, i + 1, columns)[:n_arms]
        over = np.maximum(side - limits.high[i], limits.low[i] - side) + NEVER_BEYOND * spreads
        for k in range(n_arms):
            if over[k] > 0.0:
                chances[k] *= chance_between(limits, i, side[k], spreads[k])
    return chances


class Wanted(NamedTuple):
    """The action that would be played without caution: its value, gradient and the posterior draw."""

    vectors: FloatArray  # the posterior draw, (L+1, d)
    slopes: FloatArray  # gradient of its value in every vector, levels included; (L+1, width)
    value: float  # its value under that draw
    costs: FloatArray  # of one measurement of each vector; (L+1,)


@by_type
def cautious_in(
    place: Place,
    limits: Limits,
    posteriors: Posteriors,
    wanted: Wanted,
    caution: Caution,
) -> tuple[Found, bool]:
    """The action played instead of the wanted one; whether anything but the safe action qualifies."""
    raise NotImplementedError


@kernel
def _cautious_arm(
    menu: Menu, limits: Limits, posteriors: Posteriors, wanted: Wanted, caution: Caution
) -> tuple[Found, bool]:
    """The best arm under the draw among those that qualify, or the most informative of them.

    The most informative arm reduces the variance of the wanted action's value most. It is played if its
    loss against the best arm is at most what the wanted action would gain over the best arm. If no arm
    qualifies and the safe action is not on the menu, the arm most probably within is played.
    """
    n = menu.squared.size
    values = values_within(limits, wanted.vectors, menu.columns, n)
    chances = chances_within(limits, posteriors.effects, menu.columns, n)
    is_safe = np.ones(n, dtype=np.bool_)
    for j in range(caution.safe.size):
        is_safe &= menu.columns[j, :n] == caution.safe[j]
    rows = np.flatnonzero(is_safe | (chances >= caution.level))
    if rows.size == 0:
        arm = lowest_argmax(chances)
        return Found(arm_of(menu, arm), arm, values[arm]), False
    best = int(rows[lowest_argmax(values[rows])])
    others = bool(np.any(~is_safe[rows]))
    if others:
        fewer = Menu(arms_of(menu, rows), menu.squared[rows])
        row = most_telling_arm(posteriors.full, wanted.costs, wanted.slopes, fewer)[0]
        telling = int(rows[row])
        if values[best] - values[telling] <= wanted.value - values[best]:
            best = telling
    return Found(arm_of(menu, best), best, values[best]), others


@kernel
def _cautious_in_solid(
    body: Body, limits: Limits, posteriors: Posteriors, wanted: Wanted, caution: Caution
) -> tuple[Found, bool]:
    """The best action for the drawn target within limits tightened by the spread of every effect.

    The spread depends on the action, so limits and action are computed in turn, TURNS times. Each time we
    move from the safe action towards the best one as far as the action qualifies. A solid is convex, so
    it contains the whole segment.
    """
    from sidestep.core.tolerance_program import best_within  # noqa: PLC0415  (scipy, never compiled)

    posterior, vectors = posteriors.effects, wanted.vectors
    believed = posterior.mean.copy()
    believed[0] = vectors[0]
    action, farthest = caution.safe, 0
    narrow = limits
    for _ in range(TURNS):
        best = best_within(body, narrow, believed)[0]
        found, steps = _farthest_qualifying(limits, posterior, caution, best)
        if steps == POINTS - 1 or dot(believed[0], found) > dot(believed[0], action):
            action, farthest = found, steps
        narrow = _tightened(limits, posterior, caution.level, found)
    return Found(action, ON_A_SOLID, value_within(limits, vectors, action)), farthest > 0


def _farthest_qualifying(
    limits: Limits, posterior: Posterior, caution: Caution, best: FloatArray
) -> tuple[FloatArray, int]:
    """The farthest point towards `best` that qualifies, and its number, 0 being the safe action."""
    way = caution.safe + np.linspace(0.0, 1.0, POINTS)[:, None] * (best - caution.safe)
    chances = chances_within(limits, posterior, np.ascontiguousarray(way.T), POINTS)
    chances[0] = 1.0
    steps = int(np.flatnonzero(chances >= caution.level)[-1])
    return np.ascontiguousarray(way[steps]), steps


def _tightened(limits: Limits, posterior: Posterior, level: float, action: FloatArray) -> Limits:
    """Tightened limits: if the estimated effects keep them, the true ones keep the limits given.

    The margin of every limit is a multiple of the spread of its effect under this action.
    """
    L = limits.penalty.size
    reach = float(ndtri(1.0 - (1.0 - level) / L))  # union bound over the L outcomes
    spread = np.array([effect_of(posterior, i + 1, action)[1] for i in range(L)])
    low, high = limits.low + reach * spread, limits.high - reach * spread
    return Limits(np.minimum(low, 0.0), np.maximum(high, 0.0), limits.penalty)


FAMILIES[cautious_in].update({Menu: _cautious_arm, Body: _cautious_in_solid})
