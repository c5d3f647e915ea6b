"""A horizon that is told: what it changes, and when it does not."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.estimator import absorb, no_evidence
from sidestep.environments import blind_spot, guarded_arms, held_out
from sidestep.policies.builtin import rounds_left
from sidestep.policies.information_directed import rounds_to_pay

POLICIES = [ss.InformationDirected, ss.DirectedThompson]


def evidence(rounds):
    found = no_evidence(np.ones(2), 3)
    for _ in range(rounds):
        absorb(found, np.ones(2), np.array([1.0, 0.0, 0.0]), 1, 0.3)
    return found


def test_the_rounds_left_are_counted_down_and_then_those_played_count():
    assert [rounds_left(10.0, evidence(n)) for n in (0, 4, 10, 15)] == [10.0, 6.0, 0.0, 0.0]
    assert [rounds_to_pay(10.0, evidence(n)) for n in (0, 4, 10, 15)] == [10.0, 6.0, 10.0, 15.0]
    assert [rounds_to_pay(0.0, evidence(n)) for n in (0, 4)] == [0.0, 4.0]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("within", [False, True])
def test_a_horizon_that_is_over_changes_nothing_and_one_ahead_does(policy, within):
    world = guarded_arms(seed=1) if within else blind_spot(0.3)
    plain, short, long = (policy(world.problem, horizon=h) for h in (None, 40, 42))
    trace = ss.simulate(plain, world, 40, seed=5, compiled=False)
    differs = 0
    for seed in range(60):
        asked = [
            player.ask(trace.state, world.actions, np.random.default_rng(seed)).query
            for player in (plain, short, long)
        ]
        assert (asked[0].action == asked[1].action).all()
        assert asked[0].index == asked[1].index
        differs += (asked[0].action != asked[2].action).any() or asked[0].index != asked[2].index
    assert differs > 0


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("value", "sentence"),
    [(0, "horizon must be an integer >= 1"), (2.5, "horizon must be an integer")],
)
def test_a_horizon_is_a_number_of_rounds(policy, value, sentence, refusal):
    problem = ss.Problem(3, 2, 1, noise_scale=0.1)
    assert sentence in refusal(policy, problem, horizon=value)


def test_where_nothing_looks_ahead_a_horizon_is_refused(refusal):
    learned = ss.Problem(3, 2, noise_scale=0.1, tolerance=0.1, intercept=True)
    for policy in POLICIES:
        assert "horizon must be None here" in refusal(policy, learned, horizon=100)
    known = ss.Problem(3, 2, noise_scale=0.1, tolerance=0.1)
    assert "None here" in refusal(ss.DirectedThompson, known, horizon=100, caution=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_with_a_horizon_the_compiled_run_equals_the_steps(policy):
    world = held_out("one-hot", seed=2)
    player = policy(world.problem, horizon=60)
    steps, compiled = (ss.simulate(player, world, 60, seed=1, compiled=c) for c in (False, True))
    np.testing.assert_array_equal(steps.action, compiled.action)
    np.testing.assert_array_equal(steps.index, compiled.index)


@pytest.mark.slow
def test_a_horizon_that_is_told_halves_the_linear_runs_of_hard_arms():
    from benchmarks.guardrails import chance_cost, is_linear  # noqa: PLC0415

    linear = [0, 0]
    for kind, noise in (("one-hot", 1.0), ("all-but-one", 0.1)):
        for seed in range(3000, 3030):
            world = held_out(kind, noise_scale=noise, seed=seed)
            for k, told in enumerate((None, 1000)):
                player = ss.InformationDirected(world.problem, horizon=told)
                trace = ss.simulate(player, world, 1000, seed, every=10)
                linear[k] += is_linear(trace, chance_cost(world))
    assert linear[1] < linear[0]
