"""Worlds: hidden vectors, four kinds of noise, what the policy knows, regret against the genie."""

import pickle

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import FreshArms, Genie, Instance, Menus, synthetic
from sidestep.errors import InputError
from sidestep.experiments.simulate import play

DRAWS = 20_000
ARMS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8], [-0.6, 0.8, 0.0]])
SOURCES = {
    "ball": ss.UnitBall(3),
    "fixed": ss.Arms(ARMS),
    "fresh": FreshArms(5, 3),
    "changing": Menus([ARMS[:1], ARMS[1:]], weights=[0.3, 0.7]),
}
# every policy, so that none is missing where a claim is about any policy
PLAYERS = {
    **ss.policies.POLICIES,
    "as_intended": ss.ProtectedLinUCB.as_intended,
    "as_printed": ss.ProtectedLinUCB.as_printed,
}


def world(source="fixed", **changed):
    theta = np.array([[0.8, 0.4, 0.2], [0.0, 0.3, 0.9], [0.0, 0.2, 0.6]])
    return Instance(**{"theta": theta, "actions": SOURCES[source], **changed})


def feedback(instance, action, index, seed=0):
    """Many measurements of one query."""
    rng = np.random.default_rng(seed)
    query = ss.Query(np.asarray(action, dtype=float), index)
    return np.array([instance.observe(query, rng) for _ in range(DRAWS)])


# What is hidden and what the policy knows


def test_any_theta_may_be_written_down():
    theta = [[1, 2], [3, -4], [0, 0]]
    instance = Instance(theta, ss.UnitBall(2), norm_bound=5)
    assert instance.theta.dtype == float
    assert instance.theta.tolist() == theta
    told = instance.problem
    assert (told.dim, told.n_protected, told.subspace_dim, told.norm_bound) == (2, 2, 1, 5)


def test_theta_and_theta_perp_are_copies_that_cannot_be_written():
    theta = np.array([[0.5, 0.5], [1.0, 0.0]])
    instance = Instance(theta, ss.UnitBall(2))
    theta[:] = 7.0
    assert instance.theta.tolist() == [[0.5, 0.5], [1.0, 0.0]]
    for hidden in (instance.theta, instance.theta_perp):
        with pytest.raises(ValueError, match="read-only"):
            hidden[0] = 1.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("d", "L", "s"), [(2, 1, 1), (6, 4, 2), (5, 3, 3), (8, 12, 4), (3, 5, 3)])
def test_theta_perp_is_what_least_squares_leaves_of_the_target(d, L, s, seed):
    rng = np.random.default_rng(seed)
    theta = np.vstack([rng.normal(size=(1, d)), rng.normal(size=(L, s)) @ rng.normal(size=(s, d))])
    instance = Instance(theta, ss.UnitBall(d), norm_bound=100.0)
    fitted = np.linalg.lstsq(theta[1:].T, theta[0], rcond=1e-10)[0]
    np.testing.assert_allclose(instance.theta_perp, theta[0] - fitted @ theta[1:], atol=1e-12)
    assert instance.problem.subspace_dim == s


def test_the_player_is_told_the_rank_unless_told_otherwise():
    assert world().problem.subspace_dim == 1  # the second protected vector is 2/3 of the first
    assert world(subspace_dim=2).problem.subspace_dim == 2


def test_the_player_is_told_noise_and_bounds_but_no_vector():
    instance = world(noise_scale=[0.1, 0.2, 0.3], norm_bound=2.0)
    assert instance.problem.noise.tolist() == [0.1, 0.2, 0.3]
    assert instance.problem.norm_bound == 2.0
    assert not any(isinstance(value, np.ndarray) for value in vars_of(instance.problem))


def vars_of(problem):
    return [getattr(problem, name) for name in problem.__slots__]


def test_the_player_is_told_the_length_of_the_longest_action_and_never_less_than_one():
    assert world().problem.action_bound == 1.0
    assert Instance(np.eye(2), ss.Arms([[0.1, 0.0]])).problem.action_bound == 1.0
    long = Menus([np.eye(2), np.array([[3.0, 4.0]])])
    assert Instance(np.eye(2), long).problem.action_bound == 5.0


def test_a_world_travels_to_another_process():
    for name in SOURCES:
        instance = world(name)
        twin = pickle.loads(pickle.dumps(instance))
        policy = ss.Uniform(instance.problem)
        here, there = (ss.simulate(policy, each, 20, seed=3) for each in (instance, twin))
        assert (here.feedback == there.feedback).all()


def test_without_protection_it_is_the_plain_linear_bandit():
    target = np.array([[0.3, -0.5, 0.4]])
    instance = Instance(target, ss.Arms(ARMS))
    assert instance.theta_perp.tolist() == target[0].tolist()
    assert (instance.problem.n_protected, instance.problem.subspace_dim) == (0, 0)
    means = ARMS @ target[0]
    for arm in ARMS:
        regret = instance.regret(ss.Query(arm, 0), instance.actions)
        assert regret == pytest.approx(means.max() - arm @ target[0], abs=1e-15)


