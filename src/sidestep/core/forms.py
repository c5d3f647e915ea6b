"""Linear and quadratic forms of every arm under the estimates, kept from round to round.

Over fixed arms the forms are reused: one measurement changes one row, in O(K d). The arithmetic over
all arms is in passes.py.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.estimator import REFACTOR, Evidence
from sidestep.core.geometry import apply_into, copy_into, dot, lowest_argmax
from sidestep.core.kernels import kernel
from sidestep.core.passes import along_arm, grow, scores, shrink
from sidestep.core.quadratics import both_forms

PRECISION, COVARIANCE = 0, 1  # which quadratic form of an arm is kept: |a|_V^2 or |a|_{V^-1}^2
REFILL = 8 * REFACTOR  # measurements of a vector after which its row of |a|_{V^-1}^2 is recomputed


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
    if not forms.filled[index]:
        forms.filled[index] = 1
        K = menu.squared.size
        linear, square, unit_width = _row(forms, index, K)
        if forms.metric == PRECISION:
            both_forms(
                menu.columns,
                evidence.centre[index],
                evidence.gram[index],
                rho[index],
                linear,
                square,
            )
            _swings_along_arms(menu.squared, square, unit_width)
        else:
            both_forms(
                menu.columns, evidence.centre[index], evidence.inverse[index], 0.0, linear, square
            )
            for k in range(K):
                unit_width[k] = np.sqrt(max(square[k], 0.0))


@kernel(refcounts=False)
def _row(forms: Forms, index: int, K: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Linear form, quadratic form and unit width of one vector, as views of the buffers; (K,) each."""
    return forms.linear[index, :K], forms.square[index, :K], forms.unit_width[index, :K]


@kernel(refcounts=False)
def _swings_along_arms(squared: FloatArray, square: FloatArray, unit_width: FloatArray) -> None:
    for k in range(unit_width.size):
        unit_width[k] = along_arm(squared[k], square[k])


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


@kernel
def upper_means(
    columns: FloatArray, centre: FloatArray, inverse: FloatArray, radius: float, out: FloatArray
) -> None:
    """Largest <a, theta> over one confidence set, for every arm, into `out` (K,); no form is reused."""
    square = np.empty(out.size)
    both_forms(columns, centre, inverse, 0.0, out, square)
    for k in range(out.size):
        out[k] += radius * np.sqrt(max(square[k], 0.0))
