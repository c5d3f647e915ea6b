"""Playing within tolerances: what is played, what is measured, and who refuses to."""

import math

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.best_action import Found
from sidestep.core.objective import expected_values, expected_within, within
from sidestep.core.posterior import Posterior, posterior_of, posteriors_of
from sidestep.core.problem import limits_of
from sidestep.environments import Instance
from sidestep.experiments.simulate import play
from sidestep.policies.catalog import POLICIES
from sidestep.policies.thompson_tolerances import (
    INVEST,
    PRICED_SAMPLE,
    net_gain,
    rounds_ahead,
    slopes_within,
)

FOLLOW = (
    "directed-thompson",
    "epsilon-greedy",
    "information-directed",
    "protected-thompson",
    "uniform",
)


def world(seed, noise=0.1, actions=None):
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((60, 5))
    arms *= rng.uniform(0.1, 1, (60, 1)) / np.linalg.norm(arms, axis=1, keepdims=True)
    theta = ss.environments.synthetic(5, 3, 2, ss.Arms(arms), noise_scale=noise, seed=seed).theta
    told = {"noise_scale": noise, "tolerance": 0.15, "penalty": 5.0}
    return ss.environments.Instance(theta, actions or ss.Arms(arms), **told)


LEARN_LEVELS = ("protected-thompson", "directed-thompson", "information-directed")


@pytest.mark.parametrize("name", FOLLOW)
def test_no_rank_is_needed_within_tolerances(name):
    problem = ss.Problem(dim=3, n_protected=2, noise_scale=None, tolerance=0.1)
    assert POLICIES[name](problem).init().round == 0


@pytest.mark.parametrize("name", sorted(set(POLICIES) - set(FOLLOW)))
def test_a_policy_that_would_play_another_game_says_so(name, refusal):
    problem = ss.Problem(dim=3, n_protected=2, subspace_dim=1, noise_scale=0.1, tolerance=0.1)
    assert "does not support tolerances, got one" in refusal(POLICIES[name], problem)


@pytest.mark.parametrize("name", sorted(set(POLICIES) - set(LEARN_LEVELS)))
def test_no_policy_pretends_to_learn_a_level(name, refusal):
    problem = ss.Problem(dim=3, n_protected=2, subspace_dim=1, noise_scale=0.1, intercept=True)
    assert "intercept must be False" in refusal(POLICIES[name], problem)


def test_the_slope_of_a_side_effect_is_its_penalty_times_the_root_of_its_odds():
    posterior = Posterior(
        np.array([[1.0, 0.0], [0.3, 0.0]]), np.tile(np.eye(2), (2, 1, 1)), np.ones(2)
    )
    limits = limits_of(((-math.inf, 0.3),), (4.0,))
    slopes = slopes_within(limits, posterior, np.array([1.0, 0.0]), False)
    np.testing.assert_allclose(slopes, [[1.0, 0.0], [4.0 * math.sqrt(0.5), 0.0]])
    mean = slopes_within(limits, posterior, np.array([1.0, 0.0]), True)
    np.testing.assert_allclose(mean, [[1.0, 0.0], [4.0 * 0.5, 0.0]])


@pytest.mark.slow
def test_within_tolerances_it_has_at_most_half_of_what_chance_pays(oracle):
    shares = []
    for seed in range(8):
        game = world(seed)
        ours = ss.simulate(ss.DirectedThompson(game.problem), game, 400, seed, compiled=False)
        values = np.array(
            [game.regret(ss.Query(arm, 0), game.actions) for arm in game.actions.vectors]
        )
        shares.append(ours.cumulative_regret[-1] / (400 * values.mean()))
    assert oracle.mean_at_most(np.array(shares), 0.5)


@pytest.mark.full
@pytest.mark.parametrize("policy", [ss.DirectedThompson, ss.InformationDirected])
def test_on_a_box_it_plays_step_by_step(policy):
    box = ss.Box(-0.3 * np.ones(5), 0.3 * np.ones(5))
    game = world(1, actions=box)
    trace = ss.simulate(policy(game.problem), game, 15)
    assert (np.abs(trace.action) <= 0.3 + 1e-9).all()


