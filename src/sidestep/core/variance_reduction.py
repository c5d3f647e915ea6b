"""Variance reduction by one more measurement.

Under the posterior of posterior.py, a quantity with gradient g (projection.py) has the variance
sum_v R_v^2 |g_v|^2_{V_v^-1}. One measurement of vector v along a reduces it by

    red(a, v) = R_v^2 <g_v, V_v^-1 a>^2 / (1 + |a|^2_{V_v^-1}).
"""

import numpy as np

from sidestep.core.actions import BALL, Body, farthest
from sidestep.core.arm_forms import Menu, arm_of, arms_of, both_forms, scores, squares_in
from sidestep.core.arrays import FloatArray
from sidestep.core.jit import kernel
from sidestep.core.linalg import (
    apply,
    cholesky,
    dot,
    lowest_argmax,
    quadratic,
    scaled,
    solve_cholesky,
)
from sidestep.core.posterior import Posterior

BEHIND = 1e-9  # an arm whose bound is behind by a larger share is neither the best nor tied with it


@kernel
def variance(posterior: Posterior, slopes: FloatArray) -> float:
    """Variance of a quantity with these gradients (L+1, d), to first order."""
    total = 0.0
    for v in range(slopes.shape[0]):
        total += posterior.noise[v] ** 2 * max(quadratic(posterior.inverse[v], slopes[v]), 0.0)
    return total


@kernel(small=True)
def reduction(posterior: Posterior, v: int, slope: FloatArray, a: FloatArray) -> float:
    """red(a, v): the variance that one measurement of v along a removes; slope is g_v (d,)."""
    moved = apply(posterior.inverse[v], a)
    return (posterior.noise[v] * dot(slope, moved)) ** 2 / (1.0 + dot(a, moved))


def reductions(posterior: Posterior, directions: FloatArray, columns: FloatArray) -> FloatArray:
    """red(a, v) of every vector and column a (d, K), in numpy: not a kernel; (L+1, K).

    directions: V_v^-1 g_v of every vector; (L+1, d).
    """
    along = posterior.noise[:, None] * (directions @ columns)
    return np.asarray(along**2 / (1.0 + squares_in(posterior.inverse, columns)))


@kernel
def most_telling(
    posterior: Posterior, costs: FloatArray, slopes: FloatArray, a: FloatArray
) -> tuple[int, float]:
    """The vector to measure along a, and the variance removed per unit of cost; ties: the lowest."""
    best, largest = 0, -1.0
    for v in range(slopes.shape[0]):
        here = reduction(posterior, v, slopes[v], a) / costs[v]
        if here > largest * (1.0 + 1e-10):
            best, largest = v, here
    return best, largest


@kernel
def least_known(posterior: Posterior, costs: FloatArray, a: FloatArray) -> int:
    """The vector with the largest variance along a per unit of cost; ties: the lowest."""
    best, largest = 0, -1.0
    for v in range(costs.size):
        spread = quadratic(posterior.inverse[v], a)
        here = posterior.noise[v] ** 2 * spread / costs[v]
        if here > largest * (1.0 + 1e-10):
            best, largest = v, here
    return best


@kernel(small=True)
def most_telling_arm(
    posterior: Posterior, costs: FloatArray, slopes: FloatArray, menu: Menu
) -> tuple[int, int, float]:
    """The arm and the vector whose measurement removes most variance per cost, and how much.

    red(a, v) is at most R_v^2 <g_v, V_v^-1 a>^2, which takes d operations per arm instead of d^2. So
    |a|^2 in the metric V_v^-1 is computed only for those arms that are not behind by this bound.
    """
    best_arm, best_v, largest = 0, 0, -1.0
    most = np.empty(menu.squared.size)
    for v in range(slopes.shape[0]):
        inverse, weight = posterior.inverse[v], posterior.noise[v] ** 2 / costs[v]
        direction = apply(inverse, slopes[v])
        scores(menu.columns, direction, most)
        most *= weight * most
        first = lowest_argmax(most)
        if most[first] <= largest:
            continue
        least = max(most[first] / (1.0 + quadratic(inverse, arm_of(menu, first))), largest)
        rows = np.flatnonzero(most >= least * (1.0 - BEHIND))
        if rows.size > 0:
            along, square = np.empty(rows.size), np.empty(rows.size)
            both_forms(arms_of(menu, rows), direction, inverse, 0.0, along, square)
            along *= weight * along / (1.0 + square)
            arm = lowest_argmax(along)
            if along[arm] > largest * (1.0 + 1e-10):
                best_arm, best_v, largest = int(rows[arm]), v, along[arm]
    return best_arm, best_v, largest


@kernel
def most_telling_action(
    posterior: Posterior, costs: FloatArray, slopes: FloatArray, body: Body, reward: FloatArray
) -> tuple[FloatArray, int, float]:
    """The action of a solid, the vector whose measurement removes most variance, and how much.

    Of the actions farthest along +-V^-1 g_v the best is taken. On the ball the exact solution is
    (I + V^-1)^-1 V^-1 g_v, scaled to length 1; there a and -a are equally informative, and the one with
    the larger reward is taken.
    """
    n, d = slopes.shape
    best: FloatArray = np.zeros(d)
    best_v, largest = 0, -1.0
    for v in range(n):
        telling = apply(posterior.inverse[v], slopes[v])
        if body.kind == BALL:
            shifted = posterior.inverse[v].copy()
            for j in range(d):
                shifted[j, j] += 1.0
            telling = solve_cholesky(cholesky(shifted), telling)
        if dot(telling, telling) == 0.0:
            continue
        sign = 1.0 if dot(telling, reward) >= 0.0 else -1.0
        for _ in range(2):
            action = farthest(body, scaled(sign, telling))
            here = reduction(posterior, v, slopes[v], action) / costs[v]
            if here > largest * (1.0 + 1e-10):
                best, best_v, largest = action, v, here
            sign = -sign
    return best, best_v, largest
