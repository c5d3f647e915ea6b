"""The belief of a study: per outcome a mixture of Gaussians, averaged over everything that is not known.

The shapes (r, E) and the centre c0 of the sizes belong to all outcomes, so their weights multiply over
the outcomes; given these, outcomes are independent. A probability of a belief is exact but for components
whose weights sum to less than DROPPED, which can change it by no more than that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.effects import Effects, Reach
from sidestep.studies.learning.features import Features, Points
from sidestep.studies.learning.posterior import Cell, Posterior, Shape, Solution, Table, log_sum
from sidestep.studies.learning.prior import Prior
from sidestep.studies.learning.readings import Reading
from sidestep.studies.learning.rows import Extreme

DROPPED = 1e-4  # sum of the weights of components of an outcome that are left out


@dataclass(frozen=True)
class Mixture:
    """The components of one outcome that matter; every array has one number per component.

    reading   number of the reading of the results
    code      number of the component in its reading
    cell      indices of the hyperparameters
    weight    sums to 1
    """

    reading: IntArray
    code: IntArray
    cell: Cell
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.weight)

    def main(self, minor: float) -> FloatArray:
        """The weights without those of the smallest components, which sum to less than `minor`."""
        order = np.argsort(self.weight, kind="stable")
        kept = self.weight.copy()
        kept[order[: np.searchsorted(np.cumsum(self.weight[order]), minor)]] = 0.0
        return np.asarray(kept / kept.sum())


class Belief:
    """What is believed of all outcomes after some results."""

    def __init__(
        self,
        features: Features,
        prior: Prior,
        shapes: Sequence[Shape],
        readings: Sequence[Sequence[Reading]],
    ) -> None:
        self.features, self.prior = features, prior
        self.shapes, self.readings = tuple(shapes), tuple(readings)
        away = np.log(prior.sizes_given_centre)  # (centres, sizes)
        self._tables = [self._table(each) for each in self.readings]  # likelihoods of (shape, size)
        given = [log_sum(away + table[:, None, :], 2) for table in self._tables]
        joint = np.array([shape.log_weight for shape in self.shapes])[:, None] + prior.centres.log
        joint = joint + sum(given)
        self.evidence = float(log_sum(joint.ravel(), 0))
        self.joint = np.exp(joint - self.evidence)  # weights of (shape, centre)
        # chances of a size given shape and centre, of every outcome; (shapes, centres, sizes)
        self._sizes = [
            np.exp(away + table[:, None, :] - norm[:, :, None])
            for table, norm in zip(self._tables, given, strict=True)
        ]
        self._solved: dict[int, list[tuple[IntArray, Solution]]] = {}
        self.mixtures = [self._mixture(number) for number in range(len(self.readings))]

    @staticmethod
    def _table(readings: Sequence[Reading]) -> FloatArray:
        if len(readings) == 1:
            return readings[0].posterior.table + readings[0].log_weight
        return log_sum(np.array([r.posterior.table + r.log_weight for r in readings]), 0)

    def _mixture(self, outcome: int) -> Mixture:
        sizes = np.einsum("hz,hzc->hc", self.joint, self._sizes[outcome]) + 1e-300
        norm = np.log(sizes) - self._tables[outcome]
        readings = self.readings[outcome]
        weights = [
            np.exp(r.posterior.logs + r.log_weight + norm[:, :, None, None, None]) for r in readings
        ]
        flat = np.concatenate([each.ravel() for each in weights])
        # what weighs less than this cannot sum to DROPPED, and need not be sorted
        some = np.flatnonzero(flat > DROPPED / (10 * len(flat)))
        spare = 1.0 - flat[some].sum()
        order = some[np.argsort(flat[some], kind="stable")]
        kept = np.sort(order[np.searchsorted(spare + np.cumsum(flat[order]), DROPPED) :])
        ends = np.cumsum([each.size for each in weights])
        reading = np.searchsorted(ends, kept, side="right")
        code = kept - np.concatenate([[0], ends])[reading]
        cells = [
            np.unravel_index(code[reading == number], each.shape)
            for number, each in enumerate(weights)
        ]
        cell = Cell(*(np.concatenate([each[i] for each in cells]) for i in range(5)))
        return Mixture(reading, code, cell, flat[kept] / flat[kept].sum())

    def solved(self, outcome: int) -> list[tuple[IntArray, Solution]]:
        """Components of an outcome by what they share."""
        if outcome not in self._solved:
            mixture = self.mixtures[outcome]
            found: list[tuple[IntArray, Solution]] = []
            for number, reading in enumerate(self.readings[outcome]):
                mine = np.flatnonzero(mixture.reading == number)
                if len(mine):
                    cell = Cell(*(each[mine] for each in mixture.cell))
                    for numbers, solution in reading.posterior.solved(cell):
                        found.append((mine[numbers], solution))
            self._solved[outcome] = found
        return self._solved[outcome]

    def per_component(
        self,
        outcome: int,
        key: Any,
        work: Callable[[Posterior, Cell], tuple[FloatArray, ...]],
    ) -> tuple[FloatArray, ...]:
        """Numbers of every component, which are worked out once for the same results."""
        mixture, found = self.mixtures[outcome], []
        for number, reading in enumerate(self.readings[outcome]):
            posterior = reading.posterior
            table = posterior.tables.setdefault(key, Table(posterior.logs.size))

            def cells(codes: IntArray, posterior: Posterior = posterior) -> tuple[FloatArray, ...]:
                return work(posterior, Cell(*np.unravel_index(codes, posterior.logs.shape)))

            found.append(table.rows(mixture.code[mixture.reading == number], cells))
        if len(found) == 1:
            return found[0]
        return tuple(np.concatenate(each) for each in zip(*found, strict=True))

    def results(self, outcome: int) -> int:
        """Number of results of an outcome."""
        return int(self.readings[outcome][0].posterior.rows.count.sum())

    def surprises(self, outcome: int) -> list[tuple[Extreme, float]]:
        """Results that may be grossly wrong, with the chance of that."""
        mixture, found = self.mixtures[outcome], dict[Extreme, float]()
        weights = np.bincount(mixture.reading, mixture.weight, len(self.readings[outcome]))
        for reading, weight in zip(self.readings[outcome], weights, strict=True):
            for result in reading.gross:
                found[result] = found.get(result, 0.0) + float(weight)
        return sorted(found.items(), key=lambda each: -each[1])

    def parts(self) -> dict[str, float]:
        """How far every part of the prior is believed."""
        found: dict[str, float] = {}
        for shape, weight in zip(self.shapes, self.joint.sum(axis=1), strict=True):
            found[shape.part.name] = found.get(shape.part.name, 0.0) + float(weight)
        return found

    def variants(self, outcome: int) -> FloatArray:
        """How far the variants of what is known of an outcome are believed."""
        mixture = self.mixtures[outcome]
        return np.asarray(np.bincount(mixture.cell.variant, mixture.weight))

    def given(self, outcome: int, parts: FloatArray) -> FloatArray:
        """The average of a number per component given shape and centre; (shapes, centres, K).

        Where no component of a shape is kept the weight of the shape is below DROPPED.
        """
        mixture = self.mixtures[outcome]
        shapes, sizes = len(self.shapes), len(self.prior.centres.values)
        code = mixture.cell.shape * sizes + mixture.cell.size
        total = np.bincount(code, mixture.weight, shapes * sizes)
        share = np.zeros((shapes * sizes, len(mixture)))
        share[code, np.arange(len(mixture))] = mixture.weight / total[code]
        table = (share @ parts).reshape(shapes, sizes, -1)
        chance = self._sizes[outcome] * (total.reshape(shapes, 1, sizes) > 0)
        norm = chance.sum(axis=2, keepdims=True)
        return np.asarray(np.einsum("hzc,hck->hzk", chance / np.where(norm > 0, norm, 1.0), table))

    def at(self, points: Points) -> Effects:
        """Effects of settings: changes from the baseline in the same context."""
        return Effects(self, points, self._reach(points, effects=True), levelled=False)

    def values(self, points: Points) -> Effects:
        """Expected results of settings as they would be measured now: levels and effects."""
        usual = bool((points.home == self.features.usual.place[0]).all())
        return Effects(self, points, self._reach(points, effects=usual), levelled=True)

    def _reach(self, points: Points, *, effects: bool) -> Reach:
        """The points as differences from the baseline in their own, or in the usual, context."""
        reaches = self.features.reaches.setdefault(points, {})
        if (self.prior, effects) not in reaches:
            reaches[self.prior, effects] = Reach(self.features, self.prior, points, effects=effects)
        return reaches[self.prior, effects]  # type: ignore[no-any-return]

    def noises(self, outcome: int) -> FloatArray:
        """S.d. of one result in every component; (m,)."""
        mixture = self.mixtures[outcome]
        found = np.empty(len(mixture))
        for number, reading in enumerate(self.readings[outcome]):
            mine = mixture.reading == number
            found[mine] = reading.posterior.single(mixture.cell.noise[mine])
        return found

    def noise(self, outcome: int) -> float:
        """S.d. of one result, averaged over what it may be."""
        return float(np.sqrt(self.mixtures[outcome].weight @ self.noises(outcome) ** 2))
