"""What an action is worth under given vectors, and how that answers to every vector.

    projected   <a, theta_0 - P theta_0>, P the projector on the span of the protected vectors
    within      <a, theta_0> - sum_i penalty_i max(0, <a, theta_i> - high_i, low_i - <a, theta_i>)

The first is the paper's. It is right on the whole ball, where the best action is orthogonal to every
protected vector. Over finitely many arms, or in a box, it protects nothing and depends on the units of
the actions. The second does not: rescale a coordinate, and the vectors rescale the other way. On the ball
with tolerance zero both have the same best action as soon as every penalty exceeds |x_i|, x the
coefficients of P theta_0 in the protected vectors.

`projected` and `within` take many draws and many actions at once; what follows them are kernels.
"""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.geometry import ROUNDING, dot
from sidestep.core.kernels import kernel
from sidestep.core.passes import scores
from sidestep.core.tolerances import Limits


def within(vectors: FloatArray, actions: FloatArray, limits: Limits) -> FloatArray:
    """Value of every action (K, d) under every draw (n, L+1, d), within tolerances; (n, K)."""
    effects = np.asarray(vectors) @ np.asarray(actions).T  # (n, L+1, K)
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
    """What is left of every drawn target off the top `rank` directions of its protected rows; (n, d).

    weights (L+1,): rows that count more or less, as in `pooled_frame`.
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
    """What the effect on protected outcome i costs; i from 0."""
    beyond = max(effect - limits.high[i], limits.low[i] - effect)
    return limits.penalty[i] * beyond if beyond > 0.0 else 0.0


@kernel
def value_within(limits: Limits, vectors: FloatArray, action: FloatArray) -> float:
    """Value of one action under one set of vectors (L+1, d)."""
    value = dot(vectors[0], action)
    for i in range(limits.penalty.size):
        value -= fine(limits, i, dot(vectors[i + 1], action))
    return value


@kernel
def values_within(
    limits: Limits, vectors: FloatArray, columns: FloatArray, n_arms: int
) -> FloatArray:
    """Value of every arm under one set of vectors; columns (d, K); (K,)."""
    values, effects = np.empty(n_arms), np.empty(n_arms)
    scores(columns, vectors[0], values)
    for i in range(limits.penalty.size):
        scores(columns, vectors[i + 1], effects)
        for k in range(n_arms):
            values[k] -= fine(limits, i, effects[k])
    return values


@kernel
def gradient_within(limits: Limits, vectors: FloatArray, action: FloatArray) -> FloatArray:
    """Derivative of the value of an action in every vector: a, then -+penalty_i a beyond; (L+1, d)."""
    n, d = vectors.shape
    out = np.zeros((n, d))
    for v in range(n):
        slope = 1.0
        if v > 0:
            effect = dot(vectors[v], action)
            slope = limits.penalty[v - 1] if effect < limits.low[v - 1] else 0.0
            slope = -limits.penalty[v - 1] if effect > limits.high[v - 1] else slope
        for j in range(d):
            out[v, j] = slope * action[j]
    return out
