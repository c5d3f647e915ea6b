"""Variance reduction by one more measurement.

Under the posterior of posterior.py, a quantity with gradient g (sensitivity.py) has the variance
sum_v R_v^2 |g_v|^2_{V_v^-1}. One measurement of vector v along a reduces it by

    red(a, v) = R_v^2 <g_v, V_v^-1 a>^2 / (1 + |a|^2_{V_v^-1}).
"""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.forms import Menu
from sidestep.core.geometry import (
    apply,
    cholesky,
    dot,
    lowest_argmax,
    quadratic,
    scaled,
    solve_cholesky,
)
from sidestep.core.kernels import kernel
from sidestep.core.posterior import Posterior
from sidestep.core.quadratics import both_forms
from sidestep.core.solids import BALL, Body, farthest


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


@kernel
def most_telling_arm(
    posterior: Posterior, costs: FloatArray, slopes: FloatArray, menu: Menu
) -> tuple[int, int, float]:
    """The arm and the vector whose measurement removes most variance per cost, and how much."""
    best_arm, best_v, largest = 0, 0, -1.0
    along, square = np.empty(menu.squared.size), np.empty(menu.squared.size)
    for v in range(slopes.shape[0]):
        direction = apply(posterior.inverse[v], slopes[v])
        both_forms(menu.columns, direction, posterior.inverse[v], 0.0, along, square)
        weight = posterior.noise[v] ** 2 / costs[v]
        for k in range(along.size):
            along[k] = weight * along[k] * along[k] / (1.0 + square[k])
        arm = lowest_argmax(along)
        if along[arm] > largest * (1.0 + 1e-10):
            best_arm, best_v, largest = arm, v, along[arm]
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
