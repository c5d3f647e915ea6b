"""Optimistic values of finitely many arms (Alg. 2; appendix "Computing the optimistic parameters").

For a fixed arm a the appendix moves every estimate inside its set, the target towards a and the
protected vectors towards orthogonality with a, and takes the reward there:

    value(a) = <a, Proj_perp theta_0> = <a, theta_0> - p' G^-1 q,
    p_i = <a, theta_i>,  q_i = <theta_i, theta_0>,  G_ij = <theta_i, theta_j>  over the core set.

Three ways to move are kept. "printed" is the appendix to the letter: its sign doubles <a, theta_i>
where the proof needs it to vanish (A2). "corrected" repairs sign and length. "ellipsoid" moves
along V^-1 a instead of a, which reaches farthest inside the set (A3); only for it the lemma's
"tight at the optimum" holds. All three are lower bounds on the optimistic value. "first-order" is
ours: exact as the sets shrink (sensitivity.py).
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.compiled import folded, kernel
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.forms import COVARIANCE, PRECISION, Forms, Menu, fill
from sidestep.core.geometry import DEPENDENT, add, dot
from sidestep.core.problem import FloatArray, IntArray
from sidestep.core.sensitivity import first_order_values

BLOCK = 128  # arms worked on at a time, so that what they need stays in the first cache

PRINTED, CORRECTED, ELLIPSOID, FIRST_ORDER = 0, 1, 2, 3
SURROGATES = ("printed", "corrected", "ellipsoid", "first-order")


def metric_of(surrogate: str) -> int:
    """Which quadratic form of the arms a surrogate reads."""
    return PRECISION if surrogate in ("printed", "corrected") else COVARIANCE


class Surrogate(NamedTuple):
    """Which optimistic value is taken; see the top of this file."""

    code: int
    first_order: bool | None  # None where it is not: numba then leaves its code out


def surrogate_called(word: str) -> Surrogate:
    """The surrogate of that name as compiled code reads it."""
    return Surrogate(SURROGATES.index(word), True if word == "first-order" else None)


@folded
def optimistic_values(
    surrogate: Surrogate,
    confidence: Confidence,
    evidence: Evidence,
    menu: Menu,
    forms: Forms,
    rows: IntArray,
) -> FloatArray:
    """Value of every arm under a surrogate; rows = 0 and the core set; (K,)."""
    if rows.size > evidence.centre.shape[1]:
        return np.zeros(menu.squared.size)  # s = d: nothing is left, every reward is zero
    if surrogate.code == FIRST_ORDER:
        return _first_order(surrogate.first_order, confidence, evidence, menu, rows)
    return _surrogate_values(surrogate.code, confidence, evidence, menu, forms, rows)


@kernel
def _first_order(
    wanted: bool | None, confidence: Confidence, evidence: Evidence, menu: Menu, rows: IntArray
) -> FloatArray:
    if wanted is None:  # numba leaves the other branch out of the code
        return np.empty(0)
    return first_order_values(confidence, evidence, menu, rows)[0]


@folded
def _surrogate_values(
    code: int,
    confidence: Confidence,
    evidence: Evidence,
    menu: Menu,
    forms: Forms,
    rows: IntArray,
) -> FloatArray:
    """Value of every arm at the point of its confidence sets that the appendix moves to; (K,)."""
    values = np.empty(menu.squared.size)
    reach = np.empty(rows.size)
    for row in range(rows.size):
        fill(forms, evidence, confidence.rho, menu, rows[row])
        reach[row] = radius(confidence, evidence, rows[row])
    if code == ELLIPSOID:
        _along_inverse(evidence, reach, menu, forms, rows, values)
        return values
    products = _products_of(evidence.centre, rows)
    if code == CORRECTED and rows.size == 2:
        _off_one(products, reach, menu.squared, forms.linear, forms.swing, rows, values)
    elif code == CORRECTED and rows.size == 3:
        _off_two(products, reach, menu.squared, forms.linear, forms.swing, rows, values)
    else:
        printed = code == PRINTED
        _along_action(
            printed, products, reach, menu.squared, forms.linear, forms.swing, rows, values
        )
    return values


@kernel
def _products_of(centre: FloatArray, rows: IntArray) -> FloatArray:
    """Inner products of the estimates in `rows`; (n, n)."""
    products = np.empty((rows.size, rows.size))
    for i in range(rows.size):
        for j in range(i + 1):
            products[i, j] = products[j, i] = dot(centre[rows[i]], centre[rows[j]])
    return products


@kernel
def _off_one(
    products: FloatArray,
    radii: FloatArray,
    squared: FloatArray,
    linear: FloatArray,
    swing: FloatArray,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """`_along_action` for the corrected surrogate and s = 1, in one pass."""
    q, g = products[0, 1], products[1, 1]
    linear_0, linear_1 = linear[rows[0]], linear[rows[1]]
    swing_0, swing_1 = swing[rows[0]], swing[rows[1]]
    for k in range(values.size):
        length = 1.0 / squared[k] if squared[k] > 0.0 else 0.0
        turn_0, most_1 = radii[0] * swing_0[k], radii[1] * swing_1[k]
        turn_1 = -min(most_1, max(-most_1, linear_1[k]))
        moved_0, moved_1 = linear_0[k] + turn_0, linear_1[k] + turn_1
        q_1 = q + (turn_1 * moved_0 + turn_0 * linear_1[k]) * length
        g_11 = g + turn_1 * (moved_1 + linear_1[k]) * length
        share = moved_1 / g_11 if g_11 > 0.0 else 0.0
        values[k] = moved_0 - share * q_1


@kernel
def _off_two(
    products: FloatArray,
    radii: FloatArray,
    squared: FloatArray,
    linear: FloatArray,
    swing: FloatArray,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """`_along_action` for the corrected surrogate and s = 2, in one pass."""
    linear_0, linear_1, linear_2 = linear[rows[0]], linear[rows[1]], linear[rows[2]]
    swing_0, swing_1, swing_2 = swing[rows[0]], swing[rows[1]], swing[rows[2]]
    for k in range(values.size):
        length = 1.0 / squared[k] if squared[k] > 0.0 else 0.0
        turn_0, most_1, most_2 = (
            radii[0] * swing_0[k],
            radii[1] * swing_1[k],
            radii[2] * swing_2[k],
        )
        turn_1 = -min(most_1, max(-most_1, linear_1[k]))
        turn_2 = -min(most_2, max(-most_2, linear_2[k]))
        moved_0, moved_1, moved_2 = linear_0[k] + turn_0, linear_1[k] + turn_1, linear_2[k] + turn_2
        q_1 = products[1, 0] + (turn_1 * moved_0 + turn_0 * linear_1[k]) * length
        q_2 = products[2, 0] + (turn_2 * moved_0 + turn_0 * linear_2[k]) * length
        g_11 = products[1, 1] + turn_1 * (moved_1 + linear_1[k]) * length
        g_21 = products[2, 1] + (turn_2 * moved_1 + turn_1 * linear_2[k]) * length
        g_22 = products[2, 2] + turn_2 * (moved_2 + linear_2[k]) * length
        weight = 1.0 / g_11 if g_11 > 0.0 else 0.0
        share = g_21 * weight
        pivot = g_22 - share * g_21
        left = (moved_2 - share * moved_1) * (q_2 - share * q_1)
        values[k] = moved_0 - moved_1 * q_1 * weight
        values[k] -= left / pivot if pivot > DEPENDENT * g_22 else 0.0


@kernel
def _along_action(
    printed: bool,
    products: FloatArray,
    radii: FloatArray,
    squared: FloatArray,
    linear: FloatArray,
    swing: FloatArray,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """Values when theta_i = centre_i + shift_i a: all follows from the forms; needs PRECISION."""
    n, K = rows.size, values.size
    room = min(BLOCK, K)
    gram, space = np.empty((n, n, room)), np.empty((3, n, room))
    turn, moved, shift = space[0], space[1], space[2]
    for start in range(0, K, BLOCK):
        stop = min(start + BLOCK, K)
        length = squared[start:stop]
        for i in range(n):
            here = linear[rows[i]][start:stop]
            _turn(i, printed, radii[i], length, here, swing[rows[i]][start:stop], turn[i])
            for k in range(here.size):
                moved[i, k] = here[k] + turn[i, k]
                shift[i, k] = turn[i, k] / length[k] if length[k] > 0.0 else 0.0
            # <c_i + s_i a, c_j + s_j a>, with <a, theta_j> in moved[j]
            for j in range(i + 1):
                centres = products[i, j]
                for k in range(here.size):
                    gram[i, j, k] = centres + shift[i, k] * moved[j, k] + shift[j, k] * here[k]
        _project(gram, moved, n, values[start:stop])


@kernel
def _turn(
    i: int,
    printed: bool,
    reach: float,
    squared: FloatArray,
    linear: FloatArray,
    swing: FloatArray,
    turn: FloatArray,
) -> None:
    """By how much <a, theta_i> is moved: the target's up, a protected one towards zero.

    Deviation from the paper: a protected estimate moves by -clip(<a, c> / w, -1, 1) steps, not +. The
    printed sign doubles <a, c>, the proof needs it to vanish; and w is radius |a|^2 / |a|_V, where
    print has |a| for |a|^2 (the same for unit arms only). In closed form: by -<a, c>, which makes
    them orthogonal, or as far towards it as the set allows.
    """
    if i == 0:
        for k in range(swing.size):
            turn[k] = reach * swing[k]
    elif printed:
        for k in range(swing.size):
            most, full = reach * swing[k], linear[k] * np.sqrt(squared[k])
            turn[k] = min(most, max(-most, full))
    else:
        for k in range(swing.size):
            most = reach * swing[k]
            turn[k] = -min(most, max(-most, linear[k]))


@kernel
def _along_inverse(
    evidence: Evidence,
    radii: FloatArray,
    menu: Menu,
    forms: Forms,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """Values when theta_i = centre_i + shift_i V_i^-1 a; needs COVARIANCE."""
    n, d, K = rows.size, evidence.centre.shape[1], values.size
    room = min(BLOCK, K)
    theta, moved, gram = np.empty((n, d, room)), np.empty((n, room)), np.empty((n, n, room))
    shift = np.empty(room)
    for start in range(0, K, BLOCK):
        stop = min(start + BLOCK, K)
        length = menu.squared[start:stop]
        for i in range(n):
            linear = forms.linear[rows[i]][start:stop]
            square = forms.square[rows[i]][start:stop]
            _turn(i, False, radii[i], length, linear, forms.swing[rows[i]][start:stop], shift)
            for k in range(linear.size):
                moved[i, k] = linear[k] + shift[k]
                shift[k] = shift[k] / square[k] if square[k] > 0.0 else 0.0
            _move(evidence, rows[i], menu.columns, start, shift[: stop - start], theta[i])
            for j in range(i + 1):
                _products(theta[i], theta[j], stop - start, gram[i, j])
        _project(gram, moved, n, values[start:stop])


@kernel
def _move(
    evidence: Evidence,
    row: int,
    columns: FloatArray,
    start: int,
    shift: FloatArray,
    theta: FloatArray,
) -> None:
    """Centre + shift V^-1 a for a block of arms, into theta (d, BLOCK)."""
    centre, inverse = evidence.centre[row], evidence.inverse[row]
    stop = start + shift.size
    for j in range(centre.size):
        moved = theta[j][: shift.size]
        moved[:] = 0.0
        for m in range(centre.size):
            add(moved, inverse[j, m], columns[m][start:stop])
        for k in range(moved.size):
            moved[k] = centre[j] + shift[k] * moved[k]


@kernel
def _products(left: FloatArray, right: FloatArray, size: int, out: FloatArray) -> None:
    """Inner products of two moved vectors for a block of arms."""
    out[:size] = 0.0
    for j in range(left.shape[0]):
        one, other = left[j], right[j]
        for k in range(size):
            out[k] += one[k] * other[k]


@kernel
def _project(gram: FloatArray, moved: FloatArray, n: int, out: FloatArray) -> None:
    """<a, Proj_perp theta_0> for a block of arms, by elimination in the Gram matrix, in place.

    Row 0 is the target; its column of `gram` and `moved` are the two right-hand sides. A
    protected vector that depends on those before it is passed over.
    """
    size = out.size
    for k in range(size):
        out[k] = moved[0, k]
    space = np.empty((2, size))
    share, whole = space[0], space[1]
    for j in range(1, n):
        for k in range(size):
            whole[k] = gram[j, j, k]
        for m in range(1, j):
            for k in range(size):
                share[k] = gram[j, m, k] * gram[m, m, k]  # of row m, which is eliminated
            for k in range(size):
                gram[j, j, k] -= share[k] * gram[j, m, k]
                moved[j, k] -= share[k] * moved[m, k]
                gram[j, 0, k] -= share[k] * gram[m, 0, k]
            for i in range(j + 1, n):
                for k in range(size):
                    gram[i, j, k] -= share[k] * gram[i, m, k]
        for k in range(size):
            pivot = gram[j, j, k]  # squares: below 1e-6 of its length a vector counts as dependent
            gram[j, j, k] = 1.0 / pivot if pivot > DEPENDENT * whole[k] else 0.0
        for k in range(size):
            out[k] -= moved[j, k] * gram[j, 0, k] * gram[j, j, k]
