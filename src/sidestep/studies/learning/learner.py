"""The belief of a study: per outcome a mixture of Gaussians, averaged over everything that is not known.

The shapes (r, E) and the centre c0 of the sizes belong to all outcomes, so their weights multiply over
the outcomes; given these, outcomes are independent. A probability of a belief is exact but for components
whose weights sum to less than DROPPED, which can change it by no more than that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.features import Features, Points
from sidestep.studies.learning.knowledge import UNKNOWN, Part
from sidestep.studies.learning.observations import Observation, Sums
from sidestep.studies.learning.posterior import (
    KNOWN,
    Cell,
    Posterior,
    Shape,
    Solution,
    System,
    Table,
    Told,
    log_sum,
    shapes_of,
)
from sidestep.studies.learning.prior import EXCESS, LEVEL, NOISE, S0, Grid, Prior, log_normal
from sidestep.studies.learning.readings import Reading, readings_of
from sidestep.studies.learning.rows import BoolArray, Extreme

DROPPED = 1e-4  # sum of the weights of components of an outcome that are left out
MINOR = 0.05  # the same, where questions are compared
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)  # of the average over a level
ROUGHLY = 5  # points of a noise that was told roughly
CLOSE = 1e-10  # accuracy of a quantile, in chance or in half-ranges

Limits = tuple[float | None, float | None]  # of an effect, in half-ranges


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

    def belief(self) -> "Belief":
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

    def at(self, points: Points) -> "Effects":
        """Effects of settings: changes from the baseline in the same context."""
        return Effects(self, points, self._reach(points, effects=True), levelled=False)

    def values(self, points: Points) -> "Effects":
        """Expected results of settings as they would be measured now: levels and effects."""
        usual = bool((points.home == self.features.usual.place[0]).all())
        return Effects(self, points, self._reach(points, effects=usual), levelled=True)

    def _reach(self, points: Points, *, effects: bool) -> "Reach":
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


class Reach:
    """Settings as differences of two places, and what the results say of them."""

    def __init__(self, features: Features, prior: Prior, points: Points, *, effects: bool) -> None:
        self.joint = prior.joint**2
        self.terms = prior.terms(features)
        self.place, self.missing = points.place, points.missing
        if effects:
            still = len(points.baseline) == 1 and not points.baseline.any()
            self.rows: FloatArray = points.features
            if not still:
                self.rows = points.features - points.baseline
            self.home, self.missing_home = points.home, points.missing_home
        else:
            usual, count = features.usual, len(points)
            self.rows = points.features
            self.home = np.full(count, usual.place[0])
            self.missing_home = np.full(count, usual.missing[0])
        self._homes, self._where_home = np.unique(self.home, return_inverse=True)
        order = np.argsort(self.place, kind="stable")
        self._order, self._sorted = order, self.place[order]
        self.levels_wanted = False  # whether somebody asked for values, not only for effects

    def only(self, chosen: IntArray) -> "Reach":
        """Some of the settings."""
        few = object.__new__(Reach)
        few.joint, few.terms, few.levels_wanted = self.joint, self.terms, self.levels_wanted
        few.place, few.missing, few.rows = (
            self.place[chosen],
            self.missing[chosen],
            self.rows[chosen],
        )
        few.home, few.missing_home = self.home[chosen], self.missing_home[chosen]
        few._homes, few._where_home = self._homes, self._where_home[chosen]
        order = np.argsort(few.place, kind="stable")
        few._order, few._sorted = order, few.place[order]
        return few

    @cached_property
    def _by_term(self) -> list[tuple[IntArray, FloatArray]]:
        """The features of every term, and the settings in them; (P,) and (P, K)."""
        columns = [np.flatnonzero(variances) for variances in self.terms]
        return [(some, np.ascontiguousarray(self.rows[:, some].T)) for some in columns]

    @cached_property
    def _squares(self) -> FloatArray:
        """Terms of the prior variance of the effects, in c^2; (T + 1, K)."""
        moved = self.place != self.home
        found = self.terms @ (self.rows**2).T
        found[0] += moved * self.joint * (self.missing + self.missing_home)
        return np.asarray(S0**2 * np.concatenate([found, 2.0 * moved[None]]))

    def prior_variances(self, system: System, numbers: Sequence[int]) -> FloatArray:
        """Prior variance of the effects in some systems, in c^2; (systems, K)."""
        factors = system.factors[list(numbers)]
        if system.known is None:
            return np.asarray(factors @ self._squares)
        terms = (self.terms * (system.known.share - 1)) @ (self.rows**2).T
        return np.asarray(factors @ self._squares + S0**2 * (factors[:, :-1] @ terms))

    def _same(self, places: IntArray) -> tuple[IntArray, IntArray]:
        """Which settings are at which of some places: numbers of the places, and of the settings."""
        low = self._sorted.searchsorted(places, side="left")
        many = self._sorted.searchsorted(places, side="right") - low
        which = np.arange(len(places)).repeat(many)
        inside = np.arange(len(which)) - (many.cumsum() - many).repeat(many)
        return which, self._order[low.repeat(many) + inside]

    def own(
        self, place: IntArray, against: IntArray, size: FloatArray, left: FloatArray
    ) -> FloatArray:
        """Covariance with own effects of places minus those of others, weighed and summed; (C, K).

        size, left   weights of the places for own effects, and for what the features leave out; (C, n)
        """
        home = (self._homes == place[:, None]).astype(float)
        home -= self._homes == against[:, None]  # (n, homes)
        where = slice(None) if len(self._homes) == 1 else self._where_home
        found = np.zeros((len(size), len(self.place)))
        found -= (size @ home)[:, where] + self.missing_home * (left @ home)[:, where]
        count = len(place)
        which, at = self._same(np.concatenate([place, against]))
        which, sign = which % max(count, 1), np.where(which < count, 1.0, -1.0)
        more = (size[:, which] + self.missing[at] * left[:, which]) * sign
        np.add.at(found.T, at, more.T)
        return found

    def cross(self, system: System) -> FloatArray:
        """Prior covariance of the rows with the effects by terms, in c^2; (T + 1, n, K)."""
        design = system.design
        found = np.empty((len(self.terms) + 1, len(design.place), len(self.place)))
        for number, variances in enumerate(design.variances(system.known)):
            some, rows = self._by_term[number]
            weighed = design.features[:, some] * (S0**2 * variances[some])
            np.matmul(weighed, rows, out=found[number])
        one = S0**2 * np.eye(len(design.place))
        none = np.zeros_like(one)
        if self.joint:
            found[0] += self.own(design.place, design.against, none, self.joint * one)
        found[-1] = self.own(design.place, design.against, one, none)
        return found

    def columns(self, system: System, *, levelled: bool) -> FloatArray:
        """How the effects (or values) go with levels and knowledge; (K, q)."""
        columns = np.zeros((len(self.rows), len(system.kinds)))
        if levelled:
            columns += system.now
        if system.known is not None:
            columns[:, system.kinds == KNOWN] = self.rows @ system.known.root
        return columns


class Effects:
    """Effects of K settings on every outcome (or, levelled, their values) as mixtures; in half-ranges."""

    def __init__(self, belief: Belief, points: Points, reach: Reach, *, levelled: bool) -> None:
        self.belief, self.points, self.reach, self.levelled = belief, points, reach, levelled
        self._parts: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._given: dict[tuple[int, Limits], FloatArray] = {}
        reach.levels_wanted |= levelled

    def __len__(self) -> int:
        return len(self.points)

    def only(self, rows: Any) -> "Effects":
        """The same of some of the settings."""
        points = self.points.only(rows)
        return self.belief.values(points) if self.levelled else self.belief.at(points)

    @property
    def moved(self) -> BoolArray:
        """Which settings are not the baseline; (K,)."""
        return np.asarray(self.points.place != self.points.home)

    def parts(self, outcome: int) -> tuple[FloatArray, FloatArray]:
        """Means and s.d. of every component; (m, K) each."""
        if outcome not in self._parts:
            # values and effects of the same settings are worked out together
            flags = (False, True) if self.reach.levels_wanted else (False,)

            def work(posterior: Posterior, cell: Cell) -> tuple[FloatArray, ...]:
                found = np.empty((2 * len(flags), len(cell.shape), len(self)))
                crosses: dict[int, FloatArray] = {}
                for numbers, solution in posterior.solved(cell):
                    key = id(solution.system)
                    if key not in crosses:
                        crosses[key] = self.reach.cross(solution.system)
                    found[:, numbers] = self._worked_out(solution, crosses[key], flags)
                return tuple(found)

            found = self.belief.per_component(outcome, (self.reach, flags), work)
            self._parts[outcome] = found[-2:] if self.levelled else found[:2]  # type: ignore[assignment]
        return self._parts[outcome]

    def of(self, solution: Solution) -> tuple[FloatArray, FloatArray]:
        """Means and s.d. of the components of a solution; (m, K) each."""
        cross = self.reach.cross(solution.system)
        mean, spread = self._worked_out(solution, cross, (self.levelled,))
        return mean, spread

    def _worked_out(
        self, solution: Solution, cross: FloatArray, flags: Sequence[bool]
    ) -> list[FloatArray]:
        """Means and s.d. of the components of a solution, for effects and for values."""
        system, size2 = solution.system, solution.size2
        count, settings = len(size2), len(self)
        mean, variance = np.empty((2, count, settings))
        flat = cross.reshape(len(cross), -1)
        moves = np.empty((count, settings, int(solution.kept.sum())))
        factors = system.factors
        prior = self.reach.prior_variances(system, [number for number, _ in solution.groups])
        for (number, mine), before in zip(solution.groups, prior, strict=True):
            loads = system.turn[number] @ (factors[number] @ flat).reshape(cross.shape[1:])
            c2 = size2[mine, None]
            mean[mine] = c2 * (solution.dual[mine] @ loads)
            q = moves.shape[2]
            rows = solution.loading[mine].transpose(0, 2, 1).reshape(len(mine) * q, len(loads))
            moved = (rows @ loads).reshape(len(mine), q, settings)
            moves[mine] = c2[:, :, None] * moved.transpose(0, 2, 1)
            np.square(loads, out=loads)
            variance[mine] = c2 * before - c2**2 * (solution.inverse[mine] @ loads)
        if system.known is not None and system.scaled is not None:
            mean += self.reach.rows @ system.known.mean
            mean += S0 * solution.size[:, None] * (self.reach.rows @ system.known.scaled)
        found: list[FloatArray] = []
        for levelled in flags:
            columns = self.reach.columns(system, levelled=levelled)[:, solution.kept]
            middle, more = mean, moves
            if columns.any():
                middle = mean + solution.levels @ columns.T
                more = moves - columns @ solution.level_root
            square = variance + np.einsum("mkq,mkq->mk", more, more)
            found += [middle, np.sqrt(np.maximum(square, 0.0))]
        return found

    def covariance(self, outcome: int, chosen: IntArray, others: "Effects") -> FloatArray:
        """Covariance of some effects with others, or with levelled values; (chosen, K).

        For questions: components whose weights sum to less than MINOR are left out.
        """
        weight = self.belief.mixtures[outcome].main(MINOR)
        few, there = self.reach.only(chosen), others.reach
        means, others_means = self.parts(outcome)[0][:, chosen], others.parts(outcome)[0]
        apart: FloatArray = weight[:, None] * (means - weight @ means)
        gap = np.outer(apart.sum(axis=0), weight @ others_means)
        found: FloatArray = np.asarray(apart.T @ others_means - gap)
        by_feature = np.zeros((len(chosen), self.reach.rows.shape[1]))
        for numbers, whole in self.belief.solved(outcome):
            mine = np.flatnonzero(weight[numbers])
            if not len(mine):
                continue
            share, solution = weight[numbers[mine]], whole.only(mine)
            system, design, number = whole.system, whole.system.design, solution.number
            factors, c2 = system.factors[number], solution.size2[:, None, None]
            columns = few.columns(system, levelled=self.levelled)[:, solution.kept]
            cross = np.tensordot(few.cross(system), factors, (0, 1)).transpose(2, 1, 0)
            loads: FloatArray = cross @ system.turn[number].transpose(0, 2, 1)  # (m, C, n)
            moves = c2 * (loads @ solution.loading) - columns @ solution.level_root
            part = share[:, None, None]
            by_row = c2 * solution.inverse[:, None] * loads
            by_row -= moves @ solution.loading.transpose(0, 2, 1)
            by_row = (part * c2 * by_row) @ system.turn[number]
            by_row = np.tensordot(factors, by_row, (0, 0))  # (T + 1, C, n), of the terms
            by_prior = (share * solution.size2) @ factors
            for term, one in enumerate(design.variances(system.known)):
                mine_too = by_prior[term] * few.rows - by_row[term] @ design.features
                by_feature += S0**2 * one * mine_too
            one = S0**2 * np.eye(len(chosen))
            found += there.own(
                np.concatenate([few.place, design.place]),
                np.concatenate([few.home, design.against]),
                np.hstack([by_prior[-1] * one, -(S0**2) * by_row[-1]]),
                self.reach.joint * np.hstack([by_prior[0] * one, -(S0**2) * by_row[0]]),
            )
            yours = there.columns(system, levelled=others.levelled)[:, solution.kept]
            if yours.any():
                second = moves @ solution.level_root.transpose(0, 2, 1)
                found -= np.tensordot(share, second, 1) @ yours.T
        found += by_feature @ there.rows.T
        return found

    def mean(self, outcome: int) -> FloatArray:
        """Expected effects; (K,)."""
        return np.asarray(self.belief.mixtures[outcome].weight @ self.parts(outcome)[0])

    def spread(self, outcome: int) -> FloatArray:
        """S.d. of the effects; (K,)."""
        mean, part = self.parts(outcome)
        weight = self.belief.mixtures[outcome].weight
        square = weight @ (mean**2 + part**2) - (weight @ mean) ** 2
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def below(self, outcome: int, value: FloatArray | float) -> FloatArray:
        """Chance that an effect is below a value; (K,)."""
        chance = _below(*self.parts(outcome), value)
        return np.asarray(self.belief.mixtures[outcome].weight @ chance)

    def quantile(
        self, outcome: int, chance: FloatArray | float, *, noisy: bool = False
    ) -> FloatArray:
        """The value that an effect is below with some chance; noisy: that one result is below; (K,)."""
        mean, spread = self.parts(outcome)
        if noisy:
            spread = np.hypot(spread, self.belief.noises(outcome)[:, None])
        weight = self.belief.mixtures[outcome].weight
        ends = mean + ndtri(chance) * spread
        low, high = ends.min(axis=0), ends.max(axis=0)  # the chance is below, and above, at these
        centre = weight @ mean
        square = weight @ (mean**2 + spread**2) - centre**2
        middle: FloatArray = np.clip(
            centre + ndtri(chance) * np.sqrt(np.maximum(square, 0.0)), low, high
        )
        for _ in range(60):
            z = (middle - mean) / np.maximum(spread, 1e-300)
            gap = weight @ ndtr(z) - chance
            high = np.where(gap >= 0, middle, high)
            low = np.where(gap <= 0, middle, low)
            if (np.abs(gap) < CLOSE).all() or (high - low < CLOSE).all():
                break
            with np.errstate(over="ignore"):
                density = np.exp(-0.5 * z * z) / np.maximum(spread, 1e-300)
            slope = weight @ density / np.sqrt(2 * np.pi)
            step = middle - gap / np.maximum(slope, 1e-300)
            inside = (step > low) & (step < high)
            middle = np.where(inside, step, (low + high) / 2)
        return np.asarray(middle)

    def _within_parts(self, outcome: int, limits: Limits) -> FloatArray:
        low, high = limits
        mean, spread = self.parts(outcome)
        place = {code: number for number, code in enumerate(self._codes(outcome))}

        def work(posterior: Posterior, cell: Cell) -> tuple[FloatArray, ...]:
            codes = np.ravel_multi_index(tuple(cell), posterior.logs.shape)
            some = [place[id(posterior), code] for code in codes.tolist()]
            chance: FloatArray = np.ones((len(some), len(self)))
            if high is not None:
                chance = _below(mean[some], spread[some], high + 1e-12)
            if low is not None:
                chance = chance - _below(mean[some], spread[some], low - 1e-12)
            return (chance,)

        return self.belief.per_component(outcome, (self.reach, self.levelled, limits), work)[0]

    def _codes(self, outcome: int) -> list[tuple[int, int]]:
        mixture, readings = self.belief.mixtures[outcome], self.belief.readings[outcome]
        own = [id(readings[number].posterior) for number in mixture.reading.tolist()]
        return list(zip(own, mixture.code.tolist(), strict=True))

    def _never_parts(self, outcome: int, limits: Limits, never: Limits) -> FloatArray:
        """Chance of every component that effect and expected result are within theirs; (m, K).

        Given the level, both are limits of the effect; the level is averaged over its Gaussian.
        """
        mean, spread = self.parts(outcome)
        around = self.belief.values(self.points).parts(outcome)[1]
        home = self.belief.features.at(self.points.home[:1])
        level, wide = self.belief.values(home).parts(outcome)  # (m, 1)
        slope = (around**2 - spread**2 - wide**2) / (2 * np.maximum(wide, 1e-12) ** 2)
        rest = np.sqrt(np.maximum(spread**2 - slope**2 * wide**2, 1e-18))
        low, high = (
            np.inf * sign if end is None else end for sign, end in zip((-1, 1), limits, strict=True)
        )
        bottom, top = (
            np.inf * sign if end is None else end for sign, end in zip((-1, 1), never, strict=True)
        )
        chance = np.zeros_like(mean)
        for step, weight in zip(POINTS, WEIGHTS / WEIGHTS.sum(), strict=True):
            here = level + step * wide
            middle = mean + slope * step * wide
            most = np.minimum(high, top - here) + 1e-12
            least = np.maximum(low, bottom - here) - 1e-12
            inside = ndtr((most - middle) / rest) - ndtr((least - middle) / rest)
            chance += weight * np.maximum(inside, 0.0)
        return chance

    def result_below(
        self, outcome: int, value: float, se: float | None = None, repeats: float = 1.0
    ) -> FloatArray:
        """Chance that a result here would be below a value, of levelled values; (K,)."""
        mean, spread = self.parts(outcome)
        noise = self.belief.noises(outcome)
        variance = noise**2 / repeats if se is None else np.full(len(noise), se**2)
        z = (value - mean) / np.sqrt(spread**2 + variance[:, None])
        return np.asarray(self.belief.mixtures[outcome].weight @ ndtr(z))

    def within(self, outcome: int, limits: Limits) -> FloatArray:
        """Chance that an effect is within limits; (K,)."""
        return np.asarray(
            self.belief.mixtures[outcome].weight @ self._within_parts(outcome, limits)
        )

    def all_within(
        self, limits: Sequence[Limits | None], never: Sequence[Limits | None] | None = None
    ) -> FloatArray:
        """Chance that all effects are within their limits (None: none), and results never beyond; (K,).

        never   (low, high) of every outcome's expected result, on its scale
        """
        belief = self.belief
        shapes, centres = belief.joint.shape
        together = np.ones((shapes, centres, len(self)))
        absolute = [None] * len(limits) if never is None else never
        for outcome, (pair, ends) in enumerate(zip(limits, absolute, strict=True)):
            if ends is not None and ends != (None, None):
                chance = self._never_parts(outcome, pair or (None, None), ends)
                together *= belief.given(outcome, chance)
            elif pair is not None and pair != (None, None):
                together *= self._given_within(outcome, pair)
        return np.asarray(np.einsum("hz,hzk->k", belief.joint, together))

    def _given_within(self, outcome: int, limits: Limits) -> FloatArray:
        """Chance of being within limits given shape and centre; (shapes, centres, K)."""
        if (outcome, limits) not in self._given:
            chance = self._within_parts(outcome, limits)
            self._given[outcome, limits] = self.belief.given(outcome, chance)
        return self._given[outcome, limits]

    def given_part(
        self, part: str, limits: Sequence[Limits | None]
    ) -> tuple[FloatArray, FloatArray]:
        """Chances of being within all limits, and of a gain, if a part of the prior is right; (K,)."""
        belief = self.belief
        mine = np.array([shape.part.name == part for shape in belief.shapes])
        joint = belief.joint * mine[:, None]
        joint = joint / joint.sum()
        together = np.ones((*joint.shape, len(self)))
        for outcome, pair in enumerate(limits):
            if pair is not None and pair != (None, None):
                together *= self._given_within(outcome, pair)
        gain = belief.given(0, 1.0 - _below(*self.parts(0), 0.0))
        return (
            np.asarray(np.einsum("hz,hzk->k", joint, together)),
            np.asarray(np.einsum("hz,hzk->k", joint, gain)),
        )


def _below(mean: FloatArray, spread: FloatArray, value: FloatArray | float) -> FloatArray:
    """Chance of every component to be below a value; surely, where it is sure."""
    gap = value - mean
    sure = spread <= 0
    if sure.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(sure, np.where(gap >= -1e-12, np.inf, -np.inf), gap / spread)
    else:
        z = gap / spread
    return np.asarray(ndtr(z))
