"""Reasons: the rival, what each result would settle, the price, and the expected feedback."""

import time
from dataclasses import replace

import numpy as np
import pytest

import sidestep as ss
from sidestep.core import posterior
from sidestep.core.objective import expected_values
from sidestep.core.posterior import posterior_of
from sidestep.environments import Instance, synthetic
from sidestep.experiments.simulate import play
from sidestep.policies import builtin

WITHIN = {"tolerance": 0.15, "penalty": 5.0}
PROJECTED: dict[str, float] = {}


def world(told, arms=40, noise=0.1, seed=0, level=None):
    drawn = synthetic(6, 4, 2, f"fixed:{arms}", noise_scale=noise, seed=seed)
    return Instance(drawn.theta, drawn.actions, noise, intercept=level, **told)


def played(game, rounds=30, seed=0):
    """A Directed Thompson player and its state after some rounds."""
    policy, rng = ss.DirectedThompson(game.problem), np.random.default_rng(seed)
    state = policy.init()
    for _ in range(rounds):
        query = policy.ask(state, game.actions, rng).query
        state = policy.tell(state, query, game.observe(query, rng))
    return policy, state


@pytest.mark.parametrize("told", [WITHIN, PROJECTED], ids=["within", "projected"])
@pytest.mark.parametrize("level", [None, [1.0, 2.0, 3.0, 4.0, 5.0]], ids=["flat", "levels"])
def test_reasons_are_of_this_decision_and_need_no_chance(told, level):
    game = world(told, level=level)
    policy, state = played(game)
    first, second = (policy.ask(state, game.actions, np.random.default_rng(3)) for _ in range(2))
    assert first.rival != first.arm
    assert first.rival == second.rival
    assert first.shares.tolist() == second.shares.tolist()
    assert (first.shares >= 0).all()
    assert first.shares.sum() > 0
    assert first.price >= 0
    assert first.expected.low < first.expected.estimate < first.expected.high


def test_the_price_is_what_the_action_is_expected_to_lose_against_the_best():
    game = world(WITHIN)
    policy, state = played(game)
    posterior = posterior_of(policy.knobs.prior, state.evidence)
    arms = game.actions
    values = expected_values(game.problem.limits, posterior, arms.columns, len(arms))
    for seed in range(10):
        decision = policy.ask(state, arms, np.random.default_rng(seed))
        assert decision.price == pytest.approx(values.max() - values[decision.arm], abs=1e-9)
        if decision.price > 1e-9:
            assert decision.rival == values.argmax()


def test_within_tolerances_what_is_asked_removes_most_of_the_doubt_about_the_action():
    game = world(WITHIN)
    policy, state = played(game)
    phases = set()
    for seed in range(20):
        decision = policy.ask(state, game.actions, np.random.default_rng(seed))
        assert decision.shares[decision.query.index] == decision.shares.max() > 0
        phases.add(decision.phase)
    assert phases == {"play"}


def test_no_single_result_removes_more_than_all_of_the_doubt():
    for told in (WITHIN, PROJECTED):
        game = world(told)
        policy, state = played(game, rounds=3)
        shares = policy.ask(state, game.actions, np.random.default_rng(0)).shares
        assert shares.max() <= 1 + 1e-9


@pytest.mark.full
def test_the_interval_of_the_feedback_holds_nineteen_times_in_twenty(oracle):
    inside, asked = 0, 0
    for seed in range(12):
        game = world(WITHIN, noise=0.3, seed=seed)
        policy, rng = ss.DirectedThompson(game.problem), np.random.default_rng(seed)
        state = policy.init()
        for _ in range(25):
            decision = policy.ask(state, game.actions, rng)
            value = game.observe(decision.query, rng)
            inside += decision.expected.low <= value <= decision.expected.high
            asked += 1
            state = policy.tell(state, decision.query, value)
    assert oracle.at_least(inside, asked, 0.93)


@pytest.mark.parametrize("told", [WITHIN, PROJECTED], ids=["within", "projected"])
def test_on_a_solid_the_rival_is_an_action(told):
    theta = synthetic(6, 4, 2, "ball", seed=0).theta
    game = Instance(theta, ss.Box([-0.3] * 6, [0.3] * 6), 0.1, **told)
    policy, state = played(game, rounds=8)
    decision = policy.ask(state, game.actions, np.random.default_rng(1))
    assert decision.rival is None or game.actions.contains(decision.rival)
    assert decision.shares.shape == (5,)


def test_a_policy_without_a_posterior_gives_no_reasons():
    game = world(PROJECTED)
    policy = ss.EpsilonGreedy(game.problem)
    decision = policy.ask(policy.init(), game.actions, np.random.default_rng(0))
    assert (decision.rival, decision.shares, decision.price, decision.expected) == (None,) * 4


def test_where_noise_is_learned_reasons_rest_on_the_posterior_that_decided():
    game = world(WITHIN)
    problem = replace(game.problem, noise_scale=None)
    policy, rng = ss.DirectedThompson(problem), np.random.default_rng(0)
    state = policy.init()
    for _ in range(30):
        query = policy.ask(state, game.actions, rng).query
        state = policy.tell(state, query, game.observe(query, rng))
    decision = policy.ask(state, game.actions, rng)
    posterior = posterior_of(policy.knobs.prior, state.evidence)
    mean = posterior.mean[decision.query.index] @ decision.query.action
    assert decision.expected.estimate == pytest.approx(mean, rel=1e-10)


def test_the_posterior_is_computed_once_an_ask(monkeypatch):
    game = world(PROJECTED)
    problem = replace(game.problem, noise_scale=None, subspace_dim=None, resolution=0.1)
    for maker in (ss.ProtectedThompson, ss.DirectedThompson, ss.InformationDirected):
        policy, rng, calls = maker(problem), np.random.default_rng(0), []
        state = ss.tell_all(
            policy, policy.init(), [(arm, i % 4, 0.1) for i, arm in enumerate(game.actions.vectors)]
        )
        with monkeypatch.context() as patch:
            patch.setattr(posterior, "noise_levels", _counting(calls, posterior.noise_levels))
            decision = policy.ask(state, game.actions, rng)
        assert decision.spectrum is not None
        assert len(calls) == 1


def _counting(calls, function):
    def counted(*arguments):
        calls.append(1)
        return function(*arguments)

    return counted


def test_a_simulation_computes_no_reasons(monkeypatch):
    game = world(WITHIN)
    policy = ss.DirectedThompson(game.problem)
    *_, read = play(policy, game, 5, seed=0)
    assert read.decision.price is not None
    monkeypatch.setattr(builtin, "reasons_for", None)  # calling it would raise
    *_, unread = play(policy, game, 5, seed=0, explains=False)
    assert unread.decision.price is None
    assert unread.decision.query.index == read.decision.query.index
    ss.simulate(policy, game, 5, compiled=False)


def test_an_ask_with_reasons_takes_a_few_milliseconds_over_a_hundred_arms():
    """The goal is 5 ms (2.8 measured); the test allows five times as much on a busy machine."""
    game = world(WITHIN, arms=100)
    policy, state = played(game, rounds=20)
    rng, times = np.random.default_rng(0), []
    for _ in range(20):
        start = time.perf_counter()
        policy.ask(state, game.actions, rng)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.025
