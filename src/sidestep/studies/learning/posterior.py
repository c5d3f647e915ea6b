"""One outcome: exact Gaussians given shape (r, E), size c, noise and drift, with their likelihoods.

A result is  y = level + blocks + drift + effect(place) + noise,  a change is
y = effect(place) - effect(against) + noise. Given the hyperparameters all is Gaussian. With D the noise
of the rows and c^2 K their prior covariance, one decomposition  D^-1/2 K D^-1/2 = U diag(v) U'  serves
every c, every noise of the same proportions and every drift: levels, blocks, drift are few columns more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.observations import BoolArray, Rows
from sidestep.studies.learning.prior import BLOCK, S0, Prior


@dataclass(frozen=True)
class Shape:
    """One way in which effects may bend: r, E, and the prior variances of the features."""

    bend: float
    own: float
    variances: FloatArray  # (P,), in c^2 S0^2
    log_weight: float


def shapes_of(prior: Prior, features: Features) -> list[Shape]:
    """Every pair (r, E), for all outcomes."""
    return [
        Shape(bend, own, prior.variances(features, bend), float(lb + lo))
        for bend, lb in zip(prior.bends.values, prior.bends.log, strict=True)
        for own, lo in zip(prior.owns.values, prior.owns.log, strict=True)
    ]


@dataclass(frozen=True)
class Told:
    """What is told of an outcome's noise and level.

    noise     s.d. of one result at the points of its grid, with logarithms of their weights
    excess    s.d. of the scatter beyond told errors, at its points, in the median told error
    level     s.d. of the level around its zero; None: that of one result
    """

    noise: FloatArray
    noise_log: FloatArray
    excess: FloatArray
    excess_log: FloatArray
    level: float | None = 2.0


class Design:
    """The rows of an outcome as arrays that no hyperparameter changes."""

    def __init__(self, features: Features, rows: Rows, prior: Prior) -> None:
        self.rows = rows
        points = features.at(rows.place)
        change = rows.against >= 0
        reference = features.at(np.where(change, rows.against, points.home))
        self.features = points.features - np.where(change[:, None], reference.features, 0.0)
        usual = features.usual.place[0]
        self.place = points.place
        # a plain result is a change from the baseline in the usual context, whose result is the level
        self.against = np.where(change, rows.against, usual)
        self.missing = points.missing
        self.missing_against = np.where(change, reference.missing, features.usual.missing[0])
        self.columns, self.kinds, self.now = self._columns(~change)
        self.joint = prior.joint**2

    def _columns(self, levelled: BoolArray) -> tuple[FloatArray, IntArray, FloatArray]:
        """Columns of level (0), drift (1: a step) and blocks (2), and those of a result now."""
        rows = self.rows
        columns, kinds, now = [levelled.astype(float)], [0], [1.0]
        epochs = np.unique(rows.epoch[levelled])
        for epoch, before in zip(epochs[1:], epochs[:-1], strict=True):
            step = np.sqrt((epoch - before) * rows.width)
            columns.append(step * (levelled & (rows.epoch >= epoch)))
            kinds.append(1)
            now.append(step)
        for block in np.unique(rows.block[levelled & (rows.block >= 0)]):
            columns.append((levelled & (rows.block == block)).astype(float))
            kinds.append(2)
            now.append(0.0)
        return np.array(columns).T, np.array(kinds), np.array(now)

    def own(
        self, place: IntArray, against: IntArray, missing: tuple[FloatArray, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Covariance of own effects with those of the rows, and of what is missing; (K, n)."""
        first = place[:, None] == self.place, place[:, None] == self.against
        second = against[:, None] == self.place, against[:, None] == self.against
        own = first[0].astype(float) - first[1] - second[0] + second[1]
        here, there = missing[0][:, None], missing[1][:, None]
        left_out = here * (first[0].astype(float) - first[1]) - there * (
            second[0].astype(float) - second[1]
        )
        return own, left_out

    def prior_rows(self, shape: Shape) -> FloatArray:
        """Prior covariance of the rows without level and noise, in c^2 S0^2; (n, n)."""
        own, left_out = self.own(self.place, self.against, (self.missing, self.missing_against))
        smooth = (self.features * shape.variances) @ self.features.T
        return np.asarray(smooth + shape.own**2 * own + self.joint * left_out)


