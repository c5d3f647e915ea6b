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

from sidestep.core.compiled import kernel
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.forms import BLOCK, COVARIANCE, PRECISION, Forms, Menu, fill_rows
from sidestep.core.geometry import DEPENDENT, add, copied, dot
from sidestep.core.problem import FloatArray, IntArray
from sidestep.core.sensitivity import first_order_values

PRINTED, CORRECTED, ELLIPSOID = 0, 1, 2
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


@kernel
def optimistic_values(
    surrogate: Surrogate,
    confidence: Confidence,
    evidence: Evidence,
    menu: Menu,
    forms: Forms,
    rows: IntArray,
) -> FloatArray:
    """Value of every arm under a surrogate; rows = 0 and the core set; (K,)."""
    return _values(surrogate.first_order, surrogate.code, confidence, evidence, menu, forms, rows)


@kernel
def _values(
    first_order: bool | None,
    code: int,
    confidence: Confidence,
    evidence: Evidence,
    menu: Menu,
    forms: Forms,
    rows: IntArray,
) -> FloatArray:
    if rows.size > evidence.centre.shape[1]:
        return np.zeros(menu.squared.size)  # s = d: nothing is left, every reward is zero
    if first_order is None:
        return _surrogate_values(code, confidence, evidence, menu, forms, rows)
    return first_order_values(confidence, evidence, menu, rows)[0]


@kernel
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
    radii = np.empty(rows.size)
    fill_rows(forms, evidence, confidence.rho, menu, rows)
    for row in range(rows.size):
        radii[row] = radius(confidence, evidence, rows[row])
    if code == ELLIPSOID:
        _along_inverse(evidence, radii, menu, forms, rows, values)
    else:
        _along_action(code == PRINTED, evidence.centre, radii, menu, forms, rows, values)
    return values


@kernel
def _along_action(
    printed: bool,
    centre: FloatArray,
    radii: FloatArray,
    menu: Menu,
    forms: Forms,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """Values when theta_i = centre_i + shift_i a: all follows from the forms; needs PRECISION."""
    n, K = rows.size, values.size
    products = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            products[i, j] = dot(centre[rows[i]], centre[rows[j]])
    room = min(BLOCK, K)
    length, gram, space = np.empty(room), np.empty((n, n, room)), np.empty((4, n, room))
    linear, square, shift, moved = space[0], space[1], space[2], space[3]
    for start in range(0, K, BLOCK):
        stop = min(start + BLOCK, K)
        copied(menu.squared[start:stop], length)
        for i in range(n):
            copied(forms.linear[rows[i]][start:stop], linear[i])
            copied(forms.square[rows[i]][start:stop], square[i])
        _shifts(printed, radii, length, linear, square, shift, moved, stop - start)
        _grams(products, linear, shift, moved, gram, stop - start)
        _project(gram, moved, n, values[start:stop])


@kernel
def _shifts(
    printed: bool,
    radii: FloatArray,
    length: FloatArray,
    linear: FloatArray,
    square: FloatArray,
    shift: FloatArray,
    moved: FloatArray,
    size: int,
) -> None:
    """How far the appendix moves the target towards a and protected estimates off it.

    Deviation from the paper: a protected estimate moves by -clip(<a, c> / w, -1, 1) steps, not +. The
    printed sign doubles <a, c>, the proof needs it to vanish; and w is radius |a|^2 / |a|_V, where
    print has |a| for |a|^2 (the same for unit arms only). In closed form: the shift -<a, c> / |a|^2
    that makes them orthogonal, or as far towards it as the set allows.
    """
    for i in range(radii.size):
        reach = radii[i]
        for k in range(size):
            shift[i, k] = reach / np.sqrt(square[i, k]) if square[i, k] > 0.0 else 0.0
        if i > 0 and printed:
            for k in range(size):
                full = linear[i, k] / np.sqrt(length[k]) if length[k] > 0.0 else 0.0
                shift[i, k] = min(shift[i, k], max(-shift[i, k], full))
        elif i > 0:
            for k in range(size):
                full = -linear[i, k] / length[k] if length[k] > 0.0 else 0.0
                shift[i, k] = min(shift[i, k], max(-shift[i, k], full))
        for k in range(size):
            moved[i, k] = linear[i, k] + shift[i, k] * length[k]


@kernel
def _grams(
    products: FloatArray,
    linear: FloatArray,
    shift: FloatArray,
    moved: FloatArray,
    gram: FloatArray,
    size: int,
) -> None:
    """<c_i + s_i a, c_j + s_j a> for a block of arms, with <a, theta_j> in moved[j]."""
    for i in range(linear.shape[0]):
        for j in range(i + 1):
            centres = products[i, j]
            for k in range(size):
                gram[i, j, k] = centres + shift[i, k] * moved[j, k] + shift[j, k] * linear[i, k]


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
        for i in range(n):
            linear = forms.linear[rows[i]][start:stop]
            square = forms.square[rows[i]][start:stop]
            for k in range(linear.size):
                norm = np.sqrt(max(square[k], 0.0))
                turn = radii[i] * norm
                if i > 0:
                    turn = -min(turn, max(-turn, linear[k]))
                moved[i, k] = linear[k] + turn
                shift[k] = turn / square[k] if norm > 0.0 else 0.0
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
