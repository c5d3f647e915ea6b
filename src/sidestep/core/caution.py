"""How probably an action is within every tolerance, and which actions are so with a given caution.

The vectors are independent under the posterior, so that the joint probability is the product of that of
every outcome, exactly:  prod_i P(low_i <= <a, theta_i> <= high_i), each a normal one.

`safe` is an action that is known to be within: the baseline, the zero vector unless another is told. What
is wanted and does not qualify is replaced by what does: among arms by the best, or by the one that tells
most of what is wanted; in a solid by the best within limits that are drawn in.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from sidestep.core.actions import ON_A_SOLID
from sidestep.core.aims import CERTAIN, value_within, values_within
from sidestep.core.arrays import FloatArray
from sidestep.core.forms import Menu, arm_of
from sidestep.core.gaussian import chance_above
from sidestep.core.geometry import dot, lowest_argmax
from sidestep.core.kernels import FAMILIES, by_type, kernel
from sidestep.core.places import Found, Place
from sidestep.core.posterior import Posterior, effect_of, spreads_of
from sidestep.core.solids import Body
from sidestep.core.telling import most_telling_arm
from sidestep.core.tolerances import Limits

TURNS = 3  # of drawing in the limits of a solid
POINTS = 65  # looked at on the way to what is wanted in a solid


class Caution(NamedTuple):
    """With which probability what is played must be within, and what is known to be."""

    level: float  # 0: no caution
    safe: FloatArray  # (d,)


@kernel
def chance_between(limits: Limits, i: int, mean: float, spread: float) -> float:
    """Probability that a normal effect on protected outcome i is within its tolerance; i from 0."""
    above = chance_above(limits.high[i] - mean, spread)
    return max(1.0 - above - chance_above(mean - limits.low[i], spread), 0.0)


@kernel
def chance_within(limits: Limits, posterior: Posterior, action: FloatArray) -> float:
    """Probability that every protected effect of an action is within its tolerance."""
    chance = 1.0
    for i in range(limits.penalty.size):
        mean, spread = effect_of(posterior, i + 1, action)
        chance *= chance_between(limits, i, mean, spread)
    return chance


@kernel
def chances_within(
    limits: Limits, posterior: Posterior, columns: FloatArray, n_arms: int
) -> FloatArray:
    """The same of every arm; columns (d, K); (K,)."""
    effects = np.dot(posterior.mean, columns[: posterior.mean.shape[1]])
    chances = np.ones(n_arms)
    for i in range(limits.penalty.size):
        side, spreads = effects[i + 1, :n_arms], spreads_of(posterior, i + 1, columns)[:n_arms]
        over = np.maximum(side - limits.high[i], limits.low[i] - side) + CERTAIN * spreads
        for k in range(n_arms):
            if over[k] > 0.0:
                chances[k] *= chance_between(limits, i, side[k], spreads[k])
    return chances


class Wanted(NamedTuple):
    """What would be played without caution, and how it was found."""

    vectors: FloatArray  # the draw, (L+1, d)
    slopes: FloatArray  # of its value in what is measured, (L+1, width)
    value: float  # in that draw
    costs: FloatArray  # of a measurement; (L+1,)


@by_type
def cautious_in(
    place: Place,
    limits: Limits,
    known: tuple[Posterior, Posterior],
    wanted: Wanted,
    caution: Caution,
) -> tuple[Found, bool]:
    """What is played instead of what is wanted, and whether anything but the safe action qualifies.

    known: the posterior of the effects, and that of what is measured, which has the levels too.
    """
    raise NotImplementedError


@kernel
def _cautious_arm(
    menu: Menu, limits: Limits, known: tuple[Posterior, Posterior], wanted: Wanted, caution: Caution
) -> tuple[Found, bool]:
    """Of the arms that qualify the best of the draw, or the one that tells most of what is wanted.

    The latter where it loses no more against the best than is to be won by what is wanted. Where not
    even the safe action is on the menu, the arm that is most probably within.
    """
    n = menu.squared.size
    values = values_within(limits, wanted.vectors, menu.columns, n)
    chances = chances_within(limits, known[0], menu.columns, n)
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
        fewer = Menu(np.ascontiguousarray(menu.columns[:, rows]), menu.squared[rows])
        told = most_telling_arm(known[1], wanted.costs, wanted.slopes, fewer)[0]
        telling = int(rows[told])
        if values[best] - values[telling] <= wanted.value - values[best]:
            best = telling
    return Found(arm_of(menu, best), best, values[best]), others


@kernel
def _cautious_in_solid(
    body: Body, limits: Limits, known: tuple[Posterior, Posterior], wanted: Wanted, caution: Caution
) -> tuple[Found, bool]:
    """The best for the drawn target within limits that are drawn in by the spread of every effect.

    That spread depends on the action, so that it is found in a few turns, and then gone to as far as it
    qualifies on the way from the safe action: a solid is convex, so that it holds the way.
    """
    from sidestep.core.programs import best_within  # noqa: PLC0415  (scipy, never compiled)

    posterior, vectors = known[0], wanted.vectors
    believed = posterior.mean.copy()
    believed[0] = vectors[0]
    action, farthest = caution.safe, 0
    narrow = limits
    for _ in range(TURNS):
        best = best_within(body, narrow, believed)[0]
        found, steps = _on_the_way(limits, posterior, caution, best)
        if steps == POINTS - 1 or dot(believed[0], found) > dot(believed[0], action):
            action, farthest = found, steps
        narrow = _drawn_in(limits, posterior, caution.level, found)
    return Found(action, ON_A_SOLID, value_within(limits, vectors, action)), farthest > 0


def _on_the_way(
    limits: Limits, posterior: Posterior, caution: Caution, best: FloatArray
) -> tuple[FloatArray, int]:
    """The farthest point that qualifies on the way from the safe action, and how many steps it is."""
    way = caution.safe + np.linspace(0.0, 1.0, POINTS)[:, None] * (best - caution.safe)
    chances = chances_within(limits, posterior, np.ascontiguousarray(way.T), POINTS)
    chances[0] = 1.0
    steps = int(np.flatnonzero(chances >= caution.level)[-1])
    return np.ascontiguousarray(way[steps]), steps


def _drawn_in(limits: Limits, posterior: Posterior, level: float, action: FloatArray) -> Limits:
    """Limits that an effect at the estimate must keep for the true one to keep those told."""
    L = limits.penalty.size
    reach = float(ndtri(1.0 - (1.0 - level) / L))  # each alone, and so all together
    spread = np.array([effect_of(posterior, i + 1, action)[1] for i in range(L)])
    low, high = limits.low + reach * spread, limits.high - reach * spread
    return Limits(np.minimum(low, 0.0), np.maximum(high, 0.0), limits.penalty)


FAMILIES[cautious_in].update({Menu: _cautious_arm, Body: _cautious_in_solid})
