"""The belief of a study: per outcome a mixture of Gaussians, averaged over everything that is not known.

The shapes (r, E) and the centre c0 of the sizes belong to all outcomes, so their weights multiply over
the outcomes; given these, outcomes are independent. A probability of a belief is exact but for components
whose weights sum to less than DROPPED, which can change it by no more than that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.features import Features, Points
from sidestep.studies.learning.observations import Observation, Sums
from sidestep.studies.learning.posterior import Posterior, Shape, Solution, Told, shapes_of
from sidestep.studies.learning.prior import EXCESS, LEVEL, NOISE, S0, Prior, log_normal

DROPPED = 1e-4  # sum of the weights of components of an outcome that are left out
ROUGHLY = 5  # points of a noise that was told roughly

Limits = tuple[float | None, float | None]  # of an effect, in half-ranges


def told_of(
    noise: float | tuple[float, float] | None = None,
    *,
    level_told: bool = False,
    share: float = 1.0,
) -> Told:
    """What is told of an outcome: its noise (a number; a pair, 19 times in 20; None), and its level.

    share   of the level's usual s.d., for outcomes whose range is far from the baseline
    """
    if noise is None:
        grid = NOISE
    elif isinstance(noise, tuple):
        low, high = np.log(noise[0]), np.log(noise[1])
        grid = log_normal(float(np.exp((low + high) / 2)), float(high - low) / 3.92, ROUGHLY)
    else:
        grid = log_normal(noise, 0.0, 1)
        grid = type(grid)((noise,), (1.0,))
    return Told(
        grid.array, grid.log, EXCESS.array, EXCESS.log, None if level_told else LEVEL * share
    )


class Learner:
    """Takes results and knows the belief after them; the order of results does not matter."""

    def __init__(self, features: Features, told: Sequence[Told], prior: Prior) -> None:
        self.features, self.told, self.prior = features, tuple(told), prior
        self.shapes = shapes_of(prior, features)
        self.sums = [Sums() for _ in self.told]
        self._posteriors: list[Posterior | None] = [None] * len(self.told)
        self._belief: Belief | None = None

    def add(self, outcome: int, result: Observation) -> None:
        """Learn one result of an outcome."""
        self.sums[outcome].add(result)
        self._posteriors[outcome] = self._belief = None

    def belief(self) -> "Belief":
        """What is believed after all results so far."""
        if self._belief is None:
            posteriors = []
            for number, told in enumerate(self.told):
                known = self._posteriors[number]
                if known is None:
                    rows = self.sums[number].table()
                    known = Posterior(self.features, self.prior, self.shapes, told, rows)
                    self._posteriors[number] = known
                posteriors.append(known)
            self._belief = Belief(self.features, self.prior, self.shapes, posteriors)
        return self._belief


@dataclass(frozen=True)
class Mixture:
    """The components of one outcome that matter; every array has one number per component.

    shape, size, noise, drift   indices of their hyperparameters
    weight                      sums to 1
    """

    shape: IntArray
    size: IntArray
    noise: IntArray
    drift: IntArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.weight)


class Belief:
    """What is believed of all outcomes after some results."""

    def __init__(
        self,
        features: Features,
        prior: Prior,
        shapes: Sequence[Shape],
        posteriors: Sequence[Posterior],
    ) -> None:
        self.features, self.prior, self.shapes, self.posteriors = (
            features,
            prior,
            tuple(shapes),
            tuple(posteriors),
        )
        away = np.log(prior.sizes_given_centre)  # (centres, sizes)
        self._tables = [
            self._table(each) for each in self.posteriors
        ]  # log likelihood of (shape, size)
        given = [
            logsumexp(away + table[:, None, :], axis=2) for table in self._tables
        ]  # (shapes, centres)
        joint = np.array([shape.log_weight for shape in self.shapes])[:, None] + prior.centres.log
        joint = joint + sum(given)
        self.evidence = float(logsumexp(joint))
        self.joint = np.exp(joint - self.evidence)  # weights of (shape, centre)
        # chances of a size given shape and centre, of every outcome; (shapes, centres, sizes)
        self._sizes = [
            np.exp(away + table[:, None, :] - norm[:, :, None])
            for table, norm in zip(self._tables, given, strict=True)
        ]
        self.mixtures = [self._mixture(number) for number in range(len(self.posteriors))]

    @staticmethod
    def _logs(posterior: Posterior) -> FloatArray:
        drift = posterior.prior.drift.log
        return np.asarray(posterior.log_likelihood + posterior.noise_log[:, None] + drift)

    def _table(self, posterior: Posterior) -> FloatArray:
        return np.asarray(logsumexp(self._logs(posterior), axis=(2, 3)))

    def _mixture(self, outcome: int) -> Mixture:
        posterior = self.posteriors[outcome]
        logs = self._logs(posterior) - self._tables[outcome][:, :, None, None]
        sizes = np.einsum("hz,hzc->hc", self.joint, self._sizes[outcome])
        weight = sizes[:, :, None, None] * np.exp(logs)
        if not posterior.moves:  # drift has no column yet: one component stands for all
            weight = np.concatenate(
                [weight.sum(axis=3, keepdims=True), np.zeros_like(weight[..., 1:])], axis=3
            )
        order = np.argsort(weight, axis=None, kind="stable")
        dropped = np.searchsorted(np.cumsum(weight.ravel()[order]), DROPPED)
        kept = np.sort(order[dropped:])
        indices = np.unravel_index(kept, weight.shape)
        alive = weight.ravel()[kept]
        shape, size, noise, drift = (np.asarray(each) for each in indices)
        return Mixture(shape, size, noise, drift, alive / alive.sum())

    def solved(self, outcome: int) -> list[tuple[IntArray, int, Solution]]:
        """Components of an outcome by system."""
        if outcome not in self._solved:
            mixture = self.mixtures[outcome]
            self._solved[outcome] = self.posteriors[outcome].solved(
                mixture.shape, mixture.size, mixture.noise, mixture.drift
            )
        return self._solved[outcome]

    @cached_property
    def _solved(self) -> dict[int, list[tuple[IntArray, int, Solution]]]:
        return {}

    def given(self, outcome: int, parts: FloatArray) -> FloatArray:
        """The average of a number per component given shape and centre; (shapes, centres, K).

        Where no component of a shape is kept the weight of the shape is below DROPPED.
        """
        mixture = self.mixtures[outcome]
        shapes, sizes = len(self.shapes), len(self.prior.centres.values)
        cell = mixture.shape * sizes + mixture.size
        total = np.bincount(cell, mixture.weight, shapes * sizes)
        share = np.zeros((shapes * sizes, len(mixture)))
        share[cell, np.arange(len(mixture))] = mixture.weight / total[cell]
        table = (share @ parts).reshape(shapes, sizes, -1)
        chance = self._sizes[outcome] * (total.reshape(shapes, 1, sizes) > 0)
        norm = chance.sum(axis=2, keepdims=True)
        return np.asarray(np.einsum("hzc,hck->hzk", chance / np.where(norm > 0, norm, 1.0), table))

    def at(self, points: Points) -> "Effects":
        """Effects of settings: changes from the baseline in the same context."""
        return Effects(
            self,
            points.features - points.baseline,
            points.place,
            points.home,
            points.missing,
            points.missing_home,
            levelled=False,
        )

    def values(self, points: Points) -> "Effects":
        """Expected results of settings as they would be measured now: levels and effects."""
        usual = self.features.usual
        count = len(points)
        home = np.full(count, usual.place[0]), np.full(count, usual.missing[0])
        return Effects(
            self, points.features, points.place, home[0], points.missing, home[1], levelled=True
        )

    def noise(self, outcome: int) -> float:
        """S.d. of one result, averaged over what it may be."""
        posterior, mixture = self.posteriors[outcome], self.mixtures[outcome]
        return float(np.sqrt(mixture.weight @ posterior.single(mixture.noise) ** 2))


class Effects:
    """Effects of K settings on every outcome (or, levelled, their values) as mixtures; in half-ranges."""

    def __init__(
        self,
        belief: Belief,
        rows: FloatArray,
        place: IntArray,
        home: IntArray,
        missing: FloatArray,
        missing_home: FloatArray,
        *,
        levelled: bool,
    ) -> None:
        self.belief, self.rows, self.place, self.home = belief, rows, place, home
        self.missing, self.missing_home, self.levelled = missing, missing_home, levelled
        self._loads: dict[tuple[int, int], FloatArray] = {}
        self._owns: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._parts: dict[int, tuple[FloatArray, FloatArray]] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def prior_variance(self, shape: Shape) -> FloatArray:
        """Prior variance of the effects, in c^2; (K,)."""
        moved = self.place != self.home
        own = 2 * shape.own**2 + self.belief.prior.joint**2 * (self.missing + self.missing_home)
        return np.asarray(S0**2 * ((self.rows**2) @ shape.variances + moved * own))

    def prior_covariance(self, chosen: IntArray, others: "Effects", shape: Shape) -> FloatArray:
        """Prior covariance of some effects with other effects, in c^2; (chosen, K)."""
        smooth = (self.rows[chosen] * shape.variances) @ others.rows.T
        size, left_out = shape.own**2, self.belief.prior.joint**2
        here = size + left_out * self.missing[chosen]
        there = size + left_out * self.missing_home[chosen]
        place, home = self.place[chosen][:, None], self.home[chosen][:, None]
        own = here[:, None] * ((place == others.place).astype(float) - (place == others.home))
        own -= there[:, None] * ((home == others.place).astype(float) - (home == others.home))
        return np.asarray(S0**2 * (smooth + own))

    def loads(self, outcome: int, shape_number: int, solution: Solution) -> FloatArray:
        """Prior covariance of the effects with the turned rows, in c^2; (K, n)."""
        key = (outcome, id(solution.system))
        if key not in self._loads:
            design, shape = self.belief.posteriors[outcome].design, self.belief.shapes[shape_number]
            if outcome not in self._owns:
                missing = self.missing, self.missing_home
                self._owns[outcome] = design.own(self.place, self.home, missing)
            own, left_out = self._owns[outcome]
            cross = (self.rows * shape.variances) @ design.features.T
            cross += shape.own**2 * own + self.belief.prior.joint**2 * left_out
            self._loads[key] = (cross * solution.system.root) @ solution.system.vectors * S0**2
        return self._loads[key]

    def parts(self, outcome: int) -> tuple[FloatArray, FloatArray]:
        """Means and s.d. of every component; (m, K) each."""
        if outcome not in self._parts:
            count = len(self.belief.mixtures[outcome])
            mean, variance = np.zeros((2, count, len(self)))
            for numbers, shape, solution in self.belief.solved(outcome):
                size2 = solution.size2[:, None]
                loads = self.loads(outcome, shape, solution)
                mean[numbers] = size2 * (solution.dual @ loads.T)
                spread = size2 * self.prior_variance(self.belief.shapes[shape])
                spread -= size2**2 * (solution.inverse @ (loads**2).T)
                now = solution.now if self.levelled else None
                if now is not None:
                    mean[numbers] += (solution.levels @ now)[:, None]
                for column in range(solution.loading.shape[2]):
                    part = size2 * (solution.loading[:, :, column] @ loads.T)
                    if now is not None:
                        part -= (now @ solution.level_root[:, :, column].T)[:, None]
                    spread += part**2
                variance[numbers] = spread
            self._parts[outcome] = mean, np.sqrt(np.maximum(variance, 0.0))
        return self._parts[outcome]

    def covariance(self, outcome: int, chosen: IntArray, others: "Effects") -> FloatArray:
        """Covariance of some effects with others, or with levelled values; (chosen, K)."""
        found = np.zeros((len(chosen), len(others)))
        weight = self.belief.mixtures[outcome].weight
        for numbers, shape, solution in self.belief.solved(outcome):
            here = self.loads(outcome, shape, solution)[chosen]
            there = others.loads(outcome, shape, solution)
            share, size2 = weight[numbers], solution.size2
            prior = self.prior_covariance(chosen, others, self.belief.shapes[shape])
            found += (share @ size2) * prior
            found -= (here * ((share * size2**2) @ solution.inverse)) @ there.T
            for column in range(solution.loading.shape[2]):
                load = solution.loading[:, :, column]
                mine, yours = size2[:, None] * (load @ here.T), size2[:, None] * (load @ there.T)
                if others.levelled:
                    yours -= (solution.now @ solution.level_root[:, :, column].T)[:, None]
                if self.levelled:
                    mine -= (solution.now @ solution.level_root[:, :, column].T)[:, None]
                found += (share[:, None] * mine).T @ yours
        means, theirs = self.parts(outcome)[0][:, chosen], others.parts(outcome)[0]
        found += (weight[:, None] * (means - weight @ means)).T @ (theirs - weight @ theirs)
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
        return np.asarray(self.belief.mixtures[outcome].weight @ self._below(outcome, value))

    def _below(self, outcome: int, value: FloatArray | float) -> FloatArray:
        mean, spread = self.parts(outcome)
        gap = value - mean
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(spread > 0, gap / spread, np.where(gap >= -1e-12, np.inf, -np.inf))
        return np.asarray(ndtr(z))

    def quantile(self, outcome: int, chance: float) -> FloatArray:
        """The value that an effect is below with some chance; (K,)."""
        mean, spread = self.parts(outcome)
        ends = mean + ndtri(chance) * spread
        low, high = ends.min(axis=0), ends.max(axis=0)  # the chance is below, and above, at these
        middle: FloatArray = np.clip(
            self.mean(outcome) + ndtri(chance) * self.spread(outcome), low, high
        )
        weight = self.belief.mixtures[outcome].weight
        for _ in range(40):
            z = (middle - mean) / np.maximum(spread, 1e-300)
            gap = weight @ ndtr(z) - chance
            high = np.where(gap >= 0, middle, high)
            low = np.where(gap <= 0, middle, low)
            if (np.abs(gap) < 1e-6).all() or (high - low < 1e-9).all():
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
        chance: FloatArray = np.ones((len(self.belief.mixtures[outcome]), len(self)))
        if high is not None:
            chance = self._below(outcome, high + 1e-12)
        if low is not None:
            chance = chance - self._below(outcome, low - 1e-12)
        return chance

    def within(self, outcome: int, limits: Limits) -> FloatArray:
        """Chance that an effect is within limits; (K,)."""
        return np.asarray(
            self.belief.mixtures[outcome].weight @ self._within_parts(outcome, limits)
        )

    def all_within(self, limits: Sequence[Limits | None]) -> FloatArray:
        """Chance that all effects are within their limits (None: none); (K,)."""
        belief = self.belief
        shapes, centres = belief.joint.shape
        together = np.ones((shapes, centres, len(self)))
        for outcome, pair in enumerate(limits):
            if pair is None or pair == (None, None):
                continue
            together *= belief.given(outcome, self._within_parts(outcome, pair))
        return np.asarray(np.einsum("hz,hzk->k", belief.joint, together))
