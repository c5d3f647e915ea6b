"""How wide a prior may be: the likelihood of a width, and which one the evidence leaves."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.posterior import (
    doubting_posterior_of,
    halvings,
    log_likelihoods,
    narrow_into,
    prior_of,
)

NOISE = np.array([0.1, 0.2])
RHO = np.full(2, 0.01)


def measured(theta, rows, rng, noise=NOISE):
    """Evidence of measurements (vector, action), and the feedback of each."""
    evidence, feedback = no_evidence(RHO, theta.shape[1]), []
    for v, action in rows:
        feedback.append(float(theta[v] @ action + noise[v] * rng.standard_normal()))
        absorb(evidence, RHO, action, v, feedback[-1])
    return evidence, np.array(feedback)


def all_axes(dim):
    return [(v, axis) for axis in np.eye(dim) for v in range(2)]


def test_the_likelihood_of_a_width_is_that_of_the_feedback():
    rng = np.random.default_rng(0)
    actions = rng.standard_normal((5, 3))
    evidence, feedback = measured(np.ones((2, 3)), [(1, a) for a in actions], rng)

    def density(variances):
        covariance = actions * variances @ actions.T + 0.04 * np.eye(5)
        _, logdet = np.linalg.slogdet(covariance)
        return -0.5 * (logdet + feedback @ np.linalg.solve(covariance, feedback))

    for variance in (4.0, 0.25, 0.001):
        variances = np.array([variance, variance, 4.0])  # the third is a level, as told
        expected = density(variances) - density(np.zeros(3))
        found = log_likelihoods(evidence, np.full(2, 0.2), variance, 4.0, 2)[1]
        assert found == pytest.approx(expected, rel=1e-9)


def test_before_anything_is_measured_the_width_is_the_one_that_is_told():
    evidence = no_evidence(RHO, 3)
    assert (halvings(evidence, NOISE, 1.0, 3, 0.05) == 0).all()


def test_the_right_width_is_rarely_rejected():
    """At level 0.05, looked at after every measurement, in 100 worlds of the prior."""
    rng, given_up = np.random.default_rng(1), 0
    for _ in range(100):
        theta, evidence = rng.standard_normal((2, 3)), no_evidence(RHO, 3)
        narrowed = False
        for v, action in all_axes(3):
            feedback = theta[v] @ action + NOISE[v] * rng.standard_normal()
            absorb(evidence, RHO, action, v, float(feedback))
            narrowed = narrowed or bool(halvings(evidence, NOISE, 1.0, 3, 0.05).any())
        given_up += narrowed
    assert given_up <= 100 * 0.05 + 4 * np.sqrt(100 * 0.05 * 0.95)


def test_a_width_ten_times_too_large_is_narrowed_and_not_below_the_truth():
    rng = np.random.default_rng(2)
    theta = rng.choice([-1.0, 1.0], (2, 4))
    evidence, _ = measured(theta, all_axes(4), rng)
    width = 10.0 / 2.0 ** halvings(evidence, NOISE, 100.0, 4, 0.05)
    assert (width >= 1.0).all()
    assert (width <= 4.0).all()


def test_one_short_vector_is_narrowed_by_itself():
    rng = np.random.default_rng(3)
    theta = np.vstack([rng.choice([-1.0, 1.0], 6), np.full(6, 0.05)])
    evidence, _ = measured(theta, all_axes(6), rng, noise=np.full(2, 1e-3))
    found = halvings(evidence, np.full(2, 1e-3), 1.0, 6, 0.05)
    assert found[0] == 0
    assert found[1] >= 2


def test_a_level_keeps_the_width_that_is_told():
    evidence, _ = measured(np.full((2, 5), 0.01), all_axes(5), np.random.default_rng(4))
    variances = np.full((2, 5), 100.0)
    narrow_into(evidence, NOISE, 4, 0.05, variances)
    assert (variances[:, :4] < 100.0).all()
    assert (variances[:, 4] == 100.0).all()


def test_directions_never_measured_for_one_vector_are_narrowed_by_the_others():
    """Why a wide prior misled: draws ten long along all directions but that of the one measured arm."""
    problem = ss.Problem(dim=4, n_protected=1, subspace_dim=1, noise_scale=0.1, norm_bound=20.0)
    rng = np.random.default_rng(5)
    rows = [(0, axis) for axis in np.eye(4)] + [(1, np.eye(4)[0])]
    doubting = ss.InformationDirected(problem).knobs.prior
    evidence = no_evidence(doubting.rho, 4)
    for v, action in rows:
        absorb(evidence, doubting.rho, action, v, float(rng.choice([-0.5, 0.5])))

    def spread(prior):
        posterior = doubting_posterior_of(prior, evidence)
        return 0.1 * np.sqrt(posterior.inverse[1, 3, 3])

    assert spread(prior_of(problem, None)) == pytest.approx(10.0)
    assert spread(doubting) <= 2.5
    assert doubting.doubt == 0.05


def test_with_a_rho_of_ones_own_or_within_tolerances_nothing_is_narrowed():
    told = {"dim": 3, "n_protected": 1, "noise_scale": 0.1}
    assert (
        ss.InformationDirected(ss.Problem(**told, subspace_dim=1), rho=1.0).knobs.prior.doubt == 0
    )
    assert ss.InformationDirected(ss.Problem(**told, tolerance=0.1)).knobs.prior.doubt == 0
