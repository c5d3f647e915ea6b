"""The best-conditioned subset of the rows of a matrix: the set S with the largest lambda_min.

lambda_min(S) is the smallest eigenvalue of the |S| x |S| Gram matrix of the rows in S, zero where
they are dependent (the paper's "minimum non-zero eigenvalue" would accept a set of duplicates).
Adding a row never raises lambda_min (Cauchy interlacing). It exceeds a goal exactly where the Cholesky
factorisation of G_S - goal I has only positive pivots. So a depth-first search extends one factor row by
row and turns back where too few pivots are positive: milliseconds where enumeration would take minutes.

gram (L, L): G, all inner products. factor (L, size): Cholesky factor of G - goal I, one line per row.
pivot[depth, m]: the diagonal entry that row m would get after the first `depth` chosen rows.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.jit import kernel
from sidestep.core.linalg import dot
from sidestep.core.validation import check_integer
from sidestep.errors import InputError

EIGENVALUE_TIE = (
    1e-12  # eigenvalues with a smaller relative difference count as equal: the lowest rows win
)
# (unless rounding, some 1e-16 of the squared lengths, already exceeds that share)
ROUNDING = 1e-14  # a pivot below this share of its row's squared length means dependence
MAX_NODES = 50_000_000  # five to ten seconds
# most sweeps of Jacobi rotations; ten are enough, the limit only prevents an endless loop
SWEEPS = 60


class Subset(NamedTuple):
    """A set of rows and its lambda_min."""

    rows: IntArray  # 0-based, ascending
    eigenvalue: float
    exact: bool  # False where the node cap stopped the search


def best_subset(vectors: FloatArray, size: int, max_nodes: int = MAX_NODES) -> Subset:
    """The `size` rows of vectors (L, d) with the largest lambda_min; for size 0 lambda_min is 0."""
    table = np.array(vectors, dtype=np.float64, order="C")  # one array type: compiled only once
    check_integer("size", size, low=0, high=len(table))
    if not np.isfinite(table).all():
        raise InputError("vectors must be finite numbers, got NaN or infinity")
    return Subset(*search_subset(table, size, max_nodes))


@kernel(small=True)
def search_subset(vectors: FloatArray, size: int, max_nodes: int) -> tuple[IntArray, float, bool]:
    """The best rows, their lambda_min, and whether it is proved to be the largest.

    If all sets are dependent, the first rows. Each search starts again with a higher goal until none
    succeeds. A last search, with a goal just below the best eigenvalue, finds the lowest rows among
    equally good sets, since sets are visited in the order of their rows.
    """
    gram, first, rows = _gram(vectors), np.empty(size, np.int64), np.empty(size, np.int64)
    for row in range(size):
        first[row] = row
    least = _smallest(gram, first)
    if size == 0 or size == len(gram):
        return first, least, True
    _remove_duplicates(gram)
    for depth in range(size):  # greedy start: the largest pivot each time
        rows[depth] = _partner(gram, rows[:depth], 0.0)
        if rows[depth] < 0:
            return first, least, True
    best, eigenvalue = _swap(gram, rows)
    left, rising = max_nodes, True
    while left >= 0:
        goal = eigenvalue * (1 + EIGENVALUE_TIE if rising else 1 - EIGENVALUE_TIE)
        found, value, left = _dive(gram, size, goal, left)
        if value > goal:
            best, eigenvalue = found, value
        if not rising:
            break
        rising = value > goal
    return best, eigenvalue, left >= 0


@kernel(small=True)
def _dive(gram: FloatArray, size: int, goal: float, left: int) -> tuple[IntArray, float, int]:
    """The lowest rows with lambda_min above goal, their lambda_min, and the nodes left.

    Where no set exceeds the goal, the second value is the goal.
    """
    L, depth = len(gram), 0
    factor, pivot = np.empty((L, size)), np.empty((size, L))
    chosen = np.empty(size, np.int64)
    remaining = np.zeros(size, np.int64)  # number of candidate rows left at every depth
    chosen[0] = -1
    for m in range(L):
        pivot[0, m] = gram[m, m] - goal
        remaining[0] += pivot[0, m] > 0
    while depth >= 0 and left >= 0:
        if remaining[depth] < size - depth:
            depth -= 1
            continue
        left -= 1
        remaining[depth] -= 1
        chosen[depth] += 1
        while pivot[depth, chosen[depth]] <= 0:
            chosen[depth] += 1
        if depth < size - 1:
            remaining[depth + 1] = _extend(
                gram, factor, pivot, depth, chosen[depth], chosen[depth] + 1
            )
            chosen[depth + 1] = chosen[depth]
            depth += 1
        else:
            value = _smallest(gram, chosen)
            if value > goal:
                return chosen, value, left
    return chosen, goal, left


@kernel(small=True)
def _extend(
    gram: FloatArray, factor: FloatArray, pivot: FloatArray, depth: int, j: int, start: int
) -> int:
    """Eliminate row j at this depth, and return how many pivots from `start` on are positive."""
    positive, root = 0, np.sqrt(pivot[depth, j])
    for m in range(start, len(gram)):
        rest = pivot[depth, m]
        if rest > 0:
            left = gram[j, m]
            for p in range(depth):
                left -= factor[j, p] * factor[m, p]
            factor[m, depth] = left / root
            rest -= factor[m, depth] ** 2
            positive += rest > 0
        pivot[depth + 1, m] = rest
    return positive


@kernel(small=True)
def _partner(gram: FloatArray, rows: IntArray, goal: float) -> int:
    """The row with the largest pivot after `rows`, or -1 where none is positive."""
    L, size = len(gram), len(rows)
    factor, pivot = np.empty((L, size)), np.empty((size + 1, L))
    for m in range(L):
        pivot[0, m] = gram[m, m] * (1 - ROUNDING) - goal
    for depth in range(size):
        if pivot[depth, rows[depth]] <= 0:
            return -1
        _extend(gram, factor, pivot, depth, rows[depth], 0)
    best, largest = -1, 0.0
    for m in range(L):
        if pivot[size, m] > largest:
            best, largest = m, pivot[size, m]
    return best


@kernel(small=True)
def _swap(gram: FloatArray, rows: IntArray) -> tuple[IntArray, float]:
    """Local search: exchange one row at a time while lambda_min rises; the rows and lambda_min."""
    eigenvalue, place = _smallest(gram, rows), 0
    while place < len(rows):
        trial = rows.copy()
        trial[place] = trial[-1]
        trial[-1] = _partner(gram, trial[:-1], eigenvalue * (1 + EIGENVALUE_TIE))
        place += 1
        value = _smallest(gram, trial) if trial[-1] >= 0 else 0.0
        if value > eigenvalue:
            rows, eigenvalue, place = trial, value, 0
    _sort(rows)
    return rows, eigenvalue


@kernel(small=True)
def _sort(rows: IntArray) -> None:
    """Sort a few rows in place (numba needs two seconds to compile np.sort)."""
    for end in range(1, len(rows)):
        for place in range(end, 0, -1):
            if rows[place] < rows[place - 1]:
                rows[place], rows[place - 1] = rows[place - 1], rows[place]


@kernel(small=True)
def _smallest(gram: FloatArray, rows: IntArray) -> float:
    """lambda_min of rows: the least diagonal entry after Jacobi rotations have diagonalised G_S."""
    size = len(rows)
    a, least, turned, sweep = np.empty((size, size)), np.inf, True, 0
    for p in range(size):
        for q in range(size):
            a[p, q] = gram[rows[p], rows[q]]
    while turned and sweep < SWEEPS:
        turned, sweep = False, sweep + 1
        for p in range(size):
            for q in range(p):
                if abs(a[p, q]) > 1e-16 * np.sqrt(abs(a[p, p] * a[q, q])):
                    _rotate(a, p, q)
                    turned = True
    for p in range(size):
        least = min(least, a[p, p])
    return max(least, 0.0) if size else 0.0


@kernel(small=True)
def _rotate(a: FloatArray, p: int, q: int) -> None:
    """Jacobi rotation in the plane (p, q) that makes a[p, q] zero, in place."""
    half = (a[q, q] - a[p, p]) / (2 * a[p, q])
    t = np.copysign(1 / (abs(half) + np.sqrt(1 + half * half)), half)
    c = 1 / np.sqrt(1 + t * t)
    first, second = a[p, p] - t * a[p, q], a[q, q] + t * a[p, q]
    for r in range(len(a)):
        left, right = a[r, p], a[r, q]
        a[r, p] = a[p, r] = c * (left - t * right)
        a[r, q] = a[q, r] = c * (right + t * left)
    a[p, p], a[q, q] = first, second
    a[p, q] = a[q, p] = 0.0


@kernel(small=True)
def _remove_duplicates(gram: FloatArray) -> None:
    """Set the diagonal to zero for rows that equal an earlier one up to rounding: never chosen."""
    for i in range(len(gram)):
        for j in range(i):
            same = True
            for m in range(len(gram)):
                same = same and gram[i, m] == gram[j, m]
            if same:
                gram[i, i] = 0.0


@kernel(small=True)
def _gram(vectors: FloatArray) -> FloatArray:
    """Inner products of the rows; (L, L)."""
    L = len(vectors)
    gram = np.empty((L, L))
    for i in range(L):
        for j in range(L):
            gram[i, j] = dot(vectors[i], vectors[j])
    return gram
