"""How wide the prior of every vector may be: the widest that the evidence does not contradict.

The player is told M, the longest that a vector can be, and believes N(0, M^2/d) beforehand. What
protection leaves of a reward depends on the *directions* of the protected vectors and not on their
lengths. So an M far above the truth is not harmless: a vector that was measured along one action, and
found at 0.3 there, is drawn ten long everywhere else. Every draw of it is all but orthogonal to that
action, all draws agree, and what they agree on is wrong (docs/panel.md).

The evidence of a vector, given the variance q of its coordinates, has the log-likelihood

    l(q) = (1/2) m' V^-1 m / R^2 - (1/2) log det(V q / R^2),   V = G + (R^2 / q) I,

G and m the sums of a a' and a x, up to what does not depend on q, however the measurements were chosen.
Widths M, M/2, M/4, ... are compared. One is contradicted at level p where its likelihood is below p
times the mixture of all, with weights 1/((j+1)(j+2)). The mixture over the likelihood is a martingale
under the width that is true: that one is contradicted with probability p at most, however long one
looks (Ville). The common width of all vectors and that of every vector by itself are looked at, with
half of the level for either, and the narrower counts. A vector that is not isotropic may be narrowed too
far, and widens again when more of it is measured.
"""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.estimator import Evidence
from sidestep.core.geometry import cholesky, dot, solve_cholesky
from sidestep.core.kernels import kernel
from sidestep.core.posterior import (
    Posterior,
    Prior,
    noise_levels,
    posterior_from_sums,
    posterior_of,
)

HALVINGS = 20  # at most: a millionth of M
RISE = 1e-3  # of a log-likelihood, below which no narrower width is looked at


@kernel(small=True)
def doubting_posterior_of(prior: Prior, evidence: Evidence) -> Posterior:
    """The belief that the evidence leaves, under the widest prior that it does not contradict."""
    if prior.doubt == 0.0:
        return posterior_of(prior, evidence)
    noise, variances = noise_levels(prior, evidence), np.full(evidence.centre.shape, prior.variance)
    if narrow_into(evidence, noise, prior.dim, prior.doubt, variances):
        return posterior_from_sums(evidence, noise, variances)
    return posterior_of(prior, evidence)


@kernel(small=True)
def narrow_into(
    evidence: Evidence, noise: FloatArray, dim: int, level: float, variances: FloatArray
) -> bool:
    """Divide the variances of the prior, (L+1, width), by what the evidence says; whether any changed.

    A level, which comes after the d effects where it is learned, keeps the prior that was told.
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
    """How often the width of every vector's prior is halved; whole numbers, (L+1,)."""
    n = noise.size
    likely = np.zeros((HALVINGS + 1, n + 1))  # of every vector, then of all
    tried = 0
    rises = True
    while rises and tried <= HALVINGS:
        rises = tried == 0
        for v in range(n):
            narrower = variance / 4.0**tried
            likely[tried, v] = log_likelihood(evidence, v, noise[v], narrower, variance, dim)
            likely[tried, n] += likely[tried, v]
        for c in range(n + 1):
            rises = rises or likely[tried, c] > likely[tried - 1, c] + RISE
        tried += 1
    common = _widest(likely[:tried, n], 0.5 * level)
    out = np.empty(n)
    for v in range(n):
        out[v] = max(common, _widest(likely[:tried, v], 0.5 * level / n))
    return out


@kernel(small=True)
def log_likelihood(
    evidence: Evidence, v: int, noise: float, variance: float, told: float, dim: int
) -> float:
    """Of all measurements of a vector, less what they have where the vector is nothing."""
    d = evidence.centre.shape[1]
    if evidence.weight[v] == 0.0:
        return 0.0
    precision, moment = np.empty((d, d)), np.empty(d)
    total = 0.0
    for j in range(d):
        moment[j] = evidence.moment[v, j] + evidence.moment_low[v, j]
        for k in range(d):
            precision[j, k] = evidence.gram[v, j, k] + evidence.gram_low[v, j, k]
        ridge = noise**2 / (variance if j < dim else told)
        precision[j, j] += ridge
        total += 0.5 * np.log(ridge)
    factor = cholesky(precision)
    for j in range(d):
        total -= np.log(factor[j, j])
    return total + 0.5 * dot(moment, solve_cholesky(factor, moment)) / noise**2


@kernel(small=True)
def _widest(likely: FloatArray, level: float) -> int:
    """The first of these widths, in halvings, that the mixture of all does not contradict."""
    top, mixture = likely[0], 0.0
    for j in range(likely.size):
        top = max(top, likely[j])
    for j in range(likely.size):
        mixture += np.exp(likely[j] - top) / ((j + 1) * (j + 2))
    first = 0
    while np.exp(likely[first] - top) < level * mixture:
        first += 1
    return first
