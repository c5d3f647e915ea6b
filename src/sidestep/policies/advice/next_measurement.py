"""What would settle a recommendation: the most informative measurement, and how many more results.

Both are in closed form from the posterior. One measurement of vector v along a reduces the variance of a
contest by red(a, v) (core/variance_reduction.py). After n results of one outcome along a, the variance
of its effect e is

    var(e) - cov(e, m)^2 / (var(m) + R^2 / n),   m = <a, theta_v> plus the level, if that is learned.
"""

import math
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Actions, Arms, farthest
from sidestep.core.arrays import FloatArray
from sidestep.core.posterior import padded
from sidestep.core.problem import Limits
from sidestep.core.variance_reduction import reductions
from sidestep.policies.advice.posterior_summary import WIDER, Standpoint, slopes_at
from sidestep.policies.base import Interval

WITHIN, BEYOND, OPEN = "within", "beyond", "not settled"
MOST_RESULTS = 10_000  # if more results than this are needed, no number is given


class Settling(NamedTuple):
    """The measurement that removes most of the contested variance.

    action   the action to play; (d,)
    arm      its row among the arms; None on a solid
    vector   index of the measured outcome
    share    share of the contested variance that it removes
    """

    action: FloatArray
    arm: int | None
    vector: int
    share: float


class Narrowing(NamedTuple):
    """The effect of more results of one outcome, along the recommended action, on its interval.

    vector   index of the outcome
    more     number of results that would settle it if its estimate stays; None: no number would
    half     half-length of its interval after these results
    """

    vector: int
    more: int | None
    half: float


def verdict_of(low: float, high: float, begin: float, end: float) -> str:
    """The verdict of an interval from begin to end about the limits low and high."""
    outside = end < low or high < begin
    return WITHIN if low <= begin and end <= high else BEYOND if outside else OPEN


def verdicts_of(limits: Limits | None, effects: tuple[Interval, ...]) -> tuple[str, ...]:
    """The verdict on every protected outcome: its interval is inside, outside, or neither."""
    if limits is None:
        return ()
    sides = zip(effects[1:], limits.low, limits.high, strict=True)
    return tuple(verdict_of(low, high, effect.low, effect.high) for effect, low, high in sides)


def settling(
    here: Standpoint, actions: Actions, action: FloatArray, rival: FloatArray | None
) -> Settling | None:
    """The most informative measurement about an action against its rival, or about its own value.

    Without a rival it is about the action's own value. None where nothing is uncertain.
    """
    slopes = slopes_at(here, action)
    if rival is not None:
        slopes = slopes - slopes_at(here, rival)
    posterior = here.posterior
    gradients = padded(slopes, posterior.mean.shape[1])
    directions = (posterior.inverse @ gradients[:, :, None])[:, :, 0]
    contested = float(posterior.noise**2 @ (directions * gradients).sum(axis=1))
    if contested <= 0.0:
        return None
    looked_at = _looked_at(here, actions, action, directions)
    taken = reductions(posterior, directions, here.problem.lifted(looked_at).T)
    index, row = np.unravel_index(int(np.argmax(taken)), taken.shape)
    arm = actions.row(int(row)) if isinstance(actions, Arms) else None
    share = float(taken[index, row] / contested)
    return Settling(np.array(looked_at[row]), arm, int(index), share)


def _looked_at(
    here: Standpoint, actions: Actions, action: FloatArray, directions: FloatArray
) -> FloatArray:
    """Candidate actions (K, d): all arms; of a solid, the action and the farthest along `directions`."""
    if isinstance(actions, Arms):
        return np.asarray(actions.vectors)
    ways = [way for way in directions[:, : here.problem.dim] if way.any()]
    body = actions.body
    found = [
        farthest(body, np.ascontiguousarray(sign * way)) for way in ways for sign in (1.0, -1.0)
    ]
    return np.array([action, *found])


def unsettled(
    here: Standpoint, action: FloatArray, verdicts: tuple[str, ...], quantile: FloatArray
) -> tuple[Narrowing, ...]:
    """The effect of more results along an action, for every outcome that is "not settled"."""
    limits = here.problem.limits
    if limits is None:
        return ()
    left = [index for index, verdict in enumerate(verdicts, start=1) if verdict == OPEN]
    return tuple(narrowing(here, limits, action, index, float(quantile[index])) for index in left)


def narrowing(
    here: Standpoint, limits: Limits, action: FloatArray, index: int, quantile: float
) -> Narrowing:
    """How many results would settle the effect of an action on a protected outcome."""
    measured = here.problem.lifted(action)
    moved = np.concatenate([action, np.zeros(len(measured) - len(action))])
    unit = here.posterior.noise[index] ** 2
    told = here.posterior.inverse[index] @ measured
    own, shared, whole = (
        float(unit * (moved @ here.posterior.inverse[index] @ moved)),
        float(unit * (moved @ told)),
        float(unit * (measured @ told)),
    )
    estimate, reach = float(here.effects.mean[index] @ action), WIDER * quantile
    low, high = limits.low[index - 1], limits.high[index - 1]
    gap = max(min(high - estimate, estimate - low), estimate - high, low - estimate)
    excess = own - (gap / reach) ** 2
    slack = math.inf if excess <= 0.0 else shared**2 / excess - whole
    more = math.ceil(unit / slack) if slack > unit / MOST_RESULTS else None
    left = own - shared**2 / (whole + (unit / more if more else 0.0))
    return Narrowing(index, more, reach * math.sqrt(max(left, 0.0)))
