"""What may be played in a round: finitely many arms, or a solid (Assumption 3.1: the unit ball).

A Thompson policy and the genie need from a solid only its point farthest along a direction g:

    UnitBall    g / |g|                      Box        the corner with the signs of g
    Ellipsoid   c + A A'g / |A'g|            Simplex    e_j for the largest g_j
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.jit import kernel
from sidestep.core.linalg import apply, dot, lowest_argmax, scaled
from sidestep.core.problem import TOO_LONG, Problem
from sidestep.core.validation import SLACK, as_numbers, check_integer, is_finite, shown
from sidestep.errors import InputError

BALL, BOX, ELLIPSOID, SIMPLEX = 0, 1, 2, 3


class Body(NamedTuple):
    """One of these sets in the form that compiled code reads."""

    kind: int
    centre: FloatArray  # (d,)
    half: FloatArray  # (d,): half the edge lengths of a box
    axes: FloatArray  # (d, d): A of an ellipsoid, else empty


@dataclass(frozen=True, slots=True)
class UnitBall:
    """All vectors of length at most one; the paper's action set.

    dim   d, the length of an action

    >>> import sidestep as ss
    >>> ss.UnitBall(3).longest
    1.0
    """

    dim: int  # d

    def __post_init__(self) -> None:
        check_integer("dim", self.dim, low=1)

    @property
    def longest(self) -> float:
        """Length of the longest action."""
        return 1.0

    @property
    def body(self) -> Body:
        """The ball as compiled code reads it."""
        return _body(BALL, np.zeros(self.dim))

    def contains(self, action: FloatArray) -> bool:
        """Whether the action may be played, up to rounding."""
        return bool(action.shape == (self.dim,) and np.linalg.norm(action) <= 1 + SLACK)


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """All vectors between two corners: a range for every coordinate.

    low    smallest value of every coordinate; (d,)
    high   largest value of every coordinate; (d,)

    >>> import sidestep as ss
    >>> ss.Box([-1, 0], [1, 2]).dim
    2
    """

    low: Sequence[float] | FloatArray  # (d,)
    high: Sequence[float] | FloatArray  # (d,)

    def __post_init__(self) -> None:
        low, high = (np.atleast_1d(as_numbers("box", side)) for side in (self.low, self.high))
        if low.ndim != 1 or low.shape != high.shape or low.size == 0:
            raise InputError(
                f"box must have corners low and high of one length, got shapes {low.shape} "
                f"and {high.shape}"
            )
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
            raise InputError(
                "box must have finite corners with low <= high, got "
                f"{shown(low.tolist())} and {shown(high.tolist())}"
            )
        _keep(self, low=low, high=high)

    @property
    def dim(self) -> int:
        """d, the length of an action."""
        return len(self.low)

    @property
    def longest(self) -> float:
        """Length of the longest action."""
        return float(np.linalg.norm(np.maximum(np.abs(self.low), np.abs(self.high))))

    @property
    def body(self) -> Body:
        """The box as compiled code reads it."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        return _body(BOX, (low + high) / 2, half=(high - low) / 2)

    def contains(self, action: FloatArray) -> bool:
        """Whether the action may be played, up to rounding."""
        body = self.body
        slack = SLACK * max(self.longest, 1.0)
        return bool((np.abs(action - body.centre) <= body.half + slack).all())


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """Every c + A u with |u| <= 1.

    axes     A, or the half-lengths along the coordinates; (d, d) or (d,)
    centre   c; None: the origin

    >>> import numpy as np, sidestep as ss
    >>> ss.Ellipsoid(np.array([2.0, 0.5])).longest
    2.0
    """

    axes: FloatArray  # (d, d)
    centre: Sequence[float] | FloatArray | None = None  # (d,); None: the origin
    longest: float = field(init=False, repr=False)  # an upper bound: |c| + the longest semi-axis

    def __post_init__(self) -> None:
        axes = as_numbers("axes", self.axes)
        axes = np.diag(axes) if axes.ndim == 1 else axes
        if axes.ndim != 2 or axes.shape[0] != axes.shape[1] or axes.size == 0:
            raise InputError(f"axes must have shape (d,) or (d, d), got {axes.shape}")
        centre = np.zeros(len(axes)) if self.centre is None else as_numbers("centre", self.centre)
        if centre.shape != (len(axes),):
            raise InputError(f"centre must have shape ({len(axes)},), got {centre.shape}")
        if not (np.isfinite(axes).all() and np.isfinite(centre).all()):
            raise InputError("axes and centre must be finite numbers, got NaN or infinity")
        if np.linalg.matrix_rank(axes) < len(axes):
            raise InputError("axes must be independent, got a matrix that is not invertible")
        longest = float(np.linalg.norm(centre) + np.linalg.norm(axes, 2))
        _keep(self, axes=axes, centre=centre)
        object.__setattr__(self, "longest", longest)

    @property
    def dim(self) -> int:
        """d, the length of an action."""
        return len(self.axes)

    @property
    def body(self) -> Body:
        """The ellipsoid as compiled code reads it."""
        return _body(ELLIPSOID, np.asarray(self.centre), axes=np.array(self.axes))

    def contains(self, action: FloatArray) -> bool:
        """Whether the action may be played, up to rounding."""
        inside = np.linalg.solve(self.axes, action - np.asarray(self.centre))
        return bool(np.linalg.norm(inside) <= 1 + 1e3 * SLACK)


