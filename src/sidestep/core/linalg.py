"""Norms, projections and subspaces (paragraph Notation), and the one rule for ties."""

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.jit import compiled_as, kernel
from sidestep.core.problem import TARGET

TIE = 1e-10  # values closer than this, relative to the largest, count as equal
DEPENDENT = 1e-12  # a row is dependent if a smaller share of its length is orthogonal to the others
SKIP = 128  # block size: the largest value of each block is found first
ROUNDING = 1e-14  # a singular value below this share of the largest is rounding


def lowest_argmax(values: FloatArray) -> int:
    """Row of the largest value; of values that tie, the lowest row.

    Values count as tied up to rounding (TIE). Otherwise the order of summation would decide.
    """
    top = np.fmax.reduce(values)
    return int(np.argmax(values >= top - TIE * abs(top)))


@compiled_as(lowest_argmax, refcounts=False)
def _lowest_argmax_loop(values: FloatArray) -> int:
    top, first = -np.inf, 0  # no value before `first` ties with the top
    for start in range(0, values.size, SKIP):
        here = _largest(values[start : start + SKIP])
        if here > top:
            first = first if top >= here - TIE * abs(here) else start
            top = here
    for k in range(first, values.size):
        if values[k] >= top - TIE * abs(top):
            return k
    return 0


@kernel(refcounts=False)
def _largest(values: FloatArray) -> float:
    """The largest value. Four running maxima are independent, so the processor can overlap them."""
    a, b, c, d = -np.inf, -np.inf, -np.inf, -np.inf
    fours = values.size - values.size % 4
    for k in range(0, fours, 4):
        a, b = max(a, values[k]), max(b, values[k + 1])
        c, d = max(c, values[k + 2]), max(d, values[k + 3])
    for k in range(fours, values.size):
        a = max(a, values[k])
    return max(a, b, c, d)


@kernel(refcounts=False)
def dot(left: FloatArray, right: FloatArray) -> float:
    """Inner product of two vectors, summed in order."""
    total = 0.0
    for j in range(left.size):
        total += left[j] * right[j]
    return total


@kernel(refcounts=False)
def quadratic(matrix: FloatArray, vector: FloatArray) -> float:
    """Squared weighted norm |x|_V^2 = x' V x of a symmetric matrix."""
    total = 0.0
    for j in range(vector.size):
        inner = 0.5 * matrix[j, j] * vector[j]
        for k in range(j):
            inner += matrix[j, k] * vector[k]
        total += inner * vector[j]
    return 2.0 * total


