"""CORE-SET: stopping rules that decide when a spanning set of protected vectors can be chosen.

All protected vectors are measured equally often until the best subset of the estimates is independent
with high probability (Alg. CORE-SET, and Alg. CORE-SET for known lambda_min). lambda_min(S) is the
smallest eigenvalue of the Gram matrix of S, zero exactly where S is dependent (A7). Estimates are plain
means, not ridge estimates: regularisation would bias the eigenvalue down (A9).

rule         stops when                                             returns
PRINTED      lambda > 16 L R (M+R) (d log 6 + log 1/delta) / sqrt(n+1)   best subset of size k
INTENDED     the same over sqrt(n), n sweeps done (A10)                  best subset of size k
CERTIFIED    sigma_k >= c e_n, at geometric checks (B2)                  best subset of size k
EIGENVALUE   e_n <= 0.2113 sqrt(lambda_min), known beforehand (A6)       k = #{sigma > sqrt(lambda_min)/2}
RESOLUTION   e_n <= resolution / 2, known beforehand                     k = #{sigma > e_n}

n is the number of sweeps, e_n the error bound after n sweeps, sigma a singular value of the estimates.
With probability 1 - delta, INTENDED, CERTIFIED and EIGENVALUE return a set whose lambda_min is at least
a third of the best set's (CERTIFIED: at least the share gamma). RESOLUTION returns an independent set
that counts every direction with a singular value of at least the resolution.
"""

import math
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import REACHED
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.best_subset import Subset, best_subset, search_subset
from sidestep.core.confidence import Ellipsoids
from sidestep.core.estimator import Evidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import copy_into, dot, total

__all__ = ["CoreSetRule", "Subset", "best_subset", "end_core_set", "error_bound", "is_check"]

PRINTED, INTENDED, CERTIFIED, EIGENVALUE, RESOLUTION = 0, 1, 2, 3, 4
MOST_NODES = 1_000_000  # node limit of one subset search
EIGENVALUE_SHARE = 0.5 * (1 - 1 / math.sqrt(3))  # 0.2113: leaves a third of lambda_min (A6)
ROUNDING = 1e-14  # an eigenvalue below this share of the largest squared length is rounding


class CoreSetRule(NamedTuple):
    """When CORE-SET ends, and what it returns."""

    kind: int
    size: int  # k; unused by EIGENVALUE and RESOLUTION
    noise: float  # R, the largest of the protected vectors
    norm_bound: float  # M
    delta: float  # per vector for PRINTED and INTENDED, else for the whole phase
    factor: float  # c of CERTIFIED
    threshold: float  # lambda_min or the resolution
    basis: bool  # e_1..e_d are played, not arms


class Sweeps(NamedTuple):
    """Sweeps that a compiled run may leave behind without a test: see `may_end`."""

    rounds: int  # of a sweep; 0: none is left out
    least: float  # what `may_end` asks for
    until: int  # the round in which Python looks in any case


NO_SWEEPS = Sweeps(0, 0.0, 0)


def certified_factor(gamma: float) -> float:
    """The factor c such that sigma >= c e implies lambda_min(S) >= gamma max lambda_min (Weyl)."""
    return (1 + math.sqrt(gamma)) / (1 - math.sqrt(gamma))


def end_core_set(rule: CoreSetRule, evidence: Evidence) -> Subset | None:
    """At the end of a sweep: the best subset if the rule stops here, else None."""
    estimates, strength = plain_estimates(evidence, rule.basis)
    sweeps = total(evidence.counts, 1) // estimates.size
    size = stopping_size(rule, estimates, strength, sweeps)
    return None if size < 0 else best_subset(estimates, size, MOST_NODES)


def core_set_of(n_vectors: int, rows: IntArray) -> IntArray:
    """1 for the target and for the protected vectors in `rows`, numbered from 0; (L+1,)."""
    core_set = np.zeros(n_vectors, dtype=np.int64)
    core_set[0] = 1
    core_set[rows + 1] = 1
    return core_set


