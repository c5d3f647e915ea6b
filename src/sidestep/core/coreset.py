"""CORE-SET: when enough has been seen to name a spanning set of protected vectors.

Every vector is measured alike until the best subset of the estimates is certainly independent
(Alg. CORE-SET, and Alg. CORE-SET for known lambda_min). lambda_min(S) is the smallest eigenvalue
of the Gram matrix of S, zero exactly where S is dependent (A7). Estimates are plain means, not
ridge estimates: regularisation would bias the eigenvalue down (A9).

rule         stops when                                             returns
PRINTED      lambda > 16 L R (M+R) (d log 6 + log 1/delta) / sqrt(n+1)   best subset of size k
INTENDED     the same over sqrt(n), n sweeps done (A10)                  best subset of size k
CERTIFIED    sigma_k >= c e_n, at geometric checks (B2)                  best subset of size k
EIGENVALUE   e_n <= 0.2113 sqrt(lambda_min), known beforehand (A6)       k = #{sigma > sqrt(lambda_min)/2}
RESOLUTION   e_n <= resolution / 2, known beforehand                     k = #{sigma > e_n}

Each of the last four returns, with probability 1 - delta, a set whose lambda_min is at least a third
(CERTIFIED: the share gamma; RESOLUTION: of directions that strong) of the best set's.
"""

import math
from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Ellipsoids
from sidestep.core.estimator import Evidence
from sidestep.core.geometry import copy_into, dot, total
from sidestep.core.kernels import kernel
from sidestep.core.subset import Subset, best_subset, search_subset

__all__ = ["CoreSetRule", "Subset", "best_subset", "end_core_set", "error_bound", "is_check"]

PRINTED, INTENDED, CERTIFIED, EIGENVALUE, RESOLUTION = 0, 1, 2, 3, 4
MAX_NODES = 1_000_000  # of the subset search, in every test of a rule
PROVED, UNPROVED = 1, 2  # core_set of the target: the best subset, or one found before the cap
EIGENVALUE_SHARE = 0.5 * (1 - 1 / math.sqrt(3))  # 0.2113 of sqrt(lambda_min): leaves a third (A6)
ROUNDING = 1e-14  # share of the largest squared length below which an eigenvalue is rounding
REACHED = 1e-8  # share of the largest eigenvalue below which arms do not reach a direction


class CoreSetRule(NamedTuple):
    """When CORE-SET ends, and what it returns."""

    kind: int
    size: int  # k; unused by EIGENVALUE and RESOLUTION
    noise: float  # R, the largest of the protected vectors
    norm_bound: float  # M
    delta: float  # per vector for PRINTED and INTENDED, else for the phase as a whole
    factor: float  # c of CERTIFIED
    threshold: float  # lambda_min or the resolution
    basis: bool  # samples are of e_1..e_d, not of arms


class Sweeps(NamedTuple):
    """Sweeps that a compiled run may leave behind without a test: see `may_end`."""

    rounds: int  # of a sweep; 0: none is left out
    least: float  # what `may_end` asks for
    until: int  # the round in which Python looks in any case


NO_SWEEPS = Sweeps(0, 0.0, 0)


def certified_factor(gamma: float) -> float:
    """The factor c: sigma >= c e leaves lambda_min(S) >= gamma max lambda_min (Weyl)."""
    return (1 + math.sqrt(gamma)) / (1 - math.sqrt(gamma))


def end_core_set(rule: CoreSetRule, evidence: Evidence, core_set: IntArray) -> None:
    """At the end of a sweep: if the rule stops, switch on the target and the core set, in place."""
    estimates, strength = plain_estimates(evidence, rule.basis)
    sweeps = total(evidence.counts, 1) // estimates.size
    size = stopping_size(rule, estimates, strength, sweeps)
    if size < 0:
        return
    rows, _, exact = search_subset(estimates, size, MAX_NODES)
    switch_on(core_set, rows, exact)


def switch_on(core_set: IntArray, rows: IntArray, exact: bool) -> None:
    """Switch on the target and the protected vectors in `rows`, 0-based, in place."""
    core_set[0] = PROVED if exact else UNPROVED
    for row in rows:
        core_set[row + 1] = 1


@kernel
def best_rows(vectors: FloatArray, size: int) -> IntArray:
    """The target and the best `size` protected vectors; vectors (L+1, d); (size+1,)."""
    rows = np.zeros(size + 1, np.int64)
    if size > 0:
        best, _, _ = search_subset(vectors[1:], size, MAX_NODES)
        for row in range(size):
            rows[row + 1] = best[row] + 1
    return rows


