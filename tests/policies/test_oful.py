"""OFUL: the standard linear bandit, step by step against numpy; blind to protection."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import FreshArms, Instance, Menus, synthetic
from sidestep.environments.action_sources import draw_actions
from sidestep.experiments.random_streams import streams_of

ARMS = np.random.default_rng(8).standard_normal((15, 4))
ARMS /= np.linalg.norm(ARMS, axis=1, keepdims=True)
SOURCES = {
    "fixed": ss.Arms(ARMS),
    "fresh": FreshArms(12, 4),
    "changing": Menus([ARMS[:6], ARMS[6:]]),
}


def reference(world, horizon, rho, delta, radius, seed):
    """OFUL of Abbasi-Yadkori et al. in numpy: solves anew in every round."""
    arms, noise, _ = streams_of(seed)
    d, R = world.problem.dim, world.problem.noise[0]
    precision, moment = rho * np.eye(d), np.zeros(d)
    for t in range(horizon):
        menu = draw_actions(world.actions, arms).vectors
        centre = np.linalg.solve(precision, moment)
        if radius == "logdet":
            spread = np.linalg.slogdet(precision)[1] - d * np.log(rho) + 2 * np.log(1 / delta)
        else:
            spread = d * np.log((1 + t / rho) / delta)
        reach = R * np.sqrt(spread) + np.sqrt(rho)
        squares = np.einsum("kj,kj->k", menu, np.linalg.solve(precision, menu.T).T)
        upper = menu @ centre + reach * np.sqrt(squares)
        arm = int(np.flatnonzero(upper >= upper.max() * (1 - 1e-10))[0])  # ties: lowest
        x = menu[arm] @ world.theta[0] + R * noise.standard_normal()
        precision = precision + np.outer(menu[arm], menu[arm])
        moment = moment + x * menu[arm]
        yield arm, upper[arm], x


@pytest.mark.full
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("radius", ["logdet", "printed"])
@pytest.mark.parametrize("noise", [0.05, 1.0])
def test_without_protection_it_is_oful_step_by_step(source, radius, noise):
    world = synthetic(4, 0, 0, SOURCES[source], noise_scale=noise, seed=2)
    policy = ss.OFUL(world.problem, rho=0.3, delta=0.05, radius=radius)
    trace = ss.simulate(policy, world, 400, seed=6)
    arms, values, feedback = zip(*reference(world, 400, 0.3, 0.05, radius, 6), strict=True)
    assert trace.arm.tolist() == list(arms)
    np.testing.assert_allclose(trace.value, values, rtol=1e-9)
    np.testing.assert_allclose(trace.feedback, feedback, rtol=0, atol=1e-12)


@pytest.mark.parametrize("source", [*SOURCES, "ball"])
def test_protected_vectors_change_nothing(source):
    actions = SOURCES.get(source, ss.UnitBall(4))
    theta = synthetic(4, 3, 2, 5, seed=2).theta
    guarded = Instance(theta, actions, noise_scale=0.1)
    bare = Instance(theta[:1], actions, noise_scale=0.1)
    one, other = (ss.simulate(ss.OFUL(world.problem), world, 80) for world in (guarded, bare))
    assert (one.action == other.action).all()
    assert (one.feedback == other.feedback).all()
    assert one.counts.tolist() == [80, 0, 0, 0]


def test_ignoring_protection_costs_regret_in_every_round():
    """The target has a large protected part: the best arm for the target is not the best arm."""
    theta = [[0.8, 0.6], [1.0, 0.0]]
    world = Instance(theta, ss.Arms([[0.8, 0.6], [0.0, 1.0]]), noise_scale=0.01)
    blind = ss.simulate(ss.OFUL(world.problem), world, 300)
    assert (blind.arm[-100:] == 0).all()
    assert blind.regret[-100:] == pytest.approx(0.6 - 0.36)


def test_on_the_ball_it_finds_the_target():
    world = synthetic(4, 0, 0, ss.UnitBall(4), noise_scale=0.01, seed=2)
    trace = ss.simulate(ss.OFUL(world.problem), world, 300)
    assert trace.regret[-50:].mean() < 0.1 * trace.regret[:10].mean()


def test_on_the_ball_it_plays_towards_the_longest_plausible_vector():
    """Against brute force: no direction has a larger <a, centre> + radius |a|_{V^-1}."""
    world = synthetic(3, 0, 0, ss.UnitBall(3), noise_scale=0.5, seed=2)
    policy = ss.OFUL(world.problem)
    directions = np.random.default_rng(1).standard_normal((100_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    state = policy.init()
    rng, noise = np.random.default_rng(2), np.random.default_rng(3)
    for _ in range(25):
        decision = policy.ask(state, ss.UnitBall(3), rng)
        precision = state.evidence.gram[0] + 0.1 * np.eye(3)
        centre = np.linalg.solve(precision, state.evidence.moment[0])
        growth = np.linalg.slogdet(precision)[1] - 3 * np.log(0.1)
        reach = 0.5 * np.sqrt(growth - 2 * np.log(0.001)) + np.sqrt(0.1)
        squares = np.einsum("kj,kj->k", directions, np.linalg.solve(precision, directions.T).T)
        best = (directions @ centre + reach * np.sqrt(squares)).max()
        assert best * (1 - 1e-9) <= decision.value <= best * 1.001
        assert decision.bound == pytest.approx(decision.value, rel=1e-9)
        state = policy.tell(state, decision.query, world.observe(decision.query, noise))
