"""Takes results and knows the belief after them, from what was told of every outcome."""

from collections.abc import Sequence

import numpy as np

from sidestep.studies.learning.belief import Belief
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.knowledge import UNKNOWN, Part
from sidestep.studies.learning.observations import Observation, Sums
from sidestep.studies.learning.posterior import Told, shapes_of
from sidestep.studies.learning.prior import EXCESS, LEVEL, NOISE, Grid, Prior, log_normal
from sidestep.studies.learning.readings import Reading, readings_of

ROUGHLY = 5  # points of a noise that was told roughly


def told_of(
    noise: float | tuple[float, float] | None = None,
    *,
    level_told: bool = False,
    share: float = 1.0,
    reach: tuple[float, float] | None = None,
) -> Told:
    """What is told of an outcome: its noise (a number; a pair, 19 times in 20; None), and its level.

    share   of the level's usual s.d., for outcomes whose range is far from the baseline
    reach   the values that are believed without checking: the range, on the outcome's scale
    """
    if noise is None:
        grid = NOISE
    elif isinstance(noise, tuple):
        low, high = np.log(noise[0]), np.log(noise[1])
        grid = log_normal(float(np.exp((low + high) / 2)), float(high - low) / 3.92, ROUGHLY)
    else:
        grid = Grid((noise,), (1.0,))
    usual = (
        (-2.0, 2.0) if level_told else (-1.0, 1.0)
    )  # around the level, or the middle of the range
    level = None if level_told else LEVEL * share
    return Told(grid.array, grid.log, EXCESS.array, EXCESS.log, level, reach or usual)


class Learner:
    """Takes results and knows the belief after them; the order of results does not matter.

    parts   of the prior: what is known before the first result (knowledge.py)
    """

    def __init__(
        self,
        features: Features,
        told: Sequence[Told],
        prior: Prior,
        parts: Sequence[Part] = UNKNOWN,
    ) -> None:
        self.features, self.told, self.prior, self.parts = (
            features,
            tuple(told),
            prior,
            tuple(parts),
        )
        self.shapes = shapes_of(prior, features, parts)
        self.sums = [Sums() for _ in self.told]
        self._readings: list[Sequence[Reading] | None] = [None] * len(self.told)
        self._belief: Belief | None = None

    def add(self, outcome: int, result: Observation) -> None:
        """Learn one result of an outcome."""
        self.sums[outcome].add(result)
        self._readings[outcome] = self._belief = None

    def take(self, sums: Sequence[Sums], changed: Sequence[int] | None = None) -> None:
        """Learn from these sums, and from nothing else; changed: the outcomes that differ (None: all)."""
        self.sums = list(sums)
        for outcome in range(len(self.told)) if changed is None else changed:
            self._readings[outcome] = self._belief = None

    def copy(self) -> "Learner":
        """The same with the same results; what is added to either does not reach the other."""
        other = Learner(self.features, self.told, self.prior, self.parts)
        other.sums = [Sums(dict(each.rows), each.width) for each in self.sums]
        other._readings, other._belief = list(self._readings), self._belief
        return other

    def suppose(self, outcome: int, place: int, value: float) -> None:
        """Learn a result that was not measured, as if it came in the latest round."""
        last = max((key.epoch * s.width for s in self.sums for key in s.rows), default=0)
        self.add(outcome, Observation(place, value, round=last))

    def expecting(self, awaited: Sequence[tuple[int, int]]) -> "Learner":
        """The same with results that are still awaited, (outcome, place) each, as they are expected."""
        if not awaited:
            return self
        places = np.array([place for _, place in awaited])
        values = self.belief().values(self.features.at(places))
        other = self.copy()
        for number, (outcome, place) in enumerate(awaited):
            other.suppose(outcome, place, float(values.mean(outcome)[number]))
        return other

    def belief(self) -> Belief:
        """What is believed after all results so far."""
        if self._belief is None:
            readings = []
            for outcome in range(len(self.told)):
                known = self._readings[outcome]
                if known is None:
                    known = self._readings[outcome] = readings_of(
                        self.features,
                        self.prior,
                        self.shapes,
                        outcome,
                        self.told[outcome],
                        self.sums[outcome],
                    )
                readings.append(known)
            self._belief = Belief(self.features, self.prior, self.shapes, readings)
        return self._belief
