"""Draws of all vectors from the posterior; for the paper's reward, of protected vectors of given rank.

With tolerances, the vectors are drawn as independent Gaussians. The paper's reward depends on the
protected vectors only through their span. So these are drawn with a rank k, where k has the
probabilities of `rank_odds`:

    theta_i = A_i B,   A_i ~ N(0, M^2/k) in R^k,   B (k, d) ~ N(0, 1/d),

conditional on the measurements. A given B is Gaussian, and so is B given A. So a Gibbs sampler draws the
two in turn, for a few steps from a good start, in many chains at once. Each chain keeps its rank.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.posterior import Posterior, draw, row_weights
from sidestep.policies.advice.posterior_summary import Belief

CHAINS = 125
SETTLING = 3  # burn-in: first Gibbs steps, which are not kept
KEPT = 8  # Gibbs steps that are kept, per chain
JITTER = 1e-14  # share of the mean eigenvalue that is added to the diagonal, against rounding


class Sample(NamedTuple):
    """Draws of all vectors, and of the target projected off the protected ones."""

    vectors: FloatArray  # (n, L+1, d)
    rests: FloatArray  # theta_perp; (n, d)


def draw_vectors(posterior: Posterior, rng: Generator, times: int) -> FloatArray:
    """Draws of all vectors, in antithetic pairs (mirrored at the mean); (times, L+1, d)."""
    normals = rng.standard_normal(((times + 1) // 2, *posterior.mean.shape))
    return draw(posterior, np.concatenate([normals, -normals])[:times].ravel(), times)


def draw_of_ranks(belief: Belief, odds: FloatArray, norm_bound: float, rng: Generator) -> Sample:
    """Draws with protected vectors of rank k; k has the probabilities `odds` (min(L, d) + 1,)."""
    posterior = belief.posterior
    n, d = posterior.mean.shape
    vectors = draw_vectors(posterior, rng, CHAINS * KEPT).reshape(KEPT, CHAINS, n, d)
    rests = vectors[:, :, 0].copy()
    starts = _directions(vectors[0], row_weights(posterior))
    ranks = even_ranks(odds, CHAINS)
    for rank in range(1, len(odds)):
        these = np.flatnonzero(ranks == rank)
        if len(these) == 0:
            continue
        start, scale = starts[these, :rank], norm_bound**2 / rank
        for kept, (shares, basis) in enumerate(_alternate(belief, start, scale, rng)):
            vectors[kept, these, 1:] = shares @ basis
            rests[kept, these] = off_span(basis, rests[kept, these])
    return Sample(vectors.reshape(-1, n, d), rests.reshape(-1, d))


def even_ranks(odds: FloatArray, count: int) -> IntArray:
    """`count` ranks; each occurs odds times count times, to within one; (count,)."""
    steps = (np.arange(count) + 0.5) / count
    return np.minimum(np.searchsorted(np.cumsum(odds), steps), len(odds) - 1)


def off_span(basis: FloatArray, vectors: FloatArray) -> FloatArray:
    """Every vector (n, d) minus its projection on the rows of its basis (n, k, d); (n, d)."""
    if basis.shape[1] >= basis.shape[2]:
        return np.zeros_like(vectors)
    axes = np.linalg.qr(basis.transpose(0, 2, 1))[0]
    along = (vectors[:, None, :] @ axes)[:, 0]
    return np.asarray(vectors - (axes @ along[:, :, None])[:, :, 0])


def _directions(vectors: FloatArray, weights: FloatArray) -> FloatArray:
    """Singular directions of the protected rows, strongest first; better known rows weigh more."""
    return np.linalg.svd(vectors[:, 1:] * weights[1:, None], full_matrices=False)[2]


def _alternate(
    belief: Belief, basis: FloatArray, scale: float, rng: Generator
) -> list[tuple[FloatArray, FloatArray]]:
    """Gibbs steps: coefficients (c, L, k), then bases (c, k, d); `basis` is the start of every chain."""
    information, pull = belief.information[1:], belief.pull[1:]
    kept = []
    for turn in range(SETTLING + KEPT):
        across = basis.transpose(0, 2, 1)
        precision = basis[:, None] @ information @ across[:, None]  # (c, L, k, k)
        shares = _gaussian(precision + np.eye(basis.shape[1]) / scale, pull @ across, rng)
        basis = _redrawn(information, pull, shares, basis, rng)
        if turn >= SETTLING:
            kept.append((shares, basis))
    return kept


def _redrawn(
    information: FloatArray, pull: FloatArray, shares: FloatArray, basis: FloatArray, rng: Generator
) -> FloatArray:
    """Draw the basis of every chain again, one row at a time given the other rows; (c, k, d)."""
    d, basis = basis.shape[2], basis.copy()
    flat = information.reshape(len(pull), d * d)
    rows = shares @ basis  # theta_i; (c, L, d)
    for a in range(basis.shape[1]):
        share = shares[:, :, a, None]
        rows -= share * basis[:, None, a]
        left = pull - (information @ rows[..., None])[..., 0]
        precision = (share[:, :, 0] ** 2 @ flat).reshape(-1, d, d) + d * np.eye(d)
        basis[:, a] = _gaussian(precision, (share * left).sum(axis=1), rng)
        rows += share * basis[:, None, a]
    return basis


def _gaussian(precision: FloatArray, right: FloatArray, rng: Generator) -> FloatArray:
    """Draws of N(P^-1 b, P^-1), one for every precision P (..., n, n) and b (..., n)."""
    n = right.shape[-1]
    jitter = JITTER * np.trace(precision, axis1=-2, axis2=-1)[..., None, None] / n
    precision = precision + jitter * np.eye(n)
    factor = np.linalg.cholesky(precision)
    noise = (factor @ rng.standard_normal(right.shape)[..., None])[..., 0]
    return np.linalg.solve(precision, (right + noise)[..., None])[..., 0]
