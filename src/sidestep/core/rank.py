"""Estimating the rank of the protected vectors (Remark "Knowledge of s").

The rank cannot be certified from data alone: a direction may exist and be too weak to detect. So the
problem has a resolution, the smallest singular value that matters, and every singular value of the
estimates is one of three:

separated    above the error bound: the direction exists
dismissed    below the resolution even with the error bound added: the direction does not matter
undecided    neither; also called open

The error bound holds for any choice of measurements: if |theta_i - centre_i|_{V_i} <= r_i for all i, then
|Theta - centre| <= sqrt(sum_i r_i^2 lambda_max(V_i^-1)), and singular values differ by no more (Weyl).

A policy cannot wait for a certificate. It assumes the smallest rank k that the measurements do not
contradict: with V_i / R_i^2 the precision of every estimate, the least squared distance from the
estimates to vectors of rank k must be within a chi-squared bound.

A recommendation must not treat one rank as certain. `rank_odds` gives every rank a probability from
the ratio of the posterior density to the prior density where the vectors have that rank.

A Thompson policy assumes the smallest rank that the measurements do not contradict. The rank is reviewed
whenever the number of measurements has grown by a tenth. In one round of DOUBT_EVERY the rival action
and the measurement are chosen with the largest rank below d that is still possible: every direction
counts whose singular value could still reach the resolution. So no direction that matters stays undecided
for good, and no separate phase is needed. Rank d is never assumed: nothing would be left of the target,
all actions would be equally good, and there would be nothing to find out. It has no odds either.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.jit import kernel
from sidestep.core.linalg import total
from sidestep.core.posterior import Posterior
from sidestep.core.problem import Problem
from sidestep.errors import InputError

PASSES = 12  # passes of the alternating fit
NEARLY_FITTED = 0.1  # squared distance to rank k below which larger ranks are not fitted


class Spectrum(NamedTuple):
    """Singular values of the protected estimates, their error bound, and how many are decided.

    values      the singular values, descending; (min(L, d),)
    error       with probability 1 - delta every true singular value is within this distance
    separated   number of singular values that are certainly above zero
    undecided   number of further ones that may or may not reach the resolution
    """

    values: FloatArray
    error: float
    separated: int
    undecided: int


def spectrum(
    posterior: Posterior, norm_bound: float, prior: float, delta: float, resolution: float
) -> Spectrum:
    """Singular values of the protected estimates; `prior` is the prior variance of a coordinate."""
    values = np.linalg.svd(posterior.mean[1:], compute_uv=False)
    error = error_of(posterior, norm_bound, prior, delta)
    separated = int((values > error).sum())
    reaching = int((values + error >= resolution).sum())
    return Spectrum(values, error, separated, max(reaching - separated, 0))


def error_of(posterior: Posterior, norm_bound: float, prior: float, delta: float) -> float:
    """Error bound: sqrt(sum_i r_i^2 lambda_max(V_i^-1)) over the protected vectors, log-det radii r_i."""
    total = 0.0
    n_protected = len(posterior.mean) - 1
    for v in range(1, n_protected + 1):
        spread = np.linalg.eigvalsh(posterior.inverse[v])
        rho = posterior.noise[v] ** 2 / prior
        logdet = -float(np.log(rho * np.maximum(spread, 1e-300)).sum())
        confident = max(logdet, 0.0) + 2 * np.log(n_protected / delta)
        radius = posterior.noise[v] * np.sqrt(confident) + np.sqrt(rho) * norm_bound
        total += radius**2 * spread[-1]
    return float(np.sqrt(total))


def consistent_rank(posterior: Posterior, delta: float) -> int:
    """The smallest rank that the protected estimates do not contradict at level delta."""
    centre = posterior.mean[1:]
    limit = min(centre.shape)
    precision = np.linalg.inv(posterior.inverse[1:]) / posterior.noise[1:, None, None] ** 2
    for rank in range(limit):
        left = centre - closest_of_rank(centre, precision, rank)
        distance = float(np.einsum("ij,ijk,ik->", left, precision, left))
        if distance <= chi_squared_bound(
            (centre.shape[0] - rank) * (centre.shape[1] - rank), delta
        ):
            return rank
    return limit


def rank_odds(posterior: Posterior) -> FloatArray:
    """Posterior probability of every rank below d, with equal priors; (min(L, d - 1),), (1,) if d = 1.

    Entry k - 1 is for rank k. Let x be the closest vectors of rank k. In n = (L-k)(d-k) coordinates a
    move from x raises the rank. The ratio of the posterior to the prior density of these coordinates at
    0 is

        exp(-|centre - x|^2 / 2) prod_j (tau^2 / S_j)^(1/2),

    where S is their posterior covariance, approximated by its diagonal blocks, and tau^2 the mean square
    of a coordinate (Savage and Dickey). Before any protected vector is measured every ratio is 1.
    """
    centre = posterior.mean[1:]
    covariance = posterior.inverse[1:] * posterior.noise[1:, None, None] ** 2
    precision = np.linalg.inv(covariance)
    square = (centre**2).sum() + np.trace(covariance, axis1=1, axis2=2).sum()
    logs, distance = np.empty(min(len(centre), largest_rank(centre.shape[1]))), np.inf
    for k in range(1, len(logs) + 1):
        fitted = centre
        if distance > NEARLY_FITTED:
            fitted = closest_of_rank(centre, precision, k)
        left = centre - fitted
        distance = float(np.einsum("ij,ijk,ik->", left, precision, left))
        logs[k - 1] = _log_density(fitted, covariance, square / centre.size, k) - distance / 2
    odds = np.exp(logs - logs.max())
    return np.asarray(odds / odds.sum())


def _log_density(vectors: FloatArray, covariance: FloatArray, variance: float, rank: int) -> float:
    """Log of prod_j (variance / S_j)^(1/2) over the coordinates that raise the rank of the vectors."""
    rows, _, columns = np.linalg.svd(vectors)
    across = columns[rank:] @ covariance @ columns[rank:].T
    blocks = np.tensordot(rows[:, rank:].T ** 2, across, axes=1)  # (L-k, d-k, d-k)
    if blocks.size == 0:
        return 0.0
    return float(-np.linalg.slogdet(blocks / variance)[1].sum() / 2)


def chi_squared_bound(freedom: int, delta: float) -> float:
    """Value that a chi-squared variable exceeds with probability at most delta (Laurent and Massart)."""
    x = np.log(1 / delta)
    return float(freedom + 2 * np.sqrt(freedom * x) + 2 * x)


def closest_of_rank(centre: FloatArray, precision: FloatArray, rank: int) -> FloatArray:
    """Vectors of that rank closest to the centres, each in the norm of its own precision; (L, d).

    Alternating least squares, starting at the singular vectors of the weighted rows: coefficients for a
    fixed basis, then a basis for fixed coefficients. The fit may stop above the least distance; the
    error is then towards a larger rank.
    """
    L, d = centre.shape
    if rank == 0 or not centre.any():
        return np.zeros_like(centre)
    weights = np.sqrt(np.trace(precision, axis1=1, axis2=2))
    basis = np.linalg.svd(weights[:, None] * centre, full_matrices=False)[2][:rank]
    pulled = (precision @ centre[:, :, None])[:, :, 0]
    for _ in range(PASSES):
        shares = _shares(basis, precision, pulled)
        squares = (shares[:, :, None] * shares[:, None, :]).reshape(L, rank * rank)
        blocks = (squares.T @ precision.reshape(L, d * d)).reshape(rank, rank, d, d)
        system = blocks.transpose(0, 2, 1, 3).reshape(rank * d, rank * d)
        system[np.diag_indices_from(system)] += 1e-9 * np.trace(system) / (rank * d)
        right = (shares.T @ pulled).ravel()
        basis = np.linalg.qr(np.linalg.solve(system, right).reshape(rank, d).T)[0].T
    return np.asarray(_shares(basis, precision, pulled) @ basis)


def _shares(basis: FloatArray, precision: FloatArray, pulled: FloatArray) -> FloatArray:
    """Coefficients of every vector in the basis, least squares in its own precision; (L, rank)."""
    system = basis @ precision @ basis.T
    return np.asarray(np.linalg.solve(system, (pulled @ basis.T)[:, :, None])[:, :, 0])


DOUBT_EVERY = 8


class Ranks(NamedTuple):
    """What a policy's state says about the rank of the protected vectors; both are s where s is known."""

    assumed: int  # the smallest that the measurements do not contradict; below d
    possible: int  # the largest below d that is still possible, and at least the assumed one


