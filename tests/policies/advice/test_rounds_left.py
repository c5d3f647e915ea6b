"""How many rounds are left, by simulation in worlds drawn from the posterior."""

from dataclasses import replace

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import Instance, synthetic

ARMS = ss.Arms(np.random.default_rng(0).standard_normal((12, 3)) / 3)
THETA = synthetic(3, 2, 1, ARMS, seed=0).theta
WITHIN = {"tolerance": 0.15, "penalty": 5.0}


def learned(rounds, told=WITHIN, noise=0.1):
    game = Instance(THETA, ARMS, noise, **told)
    policy, rng = ss.DirectedThompson(game.problem), np.random.default_rng(1)
    state = policy.init()
    for _ in range(rounds):
        query = policy.ask(state, ARMS, rng).query
        state = policy.tell(state, query, game.observe(query, rng))
    return policy, state


@pytest.mark.parametrize(
    "told", [WITHIN, {**WITHIN, "intercept": [1.0, 0.0, -1.0]}, {"subspace_dim": 1}], ids=str
)
def test_the_rounds_left_lie_between_the_fewest_and_the_most(told):
    policy, state = learned(3, told)
    left = ss.rounds_left(policy, state, ARMS, matters=0.05, worlds=3, at_most=20)
    assert 0 < left.low <= left.estimate <= left.high <= 20
    assert left.rounds == tuple(sorted(left.rounds))
    assert left.open == sum(rounds == 20 for rounds in left.rounds)


def test_nothing_is_left_where_stopping_gives_up_less_already():
    policy, state = learned(3)
    loss = ss.recommend(policy, state, ARMS).loss.mean
    left = ss.rounds_left(policy, state, ARMS, matters=1.1 * loss)
    assert (left.estimate, left.low, left.high, left.open) == (0, 0, 0, 0)


def test_the_same_seed_gives_the_same_answer_and_leaves_the_state_as_it_was():
    policy, state = learned(3)
    before, told = state.to_json(), []
    call = {"matters": 0.05, "worlds": 2, "at_most": 8}
    one = ss.rounds_left(policy, state, ARMS, **call, progress=lambda *done: told.append(done))
    assert one == ss.rounds_left(policy, state, ARMS, **call)
    assert state.to_json() == before
    assert told == [(1, 2), (2, 2)]


def test_a_world_without_an_end_is_given_up_and_counted():
    policy, state = learned(1)
    left = ss.rounds_left(policy, state, ARMS, matters=1e-9, worlds=2, at_most=3)
    assert (left.estimate, left.open) == (3, 2)


def test_more_that_matters_takes_fewer_rounds():
    policy, state = learned(2)
    few, many = (
        ss.rounds_left(policy, state, ARMS, matters=matters, worlds=3, at_most=32).estimate
        for matters in (0.1, 0.02)
    )
    assert few < many


def test_in_a_box_the_rounds_are_played_as_well():
    box = ss.Box([-0.3] * 3, [0.3] * 3)
    policy = ss.DirectedThompson(ss.Problem(3, 2, 1, noise_scale=0.1))
    left = ss.rounds_left(policy, policy.init(), box, matters=0.05, worlds=2, at_most=4)
    assert left.high <= 4


def test_what_cannot_be_counted_is_refused(refusal):
    policy, state = learned(0)
    assert "matters must be positive" in refusal(ss.rounds_left, policy, state, ARMS, matters=0.0)
    assert "recommend needs a policy of this package" in refusal(
        ss.rounds_left, object(), state, ARMS, matters=1.0
    )


@pytest.mark.slow
def test_the_rounds_left_are_about_those_that_it_takes(oracle):
    """A true world drawn from the prior has the same distribution as the simulated worlds."""
    inside, played = 0, 12
    for seed in range(played):
        rng = np.random.default_rng(seed)
        game = Instance(  # a draw from the prior for M = 1 may be longer than 1
            rng.standard_normal((3, 3)) / np.sqrt(3), ARMS, 0.1, norm_bound=3.0, **WITHIN
        )
        policy = ss.DirectedThompson(replace(game.problem, norm_bound=1.0))
        state, needed = policy.init(), 0
        left = ss.rounds_left(policy, state, ARMS, matters=0.05, seed=seed, at_most=120)
        while needed < 120 and ss.recommend(policy, state, ARMS).loss.mean >= 0.05:
            query = policy.ask(state, ARMS, rng).query
            state = policy.tell(state, query, game.observe(query, rng))
            needed += 1
        inside += left.low <= needed <= left.high
    assert oracle.at_least(inside, played, 7 / 9)
