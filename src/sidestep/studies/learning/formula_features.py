"""The features that a formula adds to those of the factors, place by place."""

from collections.abc import Sequence

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.factors import Setting
from sidestep.studies.formula import Features
from sidestep.studies.learning.places import Place
from sidestep.studies.plan import Plan


class FormulaFeatures:
    """Changes of a formula's features from the baseline in the same context, in half-ranges."""

    def __init__(self, plan: Plan) -> None:
        self._factors = [factor.name for factor in plan.factors]
        self._context = [factor.name for factor in plan.context]
        self._features = Features(plan)
        self.count = self._features.count

    def values(self, values: Sequence[Place]) -> FloatArray:
        """A row for every place; (n, count)."""
        found = np.zeros((len(values), self.count))
        by_context: dict[Place, list[int]] = {}
        for number, place in enumerate(values):
            by_context.setdefault(place[len(self._factors) :], []).append(number)
        for context, numbers in by_context.items():
            here = dict(zip(self._context, context, strict=True))
            settings: list[Setting] = [
                dict(zip(self._factors, values[number], strict=False)) for number in numbers
            ]
            found[numbers] = self._features.rows(settings, here)
        return found
