"""Which changes of the factors nobody can see: what a set of settings cannot tell apart.

Where the effects of an outcome are straight lines in the factors, settings show the effect of a change
only if the change is a combination of their differences (of the settings themselves, taken from the
baseline, where the level at the baseline is known). Along every other direction two explanations of all
results agree: an outcome rises because of one factor, or because of another that was changed with it.

    never   changes that no two candidates differ by: whatever is measured, their effect stays unknown.
            Within tolerances nothing depends on it, as no candidate differs. For the aim "clean" the best
            candidate depends on it (docs/theory.md, Theorem 9)
    so_far  changes by which candidates differ and measured settings do not: today's answer about them is
            the prior's, and measuring a candidate settles them

A direction is a change of the settings, one number a factor, in the factor's own unit. Factors are
compared in shares of their spans, so that no unit decides which direction is named; the largest change in
a direction is one span.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.errors import InputError

SMALL = 1e-8  # share of the largest singular value, below which a direction is not there
WHOLE = 1e-6  # part of a change, in spans, that counts as unseen


class Aliases(NamedTuple):
    """Changes of the settings whose effect nobody can see, one per row, in the factors' units."""

    never: FloatArray  # (k, d): no two candidates differ by them
    so_far: FloatArray  # (m, d): candidates do, and what was measured does not


def aliases(
    measured: FloatArray, candidates: FloatArray, spans: FloatArray, *, level_known: bool = False
) -> Aliases:
    """The directions that candidates cannot show, and those that measured settings have not shown.

    measured      settings at which the outcome was measured, (n, d); from the baseline if level_known
    candidates    all settings that may be chosen, (K, d); from the baseline if level_known
    spans         how far each factor may go, in its unit; (d,)
    level_known   whether the level of the outcome at the baseline is known

    >>> import numpy as np
    >>> plan = np.array([[0.0, 0.0], [10.0, 5.0], [20.0, 10.0]])  # always changed together
    >>> aliases(plan[:2], plan, np.array([20.0, 10.0])).never.round(6).tolist()
    [[20.0, -10.0]]
    """
    shown, can = (_differences(table, spans, level_known) for table in (measured, candidates))
    seen, reach = _basis(shown), _basis(can)
    never = _sparse(_off(np.eye(spans.size), reach))
    so_far = _sparse(_off(reach, seen))
    return Aliases(never * spans, so_far * spans)


def unseen_share(
    change: FloatArray, measured: FloatArray, spans: FloatArray, *, level_known: bool = False
) -> float:
    """Part of a change that measured settings do not show: 0, all of it was seen, to 1, none of it.

    change   of the settings, (d,); the others as in `aliases`

    >>> import numpy as np
    >>> round(unseen_share(np.array([1.0, 1.0]), np.array([[0.0, 0.0], [1.0, 0.0]]), np.ones(2)), 2)
    0.71
    """
    moved = np.asarray(change, dtype=float) / _checked(spans)
    length = float(np.linalg.norm(moved))
    if length == 0.0:
        return 0.0
    seen = _basis(_differences(measured, spans, level_known))
    left = moved - seen.T @ (seen @ moved)
    share = float(np.linalg.norm(left)) / length
    return share if share > WHOLE else 0.0


def direction_words(change: FloatArray, names: Sequence[str], units: Sequence[str]) -> str:
    """A direction in words: what is raised and what is lowered with it.

    change   of the settings in the factors' units, (d,)
    names    of the factors
    units    of the factors; "" for none

    >>> import numpy as np
    >>> direction_words(np.array([20.0, -10.0]), ["lisinopril", "amlodipine"], ["mg/day", "mg/day"])
    'raising lisinopril by 20 mg/day while lowering amlodipine by 10 mg/day'
    """
    parts: dict[str, list[str]] = {"raising": [], "lowering": []}
    largest = float(np.abs(change).max(initial=0.0))
    for amount, name, unit in zip(change, names, units, strict=True):
        if abs(amount) > WHOLE * largest:
            how = f"{name} by {abs(float(amount)):.4g}{' ' + unit if unit else ''}"
            parts["raising" if amount > 0 else "lowering"].append(how)
    said = [f"{verb} {' and '.join(what)}" for verb, what in parts.items() if what]
    return " while ".join(said)


def _checked(spans: FloatArray) -> FloatArray:
    """The spans, (d,); raises one sentence if one is not positive."""
    found = np.asarray(spans, dtype=float)
    if found.ndim != 1 or not (np.isfinite(found) & (found > 0)).all():
        raise InputError(f"spans must be positive numbers, one a factor, got {found.tolist()}")
    return found


def _differences(table: FloatArray, spans: FloatArray, level_known: bool) -> FloatArray:  # noqa: FBT001
    """What settings differ by, in spans; (n, d)."""
    checked = _checked(spans)
    rows = np.asarray(table, dtype=float).reshape(-1, checked.size) / checked
    if not np.isfinite(rows).all():
        raise InputError("settings must be finite numbers, got one that is not")
    return rows if level_known or len(rows) == 0 else rows - rows.mean(axis=0)


def _basis(rows: FloatArray) -> FloatArray:
    """Orthonormal rows that span the rows; (rank, d)."""
    if len(rows) == 0:
        return rows
    _, sizes, directions = np.linalg.svd(rows, full_matrices=False)
    found: FloatArray = directions[sizes > SMALL * max(float(sizes[0]), SMALL)]
    return found


def _off(rows: FloatArray, basis: FloatArray) -> FloatArray:
    """An orthonormal basis of what is left of the rows beside a basis."""
    left = rows - (rows @ basis.T) @ basis
    return _basis(np.where(np.abs(left) > SMALL, left, 0.0)) if len(left) else left


def _sparse(basis: FloatArray) -> FloatArray:
    """The same span with few factors in every direction: every one has a factor that no other has.

    Gaussian elimination with the largest entry as the pivot. The largest change of a direction is 1, and
    its first change is a rise.
    """
    rows, done = basis.copy(), np.zeros(len(basis), dtype=bool)
    for _ in range(len(rows)):
        open_rows = np.where(done[:, None], 0.0, np.abs(rows))
        k, j = np.unravel_index(int(open_rows.argmax()), rows.shape)
        rows[k] /= rows[k, j]
        for other in range(len(rows)):
            if other != k:
                rows[other] -= rows[other, j] * rows[k]
        done[k] = True
    if len(rows) == 0:
        return rows
    rows /= np.abs(rows).max(axis=1, keepdims=True)
    rows = np.where(np.abs(rows) < WHOLE, 0.0, rows)
    first = np.argmax(rows != 0.0, axis=1)
    signed: FloatArray = rows * np.sign(rows[np.arange(len(rows)), first])[:, None]
    return signed