@kernel
def write_best_rows(vectors: FloatArray, size: int, out: IntArray) -> int:
    """The same into the first entries of `out`; how many."""
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
    _, eigenvalue, _ = search_subset(estimates, rule.size, MAX_NODES)
    longest = 0.0
    for i in range(L):
        longest = max(longest, dot(estimates[i], estimates[i]))
    # without noise nothing else keeps rounding from passing for independence
    if eigenvalue >= max(needed_eigenvalue(rule, d, L, strength, number), ROUNDING * longest):
        return rule.size
    return -1


def _least_singular(rule: CoreSetRule, error: float) -> float | None:
    """The singular value from which on a direction counts, where lambda_min or a resolution is known.

    None while estimates may still be off by too much to tell (A6).
    """
    if rule.kind == EIGENVALUE:
        root = math.sqrt(rule.threshold)
        return 0.5 * root if error <= EIGENVALUE_SHARE * root else None
    return error if error <= 0.5 * rule.threshold else None


def needed_eigenvalue(rule: CoreSetRule, d: int, L: int, strength: float, number: int) -> float:
    """What lambda_min of the best subset must reach for the rule to stop."""
    if rule.kind == CERTIFIED:
        delta = rule.delta / (number * (number + 1.0))
        return (rule.factor * error_bound(d, L, rule.size, rule.noise, strength, delta)) ** 2
    clock = strength + 1.0 if rule.kind == PRINTED else strength
    return np.nextafter(
        printed_scale(rule, d, L) / np.sqrt(clock), np.inf
    )  # print goes on while <=


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

    Strength is the smallest eigenvalue of a vector's sum of a a': the number of sweeps where the
    basis is played. Over arms it is taken over the directions that the arms reach (A13): those that
    any vector was measured along, and zero until every vector was.
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
    """Number of directions that the sum of a a' reaches."""
    values, _ = np.linalg.eigh(gram)
    count = 0
    for value in values:
        if value > REACHED * values[values.size - 1]:
            count += 1
    return count


def error_bound(d: int, L: int, k: int, R: float, strength: float, delta: float) -> float:
    """e_n: all k-subsets of the estimates are this close to the truth in operator norm, w.p. 1 - delta.

    The least of three bounds on sub-Gaussian matrices: entrywise over subsets, entrywise over all
    L, and a net of the unit sphere of R^k. No union is needed: none of the three is random.
    """
    subsets = _log_binomial(L, k) - np.log(delta)
    best = min(_tail(d * k, subsets), _tail(d * L, -np.log(delta)))
    for step in range(1, 5):
        net = 0.1 * step
        covered = _tail(d, k * np.log(1.0 + 2.0 / net) + subsets) / (1.0 - net)
        best = min(best, covered)
    return R / np.sqrt(strength) * best


def whole_error(d: int, L: int, R: float, strength: float, delta: float) -> float:
    """The same for the whole L x d matrix at one fixed time."""
    return R / np.sqrt(strength) * _tail(d * L, -np.log(delta))


def _tail(m: int, x: float) -> float:
    """Length that a 1-sub-Gaussian vector in R^m passes with probability at most exp(-x)."""
    return np.sqrt(m + 2.0 * np.sqrt(m * x) + 2.0 * x)


def _log_binomial(n: int, k: int) -> float:
    """Log of n over k."""
    return math.lgamma(n + 1.0) - math.lgamma(k + 1.0) - math.lgamma(n - k + 1.0)


def certified_subset(rule: CoreSetRule, sets: Ellipsoids) -> Subset | None:
    """A core set that confidence sets of all vectors certify, however they were measured; else None.

    With every theta_i in its set, the protected estimates are off by at most e = sqrt(sum_i r_i^2
    lambda_max(V_i^-1)) in operator norm, whatever the design; then as in the rules above.
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
    found = best_subset(centre, size, MAX_NODES)
    return found if math.sqrt(max(found.eigenvalue, 0.0)) >= least else None


def after_check(at: int) -> int:
    """The check after one at `at`: 1.1 times as far on, rounded up."""
    return (11 * at + 9) // 10


def next_check(count: int) -> int:
    """The first number above `count` of the schedule 1, 2, 3, ..., each about 1.1 times the last."""
    at = 1
    while at <= count:
        at = after_check(at)
    return at


def is_check(sweeps: int) -> int:
    """Number j of the check that falls on this sweep, 0 where none does; checks grow by 1.1."""
    at, number = 1, 1
    while at < sweeps:
        at = after_check(at)
        number += 1
    return number if at == sweeps else 0