@kernel
def best_rows(vectors: FloatArray, size: int) -> IntArray:
    """The target and the best `size` protected vectors; vectors (L+1, d); (size+1,)."""
    rows = np.zeros(size + 1, np.int64)
    if size > 0:
        best, _, _ = search_subset(vectors[1:], size, MOST_NODES)
        for row in range(size):
            rows[row + 1] = best[row] + 1
    return rows


@kernel
def write_best_rows(vectors: FloatArray, size: int, out: IntArray) -> int:
    """Write `best_rows` into the first entries of `out`, and return their number, size + 1."""
    copy_into(best_rows(vectors, size), out)
    return size + 1


def stopping_size(rule: CoreSetRule, estimates: FloatArray, strength: float, sweeps: int) -> int:
    """Size of the core set if the rule stops here, else -1."""
    L, d = estimates.shape
    if strength <= 0.0:
        return -1
    if rule.kind in (EIGENVALUE, RESOLUTION):
        floor = _least_singular(rule, whole_error(d, L, rule.noise, strength, rule.delta))
        if floor is None:
            return -1
        values = np.linalg.svd(estimates, compute_uv=False)
        return int((values > max(floor, 1e-12 * values[0])).sum())
    number = is_check(sweeps) if rule.kind == CERTIFIED else sweeps
    if number == 0:
        return -1
    _, eigenvalue, _ = search_subset(estimates, rule.size, MOST_NODES)
    longest = 0.0
    for i in range(L):
        longest = max(longest, dot(estimates[i], estimates[i]))
    # without noise the needed eigenvalue is 0: ROUNDING keeps rounding from counting as independence
    if eigenvalue >= max(needed_eigenvalue(rule, d, L, strength, number), ROUNDING * longest):
        return rule.size
    return -1


def _least_singular(rule: CoreSetRule, error: float) -> float | None:
    """Smallest singular value of a direction that counts, where lambda_min or a resolution is known.

    None while the error of the estimates is still too large to decide (A6).
    """
    if rule.kind == EIGENVALUE:
        root = math.sqrt(rule.threshold)
        return 0.5 * root if error <= EIGENVALUE_SHARE * root else None
    return error if error <= 0.5 * rule.threshold else None


def needed_eigenvalue(rule: CoreSetRule, d: int, L: int, strength: float, number: int) -> float:
    """The lambda_min of the best subset at which the rule stops."""
    if rule.kind == CERTIFIED:
        delta = rule.delta / (number * (number + 1.0))
        return (rule.factor * error_bound(d, L, rule.size, rule.noise, strength, delta)) ** 2
    clock = strength + 1.0 if rule.kind == PRINTED else strength
    # print goes on while <=
    return np.nextafter(printed_scale(rule, d, L) / np.sqrt(clock), np.inf)


def printed_scale(rule: CoreSetRule, d: int, L: int) -> float:
    """What PRINTED and INTENDED divide by the square root of their clock."""
    R, M = rule.noise, rule.norm_bound
    return 16.0 * L * R * (M + R) * (d * np.log(6.0) - np.log(rule.delta))


@kernel(refcounts=False, small=True)
def may_end(least: float, evidence: Evidence, sweeps: int) -> bool:
    """Whether PRINTED or INTENDED could stop after these sweeps of e_1..e_d; `least` is their scale.

    No lambda_min of a subset exceeds the longest estimate, squared; a hundredth is left for rounding.
    """
    longest = 0.0
    for i in range(1, evidence.moment.shape[0]):
        square = 0.0
        for j in range(evidence.moment.shape[1]):
            square += (evidence.moment[i, j] / evidence.gram[i, j, j]) ** 2
        longest = max(longest, square)
    return longest * np.sqrt(sweeps + 1.0) >= 0.99 * least


