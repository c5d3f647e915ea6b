"""The value of an action under given vectors, and its gradient in every vector.

    projected   <a, theta_0 - P theta_0>, P the projector on the span of the protected vectors
    within      <a, theta_0> - sum_i penalty_i max(0, <a, theta_i> - high_i, low_i - <a, theta_i>)

The first is the paper's. It is right on the whole ball, where the best action is orthogonal to every
protected vector. Over finitely many arms, or in a box, it protects nothing and depends on the units of
the actions. The second does not depend on units: if a coordinate is rescaled, the vectors are rescaled
the other way. On the ball with tolerance zero both have the same best action as soon as every penalty
exceeds |x_i|, x the coefficients of P theta_0 in the protected vectors.

`projected` and `within` take many draws and many actions at once; the functions after them are kernels.

The expected penalty of a normal effect needs two formulas of a normal variable, `probability_above` and
`expected_gain`; those with an s take many variables at once.
"""

import math

import numpy as np
from scipy.special import ndtr

from sidestep.core.arrays import FloatArray
from sidestep.core.jit import compiled_as, kernel
from sidestep.core.linalg import ROUNDING, dot
from sidestep.core.posterior import Posterior, all_spreads_of, effect_of, spreads_of
from sidestep.core.problem import Limits

NEVER_BEYOND = (
    7.0  # further than this from a limit, in standard deviations, the expected penalty is 0
)


def within(vectors: FloatArray, actions: FloatArray, limits: Limits) -> FloatArray:
    """Value of every action (K, d) under every draw (n, L+1, d), within tolerances; (n, K)."""
    return fined(np.asarray(vectors) @ np.asarray(actions).T, limits)


def fined(effects: FloatArray, limits: Limits) -> FloatArray:
    """Value of every action, given its effects on the target and every protected outcome.

    effects (..., L+1, K); (..., K)
    """
    side = effects[..., 1:, :]
    beyond = np.maximum(side - limits.high[:, None], limits.low[:, None] - side)
    fine = limits.penalty @ np.maximum(beyond, 0.0)
    return np.asarray(effects[..., 0, :] - fine)


def projected(
    vectors: FloatArray, actions: FloatArray, rank: int, weights: FloatArray | None = None
) -> FloatArray:
    """The paper's reward of every action (K, d) under every draw (n, L+1, d); (n, K)."""
    return np.asarray(rests(vectors, rank, weights) @ np.asarray(actions).T)


def rests(vectors: FloatArray, rank: int, weights: FloatArray | None = None) -> FloatArray:
    """Every drawn target without its part in the top `rank` directions of its protected rows; (n, d).

    weights (L+1,): weights of the rows, as in `pooled_frame`.
    """
    vectors = np.asarray(vectors)
    target, rows = vectors[..., 0, :], vectors[..., 1:, :]
    if rank == 0 or rows.shape[-2] == 0:
        return np.array(target)
    if weights is not None:
        rows = rows * weights[1:, None]
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    real = values > ROUNDING * np.maximum(values[..., :1], 1e-300)
    basis = (directions * real[..., None])[..., :rank, :]
    along = basis @ target[..., None]
    return np.asarray(target - (along * basis).sum(axis=-2))


@kernel(inline=True)
def fine(limits: Limits, i: int, effect: float) -> float:
    """Penalty of the effect on protected outcome i; i from 0."""
    beyond = max(effect - limits.high[i], limits.low[i] - effect)
    return limits.penalty[i] * beyond if beyond > 0.0 else 0.0


@kernel
def value_within(limits: Limits, vectors: FloatArray, action: FloatArray) -> float:
    """Value of one action under one set of vectors (L+1, d)."""
    value = dot(vectors[0], action)
    for i in range(limits.penalty.size):
        value -= fine(limits, i, dot(vectors[i + 1], action))
    return value


def values_within(
    limits: Limits, vectors: FloatArray, columns: FloatArray, n_arms: int
) -> FloatArray:
    """Value of every arm under one set of vectors; columns (d, K); (K,)."""
    return fined(vectors @ columns[: vectors.shape[1], :n_arms], limits)  # without the level's row


@compiled_as(values_within)
def _values_within_loop(
    limits: Limits, vectors: FloatArray, columns: FloatArray, n_arms: int
) -> FloatArray:
    effects = np.dot(vectors, columns[: vectors.shape[1]])  # without the row of the level
    values = effects[0, :n_arms].copy()
    for i in range(limits.penalty.size):
        side = effects[i + 1, :n_arms]
        beyond = np.maximum(side - limits.high[i], limits.low[i] - side)
        values -= limits.penalty[i] * np.maximum(beyond, 0.0)
    return values


@kernel
def expected_within(limits: Limits, posterior: Posterior, action: FloatArray) -> float:
    """Posterior mean of the value of an action; the penalty is averaged over the posterior."""
    value = dot(posterior.mean[0], action)
    for i in range(limits.penalty.size):
        mean, spread = effect_of(posterior, i + 1, action)
        value -= expected_fine(limits, i, mean, spread)
    return value


