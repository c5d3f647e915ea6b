"""The Gaussian posterior of every vector.

    theta_v ~ N(centre_v, R_v^2 V_v^-1),   V_v = rho_v I + sum of a a',   rho_v = R_v^2 d / M^2

is the posterior for the prior N(0, M^2/d) of every coordinate and Gaussian noise.

Where R_v is not known it is estimated: R_v^2 is the least sum of squares of a vector divided by its
degrees of freedom, shrunk towards the pooled estimate of all vectors while the vector has few degrees of
freedom. Measurements say something about the noise of a vector only once it has more of them than
coordinates. Until all vectors together have more than LEARNED degrees of freedom, R_v is taken as large
as the largest signal, M A: one or two spare measurements may agree by chance, and seem to be noiseless.

Where levels are learned, a vector has d + 1 coordinates: the last one is the level of its outcome, the
intercept, which is not part of the reward. An action then also gets a last coordinate when it is measured
(`measured`, Problem.lifted), and gradients a zero (`padded`). Its value depends only on the first d.

M, the upper bound on the length of every vector, may be too large. The projected reward depends on the
*directions* of the protected vectors, not on their lengths, so an M far above the truth does harm: a
policy may take the widest prior that the evidence does not contradict (`doubting_posteriors_of`). Suppose
that M is 10 and that a vector was measured along one action only, with a result of 0.3. Along all other
directions its draws are about ten long. So every draw is almost orthogonal to that action: the draws
agree, and what they agree on is wrong (docs/panel.md).

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

from typing import NamedTuple

import numpy as np

from sidestep.core.arm_forms import squares_in
from sidestep.core.arrays import FloatArray
from sidestep.core.estimator import Evidence
from sidestep.core.jit import compiled_as, kernel
from sidestep.core.linalg import (
    cholesky,
    copy_into,
    dot,
    factors_of,
    inverse_into,
    quadratic,
    solve_cholesky,
)
from sidestep.core.problem import Problem, per_vector
from sidestep.core.validation import check_positive
from sidestep.errors import InputError

LEARNED = 2.0  # pooled degrees of freedom up to which the noise counts as unknown
BORROWED = 2.0  # degrees of freedom of the pooled estimate in the noise estimate of a vector
# smallest noise scale, in units of M A: without noise rho would be 0, and no prior left
LEAST = 1e-6
HALVINGS = 20  # most halvings: the narrowest width is a millionth of M
RISE = 1e-3  # if no log-likelihood rises by more, narrower widths are not tried


class Prior(NamedTuple):
    """The prior of all vectors, before the first measurement."""

    rho: FloatArray  # regulariser of every vector, as in the evidence; (L+1,)
    noise: FloatArray  # R_v, (L+1,); NaN where it is learned
    variance: float  # M^2 / d, of every coordinate
    largest: float  # M A: the noise scale that is assumed before it can be estimated
    dim: int  # d; where levels are learned, coordinate d (from 0) is the level
    doubt: float = 0.0  # level of the test whether M is too large (see above); 0: no test


def prior_of(problem: Problem, rho: float | None, doubt: float = 0.0) -> Prior:
    """The prior of a Thompson policy; rho None: the rho that follows from R and M.

    doubt: the level of the test whether M is too large; with a given rho there is no such test.

    A draw with covariance R_v^2 V_v^-1 is a draw from the posterior only for rho_v = R_v^2 d / M^2. With
    a larger rho the shrinkage towards zero is much larger than the spread of the draws, and over fixed
    arms the policy locks in. Where R is learned, rho is almost zero: the posterior is computed from the
    sums.
    """
    largest = problem.norm_bound * problem.action_bound
    prior = problem.norm_bound**2 / problem.dim
    noise = np.maximum(problem.known_noise, 1e-6 * largest)  # without noise rho would be 0
    honest = np.where(np.isnan(noise), 1e-8 * problem.action_bound**2, noise**2 / prior)
    if rho is not None:
        check_positive("rho", rho)
        if np.isnan(noise).any():
            raise InputError(f"rho follows from the noise where noise_scale is None, got rho={rho}")
        honest, doubt = per_vector(rho, problem.n_vectors), 0.0
    return Prior(honest, noise, prior, largest, problem.dim, doubt)


def relative_costs(problem: Problem) -> FloatArray:
    """Cost of one measurement of each vector, divided by the geometric mean of all costs; (L+1,).

    So the unit of the costs does not matter.
    """
    costs = np.log(per_vector(problem.costs, problem.n_vectors))
    return np.asarray(np.exp(costs - costs.mean()))


class Posterior(NamedTuple):
    """A Gaussian for every vector."""

    mean: FloatArray  # (L+1, d)
    inverse: FloatArray  # V^-1, (L+1, d, d); the covariance of vector v is noise[v]^2 inverse[v]
    noise: FloatArray  # R, (L+1,)


class Posteriors(NamedTuple):
    """The posterior of effects and levels, and the marginal posterior of the effects alone.

    Where no levels are learned, both are the same.
    """

    full: Posterior
    effects: Posterior


@kernel(small=True)
def posterior_of(prior: Prior, evidence: Evidence) -> Posterior:
    """Posterior given the evidence, with M as given; a view of the evidence where every R is known."""
    learned = False
    for v in range(prior.noise.size):
        learned = learned or np.isnan(prior.noise[v])
    if not learned:
        return Posterior(evidence.centre, evidence.inverse, prior.noise)
    variances = np.full(evidence.centre.shape, prior.variance)
    return posterior_from_sums(evidence, noise_levels(prior, evidence), variances)


@kernel
def posteriors_of(prior: Prior, evidence: Evidence, has_levels: bool) -> Posteriors:
    """The posteriors given the evidence, with M as given."""
    posterior = posterior_of(prior, evidence)
    return Posteriors(posterior, effects_alone(posterior, has_levels))


def posterior_from_sums(evidence: Evidence, noise: FloatArray, variances: FloatArray) -> Posterior:
    """Posterior from the sums, for noise scales (L+1,) and the prior N(0, variances), (L+1, d)."""
    ridge = (noise[:, None] ** 2 / variances)[:, :, None] * np.eye(variances.shape[1])
    precision = evidence.gram + evidence.gram_low + ridge
    moment = evidence.moment + evidence.moment_low
    half = np.linalg.inv(factors_of(precision))
    inverse = half.transpose(0, 2, 1) @ half
    mean = half.transpose(0, 2, 1) @ (half @ moment[:, :, None])
    return Posterior(mean[:, :, 0], inverse, noise)


@compiled_as(posterior_from_sums, small=True)
def _posterior_from_sums_loop(
    evidence: Evidence, noise: FloatArray, variances: FloatArray
) -> Posterior:
    n, d = evidence.centre.shape
    posterior = Posterior(np.empty((n, d)), np.empty((n, d, d)), noise)
    precision, moment = np.empty((d, d)), np.empty(d)
    for v in range(n):
        for j in range(d):
            moment[j] = evidence.moment[v, j] + evidence.moment_low[v, j]
            for k in range(d):
                precision[j, k] = evidence.gram[v, j, k] + evidence.gram_low[v, j, k]
            precision[j, j] += noise[v] ** 2 / variances[v, j]
        factor = cholesky(precision)
        inverse_into(factor, posterior.inverse[v])
        copy_into(solve_cholesky(factor, moment), posterior.mean[v])
    return posterior


@kernel(small=True)
def degrees_of_freedom(prior: Prior, evidence: Evidence) -> FloatArray:
    """Residual degrees of freedom of every vector; (L+1,)."""
    n, d = evidence.centre.shape
    freedom = np.empty(n)
    for v in range(n):
        used = float(d)  # trace of the hat matrix
        for j in range(d):
            used -= prior.rho[v] * evidence.inverse[v, j, j]
        freedom[v] = max(evidence.weight[v] - used, 0.0)
    return freedom


@kernel(small=True)
def noise_levels(prior: Prior, evidence: Evidence) -> FloatArray:
    """R of every vector: known, or estimated from the residuals; (L+1,)."""
    n = prior.noise.size
    freedom, levels = degrees_of_freedom(prior, evidence), np.empty(n)
    misfit, free = 0.0, 0.0
    for v in range(n):
        if np.isnan(prior.noise[v]):
            misfit += evidence.misfit[v]
            free += freedom[v]
    common = prior.largest**2
    if free > LEARNED:
        common = min(misfit / (free - LEARNED), common)  # the variance of a Student variable
    for v in range(n):
        levels[v] = prior.noise[v]
        if np.isnan(levels[v]):
            own = evidence.misfit[v] if freedom[v] > 0.0 else 0.0
            level = np.sqrt((own + BORROWED * common) / (freedom[v] + BORROWED))
            levels[v] = max(level, LEAST * prior.largest)
    return levels


def draw(posterior: Posterior, normals: FloatArray, times: int) -> FloatArray:
    """Draw all vectors from the posterior `times` times; normals (times (L+1) d,); (times, L+1, d)."""
    n, d = posterior.mean.shape
    own = normals[: times * n * d].reshape(times, n, d)
    spreads = (factors_of(posterior.inverse) @ own[..., None])[..., 0]
    return np.asarray(posterior.mean + posterior.noise[:, None] * spreads)


@compiled_as(draw, small=True)
def _draw_loop(posterior: Posterior, normals: FloatArray, times: int) -> FloatArray:
    n, d = posterior.mean.shape
    drawn = np.empty((times, n, d))
    for v in range(n):
        factor = cholesky(posterior.inverse[v])
        for time in range(times):
            own = normals[(time * n + v) * d : (time * n + v + 1) * d]
            for j in range(d):
                spread = 0.0
                for k in range(j + 1):
                    spread += factor[j, k] * own[k]
                drawn[time, v, j] = posterior.mean[v, j] + posterior.noise[v] * spread
    return drawn


@kernel(small=True)
def effects_alone(posterior: Posterior, has_levels: bool) -> Posterior:
    """Marginal posterior of the effects: the levels, the last coordinate, are integrated out."""
    if not has_levels:
        return posterior
    mean, inverse = posterior.mean[:, :-1].copy(), posterior.inverse[:, :-1, :-1].copy()
    return Posterior(mean, inverse, posterior.noise)


@kernel
def effect_of(posterior: Posterior, v: int, action: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of <a, theta_v>."""
    square = max(quadratic(posterior.inverse[v], action), 0.0)
    return dot(posterior.mean[v], action), posterior.noise[v] * np.sqrt(square)


