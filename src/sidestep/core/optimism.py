"""Optimistic values of finitely many arms (Alg. 2; appendix "Computing the optimistic parameters").

For a fixed arm a the appendix moves every estimate inside its confidence set, the target towards a and
the protected vectors towards orthogonality with a, and evaluates the reward there:

    value(a) = <a, Proj_perp theta_0> = <a, theta_0> - p' G^-1 q,
    p_i = <a, theta_i>,  q_i = <theta_i, theta_0>,  G_ij = <theta_i, theta_j>  over the core set.

There are three ways to move. "printed" is the appendix to the letter: its sign doubles <a, theta_i>
where the proof needs it to vanish (A2). "corrected" repairs sign and length. "ellipsoid" moves
along V^-1 a instead of a, which reaches farthest inside the set (A3); the lemma's "tight at the
optimum" holds only for it. All three are lower bounds on the optimistic value. "first-order" is
ours and becomes exact as the sets shrink (sensitivity.py).
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.forms import COVARIANCE, PRECISION, Forms, Menu, fill
from sidestep.core.geometry import add, copy_into, dot
from sidestep.core.kernels import by_type, kernel, register
from sidestep.core.sensitivity import first_order_values
from sidestep.core.surrogates import BLOCK, along_action, off_one, off_two, project, turns


class AlongArm(NamedTuple):
    """Every estimate is moved along the arm, as the appendix says."""

    metric: int  # which quadratic form of the arms it reads: PRECISION or COVARIANCE
    printed: bool  # whether sign and length are the printed ones
    any_rank: bool | None = True  # None: the core set is known to have one or two vectors


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


def surrogate_for(name: str, rank: int | None) -> Surrogate:
    """A surrogate by name, for core sets of size `rank`; None: the size is not known beforehand."""
    surrogate = SURROGATES[name]
    if isinstance(surrogate, AlongArm) and not surrogate.printed and rank in (1, 2):
        return surrogate._replace(any_rank=None)
    return surrogate


@by_type
def optimistic_values(
    surrogate: Any, known: tuple[Confidence, Evidence], menu: Menu, forms: Forms, n: int
) -> None:
    """Value of every arm under a surrogate, into `workspace.values`.

    The first n of `workspace.rows` are the vectors that count: 0 and the core set.
    """
    raise NotImplementedError


@kernel(refcounts=False)
def _along_arm(
    surrogate: AlongArm, known: tuple[Confidence, Evidence], menu: Menu, forms: Forms, n: int
) -> None:
    rows, values = forms.workspace.rows[:n], forms.workspace.values[: menu.squared.size]
    if fill_rows(known, menu, forms, n):
        _products_of(known[1].centre, rows, forms.workspace.products)
        _along_arms(surrogate.any_rank, surrogate.printed, menu.squared, forms, rows, values)


@kernel(refcounts=False)
def _along_inverse(
    surrogate: AlongInverse, known: tuple[Confidence, Evidence], menu: Menu, forms: Forms, n: int
) -> None:
    rows, values = forms.workspace.rows[:n], forms.workspace.values[: menu.squared.size]
    if fill_rows(known, menu, forms, n):
        _moved_along_inverse(known[1], forms.workspace.radii, menu, forms, rows, values)


@kernel(refcounts=False)
def _first_order(
    surrogate: FirstOrder, known: tuple[Confidence, Evidence], menu: Menu, forms: Forms, n: int
) -> None:
    rows, values = forms.workspace.rows[:n], forms.workspace.values[: menu.squared.size]
    if _something_is_left(menu.columns.shape[0], n, values):
        write_first_order(known[0], known[1], menu, rows, values)


register(optimistic_values, AlongArm, _along_arm)
register(optimistic_values, AlongInverse, _along_inverse)
register(optimistic_values, FirstOrder, _first_order)


@kernel(refcounts=False)
def fill_rows(known: tuple[Confidence, Evidence], menu: Menu, forms: Forms, n: int) -> bool:
    """Fill forms and radii of the first n of `workspace.rows`; False where every value is zero."""
    confidence, evidence = known
    workspace = forms.workspace
    if not _something_is_left(menu.columns.shape[0], n, workspace.values[: menu.squared.size]):
        return False
    for i in range(n):
        fill(forms, evidence, confidence.rho, menu, workspace.rows[i])
        workspace.radii[i] = radius(confidence, evidence, workspace.rows[i])
    return True


@kernel(refcounts=False)
def _something_is_left(d: int, n: int, values: FloatArray) -> bool:
    """Whether s < d. Otherwise the projected target is zero, and so is every value."""
    if n <= d:
        return True
    for k in range(values.size):
        values[k] = 0.0
    return False


@kernel
def write_first_order(
    confidence: Confidence, evidence: Evidence, menu: Menu, rows: IntArray, values: FloatArray
) -> None:
    """First-order values into `values`; a kernel of its own because it allocates and frees an array."""
    copy_into(first_order_values(confidence, evidence, menu, rows)[0], values)


@kernel(refcounts=False)
def _along_arms(
    any_rank: bool | None,
    printed: bool,
    squared: FloatArray,
    forms: Forms,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """Values when every estimate is moved along the arm, as in the appendix."""
    products, radii = forms.workspace.products, forms.workspace.radii
    if rows.size == 2 and not printed:
        off_one(products, radii, squared, forms.linear, forms.unit_width, rows, values)
    elif rows.size == 3 and not printed:
        off_two(products, radii, squared, forms.linear, forms.unit_width, rows, values)
    elif any_rank is not None:  # for None numba does not compile this branch
        along_action(
            printed, products, radii, squared, forms.linear, forms.unit_width, rows, values
        )


@kernel(refcounts=False)
def _products_of(centre: FloatArray, rows: IntArray, out: FloatArray) -> None:
    """Inner products of the estimates in `rows`, into `out`."""
    for i in range(rows.size):
        for j in range(i + 1):
            out[i, j] = out[j, i] = dot(centre[rows[i]], centre[rows[j]])


@kernel
def _moved_along_inverse(
    evidence: Evidence,
    radii: FloatArray,
    menu: Menu,
    forms: Forms,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """Values when theta_i = centre_i + shift_i V_i^-1 a; needs COVARIANCE."""
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
            turns(i, False, radii[i], length, linear, forms.unit_width[rows[i]][start:stop], shift)
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
