"""Linear and quadratic forms of every arm under the estimates, kept from round to round.

Over fixed arms the forms are reused: one measurement changes one row, in O(K d).

Arms are the innermost axis, so that the processor works on several of them at a time. Passes over all
arms have two bodies (jit.py). In the compiled ones a pass takes eight coordinates, or six rows and
columns of a matrix, or three of a larger one: the numbers that all arms share stay in registers, and
numba does not unroll a loop whose length it does not know. The innermost index starts at 0: where it may
be negative, for all that numba knows, the processor works on one arm at a time.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.estimator import REFACTOR, Evidence
from sidestep.core.jit import compiled_as, kernel
from sidestep.core.linalg import apply_into, copy_into, dot, lowest_argmax

PRECISION, COVARIANCE = 0, 1  # which quadratic form of an arm is kept: |a|_V^2 or |a|_{V^-1}^2
REFILL = 8 * REFACTOR  # measurements of a vector after which its row of |a|_{V^-1}^2 is recomputed
CHUNK = 1024  # arms per chunk of a quadratic form, so that they stay in the L2 cache


def scores(columns: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Inner product of every arm with one vector, into `out` (K,)."""
    np.dot(vector, columns, out=out)


@compiled_as(scores, refcounts=False)
def _scores_loop(columns: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    for k in range(out.size):
        out[k] = 0.0
    for first in range(0, vector.size, 8):
        _add_eight(columns, vector, first, out)


@kernel(refcounts=False, fma=True)
def _add_eight(columns: FloatArray, vector: FloatArray, first: int, out: FloatArray) -> None:
    """Add eight coordinates to every inner product; coordinates past the last are zero."""
    end = vector.size - 1
    b, c, d, e = min(first + 1, end), min(first + 2, end), min(first + 3, end), min(first + 4, end)
    f, g, h = min(first + 5, end), min(first + 6, end), min(first + 7, end)
    va, vb = vector[first], vector[b] * (first + 1 <= end)
    vc, vd = vector[c] * (first + 2 <= end), vector[d] * (first + 3 <= end)
    ve, vf = vector[e] * (first + 4 <= end), vector[f] * (first + 5 <= end)
    vg, vh = vector[g] * (first + 6 <= end), vector[h] * (first + 7 <= end)
    for k in range(out.size):
        low = va * columns[first, k] + vb * columns[b, k] + vc * columns[c, k] + vd * columns[d, k]
        high = ve * columns[e, k] + vf * columns[f, k] + vg * columns[g, k] + vh * columns[h, k]
        out[k] += low + high


def both_forms(
    columns: FloatArray,
    vector: FloatArray,
    matrix: FloatArray,
    ridge: float,
    linear: FloatArray,
    square: FloatArray,
) -> None:
    """<a, vector> and |a|^2 in the metric of matrix + ridge I, for every arm; matrix is symmetric."""
    np.dot(vector, columns, out=linear)
    np.einsum("jk,jk->k", columns, (matrix + ridge * np.eye(vector.size)) @ columns, out=square)


@compiled_as(both_forms, refcounts=False)
def _both_forms_loop(
    columns: FloatArray,
    vector: FloatArray,
    matrix: FloatArray,
    ridge: float,
    linear: FloatArray,
    square: FloatArray,
) -> None:
    if vector.size <= 6:
        _forms_of_six(columns, vector, matrix, ridge, linear, square)
        return
    scores(columns, vector, linear)
    for start in range(0, square.size, CHUNK):
        stop = min(start + CHUNK, square.size)
        for k in range(start, stop):
            square[k] = 0.0
        for j in range(0, vector.size, 3):
            for m in range(0, j + 1, 3):
                _add_tile(columns, matrix, ridge, j, m, start, stop, square)


@kernel(refcounts=False, fma=True)
def _forms_of_six(
    columns: FloatArray,
    vector: FloatArray,
    matrix: FloatArray,
    ridge: float,
    linear: FloatArray,
    square: FloatArray,
) -> None:
    """Both forms in one pass where d <= 6; weights past the last coordinate are zero."""
    end = vector.size - 1
    b, c, d, e, f = min(1, end), min(2, end), min(3, end), min(4, end), min(5, end)
    # 0 past the last coordinate
    nb, nc, nd, ne, nf = end >= 1, end >= 2, end >= 3, end >= 4, end >= 5
    va, vb, vc = vector[0], nb * vector[b], nc * vector[c]
    vd, ve, vf = nd * vector[d], ne * vector[e], nf * vector[f]
    aa = matrix[0, 0] + ridge
    ba, bb = 2.0 * nb * matrix[b, 0], nb * (matrix[b, b] + ridge)
    ca, cb, cc = 2.0 * nc * matrix[c, 0], 2.0 * nc * matrix[c, b], nc * (matrix[c, c] + ridge)
    da, db, dc = 2.0 * nd * matrix[d, 0], 2.0 * nd * matrix[d, b], 2.0 * nd * matrix[d, c]
    dd = nd * (matrix[d, d] + ridge)
    ea, eb, ec = 2.0 * ne * matrix[e, 0], 2.0 * ne * matrix[e, b], 2.0 * ne * matrix[e, c]
    ed, ee = 2.0 * ne * matrix[e, d], ne * (matrix[e, e] + ridge)
    fa, fb, fc = 2.0 * nf * matrix[f, 0], 2.0 * nf * matrix[f, b], 2.0 * nf * matrix[f, c]
    fd, fe, ff = 2.0 * nf * matrix[f, d], 2.0 * nf * matrix[f, e], nf * (matrix[f, f] + ridge)
    for k in range(square.size):
        u, v, w = columns[0, k], columns[b, k], columns[c, k]
        x, y, z = columns[d, k], columns[e, k], columns[f, k]
        linear[k] = va * u + vb * v + vc * w + vd * x + ve * y + vf * z
        square[k] = (
            u * (aa * u)
            + v * (ba * u + bb * v)
            + w * (ca * u + cb * v + cc * w)
            + x * (da * u + db * v + dc * w + dd * x)
            + y * (ea * u + eb * v + ec * w + ed * x + ee * y)
            + z * (fa * u + fb * v + fc * w + fd * x + fe * y + ff * z)
        )


@kernel(refcounts=False, fma=True)
def _add_tile(
    columns: FloatArray,
    matrix: FloatArray,
    ridge: float,
    j: int,
    m: int,
    start: int,
    stop: int,
    square: FloatArray,
) -> None:
    """Add what the 3 x 3 tile at (j, m) of the lower triangle contributes to the arms of a chunk."""
    end, twice = matrix.shape[0] - 1, m < j
    a, b, c = j, min(j + 1, end), min(j + 2, end)
    e, f, g = m, min(m + 1, end), min(m + 2, end)
    ae, af, ag = (
        _weight(matrix, ridge, j, m, twice),
        _weight(matrix, ridge, j, m + 1, twice),
        _weight(matrix, ridge, j, m + 2, twice),
    )
    be, bf, bg = (
        _weight(matrix, ridge, j + 1, m, twice),
        _weight(matrix, ridge, j + 1, m + 1, twice),
        _weight(matrix, ridge, j + 1, m + 2, twice),
    )
    ce, cf, cg = (
        _weight(matrix, ridge, j + 2, m, twice),
        _weight(matrix, ridge, j + 2, m + 1, twice),
        _weight(matrix, ridge, j + 2, m + 2, twice),
    )
    first, second, third = columns[a][start:stop], columns[b][start:stop], columns[c][start:stop]
    one, two, three = columns[e][start:stop], columns[f][start:stop], columns[g][start:stop]
    out = square[start:stop]
    for k in range(out.size):
        x, y, z = one[k], two[k], three[k]
        out[k] += (
            first[k] * (ae * x + af * y + ag * z)
            + second[k] * (be * x + bf * y + bg * z)
            + third[k] * (ce * x + cf * y + cg * z)
        )


@kernel(refcounts=False)
def _weight(matrix: FloatArray, ridge: float, j: int, m: int, twice: bool) -> float:
    """Entry (j, m) of matrix + ridge I, doubled where (m, j) is skipped; zero past the last row."""
    if max(j, m) >= matrix.shape[0]:
        return 0.0
    if twice:
        return 2.0 * matrix[j, m]
    return matrix[j, m] + ridge if j == m else matrix[j, m]


def squares_in(metrics: FloatArray, columns: FloatArray) -> FloatArray:
    """|a|^2 in every metric for every column a (d, K); (n, K)."""
    return np.einsum("vjk,jk->vk", metrics @ columns, columns)


@compiled_as(squares_in)
def _squares_in_loop(metrics: FloatArray, columns: FloatArray) -> FloatArray:
    n, d, K = metrics.shape[0], columns.shape[0], columns.shape[1]
    square, unused, nothing = np.empty((n, K)), np.empty(K), np.zeros(d)
    for v in range(n):
        both_forms(columns, nothing, metrics[v], 0.0, unused, square[v])
    return square


def widths_along_arms(squared: FloatArray, square: FloatArray, out: FloatArray) -> None:
    """|a|^2 / |a|_V of every arm from |a|^2 and |a|_V^2, into `out` (K,); zero for the zero arm."""
    out[:] = np.where(square > 0.0, squared / np.sqrt(square), 0.0)


@compiled_as(widths_along_arms, refcounts=False)
def _widths_along_arms_loop(squared: FloatArray, square: FloatArray, out: FloatArray) -> None:
    for k in range(out.size):
        out[k] = _along_arm(squared[k], square[k])


@kernel(refcounts=False)
def _along_arm(squared: float, square: float) -> float:
    return squared / np.sqrt(square) if square > 0.0 else 0.0


def lengths(square: FloatArray, out: FloatArray) -> None:
    """Square roots of squared lengths, of zero where rounding made one negative, into `out` (K,)."""
    np.sqrt(np.maximum(square, 0.0), out=out)


@compiled_as(lengths, refcounts=False)
def _lengths_loop(square: FloatArray, out: FloatArray) -> None:
    for k in range(out.size):
        out[k] = np.sqrt(max(square[k], 0.0))


class Menu(NamedTuple):
    """The arms of a round as kernels read them."""

    columns: FloatArray  # (d, K): arms innermost
    squared: FloatArray  # (K,): |a|^2


class Workspace(NamedTuple):
    """Buffers for one decision, so that it allocates nothing."""

    values: FloatArray  # (K,)
    rows: IntArray  # (L+1,): the vectors in play
    radii: FloatArray  # (L+1,): of their confidence sets
    products: FloatArray  # (L+1, L+1): inner products of their centres


@kernel
def empty_workspace(n: int, n_arms: int) -> Workspace:
    """Buffers for n vectors and `n_arms` arms."""
    rows = np.empty(n, np.int64)
    return Workspace(np.empty(n_arms), rows, np.empty(n), np.empty((n, n)))


class Forms(NamedTuple):
    """Forms of every arm, one row per vector; a row is filled when first needed.

    `unit_width` is how far <a, theta> can move inside a set of radius 1: |a|^2 / |a|_V for a move along a
    (metric PRECISION), |a|_{V^-1} for a move along V^-1 a (metric COVARIANCE).
    """

    metric: int  # PRECISION or COVARIANCE
    linear: FloatArray  # (L+1, K): <a, centre_i>
    square: FloatArray  # (L+1, K): |a|^2 in that metric
    unit_width: FloatArray  # (L+1, K)
    filled: IntArray  # (L+1,): 1 where the row of the vector is up to date
    workspace: Workspace


@kernel
def empty_forms(metric: int, n: int, n_arms: int) -> Forms:
    """Forms without any filled row."""
    buffer = np.empty((3, n, n_arms))
    filled = np.zeros(n, np.int64)
    return Forms(metric, buffer[0], buffer[1], buffer[2], filled, empty_workspace(n, n_arms))


@kernel
def arm_of(menu: Menu, arm: int) -> FloatArray:
    """A copy of one arm; (d,)."""
    action = np.empty(menu.columns.shape[0])
    copy_into(menu.columns[:, arm], action)
    return action


def arms_of(menu: Menu, rows: IntArray) -> FloatArray:
    """Some of the arms, as columns (d, n)."""
    return menu.columns[:, rows]


@compiled_as(arms_of)
def _arms_of_loop(menu: Menu, rows: IntArray) -> FloatArray:
    few = np.empty((menu.columns.shape[0], rows.size))
    for j in range(few.shape[0]):
        for k in range(rows.size):
            few[j, k] = menu.columns[j, rows[k]]
    return few


@kernel
def winner(menu: Menu, direction: FloatArray) -> tuple[int, float]:
    """The arm with the largest inner product with `direction`, and that product; ties: the lowest arm."""
    values = np.empty(menu.squared.size)
    scores(menu.columns, direction, values)
    arm = lowest_argmax(values)
    return arm, values[arm]


@kernel(refcounts=False)
def fill(forms: Forms, evidence: Evidence, rho: FloatArray, menu: Menu, index: int) -> None:
    """Compute the row of one vector unless it is already filled."""
    if forms.filled[index]:
        return
    forms.filled[index] = 1
    centre = evidence.centre[index]
    linear, square, unit_width = _row(forms, index, menu.squared.size)
    if forms.metric == PRECISION:
        both_forms(menu.columns, centre, evidence.gram[index], rho[index], linear, square)
        widths_along_arms(menu.squared, square, unit_width)
    else:
        both_forms(menu.columns, centre, evidence.inverse[index], 0.0, linear, square)
        lengths(square, unit_width)


@kernel(refcounts=False)
def _row(forms: Forms, index: int, K: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Linear form, quadratic form and unit width of one vector, as views of the buffers; (K,) each."""
    return forms.linear[index, :K], forms.square[index, :K], forms.unit_width[index, :K]


@kernel(refcounts=False)
def follow(
    gain: FloatArray,
    forms: Forms,
    evidence: Evidence,
    menu: Menu,
    action: FloatArray,
    index: int,
    surprise: float,
) -> None:
    """Bring the row of a vector up to date after `action` was absorbed for it; `gain` (d,) is a buffer.

    |a|_V^2 has grown by <a, action>^2. With W the new inverse and g = W action, the old inverse was
    W + g g' / (1 - <action, g>): |a|_W^2 has shrunk by <a, g>^2 / (1 - <action, g>). The centre has moved
    by g times the surprise, feedback - <action, old centre>. The row is marked as not filled, and so
    recomputed when next needed, in two cases: where |a|_W^2 may have shrunk more than twentyfold, since
    the subtraction would lose its digits, and after REFILL measurements, so that rounding errors do not
    accumulate.
    """
    if forms.filled[index]:
        if forms.metric == PRECISION:
            _follow_precision(forms, evidence, menu, action, index)
        else:
            apply_into(evidence.inverse[index], action, gain)
            left = 1.0 - dot(action, gain)
            if left < 0.05 or evidence.counts[index] % REFILL == 0:
                forms.filled[index] = 0
            else:
                _follow_covariance(forms, menu, gain, index, surprise, left)


@kernel(refcounts=False)
def _follow_precision(
    forms: Forms, evidence: Evidence, menu: Menu, action: FloatArray, index: int
) -> None:
    linear, square, unit_width = _row(forms, index, menu.squared.size)
    scores(menu.columns, action, linear)  # here `linear` is only a buffer
    grow(linear, menu.squared, square, unit_width)
    scores(menu.columns, evidence.centre[index], linear)


@kernel(refcounts=False)
def _follow_covariance(
    forms: Forms, menu: Menu, direction: FloatArray, index: int, surprise: float, left_over: float
) -> None:
    linear, square, unit_width = _row(forms, index, menu.squared.size)
    along = forms.workspace.values[: square.size]
    scores(menu.columns, direction, along)
    shrink(along, surprise, left_over, linear, square, unit_width)


@kernel(refcounts=False, fma=True)
def grow(
    along: FloatArray, squared: FloatArray, square: FloatArray, unit_width: FloatArray
) -> None:
    """Update |a|_V^2 and unit width of every arm after `action` was measured; `along` is <a, action>.

    V has grown by action action', so |a|_V^2 by <a, action>^2.
    """
    for k in range(square.size):
        square[k] += along[k] * along[k]
        unit_width[k] = _along_arm(squared[k], square[k])


@kernel(refcounts=False, fma=True)
def shrink(
    along: FloatArray,
    surprise: float,
    left_over: float,
    linear: FloatArray,
    square: FloatArray,
    unit_width: FloatArray,
) -> None:
    """Update <a, centre>, |a|_W^2 and unit width after `action` was measured; `along` is <a, g>; (K,).

    Sherman-Morrison: with W the new inverse, g = W action and left_over = 1 - <action, g>, the old
    inverse was W + g g' / left_over. The centre has moved by the surprise times g.
    """
    share = 1.0 / left_over
    for k in range(square.size):
        linear[k] += surprise * along[k]
        square[k] -= along[k] * along[k] * share
        unit_width[k] = np.sqrt(max(square[k], 0.0))


def write_upper(linear: FloatArray, unit_width: FloatArray, radius: float, out: FloatArray) -> None:
    """Largest <a, theta> over one confidence set, for every arm, from its forms, into `out` (K,)."""
    np.add(linear, radius * unit_width, out=out)


@compiled_as(write_upper, refcounts=False)
def _write_upper_loop(
    linear: FloatArray, unit_width: FloatArray, radius: float, out: FloatArray
) -> None:
    for k in range(out.size):
        out[k] = linear[k] + radius * unit_width[k]


@kernel
def upper_means(
    columns: FloatArray, centre: FloatArray, inverse: FloatArray, radius: float, out: FloatArray
) -> None:
    """The same without forms that are kept."""
    square = np.empty(out.size)
    both_forms(columns, centre, inverse, 0.0, out, square)
    lengths(square, square)
    write_upper(out, square, radius, out)