def plain_estimates(evidence: Evidence, basis: bool) -> tuple[FloatArray, float]:
    """Unregularised estimates of the protected vectors (L, d), and the strength of the design.

    Strength is the smallest eigenvalue of a vector's sum of a a', over all protected vectors. Where the
    basis is played it is the number of sweeps. Over arms only the directions that the arms reach count
    (A13), those along which some vector was measured; it is 0 until every vector was measured along all
    of them.
    """
    L, d = evidence.moment.shape[0] - 1, evidence.moment.shape[1]
    estimates = np.zeros((L, d))
    strength, reached = np.inf, 0 if basis else _reached(evidence.gram[1:].sum(axis=0))
    for i in range(L):
        moment = evidence.moment[i + 1]
        if basis:
            for j in range(d):
                weight = evidence.gram[i + 1, j, j]
                estimates[i, j] = moment[j] / weight if weight > 0.0 else 0.0
                strength = min(strength, weight)
            continue
        values, directions = np.linalg.eigh(evidence.gram[i + 1])
        if reached == 0 or values[d - reached] <= REACHED * values[d - 1]:
            strength = 0.0
        for j in range(d):
            if values[j] > REACHED * values[d - 1]:
                strength = min(strength, values[j])
                share = dot(directions[:, j], moment) / values[j]
                for k in range(d):
                    estimates[i, k] += share * directions[k, j]
    return estimates, strength


def _reached(gram: FloatArray) -> int:
    """Number of directions that the sum of a a' (d, d) reaches: its numerical rank."""
    values, _ = np.linalg.eigh(gram)
    count = 0
    for value in values:
        if value > REACHED * values[values.size - 1]:
            count += 1
    return count


def error_bound(d: int, L: int, k: int, R: float, strength: float, delta: float) -> float:
    """e_n: all k-subsets of the estimates are this close to the truth in operator norm, w.p. 1 - delta.

    The smallest of three bounds on sub-Gaussian matrices: entrywise over subsets, entrywise over all
    L, and a net of the unit sphere of R^k. Taking the smallest needs no union bound, since none of the
    three depends on the data.
    """
    subsets = _log_binomial(L, k) - np.log(delta)
    best = min(_tail(d * k, subsets), _tail(d * L, -np.log(delta)))
    for step in range(1, 5):
        net = 0.1 * step
        covered = _tail(d, k * np.log(1.0 + 2.0 / net) + subsets) / (1.0 - net)
        best = min(best, covered)
    return R / np.sqrt(strength) * best


def whole_error(d: int, L: int, R: float, strength: float, delta: float) -> float:
    """Error bound for the whole L x d matrix of estimates, in operator norm, at one fixed time."""
    return R / np.sqrt(strength) * _tail(d * L, -np.log(delta))


def _tail(m: int, x: float) -> float:
    """Length that a 1-sub-Gaussian vector in R^m exceeds with probability at most exp(-x)."""
    return np.sqrt(m + 2.0 * np.sqrt(m * x) + 2.0 * x)


def _log_binomial(n: int, k: int) -> float:
    """Log of the binomial coefficient (n choose k)."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


def certified_subset(rule: CoreSetRule, sets: Ellipsoids) -> Subset | None:
    """A core set certified by the confidence sets of all vectors, for any design; None if there is none.

    If every theta_i is in its set, the error of the protected estimates is at most e = sqrt(sum_i r_i^2
    lambda_max(V_i^-1)) in operator norm, whatever was measured. With e for e_n the rules above apply.
    """
    centre, spread = sets.centre[1:], np.linalg.eigvalsh(sets.inverse[1:])[:, -1]
    error = float(np.sqrt((sets.radius[1:] ** 2 * spread).sum()))
    size, least = rule.size, rule.factor * error
    if rule.kind in (EIGENVALUE, RESOLUTION):
        floor = _least_singular(rule, error)
        if floor is None:
            return None
        least = floor
        size = int((np.linalg.svd(centre, compute_uv=False) > least).sum())
    if size == 0:
        return None
    found = best_subset(centre, size, MOST_NODES)
    return found if math.sqrt(max(found.eigenvalue, 0.0)) >= least else None


def after_check(at: int) -> int:
    """The sweep of the check that follows one at sweep `at`: 1.1 times `at`, rounded up."""
    return (11 * at + 9) // 10


def next_check(count: int) -> int:
    """The first check above `count`; checks are at 1, 2, 3, ..., each about 1.1 times the one before."""
    at = 1
    while at <= count:
        at = after_check(at)
    return at


def is_check(sweeps: int) -> int:
    """Number j = 1, 2, ... of the check at this sweep; 0 if there is no check at this sweep."""
    at, number = 1, 1
    while at < sweeps:
        at = after_check(at)
        number += 1
    return number if at == sweeps else 0
