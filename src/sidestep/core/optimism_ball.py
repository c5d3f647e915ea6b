"""The optimistic action on the unit ball, with a certificate (Alg. 2, optimistic step).

The optimistic step maximises over the action and over every theta_i in its confidence set. On the ball
the maximum is reached where the action is orthogonal to all chosen protected vectors. So the problem
reduces to one in the action alone:

    (P)  max f(a) = <a, c_0> + w_0(a)   over |a| = 1 with |<a, c_i>| <= w_i(a), i = 1..s

centre  c_i, the estimate of theta_i (s+1, d)      spread  r_i^2 V_i^-1 (s+1, d, d)
w_i(a) = sqrt(<a, spread_i a>) = r_i |a|_{V_i^-1}, half the width of Theta_i along a

Index 0 is the target. (P) is not convex: we ascend from several starts, where every step is feasible
and does not decrease f, and bound the optimum from above by the Lagrangian dual.
"""

import math

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.jit import kernel
from sidestep.core.linalg import add, apply, dot, project_off, unit
from sidestep.core.optimism_ball_bound import dual_bound, dual_starts, eigen, pair_starts, whitener

NEARLY_DEPENDENT = (
    1e-13  # a row is dependent if a smaller share of its length is orthogonal to the others
)
FEASIBLE = 1e-12  # largest constraint violation, at unit scale, that is attributed to rounding
OPTIMAL = 1e-6  # relative gap below which no further start is tried

Scored = tuple[FloatArray, float]  # an action and its value


@kernel
def orthonormal(rows: FloatArray) -> FloatArray:
    """Gram-Schmidt of the rows, in their order; a dependent row gives a row of zeros; (k, d)."""
    basis = np.zeros(rows.shape)
    for k in range(rows.shape[0]):
        rest = project_off(basis[:k], rows[k])
        if dot(rest, rest) > NEARLY_DEPENDENT**2 * dot(rows[k], rows[k]):
            add(basis[k], 1.0, unit(project_off(basis[:k], unit(rest))))
    return basis


@kernel
def normal_to(rows: FloatArray, point: FloatArray) -> FloatArray:
    """Of the unit vectors orthogonal to every row, the one nearest to the point; zeros if none exists."""
    basis = orthonormal(rows)
    rest = project_off(basis, unit(project_off(basis, point)))
    return unit(rest) if dot(rest, rest) > 0.25 else np.zeros(point.size)


@kernel
def support_point(spread: FloatArray, action: FloatArray) -> FloatArray:
    """The longest move along the action inside an ellipsoid: u = spread a / w(a); (d,).

    <a, u> = w(a), and <b, u> <= w(b) for every other b. For the zero action u is zero.
    """
    move, result = apply(spread, action), np.zeros(action.size)
    width = math.sqrt(dot(move, action))
    if width > 0.0:
        add(result, 1.0 / width, move)
    return result


@kernel
def ball_value(centre: FloatArray, spread: FloatArray, action: FloatArray) -> float:
    """Optimistic reward of a feasible unit action: f(a) = <a, c_0> + w_0(a)."""
    return dot(action, centre[0]) + math.sqrt(dot(action, apply(spread[0], action)))


@kernel
def feasible_point(centre: FloatArray, spread: FloatArray, point: FloatArray) -> FloatArray:
    """A feasible unit vector near the point, the better of its two signs; zeros if there is none.

    For every i take the theta_i in Theta_i that is closest to orthogonal to the point. The part of the
    point orthogonal to all these theta_i is feasible, since every Theta_i has a member orthogonal to it.
    """
    chosen = centre[1:].copy()
    for i in range(1, centre.shape[0]):
        move = support_point(spread[i], point)
        ratio = dot(point, centre[i]) / dot(point, move)
        add(chosen[i - 1], -min(max(ratio, -1.0), 1.0), move)
    action = normal_to(chosen, point)
    return action if dot(action, centre[0]) >= 0.0 else -action


@kernel
def faces(centre: FloatArray, spread: FloatArray, point: FloatArray) -> FloatArray:
    """Linear lower bounds that are tight at the point: of f, then of both slacks of each i; (2s+1, d).

    The rows are c_0 + u_0 and u_i -+ c_i. Every b with <b, row> >= 0 for all slack rows is feasible.
    These b form a cone, which contains the point if the point is feasible.
    """
    rows = np.zeros((2 * centre.shape[0] - 1, point.size))
    for i in range(centre.shape[0]):
        move = support_point(spread[i], point)
        for k in (2 * i - 1, 2 * i):
            if k >= 0:
                add(rows[k], 1.0, move)
                add(rows[k], 1.0 if k == 2 * i else -1.0, centre[i])
    return rows