def test_where_the_protected_vectors_span_everything_no_action_earns_anything():
    instance = Instance(np.vstack([[1.0, 0.0], np.eye(2)]), ss.UnitBall(2))
    np.testing.assert_allclose(instance.theta_perp, 0.0, atol=1e-15)
    assert ss.simulate(ss.ProtectedLinUCB(instance.problem), instance, 20).regret == pytest.approx(
        0
    )


# Noise


@pytest.mark.full
@pytest.mark.parametrize("noise", ["gaussian", "rademacher", "uniform"])
@pytest.mark.parametrize("index", [0, 1])
def test_noise_has_mean_zero_and_standard_deviation_r(oracle, noise, index):
    scale = (0.3, 0.05, 1.0)
    errors = feedback(world(noise=noise, noise_scale=scale), ARMS[2], index)
    errors = errors - ARMS[2] @ world().theta[index]
    assert oracle.mean_about(errors, 0.0)
    if noise == "rademacher":
        np.testing.assert_allclose(np.abs(errors), scale[index], atol=1e-15)
        assert oracle.about(int((errors > 0).sum()), DRAWS, 0.5)
    else:
        assert oracle.mean_about(errors**2, scale[index] ** 2)


def test_gaussian_noise_is_gaussian(oracle):
    errors = feedback(world(noise_scale=1.0), ARMS[0], 0) - 0.8
    assert oracle.about(int((np.abs(errors) < 0.6744897501960817).sum()), DRAWS, 0.5)
    assert oracle.about(int((errors > 1.6448536269514722).sum()), DRAWS, 0.05)


def test_uniform_noise_fills_plus_minus_root_three_r_evenly(oracle):
    errors = (feedback(world(noise="uniform", noise_scale=0.2), ARMS[0], 0) - 0.8) / 0.2
    assert np.abs(errors).max() <= np.sqrt(3) * (1 + 1e-12)
    for quarter in range(4):
        low = np.sqrt(3) * (quarter / 2 - 1)
        inside = (errors >= low) & (errors < low + np.sqrt(3) / 2)
        assert oracle.about(int(inside.sum()), DRAWS, 0.25)


def test_without_noise_feedback_is_the_mean():
    for noise in ("gaussian", "rademacher", "uniform"):
        instance = world(noise=noise, noise_scale=0.0)
        measured = instance.observe(ss.Query(ARMS[2], 1), np.random.default_rng(0))
        assert measured == pytest.approx(0.72, abs=1e-15)


@pytest.mark.parametrize("index", [0, 1])
def test_bernoulli_feedback_is_a_coin_of_the_right_mean(oracle, index):
    instance = world("fixed", actions=ss.Arms(ARMS[:3]), noise="bernoulli")
    measured = feedback(instance, ARMS[2], index)
    assert set(measured) == {0.0, 1.0}
    mean = float(ARMS[2] @ instance.theta[index])
    assert oracle.about(int(measured.sum()), DRAWS, mean)


def test_a_coin_of_mean_zero_or_one_never_errs():
    instance = Instance([[1.0, 0.0], [0.0, 1.0]], ss.Arms(np.eye(2)), noise="bernoulli")
    assert (feedback(instance, [1.0, 0.0], 0) == 1.0).all()
    assert (feedback(instance, [1.0, 0.0], 1) == 0.0).all()


def test_with_bernoulli_feedback_the_policy_knows_a_noise_scale_of_one_half():
    instance = world("fixed", actions=ss.Arms(ARMS[:3]), noise="bernoulli", noise_scale=0.001)
    assert instance.problem.noise.tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(("theta", "came"), [([-0.5, 0.5], "-0.5"), ([1.5, 0.0], "1.5")])
def test_a_mean_outside_zero_to_one_is_an_error_and_not_a_clip(refusal, theta, came):
    message = refusal(
        Instance, [[0.5, 0.5], theta], ss.Arms(np.eye(2)), norm_bound=2.0, noise="bernoulli"
    )
    assert f"got {came} for arm 0 and vector 1" in message


def test_a_mean_outside_zero_to_one_on_any_menu_is_an_error(refusal):
    menus = Menus([np.eye(2), -np.eye(2)], weights=[1.0, 0.0])
    assert "[0, 1]" in refusal(Instance, [[0.5, 0.5]], menus, noise="bernoulli")


@pytest.mark.parametrize("source", ["ball", "fresh"])
def test_coins_need_arms_that_are_known_beforehand(refusal, source):
    message = refusal(world, source, noise="bernoulli")
    assert "known beforehand" in message
    assert message.endswith(type(SOURCES[source]).__name__)


