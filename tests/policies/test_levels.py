"""Learned levels: they are not part of the reward, but of every result."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.actions import farthest
from sidestep.environments import Instance
from sidestep.experiments.simulate import play
from sidestep.policies.advice.posterior_summary import belief_of

LEVELS = (4.0, -3.0, 2.0, 0.5)
KNOWN = {"rank": {"subspace_dim": 2}, "resolution": {"resolution": 0.1}}


def world(actions=None):
    """Three protected vectors in a plane, and actions of which the first is zero."""
    rng = np.random.default_rng(5)
    plane = np.linalg.qr(rng.standard_normal((4, 2)))[0].T
    target = rng.standard_normal(4)
    theta = np.vstack([target / np.linalg.norm(target), [[1, 0], [0, 1], [0.6, 0.8]] @ plane])
    arms = np.vstack([np.zeros(4), rng.standard_normal((20, 4)) / 3])
    actions = ss.Arms(arms / np.linalg.norm(arms, axis=1).max()) if actions is None else actions
    return Instance(theta, actions, noise_scale=0.05, norm_bound=2.5, intercept=LEVELS)


def told(instance, **known):
    problem = instance.problem
    return ss.Problem(
        4, 3, noise_scale=0.05, norm_bound=problem.norm_bound, intercept=True, **known
    )


def state_after(policy, instance, rounds):
    *_, last = play(policy, instance, rounds, seed=1)
    return last.state


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
@pytest.mark.parametrize(
    "player",
    [
        ss.DirectedThompson,
        ss.ProtectedThompson,
        pytest.param(ss.InformationDirected, marks=pytest.mark.full),
    ],
)
def test_the_best_arm_is_found_whatever_the_levels(player, known):
    instance = world()
    policy = player(told(instance, **known))
    advice = ss.recommend(policy, state_after(policy, instance, 150), instance.actions)
    rewards = instance.actions.vectors @ instance.theta_perp
    if (
        "subspace_dim" in known
    ):  # a direction that is open leaves the arm open, with levels or without
        assert rewards.max() - rewards[advice.arm] < 0.05 * np.ptp(rewards)
    assert advice.reward.low <= rewards[advice.arm] <= advice.reward.high
    effects = instance.theta @ advice.action
    assert all(e.low <= x <= e.high for e, x in zip(advice.effects, effects, strict=True))


@pytest.mark.parametrize(
    "solid", [ss.UnitBall(4), ss.Box([-0.5] * 4, [0.5] * 4)], ids=["ball", "box"]
)
def test_the_best_action_of_a_solid_is_found_whatever_the_levels(solid):
    instance = world(solid)
    policy = ss.DirectedThompson(told(instance, subspace_dim=2))
    state = state_after(policy, instance, 100)
    advice = ss.recommend(policy, state, solid)
    worth = advice.action @ instance.theta_perp
    assert worth >= 0.9 * (farthest(solid.body, instance.theta_perp) @ instance.theta_perp)
    assert advice.reward.low <= worth <= advice.reward.high


@pytest.mark.full
@pytest.mark.parametrize(
    "solid", [ss.UnitBall(4), ss.Box([-0.5] * 4, [0.5] * 4)], ids=["ball", "box"]
)
def test_weighing_information_finds_the_best_of_a_solid_whatever_the_levels(solid):
    instance = world(solid)
    policy = ss.InformationDirected(told(instance, subspace_dim=2))
    advice = ss.recommend(policy, state_after(policy, instance, 100), solid)
    best = farthest(solid.body, instance.theta_perp) @ instance.theta_perp
    assert advice.action @ instance.theta_perp >= 0.9 * best


def test_what_was_measured_of_the_effects_gives_the_posterior_of_the_effects():
    instance = world()
    policy = ss.DirectedThompson(told(instance, subspace_dim=2))
    belief = belief_of(policy, state_after(policy, instance, 60))
    precision = belief.information + np.eye(4) / belief.variance
    mean = np.linalg.solve(precision, belief.pull[..., None])[..., 0]
    assert mean == pytest.approx(belief.posterior.mean, abs=1e-9)
    covariance = belief.posterior.inverse * belief.posterior.noise[:, None, None] ** 2
    assert np.linalg.inv(precision) == pytest.approx(covariance, abs=1e-9)


def test_a_player_that_learns_no_levels_refuses_them(refusal):
    problem = ss.Problem(4, 3, subspace_dim=2, noise_scale=0.05, intercept=True)
    for player in (ss.ProtectedLinUCB, ss.EpsilonGreedy, ss.OFUL):
        assert "intercept must be False" in refusal(player, problem)