@dataclass(frozen=True, slots=True)
class Simplex:
    """Shares of a whole: every coordinate >= 0, their sum `total`.

    dim     d, how many shares
    total   their sum

    >>> import numpy as np, sidestep as ss
    >>> ss.Simplex(3).contains(np.array([0.5, 0.3, 0.2]))
    True
    """

    dim: int
    total: float = 1.0

    def __post_init__(self) -> None:
        check_integer("dim", self.dim, low=1)
        if not is_finite(self.total) or self.total <= 0:
            raise InputError(f"total must be positive and finite, got {shown(self.total)}")

    @property
    def longest(self) -> float:
        """Length of the longest action."""
        return float(self.total)

    @property
    def body(self) -> Body:
        """The simplex as compiled code reads it."""
        return _body(SIMPLEX, np.zeros(self.dim), half=np.full(self.dim, float(self.total)))

    def contains(self, action: FloatArray) -> bool:
        """Whether the action may be played, up to rounding."""
        slack = SLACK * self.total
        return bool((action >= -slack).all() and abs(action.sum() - self.total) <= slack)


Solid: TypeAlias = UnitBall | Box | Ellipsoid | Simplex
SOLIDS = (UnitBall, Box, Ellipsoid, Simplex)


@kernel
def farthest(body: Body, direction: FloatArray) -> FloatArray:
    """The action with the largest <a, direction>; the direction must not be zero; (d,)."""
    d = direction.size
    if body.kind == BALL:
        return scaled(1.0 / np.sqrt(dot(direction, direction)), direction)
    if body.kind == SIMPLEX:
        corner: FloatArray = np.zeros(d)
        best = lowest_argmax(direction)
        corner[best] = body.half[best]
        return corner
    action: FloatArray = body.centre.copy()
    if body.kind == BOX:
        for j in range(d):
            action[j] += body.half[j] if direction[j] >= 0.0 else -body.half[j]
        return action
    along = np.zeros(d)  # A' g
    for j in range(d):
        for k in range(d):
            along[k] += body.axes[j, k] * direction[j]
    length = np.sqrt(dot(along, along))
    moved = apply(body.axes, along)
    for j in range(d):
        action[j] += moved[j] / length
    return action


def _body(
    kind: int, centre: FloatArray, half: FloatArray | None = None, axes: FloatArray | None = None
) -> Body:
    """A body whose arrays have the same types for every kind, as compiled code requires."""
    d = len(centre)
    half = np.zeros(d) if half is None else np.array(half)
    return Body(kind, np.array(centre), half, np.zeros((0, 0)) if axes is None else axes)


