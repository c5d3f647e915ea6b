"""Bends that the results show: factors whose effect on an outcome is not straight."""

from dataclasses import dataclass

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.factors import Factor
from sidestep.studies.learning.belief import Belief
from sidestep.studies.learning.effects import Effects
from sidestep.studies.learning.features import Features, Points

SEEN = 0.975  # chance of its direction from which a bend counts as seen
FEWEST = 3  # results of an outcome that can show a bend
STEPS = 20  # of a factor's range, to say where it changes
BACK = 0.1  # of its way up that a curve must come down again to turn
NOWHERE = -2  # the place of a difference of curves: it has no effect of its own


@dataclass(frozen=True)
class Bend:
    """A bend that the results show, along one factor with all others at the baseline.

    factor, outcome   name of the factor, number of the outcome
    up                whether the curve bends upwards
    chance            of that direction
    kind              "flattens", "steepens" or "turns": what the expected curve does as the factor grows
    value             of the factor where it does so
    """

    factor: str
    outcome: int
    up: bool
    chance: float
    kind: str
    value: float


@dataclass(frozen=True)
class Curve:
    """What is believed of an outcome along a factor, with all others at the baseline.

    values           of the factor, over its range
    mean, low, high  of the change from the baseline, in half-ranges; what a setting does of its own is
                     left out
    """

    values: list[float]
    mean: FloatArray
    low: FloatArray
    high: FloatArray


def curve_of(belief: Belief, factor: Factor, outcome: int, certainty: float) -> Curve:
    """An outcome along a factor of numbers, with intervals of that certainty."""
    effects = contrasts(belief, _along(belief.features, factor))
    tail = np.full(STEPS + 1, (1 - certainty) / 2)
    return Curve(
        [_value(factor, step / STEPS) for step in range(STEPS + 1)],
        effects.mean(outcome),
        effects.quantile(outcome, tail),
        effects.quantile(outcome, 1 - tail),
    )


def bends_of(belief: Belief, outcomes: int, seen: float = SEEN) -> list[Bend]:
    """Every bend whose direction has at least that chance, the surest first."""
    features, found = belief.features, []
    for factor in features.factors:
        if not factor.is_number:
            continue
        rows = _along(features, factor)
        curve, bend = rows[1:] - rows[0], (rows[0] + rows[-1] - 2 * rows[STEPS // 2])[None]
        if not np.abs(bend).max() > 0:
            continue
        ends, steps = contrasts(belief, bend), contrasts(belief, curve)
        for outcome in range(outcomes):
            if belief.results(outcome) < FEWEST:
                continue
            up = 1.0 - float(ends.below(outcome, 0.0)[0])
            chance = max(up, 1 - up)
            if chance >= seen:
                mean = np.concatenate([[0.0], steps.mean(outcome)])
                kind, at = _change(mean)
                value = _value(factor, at)
                found.append(Bend(factor.name, outcome, up > 0.5, chance, kind, value))
    return sorted(found, key=lambda each: -each.chance)


def _along(features: Features, factor: Factor) -> FloatArray:
    """Features along a factor's range, with everything else at the baseline; (STEPS + 1, P)."""
    settings = [
        {**features.places.usual, factor.name: _value(factor, step / STEPS)}
        for step in range(STEPS + 1)
    ]
    return features.rows(settings)


def _value(factor: Factor, share: float) -> float:
    """The value at a share of a factor's range, on its scale."""
    low, high = (factor.coordinates(float(end or 0))[0] for end in (factor.low, factor.high))
    return factor.nearest(low + share * (high - low))


def contrasts(belief: Belief, rows: FloatArray) -> Effects:
    """Sums and differences of curves, without the own effects of settings."""
    count = len(rows)
    nowhere, nothing = np.full(count, NOWHERE), np.zeros(count)
    zero = np.zeros((1, rows.shape[1]))
    return belief.at(Points(rows, zero, nowhere, nowhere, nothing, nothing))


def _change(curve: FloatArray) -> tuple[str, float]:
    """What an expected curve does along its range, and at which share of it."""
    slope = np.diff(curve)
    rising, falling = float(slope[slope > 0].sum()), -float(slope[slope < 0].sum())
    if min(rising, falling) > BACK * max(rising, falling):
        peak = int(np.argmax(curve)) if slope[0] > 0 else int(np.argmin(curve))
        return "turns", peak / STEPS
    size, quarter = np.abs(slope), STEPS // 4
    middle = float(size.mean())
    if size[:quarter].mean() > size[-quarter:].mean():
        small = np.flatnonzero(size < middle / 2)
        return "flattens", float(small[0] if len(small) else STEPS - 1) / STEPS
    return "steepens", float(np.flatnonzero(size >= middle)[0]) / STEPS
