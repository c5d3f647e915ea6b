"""One outcome: exact Gaussians given shape (r, E), size c, noise and drift, with their likelihoods.

A result is  y = level + blocks + drift + effect(place) + noise,  a change is
y = effect(place) - effect(against) + noise. Given the hyperparameters all is Gaussian. With D the noise
of the rows and c^2 K their prior covariance, one decomposition  D^-1/2 K D^-1/2 = U diag(v) U'  serves
every c, every noise of the same proportions and every drift: levels, blocks, drift and knowledge that
does not grow with c are few columns more. K is a sum of few terms (prior.terms, own effects) that grow
with r^2, the variance of words and E^2, so the terms are worked out once and all decompositions together.
"""

from collections.abc import Callable, Sequence
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
    """One way in which effects may be: r, E, and the part of the prior; for all outcomes.

    factors   of the terms of the prior covariance, in c^2 S0^2; E^2 is the last
    """

    part: Part
    bend: float
    own: float
    factors: FloatArray  # (T + 1,)
    log_weight: float


def shapes_of(prior: Prior, features: Features, parts: Sequence[Part]) -> list[Shape]:
    """Every (r, E) of every part."""
    has_words = bool((features.kinds == Kind.WORDS).any())
    words = (
        list(zip(prior.words.values, prior.words.log, strict=True)) if has_words else [(1.0, 0.0)]
    )
    terms = len(prior.terms(features))
    return [
        Shape(
            part,
            bend,
            own,
            np.append(prior.growth(bend, word)[:terms], own**2),
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
    """The rows of an outcome as arrays that no hyperparameter changes.

    Rows of one effect (the same setting against the same reference, in other epochs or blocks, or with
    other errors) are a group: features, places and kernels have one entry a group.

    group    number of the group of every row; (n,)
    member   whether a row is in a group; (n, groups)
    """

    def __init__(self, features: Features, rows: Rows, prior: Prior) -> None:
        self.rows = rows
        points = features.at(rows.place)
        change = rows.against >= 0
        usual = features.usual.place[0]
        # a plain result is a change from the baseline in the usual context, whose result is the level
        against = np.where(change, rows.against, usual)
        first, self.group = _groups(points.place, against)
        self.member = (self.group[:, None] == np.arange(len(first))).astype(float)
        points, some = points.only(first), change[first]
        reference = features.at(np.where(some, rows.against[first], points.home))
        self.features = points.features - np.where(some[:, None], reference.features, 0.0)
        self.place, self.against = points.place, against[first]
        self.missing = points.missing
        self.missing_against = np.where(some, reference.missing, features.usual.missing[0])
        self.columns, self.kinds, self.now = self._columns(~change)
        self.joint = prior.joint**2
        self.terms = prior.terms(features)  # (T, P)

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

    def variances(self, known: Knowledge | None) -> FloatArray:
        """Prior variances of the features' weights, by term; (T, P)."""
        return self.terms if known is None else self.terms * known.share

    def kernels(self, known: Knowledge | None) -> FloatArray:
        """The terms of the prior covariance of the groups, in c^2 S0^2; (T + 1, m, m)."""
        found = (self.features * self.variances(known)[:, None]) @ self.features.T
        same = self.place[:, None] == self.place, self.place[:, None] == self.against
        first = same[0].astype(float) - same[1]
        second = same[1].T.astype(float) - (self.against[:, None] == self.against)
        found[0] += self.joint * (
            self.missing[:, None] * first - self.missing_against[:, None] * second
        )
        return np.concatenate([found, (first - second)[None]])


def _groups(place: IntArray, against: IntArray) -> tuple[IntArray, IntArray]:
    """The first row of every pair of places, in the order of the rows, and the group of every row."""
    pairs = np.column_stack([place, against])
    _, first, inverse = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), dtype=int)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.ravel()]


