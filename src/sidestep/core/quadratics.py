"""Quadratic forms of all arms: unrolled up to d = 8; for larger d in tiles of 3 x 3 matrix entries.

Arms are innermost, as in passes.py.
"""

from typing import Any

from sidestep.core.arrays import FloatArray
from sidestep.core.kernels import kernel
from sidestep.core.passes import scores
from sidestep.core.unrolled import unrolled

TILE = 3  # rows and columns of the matrix in one pass: the entries just fit into the registers
CHUNK = 1024  # arms per chunk, so that they stay in the L2 cache


def _forms(n: int) -> Any:
    """A kernel for both forms of arms with at most n coordinates; weights past the last are zero.

    Its text for n = 2:

        def forms(columns, vector, matrix, ridge, linear, square):
            d = vector.size
            j0, j1 = min(0, d - 1), min(1, d - 1)
            v0, v1 = vector[j0] * (0 < d), vector[j1] * (1 < d)
            m0_0 = (matrix[j0, j0] + ridge) * (0 < d)
            m1_0 = 2.0 * matrix[j1, j0] * (1 < d)
            m1_1 = (matrix[j1, j1] + ridge) * (1 < d)
            for k in range(square.size):
                x0, x1 = columns[j0, k], columns[j1, k]
                linear[k] = v0 * x0 + v1 * x1
                square[k] = x0 * (m0_0 * x0) + x1 * (m1_0 * x0 + m1_1 * x1)
    """
    every = range(n)
    rows = [
        "x{} * ({})".format(j, " + ".join(f"m{j}_{m} * x{m}" for m in range(j + 1))) for j in every
    ]
    weights = [
        f"    m{j}_{m} = "
        + (f"(matrix[j{j}, j{j}] + ridge)" if j == m else f"2.0 * matrix[j{j}, j{m}]")
        + f" * ({j} < d)"
        for j in every
        for m in range(j + 1)
    ]
    return unrolled(
        "forms",
        f"quadratics, d <= {n}",
        [
            "def forms(columns, vector, matrix, ridge, linear, square):",
            "    d = vector.size",
            *(f"    j{j} = min({j}, d - 1)" for j in every),
            *(f"    v{j} = vector[j{j}] * ({j} < d)" for j in every),
            *weights,
            "    for k in range(square.size):",
            *(f"        x{j} = columns[j{j}, k]" for j in every),
            "        linear[k] = " + " + ".join(f"v{j} * x{j}" for j in every),
            "        square[k] = " + " + ".join(rows),
        ],
    )


_forms_4, _forms_6, _forms_8 = _forms(4), _forms(6), _forms(8)


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
    d = vector.size
    if d <= 4:
        _forms_4(columns, vector, matrix, ridge, linear, square)
    elif d <= 6:
        _forms_6(columns, vector, matrix, ridge, linear, square)
    elif d <= 8:
        _forms_8(columns, vector, matrix, ridge, linear, square)
    else:
        scores(columns, vector, linear)
        _in_tiles(columns, matrix, ridge, square)


@kernel(refcounts=False)
def _in_tiles(columns: FloatArray, matrix: FloatArray, ridge: float, square: FloatArray) -> None:
    """|a|^2 in the metric of matrix + ridge I, in tiles of its lower triangle; square (K,)."""
    for start in range(0, square.size, CHUNK):
        stop = min(start + CHUNK, square.size)
        for k in range(start, stop):
            square[k] = 0.0
        for j in range(0, matrix.shape[0], TILE):
            for m in range(0, j + 1, TILE):
                _add_tile(columns, matrix, ridge, j, m, start, stop, square)


@kernel(refcounts=False)
def weight(matrix: FloatArray, ridge: float, j: int, m: int, twice: bool) -> float:
    """Entry (j, m) of matrix + ridge I, doubled where (m, j) is skipped; zero past the last row."""
    if max(j, m) >= matrix.shape[0]:
        return 0.0
    if twice:
        return 2.0 * matrix[j, m]
    return matrix[j, m] + ridge if j == m else matrix[j, m]


def _adding_tile(n: int) -> Any:
    """A kernel that adds the contribution of the n x n tile at (j, m) to the arms of a chunk.

    Its text for n = 1:

        def add_tile(columns, matrix, ridge, j, m, start, stop, square):
            end, twice = matrix.shape[0] - 1, m < j
            j0 = min(j + 0, end)
            m0 = min(m + 0, end)
            w0_0 = weight(matrix, ridge, j + 0, m + 0, twice)
            for k in range(start, stop):
                y0 = columns[m0, k]
                square[k] += columns[j0, k] * (w0_0 * y0)
    """
    every = range(n)
    rows = [
        "columns[j{}, k] * ({})".format(i, " + ".join(f"w{i}_{h} * y{h}" for h in every))
        for i in every
    ]
    return unrolled(
        "add_tile",
        f"quadratics, tiles of {n}",
        [
            "from sidestep.core.quadratics import weight",
            "def add_tile(columns, matrix, ridge, j, m, start, stop, square):",
            "    end, twice = matrix.shape[0] - 1, m < j",
            *(f"    j{i} = min(j + {i}, end)" for i in every),
            *(f"    m{i} = min(m + {i}, end)" for i in every),
            *(
                f"    w{i}_{h} = weight(matrix, ridge, j + {i}, m + {h}, twice)"
                for i in every
                for h in every
            ),
            "    for k in range(start, stop):",
            *(f"        y{h} = columns[m{h}, k]" for h in every),
            "        square[k] += " + " + ".join(rows),
        ],
    )


_add_tile = _adding_tile(TILE)
