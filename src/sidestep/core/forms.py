"""What the evidence says of every arm: the arithmetic that runs over all arms, arms innermost.

Kernels over arms are plain loops whose last axis is the arm, so that the machine works on several at
a time. Over fixed arms the forms outlive the round: one measurement changes one row, in O(K d).
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.compiled import folded, kernel
from sidestep.core.estimator import REFACTOR, Evidence
from sidestep.core.geometry import add, apply, dot
from sidestep.core.problem import FloatArray, IntArray

PRECISION, COVARIANCE = 0, 1  # which quadratic form of an arm is kept: |a|_V^2 or |a|_{V^-1}^2
CHUNK = 1024  # arms worked on at a time, so that their columns stay in the second cache


class Menu(NamedTuple):
    """The arms of a round as kernels read them."""

    columns: FloatArray  # (d, K): arms innermost
    squared: FloatArray  # (K,): |a|^2


class Forms(NamedTuple):
    """What is kept of every arm in every vector; a row is filled when first needed.

    `swing` is how far <a, theta> can be moved inside a set of radius 1: by |a|^2 / |a|_V along a where
    V is kept, by |a|_{V^-1} along V^-1 a where its inverse is.
    """

    metric: int  # PRECISION or COVARIANCE
    linear: FloatArray  # (L+1, K): <a, centre_i>
    square: FloatArray  # (L+1, K): |a|^2 in that metric
    swing: FloatArray  # (L+1, K)
    filled: IntArray  # (L+1,)


def empty_forms(metric: int, n: int, n_arms: int) -> Forms:
    """Forms of which no row is filled yet."""
    room = np.empty((3, n, n_arms))
    return Forms(metric, room[0], room[1], room[2], np.zeros(n, np.int64))


@folded
def arm_of(menu: Menu, arm: int) -> FloatArray:
    """One arm as a vector of its own; (d,)."""
    action = np.empty(menu.columns.shape[0])
    for j in range(action.size):
        action[j] = menu.columns[j, arm]
    return action


@kernel
def scores(columns: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Inner product of every arm with one vector, into `out` (K,); four columns in one pass."""
    for k in range(out.size):
        out[k] = 0.0
    fours = vector.size - vector.size % 4
    for j in range(0, fours, 4):
        a, b, c, d = vector[j], vector[j + 1], vector[j + 2], vector[j + 3]
        one, two, three, four = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        for k in range(out.size):
            out[k] += a * one[k] + b * two[k] + c * three[k] + d * four[k]
    for j in range(fours, vector.size):
        add(out, vector[j], columns[j])


@kernel
def two_scores(
    columns: FloatArray, first: FloatArray, second: FloatArray, out: FloatArray, also: FloatArray
) -> None:
    """The same with two vectors, into `out` and `also`: every arm is read once for both."""
    for k in range(out.size):
        out[k] = 0.0
        also[k] = 0.0
    fours = first.size - first.size % 4
    for j in range(0, fours, 4):
        a, b, c, d = first[j], first[j + 1], first[j + 2], first[j + 3]
        e, f, g, h = second[j], second[j + 1], second[j + 2], second[j + 3]
        one, two, three, four = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        for k in range(out.size):
            out[k] += a * one[k] + b * two[k] + c * three[k] + d * four[k]
            also[k] += e * one[k] + f * two[k] + g * three[k] + h * four[k]
    for j in range(fours, first.size):
        add(out, first[j], columns[j])
        add(also, second[j], columns[j])


@kernel
def both_forms(
    menu: Menu,
    vector: FloatArray,
    matrix: FloatArray,
    ridge: float,
    linear: FloatArray,
    square: FloatArray,
) -> None:
    """<a, vector> and |a|^2 in the metric of matrix + ridge I, for every arm; matrix is symmetric.

    Three by three entries of the matrix are taken in one pass.
    """
    K = square.size
    for k in range(K):
        linear[k] = 0.0
        square[k] = ridge * menu.squared[k]
    for start in range(0, K, CHUNK):
        stop = min(start + CHUNK, K)
        here, there = linear[start:stop], square[start:stop]
        for j in range(0, vector.size, 3):
            _within(menu.columns, start, j, vector, matrix, here, there)
            for m in range(0, j, 3):
                _across(menu.columns, start, j, m, matrix, there)


@kernel
def _within(
    columns: FloatArray,
    start: int,
    j: int,
    vector: FloatArray,
    matrix: FloatArray,
    linear: FloatArray,
    square: FloatArray,
) -> None:
    """Add what columns j to j+2 contribute among themselves; past the last one weights are zero."""
    d = vector.size
    a, b, c = (
        columns[j][start:],
        columns[min(j + 1, d - 1)][start:],
        columns[min(j + 2, d - 1)][start:],
    )
    aa, ab, ac = matrix[j, j], 2.0 * _entry(matrix, j, j + 1), 2.0 * _entry(matrix, j, j + 2)
    bb, bc = _entry(matrix, j + 1, j + 1), 2.0 * _entry(matrix, j + 1, j + 2)
    cc = _entry(matrix, j + 2, j + 2)
    one = vector[j]
    two = vector[j + 1] if j + 1 < d else 0.0
    three = vector[j + 2] if j + 2 < d else 0.0
    for k in range(square.size):
        linear[k] += one * a[k] + two * b[k] + three * c[k]
        square[k] += a[k] * (aa * a[k] + ab * b[k] + ac * c[k])
        square[k] += b[k] * (bb * b[k] + bc * c[k]) + c[k] * (cc * c[k])