def expected_values(
    limits: Limits, posterior: Posterior, columns: FloatArray, n_arms: int
) -> FloatArray:
    """Posterior mean of the value of every arm; columns (d, K); (K,)."""
    effects = posterior.mean @ columns[: posterior.mean.shape[1], :n_arms]
    values = effects[0].copy()
    for i in np.flatnonzero(limits.penalty).tolist():
        side, spreads = effects[i + 1], spreads_of(posterior, i + 1, columns)[:n_arms]
        fine = expected_gains(limits.high[i] - side, spreads)
        fine += expected_gains(side - limits.low[i], spreads)
        values -= limits.penalty[i] * fine
    return np.asarray(values)


@compiled_as(expected_values)
def _expected_values_loop(
    limits: Limits, posterior: Posterior, columns: FloatArray, n_arms: int
) -> FloatArray:
    effects = np.dot(posterior.mean, columns[: posterior.mean.shape[1]])
    values = effects[0, :n_arms].copy()
    for i in range(limits.penalty.size):
        side, spreads = effects[i + 1, :n_arms], spreads_of(posterior, i + 1, columns)[:n_arms]
        over = np.maximum(side - limits.high[i], limits.low[i] - side) + NEVER_BEYOND * spreads
        for k in range(n_arms):
            if over[k] > 0.0:
                values[k] -= expected_fine(limits, i, side[k], spreads[k])
    return values


@kernel
def expected_fine(limits: Limits, i: int, mean: float, spread: float) -> float:
    """Expected penalty of a normal effect on protected outcome i; i from 0."""
    penalty, low, high = float(limits.penalty[i]), float(limits.low[i]), float(limits.high[i])
    if penalty == 0.0:
        return 0.0
    return penalty * (expected_gain(high - mean, spread) + expected_gain(mean - low, spread))


def steepness_within(
    limits: Limits, posterior: Posterior, action: FloatArray, averaged: bool
) -> FloatArray:
    """Slope of the value of an action in every effect: 1, then penalty_i sqrt(p_i); (L+1,).

    p_i is the probability that effect i is beyond its tolerance. The slope is penalty_i in size with this
    probability and 0 otherwise; penalty_i sqrt(p_i) is its root mean square. An outcome that is certainly
    within its limits has slope 0. averaged: the mean instead, penalty_i p_i.
    """
    return steepnesses_within(limits, posterior, action[:, None], averaged=averaged)[:, 0]


def steepnesses_within(
    limits: Limits, posterior: Posterior, columns: FloatArray, *, averaged: bool
) -> FloatArray:
    """`steepness_within` of many actions, columns (d, K), in numpy: not a kernel; (L+1, K)."""
    mean, spread = posterior.mean @ columns, all_spreads_of(posterior, columns)
    beyond = chances_above(limits.high[:, None] - mean[1:], spread[1:])
    beyond += chances_above(mean[1:] - limits.low[:, None], spread[1:])
    slopes = limits.penalty[:, None] * (beyond if averaged else np.sqrt(beyond))
    return np.concatenate([np.ones((1, columns.shape[1])), slopes])


@compiled_as(steepness_within)
def _steepness_within_loop(
    limits: Limits, posterior: Posterior, action: FloatArray, averaged: bool
) -> FloatArray:
    steepness = np.ones(posterior.noise.size)
    for i in range(limits.penalty.size):
        mean, spread = effect_of(posterior, i + 1, action)
        beyond = probability_above(limits.high[i] - mean, spread)
        beyond += probability_above(mean - limits.low[i], spread)
        steepness[i + 1] = limits.penalty[i] * (beyond if averaged else np.sqrt(beyond))
    return steepness


ROOT_TWO = math.sqrt(2.0)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@kernel
def probability_above(distance: float, spread: float) -> float:
    """Probability that a normal variable with this standard deviation is so far above its mean."""
    if spread <= 0.0 or math.isinf(distance):
        return 1.0 if distance < 0.0 else 0.0
    return 0.5 * math.erfc(distance / (spread * ROOT_TWO))


@kernel
def expected_gain(behind: float, spread: float) -> float:
    """Mean of the positive part of a normal variable; mean -behind, standard deviation spread."""
    if spread <= 0.0 or math.isinf(behind):
        return max(-behind, 0.0)
    z = behind / spread
    density = math.exp(-0.5 * z * z) / ROOT_TWO_PI
    return max(spread * (density - z * 0.5 * math.erfc(z / ROOT_TWO)), 0.0)


def expected_gains(behind: FloatArray, spread: FloatArray) -> FloatArray:
    """`expected_gain` of many variables at once, in numpy: not a kernel."""
    certain = (spread <= 0.0) | np.isinf(behind)
    z = behind / np.where(certain, 1.0, spread)
    gain = spread * (np.exp(-0.5 * z * z) / ROOT_TWO_PI - z * ndtr(-z))
    return np.maximum(np.where(certain, -behind, gain), 0.0)


def chances_above(behind: FloatArray, spread: FloatArray) -> FloatArray:
    """`probability_above` of many variables at once, in numpy: not a kernel."""
    certain = (spread <= 0.0) | np.isinf(behind)
    return np.where(certain, behind < 0.0, ndtr(-behind / np.where(certain, 1.0, spread)))
