"""Caution: only actions that are probably within every tolerance are played, and a safe action."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.caution import chance_within, chances_within
from sidestep.core.posterior import Posterior, posterior_of
from sidestep.core.problem import limits_of
from sidestep.environments import Instance, synthetic

WITHIN = {"tolerance": 0.15, "penalty": 5.0}
PLAYERS = (ss.DirectedThompson, ss.ProtectedThompson)


def shortened(seed=0, count=10, dim=3):
    """Arms of five lengths, the baseline among them."""
    long = np.random.default_rng(seed).standard_normal((count, dim))
    long /= np.linalg.norm(long, axis=1, keepdims=True)
    shares = (0.1, 0.25, 0.5, 0.75, 1.0)
    return ss.Arms(np.vstack([np.zeros((1, dim)), *(share * long for share in shares)]))


def world(seed=0, actions=None, noise=0.05, **told):
    arms = shortened(seed) if actions is None else actions
    theta = synthetic(3, 2, 1, "ball", seed=seed).theta
    return Instance(theta, arms, noise, **(WITHIN | told))


def effects(game, trace):
    return trace.action @ game.theta.T


def beyond(game, trace):
    return (np.abs(effects(game, trace)[:, 1:]) > 0.15 + 1e-9).any(axis=1)


def test_the_chance_of_being_within_is_joint_over_outcomes(oracle):
    rng = np.random.default_rng(0)
    mean, arms = rng.standard_normal((3, 4)) / 4, rng.standard_normal((5, 4)) / 2
    posterior = Posterior(mean, np.tile(np.diag([1.0, 0.5, 0.2, 0.7]), (3, 1, 1)), np.full(3, 0.3))
    limits = limits_of(((-0.1, 0.2), (-np.inf, 0.1)), (5.0, 3.0))
    draws = (
        mean + (0.3 * np.sqrt(posterior.inverse) @ rng.standard_normal((20_000, 3, 4, 1)))[..., 0]
    )
    sides = draws[:, 1:] @ arms.T
    inside = ((sides >= limits.low[:, None]) & (sides <= limits.high[:, None])).all(axis=1)
    chances = chances_within(limits, posterior, arms.T.copy(), len(arms))
    for k, arm in enumerate(arms):
        assert oracle.about(int(inside[:, k].sum()), len(inside), chances[k])
        assert chance_within(limits, posterior, arm) == pytest.approx(chances[k], abs=1e-9)


@pytest.mark.parametrize("player", PLAYERS)
@pytest.mark.parametrize("level", [None, [1.0, -2.0, 0.5]], ids=["flat", "levels"])
def test_nothing_is_played_that_is_not_probably_within(player, level):
    game = world(intercept=level)
    policy, rng = player(game.problem, caution=0.9), np.random.default_rng(0)
    state, phases = policy.init(), set()
    for _ in range(40):
        decision = policy.ask(state, game.actions, rng)
        phases.add(decision.phase)
        assert decision.within >= 0.9 or not decision.query.action.any()
        state = policy.tell(state, decision.query, game.observe(decision.query, rng))
    assert "cautious" in phases


@pytest.mark.parametrize("solid", [ss.UnitBall(3), ss.Box([-0.5] * 3, [0.5] * 3)])
def test_in_a_solid_it_goes_as_far_as_qualifies(solid):
    game = world(actions=solid)
    policy, rng = ss.DirectedThompson(game.problem, caution=0.9), np.random.default_rng(0)
    state, lengths = policy.init(), []
    for _ in range(15):
        decision = policy.ask(state, solid, rng)
        assert decision.within >= 0.9
        assert solid.contains(decision.query.action)
        lengths.append(np.linalg.norm(decision.query.action))
        state = policy.tell(state, decision.query, game.observe(decision.query, rng))
    assert 0 < lengths[0] < 0.3
    assert max(lengths[-5:]) > lengths[0]


def test_caution_keeps_within_where_the_bold_player_does_not():
    shares = {0.0: [], 0.95: []}
    for seed in range(3):
        game = world(seed)
        for caution, found in shares.items():
            policy = ss.DirectedThompson(game.problem, caution=caution)
            found.append(beyond(game, ss.simulate(policy, game, 40, seed, compiled=False)).mean())
    assert np.mean(shares[0.95]) <= 0.05 < np.mean(shares[0.0])


@pytest.mark.slow
def test_at_most_one_round_in_twenty_is_beyond_and_most_of_the_effect_is_reached(oracle):
    rounds, kept, reached = 0, 0, []
    for seed in range(8):
        game = world(seed)
        bold, careful = (
            ss.simulate(
                ss.DirectedThompson(game.problem, caution=c), game, 500, seed, compiled=False
            )
            for c in (0.0, 0.95)
        )
        kept += int((~beyond(game, careful)).sum())
        rounds += 500
        last = [effects(game, trace)[-100:, 0].mean() for trace in (bold, careful)]
        reached.append(last[1] / last[0])
    assert oracle.at_least(kept, rounds, 0.95)
    assert np.mean(reached) >= 0.7


def test_where_nothing_but_the_baseline_qualifies_it_is_held_and_says_for_what():
    arms = ss.Arms(np.vstack([np.zeros(3), np.eye(3)]))
    game = world(actions=arms)
    policy = ss.DirectedThompson(game.problem, caution=0.95)
    rng = np.random.default_rng(1)
    for decision in [policy.ask(policy.init(), arms, rng) for _ in range(5)]:
        if decision.phase == "play":  # no arm is worth more than the baseline in this draw
            continue
        assert (decision.phase, decision.arm, decision.within) == ("held", 0, 1.0)
        assert decision.rival is not None


@pytest.mark.parametrize(("caution", "phase"), [(0.95, "held"), (0.85, "cautious")])
def test_on_the_coarse_grid_the_shortest_dose_is_within_with_87_in_100(caution, phase):
    """Three effects with spread |a| M / sqrt(d) = 0.05 each, against tolerances of 0.1: 0.954^3."""
    grid = ss.environments.dose_grid(levels=False)
    policy = ss.DirectedThompson(grid.problem, caution=caution)
    state = policy.init()
    posterior = posterior_of(policy.knobs.prior, state.evidence)
    arms = grid.actions
    chances = chances_within(grid.problem.limits, posterior, arms.columns, len(arms))
    assert np.sort(chances)[-2] == pytest.approx(0.9545**3, abs=1e-3)
    assert policy.ask(state, arms, np.random.default_rng(0)).phase == phase


def test_held_at_the_baseline_it_measures_what_teaches_where_levels_are_learned():
    arms = ss.Arms(np.vstack([np.zeros(3), np.eye(3)]))
    game = world(actions=arms, intercept=[1.0, 2.0, 3.0])
    policy, rng = ss.DirectedThompson(game.problem, caution=0.95), np.random.default_rng(1)
    state = policy.init()
    for _ in range(9):
        query = policy.ask(state, arms, rng).query
        state = policy.tell(state, query, game.observe(query, rng))
    assert (state.evidence.counts > 0).all()


def test_an_action_that_is_told_to_be_safe_is_where_it_starts():
    safe = np.array([0.6, 0.0, 0.0])
    arms = ss.Arms(np.vstack([np.eye(3), safe]))
    game = world(actions=arms)
    policy = ss.DirectedThompson(game.problem, caution=0.95, safe=safe)
    assert policy.ask(policy.init(), arms, np.random.default_rng(0)).arm == 3
    box = ss.Box([-0.3] * 3, [0.6, 0.3, 0.3])
    near = policy.ask(policy.init(), box, np.random.default_rng(0))
    assert near.within >= 0.95 or (near.query.action == safe).all()


def test_without_caution_every_decision_is_as_it_was():
    game = world()
    plain, told = (ss.DirectedThompson(game.problem, safe=safe) for safe in (None, [0.1, 0.0, 0.0]))
    first, second = (ss.simulate(policy, game, 30, compiled=False) for policy in (plain, told))
    assert (first.action == second.action).all()
    assert set(first.phase) == {"play"}


@pytest.mark.parametrize("player", PLAYERS)
def test_an_impossible_caution_is_refused(player, refusal):
    problem = world().problem
    assert "caution must lie in 0..1" in refusal(player, problem, caution=1.0)
    assert "action must have shape (3,)" in refusal(player, problem, caution=0.9, safe=[0.0])
    projected = ss.Problem(3, 2, 1, noise_scale=0.1)
    assert "caution needs the problem's tolerance" in refusal(player, projected, caution=0.9)
    away = player(problem, caution=0.9)
    box = ss.Box([0.1] * 3, [0.5] * 3)
    call = (away.init(), box, np.random.default_rng(0))
    assert "safe must be an action of the Box" in refusal(away.ask, *call)


@pytest.mark.slow
def test_compiled_and_interpreted_caution_decide_alike():
    pytest.importorskip("numba")
    game = world()
    policy = ss.DirectedThompson(game.problem, caution=0.9)
    one, other = (ss.simulate(policy, game, 100, compiled=compiled) for compiled in (False, True))
    assert (one.index == other.index).all()
    assert (one.phase == other.phase).all()
    np.testing.assert_allclose(one.action, other.action, atol=1e-12)
