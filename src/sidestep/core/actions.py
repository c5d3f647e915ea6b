"""What may be played in a round: finitely many arms, or a solid (Assumption 3.1: the unit ball)."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.checks import SLACK, as_numbers
from sidestep.core.kernels import kernel
from sidestep.core.problem import TOO_LONG, Problem
from sidestep.core.solids import SOLIDS, Solid, UnitBall
from sidestep.errors import InputError

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