def _keep(solid: object, **arrays: FloatArray) -> None:
    """Store read-only copies of the checked arrays."""
    for name, array in arrays.items():
        array.setflags(write=False)
        object.__setattr__(solid, name, array)


__all__ = ["Actions", "Arms", "UnitBall", "checked_actions", "name_directions", "unreached"]


# the arms do not reach a direction with less than this share of the largest eigenvalue
REACHED = 1e-8
ON_A_SOLID = -1  # stands for the row of the arm when the action was chosen in a solid


@kernel(refcounts=False)
def off_menu(axis: int) -> int:
    """The code of e_{axis+1}, used like the row of an arm; e_{axis+1} need not be on the menu."""
    return ON_A_SOLID - 1 - axis


@kernel(refcounts=False)
def write_basis_vector(arm: int, out: FloatArray) -> None:
    """Write the basis vector with the code `arm` (see `off_menu`) into `out` (d,)."""
    for j in range(out.size):
        out[j] = 1.0 if arm == ON_A_SOLID - 1 - j else 0.0


def basis_vector(dim: int, arm: int) -> FloatArray:
    """The basis vector with the code `arm`, as a new array; (dim,)."""
    vector = np.empty(dim)
    write_basis_vector(arm, vector)
    return vector


@dataclass(frozen=True, slots=True, eq=False)
class Arms:
    """A finite list of actions, one per row. The rows are copied and read-only.

    vectors   the actions; (K, d)
    rows      numbers of the arms in decisions; None: 0..K-1

    >>> import sidestep as ss
    >>> arms = ss.Arms([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> len(arms), arms.dim, len(arms.only([True, False, True]))
    (3, 2, 2)
    """

    vectors: FloatArray  # (K, d)
    rows: IntArray | None = None  # the caller's numbers of these arms, (K,); None: 0..K-1
    columns: FloatArray = field(init=False, repr=False)  # (d, K): arms innermost, for kernels
    squared: FloatArray = field(init=False, repr=False)  # (K,): |a|^2
    longest: float = field(init=False, repr=False)  # largest |a|
    firsts: IntArray | None = field(init=False, repr=False, default=None)  # see `distinct`

    if TYPE_CHECKING:  # the constructor also accepts lists

        def __init__(self, vectors: ArrayLike, rows: IntArray | None = None) -> None: ...

    def __repr__(self) -> str:
        return f"Arms({len(self)} in R^{self.dim})"

    def __post_init__(self) -> None:
        given = self.vectors
        as_they_are = isinstance(given, np.ndarray) and given.dtype == np.float64
        vectors = given if as_they_are else as_numbers("arms", given)
        if vectors.ndim != 2 or vectors.size == 0:
            hint = ": a single arm is a row as well, [[...]]" if vectors.ndim == 1 else ""
            raise InputError(
                f"arms must be a non-empty array of shape (K, d), got shape {vectors.shape}{hint}"
            )
        columns = np.array(vectors.T, order="C")  # a copy, even where K or d is 1
        squared = np.einsum("jk,jk->k", columns, columns)
        longest = float(np.sqrt(squared.max()))
        if not np.isfinite(longest):
            row = int(np.flatnonzero(~np.isfinite(squared))[0])
            raise InputError(f"arms must be finite numbers, got {vectors[row]} in row {row}")
        if self.rows is not None and np.shape(self.rows) != (len(vectors),):
            raise InputError(
                f"rows must be {len(vectors)} numbers, got shape {np.shape(self.rows)}"
            )
        vectors = columns.T  # a view, not a second copy: there may be many arms
        vectors.setflags(write=False)
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "squared", squared)
        object.__setattr__(self, "longest", longest)

    @property
    def dim(self) -> int:
        """d, the length of a row."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return int(self.vectors.shape[0])

    def __reduce__(self) -> tuple[type["Arms"], tuple[FloatArray, IntArray | None]]:
        return Arms, (self.vectors, self.rows)

    def only(self, allowed: object) -> "Arms":
        """The arms that a mask (K,) allows in this round; decisions still use their old numbers."""
        mask = np.asarray(allowed)
        if mask.shape != (len(self),) or mask.dtype != bool:
            raise InputError(
                f"allowed must be {len(self)} truth values, one per arm, "
                f"got {mask.dtype} of shape {mask.shape}"
            )
        if not mask.any():
            raise InputError("allowed must leave at least one arm, got none")
        rows = np.flatnonzero(mask) if self.rows is None else np.asarray(self.rows)[mask]
        return Arms(self.vectors[mask], rows)

    def distinct(self) -> "Arms":
        """These arms without duplicates, each with the number of its first row; computed once.

        A choice by value takes the first of several equal arms, so it needs to compare only these.
        """
        if self.firsts is None:
            object.__setattr__(self, "firsts", _first_rows(self.columns))
        if self.firsts is None or len(self.firsts) == len(self):
            return self
        rows = self.firsts if self.rows is None else np.asarray(self.rows)[self.firsts]
        return Arms(self.vectors[self.firsts], rows)

    def row(self, arm: int) -> int:
        """The caller's number of an arm."""
        return arm if self.rows is None else int(self.rows[arm])

    def contains(self, action: FloatArray) -> bool:
        """Whether the action is one of the rows."""
        return bool((self.vectors == action).all(axis=1).any())


