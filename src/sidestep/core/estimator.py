"""Regularised least squares for every vector (Eq. 1): theta_i = V_i^-1 sum of a x.

symbol    name             shape         what it is
T_i       counts           (L+1,)        how often vector i was measured
V_i       gram + rho I     (L+1, d, d)   gram: sum of a a'; `gram_low`: its accumulated rounding error
          moment           (L+1, d)      sum of a x; `moment_low`: its accumulated rounding error
theta_i   centre           (L+1, d)      the estimate
V_i^-1    inverse          (L+1, d, d)
          logdet           (L+1,)        log det V_i - d log rho
          weight           (L+1,)        discounted number of measurements; T_i where nothing is forgotten
          misfit           (L+1,)        least sum of squares |x - A theta|^2 + rho |theta|^2
          last, streak     (d,), (1,)    the last action, and how many times in a row it was played

Centre, inverse and logdet are functions of the sums. They are updated in every round because this costs
d^2 operations instead of d^3; after every REFACTOR measurements of a vector they are recomputed from the
sums.

Where old measurements are forgotten, `fade` discounts the sums but not the prior rho I. So along
directions that are no longer played V falls back to rho I and never below, and V^-1 stays bounded.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.jit import kernel
from sidestep.core.linalg import (
    apply_into,
    cholesky,
    copy_into,
    dot,
    inverse_into,
    solve_cholesky,
)

REFACTOR = 128


class Evidence(NamedTuple):
    """The sums of all measurements, and the estimates that follow from them for one rho."""

    counts: IntArray
    gram: FloatArray
    gram_low: FloatArray
    moment: FloatArray
    moment_low: FloatArray
    centre: FloatArray
    inverse: FloatArray
    logdet: FloatArray
    weight: FloatArray
    misfit: FloatArray
    last: FloatArray
    streak: IntArray


@kernel
def no_evidence(rho: FloatArray, dim: int) -> Evidence:
    """Evidence before the first round; rho (L+1,)."""
    n = rho.size
    inverse = np.zeros((n, dim, dim))
    for i in range(n):
        for j in range(dim):
            inverse[i, j, j] = 1.0 / rho[i]
    return Evidence(
        np.zeros(n, np.int64),
        np.zeros((n, dim, dim)),
        np.zeros((n, dim, dim)),
        np.zeros((n, dim)),
        np.zeros((n, dim)),
        np.zeros((n, dim)),
        inverse,
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(dim),
        np.zeros(1, np.int64),
    )


@kernel
def copy_evidence(evidence: Evidence) -> Evidence:
    """A copy of the evidence that shares no array with it."""
    return Evidence(
        evidence.counts.copy(),
        evidence.gram.copy(),
        evidence.gram_low.copy(),
        evidence.moment.copy(),
        evidence.moment_low.copy(),
        evidence.centre.copy(),
        evidence.inverse.copy(),
        evidence.logdet.copy(),
        evidence.weight.copy(),
        evidence.misfit.copy(),
        evidence.last.copy(),
        evidence.streak.copy(),
    )


@kernel
def absorb(
    evidence: Evidence, rho: FloatArray, action: FloatArray, index: int, feedback: float
) -> None:
    """Add one measurement to the evidence, in place."""
    absorb_with(np.empty(action.size), evidence, rho, action, index, feedback)


@kernel(refcounts=False)
def absorb_with(
    gain: FloatArray,
    evidence: Evidence,
    rho: FloatArray,
    action: FloatArray,
    index: int,
    feedback: float,
) -> None:
    """`absorb` without allocation; `gain` is a buffer for V^-1 a, (d,)."""
    _count(evidence, action, index)
    centre, inverse = evidence.centre[index], evidence.inverse[index]
    apply_into(inverse, action, gain)
    growth = dot(action, gain)
    scale = 1.0 / (1.0 + growth)
    surprise = feedback - dot(action, centre)
    evidence.misfit[index] += surprise * surprise * scale
    gram, gram_low = evidence.gram[index], evidence.gram_low[index]
    moment, moment_low = evidence.moment[index], evidence.moment_low[index]
    _add_to_sums(gram, gram_low, moment, moment_low, action, feedback)
    _move_along(gain, surprise, scale, centre, inverse)
    evidence.logdet[index] += np.log1p(growth)
    if evidence.counts[index] % REFACTOR == 0:
        refactor(evidence, rho, index)


@kernel(refcounts=False)
def _add_to_sums(
    gram: FloatArray,
    gram_low: FloatArray,
    moment: FloatArray,
    moment_low: FloatArray,
    action: FloatArray,
    feedback: float,
) -> None:
    """Add a a' and a x to the sums, and the rounding errors of these additions to the low parts."""
    for j in range(action.size):
        for k in range(action.size):
            term = action[j] * action[k]
            gram_low[j, k] += _rounding(gram[j, k], term)
            gram[j, k] += term
        term = action[j] * feedback
        moment_low[j] += _rounding(moment[j], term)
        moment[j] += term


