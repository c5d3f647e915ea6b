"""Optimistic values of finitely many arms (Alg. 2; appendix "Computing the optimistic parameters").

For a fixed arm a the appendix moves every estimate inside its confidence set, the target towards a and
the protected vectors towards orthogonality with a, and evaluates the reward there:

    value(a) = <a, Proj_perp theta_0> = <a, theta_0> - p' G^-1 q,
    p_i = <a, theta_i>,  q_i = <theta_i, theta_0>,  G_ij = <theta_i, theta_j>  over the core set.

There are three ways to move. "printed" is the appendix to the letter: its sign doubles <a, theta_i>
where the proof needs it to vanish (A2). "corrected" repairs sign and length. "ellipsoid" moves
along V^-1 a instead of a, which reaches farthest inside the set (A3); the lemma's "tight at the
optimum" holds only for it. All three are lower bounds on the optimistic value. "first-order" is
ours and becomes exact as the sets shrink (projection.py).

Arms are the innermost axis: the s x s systems of a block of arms are solved together, by elimination.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sidestep.core.arm_forms import COVARIANCE, PRECISION, Forms, Menu, fill
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.jit import by_type, compiled_as, kernel, register
from sidestep.core.linalg import add, copy_into, dot
from sidestep.core.projection import first_order_values

BLOCK = 128  # arms per block of compiled code, so that their data stay in the L1 cache
NUMPY_BLOCK = 4096  # arms per block of numpy code
# a squared length |theta|^2 below this share of |c|^2 + |theta - c|^2 is rounding: zero
VANISHED = 1e-12


class AlongArm(NamedTuple):
    """Every estimate is moved along the arm, as the appendix says."""

    metric: int  # which quadratic form of the arms it reads: PRECISION or COVARIANCE
    printed: bool  # whether sign and length are the printed ones


class AlongInverse(NamedTuple):
    """Every estimate is moved along V^-1 a."""

    metric: int


class FirstOrder(NamedTuple):
    """Sum over the sets of the largest change of the reward along its gradient."""

    metric: int


Surrogate: TypeAlias = AlongArm | AlongInverse | FirstOrder

SURROGATES: dict[str, Surrogate] = {
    "printed": AlongArm(PRECISION, True),
    "corrected": AlongArm(PRECISION, False),
    "ellipsoid": AlongInverse(COVARIANCE),
    "first-order": FirstOrder(COVARIANCE),
}


class Estimates(NamedTuple):
    """The estimates with their confidence sets, and the forms of the arms under them."""

    confidence: Confidence
    evidence: Evidence
    forms: Forms


@kernel(refcounts=False)
def optimistic_values(surrogate: Any, estimates: Estimates, menu: Menu, n: int) -> None:
    """Value of every arm under a surrogate, into `workspace.values`.

    The first n of `workspace.rows` are the vectors that count: 0 and the core set.
    """
    workspace = estimates.forms.workspace
    rows, values = workspace.rows[:n], workspace.values[: menu.squared.size]
    if n > menu.columns.shape[0]:  # s >= d: the projected target is zero
        values[:] = 0.0
    else:
        _write_values(surrogate, estimates, menu, rows, values)


@by_type
def _write_values(
    surrogate: Any, estimates: Estimates, menu: Menu, rows: IntArray, values: FloatArray
) -> None:
    """Value of every arm under a surrogate for the vectors in `rows`, into `values`."""
    raise NotImplementedError


@kernel(refcounts=False)
def _along_arm(
    surrogate: AlongArm, estimates: Estimates, menu: Menu, rows: IntArray, values: FloatArray
) -> None:
    forms = estimates.forms
    _fill_rows(estimates, menu, rows)
    _products_of(estimates.evidence.centre, rows, forms.workspace.products)
    along_action(surrogate.printed, menu.squared, forms, rows, values)


@kernel(refcounts=False)
def _along_inverse(
    surrogate: AlongInverse, estimates: Estimates, menu: Menu, rows: IntArray, values: FloatArray
) -> None:
    _fill_rows(estimates, menu, rows)
    along_inverse(estimates.evidence, menu, estimates.forms, rows, values)


@kernel
def _first_order(
    surrogate: FirstOrder, estimates: Estimates, menu: Menu, rows: IntArray, values: FloatArray
) -> None:
    found = first_order_values(estimates.confidence, estimates.evidence, menu, rows)
    copy_into(found[0], values)


register(_write_values, AlongArm, _along_arm)
register(_write_values, AlongInverse, _along_inverse)
register(_write_values, FirstOrder, _first_order)


@kernel(refcounts=False)
def _fill_rows(estimates: Estimates, menu: Menu, rows: IntArray) -> None:
    """Fill the forms of the vectors in `rows`, and the radii of their sets."""
    confidence, evidence, forms = estimates.confidence, estimates.evidence, estimates.forms
    for i in range(rows.size):
        fill(forms, evidence, confidence.rho, menu, rows[i])
        forms.workspace.radii[i] = radius(confidence, evidence, rows[i])


@kernel(refcounts=False)
def _products_of(centre: FloatArray, rows: IntArray, out: FloatArray) -> None:
    """Inner products of the estimates in `rows`, into `out`."""
    for i in range(rows.size):
        for j in range(i + 1):
            out[i, j] = out[j, i] = dot(centre[rows[i]], centre[rows[j]])


def along_action(
    printed: bool,
    squared: FloatArray,
    forms: Forms,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """Values when theta_i = centre_i + shift_i a, from the forms alone; needs the metric PRECISION."""
    n, radii, products = rows.size, forms.workspace.radii[: rows.size], forms.workspace.products
    for start in range(0, values.size, NUMPY_BLOCK):
        part = slice(start, min(start + NUMPY_BLOCK, values.size))
        length, here = squared[part], forms.linear[rows, part]
        turn = _turns_of(printed, radii, length, here, forms.unit_width[rows, part])
        moved = here + turn
        shift = np.where(length > 0.0, turn / length, 0.0)
        squares = np.diagonal(products)[:n, None] + shift * turn  # |c_i|^2 + |s_i a|^2
        # <c_i + s_i a, c_j + s_j a>, with <a, theta_j> in moved[j]
        gram = products[:n, :n, None] + shift[:, None] * moved + shift * here[:, None]
        project(gram, moved, squares, n, values[part])


def _turns_of(
    printed: bool,
    radii: FloatArray,
    squared: FloatArray,
    linear: FloatArray,
    unit_width: FloatArray,
) -> FloatArray:
    """`turns` of every vector, in numpy; linear, unit_width and the turns are (n, K)."""
    most = radii[:, None] * unit_width
    full = linear * np.sqrt(squared) if printed else -linear
    turn = np.clip(full, -most, most)
    turn[0] = most[0]
    return turn


@compiled_as(along_action)
def _along_action_loop(
    printed: bool,
    squared: FloatArray,
    forms: Forms,
    rows: IntArray,
    values: FloatArray,
) -> None:
    n, K = rows.size, values.size
    if 2 <= n <= 3 and not printed:
        _along_action_of_two(squared, forms, rows, values)
        return
    radii, products = forms.workspace.radii, forms.workspace.products
    linear, unit_width = forms.linear, forms.unit_width
    block = min(BLOCK, K)
    gram, space = np.empty((n, n, block)), np.empty((4, n, block))
    turn, moved, shift, parts = space[0], space[1], space[2], space[3]
    for start in range(0, K, BLOCK):
        stop = min(start + BLOCK, K)
        length = squared[start:stop]
        for i in range(n):
            here = linear[rows[i]][start:stop]
            turns(i, printed, radii[i], length, here, unit_width[rows[i]][start:stop], turn[i])
            for k in range(here.size):
                moved[i, k] = here[k] + turn[i, k]
                shift[i, k] = turn[i, k] / length[k] if length[k] > 0.0 else 0.0
                parts[i, k] = products[i, i] + shift[i, k] * turn[i, k]
            for j in range(i + 1):
                centres = products[i, j]
                for k in range(here.size):
                    gram[i, j, k] = centres + shift[i, k] * moved[j, k] + shift[j, k] * here[k]
        project(gram, moved, parts, n, values[start:stop])


@kernel(refcounts=False, fma=True)
def _along_action_of_two(
    squared: FloatArray, forms: Forms, rows: IntArray, values: FloatArray
) -> None:
    """The corrected values for one or two protected vectors, without buffers: several times faster."""
    last = rows.size - 1
    target, one, two = forms.linear[rows[0]], forms.linear[rows[1]], forms.linear[rows[last]]
    width_0, width_1 = forms.unit_width[rows[0]], forms.unit_width[rows[1]]
    width_2 = forms.unit_width[rows[last]]
    there = 1.0 * (rows.size == 3)  # 0: the second vector is zero, and skipped like a vanished one
    products, radii = forms.workspace.products, forms.workspace.radii
    c_10, c_20 = products[1, 0], there * products[last, 0]
    c_11, c_21 = products[1, 1], there * products[last, 1]
    c_22 = there * products[last, last]
    r_0, r_1, r_2 = radii[0], radii[1], there * radii[last]
    for k in range(values.size):
        per_square = 1.0 / squared[k] if squared[k] > 0.0 else 0.0
        here_1, here_2 = one[k], there * two[k]
        turn_0 = r_0 * width_0[k]  # see `turns`
        most_1, most_2 = r_1 * width_1[k], r_2 * width_2[k]
        turn_1 = -min(most_1, max(-most_1, here_1))
        turn_2 = -min(most_2, max(-most_2, here_2))
        moved_0 = target[k] + turn_0
        moved_1, moved_2 = here_1 + turn_1, here_2 + turn_2
        g_10 = c_10 + (turn_1 * moved_0 + turn_0 * here_1) * per_square
        g_20 = c_20 + (turn_2 * moved_0 + turn_0 * here_2) * per_square
        g_11 = c_11 + turn_1 * (moved_1 + here_1) * per_square
        g_21 = c_21 + (turn_2 * moved_1 + turn_1 * here_2) * per_square
        g_22 = c_22 + turn_2 * (moved_2 + here_2) * per_square
        parts_1 = c_11 + turn_1 * turn_1 * per_square
        parts_2 = c_22 + turn_2 * turn_2 * per_square
        # `project`: eliminate the first vector, then what is left of the second
        weight = 1.0 / g_11 if g_11 > VANISHED * parts_1 else 0.0
        share = g_21 * weight
        pivot = g_22 - share * g_21
        left = (moved_2 - share * moved_1) * (g_20 - share * g_10)
        rest = left / pivot if pivot > VANISHED * parts_2 else 0.0
        values[k] = moved_0 - moved_1 * g_10 * weight - rest


@kernel(refcounts=False)
def turns(
    i: int,
    printed: bool,
    radius: float,
    squared: FloatArray,
    linear: FloatArray,
    unit_width: FloatArray,
    turn: FloatArray,
) -> None:
    """By how much <a, theta_i> is moved: up for the target, towards zero for a protected vector.

    Deviation from the paper: a protected estimate moves by -clip(<a, c> / w, -1, 1) steps, not +. The
    printed sign doubles <a, c>, the proof needs it to vanish; and w is radius |a|^2 / |a|_V, where
    print has |a| for |a|^2 (the same for unit arms only). In closed form: by -<a, c>, which makes
    them orthogonal, or as far towards it as the set allows.
    """
    if i == 0:
        for k in range(unit_width.size):
            turn[k] = radius * unit_width[k]
    elif printed:
        for k in range(unit_width.size):
            most, full = radius * unit_width[k], linear[k] * np.sqrt(squared[k])
            turn[k] = min(most, max(-most, full))
    else:
        for k in range(unit_width.size):
            most = radius * unit_width[k]
            turn[k] = -min(most, max(-most, linear[k]))


def project(
    gram: FloatArray, moved: FloatArray, parts: FloatArray, n: int, out: FloatArray
) -> None:
    """<a, Proj_perp theta_0> for a block of arms, by elimination in the Gram matrix, in place.

    Row 0 is the target; its column of `gram` and `moved` are the two right-hand sides. A protected
    vector is skipped if it has vanished (see VANISHED): because it depends on earlier ones, or because
    its centre and its shift cancel.
    """
    size = out.size
    gram, moved, parts = gram[:, :, :size], moved[:, :size], parts[:, :size]
    out[:] = moved[0]
    for j in range(1, n):
        for m in range(1, j):
            share = gram[j, m] * gram[m, m]
            gram[j:, j] -= share * gram[j:, m]
            gram[j, 0] -= share * gram[m, 0]
            moved[j] -= share * moved[m]
        pivot = gram[j, j].copy()
        gram[j, j] = np.where(pivot > VANISHED * parts[j], 1.0 / pivot, 0.0)
        out -= moved[j] * gram[j, 0] * gram[j, j]


@compiled_as(project)
def _project_loop(
    gram: FloatArray, moved: FloatArray, parts: FloatArray, n: int, out: FloatArray
) -> None:
    size = out.size
    for k in range(size):
        out[k] = moved[0, k]
    share = np.empty(size)
    for j in range(1, n):
        for m in range(1, j):
            for k in range(size):
                # coefficient of row m, which is eliminated
                share[k] = gram[j, m, k] * gram[m, m, k]
            for k in range(size):
                gram[j, j, k] -= share[k] * gram[j, m, k]
                moved[j, k] -= share[k] * moved[m, k]
                gram[j, 0, k] -= share[k] * gram[m, 0, k]
            for i in range(j + 1, n):
                for k in range(size):
                    gram[i, j, k] -= share[k] * gram[i, m, k]
        for k in range(size):
            pivot = gram[j, j, k]
            gram[j, j, k] = 1.0 / pivot if pivot > VANISHED * parts[j, k] else 0.0
        for k in range(size):
            out[k] -= moved[j, k] * gram[j, 0, k] * gram[j, j, k]


def along_inverse(
    evidence: Evidence, menu: Menu, forms: Forms, rows: IntArray, values: FloatArray
) -> None:
    """Values when theta_i = centre_i + shift_i V_i^-1 a; needs the metric COVARIANCE."""
    n, radii = rows.size, forms.workspace.radii[: rows.size]
    centre, inverse = evidence.centre[rows], evidence.inverse[rows]
    for start in range(0, values.size, NUMPY_BLOCK):
        part = slice(start, min(start + NUMPY_BLOCK, values.size))
        here, square = forms.linear[rows, part], forms.square[rows, part]
        turn = _turns_of(False, radii, menu.squared[part], here, forms.unit_width[rows, part])
        shift = np.where(square > 0.0, turn / square, 0.0)
        moves = shift[:, None] * (inverse @ menu.columns[:, part])  # (n, d, K)
        squares = (centre * centre).sum(axis=1)[:, None] + (moves * moves).sum(axis=1)
        theta = centre[:, :, None] + moves
        gram = np.einsum("ijk,mjk->imk", theta, theta)
        project(gram, here + turn, squares, n, values[part])


@compiled_as(along_inverse)
def _along_inverse_loop(
    evidence: Evidence, menu: Menu, forms: Forms, rows: IntArray, values: FloatArray
) -> None:
    n, d, K = rows.size, evidence.centre.shape[1], values.size
    block = min(BLOCK, K)
    theta, gram = np.empty((n, d, block)), np.empty((n, n, block))
    moved, parts, shift = np.empty((n, block)), np.empty((n, block)), np.empty(block)
    for start in range(0, K, BLOCK):
        stop = min(start + BLOCK, K)
        length = menu.squared[start:stop]
        for i in range(n):
            linear = forms.linear[rows[i]][start:stop]
            square = forms.square[rows[i]][start:stop]
            turns(
                i,
                False,
                forms.workspace.radii[i],
                length,
                linear,
                forms.unit_width[rows[i]][start:stop],
                shift,
            )
            for k in range(linear.size):
                moved[i, k] = linear[k] + shift[k]
                shift[k] = shift[k] / square[k] if square[k] > 0.0 else 0.0
            _move(evidence, rows[i], menu.columns, start, shift[: stop - start], theta[i], parts[i])
            for j in range(i + 1):
                _products(theta[i], theta[j], stop - start, gram[i, j])
        project(gram, moved, parts, n, values[start:stop])


@kernel(refcounts=False)
def _move(
    evidence: Evidence,
    row: int,
    columns: FloatArray,
    start: int,
    shift: FloatArray,
    theta: FloatArray,
    parts: FloatArray,
) -> None:
    """Centre + shift V^-1 a for a block of arms, into theta (d, BLOCK).

    parts (BLOCK,) gets the sum of the squared lengths of the two summands.
    """
    centre, inverse = evidence.centre[row], evidence.inverse[row]
    stop = start + shift.size
    parts[: shift.size] = dot(centre, centre)
    for j in range(centre.size):
        moved = theta[j][: shift.size]
        moved[:] = 0.0
        for m in range(centre.size):
            add(moved, inverse[j, m], columns[m][start:stop])
        for k in range(moved.size):
            moved[k] *= shift[k]
            parts[k] += moved[k] * moved[k]
            moved[k] += centre[j]


@kernel(refcounts=False)
def _products(left: FloatArray, right: FloatArray, size: int, out: FloatArray) -> None:
    """Inner products of two moved vectors for a block of arms."""
    out[:size] = 0.0
    for j in range(left.shape[0]):
        one, other = left[j], right[j]
        for k in range(size):
            out[k] += one[k] * other[k]
