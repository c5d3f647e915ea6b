"""Inner products of all arms, and updates that follow from them, in passes over eight coordinates.

Arms are the innermost axis, so that the processor works on several arms at a time.
"""

from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.kernels import kernel
from sidestep.core.unrolled import unrolled

EIGHT = 8  # coordinates in one pass


@kernel(refcounts=False)
def scores(columns: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Inner product of every arm with one vector, into `out` (K,)."""
    for k in range(out.size):
        out[k] = 0.0
    for first in range(0, vector.size, EIGHT):
        _add_columns(columns, vector, first, out)


def _adding(n: int) -> Any:
    """A kernel that adds n coordinates to every inner product; coordinates past the last are zero.

    Its text for n = 2:

        def add_columns(columns, vector, first, out):
            d = vector.size
            j0 = first + 0 if first + 0 < d else d - 1
            j1 = first + 1 if first + 1 < d else d - 1
            v0 = vector[j0] if first + 0 < d else 0.0
            v1 = vector[j1] if first + 1 < d else 0.0
            for k in range(out.size):
                out[k] += (v0 * columns[j0, k]) + (v1 * columns[j1, k])
    """
    terms = [f"v{j} * columns[j{j}, k]" for j in range(n)]
    halves = " + ".join(terms[: n // 2]), " + ".join(terms[n // 2 :])
    return unrolled(
        "add_columns",
        f"passes over {n} columns",
        [
            "def add_columns(columns, vector, first, out):",
            "    d = vector.size",
            *(f"    j{j} = first + {j} if first + {j} < d else d - 1" for j in range(n)),
            *(f"    v{j} = vector[j{j}] if first + {j} < d else 0.0" for j in range(n)),
            "    for k in range(out.size):",
            f"        out[k] += ({halves[0]}) + ({halves[1]})",
        ],
    )


_add_columns = _adding(EIGHT)


@kernel(refcounts=False, fma=True)
def grow(
    along: FloatArray, squared: FloatArray, square: FloatArray, unit_width: FloatArray
) -> None:
    """Update |a|_V^2 and unit width of every arm after `action` was measured; `along` is <a, action>.

    V has grown by action action', so |a|_V^2 by <a, action>^2.
    """
    for k in range(square.size):
        square[k] += along[k] * along[k]
        unit_width[k] = along_arm(squared[k], square[k])


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


@kernel(refcounts=False)
def along_arm(squared: float, square: float) -> float:
    """|a|^2 / |a|_V; zero for the zero arm."""
    return squared / np.sqrt(square) if square > 0.0 else 0.0
