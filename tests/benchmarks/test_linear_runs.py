"""The measures by which linear runs are judged."""

import numpy as np
import pytest

import sidestep as ss
from benchmarks.linear_runs import belief, least_weights, oracle_rounds, play, sees_rewards
from sidestep.environments import Instance


def test_the_best_design_weighs_the_arms_that_add_up():
    assert least_weights(np.array([3.0, -4.0]), np.eye(2)) == pytest.approx(7.0)
    assert (
        least_weights(np.array([1.0, 1.0]), np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])) == 1.0
    )


def test_the_oracle_of_two_plain_arms_needs_what_a_textbook_says():
    # nothing protected: <e_1 - e_2, theta_0> = .5 needs sd(N) = 2 R / sqrt(N) = .25
    arms = ss.Arms(np.eye(2))
    world = Instance(np.array([[0.8, 0.3]]), arms, noise_scale=0.1)
    assert oracle_rounds(world, 1) == pytest.approx((2 * 0.1 * 2 / 0.5) ** 2)
    assert oracle_rounds(world, 0) == oracle_rounds(world, 1)  # the best was played: the next one


def test_who_sees_rewards_has_the_same_rewards():
    world = ss.environments.held_out("low-rank", seed=3)
    easier = sees_rewards(world)
    for arm in world.actions.vectors[:5]:
        assert easier.reward(arm) == pytest.approx(world.reward(arm))


@pytest.mark.slow
def test_a_run_that_has_learned_is_right():
    world = ss.environments.synthetic(4, 2, 1, "fixed:6", noise_scale=0.01, seed=1)
    assert belief(world, play(world, 200, 1)) == "right"
