"""Which result to ask for next: what most raises the chance that contenders are within all limits."""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.learner import Belief, Effects, Limits

CONTENDERS = 5
AVERAGED = 50  # so many settings, spread over the list, stand for all in an average
GOAL_EVERY = 5  # every so manieth question is about the target
KNOWN = 0.1  # s.d. at which the level of an outcome that was never measured counts as known


def contenders_of(effects: Effects, within: FloatArray) -> IntArray:
    """The settings with the largest (effect + half its s.d.) x P(within all limits)."""
    hope = (effects.mean(0) + 0.5 * effects.spread(0)) * within
    moved = np.where(effects.moved, hope, -np.inf)
    return np.argsort(-np.round(moved, 9), kind="stable")[:CONTENDERS]


def gains_of(
    belief: Belief,
    effects: Effects,
    values: Effects,
    limits: Sequence[Limits | None],
    chosen: IntArray,
) -> FloatArray:
    """By how much one result raises the mean log P(within) of contenders; (outcomes, K)."""
    gains = np.zeros((len(limits), len(values)))
    for outcome, pair in enumerate(limits):
        if pair is None:
            continue
        after = spread_after(belief, effects, values, outcome, chosen)
        middle = effects.mean(outcome)[chosen] / 2
        before = _log_within(middle, effects.spread(outcome)[chosen], pair)
        gains[outcome] = (_log_within(middle[:, None], after, pair) - before[:, None]).mean(axis=0)
    return gains


def spread_after(
    belief: Belief, effects: Effects, values: Effects, outcome: int, chosen: IntArray
) -> FloatArray:
    """S.d. of the effects of some settings after one result at every setting; (chosen, K)."""
    covariance = effects.covariance(outcome, chosen, values)
    if belief.results(outcome):
        variance = values.spread(outcome) ** 2
    else:
        variance = effects.spread(outcome) ** 2 + KNOWN**2
    variance = variance + belief.noise(outcome) ** 2
    left = effects.spread(outcome)[chosen][:, None] ** 2 - covariance**2 / variance
    return np.asarray(np.sqrt(np.maximum(left, 1e-12)))


def goal_gains(belief: Belief, effects: Effects, values: Effects) -> FloatArray:
    """By how much one result about the target lowers the mean variance of all effects on it; (K,)."""
    step = max(1, len(effects) // AVERAGED)
    everything = np.arange(step // 2, len(effects), step)
    covariance = effects.covariance(0, everything, values)
    variance = values.spread(0) ** 2 if belief.results(0) else effects.spread(0) ** 2 + KNOWN**2
    return np.asarray((covariance**2).mean(axis=0) / (variance + belief.noise(0) ** 2))


def _log_within(mean: FloatArray, spread: FloatArray, limits: Limits) -> FloatArray:
    low, high = limits
    chance = np.ones(np.broadcast_shapes(np.shape(mean), np.shape(spread)))
    if high is not None:
        chance = chance * ndtr((high - mean) / spread)
    if low is not None:
        chance = chance - ndtr((low - mean) / spread)
    return np.asarray(np.log(np.maximum(chance, 1e-12)))


def next_result(
    belief: Belief, effects: Effects, values: Effects, limits: Sequence[Limits | None], asked: int
) -> tuple[int, int]:
    """The (outcome, setting) to measure next, after so many questions."""
    if asked % GOAL_EVERY == GOAL_EVERY - 1 or all(pair is None for pair in limits):
        return 0, int(np.argmax(goal_gains(belief, effects, values)))
    chosen = contenders_of(effects, effects.all_within(limits))
    gains = gains_of(belief, effects, values, limits, chosen)
    outcome, setting = divmod(int(np.argmax(gains)), len(values))
    return outcome, setting


def next_visit(
    belief: Belief, effects: Effects, values: Effects, limits: Sequence[Limits | None]
) -> int:
    """The setting of a visit that measures every outcome: the largest sum of the gains."""
    chosen = contenders_of(effects, effects.all_within(limits))
    gains = gains_of(belief, effects, values, limits, chosen).sum(axis=0)
    goal = goal_gains(belief, effects, values)
    return int(np.argmax(gains + goal / max(float((effects.spread(0) ** 2).mean()), 1e-12)))
