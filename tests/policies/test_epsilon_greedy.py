"""Epsilon-greedy: how often it explores, what it measures then, and what it trusts otherwise."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import FreshArms, synthetic
from sidestep.experiments.simulate import play

DOUBT = 1e-6
RUNS, ROUNDS = 60, 1000


def coins(chances):
    """Expected heads of independent coins, and how far off they may be (Bernstein's bound)."""
    log, spread = np.log(2 / DOUBT), (chances * (1 - chances)).sum()
    return chances.sum(), log / 3 + np.sqrt(log**2 / 9 + 2 * spread * log)


def runs(**knobs):
    world = synthetic(3, 2, 1, 4, noise_scale=0.1)
    return ss.simulate_many(ss.EpsilonGreedy(world.problem, **knobs), world, ROUNDS, runs=RUNS)


def plug_in(state, rank, rho=0.1):
    """Estimate of theta_perp off the closest rank-s subspace, by numpy's SVD, from the sums."""
    evidence, d = state.evidence, state.evidence.centre.shape[1]
    ridge = [
        np.linalg.solve(gram + rho * np.eye(d), moment)
        for gram, moment in zip(evidence.gram, evidence.moment, strict=True)
    ]
    basis = np.linalg.svd(np.array(ridge[1:]))[2][:rank]
    return ridge[0] - basis.T @ (basis @ ridge[0])


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_round_t_explores_with_probability_epsilon_over_root_t_or_one(epsilon):
    explored = np.array([trace.phase == "explore" for trace in runs(epsilon=epsilon)])
    chances = np.minimum(1.0, epsilon / np.sqrt(np.arange(1.0, ROUNDS + 1)))
    for span in (slice(0, 10), slice(10, 100), slice(100, ROUNDS)):
        expected, slack = coins(np.tile(chances[span], RUNS))
        assert abs(explored[:, span].sum() - expected) <= slack
    assert explored[:, chances == 1].all()


def test_exploration_draws_arms_evenly_and_measures_any_vector_evenly(oracle):
    traces = runs()
    explored = [trace.phase == "explore" for trace in traces]
    index = np.concatenate([t.index[here] for t, here in zip(traces, explored, strict=True)])
    arm = np.concatenate([t.arm[here] for t, here in zip(traces, explored, strict=True)])
    for vector in range(3):
        assert oracle.about(int((index == vector).sum()), len(index), 1 / 3)
    for row in range(4):
        assert oracle.about(int((arm == row).sum()), len(arm), 1 / 4)
    assert oracle.about(int(((index == 0) & (arm == 0)).sum()), len(arm), 1 / 12)


def test_as_in_the_paper_exploration_measures_protected_vectors_only(oracle):
    traces = runs(explore_index="protected")
    index = np.concatenate([trace.index[trace.phase == "explore"] for trace in traces])
    assert (index > 0).all()
    assert oracle.about(int((index == 1).sum()), len(index), 1 / 2)


@pytest.mark.full
@pytest.mark.parametrize("word", ["all", "protected"])
def test_otherwise_the_target_is_measured(word):
    for trace in runs(explore_index=word)[:5]:
        assert (trace.index[trace.phase == "play"] == 0).all()


def test_without_protected_vectors_even_protected_exploration_measures_the_target():
    world = synthetic(3, 0, 0, 4, noise_scale=0.1)
    policy = ss.EpsilonGreedy(world.problem, explore_index="protected")
    assert ss.simulate(policy, world, 50).counts.tolist() == [50]


def test_otherwise_it_plays_the_arm_that_the_estimates_prefer():
    world = synthetic(4, 3, 2, FreshArms(9, 4), noise_scale=0.1)
    policy = ss.EpsilonGreedy(world.problem)
    before, checked = policy.init(), 0
    arms = np.random.default_rng(np.random.SeedSequence(4).spawn(3)[0])
    for turn in play(policy, world, 80, seed=4):
        menu = arms.standard_normal((4, 9)).T
        menu /= np.linalg.norm(menu, axis=1, keepdims=True)
        if turn.decision.phase == "play" and before.round > 20:
            rewards = menu @ plug_in(before, 2)
            assert turn.decision.arm == rewards.argmax()
            assert turn.decision.value == pytest.approx(rewards.max(), rel=1e-9)
            checked += 1
        before = turn.state
    assert checked >= 30


def test_on_the_ball_it_plays_along_the_estimate_of_theta_perp():
    world = synthetic(4, 3, 2, ss.UnitBall(4), noise_scale=0.1)
    policy = ss.EpsilonGreedy(world.problem)
    before, checked = policy.init(), 0
    for turn in play(policy, world, 80, seed=4):
        if turn.decision.phase == "play" and before.round > 20:
            hope = plug_in(before, 2)
            np.testing.assert_allclose(
                turn.decision.query.action, hope / np.linalg.norm(hope), atol=1e-9
            )
            checked += 1
        before = turn.state
    assert checked >= 30
