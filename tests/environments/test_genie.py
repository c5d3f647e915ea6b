"""The genie: it knows the truth, so it is a baseline and not in the catalog of policies."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import FreshArms, Genie, Instance, Menus, synthetic
from sidestep.environments.action_sources import draw_actions
from sidestep.policies.catalog import POLICIES

ARMS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8]])
SOURCES = [ss.UnitBall(3), ss.Arms(ARMS), FreshArms(6, 3), Menus([ARMS[:1], ARMS[1:]])]


def named(source):
    return type(source).__name__


def test_the_genie_is_not_in_the_catalog():
    assert Genie not in POLICIES.values()
    assert not any("genie" in name for name in POLICIES)
    assert not hasattr(ss, "Genie")


@pytest.mark.parametrize("source", SOURCES, ids=named)
def test_the_genie_plays_the_best_action_of_the_round(source):
    instance = synthetic(3, 2, 1, source, seed=3)
    for seed in range(10):
        actions = draw_actions(source, np.random.default_rng(seed))
        decision = Genie(instance).ask(None, actions, np.random.default_rng(0))
        earned = decision.query.action @ instance.theta_perp
        if isinstance(actions, ss.Arms):
            assert earned == pytest.approx((actions.vectors @ instance.theta_perp).max(), rel=1e-14)
            assert (actions.vectors[decision.arm] == decision.query.action).all()
        else:
            assert earned == pytest.approx(np.linalg.norm(instance.theta_perp), rel=1e-14)
        assert decision.value == pytest.approx(earned, rel=1e-14)
        assert instance.regret(decision.query, actions) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("source", SOURCES, ids=named)
def test_no_policy_earns_more_than_the_genie_on_the_same_arms(source):
    instance = synthetic(3, 2, 1, source, noise_scale=0.1, seed=3)
    rewards = [
        ss.simulate(policy, instance, 100, seed=1).action @ instance.theta_perp
        for policy in (Genie(instance), ss.Uniform(instance.problem), ss.OFUL(instance.problem))
    ]
    assert (rewards[0] >= rewards[1] - 1e-14).all()
    assert (rewards[0] >= rewards[2] - 1e-14).all()


def test_of_equal_arms_the_genie_plays_the_lowest_row():
    instance = Instance([[0.0, 1.0], [1.0, 0.0]], ss.Arms([[1, 0], [0.6, 0.8], [-0.6, 0.8]]))
    assert Genie(instance).ask(None, instance.actions, np.random.default_rng(0)).arm == 1


def test_where_nothing_can_be_earned_the_genie_still_plays_a_unit_vector():
    instance = Instance([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], ss.UnitBall(2))
    action = Genie(instance).ask(None, instance.actions, np.random.default_rng(0)).query.action
    assert np.linalg.norm(action) == pytest.approx(1.0)


def test_the_genie_learns_nothing():
    genie = Genie(synthetic(3, 2, 1, 5))
    assert genie.init() is None
    assert genie.tell(None, ss.Query(np.eye(3)[0], 0), 1.0) is None
    assert genie.state_from_json("") is None
    assert genie.problem is genie.instance.problem
