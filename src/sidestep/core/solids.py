"""Continuous action sets: the unit ball, a box, an ellipsoid, the simplex.

A Thompson policy and the genie need from an action set only its point farthest along a direction g:

    UnitBall    g / |g|                      Box        the corner with the signs of g
    Ellipsoid   c + A A'g / |A'g|            Simplex    e_j for the largest g_j
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.checks import SLACK, as_numbers, check_integer, is_finite, shown
from sidestep.core.geometry import apply, dot, lowest_argmax, scaled
from sidestep.core.kernels import kernel
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
