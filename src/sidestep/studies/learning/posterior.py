"""One outcome: exact Gaussians given shape (r, E), size c, noise and drift, with their likelihoods.

A result is  y = level + blocks + drift + effect(place) + noise,  a change is
y = effect(place) - effect(against) + noise. Given the hyperparameters all is Gaussian. With D the noise
of the rows and c^2 K their prior covariance, one decomposition  D^-1/2 K D^-1/2 = U diag(v) U'  serves
every c, every noise of the same proportions and every drift: levels, blocks, drift and knowledge that
does not grow with c are few columns more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.features import Features, Kind
from sidestep.studies.learning.knowledge import Knowledge, Part
from sidestep.studies.learning.prior import BLOCK, S0, Prior
from sidestep.studies.learning.rows import BoolArray, Rows

STEP, KNOWN = 1, 3  # kinds of columns: a step of the level; knowledge (0 is the level, 2 a block)


@dataclass(frozen=True, eq=False)
class Shape:
    """One way in which effects may be: r, E, and the part of the prior; for all outcomes."""

    part: Part
    bend: float
    own: float
    variances: FloatArray  # (P,), in c^2 S0^2
    log_weight: float


def shapes_of(prior: Prior, features: Features, parts: Sequence[Part]) -> list[Shape]:
    """Every (r, E) of every part."""
    has_words = bool((features.kinds == Kind.WORDS).any())
    words = (
        list(zip(prior.words.values, prior.words.log, strict=True)) if has_words else [(1.0, 0.0)]
    )
    return [
        Shape(
            part,
            bend,
            own,
            prior.variances(features, bend, word),
            float(np.log(part.weight) + lw + lb + lo),
        )
        for part in parts
        for word, lw in words
        for bend, lb in zip(prior.bends.values, prior.bends.log, strict=True)
        for own, lo in zip(prior.owns.values, prior.owns.log, strict=True)
    ]


@dataclass(frozen=True)
class Told:
    """What is told of an outcome's noise and level.

    noise     s.d. of one result at the points of its grid, with logarithms of their weights
    excess    s.d. of the scatter beyond told errors, at its points, in the median told error
    level     s.d. of the level around its zero; None: that of one result
    reach     the values that are believed without checking
    """

    noise: FloatArray
    noise_log: FloatArray
    excess: FloatArray
    excess_log: FloatArray
    level: float | None = 2.0
    reach: tuple[float, float] = (-1.0, 1.0)


class Cell(NamedTuple):
    """Indices of hyperparameters, one of each per component; (m,)."""

    shape: IntArray
    size: IntArray
    noise: IntArray
    drift: IntArray
    variant: IntArray


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
            kinds.append(STEP)
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
        first = (place[:, None] == self.place).astype(float) - (place[:, None] == self.against)
        second = (against[:, None] == self.place).astype(float) - (against[:, None] == self.against)
        return first - second, missing[0][:, None] * first - missing[1][:, None] * second

    @cached_property
    def own_rows(self) -> tuple[FloatArray, FloatArray]:
        """The same of the rows with one another; (n, n)."""
        return self.own(self.place, self.against, (self.missing, self.missing_against))


class System:
    """The rows of an outcome, decomposed for one shape and variant and noises of the same proportions."""

    def __init__(
        self, design: Design, shape: Shape, known: Knowledge | None, noise: FloatArray
    ) -> None:
        self.design, self.shape, self.known = design, shape, known
        self.variances = shape.variances if known is None else shape.variances * known.share
        own, left_out = design.own_rows
        kernel = (design.features * self.variances) @ design.features.T
        kernel += shape.own**2 * own + design.joint * left_out
        self.root = 1.0 / np.sqrt(noise)
        values, self.vectors = np.linalg.eigh(self.root[:, None] * kernel * self.root * S0**2)
        self.values = np.maximum(values, 0.0)
        turned = self.vectors.T * self.root
        self.y, self.scaled = turned @ design.rows.mean, np.zeros(len(noise))
        self.columns, self.kinds, self.now = turned @ design.columns, design.kinds, design.now
        if known is not None:
            self.y = self.y - turned @ (design.features @ known.mean)
            self.scaled = turned @ (design.features @ known.scaled)
            more = known.root.shape[1]
            self.columns = np.hstack([self.columns, turned @ (design.features @ known.root)])
            self.kinds = np.concatenate([self.kinds, np.full(more, KNOWN)])
            self.now = np.concatenate([self.now, np.zeros(more)])
        self.log_noise = float(np.log(noise).sum())


class Posterior:
    """What some rows of one outcome say, for every combination of hyperparameters."""

    def __init__(
        self,
        features: Features,
        prior: Prior,
        shapes: Sequence[Shape],
        outcome: int,
        told: Told,
        rows: Rows,
    ) -> None:
        self.prior, self.shapes, self.told, self.rows = prior, shapes, told, rows
        self.sizes = prior.centres.array
        self.design = Design(features, rows, prior)
        self.variants = [shape.part.variants(outcome) for shape in shapes]
        self._plain = rows.told == 0.0
        self._even = bool(self._plain.all() and (rows.extra == 0).all())
        if self._plain.all():
            self.noises = np.column_stack([told.noise, np.zeros_like(told.noise)])
            self.noise_log = told.noise_log
        else:
            middle = np.sqrt(np.median(rows.told[~self._plain]))
            some = bool(self._plain.any())
            noise, log = (told.noise, told.noise_log) if some else (told.noise[:1], np.zeros(1))
            grid = np.meshgrid(noise, told.excess * middle, indexing="ij")
            self.noises = np.column_stack([each.ravel() for each in grid])
            self.noise_log = (log[:, None] + told.excess_log).ravel()
        self.moves = bool((self.design.kinds == STEP).any())  # whether a drift could show
        self._systems: dict[tuple[int, int, int], System] = {}
        self.known: dict[Any, dict[tuple[int, ...], Any]] = {}  # what was worked out of settings
        self.logs = self._logs()  # (shapes, sizes, noises, drifts, variants)

    def noise_of(self, point: int) -> tuple[FloatArray, float]:
        """Variance of the rows at a point of the noise grid as proportions times a scale."""
        rows = self.rows
        own, excess = self.noises[point] ** 2
        if self._even:
            return 1.0 / rows.weight, float(own)
        one = np.where(self._plain, own, rows.told + excess)
        return one / rows.weight + rows.extra, 1.0

    def system(self, shape: int, point: int, variant: int) -> System:
        """The rows decomposed; plain results share one system for all noises."""
        key = (shape, 0 if self._even else point, variant)
        if key not in self._systems:
            known = self.variants[shape][variant][1]
            noise = self.noise_of(point)[0]
            self._systems[key] = System(self.design, self.shapes[shape], known, noise)
        return self._systems[key]

    def _column_scales(self, cell: Cell, kinds: IntArray) -> FloatArray:
        """Prior s.d. of level, steps, blocks and knowledge; (m, q)."""
        noise = self.single(cell.noise)
        drift = self.prior.drift.array[cell.drift] * noise
        level = noise if self.told.level is None else np.full(len(noise), self.told.level)
        one = np.ones(len(noise))
        return np.asarray(np.column_stack([level, drift, BLOCK * one, one])[:, kinds])

    def single(self, points: IntArray) -> FloatArray:
        """S.d. of one result at points of the noise grid."""
        if self._plain.any() or not len(self.rows):
            return np.asarray(self.noises[points, 0])
        return np.asarray(np.sqrt(np.median(self.rows.told) + self.noises[points, 1] ** 2))

    def _within(self, point: int) -> float:
        """Log likelihood of the scatter within the rows."""
        rows = self.rows
        own, excess = self.noises[point] ** 2
        variance = np.where(self._plain, own, rows.told + excess)
        more = (rows.count - 1) * np.log(2 * np.pi * variance) + np.log(2 * np.pi * rows.weight)
        return float(-0.5 * (more - rows.logs + rows.scatter / variance)[rows.side == 0].sum())

    def _logs(self) -> FloatArray:
        """Log likelihoods, with the prior weights of all but shape and size."""
        points, drifts = len(self.noises), len(self.prior.drift.values) if self.moves else 1
        most = max(len(each) for each in self.variants)
        found = np.zeros((len(self.shapes), len(self.sizes), points, drifts, most))
        for shape, variants in enumerate(self.variants):
            weights = np.array([weight for weight, _ in variants] + [0.0] * (most - len(variants)))
            with np.errstate(divide="ignore"):
                found[shape] += np.log(weights)
        found += self.noise_log[:, None, None]
        if drifts > 1:
            found += self.prior.drift.log[:, None]
        if len(self.rows):
            cell = Cell(*np.nonzero(np.isfinite(found)))
            for numbers, solution in self.solved(cell):
                some = tuple(each[numbers] for each in cell)
                found[some] += solution.log_likelihood
            found += np.array([self._within(point) for point in range(points)])[:, None, None]
        return found

    def solved(self, cell: Cell) -> list[tuple[IntArray, "Solution"]]:
        """Components grouped by what they share: their numbers and their solution."""
        point = np.zeros_like(cell.noise) if self._even else cell.noise
        still = np.full(len(point), True)
        if self.moves:
            still = self.prior.drift.array[cell.drift] == 0.0
        scales = np.array([self.noise_of(p)[1] for p in range(len(self.noises))])
        keys = np.stack([cell.shape, point, cell.variant, still.astype(int)])
        group = np.ravel_multi_index(tuple(keys), tuple(keys.max(axis=1) + 1))
        found: list[tuple[IntArray, Solution]] = []
        for each in np.unique(group):
            numbers = np.flatnonzero(group == each)
            some = Cell(*(index[numbers] for index in cell))
            system = self.system(int(some.shape[0]), int(some.noise[0]), int(some.variant[0]))
            kept = system.kinds != STEP if still[numbers[0]] else np.full(len(system.kinds), True)
            scale = self._column_scales(some, system.kinds)
            solution = Solution(system, self.sizes[some.size], scales[some.noise], scale, kept)
            found.append((numbers, solution))
        return found


class Solution:
    """The posterior of several components that share a system; m of them, n rows, q columns."""

    def __init__(
        self,
        system: System,
        size: FloatArray,
        scale: FloatArray,
        columns: FloatArray,
        kept: BoolArray,
    ) -> None:
        self.system, self.size, self.kept = system, size, kept
        self.size2 = size2 = size**2
        self.columns = columns[:, kept]
        b = system.columns[:, kept]  # (n, q)
        q = b.shape[1]
        self._b = b
        self.y = system.y - S0 * size[:, None] * system.scaled  # (m, n)
        spread = size2[:, None] * system.values + scale[:, None]
        self.inverse = 1.0 / spread  # (m, n)
        pairs = (b[:, :, None] * b[:, None, :]).reshape(-1, q * q)
        inner = (self.inverse @ pairs).reshape(-1, q, q)
        inner *= self.columns[:, :, None] * self.columns[:, None, :]
        inner += np.eye(q)
        self._inner = np.linalg.cholesky(inner)  # (m, q, q)
        right = ((self.inverse * self.y) @ b) * self.columns
        self._half = np.linalg.solve(self._inner, right[:, :, None])[:, :, 0]
        self.log_likelihood = -0.5 * (
            np.log(2 * np.pi * spread).sum(axis=1)
            + system.log_noise
            + 2 * np.log(np.diagonal(self._inner, axis1=1, axis2=2)).sum(axis=1)
            + (self.inverse * self.y**2).sum(axis=1)
            - (self._half**2).sum(axis=1)
        )

    @cached_property
    def levels(self) -> FloatArray:
        """Means of level, steps, blocks and knowledge; (m, q)."""
        back = np.linalg.solve(self._inner.transpose(0, 2, 1), self._half[:, :, None])[:, :, 0]
        return np.asarray(self.columns * back)

    @cached_property
    def level_root(self) -> FloatArray:
        """A root of their covariance: its rows times its rows; (m, q, q)."""
        root = np.linalg.inv(self._inner).transpose(0, 2, 1)
        return np.asarray(self.columns[:, :, None] * root)

    @cached_property
    def dual(self) -> FloatArray:
        """What the turned rows weigh in the mean of an effect; (m, n)."""
        return np.asarray(self.inverse * (self.y - self.levels @ self._b.T))

    @cached_property
    def loading(self) -> FloatArray:
        """The inverse covariance of the turned rows is diag(inverse) - loading loading'; (m, n, q)."""
        weighted = self.inverse[:, :, None] * self._b * self.columns[:, None, :]
        return np.asarray(weighted @ np.linalg.inv(self._inner).transpose(0, 2, 1))

    def row_fit(self) -> tuple[FloatArray, FloatArray]:
        """Of the inverse covariance S^-1 of the rows: S^-1 y, and its diagonal; (m, n) each."""
        back = self.system.vectors.T * self.system.root  # (n, n), turned to rows
        first = self.dual @ back
        diagonal = self.inverse @ back**2
        diagonal -= ((back.T @ self.loading) ** 2).sum(axis=2)
        return first, diagonal
