"""The best action of a solid within tolerances: a concave program, solved by scipy.

With a slack u_i for every protected outcome, the problem is

    max <a, theta_0> - sum_i penalty_i u_i    over a in the solid, u_i >= 0,
                                              u_i >= <a, theta_i> - high_i,  u_i >= low_i - <a, theta_i>,

On a box or a simplex it is a linear program; on a ball or an ellipsoid it has one quadratic constraint
(SLSQP). Nothing here is compiled: for these problems `simulate` plays step by step.
"""

import numpy as np

from sidestep.core.actions import BALL, BOX, SIMPLEX, Body, farthest
from sidestep.core.arrays import FloatArray
from sidestep.core.objective import value_within
from sidestep.core.problem import Limits
from sidestep.errors import SidestepError

ACCURACY = 1e-12


def best_within(body: Body, limits: Limits, vectors: FloatArray) -> tuple[FloatArray, float]:
    """The best action of the solid under vectors (L+1, d), and its value."""
    free = farthest(body, vectors[0] if vectors[0].any() else np.eye(vectors.shape[1])[0])
    value = float(value_within(limits, vectors, free))
    if value == float(vectors[0] @ free):  # best for the target, and no limit is exceeded
        return free, value
    rows, ends = _half_spaces(limits, vectors)
    linear = body.kind in (BOX, SIMPLEX)
    solve = _linear if linear else _round
    action = solve(body, limits, vectors[0], rows, ends)
    return action, float(value_within(limits, vectors, action))


def _half_spaces(limits: Limits, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The constraints rows (a, u) <= ends, two per outcome, without infinite ends; (m, d+L), (m,)."""
    side, own = vectors[1:], np.eye(len(vectors) - 1)
    rows = np.block([[side, -own], [-side, -own]])
    ends = np.concatenate([limits.high, -limits.low])
    kept = np.isfinite(ends)
    return rows[kept], ends[kept]


def _linear(
    body: Body, limits: Limits, target: FloatArray, rows: FloatArray, ends: FloatArray
) -> FloatArray:
    d, L = len(target), len(limits.penalty)
    is_box = body.kind == BOX
    low = body.centre - body.half if is_box else np.zeros(d)
    high = body.centre + body.half if is_box else body.half
    shares = None if is_box else np.concatenate([np.ones(d), np.zeros(L)])[None]
    bounds = [*zip(low, high, strict=True), *[(0.0, None)] * L]
    cost = np.concatenate([-target, limits.penalty])
    total = None if is_box else body.half[:1]
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to import, for solids only)

    found = linprog(cost, rows, ends, shares, total, bounds, method="highs")
    if found.x is None:
        raise SidestepError(
            f"the linear program of the tolerances has no solution: {found.message}"
        )
    return np.clip(found.x[:d], low, high)


def _round(
    body: Body, limits: Limits, target: FloatArray, rows: FloatArray, ends: FloatArray
) -> FloatArray:
    """Solve on a ball or an ellipsoid: a = centre + axes w with |w| <= 1, in the variables (w, u)."""
    from scipy.optimize import Bounds, minimize  # noqa: PLC0415

    d, L = len(target), len(limits.penalty)
    axes = np.eye(d) if body.kind == BALL else body.axes
    moved = np.hstack([rows[:, :d] @ axes, rows[:, d:]])
    left = ends - rows[:, :d] @ body.centre
    scale = max(float(np.linalg.norm(target @ axes)), 1e-300)
    slope = np.concatenate([-target @ axes, limits.penalty]) / scale
    outward = np.zeros(d + L)

    def inward(z: FloatArray) -> FloatArray:
        outward[:d] = -2.0 * z[:d]
        return outward

    start = np.zeros(d + L)
    start[d:] = np.max(moved[:, d:] * left[:, None], axis=0, initial=0.0)  # slacks of the centre
    found = minimize(
        lambda z: float(slope @ z),
        start,
        jac=lambda z: slope,
        method="SLSQP",
        bounds=Bounds(
            np.concatenate([np.full(d, -1.0), np.zeros(L)]),
            np.concatenate([np.ones(d), np.full(L, np.inf)]),
        ),
        constraints=(
            {"type": "ineq", "fun": lambda z: left - moved @ z, "jac": lambda z: -moved},
            {"type": "ineq", "fun": lambda z: 1.0 - z[:d] @ z[:d], "jac": inward},
        ),
        options={"ftol": ACCURACY, "maxiter": 200},
    )
    inside = found.x[:d] / max(1.0, float(np.linalg.norm(found.x[:d])))
    return np.asarray(body.centre + axes @ inside)