def _first_rows(columns: FloatArray) -> IntArray:
    """Rows that do not equal any earlier row, ascending; uses a few numbers of memory per arm.

    Equal arms have equal hashes, so only neighbours in the order of the hashes are compared. If different
    arms share a hash by chance, a duplicate may be missed; it is then evaluated twice, which is harmless.
    """
    hashes = np.zeros(columns.shape[1], np.uint64)
    for j, column in enumerate(columns):
        odd = np.uint64(pow(0x9E3779B97F4A7C15, 2 * j + 1, 1 << 64))
        hashes += (column + 0.0).view(np.uint64) * odd  # + 0.0 turns -0.0 into 0.0
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    equal = (columns[:, order[same + 1]] == columns[:, order[same]]).all(axis=0)
    first = np.ones(len(order), bool)
    first[order[same[equal] + 1]] = False
    return np.flatnonzero(first)


Actions: TypeAlias = Solid | Arms


PLAYABLE = (Arms, *SOLIDS)


def checked_actions(problem: Problem, actions: Actions) -> Actions:
    """Return the actions, or raise one sentence that says why they do not fit this problem."""
    if not isinstance(actions, PLAYABLE):
        words = ", ".join(kind.__name__ for kind in SOLIDS)
        raise InputError(f"actions must be Arms, {words}, got {type(actions).__name__}")
    if actions.dim != problem.dim:
        raise InputError(f"actions must have dimension {problem.dim}, got {actions.dim}")
    if actions.longest > problem.action_bound * (1 + SLACK):
        raise InputError(
            f"actions must have length at most {problem.action_bound:g}, "
            f"got one of length {actions.longest:.12g}: {TOO_LONG}"
        )
    return actions


def unreached(arms: Arms) -> FloatArray:
    """Orthonormal directions in which no arm has a component; (m, d), m = 0 if the arms span R^d."""
    _, values, directions = np.linalg.svd(arms.columns @ arms.columns.T)
    return np.asarray(directions[values <= REACHED * max(values[0], 1e-300)])


def name_directions(directions: FloatArray) -> str:
    """The directions (m, d) as text: e_8, or a combination of coordinates."""
    names = []
    for row in directions:
        parts = [f"{weight:+.2g} e_{j + 1}" for j, weight in enumerate(row) if abs(weight) > 1e-6]
        names.append(parts[0].split()[-1] if len(parts) == 1 else " ".join(parts))
    return "; ".join(names)
