"""Thompson sampling and the directed query: what they draw, what they measure, when they pay."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.estimator import absorb, no_evidence
from sidestep.policies.thompson import posterior_draw, prior_rho, reduction

DRAWS = 20_000


def evidence_of(dim=3, count=30, noise=0.3, rho=0.27, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.standard_normal((2, dim)) / 2
    evidence = no_evidence(np.full(2, rho), dim)
    for _ in range(count):
        action = rng.standard_normal(dim)
        action /= np.linalg.norm(action)
        index = int(rng.integers(2))
        feedback = theta[index] @ action + noise * rng.standard_normal()
        absorb(evidence, np.full(2, rho), action, index, feedback)
    return evidence


def test_a_draw_has_the_mean_and_the_covariance_of_the_posterior():
    evidence, noise = evidence_of(), np.array([0.3, 0.6])
    normals = np.random.default_rng(1).standard_normal((DRAWS, 6))
    drawn = np.array([posterior_draw(evidence, noise, row) for row in normals])
    for v in range(2):
        spread = noise[v] ** 2 * evidence.inverse[v]
        error = 6 * np.sqrt(np.diag(spread) / DRAWS)  # six standard errors of a mean
        assert (np.abs(drawn[:, v].mean(axis=0) - evidence.centre[v]) < error).all()
        scale = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
        assert (np.abs(np.cov(drawn[:, v].T) - spread) < 6 * scale * np.sqrt(2 / DRAWS)).all()


def test_a_measurement_takes_off_the_variance_that_was_announced():
    rho, noise = np.full(2, 0.27), 0.3
    evidence = evidence_of()
    slope, action = np.array([0.3, -0.2, 0.9]), np.array([0.6, 0.0, 0.8])
    before = noise**2 * slope @ evidence.inverse[1] @ slope
    announced = reduction(evidence, noise, 1, slope, action)
    absorb(evidence, rho, action, 1, 0.1)
    after = noise**2 * slope @ evidence.inverse[1] @ slope
    assert before - after == pytest.approx(announced, rel=1e-9)


def test_the_prior_is_that_of_a_vector_of_length_m_and_of_the_noise():
    problem = ss.Problem(4, 1, 1, noise_scale=[0.1, 0.2], norm_bound=2.0)
    assert prior_rho(problem, None) == pytest.approx([0.01, 0.04])
    assert prior_rho(problem, 0.5) == pytest.approx([0.5, 0.5])
    assert (prior_rho(ss.Problem(4, 1, 1, noise_scale=0.0), None) > 0).all()


def final(policy, world, horizon, runs):
    regrets = []
    for run in range(runs):
        instance = world(run) if callable(world) else world
        trace = ss.simulate(policy(instance.problem), instance, horizon, seed=run, every=horizon)
        regrets.append(trace.cumulative_regret[-1])
    return np.array(regrets)


@pytest.mark.full
def test_in_the_blind_spot_paying_for_information_beats_plain_sampling():
    world = ss.environments.blind_spot(0.1)
    plain = final(ss.ProtectedThompson, world, 3000, 20)
    directed = final(ss.DirectedThompson, world, 3000, 20)
    assert directed.mean() < 0.5 * plain.mean()
    trace = ss.simulate(ss.DirectedThompson(world.problem), world, 3000, seed=0)
    paid = trace.phase == "explore"
    assert 0 < paid.sum() < 300
    assert set(trace.arm[paid]) <= {2}


@pytest.mark.full
@pytest.mark.parametrize("policy", [ss.ProtectedThompson, ss.DirectedThompson])
@pytest.mark.parametrize("noise_scale", [0.001, 0.1])
def test_no_phase_is_wasted_on_fresh_arms(policy, noise_scale):
    def world(seed):
        return ss.environments.synthetic(noise_scale=noise_scale, seed=seed)

    ours = final(policy, world, 1000, 20)
    papers = final(ss.ProtectedLinUCB.as_intended, world, 1000, 20)
    gain = papers - ours  # the same worlds, arms and noise
    assert gain.mean() - 3 * gain.std(ddof=1) / np.sqrt(len(gain)) > 0
    assert ours.mean() < 0.3 * papers.mean()


def test_a_dear_test_is_ordered_less_often():
    world = ss.environments.synthetic(3, 1, 1, 20, noise_scale=0.1, seed=1)
    told = world.problem
    dear = ss.Problem(3, 1, 1, noise_scale=0.1, costs=[1.0, 100.0])
    even = ss.simulate(ss.DirectedThompson(told), world, 300, seed=0).counts
    spared = ss.simulate(ss.DirectedThompson(dear), world, 300, seed=0).counts
    assert spared[1] < even[1]
