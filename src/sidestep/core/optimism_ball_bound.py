"""An upper bound of the optimistic problem on the ball, by its Lagrangian dual.

For all x = (eta, nu, mu_1..mu_s) > 0 with X = sum_j x_j matrix_j positive definite, the value of (P) in
optimism_ball.py is at most (1/eta + nu + <c_0, X^-1 c_0>) / 2. This bound is minimised over the s + 2
multipliers by a barrier method with Newton steps. The bound holds wherever the iteration stops.
"""

import math

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.jit import kernel
from sidestep.core.linalg import add, apply, dot

Walled = tuple[float, float, FloatArray]  # a bound, its barrier and the whitener of X


@kernel
def eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ascending eigenvalues of a symmetric matrix, and its eigenvectors as rows."""
    values, vectors = np.linalg.eigh(matrix)
    return values, vectors.T.copy()


@kernel
def gram(rows: FloatArray) -> FloatArray:
    """The product rows^T rows; (d, d)."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for k in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            add(total[j], rows[k, j], rows[k])
    return total


@kernel
def whitener(matrix: FloatArray) -> FloatArray:
    """Lower triangular S with S matrix S^T = I; (d, d).

    If the matrix is not positive definite, S is zero from the first row with a pivot <= 0 on.
    """
    d = matrix.shape[0]
    lower, white = np.zeros((d, d)), np.zeros((d, d))
    for i in range(d):
        for j in range(i):
            lower[i, j] = (matrix[i, j] - dot(lower[i, :j], lower[j, :j])) / lower[j, j]
        pivot = matrix[i, i] - dot(lower[i, :i], lower[i, :i])
        if not 0.0 < pivot < math.inf:
            break
        lower[i, i] = math.sqrt(pivot)
        white[i, i] = 1.0 / lower[i, i]
        for j in range(i):
            add(white[i, :i], -white[i, i] * lower[i, j], white[j, :i])
    return white


@kernel
def dual_pieces(centre: FloatArray, spread: FloatArray) -> FloatArray:
    """The dual's matrices -spread_0, I, c_i c_i^T - spread_i, for data at unit scale; (s+2, d, d).

    To keep X well conditioned, the trace of spread_0 is raised to at least 1e-18 and 1e-12 I is added to
    every spread_i. The bound stays valid: the maximum over a larger set is at least as large.
    """
    count, d = centre.shape
    pieces = np.zeros((count + 1, d, d))
    add(pieces[0].ravel(), -max(1.0, 1e-18 / np.trace(spread[0])), spread[0].ravel())
    for j in range(d):
        pieces[1, j, j] = 1.0
        for i in range(1, count):
            add(pieces[i + 1, j], -1.0, spread[i, j])
            add(pieces[i + 1, j], centre[i, j], centre[i])
            pieces[i + 1, j, j] -= 1e-12
    return pieces


@kernel
def dual_value(pieces: FloatArray, target: FloatArray, multipliers: FloatArray) -> Walled:
    """The bound, its barrier -log(det X eta mu_1..mu_s) and the whitener of X.

    The barrier is infinite outside the domain.
    """
    matrix, barrier = np.zeros(pieces.shape[1:]), 0.0
    for j in range(multipliers.size):
        add(matrix.ravel(), multipliers[j], pieces[j].ravel())
        if j != 1:
            barrier -= math.log(multipliers[j]) if multipliers[j] > 0.0 else -math.inf
    white = whitener(matrix)
    for j in range(target.size):
        barrier += 2.0 * math.log(white[j, j]) if white[j, j] > 0.0 else math.inf
    lifted = apply(white, target)
    return 0.5 * (1.0 / multipliers[0] + multipliers[1] + dot(lifted, lifted)), barrier, white