@kernel
def apply(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Matrix times vector, summed in order; (d,)."""
    out = np.empty(matrix.shape[0])
    apply_into(matrix, vector, out)
    return out


@kernel(refcounts=False)
def apply_into(matrix: FloatArray, vector: FloatArray, out: FloatArray) -> None:
    """Matrix times vector, into `out`."""
    for j in range(out.size):
        out[j] = dot(matrix[j], vector)


@kernel(refcounts=False)
def add(total: FloatArray, weight: float, vector: FloatArray) -> None:
    """Add weight * vector to the total, in place."""
    for j in range(total.size):
        total[j] += weight * vector[j]


@kernel
def unit(vector: FloatArray) -> FloatArray:
    """The vector scaled to length 1; zeros if it is zero or not finite."""
    length = np.sqrt(dot(vector, vector))
    result = np.zeros(vector.size)
    if 0.0 < length < np.inf:
        add(result, 1.0 / length, vector)
    return result


@kernel(refcounts=False)
def copy_into(source: FloatArray | IntArray, target: FloatArray | IntArray) -> None:
    """Write one vector into another (numba compiles this far faster than a slice assignment)."""
    for j in range(source.size):
        target[j] = source[j]


@kernel
def scaled(factor: float, vector: FloatArray) -> FloatArray:
    """The vector times a number; (d,)."""
    out = np.empty(vector.size)
    for j in range(vector.size):
        out[j] = factor * vector[j]
    return out


@kernel(refcounts=False)
def take_out(direction: FloatArray, vector: FloatArray) -> None:
    """Remove the part of the vector along a unit direction, in place."""
    along = dot(direction, vector)
    for j in range(vector.size):
        vector[j] -= along * direction[j]


@kernel
def orthonormal(vectors: FloatArray) -> FloatArray:
    """Orthonormal basis of the span of the rows (Gram-Schmidt, twice); (rank, d).

    Dependent rows and zero rows are allowed and skipped.
    """
    basis = np.empty_like(vectors)
    rank = 0
    for row in range(vectors.shape[0]):
        if rank == vectors.shape[1]:
            break
        candidate = basis[rank]
        copy_into(vectors[row], candidate)
        before = dot(candidate, candidate)
        for _ in range(2):
            for other in range(rank):
                take_out(basis[other], candidate)
        after = dot(candidate, candidate)
        if after > DEPENDENT**2 * before:  # both sides are squared lengths
            for j in range(candidate.size):
                candidate[j] /= np.sqrt(after)
            rank += 1
    return basis[:rank]


@kernel(small=True)
def project_off(basis: FloatArray, vector: FloatArray) -> FloatArray:
    """The vector minus its projection on the span of an orthonormal basis (k, d); (d,).

    Exactly zero where k = d: what rounding would leave there must not decide anything.
    """
    left = vector.copy()
    if basis.shape[0] == vector.size:
        left[:] = 0.0
    for _ in range(2):
        for row in range(basis.shape[0]):
            take_out(basis[row], left)
    return left


@kernel
def top_directions(vectors: FloatArray, rank: int) -> FloatArray:
    """The `rank` directions closest to the rows: uncentred PCA (E6); (rank or fewer, d)."""
    _, values, directions = np.linalg.svd(vectors, full_matrices=False)
    kept = 0
    while kept < min(rank, values.size) and values[kept] > ROUNDING * values[0]:
        kept += 1
    return directions[:kept]


@kernel
def plug_in(centre: FloatArray, rank: int) -> FloatArray:
    """Plug-in estimate of theta_perp; (d,).

    The estimated target is projected off the rank-s subspace closest to the protected estimates (E6).
    Deviation from the paper: print assigns the projection on that subspace to P; the reward needs
    its complement. The directions are those of uncentred PCA.
    """
    if rank == 0:
        return centre[TARGET].copy()
    return project_off(top_directions(centre[1:], rank), centre[TARGET])


@kernel(refcounts=False)
def members(chosen: IntArray, rows: IntArray) -> int:
    """Number of entries of `chosen` that are switched on; their rows, ascending, go into `rows`."""
    count = 0
    for row in range(chosen.size):
        if chosen[row]:
            rows[count] = row
            count += 1
    return count


@kernel(refcounts=False)
def total(counts: IntArray, first: int) -> int:
    """Sum of the counts from row `first` on."""
    seen = 0
    for row in range(first, counts.size):
        seen += counts[row]
    return seen


@kernel(small=True)
def cholesky(matrix: FloatArray) -> FloatArray:
    """Lower factor of a positive definite matrix; (d, d)."""
    d = matrix.shape[0]
    factor = np.zeros((d, d))
    for j in range(d):
        for k in range(j + 1):
            left = matrix[j, k] - dot(factor[j, :k], factor[k, :k])
            factor[j, k] = np.sqrt(left) if j == k else left / factor[k, k]
    return factor


@kernel(small=True)
def solve_cholesky(factor: FloatArray, right: FloatArray) -> FloatArray:
    """Solution of (factor factor') x = right; (d,)."""
    d = right.size
    x = right.copy()
    for j in range(d):
        for k in range(j):
            x[j] -= factor[j, k] * x[k]
        x[j] /= factor[j, j]
    for j in range(d - 1, -1, -1):
        for k in range(j + 1, d):
            x[j] -= factor[k, j] * x[k]
        x[j] /= factor[j, j]
    return x


@kernel(small=True)
def inverse_into(factor: FloatArray, out: FloatArray) -> None:
    """Inverse of factor factor', made symmetric, into `out` (d, d)."""
    d = factor.shape[0]
    unit = np.zeros(d)
    for j in range(d):
        unit[j] = 1.0
        copy_into(solve_cholesky(factor, unit), out[j])
        unit[j] = 0.0
    for j in range(d):
        for k in range(j):
            mean = 0.5 * (out[j, k] + out[k, j])
            out[j, k] = mean
            out[k, j] = mean


def factors_of(matrices: FloatArray) -> FloatArray:
    """`cholesky` of many matrices in numpy, not a kernel; NaN unless all are positive definite."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        return np.full(matrices.shape, np.nan)
