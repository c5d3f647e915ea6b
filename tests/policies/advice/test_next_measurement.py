"""What would settle a recommendation: the one measurement, and how many more results at it."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.posterior import Posteriors
from sidestep.environments import Instance, synthetic
from sidestep.policies.advice.posterior_summary import belief_of, slopes_at, standpoint_of

RNG = np.random.default_rng(0)
ARMS = ss.Arms(RNG.standard_normal((30, 4)) / 4)
THETA = synthetic(4, 3, 2, ARMS, seed=0).theta
LEVELS = [1.0, -0.5, 0.3, 2.0]
WITHIN = {"tolerance": 0.15, "penalty": 5.0}


def learned(told=WITHIN, actions=ARMS, rounds=15, noise=0.2):
    game = Instance(THETA, actions, noise, **told)
    policy, rng = ss.DirectedThompson(game.problem), np.random.default_rng(1)
    state = policy.init()
    for _ in range(rounds):
        query = policy.ask(state, actions, rng).query
        state = policy.tell(state, query, game.observe(query, rng))
    return policy, state


def expected_answer(policy, state, query):
    """The predicted feedback, which does not change any estimate."""
    measured = policy.problem.lifted(np.array(query.action))
    return float(belief_of(policy, state).measured.mean[query.index] @ measured)


def contested(policy, state, slopes):
    posterior = belief_of(policy, state).posterior
    return sum(
        posterior.noise[v] ** 2 * (slopes[v] @ posterior.inverse[v] @ slopes[v])
        for v in range(len(slopes))
    )


@pytest.mark.parametrize("told", [WITHIN, {**WITHIN, "intercept": LEVELS}], ids=["flat", "levels"])
def test_the_share_is_the_part_of_the_contested_variance_that_the_measurement_removes(told):
    policy, state = learned(told)
    advice = ss.recommend(policy, state, ARMS)
    belief = belief_of(policy, state)
    here = standpoint_of(policy.problem, Posteriors(belief.measured, belief.posterior), 0)
    slopes = slopes_at(here, advice.action) - slopes_at(here, advice.rivals[0].action)
    before, lefts = contested(policy, state, slopes), {}
    for row, arm in enumerate(ARMS.vectors):
        for index in range(4):
            query = ss.Query(arm, index)
            grown = policy.tell(state, query, expected_answer(policy, state, query))
            lefts[row, index] = contested(policy, grown, slopes)
    said = advice.settles
    assert min(lefts, key=lefts.get) == (said.arm, said.vector)
    assert said.share == pytest.approx(1 - lefts[said.arm, said.vector] / before, rel=1e-6)
    assert (said.action == ARMS.vectors[said.arm]).all()


@pytest.mark.parametrize("told", [WITHIN, {**WITHIN, "intercept": LEVELS}], ids=["flat", "levels"])
def test_the_stated_number_of_results_settles_an_outcome_and_one_less_does_not(told):
    policy, state = learned(told, rounds=6)
    advice = ss.recommend(policy, state, ARMS)
    assert advice.unsettled
    for index, more, half in advice.unsettled:
        assert advice.verdicts[index - 1] == "not settled"
        if more is None or more > 100:
            continue
        said, query, grown = [], ss.Query(advice.action, index), state
        for _ in range(more):
            grown = policy.tell(grown, query, expected_answer(policy, grown, query))
            effect = ss.intervals(policy, grown, advice.action)[1][index]
            said.append((effect.low >= -0.15 and effect.high <= 0.15) or (min(
                abs(effect.low), abs(effect.high)) > 0.15 and effect.low * effect.high > 0))  # fmt: skip
        assert said[-1]
        assert not any(said[:-1])
        assert half == pytest.approx((effect.high - effect.low) / 2, rel=1e-6)


def test_if_the_level_is_uncertain_no_number_of_results_at_that_action_settles_the_effect():
    """Nothing was measured at other actions, so effect and level cannot be separated."""
    game = Instance(THETA, ARMS, 0.01, **WITHIN, intercept=LEVELS)
    policy = ss.DirectedThompson(game.problem)
    advice = ss.recommend(policy, policy.init(), ARMS)
    assert {each.more for each in advice.unsettled} == {None}


def test_nothing_is_unsettled_without_tolerances_and_the_reward_is_the_clean_part():
    policy, state = learned({"subspace_dim": 2})
    advice = ss.recommend(policy, state, ARMS)
    assert advice.unsettled == ()
    assert advice.within is None
    assert advice.clean == advice.reward
    assert 0 < advice.settles.share <= 1 + 1e-9


def test_the_probability_of_being_within_is_said_and_there_is_no_clean_part():
    policy, state = learned(rounds=60, noise=0.05)
    advice = ss.recommend(policy, state, ARMS)
    assert advice.clean is None
    assert (advice.within >= 0.95) == advice.assured


@pytest.mark.parametrize("told", [WITHIN, {"subspace_dim": 2}], ids=["within", "projected"])
def test_on_a_solid_the_telling_action_lies_in_it(told):
    box = ss.Box([-0.4] * 4, [0.4] * 4)
    advice = ss.recommend(*learned(told, box, rounds=6), box)
    assert advice.settles.arm is None
    assert box.contains(advice.settles.action)
    assert 0 < advice.settles.share <= 1 + 1e-9
