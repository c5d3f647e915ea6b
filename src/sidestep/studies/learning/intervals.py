"""Intervals of effects and their verdicts, from the same numbers as the chance of being within limits.

An interval leaves out alpha = 1 - certainty of the belief, half of it on either side. Where the belief is
within the limits with at least that certainty, although more than half of alpha lies beyond one of them,
the tails are shifted so that the interval is within too; and likewise beyond. So an interval lies within
the limits exactly if the effect is within them with that certainty, and the words cannot contradict it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.advice import Effect
from sidestep.studies.cards.card import verdict_of
from sidestep.studies.learning.effects import Effects, Limits
from sidestep.studies.outcomes import Outcome


def ends_of(
    effects: Effects, outcome: int, limits: Limits | None, certainty: float
) -> tuple[FloatArray, FloatArray]:
    """The ends of the intervals of one outcome; (K,) each."""
    tail = tails_of(effects, outcome, limits, 1.0 - certainty)
    low = effects.quantile(outcome, tail)
    high = effects.quantile(outcome, certainty + tail)
    if limits is not None:  # a tail of exactly the chance beyond a limit ends at the limit
        low, high = (_snapped(each, limits) for each in (low, high))
    return low, high


def tails_of(effects: Effects, outcome: int, limits: Limits | None, alpha: float) -> FloatArray:
    """The chance below every interval, of alpha that lies outside; (K,)."""
    low, high = limits or (None, None)
    nothing = np.zeros(len(effects))
    under = nothing if low is None else effects.below(outcome, low)
    over = nothing if high is None else 1.0 - effects.below(outcome, high)
    half = np.full(len(effects), alpha / 2)
    within = np.clip(half, np.minimum(under, alpha), np.maximum(alpha - over, 0.0))
    tail = np.where(under + over <= alpha, within, half)
    tail = np.where(under >= 1 - alpha, np.minimum(half, under - (1 - alpha)), tail)
    tail = np.where(over >= 1 - alpha, np.maximum(half, 1 - over), tail)
    return np.asarray(np.clip(tail, 0.0, alpha))


def _snapped(ends: FloatArray, limits: Limits) -> FloatArray:
    for limit in limits:
        if limit is not None:
            ends = np.where(np.abs(ends - limit) < 1e-8, limit, ends)
    return ends


def in_units(
    effects: Effects, outcomes: Sequence[Outcome], limits: Sequence[Limits | None], certainty: float
) -> list[dict[str, Effect]]:
    """The effects of every setting on every outcome, in units, by name."""
    columns: dict[str, list[Effect]] = {}
    for number, outcome in enumerate(outcomes):
        mean = effects.mean(number)
        low, high = ends_of(effects, number, limits[number], certainty)
        columns[outcome.name] = [
            effect_of(outcome, ends)
            for ends in zip(mean.tolist(), low.tolist(), high.tolist(), strict=True)
        ]
    return [
        {name: column[number] for name, column in columns.items()} for number in range(len(effects))
    ]


def effect_of(outcome: Outcome, ends: Sequence[Any]) -> Effect:
    """A change in its unit, with a verdict if the outcome has limits."""
    estimate, *sides = (outcome.change(float(end)) for end in ends)
    low, high = min(sides), max(sides)
    if outcome.tolerance is None:
        return Effect(estimate, low, high)
    low, high = (_at_limit(end, outcome.limits) for end in (low, high))
    return Effect(estimate, low, high, verdict_of(low, high, outcome.limits).word)


def _at_limit(end: float, limits: tuple[float | None, float | None]) -> float:
    """An end that is a limit but for its last digits is the limit."""
    for limit in limits:
        if limit is not None and abs(end - limit) <= 1e-7 * max(abs(limit), 1e-300):
            return limit
    return end