def test_the_expected_value_averages_the_penalty_over_the_posterior(oracle):
    rng = np.random.default_rng(0)
    mean, arms = rng.standard_normal((3, 4)) / 4, rng.standard_normal((6, 4)) / 2
    posterior = Posterior(mean, np.tile(np.diag([1.0, 0.5, 0.2, 0.7]), (3, 1, 1)), np.full(3, 0.3))
    limits = limits_of(((-0.1, 0.2), (-math.inf, 0.1)), (5.0, 3.0))
    values = expected_values(limits, posterior, arms.T.copy(), len(arms))
    factors = 0.3 * np.sqrt(posterior.inverse)
    draws = mean + (factors @ rng.standard_normal((40_000, 3, 4, 1)))[..., 0]
    sampled = within(draws, arms, limits)
    for k, arm in enumerate(arms):
        assert oracle.mean_about(sampled[:, k], values[k])
        assert expected_within(limits, posterior, arm) == pytest.approx(values[k], abs=1e-12)


def test_what_is_settled_is_played_and_nothing_else():
    game = world(3)
    policy = ss.DirectedThompson(game.problem)
    state, rng = policy.init(), np.random.default_rng(0)
    assert len({policy.ask(state, game.actions, rng).arm for _ in range(40)}) > 1
    arms = game.actions.vectors
    told = [(arm, v, game.theta[v] @ arm) for arm in arms for v in range(4)] * 50
    state = ss.tell_all(policy, state, told)
    best = np.argmax([game.reward(arm) for arm in arms])
    assert {policy.ask(state, game.actions, rng).arm for _ in range(40)} == {best}


def test_a_question_is_worth_what_its_results_gain_over_the_rounds_ahead(oracle):
    """The mean of the better of two after n results, by drawing the results; no fines here."""
    problem = ss.Problem(2, 1, noise_scale=0.5, tolerance=0.1, penalty=0.0)
    policy = ss.DirectedThompson(problem)
    state = ss.tell_all(policy, policy.init(), [([1.0, 0.0], 0, 0.4)] * 3)
    posteriors = posteriors_of(policy.knobs.prior, state.evidence, False)
    leader, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    values = posteriors.effects.mean[0]
    spread = 0.5 * math.sqrt(posteriors.effects.inverse[0, 1, 1])
    rng, worth = np.random.default_rng(1), []
    for n in (1, 2, 4, 8):
        truth = values[1] + spread * rng.standard_normal(200_000)
        results = truth + 0.5 / math.sqrt(n) * rng.standard_normal(200_000)
        weight = spread**2 / (spread**2 + 0.25 / n)
        ahead = np.maximum(values[1] + weight * (results - values[1]) - values[0], 0.0)
        worth.append(8 * ahead / n - (values[0] - values[1]))
    found = [
        net_gain(
            policy.knobs,
            posteriors,
            Found(leader, 0, values[0]),
            Found(other, 1, 0.0),
            float(rounds),
        )
        for rounds in (8, 0)
    ]
    best = max(worth, key=np.mean)
    assert oracle.mean_about(best, found[0])
    assert found[1] == 0.0


def test_the_rounds_ahead_fall_from_those_that_learning_takes_and_rise_with_those_played():
    problem = ss.Problem(4, 2, noise_scale=[0.1, 0.2, 0.3], tolerance=0.1, penalty=[5.0, 2.0])
    policy = ss.DirectedThompson(problem)
    posterior = posterior_of(policy.knobs.prior, policy.init().evidence)
    needed = 120 * (0.1**2 + 1.0**2 + 0.6**2)
    assert rounds_ahead(policy.knobs, posterior, 0.0) == pytest.approx(needed)
    assert rounds_ahead(policy.knobs, posterior, 10.0) == pytest.approx(needed - 50.0)
    assert rounds_ahead(policy.knobs, posterior, 600.0) == pytest.approx(360.0)
    quiet = posterior._replace(noise=0.01 * posterior.noise)
    assert rounds_ahead(policy.knobs, quiet, 0.0) == 48.0  # four for each of 12 coordinates
    one_sided = ss.Problem(
        4, 2, noise_scale=[0.1, 0.2, 0.3], tolerance=[(None, 0.1), 0.1], penalty=[5.0, 2.0]
    )
    knobs = ss.DirectedThompson(one_sided).knobs
    needed_less = 120 * (0.1**2 + 0.5 * 1.0**2 + 0.6**2)
    assert rounds_ahead(knobs, posterior, 0.0) == pytest.approx(needed_less)
    other_units = ss.Problem(
        4, 2, noise_scale=[0.1, 0.2, 0.3], tolerance=0.1, penalty=[5.0, 2.0],
        norm_bound=0.01, action_bound=100.0,
    )  # fmt: skip
    knobs = ss.DirectedThompson(other_units).knobs
    assert rounds_ahead(knobs, posterior, 0.0) == pytest.approx(needed)