class System:
    """The rows of an outcome, decomposed: one system for every shape and noise proportions; R of them.

    Turned rows are those of the groups' means, whose prior covariance is diag(values), then a few that
    hold what the rows of a group differ by, of which no effect knows; `left` more have nothing in them.
    """

    def __init__(
        self, design: Design, known: Knowledge | None, factors: FloatArray, noise: FloatArray
    ) -> None:
        self.design, self.known, self.factors = design, known, factors  # (R, T + 1)
        self.precision = 1.0 / noise  # (R, n)
        self.sums = self.precision @ design.member  # (R, m)
        root = np.sqrt(self.sums)
        kernel = np.tensordot(factors, design.kernels(known), 1)
        kernel *= S0**2 * root[:, :, None] * root[:, None, :]
        values, vectors = np.linalg.eigh(kernel)
        turn = vectors.transpose(0, 2, 1) * root[:, None, :]  # means of groups to turned rows
        columns, self.kinds, self.now = design.columns, design.kinds, design.now
        if known is not None:
            more = (design.features @ known.root)[design.group]
            columns = np.concatenate([columns, more], axis=1)
            self.kinds = np.concatenate([self.kinds, np.full(more.shape[1], KNOWN)])
            self.now = np.concatenate([self.now, np.zeros(more.shape[1])])
        self.rows = np.column_stack([design.rows.mean, columns])  # (n, 1 + q)
        means = self._means(self.precision, self.sums)
        turned, between = turn @ means, self._between(means)
        self.left = len(design.rows) - turn.shape[1] - between.shape[1]
        self.values, self.turn = np.maximum(values, 0.0), turn
        if between.shape[1]:
            self.values = np.pad(self.values, ((0, 0), (0, between.shape[1])))
            self.turn = np.pad(turn, ((0, 0), (0, between.shape[1]), (0, 0)))
            turned = np.concatenate([turned, between], axis=1)
        self.y, self.columns = turned[:, :, 0], turned[:, :, 1:]
        self.scaled: FloatArray | None = None
        if known is not None:
            self.y = self.y - self.turn @ (design.features @ known.mean)
            self.scaled = self.turn @ (design.features @ known.scaled)
        self.log_noise = np.log(noise).sum(axis=1)

    def _means(self, precision: FloatArray, sums: FloatArray) -> FloatArray:
        """Means of the rows of every group; (..., m, 1 + q)."""
        weighed = np.swapaxes(precision[..., :, None] * self.rows, -1, -2) @ self.design.member
        return np.asarray(np.swapaxes(weighed, -1, -2) / sums[..., :, None])

    def _between(self, means: FloatArray) -> FloatArray:
        """What the rows of groups differ by, in as few rows as there are columns; (R, x, 1 + q)."""
        if len(self.design.rows) == means.shape[-2]:
            return np.zeros((len(means), 0, means.shape[-1]))
        apart = self.rows - means[:, self.design.group]
        return np.asarray(np.linalg.qr(np.sqrt(self.precision)[:, :, None] * apart, mode="r"))

    def rows_of(self, number: int, heads: FloatArray, scale: float) -> FloatArray:
        """The inverse covariance without columns, times y and the columns, at the rows; (n, 1 + q).

        heads   the same at the turned rows of the groups
        """
        precision, sums, group = self.precision[number], self.sums[number], self.design.group
        apart = self.rows - self._means(precision, sums)[group]
        back = self.turn[number].T @ heads / sums[:, None]
        return np.asarray(precision[:, None] * (apart / scale + back[group]))

    def diagonal_of(self, number: int, inverse: FloatArray, scale: float) -> FloatArray:
        """The diagonal of the inverse covariance without columns; (n,)."""
        precision, sums, group = self.precision[number], self.sums[number], self.design.group
        share = precision / sums[group]
        own = inverse @ self.turn[number] ** 2 / sums
        return np.asarray(precision * ((1 - share) / scale + share * own[group]))


def log_sum(logs: FloatArray, axis: int | tuple[int, ...]) -> FloatArray:
    """Logarithm of the sum of exponentials."""
    most = np.maximum(logs.max(axis=axis, keepdims=True), -1e300)
    return np.asarray(np.log(np.exp(logs - most).sum(axis=axis)) + np.squeeze(most, axis))


def _roots(inner: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A root W of the inverse of every matrix, W W', and the logarithm of its determinant."""
    if inner.shape[-1] == 1:
        one = 1.0 / np.sqrt(inner)
        return one, np.asarray(-2 * np.log(one[..., 0, 0]))
    lower = np.linalg.cholesky(inner)
    turned = np.linalg.inv(lower).swapaxes(-1, -2)
    return turned, 2 * np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)


