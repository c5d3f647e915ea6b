"""Optimistic values of a block of arms from their forms; optimism.py explains them.

Arms are the innermost axis. s = 1 and s = 2 have closed forms, computed in one pass without buffers. For
larger s the s x s systems of a block of arms are solved together, by elimination.
"""

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.kernels import kernel

BLOCK = 128  # arms per block, so that their data stay in the L1 cache
# a squared length |theta|^2 below this share of |c|^2 + |theta - c|^2 is rounding: zero
VANISHED = 1e-12


@kernel(refcounts=False, fma=True)
def off_one(
    products: FloatArray,
    radii: FloatArray,
    squared: FloatArray,
    linear: FloatArray,
    unit_width: FloatArray,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """`along_action` for the corrected surrogate and s = 1, in one pass."""
    q, g = products[0, 1], products[1, 1]
    r_0, r_1 = radii[0], radii[1]
    row_0, row_1 = rows[0], rows[1]
    for k in range(values.size):
        per_square = 1.0 / squared[k] if squared[k] > 0.0 else 0.0
        along_1 = linear[row_1, k]
        # <a, theta_0> is moved up, <a, theta_1> towards zero, as far as the sets allow: see `turns`
        turn_0, most_1 = r_0 * unit_width[row_0, k], r_1 * unit_width[row_1, k]
        turn_1 = -min(most_1, max(-most_1, along_1))
        moved_0, moved_1 = linear[row_0, k] + turn_0, along_1 + turn_1
        # inner products of the moved vectors: <c_i + s_i a, c_j + s_j a>
        q_1 = q + (turn_1 * moved_0 + turn_0 * along_1) * per_square
        g_11 = g + turn_1 * (moved_1 + along_1) * per_square
        parts_1 = g + turn_1 * turn_1 * per_square
        # project the target off theta_1, unless theta_1 has vanished
        share = moved_1 / g_11 if g_11 > VANISHED * parts_1 else 0.0
        values[k] = moved_0 - share * q_1


@kernel(refcounts=False, fma=True)
def off_two(
    products: FloatArray,
    radii: FloatArray,
    squared: FloatArray,
    linear: FloatArray,
    unit_width: FloatArray,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """`along_action` for the corrected surrogate and s = 2, in one pass."""
    r_0, r_1, r_2 = radii[0], radii[1], radii[2]
    row_0, row_1, row_2 = rows[0], rows[1], rows[2]
    c_10, c_20 = products[1, 0], products[2, 0]
    c_11, c_21, c_22 = products[1, 1], products[2, 1], products[2, 2]
    for k in range(values.size):
        per_square = 1.0 / squared[k] if squared[k] > 0.0 else 0.0
        # <a, theta_0> is moved up, the protected two towards zero, as far as the sets allow: see `turns`
        along_1, along_2 = linear[row_1, k], linear[row_2, k]
        turn_0 = r_0 * unit_width[row_0, k]
        most_1, most_2 = r_1 * unit_width[row_1, k], r_2 * unit_width[row_2, k]
        turn_1 = -min(most_1, max(-most_1, along_1))
        turn_2 = -min(most_2, max(-most_2, along_2))
        moved_0, moved_1, moved_2 = linear[row_0, k] + turn_0, along_1 + turn_1, along_2 + turn_2
        # inner products of the moved vectors: <c_i + s_i a, c_j + s_j a>
        q_1 = c_10 + (turn_1 * moved_0 + turn_0 * along_1) * per_square
        q_2 = c_20 + (turn_2 * moved_0 + turn_0 * along_2) * per_square
        g_11 = c_11 + turn_1 * (moved_1 + along_1) * per_square
        g_21 = c_21 + (turn_2 * moved_1 + turn_1 * along_2) * per_square
        g_22 = c_22 + turn_2 * (moved_2 + along_2) * per_square
        parts_1 = c_11 + turn_1 * turn_1 * per_square
        parts_2 = c_22 + turn_2 * turn_2 * per_square
        # 2 x 2 Cholesky of their Gram matrix: eliminate theta_1, then the remainder of theta_2
        weight = 1.0 / g_11 if g_11 > VANISHED * parts_1 else 0.0
        share = g_21 * weight
        pivot = g_22 - share * g_21
        left = (moved_2 - share * moved_1) * (q_2 - share * q_1)
        last = left / pivot if pivot > VANISHED * parts_2 else 0.0
        values[k] = moved_0 - moved_1 * q_1 * weight - last


@kernel
def along_action(
    printed: bool,
    products: FloatArray,
    radii: FloatArray,
    squared: FloatArray,
    linear: FloatArray,
    unit_width: FloatArray,
    rows: IntArray,
    values: FloatArray,
) -> None:
    """Values when theta_i = centre_i + shift_i a, from the forms alone; needs the metric PRECISION."""
    n, K = rows.size, values.size
    block = min(BLOCK, K)
    gram, space = np.empty((n, n, block)), np.empty((4, n, block))
    turn, moved, shift, parts = space[0], space[1], space[2], space[3]
    for start in range(0, K, BLOCK):
        stop = min(start + BLOCK, K)
        length = squared[start:stop]
        for i in range(n):
            here = linear[rows[i]][start:stop]
            turns(i, printed, radii[i], length, here, unit_width[rows[i]][start:stop], turn[i])
            for k in range(here.size):
                moved[i, k] = here[k] + turn[i, k]
                shift[i, k] = turn[i, k] / length[k] if length[k] > 0.0 else 0.0
                parts[i, k] = products[i, i] + shift[i, k] * turn[i, k]  # |c_i|^2 + |s_i a|^2
            # <c_i + s_i a, c_j + s_j a>, with <a, theta_j> in moved[j]
            for j in range(i + 1):
                centres = products[i, j]
                for k in range(here.size):
                    gram[i, j, k] = centres + shift[i, k] * moved[j, k] + shift[j, k] * here[k]
        project(gram, moved, parts, n, values[start:stop])


@kernel(refcounts=False)
def turns(
    i: int,
    printed: bool,
    radius: float,
    squared: FloatArray,
    linear: FloatArray,
    unit_width: FloatArray,
    turn: FloatArray,
) -> None:
    """By how much <a, theta_i> is moved: up for the target, towards zero for a protected vector.

    Deviation from the paper: a protected estimate moves by -clip(<a, c> / w, -1, 1) steps, not +. The
    printed sign doubles <a, c>, the proof needs it to vanish; and w is radius |a|^2 / |a|_V, where
    print has |a| for |a|^2 (the same for unit arms only). In closed form: by -<a, c>, which makes
    them orthogonal, or as far towards it as the set allows.
    """
    if i == 0:
        for k in range(unit_width.size):
            turn[k] = radius * unit_width[k]
    elif printed:
        for k in range(unit_width.size):
            most, full = radius * unit_width[k], linear[k] * np.sqrt(squared[k])
            turn[k] = min(most, max(-most, full))
    else:
        for k in range(unit_width.size):
            most = radius * unit_width[k]
            turn[k] = -min(most, max(-most, linear[k]))


@kernel
def project(
    gram: FloatArray, moved: FloatArray, parts: FloatArray, n: int, out: FloatArray
) -> None:
    """<a, Proj_perp theta_0> for a block of arms, by elimination in the Gram matrix, in place.

    Row 0 is the target; its column of `gram` and `moved` are the two right-hand sides. A protected
    vector is skipped if it has vanished (see VANISHED): because it depends on earlier ones, or because
    its centre and its shift cancel.
    """
    size = out.size
    for k in range(size):
        out[k] = moved[0, k]
    share = np.empty(size)
    for j in range(1, n):
        for m in range(1, j):
            for k in range(size):
                # coefficient of row m, which is eliminated
                share[k] = gram[j, m, k] * gram[m, m, k]
            for k in range(size):
                gram[j, j, k] -= share[k] * gram[j, m, k]
                moved[j, k] -= share[k] * moved[m, k]
                gram[j, 0, k] -= share[k] * gram[m, 0, k]
            for i in range(j + 1, n):
                for k in range(size):
                    gram[i, j, k] -= share[k] * gram[i, m, k]
        for k in range(size):
            pivot = gram[j, j, k]
            gram[j, j, k] = 1.0 / pivot if pivot > VANISHED * parts[j, k] else 0.0
        for k in range(size):
            out[k] -= moved[j, k] * gram[j, 0, k] * gram[j, j, k]