@kernel
def doubted_rank(ranks: Ranks, counts: IntArray) -> int:
    """The rank for the rival and the measurement: in one round of DOUBT_EVERY the possible one."""
    doubts = total(counts, 0) % DOUBT_EVERY == DOUBT_EVERY - 1
    return ranks.possible if doubts else ranks.assumed


def is_reviewed(problem: Problem) -> bool:
    """Whether the rank is unknown and matters, so that it is reviewed now and then."""
    return problem.subspace_dim is None and problem.tolerance is None


def first_ranks(problem: Problem) -> Ranks:
    """The ranks before the first round; where s is unknown, 1 is assumed."""
    if problem.subspace_dim is not None:
        return Ranks(problem.subspace_dim, problem.subspace_dim)
    L = problem.n_protected
    return (
        Ranks(min(1, L), min(L, largest_rank(problem.dim))) if is_reviewed(problem) else Ranks(L, L)
    )


def reviewed_ranks(problem: Problem, posterior: Posterior, prior: float, delta: float) -> Ranks:
    """The ranks that this posterior of the effects supports."""
    least, most = min(1, problem.n_protected), largest_rank(problem.dim)
    assumed = min(max(consistent_rank(posterior, delta), least), most)
    seen = spectrum_of(problem, posterior, prior, delta)
    return Ranks(assumed, max(min(seen.separated + seen.undecided, most), assumed))


def largest_rank(dim: int) -> int:
    """The largest rank that leaves something of the target."""
    return max(dim - 1, 1)


def spectrum_of(problem: Problem, posterior: Posterior, prior: float, delta: float) -> Spectrum:
    """Singular values of the protected estimates; `prior` is the prior variance of a coordinate."""
    return spectrum(posterior, problem.norm_bound, prior, delta, resolution_of(problem))


def resolution_of(problem: Problem) -> float:
    """The smallest singular value that matters: the problem's resolution, or sqrt(lambda_min)."""
    if problem.resolution is not None:
        return problem.resolution
    if problem.eigenvalue is not None:
        return float(np.sqrt(problem.eigenvalue))
    raise InputError(
        "a Thompson policy needs one of the problem's subspace_dim, eigenvalue or resolution "
        "(the rank cannot be certified from data alone), or a tolerance, got none"
    )