@pytest.mark.parametrize("name", FOLLOW)
def test_asked_twice_within_tolerances_it_answers_the_same(name):
    game = world(2)
    policy = POLICIES[name](game.problem)
    first, second = (
        policy.ask(policy.init(), game.actions, np.random.default_rng(5)) for _ in range(2)
    )
    assert (first.arm, first.query.index) == (second.arm, second.query.index)


@pytest.mark.slow
def test_within_tolerances_it_pays_at_most_half_of_what_epsilon_greedy_does(oracle):
    ratios = []
    for seed in range(8):
        game = world(seed)
        ours, rival = (
            ss.simulate(policy(game.problem), game, 500, seed, compiled=False).cumulative_regret[-1]
            for policy in (ss.DirectedThompson, ss.EpsilonGreedy)
        )
        ratios.append(ours / rival)
    assert oracle.mean_at_most(np.array(ratios), 0.5)


@pytest.mark.full
@pytest.mark.parametrize("name", FOLLOW)
@pytest.mark.parametrize("solid", [False, True])
def test_levels_that_are_learned_leave_actions_in_their_space(name, solid):
    flat = world(4, actions=ss.Box(-0.3 * np.ones(5), 0.3 * np.ones(5)) if solid else None)
    told = {"noise_scale": 0.1, "tolerance": 0.15, "penalty": 5.0}
    raised = ss.environments.Instance(flat.theta, flat.actions, intercept=[2, -1, 0, 3], **told)
    trace = ss.simulate(POLICIES[name](raised.problem), raised, 12, seed=0)
    assert trace.action.shape == (12, 5)
    assert (trace.regret >= -1e-9).all()


@pytest.mark.slow
def test_a_level_costs_a_few_more_rounds_and_no_more(oracle):
    ratios = []
    for seed in range(6):
        flat = world(seed, noise=0.05)
        told = {"noise_scale": 0.05, "tolerance": 0.15, "penalty": 5.0}
        level = np.random.default_rng(seed).normal(size=4)
        raised = ss.environments.Instance(flat.theta, flat.actions, intercept=level, **told)
        paid = [
            ss.simulate(ss.DirectedThompson(game.problem), game, 300, seed, compiled=False)
            for game in (flat, raised)
        ]
        ratios.append(paid[1].cumulative_regret[-1] / paid[0].cumulative_regret[-1])
    assert oracle.mean_at_most(np.array(ratios), 2.0)


def test_where_levels_are_learned_the_baseline_is_bought_to_tell_them_from_effects():
    """An arm alone shows level and effect together, and however often, neither of the two."""
    arms = np.random.default_rng(3).uniform(0.3, 0.55, (12, 3))
    arms = ss.Arms(np.vstack([np.zeros(3), arms]))
    told = {"tolerance": 0.3, "penalty": 5.0, "intercept": [0.8, -0.7]}
    game = Instance([[0.57, 0.57, 0.57], [0.1, -0.1, 0.1]], arms, noise_scale=0.02, **told)
    policy = ss.DirectedThompson(game.problem)
    turns = list(play(policy, game, 40, seed=0))
    assert "explore" in {turn.decision.phase for turn in turns if turn.decision.arm == 0}
    advice = ss.recommend(policy, turns[-1].state, arms)
    assert advice.assured
    assert advice.arm != 0


def test_draws_are_weighed_by_their_gain_only_where_levels_are_told():
    """Where levels are learned, as in studies, the winner of a part of a draw teaches more."""
    told = ss.Problem(3, 1, noise_scale=0.1, tolerance=0.1)
    learned = ss.Problem(3, 1, noise_scale=0.1, tolerance=0.1, intercept=True)
    assert ss.DirectedThompson(told).knobs.rule == INVEST
    knobs = ss.DirectedThompson(learned).knobs
    assert knobs.rule == PRICED_SAMPLE
    assert 0.0 < knobs.spread < 1.0
