"""The posterior of the vectors, and learned noise."""

import numpy as np
import pytest

from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.posterior import (
    Posterior,
    Prior,
    draw,
    noise_levels,
    posterior_from_sums,
    posterior_of,
    row_weights,
)

DRAWS = 20_000
NOISE = np.array([0.3, 0.6])


def unit_rows(count, dim, rng):
    rows = rng.standard_normal((count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def evidence_of(dim=3, count=30, noise=NOISE, rho=0.27, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((2, dim)) / 2
    evidence = no_evidence(np.full(2, rho), dim)
    for action in unit_rows(count, dim, rng):
        index = int(rng.integers(2))
        feedback = theta[index] @ action + noise[index] * rng.standard_normal()
        absorb(evidence, np.full(2, rho), action, index, feedback)
    return evidence


def held_of(evidence):
    return Posterior(evidence.centre, evidence.inverse, NOISE)


def test_a_draw_has_the_mean_and_the_covariance_of_the_posterior():
    evidence = evidence_of()
    normals = np.random.default_rng(1).standard_normal(DRAWS * 6)
    drawn = draw(held_of(evidence), normals, DRAWS)
    for v in range(2):
        spread = NOISE[v] ** 2 * evidence.inverse[v]
        error = 6 * np.sqrt(np.diag(spread) / DRAWS)  # six standard errors of a mean
        assert (np.abs(drawn[:, v].mean(axis=0) - evidence.centre[v]) < error).all()
        scale = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
        assert (np.abs(np.cov(drawn[:, v].T) - spread) < 6 * scale * np.sqrt(2 / DRAWS)).all()


def test_the_belief_from_the_sums_is_the_posterior_of_its_prior():
    evidence, prior = evidence_of(), 0.4
    posterior = posterior_from_sums(evidence, NOISE, np.full((2, 3), prior))
    for v in range(2):
        precision = evidence.gram[v] / NOISE[v] ** 2 + np.eye(3) / prior
        expected = np.linalg.solve(precision, evidence.moment[v] / NOISE[v] ** 2)
        np.testing.assert_allclose(posterior.mean[v], expected, rtol=1e-9)
        covariance = NOISE[v] ** 2 * posterior.inverse[v]
        np.testing.assert_allclose(covariance, np.linalg.inv(precision), rtol=1e-9)


def test_where_the_noise_is_told_the_evidence_is_believed_as_it_is():
    evidence = evidence_of()
    posterior = posterior_of(Prior(np.full(2, 0.27), NOISE, 1 / 3, 1.0, 3), evidence)
    assert (posterior.mean == evidence.centre).all()
    assert (posterior.inverse == evidence.inverse).all()


def test_of_two_protected_vectors_the_better_known_one_weighs_more():
    inverse = np.stack([np.eye(2), np.eye(2), 4 * np.eye(2)])
    posterior = Posterior(np.zeros((3, 2)), inverse, np.array([1.0, 0.1, 0.1]))
    np.testing.assert_allclose(row_weights(posterior), [1.0, 1.0, 0.5])


def learned(noise, count, seed, dim=4):
    """What is learned of the noise from `count` measurements of every vector."""
    rng = np.random.default_rng(seed)
    n, rho = len(noise), np.full(len(noise), 1e-8)
    theta, evidence = unit_rows(n, dim, rng), no_evidence(rho, dim)
    for v in range(n):
        for action in unit_rows(count, dim, rng):
            absorb(evidence, rho, action, v, theta[v] @ action + noise[v] * rng.standard_normal())
    return noise_levels(Prior(rho, np.full(n, np.nan), 1 / dim, 1.0, dim), evidence)


@pytest.mark.full
@pytest.mark.parametrize(
    "scale",
    [pytest.param(1e-3, marks=pytest.mark.slow), 0.1, pytest.param(2.0, marks=pytest.mark.slow)],
)
def test_the_noise_of_every_vector_is_learned_from_its_residuals(scale, oracle):
    noise = scale * np.array([1.0, 3.0])
    levels = np.array([learned(noise, 400, seed) for seed in range(40)])
    for v in range(2):
        # own residuals, 396 degrees of freedom, and two borrowed from the common variance
        common = (noise**2).mean()
        expected = (396 * noise[v] ** 2 + 2 * common * (1 + 2 / 792)) / 398
        assert oracle.mean_about(levels[:, v] ** 2 / expected, 1.0)


def test_before_any_residual_the_noise_is_taken_for_as_large_as_the_signal():
    assert learned(np.array([0.1, 0.1]), 0, 0) == pytest.approx([1.0, 1.0])
    assert (learned(np.array([1e-3, 1e-3]), 2, 0) > 0.5).all()  # fewer measurements than directions


def test_noise_that_was_never_seen_is_learned_as_a_millionth_of_the_largest_signal():
    """Feedback that is all zero must leave a prior, not a singular matrix."""
    rho, evidence = np.full(2, 1e-8), no_evidence(np.full(2, 1e-8), 4)
    for action in unit_rows(40, 4, np.random.default_rng(0)):
        absorb(evidence, rho, action, 0, 0.0)
    levels = noise_levels(Prior(rho, np.full(2, np.nan), 0.25, 3.0, 4), evidence)
    assert levels == pytest.approx([3e-6, 3e-6])


def test_a_told_noise_stays_as_told_beside_a_learned_one():
    evidence = evidence_of(count=200, rho=1e-8)
    prior = Prior(np.full(2, 1e-8), np.array([0.3, np.nan]), 1 / 3, 1.0, 3)
    levels = noise_levels(prior, evidence)
    assert levels[0] == 0.3
    assert levels[1] == pytest.approx(0.6, rel=0.3)  # about 100 residuals: 7% is one deviation


def test_one_spare_result_says_nothing_of_the_noise_however_well_it_fits():
    rho, evidence = np.full(1, 1e-8), no_evidence(np.full(1, 1e-8), 4)
    prior = Prior(rho, np.full(1, np.nan), 0.25, 1.0, 4)
    seen = []
    for action in unit_rows(8, 4, np.random.default_rng(0)):
        absorb(evidence, rho, action, 0, 1e-3 * action[0])
        seen.append(float(noise_levels(prior, evidence)[0]))
    assert min(seen[:5]) > 0.5
    assert seen[7] < 0.01