@kernel(refcounts=False)
def _move_along(
    gain: FloatArray, surprise: float, scale: float, centre: FloatArray, inverse: FloatArray
) -> None:
    """Update estimate and inverse after one measurement, in place; gain = V^-1 a with the old V.

    Sherman-Morrison: (V + a a')^-1 = V^-1 - gain gain' scale, with scale = 1 / (1 + <a, gain>).
    """
    for j in range(gain.size):
        centre[j] += gain[j] * (surprise * scale)
        for k in range(gain.size):
            inverse[j, k] -= (gain[j] * gain[k]) * scale


@kernel(refcounts=False)
def _count(evidence: Evidence, action: FloatArray, index: int) -> None:
    """Count one measurement of a vector, and whether the action is the same as the last one."""
    evidence.counts[index] += 1
    evidence.weight[index] += 1.0
    same = evidence.streak[0] > 0
    for j in range(action.size):
        same = same and action[j] == evidence.last[j]
        evidence.last[j] = action[j]
    evidence.streak[0] = evidence.streak[0] + 1 if same else 1


@kernel(small=True)
def fade(evidence: Evidence, rho: FloatArray, discount: float) -> None:
    """Multiply every sum by `discount` and recompute the estimates from the sums, in place."""
    d = evidence.centre.shape[1]
    for i in range(rho.size):
        evidence.weight[i] *= discount
        evidence.misfit[i] *= discount
        for j in range(d):
            evidence.moment[i, j] *= discount
            evidence.moment_low[i, j] *= discount
            for k in range(d):
                evidence.gram[i, j, k] *= discount
                evidence.gram_low[i, j, k] *= discount
        refactor(evidence, rho, i)


@kernel(small=True)
def refactor(evidence: Evidence, rho: FloatArray, index: int) -> None:
    """Compute centre, inverse and log-determinant of one vector from its sums, in place."""
    gram, gram_low = evidence.gram[index], evidence.gram_low[index]
    d = gram.shape[0]
    precision = np.empty((d, d))
    for j in range(d):
        for k in range(d):
            precision[j, k] = gram[j, k] + gram_low[j, k]
        precision[j, j] += rho[index]
    factor = cholesky(precision)
    inverse_into(factor, evidence.inverse[index])
    logdet = 0.0
    for j in range(d):
        logdet += 2.0 * np.log(factor[j, j]) - np.log(rho[index])
    evidence.logdet[index] = logdet
    moment, moment_low = evidence.moment[index], evidence.moment_low[index]
    centre = evidence.centre[index]
    for j in range(d):
        centre[j] = moment[j] + moment_low[j]
    copy_into(solve_cholesky(factor, centre), centre)
    for _ in range(2):
        residual = _residual(gram, gram_low, moment, moment_low, rho[index], centre)
        correction = solve_cholesky(factor, residual)
        for j in range(d):
            centre[j] += correction[j]


@kernel(small=True)
def _residual(
    gram: FloatArray,
    gram_low: FloatArray,
    moment: FloatArray,
    moment_low: FloatArray,
    rho: float,
    x: FloatArray,
) -> FloatArray:
    """Moment - V x in doubled precision; (d,)."""
    d = x.size
    residual = np.empty(d)
    for j in range(d):
        high, low = moment[j], moment_low[j]
        for k in range(d):
            weight, lost = gram[j, k], gram_low[j, k]
            if j == k:
                lost += _rounding(weight, rho)
                weight += rho
            product = -weight * x[k]
            low += _product_rounding(-weight, x[k], product) - lost * x[k]
            low += _rounding(high, product)
            high += product
        residual[j] = high + low
    return residual


@kernel(refcounts=False)
def _rounding(left: float, right: float) -> float:
    """Rounding error of left + right: the exact sum minus the rounded one."""
    total = left + right
    taken = total - left
    return (left - (total - taken)) + (right - taken)


@kernel(refcounts=False)
def _product_rounding(left: float, right: float, product: float) -> float:
    """Rounding error of left * right (Dekker's splitting): the exact product minus `product`."""
    split = 134217729.0  # 2^27 + 1
    a = left * split
    a_high = a - (a - left)
    b = right * split
    b_high = b - (b - right)
    a_low, b_low = left - a_high, right - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@kernel
def clear(evidence: Evidence, rho: FloatArray) -> None:
    """Forget everything, in place."""
    d = evidence.centre.shape[1]
    evidence.streak[0] = 0
    for j in range(d):
        evidence.last[j] = 0.0
    for i in range(rho.size):
        evidence.counts[i] = 0
        evidence.logdet[i] = 0.0
        evidence.weight[i] = 0.0
        evidence.misfit[i] = 0.0
        for j in range(d):
            evidence.moment[i, j] = 0.0
            evidence.moment_low[i, j] = 0.0
            evidence.centre[i, j] = 0.0
            for k in range(d):
                evidence.gram[i, j, k] = 0.0
                evidence.gram_low[i, j, k] = 0.0
                evidence.inverse[i, j, k] = 1.0 / rho[i] if j == k else 0.0
