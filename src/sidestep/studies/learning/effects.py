"""Effects of settings, or their values, as mixtures of Gaussians: means, chances, quantiles, covariances.

Settings are differences of two rows of features. What the results say of them is worked out once for
every component of a belief, and kept with the settings.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.features import Features, Points
from sidestep.studies.learning.posterior import KNOWN, Cell, Posterior, Solution, System
from sidestep.studies.learning.prior import S0, Prior
from sidestep.studies.learning.rows import BoolArray

if TYPE_CHECKING:
    from sidestep.studies.learning.belief import Belief

MINOR = 0.05  # sum of the weights of components that are left out where questions are compared
POINTS, WEIGHTS = np.polynomial.hermite_e.hermegauss(24)  # of the average over a level
CLOSE = 1e-10  # accuracy of a quantile, in chance or in half-ranges

Limits = tuple[float | None, float | None]  # of an effect, in half-ranges


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

    def __init__(self, belief: "Belief", points: Points, reach: Reach, *, levelled: bool) -> None:
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
