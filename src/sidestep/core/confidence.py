"""Confidence sets Theta_i = {theta : |theta - centre_i|_{V_i} <= radius_i} (Eq. 2)."""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.estimator import Evidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import copy_into, quadratic

PRINTED, LOGDET = 0, 1
RADII = {"printed": PRINTED, "logdet": LOGDET}


class Confidence(NamedTuple):
    """The parameters that determine the size of the confidence sets."""

    rho: FloatArray  # (L+1,)
    noise: FloatArray  # R_i, (L+1,)
    norm_bound: float  # M
    action_bound: float  # A
    delta: float  # for one vector: its part of the user's delta after the split (B1)
    form: int  # PRINTED or LOGDET
    discount: float = 1.0  # factor of every sum per round; 1: nothing is forgotten


class Ellipsoids(NamedTuple):
    """The confidence sets of some vectors, target first."""

    centre: FloatArray  # (n, d)
    inverse: FloatArray  # (n, d, d)
    radius: FloatArray  # (n,)


@kernel(refcounts=False)
def radius(confidence: Confidence, evidence: Evidence, index: int) -> float:
    """sqrt(beta), the radius of Theta_i in the norm of V_i.

    PRINTED is Eq. 2 with the bound on actions where the paper reuses M (B7). LOGDET is what the
    same theorem of Abbasi-Yadkori et al. gives before it is simplified. For d >= 2 it is never
    larger than PRINTED; for d = 1 only LOGDET is implied by the theorem.
    """
    d = evidence.centre.shape[1]
    return _radius(confidence, d, evidence.counts[index], evidence.logdet[index], index)


@kernel(refcounts=False)
def _radius(confidence: Confidence, d: int, count: int, logdet: float, index: int) -> float:
    R, rho = confidence.noise[index], confidence.rho[index]
    if confidence.form == PRINTED:
        growth = 1.0 + count * confidence.action_bound**2 / rho
        spread = d * np.log(growth / confidence.delta)
    else:
        spread = logdet - 2.0 * np.log(confidence.delta)
    return R * np.sqrt(spread) + np.sqrt(rho) * confidence.norm_bound


@kernel(refcounts=False)
def width(confidence: Confidence, evidence: Evidence, index: int, action: FloatArray) -> float:
    """Half-length of the interval for <a, theta_i>: radius_i |a|_{V_i^-1}."""
    spread = max(quadratic(evidence.inverse[index], action), 0.0)
    return radius(confidence, evidence, index) * np.sqrt(spread)


@kernel
def ellipsoids(confidence: Confidence, evidence: Evidence, rows: IntArray) -> Ellipsoids:
    """The confidence sets of the vectors in `rows`."""
    n, d = rows.size, evidence.centre.shape[1]
    # fill separate arrays and build the tuple last: where the call is inlined, numba treats writes
    # into a field of a tuple built here as dead code and removes them
    centre, inverse, radii = np.empty((n, d)), np.empty((n, d, d)), np.empty(n)
    for row in range(n):
        copy_into(evidence.centre[rows[row]], centre[row])
        for j in range(d):
            copy_into(evidence.inverse[rows[row], j], inverse[row, j])
        radii[row] = radius(confidence, evidence, rows[row])
    return Ellipsoids(centre, inverse, radii)


@kernel(refcounts=False)
def widest(
    confidence: Confidence, evidence: Evidence, chosen: IntArray, first: int, action: FloatArray
) -> int:
    """Index rule of Alg. 2: the vector with the largest width along the action.

    Only vectors i >= `first` that are switched on in `chosen` (L+1,) are compared.
    """
    best, largest = first, -1.0
    d = action.size
    for row in range(first, chosen.size):
        if chosen[row]:
            spread = np.sqrt(max(quadratic(evidence.inverse[row], action), 0.0))
            here = spread * _radius(confidence, d, evidence.counts[row], evidence.logdet[row], row)
            if here > largest * (1.0 + 1e-10):  # in a tie the lowest index wins
                best, largest = row, here
    return best
