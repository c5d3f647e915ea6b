"""What the evidence says of every arm: the arithmetic that runs over all arms, arms innermost.

Kernels over arms are plain loops whose last axis is the arm, so that the machine works on several at
a time. Over fixed arms the forms outlive the round: one measurement changes one row, in O(K d).
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.compiled import kernel
from sidestep.core.estimator import Evidence
from sidestep.core.geometry import add, apply, copied, dot
from sidestep.core.problem import FloatArray, IntArray

PRECISION, COVARIANCE = 0, 1  # which quadratic form of an arm is kept: |a|_V^2 or |a|_{V^-1}^2
BLOCK = 128  # arms worked on at a time, so that what they need stays in the first cache


class Menu(NamedTuple):
    """The arms of a round as kernels read them."""

    columns: FloatArray  # (d, K): arms innermost
    squared: FloatArray  # (K,): |a|^2


class Forms(NamedTuple):
    """Linear and quadratic form of every arm in every vector; a row is filled when first needed."""

    metric: int  # PRECISION or COVARIANCE
    linear: FloatArray  # (L+1, K): <a, centre_i>
    square: FloatArray  # (L+1, K): |a|^2 in that metric
    filled: IntArray  # (L+1,)


def empty_forms(metric: int, n: int, n_arms: int) -> Forms:
    """Forms of which no row is filled yet."""
    return Forms(metric, np.empty((n, n_arms)), np.empty((n, n_arms)), np.zeros(n, np.int64))


@kernel
def arm_of(menu: Menu, arm: int) -> FloatArray:
    """One arm as a vector of its own; (d,)."""
    action = np.empty(menu.columns.shape[0])
    for j in range(action.size):
        action[j] = menu.columns[j, arm]
    return action


@kernel
def scores(columns: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Inner product of every arm with one vector, into `out` (K,)."""
    for k in range(out.size):
        out[k] = 0.0
    for j in range(vector.size):
        weight = vector[j]
        for k in range(out.size):
            out[k] += weight * columns[j, k]


@kernel
def squares(columns: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """Squared norm of every arm in the metric of a symmetric matrix, into `out` (K,)."""
    K = out.size
    if K <= BLOCK:
        _squares(columns, matrix, out)
        return
    room = np.empty((matrix.shape[0], BLOCK))
    for start in range(0, K, BLOCK):
        stop = min(start + BLOCK, K)
        for j in range(room.shape[0]):
            copied(columns[j][start:stop], room[j])
        _squares(room, matrix, out[start:stop])


@kernel
def _squares(columns: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """The same for a block of arms; two entries of a row of the matrix in one pass."""
    for k in range(out.size):
        out[k] = 0.0
    for j in range(matrix.shape[0]):
        diagonal = matrix[j, j]
        for m in range(0, j, 2):
            one = 2.0 * matrix[j, m]
            other = diagonal if m + 1 == j else 2.0 * matrix[j, m + 1]
            for k in range(out.size):
                out[k] += (one * columns[m, k] + other * columns[m + 1, k]) * columns[j, k]
        if j % 2 == 0:
            for k in range(out.size):
                out[k] += diagonal * columns[j, k] * columns[j, k]


@kernel
def fill(forms: Forms, evidence: Evidence, rho: FloatArray, menu: Menu, index: int) -> None:
    """Compute the row of one vector, unless it is there."""
    fill_rows(forms, evidence, rho, menu, np.full(1, index))


@kernel
def fill_rows(
    forms: Forms, evidence: Evidence, rho: FloatArray, menu: Menu, rows: IntArray
) -> None:
    """The same for several vectors, in one call: to hand over the evidence has its price."""
    for index in rows:
        if forms.filled[index]:
            continue
        forms.filled[index] = 1
        scores(menu.columns, evidence.centre[index], forms.linear[index])
        if forms.metric == PRECISION:
            squares(menu.columns, evidence.gram[index], forms.square[index])
            add(forms.square[index], rho[index], menu.squared)
        else:
            squares(menu.columns, evidence.inverse[index], forms.square[index])


@kernel
def follow(forms: Forms, evidence: Evidence, menu: Menu, action: FloatArray, index: int) -> None:
    """Bring the row of a vector up to date after `action` was absorbed for it.

    |a|_V^2 has grown by <a, action>^2. With W the new inverse and g = W action, the old one was
    W + g g' / (1 - <action, g>): |a|_W^2 has shrunk by <a, g>^2 / (1 - <action, g>). Where it shrank by
    more than half that difference would be rounding: the row is given up, and filled when next needed.
    """
    if not forms.filled[index]:
        return
    direction, factor = action, 1.0
    if forms.metric == COVARIANCE:
        direction = apply(evidence.inverse[index], action)
        left = 1.0 - dot(action, direction)
        if left < 0.5:
            forms.filled[index] = 0
            return
        factor = -1.0 / left
    K = menu.squared.size
    room = np.empty(min(BLOCK, K))
    for start in range(0, K, BLOCK):
        stop = min(start + BLOCK, K)
        linear, square = forms.linear[index][start:stop], forms.square[index][start:stop]
        along = room[: stop - start]
        along[:] = 0.0
        linear[:] = 0.0
        for j in range(action.size):
            add(along, direction[j], menu.columns[j][start:stop])
            add(linear, evidence.centre[index, j], menu.columns[j][start:stop])
        for k in range(along.size):
            square[k] += factor * along[k] * along[k]


@kernel
def upper_means(
    menu: Menu, centre: FloatArray, inverse: FloatArray, reach: float, out: FloatArray
) -> None:
    """Largest <a, theta> over one confidence set, for every arm, computed afresh into `out`."""
    scores(menu.columns, centre, out)
    square = np.empty(out.size)
    squares(menu.columns, inverse, square)
    for k in range(out.size):
        out[k] += reach * np.sqrt(max(square[k], 0.0))