@kernel
def worst_face(rows: FloatArray, point: FloatArray) -> tuple[int, float]:
    """The slack row that the point violates most, 0 if it violates none, and the slack of that row."""
    worst, lowest = 0, 0.0
    for j in range(1, rows.shape[0]):
        slack = dot(rows[j], point)
        if not slack >= lowest:
            worst, lowest = j, slack
    return worst, lowest


@kernel
def fit(basis: FloatArray, rows: FloatArray, target: FloatArray) -> FloatArray:
    """Least-squares y of target + sum_k y_k row_k = 0; basis = orthonormal(rows); (k,)."""
    weights = np.zeros(rows.shape[0])
    for k in range(rows.shape[0] - 1, -1, -1):
        pivot = dot(basis[k], rows[k])
        rest = -dot(basis[k], target)
        for m in range(k + 1, rows.shape[0]):
            rest -= weights[m] * dot(basis[k], rows[m])
        weights[k] = rest / pivot if pivot > 0.0 else 0.0
    return weights


@kernel
def cone_projection(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Direction of the point nearest to row 0 in the cone {p : <p, row_j> >= 0, j > 0}; (d,).

    That point is p = row_0 + sum_j y_j row_j with the y >= 0 that minimises |p|, found by the active-set
    method of Lawson and Hanson. The weights y (2s+1,) are the warm start; the solution overwrites them.
    """
    nearest = unit(rows[0])
    for _ in range(4 * weights.size):
        active = np.flatnonzero(weights)
        basis = orthonormal(rows[active])
        nearest = unit(project_off(basis, rows[0]))
        fitted = fit(basis, rows[active], rows[0])
        share, leaver = 1.0, -1
        for k in range(active.size):
            reached = weights[active[k]] / (weights[active[k]] - fitted[k])
            if fitted[k] <= 0.0 and (leaver < 0 or reached < share):
                share, leaver = reached, k
        for k in range(active.size):
            moved = weights[active[k]] + share * (fitted[k] - weights[active[k]])
            weights[active[k]] = max(0.0, moved)
        if leaver >= 0:
            weights[active[leaver]] = 0.0
            continue
        enters, slack = worst_face(rows, nearest)
        if slack >= -0.1 * FEASIBLE or weights[enters] > 0.0:
            break
        weights[enters] = 1e-300  # practically zero, but active, since it is not exactly 0
    return nearest


@kernel
def climb(centre: FloatArray, spread: FloatArray, point: FloatArray, weights: FloatArray) -> Scored:
    """The action that is best for the linear bounds that are tight at the point, and its value f.

    The action is feasible and, if the point is feasible, at least as good as the point. The value is
    minus infinity where rounding errors made the action infeasible.
    """
    rows = faces(centre, spread, point)
    action = cone_projection(rows, weights)
    if not worst_face(rows, action)[1] >= -FEASIBLE:
        return action, -math.inf
    return action, ball_value(centre, spread, action)


@kernel
def ascend(centre: FloatArray, spread: FloatArray, start: FloatArray, precision: float) -> Scored:
    """Repeat `climb` from a feasible unit vector until the relative gain is below `precision`.

    Returns the last action and its value. After every step we also try a longer step in the same
    direction, and keep the better of the two results.
    """
    action, value, stride = start, -math.inf, 1.0
    weights = np.zeros(2 * centre.shape[0] - 1)
    for _ in range(500):
        step, reached = climb(centre, spread, action, weights)
        leap, leap_weights = step.copy(), weights.copy()
        add(leap, stride, step)
        add(leap, -stride, action)
        leap, leapt = climb(centre, spread, leap, leap_weights)
        stride = 2.0 * stride if leapt > reached else max(1.0, 0.25 * stride)
        if leapt > reached:
            step, reached, weights = leap, leapt, leap_weights
        gain = reached - value
        if gain > 0.0:
            action, value = step, reached
        if not gain > precision * value:
            break
    return action, value


@kernel
def longest(centre: FloatArray, spread: FloatArray) -> Scored:
    """Direction and length of the longest vector of one ellipsoid: (P) without constraints.

    A trust-region problem. In the eigenbasis of the spread, with eigenvalues e_j, the longest vector has
    coordinates c_j + sqrt(e_j) z_j, where z_j = sqrt(e_j) c_j / (x + e_top - e_j) and x >= 0 solves
    |z| = 1 (Newton on 1/|z| from the left). Where |z| < 1 even at x = 0, z_top is enlarged to |z| = 1.
    """
    values, vectors = eigen(spread)
    along, z = apply(vectors, centre), np.zeros(centre.size)
    shift = 0.0
    for j in range(centre.size):
        shift = max(shift, math.sqrt(values[j]) * abs(along[j]) - (values[-1] - values[j]))
    for _ in range(200):
        slope = 0.0
        for j in range(centre.size):
            if along[j] != 0.0:
                gap = shift + (values[-1] - values[j])
                z[j] = math.sqrt(values[j]) * along[j] / gap
                slope += z[j] ** 2 / gap
        size = math.sqrt(dot(z, z))
        if not size > 1.0 + 1e-15:
            break
        shift += size**2 * (size - 1.0) / slope
    z[-1] = math.copysign(math.sqrt(max(0.0, 1.0 - dot(z[:-1], z[:-1]))), along[-1])
    vector = np.zeros(centre.size)
    for j in range(centre.size):
        add(vector, along[j] + math.sqrt(values[j]) * z[j], vectors[j])
    return unit(vector), math.sqrt(dot(vector, vector))


@kernel
def corner_starts(
    centre: FloatArray, spread: FloatArray, action: FloatArray, first: int
) -> FloatArray:
    """The action moved to <a, c_i> = +-w_i for k = min(s, 4) indices i, all sign patterns; (2^k, d).

    The indices begin after `first` and wrap around at s.
    """
    s = centre.shape[0] - 1
    count = min(s, 4)
    starts = np.zeros((2**count, action.size))
    for k in range(2**count):
        add(starts[k], 1.0, action)
    for bit in range(count):
        i = 1 + (first + bit) % s
        others = centre[1:].copy()
        add(others[i - 1], -1.0, centre[i])
        alone = project_off(orthonormal(others), centre[i])
        width = dot(action, support_point(spread[i], action))
        for k in range(2**count if dot(alone, alone) > NEARLY_DEPENDENT else 0):
            move = (width if (k >> bit) & 1 else -width) - dot(action, centre[i])
            add(starts[k], move / dot(alone, alone), alone)
    return starts


@kernel
def reduced(
    centre: FloatArray, inverse: FloatArray, radius: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Centres and spreads of the target and of the constraints that matter, at unit scale, and the scale.

    A set that contains the origin, |c_i|_{V_i} <= r_i, constrains nothing. The other constraints do not
    change when c_i and r_i are scaled together. The value scales with c_0 and r_0: the returned scale is
    that of the target.
    """
    centres, spreads = np.zeros(centre.shape), np.zeros(inverse.shape)
    count, scale = 0, 1.0
    for i in range(radius.size):
        lifted = apply(whitener(inverse[i]), centre[i])
        if i == 0 or dot(lifted, lifted) > (1.0 - 1e-9) * radius[i] ** 2:
            size = math.sqrt(dot(centre[i], centre[i]) + radius[i] ** 2 * np.trace(inverse[i]))
            add(centres[count], 1.0 / size, centre[i])
            add(spreads[count].ravel(), (radius[i] / size) ** 2, inverse[i].ravel())
            scale = size if i == 0 else scale
            count += 1
    return centres[:count], spreads[:count], scale


@kernel
def optimistic_action(
    centre: FloatArray, inverse: FloatArray, radius: FloatArray, tolerance: float
) -> tuple[FloatArray, float, float]:
    """The optimistic unit action, its value f, and an upper bound of (P).

    centre (s+1, d): c_i. inverse (s+1, d, d): V_i^-1. radius (s+1,): r_i > 0. (bound - value) /
    value is the certified relative gap. Further starts are tried while this gap exceeds the tolerance
    (1e-2 online, 1e-4 offline). Some gap may remain, since the dual need not be tight. With s < d
    a feasible action always exists. With s >= d it may not, and this function must not be called.
    """
    centre, spread, scale = reduced(centre.copy(), inverse.copy(), radius.copy())
    if centre.shape[0] == 1:
        best, bound = longest(centre[0], spread[0])
        value = ball_value(centre, spread, best)
        return best, scale * value, scale * max(value, bound)
    bound, solution = dual_bound(centre, spread)
    plain = normal_to(centre[1:], np.sqrt(np.arange(2.0, centre.shape[1] + 2.0)))
    best = feasible_point(centre, spread, plain)
    value, starts = ball_value(centre, spread, best), dual_starts(centre[0], solution)
    for stage in range(5):
        for k in range(starts.shape[0]):
            if value * (1.0 + OPTIMAL) < bound:
                action = feasible_point(centre, spread, starts[k])
                action, reached = ascend(centre, spread, action, 1e-7)
                if reached > value:
                    best, value = action, reached
        if value * (1.0 + tolerance) >= bound:
            break
        if stage == 0:
            starts = eigen(spread[0])[1]
        elif stage == 1:
            starts = pair_starts(eigen(solution)[1][-4:])
        else:
            starts = corner_starts(centre, spread, best, 4 * (stage - 2))
    action, reached = ascend(centre, spread, best, 1e-12)
    if reached > value:
        best, value = action, reached
    return best, scale * value, scale * max(value, bound)
