"""Inner products of all arms, and what follows from them, in passes over eight columns.

Arms are innermost, so that the machine works on several at a time. What a pass does with the few
numbers of one arm is written out: they then stay in registers, and an arm is read once.
"""

from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.kernels import kernel

EIGHT = 8  # columns in one pass


@kernel(refcounts=False)
def scores(columns: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Inner product of every arm with one vector, into `out` (K,)."""
    scores_before(columns, vector, vector.size, out)


@kernel(refcounts=False)
def scores_before(columns: FloatArray, vector: FloatArray, stop: int, out: FloatArray) -> None:
    """The same of the first `stop` coordinates alone."""
    for k in range(out.size):
        out[k] = 0.0
    for first in range(0, stop, EIGHT):
        _add_scores(columns, vector, first, stop, out)


@kernel(refcounts=False, fma=True)
def _add_scores(
    columns: FloatArray, vector: FloatArray, first: int, stop: int, out: FloatArray
) -> None:
    rows, weights = _rows(first, stop), _weights(vector, first, stop)
    for k in range(out.size):
        out[k] += _of_eight(columns, k, rows, weights)


def _grow(*, carried: bool) -> Any:
    @kernel(refcounts=False, fma=True)
    def pass_over(
        columns: FloatArray,
        action: FloatArray,
        before: FloatArray,
        squared: FloatArray,
        square: FloatArray,
        unit_width: FloatArray,
    ) -> None:
        first, stop = max(action.size - EIGHT, 0), action.size
        rows, weights = _rows(first, stop), _weights(action, first, stop)
        for k in range(square.size):
            along = _of_eight(columns, k, rows, weights)
            along = before[k] + along if carried else along
            larger = square[k] + along * along
            square[k] = larger
            unit_width[k] = along_arm(squared[k], larger)

    return pass_over


def _shrink(*, carried: bool) -> Any:
    @kernel(refcounts=False, fma=True)
    def pass_over(
        columns: FloatArray,
        direction: FloatArray,
        before: FloatArray,
        surprise: float,
        left_over: float,
        linear: FloatArray,
        square: FloatArray,
        unit_width: FloatArray,
    ) -> None:
        first, stop = max(direction.size - EIGHT, 0), direction.size
        rows, weights = _rows(first, stop), _weights(direction, first, stop)
        share = 1.0 / left_over
        for k in range(square.size):
            along = _of_eight(columns, k, rows, weights)
            along = before[k] + along if carried else along
            linear[k] += surprise * along
            smaller = square[k] - along * along * share
            square[k] = smaller
            unit_width[k] = np.sqrt(max(smaller, 0.0))

    return pass_over


_grow_few, _grow_many = _grow(carried=False), _grow(carried=True)
_shrink_few, _shrink_many = _shrink(carried=False), _shrink(carried=True)


@kernel(refcounts=False)
def grow(
    columns: FloatArray,
    action: FloatArray,
    buffer: FloatArray,
    squared: FloatArray,
    square: FloatArray,
    unit_width: FloatArray,
) -> None:
    """|a|_V^2 of every arm once `action` was measured, and its swing; see `Forms`.

    The last eight coordinates are taken in the pass that also corrects; sums over those before, where
    there are any, go to `buffer` (K,).
    """
    if action.size > EIGHT:
        scores_before(columns, action, action.size - EIGHT, buffer)
        _grow_many(columns, action, buffer, squared, square, unit_width)
    else:
        _grow_few(columns, action, buffer, squared, square, unit_width)


@kernel(refcounts=False)
def shrink(
    columns: FloatArray,
    direction: FloatArray,
    buffer: FloatArray,
    surprise: float,
    left_over: float,
    linear: FloatArray,
    square: FloatArray,
    unit_width: FloatArray,
) -> None:
    """<a, centre>, |a|_W^2 and swing of every arm once a measurement moved them; see `follow`."""
    if direction.size > EIGHT:
        scores_before(columns, direction, direction.size - EIGHT, buffer)
        _shrink_many(columns, direction, buffer, surprise, left_over, linear, square, unit_width)
    else:
        _shrink_few(columns, direction, buffer, surprise, left_over, linear, square, unit_width)


Rows = tuple[int, int, int, int, int, int, int, int]
Weights = tuple[float, float, float, float, float, float, float, float]


@kernel(refcounts=False, fma=True)
def _of_eight(columns: FloatArray, k: int, rows: Rows, weights: Weights) -> float:
    """What eight coordinates of arm k give."""
    a, b, c, d, e, f, g, h = rows
    p, q, r, s, t, u, v, w = weights
    left = p * columns[a, k] + q * columns[b, k] + r * columns[c, k] + s * columns[d, k]
    right = t * columns[e, k] + u * columns[f, k] + v * columns[g, k] + w * columns[h, k]
    return left + right


@kernel(refcounts=False)
def _rows(first: int, stop: int) -> Rows:
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


@kernel(refcounts=False)
def _weights(vector: FloatArray, first: int, stop: int) -> Weights:
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


@kernel(refcounts=False)
def _coordinate(vector: FloatArray, j: int, stop: int) -> float:
    return vector[j] if j < stop else 0.0


@kernel(refcounts=False)
def along_arm(squared: float, square: float) -> float:
    """|a|^2 / |a|_V; zero for the zero arm."""
    return squared / np.sqrt(square) if square > 0.0 else 0.0