@kernel
def _across(
    columns: FloatArray, start: int, j: int, m: int, matrix: FloatArray, square: FloatArray
) -> None:
    """Add what columns j to j+2 contribute with columns m to m+2."""
    d = matrix.shape[0]
    a, b, c = (
        columns[j][start:],
        columns[min(j + 1, d - 1)][start:],
        columns[min(j + 2, d - 1)][start:],
    )
    x, y, z = columns[m][start:], columns[m + 1][start:], columns[m + 2][start:]
    ax, ay, az = matrix[j, m], matrix[j, m + 1], matrix[j, m + 2]
    bx, by, bz = (
        _entry(matrix, j + 1, m),
        _entry(matrix, j + 1, m + 1),
        _entry(matrix, j + 1, m + 2),
    )
    cx, cy, cz = (
        _entry(matrix, j + 2, m),
        _entry(matrix, j + 2, m + 1),
        _entry(matrix, j + 2, m + 2),
    )
    for k in range(square.size):
        first = a[k] * (ax * x[k] + ay * y[k] + az * z[k])
        second = b[k] * (bx * x[k] + by * y[k] + bz * z[k])
        third = c[k] * (cx * x[k] + cy * y[k] + cz * z[k])
        square[k] += 2.0 * (first + second + third)


@kernel
def _entry(matrix: FloatArray, j: int, m: int) -> float:
    """The entry, or zero past the last row or column."""
    return matrix[j, m] if max(j, m) < matrix.shape[0] else 0.0


@folded
def fill(forms: Forms, evidence: Evidence, rho: FloatArray, menu: Menu, index: int) -> None:
    """Compute the row of one vector, unless it is there."""
    if not forms.filled[index]:
        forms.filled[index] = 1
        K, centre = menu.squared.size, evidence.centre[index]
        linear, square, swing = _row(forms, index, K)
        if forms.metric == PRECISION:
            both_forms(menu, centre, evidence.gram[index], rho[index], linear, square)
            for k in range(K):
                swing[k] = _along_arm(menu.squared[k], square[k])
        else:
            both_forms(menu, centre, evidence.inverse[index], 0.0, linear, square)
            for k in range(K):
                swing[k] = np.sqrt(max(square[k], 0.0))


@folded
def _row(forms: Forms, index: int, K: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Linear form, quadratic form and swing of one vector; menus of different sizes share a room."""
    return forms.linear[index][:K], forms.square[index][:K], forms.swing[index][:K]


@kernel
def _along_arm(squared: float, square: float) -> float:
    """|a|^2 / |a|_V; zero for the zero arm."""
    return squared / np.sqrt(square) if square > 0.0 else 0.0


@folded
def follow(
    forms: Forms, evidence: Evidence, menu: Menu, action: FloatArray, index: int, surprise: float
) -> None:
    """Bring the row of a vector up to date after `action` was absorbed for it.

    |a|_V^2 has grown by <a, action>^2. With W the new inverse and g = W action, the old one was
    W + g g' / (1 - <action, g>): |a|_W^2 has shrunk by <a, g>^2 / (1 - <action, g>). The centre has moved
    by g times the surprise, feedback - <action, old centre>. Where |a|_W^2 shrank twentyfold that
    difference would be rounding, and where the inverse was computed anew rounding shall not build up:
    the row is given up, and filled when next needed.
    """
    if forms.filled[index]:
        K = menu.squared.size
        linear, square, swing = _row(forms, index, K)
        along = np.empty(K)
        if forms.metric == PRECISION:
            two_scores(menu.columns, action, evidence.centre[index], along, linear)
            for k in range(K):
                square[k] += along[k] * along[k]
                swing[k] = _along_arm(menu.squared[k], square[k])
        else:
            direction = apply(evidence.inverse[index], action)
            left = 1.0 - dot(action, direction)
            if left < 0.05 or evidence.counts[index] % REFACTOR == 0:
                forms.filled[index] = 0
            else:
                scores(menu.columns, direction, along)
                for k in range(K):
                    linear[k] += surprise * along[k]
                    square[k] -= along[k] * along[k] / left
                    swing[k] = np.sqrt(max(square[k], 0.0))


@kernel
def upper_means(
    menu: Menu, centre: FloatArray, inverse: FloatArray, reach: float, out: FloatArray
) -> None:
    """Largest <a, theta> over one confidence set, for every arm, computed afresh into `out`."""
    square = np.empty(out.size)
    both_forms(menu, centre, inverse, 0.0, out, square)
    for k in range(out.size):
        out[k] += reach * np.sqrt(max(square[k], 0.0))