@kernel
def dual_slopes(
    pieces: FloatArray,
    target: FloatArray,
    multipliers: FloatArray,
    white: FloatArray,
    weight: float,
) -> tuple[FloatArray, FloatArray]:
    """Gradient of bound + weight * barrier in the multipliers, and Hessian (its lower half)."""
    count, d = multipliers.size, target.size
    lifted = apply(white, target)
    seen, moved = np.zeros((count, d, d)), np.zeros((count, d))
    slope, curvature = np.zeros(count), np.zeros((count, count))
    for j in range(count):
        for k in range(d):
            row = np.zeros(k + 1)
            for m in range(k + 1):
                add(row, white[k, m], pieces[j, m])
            for m in range(k + 1):
                seen[j, k, m] = seen[j, m, k] = dot(white[m, : m + 1], row)
            slope[j] -= weight * seen[j, k, k]
        add(moved[j], 1.0, apply(seen[j], lifted))
        slope[j] -= 0.5 * dot(lifted, moved[j])
        for k in range(j + 1):
            curvature[j, k] = dot(moved[j], moved[k])
            curvature[j, k] += weight * dot(seen[j].ravel(), seen[k].ravel())
        if j != 1:
            slope[j] -= weight / multipliers[j]
            curvature[j, j] += weight / multipliers[j] ** 2
    slope[0] -= 0.5 / multipliers[0] ** 2
    slope[1] += 0.5
    curvature[0, 0] += 1.0 / multipliers[0] ** 3
    return slope, curvature


@kernel
def newton_move(slope: FloatArray, curvature: FloatArray) -> tuple[FloatArray, float]:
    """The Newton step (to the minimum of the quadratic model), and the squared Newton decrement."""
    white, move = whitener(curvature), np.zeros(slope.size)
    lifted = apply(white, slope)
    for j in range(slope.size):
        add(move, -lifted[j], white[j])
    return move, dot(lifted, lifted)


@kernel
def dual_bound(centre: FloatArray, spread: FloatArray) -> tuple[float, FloatArray]:
    """An upper bound of (P) by the Lagrangian dual, and the inverse of its matrix X; (d, d).

    If the dual is tight, X^-1 c_0 is the optimal action. Expects data at unit scale.
    """
    pieces = dual_pieces(centre, spread)
    multipliers: FloatArray = np.ones(pieces.shape[0])
    multipliers[0] /= math.sqrt(-np.trace(pieces[0]))
    multipliers[1] += multipliers.size
    move: FloatArray = np.zeros(multipliers.size)
    value, barrier, white = math.inf, 0.0, pieces[0]
    weight, decrement = 0.1, 0.0
    for _ in range(200):
        part, lower = 2.0, False
        while not lower and part > 1e-8:
            part *= 0.5
            trial = multipliers.copy()
            add(trial, part, move)
            ahead, wall, factor = dual_value(pieces, centre[0], trial)
            lower = value - ahead + weight * (barrier - wall) >= 0.1 * part * decrement
        if not lower:
            break
        multipliers, value, barrier, white = trial, ahead, wall, factor
        if decrement < 0.25 * weight:
            if weight * (centre.shape[1] + multipliers.size) < 1e-7 * value:
                break
            weight *= 0.1
        slope, curvature = dual_slopes(pieces, centre[0], multipliers, white, weight)
        move, decrement = newton_move(slope, curvature)
    nu = multipliers[
        1
    ]  # minimise the bound over a common factor of all multipliers, in closed form
    return math.sqrt(nu * (2.0 * value - nu)), gram(white)


@kernel
def dual_starts(target: FloatArray, solution: FloatArray) -> FloatArray:
    """X^-1 c_0, and X^-1 c_0 +- a multiple of each of X's three lowest eigenvectors; (k, d).

    The multiple gives length 1 where X^-1 c_0 is orthogonal to the eigenvector. solution: X^-1.
    """
    vectors, point = eigen(solution)[1], apply(solution, target)
    rest = math.sqrt(max(0.0, 1.0 - dot(point, point)))
    starts = np.zeros((1 + 2 * min(3, target.size), target.size))
    for k in range(starts.shape[0]):
        add(starts[k], 1.0, point)
        if k > 0:
            add(starts[k], rest if k % 2 == 0 else -rest, vectors[-((k + 1) // 2)])
    return starts


@kernel
def pair_starts(vectors: FloatArray) -> FloatArray:
    """The sum and the difference of every two rows; (k(k-1), d)."""
    count = vectors.shape[0]
    starts = np.zeros((count * (count - 1), vectors.shape[1]))
    for i in range(count):
        for j in range(i):
            for k in (i * (i - 1) + 2 * j, i * (i - 1) + 2 * j + 1):
                add(starts[k], 1.0, vectors[i])
                add(starts[k], 1.0 if k % 2 == 0 else -1.0, vectors[j])
    return starts
