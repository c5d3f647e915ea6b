"""The paper's random worlds."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import FreshArms, synthetic

SIZES = [(6, 4, 2), (5, 3, 2), (3, 2, 1), (4, 4, 4), (2, 5, 2), (1, 1, 1), (10, 8, 3)]


@pytest.mark.parametrize(("d", "L", "s"), SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_protected_vectors_are_unit_and_span_s_dimensions(d, L, s, seed):
    instance = synthetic(d, L, s, 10, seed=seed)
    assert instance.theta.shape == (L + 1, d)
    np.testing.assert_allclose(np.linalg.norm(instance.theta, axis=1), 1.0, rtol=1e-14)
    values = np.linalg.svd(instance.theta[1:], compute_uv=False)
    assert (values > 1e-10).sum() == s
    told = instance.problem
    assert (told.dim, told.n_protected, told.subspace_dim) == (d, L, s)


def test_the_target_has_a_part_of_its_own():
    for seed in range(10):
        instance = synthetic(seed=seed)
        assert 0.1 < np.linalg.norm(instance.theta_perp) < 1.0
        np.testing.assert_allclose(instance.theta[1:] @ instance.theta_perp, 0.0, atol=1e-14)


def test_the_defaults_are_those_of_the_papers_caption():
    instance = synthetic()
    assert instance.theta.shape == (5, 6)
    assert instance.actions == FreshArms(100, 6)
    assert instance.problem.noise_scale == 0.001
    assert instance.problem.subspace_dim == 2


def test_the_same_seed_is_the_same_world_and_seed_0_is_a_seed():
    assert (synthetic(seed=0).theta == synthetic(seed=0).theta).all()
    assert (synthetic().theta == synthetic(seed=0).theta).all()
    assert not np.isclose(synthetic(seed=0).theta, synthetic(seed=1).theta).any()


def test_the_vectors_do_not_depend_on_the_arms():
    fresh, ball = synthetic(3, 2, 1, 10, seed=4), synthetic(3, 2, 1, ss.UnitBall(3), seed=4)
    assert (fresh.theta == ball.theta).all()
    assert ball.actions == ss.UnitBall(3)


def test_a_spec_asks_for_the_ball_and_for_fixed_arms_in_words():
    ball, fixed = (synthetic(3, 2, 1, word, seed=4) for word in ("ball", "fixed:50"))
    assert ball.actions == ss.UnitBall(3)
    assert isinstance(fixed.actions, ss.Arms)
    assert fixed.actions.vectors.shape == (50, 3)
    np.testing.assert_allclose(np.linalg.norm(fixed.actions.vectors, axis=1), 1.0, rtol=1e-14)
    assert (fixed.theta == synthetic(3, 2, 1, 10, seed=4).theta).all()


def test_fixed_arms_follow_from_the_seed_alone():
    arms = [synthetic(3, 2, 1, "fixed:5", seed=seed).actions.vectors for seed in (4, 4, 5)]
    assert (arms[0] == arms[1]).all()
    assert not np.isclose(arms[0], arms[2]).any()


def test_without_protection_there_is_only_the_target():
    instance = synthetic(4, 0, 0, 10)
    assert instance.theta.shape == (1, 4)
    assert (instance.theta_perp == instance.theta[0]).all()


def test_noise_is_handed_on():
    instance = synthetic(3, 2, 1, 10, noise_scale=0.5, noise="rademacher")
    assert (instance.noise, instance.problem.noise_scale) == ("rademacher", 0.5)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"dim": 0}, "dim must be an integer >= 1, got 0"),
        ({"n_protected": -1}, "n_protected must be an integer >= 0, got -1"),
        ({"subspace_dim": 0}, "subspace_dim must lie in 1..4, got 0"),
        ({"subspace_dim": 5}, "subspace_dim must lie in 1..4, got 5"),
        ({"dim": 1, "subspace_dim": 2}, "subspace_dim must lie in 1..1, got 2"),
        ({"n_protected": 0}, "subspace_dim must lie in 0..0, got 2"),
        ({"arms": 0}, "count must be an integer >= 1, got 0"),
        ({"arms": "balls"}, 'arms must be a number of fresh arms, "fixed:" and a number, "ball"'),
        ({"arms": "fixed:0"}, "got 'fixed:0'"),
        ({"arms": "fixed:-3"}, "got 'fixed:-3'"),
        ({"arms": "100"}, "got '100'"),
        (
            {"arms": np.eye(6)},
            "actions must be UnitBall, Box, Ellipsoid, Simplex, Arms, FreshArms or Menus, got ndarray",
        ),
        ({"arms": ss.UnitBall(5)}, "actions must have the dimension of theta, 6, got 5"),
        ({"noise_scale": -1.0}, "noise_scale must be zero or positive and finite, got -1.0"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"seed": 0.5}, "seed must be an integer >= 0, got 0.5"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(refusal, changed, expected):
    assert expected in refusal(synthetic, **changed)
