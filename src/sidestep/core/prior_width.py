"""The width of the prior of every vector: the widest that the evidence does not contradict.

The problem gives M, an upper bound on the length of every vector, and the prior is N(0, M^2/d). The
projected reward depends on the *directions* of the protected vectors, not on their lengths. So an M far
above the truth does harm. Suppose that M is 10 and that a vector was measured along one action only, with
a result of 0.3. Along all other directions its draws are about ten long. So every draw is almost
orthogonal to that action: the draws agree, and what they agree on is wrong (docs/panel.md).

The evidence of a vector, given the variance q of its coordinates, has the log-likelihood

    l(q) = (1/2) m' V^-1 m / R^2 - (1/2) log det(V q / R^2),   V = G + (R^2 / q) I,

where G and m are the sums of a a' and a x, up to a term that does not depend on q. This holds for any
choice of the measurements. The widths M, M/2, M/4, ... are compared. A width is contradicted at level p
if its likelihood is below p times the mixture of all likelihoods with weights 1/((j+1)(j+2)). Under the
true width, the mixture divided by the likelihood is a martingale. So the true width is ever contradicted
with probability at most p, at any number of looks (Ville). One width common to all vectors and one width
per vector are tested, each with half of the level, and the narrower is used. The prior of a vector that
is not isotropic may become too narrow; it widens again when the vector is measured more.
"""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.estimator import Evidence
from sidestep.core.jit import compiled_as, kernel
from sidestep.core.linalg import cholesky, dot, factors_of, solve_cholesky
from sidestep.core.posterior import (
    Posterior,
    Posteriors,
    Prior,
    effects_alone,
    noise_levels,
    posterior_from_sums,
    posterior_of,
)

HALVINGS = 20  # most halvings: the narrowest width is a millionth of M
RISE = 1e-3  # if no log-likelihood rises by more, narrower widths are not tried


@kernel(small=True)
def doubting_posterior_of(prior: Prior, evidence: Evidence) -> Posterior:
    """Posterior given the evidence, under the widest prior that the evidence does not contradict."""
    if prior.doubt == 0.0:
        return posterior_of(prior, evidence)
    noise, variances = noise_levels(prior, evidence), np.full(evidence.centre.shape, prior.variance)
    if narrow_into(evidence, noise, prior.dim, prior.doubt, variances):
        return posterior_from_sums(evidence, noise, variances)
    return posterior_of(prior, evidence)


@kernel(small=True)
def doubting_posteriors_of(prior: Prior, evidence: Evidence, has_levels: bool) -> Posteriors:
    """`posteriors_of` under that prior."""
    posterior = doubting_posterior_of(prior, evidence)
    return Posteriors(posterior, effects_alone(posterior, has_levels))


@kernel(small=True)
def narrow_into(
    evidence: Evidence, noise: FloatArray, dim: int, level: float, variances: FloatArray
) -> bool:
    """Divide the prior variances (L+1, width) by 4^halvings, in place; returns whether any changed.

    A level, the coordinate after the d effects, keeps its prior.
    """
    found = halvings(evidence, noise, variances[0, 0], dim, level)
    narrower = False
    for v in range(noise.size):
        narrower = narrower or found[v] > 0.0
        for j in range(dim):
            variances[v, j] /= 4.0 ** found[v]
    return narrower


@kernel(small=True)
def halvings(
    evidence: Evidence, noise: FloatArray, variance: float, dim: int, level: float
) -> FloatArray:
    """Number of halvings of the prior width of every vector; whole numbers, (L+1,)."""
    n = noise.size
    likely = np.zeros((HALVINGS + 1, n + 1))  # column n: all vectors together
    tried = 0
    rises = True
    while rises and tried <= HALVINGS:
        rises = tried == 0
        alone = log_likelihoods(evidence, noise, variance / 4.0**tried, variance, dim)
        for v in range(n):
            likely[tried, v] = alone[v]
            likely[tried, n] += alone[v]
        for c in range(n + 1):
            rises = rises or likely[tried, c] > likely[tried - 1, c] + RISE
        tried += 1
    common = _widest(likely[:tried, n], 0.5 * level)
    out = np.empty(n)
    for v in range(n):
        out[v] = max(common, _widest(likely[:tried, v], 0.5 * level / n))
    return out


def log_likelihoods(
    evidence: Evidence, noise: FloatArray, variance: float, of_level: float, dim: int
) -> FloatArray:
    """Log-likelihood of all measurements of every vector, minus that for theta_v = 0; (L+1,).

    variance: prior variance of an effect; of_level: prior variance of a level.
    """
    variances = np.where(np.arange(evidence.centre.shape[1]) < dim, variance, of_level)
    ridge = noise[:, None] ** 2 / variances
    moment = evidence.moment + evidence.moment_low
    precision = evidence.gram + evidence.gram_low + ridge[:, :, None] * np.eye(variances.size)
    factors = factors_of(precision)
    whitened = np.linalg.solve(factors, moment[:, :, None])[:, :, 0]
    diagonals = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    shrunk = 0.5 * np.log(ridge).sum(axis=1) - diagonals
    likely = shrunk + 0.5 * (whitened * whitened).sum(axis=1) / noise**2
    return np.where(evidence.weight == 0.0, 0.0, likely)


@compiled_as(log_likelihoods, small=True)
def _log_likelihoods_loop(
    evidence: Evidence, noise: FloatArray, variance: float, of_level: float, dim: int
) -> FloatArray:
    likely = np.empty(noise.size)
    for v in range(noise.size):
        likely[v] = _log_likelihood(evidence, v, noise[v], variance, of_level, dim)
    return likely


@kernel(small=True)
def _log_likelihood(
    evidence: Evidence, v: int, noise: float, variance: float, of_level: float, dim: int
) -> float:
    d = evidence.centre.shape[1]
    if evidence.weight[v] == 0.0:
        return 0.0
    precision, moment = np.empty((d, d)), np.empty(d)
    total = 0.0
    for j in range(d):
        moment[j] = evidence.moment[v, j] + evidence.moment_low[v, j]
        for k in range(d):
            precision[j, k] = evidence.gram[v, j, k] + evidence.gram_low[v, j, k]
        ridge = noise**2 / (variance if j < dim else of_level)
        precision[j, j] += ridge
        total += 0.5 * np.log(ridge)
    factor = cholesky(precision)
    for j in range(d):
        total -= np.log(factor[j, j])
    return total + 0.5 * dot(moment, solve_cholesky(factor, moment)) / noise**2


@kernel(small=True)
def _widest(likely: FloatArray, level: float) -> int:
    """Halvings of the widest width that the mixture of all does not contradict."""
    top, mixture = likely[0], 0.0
    for j in range(likely.size):
        top = max(top, likely[j])
    for j in range(likely.size):
        mixture += np.exp(likely[j] - top) / ((j + 1) * (j + 2))
    first = 0
    while np.exp(likely[first] - top) < level * mixture:
        first += 1
    return first