class Components:
    """Every size, noise and drift of a system: R systems, S sizes, N noises, D drifts, n rows, q columns.

    scale     of the noise; (N,)
    columns   prior s.d. of the columns; (R or 1, N, D, Q), of which some are kept
    """

    def __init__(
        self,
        system: System,
        sizes: FloatArray,
        scale: FloatArray,
        columns: FloatArray,
        kept: BoolArray,
    ) -> None:
        self.system, self.sizes, self.scale, self.kept = system, sizes, scale, kept
        self.columns = columns = columns[:, None, :, :, kept]  # (R or 1, 1, N, D, q)
        count, rows = system.values.shape
        shape = (count, len(sizes), len(scale))
        b = system.columns[:, :, kept]  # (R, n, q)
        q = b.shape[2]
        self.b = b
        spread = (sizes**2)[:, None, None] * system.values[:, None, None] + scale[:, None]
        self.inverse = 1.0 / spread  # (R, S, N, n)
        self.y = np.broadcast_to(system.y[:, None], (count, len(sizes), rows))
        if system.scaled is not None:
            self.y = self.y - S0 * sizes[:, None] * system.scaled[:, None]
        weighted = self.inverse * self.y[:, :, None]
        pairs = (b[:, :, :, None] * b[:, :, None, :]).reshape(count, rows, q * q)
        flat = (count, len(sizes) * len(scale), rows)
        inner = (self.inverse.reshape(flat) @ pairs).reshape(*shape, 1, q, q)
        inner = inner * (columns[..., :, None] * columns[..., None, :]) + np.eye(q)
        right = (weighted.reshape(flat) @ b).reshape(*shape, 1, q) * columns
        self.roots, log_determinant = _roots(inner)  # (R, S, N, D, q, q)
        half = (right[..., None, :] @ self.roots)[..., 0, :]
        self.levels = columns * (half[..., None, :] @ self.roots.swapaxes(-1, -2))[..., 0, :]
        fixed = np.log(spread).sum(axis=3) + (weighted * self.y[:, :, None]).sum(axis=3)
        # the rows that are left over have no prior covariance, and nothing in them
        fixed = fixed + system.left * np.log(scale) + system.log_noise[:, None, None]
        fixed = fixed + len(system.rows) * np.log(2 * np.pi)
        self.log_likelihood = -0.5 * (fixed[..., None] + log_determinant - (half**2).sum(axis=-1))

    def only(
        self, system: IntArray, size: IntArray, noise: IntArray, drift: IntArray
    ) -> "Solution":
        """Some of the components."""
        each = system if len(self.columns) > 1 else np.zeros_like(system)
        scale = self.columns[each, 0, noise, drift]
        return Solution(
            self.system,
            system,
            self.sizes[size],
            self.kept,
            self.inverse[system, size, noise],
            self.y[system, size],
            self.b[system],
            self.levels[system, size, noise, drift],
            scale[:, :, None] * self.roots[system, size, noise, drift],
            self.scale[noise],
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """The posterior of some components of a system; m of them, n rows, q columns.

    number       of the system of every component; (m,)
    size         (m,)
    kept         which columns of the system are used
    inverse      of the variances of the turned rows; (m, n)
    y            the turned rows; (m, n)
    b            the turned columns; (m, n, q)
    levels       means of level, steps, blocks and knowledge; (m, q)
    level_root   a root of their covariance: its rows times its rows; (m, q, q)
    scale        of the noise; (m,)
    """

    system: System
    number: IntArray
    size: FloatArray
    kept: BoolArray
    inverse: FloatArray
    y: FloatArray
    b: FloatArray
    levels: FloatArray
    level_root: FloatArray
    scale: FloatArray

    def only(self, chosen: IntArray) -> "Solution":
        """Some of the components."""
        arrays = (self.inverse, self.y, self.b, self.levels, self.level_root, self.scale)
        some = (each[chosen] for each in arrays)
        return Solution(self.system, self.number[chosen], self.size[chosen], self.kept, *some)

    @cached_property
    def size2(self) -> FloatArray:
        """Squares of the sizes; (m,)."""
        return np.asarray(self.size**2)

    @cached_property
    def dual(self) -> FloatArray:
        """What the turned rows weigh in the mean of an effect; (m, n)."""
        return np.asarray(self.inverse * (self.y - (self.b @ self.levels[:, :, None])[:, :, 0]))

    @cached_property
    def loading(self) -> FloatArray:
        """The inverse covariance of the turned rows is diag(inverse) - loading loading'; (m, n, q)."""
        return np.asarray(self.inverse[:, :, None] * (self.b @ self.level_root))

    @cached_property
    def groups(self) -> list[tuple[int, IntArray]]:
        """Systems and the components that belong to each."""
        return [(int(s), np.flatnonzero(self.number == s)) for s in np.unique(self.number)]

    def row_fit(self) -> tuple[FloatArray, FloatArray]:
        """Of the inverse covariance S^-1 of the rows: S^-1 y, and its diagonal; (m, n) each."""
        pulls, diagonals = [], []
        for one, number in enumerate(self.number.tolist()):
            scale, inverse = float(self.scale[one]), self.inverse[one]
            heads = np.column_stack([self.y[one], self.system.columns[number]]) * inverse[:, None]
            first = self.system.rows_of(number, heads, scale)
            used = first[:, 1:][:, self.kept]
            pulls.append(first[:, 0] - used @ self.levels[one])
            diagonal = self.system.diagonal_of(number, inverse, scale)
            diagonals.append(diagonal - ((used @ self.level_root[one]) ** 2).sum(axis=1))
        return np.array(pulls), np.array(diagonals)


class Table:
    """Rows of numbers that were worked out, one for every component that was needed so far."""

    def __init__(self, components: int) -> None:
        self._place = np.full(components, -1)
        self._rows: list[FloatArray] = []
        self._count = 0

    def rows(
        self, codes: IntArray, work: Callable[[IntArray], tuple[FloatArray, ...]]
    ) -> tuple[FloatArray, ...]:
        """The rows of some components; `work` gives those of the codes that are new."""
        new = codes[self._place[codes] < 0]
        if len(new) or not self._rows:
            more = work(new)
            self._place[new] = self._count + np.arange(len(new))
            self._count += len(new)
            self._rows = (
                [np.concatenate(pair) for pair in zip(self._rows, more, strict=True)]
                if self._rows
                else list(more)
            )
        place = self._place[codes]
        if len(place) == self._count and (place == np.arange(self._count)).all():
            return tuple(self._rows)
        return tuple(each[place] for each in self._rows)


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
        self.drifts = prior.drift.array if self.moves else np.zeros(1)
        self._batches: list[list[Components | None]] = []  # without and with drift
        self.tables: dict[Any, Table] = {}  # what was worked out of settings, per component
        self.logs = self._logs()  # (shapes, sizes, noises, drifts, variants)

    @cached_property
    def table(self) -> FloatArray:
        """Log likelihoods of shape and size, with the prior weights of all else."""
        return log_sum(self.logs, (2, 3, 4))

    def noise_of(self, point: int) -> tuple[FloatArray, float]:
        """Variance of the rows at a point of the noise grid as proportions times a scale."""
        rows = self.rows
        own, excess = self.noises[point] ** 2
        if self._even:
            return 1.0 / rows.weight, float(own)
        one = np.where(self._plain, own, rows.told + excess)
        return one / rows.weight + rows.extra, 1.0

    def _column_scales(self, kinds: IntArray) -> FloatArray:
        """Prior s.d. of level, steps, blocks and knowledge at every noise and drift; (N, D, q)."""
        noise = self.single(np.arange(len(self.noises)))
        found = np.ones((len(noise), len(self.drifts), 4))
        found[:, :, 0] = noise[:, None] if self.told.level is None else self.told.level
        found[:, :, STEP] = self.drifts * noise[:, None]
        found[:, :, 2] = BLOCK
        return np.asarray(found[:, :, kinds])

    def single(self, points: IntArray) -> FloatArray:
        """S.d. of one result at points of the noise grid."""
        if self._plain.any() or not len(self.rows):
            return np.asarray(self.noises[points, 0])
        return np.asarray(np.sqrt(np.median(self.rows.told) + self.noises[points, 1] ** 2))

    def _within(self) -> FloatArray:
        """Log likelihood of the scatter within the rows, at every point of the noise grid."""
        rows = self.rows
        own, excess = (self.noises**2).T[:, :, None]
        variance = np.where(self._plain, own, rows.told + excess)
        more = (rows.count - 1) * np.log(2 * np.pi * variance) + np.log(2 * np.pi * rows.weight)
        each = more - rows.logs + rows.scatter / variance
        return np.asarray(-0.5 * each[:, rows.side == 0].sum(axis=1))

    def _logs(self) -> FloatArray:
        """Log likelihoods, with the prior weights of all but shape and size."""
        most = max(len(each) for each in self.variants)
        shape = (len(self.shapes), len(self.sizes), len(self.noises), len(self.drifts), most)
        found = np.full(shape, -np.inf)
        self._number = np.zeros((len(self.shapes), most), dtype=int)  # of its system in its batch
        self._batch = np.zeros((len(self.shapes), most), dtype=int)
        weights = self.noise_log[:, None] + (self.prior.drift.log if self.moves else 0.0)
        if len(self.rows):
            weights = weights + self._within()[:, None]
        for number, (known, cells) in enumerate(self._by_knowledge()):
            likelihood = self._solve(known, [factors for factors, _ in cells])
            if known is not None and known.sizes is not None:
                likelihood = likelihood + known.sizes[:, None, None]
            for system, (_, several) in enumerate(cells):
                for shape_number, variant, weight in several:
                    self._batch[shape_number, variant] = number
                    self._number[shape_number, variant] = system
                    found[shape_number, :, :, :, variant] = (
                        likelihood[system] + weights + np.log(weight)
                    )
        return found

    def _by_knowledge(
        self,
    ) -> list[tuple[Knowledge | None, list[tuple[FloatArray, list[tuple[int, int, float]]]]]]:
        """Shapes and variants that share what is known; those that say the same share a system."""
        found: dict[int, tuple[Knowledge | None, dict[bytes, tuple[FloatArray, list[Any]]]]] = {}
        for number, variants in enumerate(self.variants):
            factors = self.shapes[number].factors
            for variant, (weight, known) in enumerate(variants):
                if weight > 0:
                    mine = found.setdefault(id(known), (known, {}))[1]
                    same = mine.setdefault(factors.tobytes(), (factors, []))[1]
                    same.append((number, variant, weight))
        return [(known, list(cells.values())) for known, cells in found.values()]

    def _solve(self, known: Knowledge | None, factors: list[FloatArray]) -> FloatArray:
        """Log likelihoods (systems, sizes, noises, drifts) of shapes that share what is known."""
        every = np.arange(len(self.noises))
        points = every[:1] if self._even else every  # plain results share a system for all noises
        noise = np.array([self.noise_of(int(point))[0] for _ in factors for point in points])
        system = System(self.design, known, np.repeat(factors, len(points), axis=0), noise)
        columns = self._column_scales(system.kinds)
        scale = (
            np.array([self.noise_of(int(point))[1] for point in every])
            if self._even
            else np.ones(1)
        )
        columns = (
            columns[None] if self._even else np.tile(columns[:, None], (len(factors), 1, 1, 1))
        )
        steps, still = system.kinds == STEP, self.drifts == 0.0
        found = np.zeros((len(factors), len(self.sizes), len(every), len(self.drifts)))
        both: list[Components | None] = []
        for drifts, kept in ((still, ~steps), (~still, steps | ~steps)):
            if not drifts.any():
                both.append(None)
                continue
            some = Components(system, self.sizes, scale, columns[:, :, drifts], kept)
            log = some.log_likelihood
            if not self._even:
                log = log.reshape(len(factors), len(points), len(self.sizes), -1).swapaxes(1, 2)
            found[..., drifts] = log
            both.append(some)
        self._batches.append(both)
        return found

    def solved(self, cell: Cell) -> list[tuple[IntArray, Solution]]:
        """Components by what they share: their numbers and their solution."""
        batch = self._batch[cell.shape, cell.variant]
        system = self._number[cell.shape, cell.variant]
        noise = cell.noise
        if not self._even:
            system, noise = system * len(self.noises) + noise, np.zeros_like(noise)
        moving = self.drifts[cell.drift] != 0.0
        kinds = self.drifts != 0.0
        place = np.where(kinds, np.cumsum(kinds), np.cumsum(~kinds))[cell.drift] - 1
        found: list[tuple[IntArray, Solution]] = []
        for number, both in enumerate(self._batches):
            for some, mine in zip(both, (~moving, moving), strict=True):
                which = np.flatnonzero(mine & (batch == number))
                if some is not None and len(which):
                    parts = system[which], cell.size[which], noise[which], place[which]
                    found.append((which, some.only(*parts)))
        return found
