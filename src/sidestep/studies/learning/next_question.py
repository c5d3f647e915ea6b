"""Which results to ask for next: what most raises the chance that contenders are within all limits.

A study knows enough when the setting that it recommends is surely within all limits. So the
contenders are the settings with the largest (effect + half its s.d.) x P(within all limits), and a
question is worth by how much its result is expected to raise the mean log P(within) of the contenders,
for its cost. What a result would be is not known: it is assumed to halve the estimates, which are the
largest of many. The target, whose effects decide which settings contend, has every fifth of all
questions, where a result most lowers the mean variance of its effects. No outcome is asked a third
time before every outcome was asked once.

Nothing here is drawn, except where the patient of today comes first: there the setting is the best of
one draw from the belief. Gains are rounded to nine decimals, and the lowest number wins a tie.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.belief import Belief
from sidestep.studies.learning.effects import Effects, Limits
from sidestep.studies.learning.rows import BoolArray

CONTENDERS = 5
DRAWN = 40  # settings that are drawn, where the patient of today comes first
AVERAGED = 50  # so many settings, spread over the list, stand for all in an average
TARGET_SHARE = 0.2  # of all that is spent on questions
OPTIMISM = 0.5  # s.d. of a setting's effect that count as effect while it contends
KEPT = 0.5  # of an estimate is expected to last: contenders are the largest of many
UNMEASURED = 0.1  # s.d. at which the level of an outcome that was never measured counts as known
ROUNDED = 9  # decimals that decide
JITTER = 1e-6  # of the mean variance, on the diagonal of a covariance that is drawn from


@dataclass(frozen=True)
class Inquiry:
    """What a question is chosen from.

    effects    of the settings, on every outcome
    values     the same as they would be measured
    limits     of the effects on every outcome, the target's is None
    counts     results of every outcome, with those that are awaited
    rows       numbers of the settings that may be asked; None: all
    outcomes   that may be measured; None: all
    costs      of a result of every outcome; None: all the same
    never      limits of every outcome's expected result
    """

    effects: Effects
    values: Effects
    limits: Sequence[Limits | None]
    counts: Sequence[int]
    rows: IntArray | None = None
    outcomes: Sequence[int] | None = None
    costs: Sequence[float] | None = None
    never: Sequence[Limits | None] | None = None

    @property
    def belief(self) -> Belief:
        """What is believed."""
        return self.effects.belief

    @cached_property
    def within(self) -> FloatArray:
        """Chance of every setting to be within all limits."""
        return self.effects.all_within(self.limits, self.never)

    @cached_property
    def hope(self) -> FloatArray:
        """What may be hoped for of every setting."""
        return (self.effects.mean(0) + OPTIMISM * self.effects.spread(0)) * self.within

    @cached_property
    def contenders(self) -> IntArray:
        """The settings that may be the best, the most hopeful first."""
        return _largest(np.where(self.effects.moved, self.hope, -np.inf), CONTENDERS)

    @cached_property
    def price(self) -> FloatArray:
        """Cost of a result of every outcome."""
        return np.ones(len(self.limits)) if self.costs is None else np.asarray(self.costs, float)

    def constraints(self, outcome: int) -> list[tuple[Effects, Limits]]:
        """What has to stay within which limits."""
        found = [(self.effects, self.limits[outcome])]
        if self.never is not None:
            found.append((self.values, self.never[outcome]))
        return [(each, pair) for each, pair in found if pair is not None and pair != (None, None)]

    def variance(self, outcome: int) -> FloatArray:
        """Variance of one result at every setting."""
        # with an unknown level a first result alone would look useless, and be put off for ever
        measured = self.belief.results(outcome) > 0
        spread = self.values if measured else self.effects
        more = 0.0 if measured else UNMEASURED**2
        return np.asarray(spread.spread(outcome) ** 2 + more + self.belief.noise(outcome) ** 2)

    def gain(self, outcome: int) -> FloatArray:
        """By how much one result raises the mean log P(within) of the contenders; (K,)."""
        found = np.zeros(len(self.values))
        chosen, variance = self.contenders, self.variance(outcome)
        for each, limits in self.constraints(outcome):
            mean, spread = each.mean(outcome)[chosen], each.spread(outcome)[chosen]
            if each is self.effects:
                mean = mean * KEPT
            told = each.covariance(outcome, chosen, self.values) ** 2 / variance
            after = np.sqrt(np.maximum(spread[:, None] ** 2 - told, 1e-12))
            before = _log_within(mean, spread, limits)
            found += (_log_within(mean[:, None], after, limits) - before[:, None]).mean(axis=0)
        return found

    def gain_of_target(self) -> FloatArray:
        """Share of the mean variance of all effects on the target that one result removes; (K,)."""
        step = max(1, len(self.effects) // AVERAGED)
        everything = np.arange(step // 2, len(self.effects), step)
        covariance = self.effects.covariance(0, everything, self.values)
        whole = max(float((self.effects.spread(0)[everything] ** 2).mean()), 1e-12)
        return np.asarray((covariance**2).mean(axis=0) / self.variance(0) / whole)

    @cached_property
    def gains(self) -> FloatArray:
        """What one result of every outcome is worth at every setting, for its cost; (outcomes, K)."""
        found = [self.gain_of_target(), *(self.gain(o) for o in range(1, len(self.limits)))]
        return np.array(found) / self.price[:, None]

    def shares(self, place: int) -> FloatArray:
        """Share of what is open that one result of every outcome settles at a setting; (outcomes,).

        Of the target what is open is the variance of all effects; of a protected outcome it is how far
        the contenders are from being surely within its limits.
        """
        found = np.zeros(len(self.limits))
        found[0] = self.gain_of_target()[place]
        for outcome in range(1, len(self.limits)):
            open_ = 0.0
            for each, limits in self.constraints(outcome):
                mean = each.mean(outcome)[self.contenders]
                mean = mean * KEPT if each is self.effects else mean
                spread = each.spread(outcome)[self.contenders]
                open_ -= float(_log_within(mean, spread, limits).mean())
            gain = self.gains[outcome, place] * self.price[outcome]
            found[outcome] = gain / max(open_, 1e-9) if open_ > 0 else 0.0
        return np.clip(found, 0.0, 1.0)

    @cached_property
    def due(self) -> BoolArray:
        """The outcomes that may be asked now."""
        allowed = np.zeros(len(self.limits), dtype=bool)
        allowed[np.arange(len(self.limits)) if self.outcomes is None else list(self.outcomes)] = (
            True
        )
        counts = np.asarray(self.counts)
        if not counts[allowed].all():
            allowed &= counts < 2
        return allowed

    @property
    def target_is_due(self) -> bool:
        """Whether the target has had less than its share."""
        if not self.due[0]:
            return False
        free = [o for o in np.flatnonzero(self.due) if o and self.constraints(int(o))]
        spent = float(self.price @ np.asarray(self.counts)) + self.price[0]
        return not free or self.price[0] * (self.counts[0] + 1) <= TARGET_SHARE * spent


class Asked(NamedTuple):
    """A question: at which setting, and which outcomes are measured, the most telling first."""

    number: int
    outcomes: tuple[int, ...]


def next_question(inquiry: Inquiry, panel: int = 1) -> Asked:
    """The question that decides most, with so many outcomes measured at once."""
    rows = np.arange(len(inquiry.values)) if inquiry.rows is None else np.asarray(inquiry.rows)
    if panel == 1:
        if inquiry.target_is_due:
            return Asked(int(rows[_first(inquiry.gain_of_target()[rows])]), (0,))
        gains = np.where(inquiry.due[:, None], inquiry.gains[:, rows], -np.inf)
        gains[0] = -np.inf  # the target has its turns
        outcome, place = divmod(_first(gains.ravel()), len(rows))
        return Asked(int(rows[place]), (outcome,))
    gains = np.round(inquiry.gains[:, rows], ROUNDED)
    allowed = np.arange(len(gains)) if inquiry.outcomes is None else np.array(inquiry.outcomes)
    # outcomes that are not due are measured only where the others do not fill the panel
    later = np.where(inquiry.due, 0.0, -1.0 - gains.max())[:, None]
    order = allowed[np.argsort(-(gains + later)[allowed], axis=0, kind="stable")][:panel]
    number = _first(np.take_along_axis(gains, order, axis=0).sum(axis=0))
    return Asked(int(rows[number]), tuple(int(outcome) for outcome in order[:, number]))


def drawn_question(inquiry: Inquiry, rng: np.random.Generator, panel: int = 1) -> Asked:
    """The setting that is best in one draw from the belief, and what is most open there.

    The baseline, which teaches no effect, is left out where something else may be given.
    """
    rows = np.arange(len(inquiry.values)) if inquiry.rows is None else np.asarray(inquiry.rows)
    moved = rows[inquiry.effects.moved[rows]]
    rows = moved if len(moved) else rows
    chosen = rows[_largest(inquiry.hope[rows], DRAWN)]
    drawn = drawn_effects(inquiry.effects.only(chosen), rng, 1)[:, 0]
    worth, allowed = drawn[0], np.ones(len(chosen), dtype=bool)
    for outcome, pair in enumerate(inquiry.limits):
        if pair is not None:
            allowed &= inside(drawn[outcome], pair)
    if not allowed.any():  # nothing that may be asked is within the limits of this draw
        worth, allowed = inquiry.within[chosen], ~allowed
    number = int(chosen[_first(np.where(allowed, worth, -np.inf))])
    return next_question(replace(inquiry, rows=np.array([number])), panel)


def _largest(worth: FloatArray, count: int) -> IntArray:
    order = np.argsort(-np.round(worth, ROUNDED), kind="stable")[:count]
    return np.asarray(order[np.isfinite(worth[order])])


def _first(worth: FloatArray) -> int:
    return int(np.argmax(np.round(worth, ROUNDED)))


def drawn_effects(effects: Effects, rng: np.random.Generator, count: int) -> FloatArray:
    """Draws of the effects on every outcome, as Gaussians of their moments; (outcomes, count, K)."""
    every = np.arange(len(effects))
    found = np.empty((len(effects.belief.readings), count, len(effects)))
    for outcome in range(len(found)):
        root = _root(effects.covariance(outcome, every, effects))
        normal = rng.standard_normal((count, len(effects)))
        found[outcome] = effects.mean(outcome) + normal @ root.T
    return found


def inside(effects: FloatArray, limits: Limits) -> BoolArray:
    """Which effects are within limits."""
    low, high = limits
    found = np.ones(effects.shape, dtype=bool)
    if low is not None:
        found &= effects >= low
    if high is not None:
        found &= effects <= high
    return found


def _root(covariance: FloatArray) -> FloatArray:
    """A triangular root, which has no signs that two machines may choose differently."""
    size = max(float(np.trace(covariance)) / len(covariance), 1e-12)
    return np.linalg.cholesky(
        (covariance + covariance.T) / 2 + JITTER * size * np.eye(len(covariance))
    )


def _log_within(mean: FloatArray, spread: FloatArray, limits: Limits) -> FloatArray:
    low, high = limits
    chance = np.ones(np.broadcast_shapes(np.shape(mean), np.shape(spread)))
    if high is not None:
        chance = chance * ndtr((high - mean) / spread)
    if low is not None:
        chance = chance - ndtr((low - mean) / spread)
    return np.asarray(np.log(np.maximum(chance, 1e-12)))
