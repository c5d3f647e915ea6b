"""Quadratic forms of all arms: written out up to d = 8, in tiles above.

Arms are innermost, as in passes.py.
"""

from typing import Any

from sidestep.core.arrays import FloatArray
from sidestep.core.kernels import kernel
from sidestep.core.passes import scores

WRITTEN = 8  # up to which d a quadratic form is written out
CHUNK = 1024  # arms worked on at a time in tiles, so that they stay in the second cache


@kernel(refcounts=False)
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
    return kernel(refcounts=False, fma=True)(made["written_out"])


_written_out = _compiled_for(range(1, WRITTEN + 1))


@kernel(refcounts=False)
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


@kernel(refcounts=False, fma=True)
def _within(
    columns: FloatArray, start: int, j: int, matrix: FloatArray, ridge: float, square: FloatArray
) -> None:
    """Add what columns j to j+2 contribute among themselves; past the last one weights are zero."""
    end = matrix.shape[0] - 1
    a, b, c = _three(columns, start, j)
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


@kernel(refcounts=False, fma=True)
def _across(
    columns: FloatArray, start: int, j: int, m: int, matrix: FloatArray, square: FloatArray
) -> None:
    """Add what columns j to j+2 contribute with columns m to m+2."""
    a, b, c = _three(columns, start, j)
    x, y, z = _three(columns, start, m)
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


@kernel(inline=True)
def _three(columns: FloatArray, start: int, j: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Columns j to j+2 from an arm on; those past the last are the last."""
    end = columns.shape[0] - 1
    return columns[j][start:], columns[min(j + 1, end)][start:], columns[min(j + 2, end)][start:]


@kernel(refcounts=False)
def _entry(matrix: FloatArray, j: int, m: int) -> float:
    """The entry, or zero past the last row or column."""
    return matrix[j, m] if max(j, m) < matrix.shape[0] else 0.0