def coins_off_the_menu():
    """Every arm has means in [0, 1], but e_2 does not, which CORE-SET plays off the menu."""
    theta = [[0.9, -0.3], [0.8, -0.2], [0.4, -0.1]]
    return Instance(theta, ss.Arms([[1.0, 0.0], [0.8, 0.6]]), noise="bernoulli")


def test_bernoulli_feedback_off_the_menu_is_an_error_and_is_not_clipped(refusal):
    off_menu = ss.Query(np.array([0.0, 1.0]), 1)
    rng = np.random.default_rng(0)
    assert "[0, 1]" in refusal(coins_off_the_menu().observe, off_menu, rng)


@pytest.mark.full
@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_with_bernoulli_feedback_off_the_menu_is_an_error(refusal, compiled):
    instance = coins_off_the_menu()
    policy = ss.ProtectedLinUCB.as_intended(instance.problem)
    assert "[0, 1]" in refusal(ss.simulate, policy, instance, 8, compiled=compiled)


def test_every_measurement_takes_one_draw():
    """So that what one policy measures does not shift the noise of the next round."""
    for noise in ("gaussian", "rademacher", "uniform"):
        instance = world(noise=noise)
        one, other = np.random.default_rng(5), np.random.default_rng(5)
        instance.observe(ss.Query(ARMS[0], 0), one)
        instance.observe(ss.Query(ARMS[2], 2), other)
        assert one.bit_generator.state == other.bit_generator.state


# Regret


def test_the_reward_is_the_inner_product_with_theta_perp():
    instance = world()
    for arm in ARMS:
        assert instance.reward(arm) == pytest.approx(arm @ instance.theta_perp, abs=1e-15)


@pytest.mark.parametrize("source", SOURCES)
def test_the_genie_has_no_regret_in_any_round(source):
    instance = world(source)
    trace = ss.simulate(Genie(instance), instance, 200, seed=1)
    assert np.abs(trace.regret).max() <= 1e-14


@pytest.mark.parametrize("source", SOURCES)
def test_regret_is_the_genies_reward_less_the_players(source):
    instance = world(source)
    for turn in play(ss.Uniform(instance.problem), instance, 30, seed=2):
        action = turn.decision.query.action
        missed = turn.regret + action @ instance.theta_perp
        if source == "ball":
            assert missed == pytest.approx(np.linalg.norm(instance.theta_perp), abs=1e-14)
        elif source == "fixed":
            assert missed == pytest.approx((ARMS @ instance.theta_perp).max(), abs=1e-14)
        elif source == "changing":
            best = {(menu.vectors @ instance.theta_perp).max() for menu in SOURCES[source].menus}
            assert min(abs(missed - reward) for reward in best) <= 1e-14
        else:
            assert missed <= np.linalg.norm(instance.theta_perp) + 1e-14


def test_on_arms_that_change_regret_is_against_the_best_arm_of_that_round():
    instance = world("changing")
    played = ss.simulate(ss.Uniform(instance.problem), instance, 300, seed=0)
    rewards = ARMS @ instance.theta_perp
    alone = np.isclose(played.action, ARMS[0]).all(axis=1)  # the only arm of its menu
    assert 0 < alone.sum() < 300
    assert np.abs(played.regret[alone]).max() <= 1e-14
    expected = rewards[1:].max() - played.action[~alone] @ instance.theta_perp
    np.testing.assert_allclose(played.regret[~alone], expected, atol=1e-14)


@pytest.mark.full
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", PLAYERS)
def test_no_policy_beats_the_genie_but_off_the_menu(name, source):
    instance = world(source, noise_scale=0.001)
    policy = PLAYERS[name](instance.problem)
    trace = ss.simulate(policy, instance, 60, seed=4)
    off_menu = (trace.phase == "core-set") & (getattr(policy, "design", "") == "basis")
    assert (trace.regret[~off_menu] >= -1e-12).all()


def test_off_the_menu_regret_may_fall_below_zero():
    instance = synthetic(3, 2, 1, ss.Arms([[-0.1, 0.0, 0.0]]), noise_scale=0.001, seed=0)
    trace = ss.simulate(ss.ProtectedLinUCB.as_intended(instance.problem), instance, 6)
    assert (trace.phase == "core-set").all()
    assert trace.regret.min() < 0