@kernel
def spreads_of(posterior: Posterior, v: int, columns: FloatArray) -> FloatArray:
    """Standard deviation of <a, theta_v> for every arm; columns (d, K); (K,)."""
    rows = columns[: posterior.inverse.shape[1]]  # without the coordinate of the level
    squares = np.sum(rows * np.dot(posterior.inverse[v], rows), axis=0)
    return posterior.noise[v] * np.sqrt(np.maximum(squares, 0.0))


def all_spreads_of(posterior: Posterior, columns: FloatArray) -> FloatArray:
    """Standard deviation of <a, theta_v> for every vector and arm; columns (d, K); (L+1, K)."""
    squares = squares_in(posterior.inverse, columns)
    return np.asarray(posterior.noise[:, None] * np.sqrt(np.maximum(squares, 0.0)))


@kernel(small=True)
def row_weights(posterior: Posterior) -> FloatArray:
    """Weights of the vectors: 1 / posterior spread, scaled to a largest of 1; the target: 1; (L+1,)."""
    n, d = posterior.mean.shape
    weights = np.ones(n)
    largest = 0.0
    for v in range(1, n):
        spread = 0.0
        for j in range(d):
            spread += posterior.inverse[v, j, j]
        weights[v] = 1.0 / (posterior.noise[v] * np.sqrt(spread / d))
        largest = max(largest, weights[v])
    for v in range(1, n):
        weights[v] /= largest
    return weights


@kernel
def measured(action: FloatArray, width: int, action_bound: float) -> FloatArray:
    """The action (d,) with the coordinate of the level added where levels are learned; (width,)."""
    d = action.size
    if d == width:
        return action
    out = np.empty(width)
    copy_into(action, out)
    out[d] = 2.0 * action_bound * np.sqrt(d)  # the same as in Problem.lifted
    return out


@kernel
def padded(slopes: FloatArray, width: int) -> FloatArray:
    """Gradients in the effects, (n, d), extended by a zero for the level; (n, width)."""
    if slopes.shape[1] == width:
        return slopes
    out = np.zeros((slopes.shape[0], width))
    for v in range(slopes.shape[0]):
        copy_into(slopes[v], out[v])
    return out


@kernel
def padded_vector(direction: FloatArray, width: int) -> FloatArray:
    """One direction (d,) extended by a zero for the level; (width,)."""
    if direction.size == width:
        return direction
    out = np.zeros(width)
    copy_into(direction, out)
    return out


@kernel(small=True)
def doubting_posterior_of(prior: Prior, evidence: Evidence) -> Posterior:
    """`posterior_of`, under the widest prior that the evidence does not contradict."""
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
