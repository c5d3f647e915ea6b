"""When a run is worth compiling: many rounds, or rounds that each solve a problem."""

import pytest

import sidestep as ss
from sidestep.experiments.simulate import should_compile
from sidestep.experiments.when_to_compile import SOLVING, TIER


def world(arms):
    return ss.environments.synthetic(3, 2, 1, arms, noise_scale=0.1)


@pytest.mark.parametrize("policy", [ss.ProtectedLinUCB, ss.RoundRobinLinUCB])
def test_optimism_on_the_ball_is_compiled_after_fewer_rounds(policy):
    on_ball, on_arms = world("ball"), world(5)
    player, few = policy(on_ball.problem), TIER // SOLVING + 1
    assert should_compile(player, on_ball, few)
    assert not should_compile(player, on_ball, few - 1)
    assert not should_compile(player, on_arms, few)


def test_other_rounds_on_the_ball_count_like_those_over_arms():
    for instance in (world("ball"), world(5)):
        player = ss.DirectedThompson(instance.problem)
        assert not should_compile(player, instance, TIER)
        assert should_compile(player, instance, TIER + 1)
