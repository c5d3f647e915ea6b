"""Passes over all arms, arms innermost, so that the machine works on several at a time.

What a pass does with the few numbers of one arm is written out: they then stay in registers, and an
arm is read once. Eight columns go into a pass over inner products, and up to `WRITTEN` into one over
quadratic forms; more of them are taken in tiles.
"""

from typing import Any

import numpy as np

from sidestep.core.compiled import bare, over_arms
from sidestep.core.problem import FloatArray

EIGHT = 8  # columns in one pass
WRITTEN = 8  # up to which d a quadratic form is written out
CHUNK = (
    1024  # arms worked on at a time where passes are many, so that they stay in the second cache
)


@bare
def scores(columns: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Inner product of every arm with one vector, into `out` (K,)."""
    scores_before(columns, vector, vector.size, out)


@bare
def scores_before(columns: FloatArray, vector: FloatArray, stop: int, out: FloatArray) -> None:
    """The same of the first `stop` coordinates alone."""
    for k in range(out.size):
        out[k] = 0.0
    for first in range(0, stop, EIGHT):
        _add_scores(columns, vector, first, stop, out)


@over_arms
def _add_scores(
    columns: FloatArray, vector: FloatArray, first: int, stop: int, out: FloatArray
) -> None:
    a, b, c, d, e, f, g, h = _rows(first, stop)
    p, q, r, s, t, u, v, w = _weights(vector, first, stop)
    for k in range(out.size):
        left = p * columns[a, k] + q * columns[b, k] + r * columns[c, k] + s * columns[d, k]
        right = t * columns[e, k] + u * columns[f, k] + v * columns[g, k] + w * columns[h, k]
        out[k] += left + right


@over_arms
def grow(
    columns: FloatArray,
    action: FloatArray,
    before: FloatArray,
    squared: FloatArray,
    square: FloatArray,
    swing: FloatArray,
) -> None:
    """|a|_V^2 of every arm once `action` was measured, and its swing; see `Forms`.

    `before` holds <a, action> of the coordinates before the last eight, zeros where there are none.
    """
    first, stop = max(action.size - EIGHT, 0), action.size
    a, b, c, d, e, f, g, h = _rows(first, stop)
    p, q, r, s, t, u, v, w = _weights(action, first, stop)
    for k in range(square.size):
        left = p * columns[a, k] + q * columns[b, k] + r * columns[c, k] + s * columns[d, k]
        right = t * columns[e, k] + u * columns[f, k] + v * columns[g, k] + w * columns[h, k]
        along = before[k] + (left + right)
        larger = square[k] + along * along
        square[k] = larger
        swing[k] = along_arm(squared[k], larger)


@over_arms
def shrink(
    columns: FloatArray,
    direction: FloatArray,
    before: FloatArray,
    surprise: float,
    left_over: float,
    linear: FloatArray,
    square: FloatArray,
    swing: FloatArray,
) -> None:
    """<a, centre>, |a|_W^2 and swing of every arm once a measurement moved them; see `follow`."""
    first, stop = max(direction.size - EIGHT, 0), direction.size
    a, b, c, d, e, f, g, h = _rows(first, stop)
    p, q, r, s, t, u, v, w = _weights(direction, first, stop)
    share = 1.0 / left_over
    for k in range(square.size):
        left = p * columns[a, k] + q * columns[b, k] + r * columns[c, k] + s * columns[d, k]
        right = t * columns[e, k] + u * columns[f, k] + v * columns[g, k] + w * columns[h, k]
        along = before[k] + (left + right)
        linear[k] += surprise * along
        smaller = square[k] - along * along * share
        square[k] = smaller
        swing[k] = np.sqrt(max(smaller, 0.0))


Eight = tuple[float, float, float, float, float, float, float, float]


@bare
def _rows(first: int, stop: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Eight columns from `first` on; those past the last are the last."""
    end = stop - 1
    return (
        min(first, end),
        min(first + 1, end),
        min(first + 2, end),
        min(first + 3, end),
        min(first + 4, end),
        min(first + 5, end),
        min(first + 6, end),
        min(first + 7, end),
    )


@bare
def _weights(vector: FloatArray, first: int, stop: int) -> Eight:
    """Eight coordinates from `first` on; zeros past the last."""
    return (
        _coordinate(vector, first, stop),
        _coordinate(vector, first + 1, stop),
        _coordinate(vector, first + 2, stop),
        _coordinate(vector, first + 3, stop),
        _coordinate(vector, first + 4, stop),
        _coordinate(vector, first + 5, stop),
        _coordinate(vector, first + 6, stop),
        _coordinate(vector, first + 7, stop),
    )


@bare
def _coordinate(vector: FloatArray, j: int, stop: int) -> float:
    return vector[j] if j < stop else 0.0


@bare
def along_arm(squared: float, square: float) -> float:
    """|a|^2 / |a|_V; zero for the zero arm."""
    return squared / np.sqrt(square) if square > 0.0 else 0.0


@bare
def both_forms(
    columns: FloatArray,
    vector: FloatArray,
    matrix: FloatArray,
    ridge: float,
    linear: FloatArray,
    square: FloatArray,
) -> None:
    """<a, vector> and |a|^2 in the metric of matrix + ridge I, for every arm; matrix is symmetric."""
    if vector.size <= WRITTEN:
        _written_out(columns, vector, matrix, ridge, linear, square)
    else:
        scores(columns, vector, linear)
        _in_tiles(columns, matrix, ridge, square)


def _source_for(d: int) -> list[str]:
    """Lines that compute both forms for one d: a name for every weight, one expression for every form."""
    pairs = [(j, m) for j in range(d) for m in range(j + 1)]
    rows = [
        "x{} * ({})".format(j, " + ".join(f"m{j}_{m} * x{m}" for m in range(j + 1)))
        for j in range(d)
    ]
    return [
        f"if d == {d}:",
        *(f"    v{j} = vector[{j}]" for j in range(d)),
        *(
            f"    m{j}_{m} = "
            + (f"matrix[{j}, {m}] + ridge" if j == m else f"2.0 * matrix[{j}, {m}]")
            for j, m in pairs
        ),
        "    for k in range(square.size):",
        *(f"        x{j} = columns[{j}, k]" for j in range(d)),
        "        linear[k] = " + " + ".join(f"v{j} * x{j}" for j in range(d)),
        "        square[k] = " + " + ".join(rows),
    ]


def _compiled_for(dims: range) -> Any:
    """The kernel for all those d. numba does not unroll what it cannot count, so we do."""
    head = "def written_out(columns, vector, matrix, ridge, linear, square):"
    lines = [head, "    d = vector.size", *(f"    {line}" for d in dims for line in _source_for(d))]
    made: dict[str, Any] = {}
    exec("\n".join(lines), made)  # noqa: S102  (our own text, of numbers alone)
    return over_arms(made["written_out"], cached=False)


_written_out = _compiled_for(range(1, WRITTEN + 1))


@bare
def _in_tiles(columns: FloatArray, matrix: FloatArray, ridge: float, square: FloatArray) -> None:
    """|a|^2 in the metric of matrix + ridge I: three by three entries of the matrix in one pass."""
    for start in range(0, square.size, CHUNK):
        stop = min(start + CHUNK, square.size)
        there = square[start:stop]
        for k in range(there.size):
            there[k] = 0.0
        for j in range(0, matrix.shape[0], 3):
            _within(columns, start, j, matrix, ridge, there)
            for m in range(0, j, 3):
                _across(columns, start, j, m, matrix, there)


@over_arms
def _within(
    columns: FloatArray, start: int, j: int, matrix: FloatArray, ridge: float, square: FloatArray
) -> None:
    """Add what columns j to j+2 contribute among themselves; past the last one weights are zero."""
    end = matrix.shape[0] - 1
    a, b, c = (
        columns[j][start:],
        columns[min(j + 1, end)][start:],
        columns[min(j + 2, end)][start:],
    )
    aa, ab, ac = (
        matrix[j, j] + ridge,
        2.0 * _entry(matrix, j, j + 1),
        2.0 * _entry(matrix, j, j + 2),
    )
    bb, bc = _entry(matrix, j + 1, j + 1) + ridge, 2.0 * _entry(matrix, j + 1, j + 2)
    cc = _entry(matrix, j + 2, j + 2) + ridge
    bb, cc = bb if j + 1 <= end else 0.0, cc if j + 2 <= end else 0.0
    for k in range(square.size):
        square[k] += a[k] * (aa * a[k] + ab * b[k] + ac * c[k])
        square[k] += b[k] * (bb * b[k] + bc * c[k]) + c[k] * (cc * c[k])


@over_arms
def _across(
    columns: FloatArray, start: int, j: int, m: int, matrix: FloatArray, square: FloatArray
) -> None:
    """Add what columns j to j+2 contribute with columns m to m+2."""
    end = matrix.shape[0] - 1
    a, b, c = (
        columns[j][start:],
        columns[min(j + 1, end)][start:],
        columns[min(j + 2, end)][start:],
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


@bare
def _entry(matrix: FloatArray, j: int, m: int) -> float:
    """The entry, or zero past the last row or column."""
    return matrix[j, m] if max(j, m) < matrix.shape[0] else 0.0
