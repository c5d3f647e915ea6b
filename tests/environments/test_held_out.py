"""Kinds of worlds on which nothing was tuned: every one is what its description says."""

import numpy as np
import pytest

from sidestep.core.linalg import orthonormal, project_off
from sidestep.environments import FreshArms, held_out
from sidestep.environments.held_out import KINDS
from sidestep.environments.instance import protected_rank

SEEDS = range(5)


def rest(world):
    return project_off(orthonormal(world.theta[1:]), world.theta[0])


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_have_length_one_and_the_seed_decides_everything(kind):
    world, same, other = held_out(kind), held_out(kind), held_out(kind, seed=1)
    np.testing.assert_allclose(np.linalg.norm(world.theta, axis=1), 1.0)
    np.testing.assert_array_equal(world.theta, same.theta)
    assert not np.array_equal(world.theta, other.theta)


def test_an_unknown_kind_is_refused_with_the_nearest(refusal):
    assert "low-rank" in refusal(held_out, "low-rnk")


def test_three_factors_explain_low_rank_arms_up_to_a_tenth():
    for seed in SEEDS:
        sizes = np.linalg.svd(held_out("low-rank", seed=seed).actions.vectors, compute_uv=False)
        assert (sizes[3:] ** 2).sum() / (sizes**2).sum() < 0.02


def test_nearly_parallel_vectors_are_eight_degrees_apart():
    theta = held_out("near-parallel").theta
    assert np.degrees(np.arccos(theta[1] @ theta[2])) == pytest.approx(8.0)


def test_protection_leaves_a_tenth_of_a_target_whose_rest_is_tiny():
    for seed in SEEDS:
        assert np.linalg.norm(rest(held_out("tiny-rest", seed=seed))) == pytest.approx(0.1)


def test_ranks_are_as_described():
    ranks = {
        kind: protected_rank(held_out(kind).theta) for kind in ("many-outcomes", "all-but-one")
    }
    assert ranks == {"many-outcomes": 2, "all-but-one": 5}


def test_noise_differs_by_outcome_where_it_is_uneven():
    world = held_out("uneven-noise", 0.1)
    assert isinstance(world.actions, FreshArms)
    np.testing.assert_allclose(world.truth.scale, [0.05, 1.0, 1.0, 0.3, 0.3])


def test_a_wide_prior_is_told_ten_times_the_length():
    assert held_out("wide-prior").problem.norm_bound == 10.0


def test_the_oracle_is_dear_and_the_other_arms_nearly_tie():
    for seed in SEEDS:
        world = held_out("dear-oracle", seed=seed)
        worth = world.actions.vectors @ rest(world)
        assert np.ptp(worth[:-1]) <= 0.1
        assert worth[-1] <= worth[:-1].min() - 0.35


def test_in_a_blind_spot_the_best_arm_looks_worse_than_another():
    for seed in SEEDS:
        world = held_out("blind-six", seed=seed)
        arms, flat = world.actions.vectors, world.theta.copy()
        assert arms.shape == (17, 6)
        flat[1, 5] = 0.0
        looks = arms @ project_off(orthonormal(flat[1:]), flat[0])
        worth = arms @ rest(world)
        assert 0.05 <= worth.max() - worth[looks.argmax()] <= 0.4


def test_arms_that_do_not_span_leave_two_directions_open():
    assert np.linalg.matrix_rank(held_out("rank-deficient").actions.vectors) == 4
