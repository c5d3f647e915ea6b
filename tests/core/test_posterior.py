"""What is believed of the vectors, what a measurement would tell, and noise that nobody told."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.forms import Menu
from sidestep.core.posterior import (
    Posterior,
    Prior,
    draw,
    most_telling,
    most_telling_action,
    most_telling_arm,
    noise_levels,
    posterior_from_sums,
    posterior_of,
    reduction,
    row_weights,
    variance,
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


def test_a_measurement_takes_off_the_variance_that_was_announced():
    evidence = evidence_of()
    slope, action = np.array([0.3, -0.2, 0.9]), np.array([0.6, 0.0, 0.8])
    slopes = np.vstack([np.zeros(3), slope])
    before = variance(held_of(evidence), slopes)
    announced = reduction(held_of(evidence), 1, slope, action)
    absorb(evidence, np.full(2, 0.27), action, 1, 0.1)
    assert before - variance(held_of(evidence), slopes) == pytest.approx(announced, rel=1e-9)


def test_the_most_telling_arm_is_the_one_that_trying_them_all_finds():
    posterior, rng = held_of(evidence_of()), np.random.default_rng(3)
    arms, slopes = ss.Arms(unit_rows(40, 3, rng)), rng.standard_normal((2, 3))
    costs = np.array([1.0, 2.5])
    table = np.array(
        [
            [reduction(posterior, v, slopes[v], np.array(arm)) / costs[v] for v in range(2)]
            for arm in arms.vectors
        ]
    )
    arm, v, most = most_telling_arm(posterior, costs, slopes, Menu(arms.columns, arms.squared))
    assert (arm, v) == np.unravel_index(table.argmax(), table.shape)
    assert most == pytest.approx(table.max(), rel=1e-9)
    along, told = most_telling(posterior, costs, slopes, np.array(arms.vectors[7]))
    assert (along, told) == (table[7].argmax(), pytest.approx(table[7].max(), rel=1e-9))


@pytest.mark.parametrize(
    ("solid", "share"),
    [(ss.UnitBall(3), 1.0), (ss.Box(-np.ones(3), np.ones(3)), 0.9), (ss.Simplex(3), 0.9)],
)
def test_no_action_of_a_solid_tells_much_more_than_the_one_found(solid, share):
    """Exactly on the ball; elsewhere the denominator of red is left out of the search."""
    posterior, rng = held_of(evidence_of()), np.random.default_rng(4)
    slopes, costs = rng.standard_normal((2, 3)), np.ones(2)
    action, v, most = most_telling_action(posterior, costs, slopes, solid.body, np.ones(3))
    assert solid.contains(action)
    if isinstance(solid, ss.UnitBall):
        points = unit_rows(4000, 3, rng)
    elif isinstance(solid, ss.Box):
        points = rng.uniform(-1, 1, (4000, 3))
    else:
        points = rng.dirichlet(np.ones(3) * 0.3, 4000)
    tried = [reduction(posterior, v, slopes[v], point) for v in range(2) for point in points]
    assert most >= share * max(tried) * (1 - 1e-9)
    assert most == pytest.approx(reduction(posterior, v, slopes[v], action), rel=1e-9)


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
@pytest.mark.parametrize("scale", [1e-3, 0.1, 2.0])
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