# Bad input


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"theta": np.zeros((2, 2, 2))}, "theta must have shape (L+1, d), got (2, 2, 2)"),
        ({"theta": [0, 0, 1]}, "got (3,): a single vector is a row as well, [[...]]"),
        ({"theta": np.zeros((0, 3))}, "theta must have shape (L+1, d), got (0, 3)"),
        ({"theta": [[np.nan, 0, 0]]}, "theta must be finite numbers, got NaN or infinity"),
        ({"theta": [[np.inf, 0, 0]]}, "theta must be finite numbers, got NaN or infinity"),
        (
            {"theta": [[0.5, 0, 0], [0, 1.5, 0]]},
            "at most norm_bound = 1, got 1.5 in row 1",
        ),
        ({"theta": np.eye(2)}, "actions must have the dimension of theta, 2, got 3"),
        (
            {"actions": ARMS},
            "actions must be UnitBall, Box, Ellipsoid, Simplex, Arms, FreshArms or Menus, got ndarray",
        ),
        ({"noise": "normal"}, "noise must be one of gaussian, rademacher, uniform, bernoulli"),
        ({"noise_scale": -0.1}, "noise_scale must be zero or positive and finite, got -0.1"),
        ({"noise_scale": [0.1, 0.2]}, "noise_scale must be a number or 3 numbers"),
        ({"norm_bound": 0.0}, "norm_bound = 0, got"),
        ({"subspace_dim": 3}, "subspace_dim must lie in 1..2, got 3"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(refusal, changed, expected):
    assert expected in refusal(world, **changed)


def test_a_vector_may_pass_its_bound_by_rounding_only():
    Instance([[1.0 + 5e-10, 0.0]], ss.UnitBall(2))
    with pytest.raises(InputError, match="norm_bound"):
        Instance([[1.0 + 5e-9, 0.0]], ss.UnitBall(2))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (ss.Query(np.zeros(2), 0), "action must have shape (3,), got (2,)"),
        (ss.Query(np.array([2.0, 0, 0]), 0), "action must have length at most 1, got 2"),
        (ss.Query(np.array([np.nan, 0, 0]), 0), "action must be finite"),
        (ss.Query(np.zeros(3), 3), "index must lie in 0..2, got 3"),
        (ss.Query(np.zeros(3), -1), "index must lie in 0..2, got -1"),
    ],
)
def test_a_bad_query_is_refused_before_a_draw_is_taken(refusal, query, expected):
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert expected in refusal(world().observe, query, rng)
    assert rng.bit_generator.state == before


# Tolerances and levels


def test_with_tolerances_regret_and_genie_follow_the_aim():
    instance = world(tolerance=[0.1, (None, 0.2)], penalty=[3.0, 4.0])
    assert instance.problem.limits.penalty.tolist() == [3.0, 4.0]
    effects = ARMS @ instance.theta.T
    values = effects[:, 0] - 3.0 * np.maximum(np.abs(effects[:, 1]) - 0.1, 0)
    values -= 4.0 * np.maximum(effects[:, 2] - 0.2, 0)
    best = int(values.argmax())
    decision = Genie(instance).ask(None, instance.actions, np.random.default_rng(0))
    assert (decision.arm, decision.value) == (best, pytest.approx(values[best]))
    for value, arm in zip(values, ARMS, strict=True):
        assert instance.reward(arm) == pytest.approx(value, abs=1e-12)
        lost = instance.regret(ss.Query(arm, 0), instance.actions)
        assert lost == pytest.approx(values[best] - value, abs=1e-12)


@pytest.mark.parametrize("solid", [ss.UnitBall(3), ss.Box([-0.5] * 3, [0.5] * 3)])
def test_on_a_solid_the_genie_has_no_regret_within_tolerances(solid):
    instance = world(actions=solid, tolerance=0.05, penalty=2.0)
    decision = Genie(instance).ask(None, solid, np.random.default_rng(0))
    assert instance.regret(decision.query, solid) == pytest.approx(0.0, abs=1e-9)
    assert (instance.theta @ decision.query.action)[0] > 0


def test_a_level_is_measured_on_top_and_seen_by_no_aim():
    flat, raised = world(), world(intercept=[5.0, -3.0, 0.0])
    assert not flat.problem.intercept
    assert raised.problem.intercept
    for index, level in enumerate((5.0, -3.0, 0.0)):
        query = ss.Query(ARMS[2], index)
        low, high = (each.observe(query, np.random.default_rng(0)) for each in (flat, raised))
        assert high - low == pytest.approx(level, abs=1e-12)
        assert raised.regret(query, raised.actions) == flat.regret(query, flat.actions)


def test_a_wrong_intercept_is_refused(refusal):
    for came in ([1.0], [1.0, float("nan"), 0.0], "high"):
        assert refusal(world, intercept=came).startswith("intercept must be")


def test_within_tolerances_the_compiled_run_has_the_regret_of_the_steps():
    instance = world(tolerance=0.1, penalty=3.0)
    policy = ss.Uniform(instance.problem)
    fast, slow = (ss.simulate(policy, instance, 50, seed=1, compiled=how) for how in (True, False))
    np.testing.assert_allclose(fast.regret, slow.regret, atol=1e-12)
    np.testing.assert_allclose(fast.feedback, slow.feedback, atol=1e-12)