class System:
    """The rows of an outcome, decomposed for one shape and noises of the same proportions."""

    def __init__(self, design: Design, shape: Shape, noise: FloatArray) -> None:
        self.root = 1.0 / np.sqrt(noise)
        kernel = self.root[:, None] * design.prior_rows(shape) * self.root * S0**2
        values, self.vectors = np.linalg.eigh(kernel)
        self.values = np.maximum(values, 0.0)
        turned = self.vectors.T * self.root
        self.y = turned @ design.rows.mean
        self.columns = turned @ design.columns  # (n, q)
        self.now = design.now
        self.log_noise = float(np.log(noise).sum())


class Posterior:
    """What the results of one outcome say, for every combination of hyperparameters."""

    def __init__(
        self, features: Features, prior: Prior, shapes: Sequence[Shape], told: Told, rows: Rows
    ) -> None:
        self.features, self.prior, self.shapes, self.told, self.rows = (
            features,
            prior,
            shapes,
            told,
            rows,
        )
        self.sizes = prior.centres.array
        self.design = Design(features, rows, prior)
        plain = rows.told == 0.0
        self._plain, self._mixed = plain, bool(plain.any() and (~plain).any())
        if plain.all():
            self.noises = np.column_stack([told.noise, np.zeros_like(told.noise)])
            self.noise_log = told.noise_log
        else:
            middle = np.sqrt(np.median(rows.told[~plain]))
            noise, excess = told.noise, told.excess * middle
            if not plain.any():
                noise = noise[:1]
            grid = np.meshgrid(noise, excess, indexing="ij")
            self.noises = np.column_stack([each.ravel() for each in grid])
            first = told.noise_log if plain.any() else np.zeros(1)
            self.noise_log = (first[:, None] + told.excess_log).ravel()
        self.moves = bool((self.design.kinds == 1).any())  # whether a drift could show
        self._systems: dict[tuple[int, int], System] = {}
        self.log_likelihood = self._likelihoods()  # (shapes, sizes, noises, drifts)

    def noise_of(self, point: int) -> tuple[FloatArray, float]:
        """Variance of the rows at a point of the noise grid as proportions times a scale."""
        rows = self.rows
        own, excess = self.noises[point] ** 2
        if self._plain.all():
            return 1.0 / rows.weight, float(own)
        return np.where(self._plain, own, rows.told + excess) / rows.weight, 1.0

    def system(self, shape: int, point: int) -> System:
        """The rows decomposed; plain results share one system for all noises."""
        key = (shape, 0 if self._plain.all() else point)
        if key not in self._systems:
            self._systems[key] = System(self.design, self.shapes[shape], self.noise_of(point)[0])
        return self._systems[key]

    def _column_scales(self, points: IntArray, drifts: IntArray) -> FloatArray:
        """Prior s.d. of level, steps and blocks; (m, q)."""
        noise = self.single(points)
        drift = self.prior.drift.array[drifts] * noise
        level = noise if self.told.level is None else np.full(len(points), self.told.level)
        table = np.column_stack([level, drift, np.full(len(points), BLOCK)])
        return np.asarray(table[:, self.design.kinds])

    def single(self, points: IntArray) -> FloatArray:
        """S.d. of one result at points of the noise grid."""
        if self._plain.any() or not len(self.rows):
            return np.asarray(self.noises[points, 0])
        return np.asarray(np.sqrt(np.median(self.rows.told) + self.noises[points, 1] ** 2))

    def _within(self, point: int) -> float:
        """Log likelihood of the scatter within the rows, but for constants."""
        rows, extra = self.rows, self.rows.count - 1.0
        variance = np.where(
            self._plain, self.noises[point, 0] ** 2, rows.told + self.noises[point, 1] ** 2
        )
        return float(-0.5 * (extra * np.log(variance) + rows.scatter / variance).sum())

    def _likelihoods(self) -> FloatArray:
        points, drifts = len(self.noises), len(self.prior.drift.values) if self.moves else 1
        found = np.zeros((len(self.shapes), len(self.sizes), points, drifts))
        if not len(self.rows):
            return found
        shape, size, point, drift = (each.ravel() for each in np.indices(found.shape))
        table = found.reshape(-1)
        for numbers, _, solution in self.solved(shape, size, point, drift):
            table[numbers] = solution.log_likelihood
        return np.asarray(found + np.array([self._within(p) for p in range(points)])[:, None])

    def solved(
        self, shape: IntArray, size: IntArray, point: IntArray, drift: IntArray
    ) -> list[tuple[IntArray, int, "Solution"]]:
        """Combinations grouped by what they share: their numbers, their shape and their solution."""
        system = np.zeros_like(point) if self._plain.all() else point
        still = self.prior.drift.array[drift] == 0.0 if self.moves else np.ones(len(drift), bool)
        group = (shape * len(self.noises) + system) * 2 + still
        scales = np.array([self.noise_of(p)[1] for p in range(len(self.noises))])
        found: list[tuple[IntArray, int, Solution]] = []
        for each in np.unique(group):
            numbers = np.flatnonzero(group == each)
            first = numbers[0]
            columns = self._column_scales(point[numbers], drift[numbers])
            kept = self.design.kinds != 1 if still[first] else slice(None)
            solution = Solution(
                self.system(int(shape[first]), int(point[first])),
                self.sizes[size[numbers]] ** 2,
                scales[point[numbers]],
                columns,
                kept,
            )
            found.append((numbers, int(shape[first]), solution))
        return found


