"""Derivative of the reward of an arm in every unknown vector.

With P the projection on the span of the protected vectors, p = a - P a, t = theta_0 - P theta_0, and
x, y(a) the coefficients of P theta_0 and P a in the protected vectors,

    d <a, theta_0 - P theta_0> = <p, d theta_0> - sum_i <x_i p + y_i(a) t, d theta_i>,

where the protected vectors are independent. Summing the largest change over every confidence set gives
an optimistic index for arms that becomes exact as the sets shrink, and, with a bound on the second-order
terms, a rigorous upper bound.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arm_forms import Menu
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence, Ellipsoids, ellipsoids
from sidestep.core.estimator import Evidence
from sidestep.core.jit import compiled_as, kernel
from sidestep.core.linalg import ROUNDING, copy_into, dot, project_off, quadratic


class Frame(NamedTuple):
    """The span of the protected vectors, and the target and actions decomposed along it."""

    basis: FloatArray  # (s, d) orthonormal
    dual: FloatArray  # (L, d): y(a) = dual a
    coefficients: FloatArray  # x, (L,)
    rest: FloatArray  # t, (d,)
    smallest: float  # smallest singular value among the `s` directions kept


def _off(basis: FloatArray, vector: FloatArray) -> FloatArray:
    """`project_off` in numpy."""
    if len(basis) == vector.size:
        return np.zeros(vector.size)
    return np.asarray(vector - (basis @ vector) @ basis)


def frame(vectors: FloatArray, rank: int) -> Frame:
    """Frame of vectors (L+1, d), target first; the span has the top `rank` singular directions."""
    L, d = vectors.shape[0] - 1, vectors.shape[1]
    if L == 0 or rank == 0:
        return Frame(np.zeros((0, d)), np.zeros((L, d)), np.zeros(L), vectors[0].copy(), np.inf)
    left, values, directions = np.linalg.svd(vectors[1:], full_matrices=False)
    sizes = values.tolist()
    kept = sum(size > ROUNDING * max(sizes[0], 1e-300) for size in sizes[:rank])
    basis = directions[:kept].copy()
    dual = left[:, :kept] / values[:kept] @ basis
    rest = _off(basis, vectors[0])
    return Frame(basis, dual, dual @ vectors[0], rest, sizes[kept - 1] if kept else 0.0)


@compiled_as(frame, small=True)
def _frame_loop(vectors: FloatArray, rank: int) -> Frame:
    L, d = vectors.shape[0] - 1, vectors.shape[1]
    dual, coefficients = np.zeros((L, d)), np.zeros(L)
    if L == 0 or rank == 0:
        return Frame(np.zeros((0, d)), dual, coefficients, vectors[0].copy(), np.inf)
    left, values, directions = np.linalg.svd(vectors[1:], full_matrices=False)
    kept = 0
    while kept < min(rank, values.size) and values[kept] > ROUNDING * max(values[0], 1e-300):
        kept += 1
    basis = np.empty((kept, d))
    for j in range(kept):
        copy_into(directions[j], basis[j])
        for i in range(L):
            for k in range(d):
                dual[i, k] += left[i, j] / values[j] * basis[j, k]
    for i in range(L):
        coefficients[i] = dot(dual[i], vectors[0])
    rest = project_off(basis, vectors[0])
    return Frame(basis, dual, coefficients, rest, values[kept - 1] if kept else 0.0)


def pooled_frame(vectors: FloatArray, weights: FloatArray, rank: int) -> Frame:
    """`frame` with weighted rows; weights (L+1,).

    If the rows have rank s, their span does not depend on their lengths. Estimates have a higher rank,
    and then the rows that are known better should decide. Scaled by 1 / spread they do: the top singular
    vectors of the scaled rows span the subspace that is closest to all of them.
    """
    rows = vectors * weights[:, None]
    rows[0] = vectors[0]
    view, protected = frame(rows, rank), weights[1:]
    return view._replace(
        dual=protected[:, None] * view.dual, coefficients=protected * view.coefficients
    )


@compiled_as(pooled_frame, small=True)
def _pooled_frame_loop(vectors: FloatArray, weights: FloatArray, rank: int) -> Frame:
    L, d = vectors.shape[0] - 1, vectors.shape[1]
    scaled_rows = np.empty((L + 1, d))
    for i in range(L + 1):
        for k in range(d):
            scaled_rows[i, k] = vectors[i, k] * (weights[i] if i > 0 else 1.0)
    view = frame(scaled_rows, rank)
    for i in range(L):
        view.coefficients[i] *= weights[i + 1]
        for k in range(d):
            view.dual[i, k] *= weights[i + 1]
    return view


def gradient(view: Frame, action: FloatArray) -> FloatArray:
    """Derivative of the reward of an action in every vector: p, then -(x_i p + y_i t); (L+1, d)."""
    left, shares = _off(view.basis, action), view.dual @ action
    protected = view.coefficients[:, None] * left + shares[:, None] * view.rest
    return np.concatenate([left[None], -protected])


@compiled_as(gradient, small=True)
def _gradient_loop(view: Frame, action: FloatArray) -> FloatArray:
    L, d = view.dual.shape
    out = np.empty((L + 1, d))
    left = out[0]
    copy_into(project_off(view.basis, action), left)
    for i in range(L):
        share = dot(view.dual[i], action)
        for k in range(d):
            out[i + 1, k] = -(view.coefficients[i] * left[k] + share * view.rest[k])
    return out


def gradient_matrices(view: Frame) -> FloatArray:
    """G_v with g_v(a) = G_v a, for many actions; (L+1, d, d). In numpy, not a kernel."""
    off = np.eye(view.rest.size) - view.basis.T @ view.basis
    dual = view.dual[:, None, :]
    protected = view.coefficients[:, None, None] * off + view.rest[:, None] * dual
    return np.concatenate([off[None], -protected])


@kernel
def first_order_values(
    confidence: Confidence, evidence: Evidence, menu: Menu, rows: IntArray
) -> tuple[FloatArray, FloatArray]:
    """First-order optimistic value of every arm, and an upper bound on the exact one; (K,), (K,).

    The value is the reward at the estimates plus the largest change along the gradient, summed over the
    sets. It is capped at the Thales bound, the largest reward for any protected subspace given M and the
    set of theta_0: the projection of a lies on the sphere with diameter from 0 to a. The upper bound
    holds for every point of the sets. rows: 0 and the core set.

    Do not use it where an arm is long, bad, and informative about something that the other arms do not
    measure. The sets shrink along the played arm, but the gradient points elsewhere, so the optimistic
    value of that arm does not fall.
    """
    sets = ellipsoids(confidence, evidence, rows)
    view = frame(sets.centre, rows.size - 1)
    K = menu.squared.size
    values, bounds = np.empty(K), np.empty(K)
    semi_axes = np.empty(rows.size)  # longest semi-axis of every set
    for i in range(rows.size):
        spread, _ = np.linalg.eigh(sets.inverse[i])
        semi_axes[i] = sets.radius[i] * np.sqrt(spread[spread.size - 1])
    longest = np.sqrt(dot(sets.centre[0], sets.centre[0])) + semi_axes[0]
    action = np.empty(menu.columns.shape[0])
    for k in range(K):
        for j in range(action.size):
            action[j] = menu.columns[j, k]
        slopes = gradient(view, action)
        first = dot(slopes[0], sets.centre[0])
        for i in range(rows.size):
            first += sets.radius[i] * np.sqrt(max(quadratic(sets.inverse[i], slopes[i]), 0.0))
        upper = dot(action, sets.centre[0])
        upper += sets.radius[0] * np.sqrt(max(quadratic(sets.inverse[0], action), 0.0))
        across = np.sqrt(menu.squared[k])
        thales = _thales(upper, across * longest)
        # |theta_0| <= M, although its set may contain longer vectors
        values[k] = min(first, thales, _thales(upper, across * confidence.norm_bound))
        bounds[k] = min(first + _remainder(sets, view, semi_axes, slopes[0], action), thales)
    return values, bounds


@kernel
def _thales(upper: float, across: float) -> float:
    """Largest <a, Proj_perp theta_0> over all subspaces.

    upper: bound on <a, theta_0>; across: bound on |a| |theta_0|.
    """
    return min(0.5 * (upper + across), across)


@kernel
def _remainder(
    sets: Ellipsoids, view: Frame, semi_axes: FloatArray, left: FloatArray, action: FloatArray
) -> float:
    """Bound on the second-order terms of the value; infinite if the sets allow dependent vectors."""
    s = semi_axes.size - 1
    error = np.sqrt(dot(semi_axes[1:], semi_axes[1:]))
    if view.basis.shape[0] < s or error >= view.smallest:
        return np.inf
    sigma = view.smallest - error
    off, on = 0.0, 0.0
    for i in range(1, s + 1):
        off += sets.radius[i] ** 2 * max(quadratic(sets.inverse[i], left), 0.0)
        on += abs(dot(view.dual[i - 1], action)) * semi_axes[i]
    off = np.sqrt(off)
    if s == 0:
        return 0.0
    moved = np.sqrt(on**2 + (off / sigma) ** 2)  # largest change of the projection of a
    turned = off / sigma**2 + on / sigma  # largest change of its coefficients
    total = semi_axes[0] * moved
    for i in range(1, s + 1):
        along = np.sqrt(max(quadratic(sets.inverse[i], view.rest), 0.0))
        total += abs(view.coefficients[i - 1]) * semi_axes[i] * moved
        total += sets.radius[i] * along * turned
    return total