class Solution:
    """The posterior of several combinations that share a system; m of them, n rows, q columns."""

    def __init__(
        self, system: System, size2: FloatArray, scale: FloatArray, columns: FloatArray, kept: Any
    ) -> None:
        self.system, self.size2, self.kept = system, size2, kept
        self.columns = columns[:, kept]
        b = system.columns[:, kept]  # (n, q)
        q = b.shape[1]
        self._b = b
        spread = size2[:, None] * system.values + scale[:, None]
        self.inverse = 1.0 / spread  # (m, n)
        inner = (self.inverse @ (b[:, :, None] * b[:, None, :]).reshape(-1, q * q)).reshape(
            -1, q, q
        )
        inner *= self.columns[:, :, None] * self.columns[:, None, :]
        inner += np.eye(q)
        self._inner = np.linalg.cholesky(inner)  # (m, q, q)
        right = (self.inverse @ (b * system.y[:, None])) * self.columns
        self._half = np.linalg.solve(self._inner, right[:, :, None])[:, :, 0]
        self.log_likelihood = -0.5 * (
            np.log(spread).sum(axis=1)
            + system.log_noise
            + 2 * np.log(np.diagonal(self._inner, axis1=1, axis2=2)).sum(axis=1)
            + self.inverse @ system.y**2
            - (self._half**2).sum(axis=1)
        )

    @cached_property
    def levels(self) -> FloatArray:
        """Means of level, steps and blocks; (m, q)."""
        back = np.linalg.solve(self._inner.transpose(0, 2, 1), self._half[:, :, None])[:, :, 0]
        return np.asarray(self.columns * back)

    @property
    def now(self) -> FloatArray:
        """The columns of a result that is measured now, in no block; (q,)."""
        return np.asarray(self.system.now[self.kept])

    @cached_property
    def level_root(self) -> FloatArray:
        """A root of the covariance of level, steps and blocks: its rows times its rows; (m, q, q)."""
        root = np.linalg.inv(self._inner).transpose(0, 2, 1)
        return np.asarray(self.columns[:, :, None] * root)

    @cached_property
    def dual(self) -> FloatArray:
        """What the turned rows weigh in the mean of an effect; (m, n)."""
        return np.asarray(self.inverse * (self.system.y - self.levels @ self._b.T))

    @cached_property
    def loading(self) -> FloatArray:
        """The inverse covariance of the turned rows is diag(inverse) - loading loading'; (m, n, q)."""
        weighted = self.inverse[:, :, None] * self._b * self.columns[:, None, :]
        return np.asarray(weighted @ np.linalg.inv(self._inner).transpose(0, 2, 1))
