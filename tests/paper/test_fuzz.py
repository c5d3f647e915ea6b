"""Random runs of all policies on all action sets: no crash, actions in their set, states survive JSON."""

import time
import warnings

import numpy as np
import pytest

import sidestep as ss
from sidestep.policies.catalog import POLICIES

SECONDS = 60
SOLIDS = ("ball", "box", "ellipsoid", "simplex")
ANY_SOLID = (
    *("epsilon-greedy", "explore-then-commit", "uniform"),
    *("protected-thompson", "directed-thompson", "information-directed"),
)
WEIGHS_COSTS = ("protected-thompson", "directed-thompson", "information-directed")


def drawn_actions(rng, kind, d):
    """A random action set; of arms some are short, doubled or zero."""
    if kind == "ball":
        return ss.UnitBall(d)
    if kind == "box":
        return ss.Box(-rng.uniform(0, 1, d), rng.uniform(0, 1, d))
    if kind == "ellipsoid":
        return ss.Ellipsoid(rng.uniform(0.1, 1.0, d), 0.2 * rng.standard_normal(d))
    if kind == "simplex":
        return ss.Simplex(d, float(rng.uniform(0.2, 2.0)))
    arms = rng.standard_normal((int(rng.integers(1, 12)), d))
    arms *= rng.choice([1e-3, 0.3, 1.0], (len(arms), 1))
    arms[rng.random(len(arms)) < 0.1] = 0.0
    return ss.Arms(np.repeat(arms, int(rng.integers(1, 3)), axis=0))


def drawn_problem(rng, name, actions):
    d, L = actions.dim, int(rng.integers(0, 6))
    known = {"subspace_dim": int(rng.integers(1, min(L, d) + 1))} if L else {}
    if L and name in WEIGHS_COSTS and rng.random() < 0.3:
        known = {"resolution": 0.2}
    noise = rng.choice([0.0, 0.01, 1.0])
    costs = tuple(rng.uniform(0.1, 3.0, L + 1)) if name in WEIGHS_COSTS else 1.0
    bound = max(float(actions.longest), 1.0)
    return ss.Problem(d, L, noise_scale=float(noise), action_bound=bound, costs=costs, **known)


def drawn_game(seed):
    """A policy, its actions and the vectors behind them."""
    rng = np.random.default_rng([20261116, seed])
    name = str(rng.choice(list(POLICIES)))
    kinds = ("arms", *SOLIDS) if name in ANY_SOLID else ("arms", "ball")
    kind = str(rng.choice(kinds, p=[0.6, *[0.4 / (len(kinds) - 1)] * (len(kinds) - 1)]))
    actions = drawn_actions(rng, kind, int(rng.integers(1, 5)))
    problem = drawn_problem(rng, name, actions)
    memory = {"memory": 10.0} if name in WEIGHS_COSTS and rng.random() < 0.3 else {}
    theta = rng.standard_normal((problem.n_vectors, problem.dim))
    theta /= np.maximum(np.linalg.norm(theta, axis=1, keepdims=True), 1.0)
    return POLICIES[name](problem, **memory), actions, theta, rng


def check_game(policy, actions, theta, rng, rounds):
    state, noise = policy.init(), float(policy.problem.noise.max())
    for _ in range(rounds):
        again = policy.state_from_json(state.to_json())
        assert again.to_json() == state.to_json()
        seed = int(rng.integers(2**32))
        here, there = (
            policy.ask(each, actions, np.random.default_rng(seed)) for each in (state, again)
        )
        assert here.query.index == there.query.index
        assert (here.query.action == there.query.action).all()
        assert actions.contains(here.query.action)
        assert here.bound is None or here.value is None or here.bound >= here.value
        query = here.query
        feedback = float(theta[query.index] @ query.action) + noise * rng.standard_normal()
        state = policy.tell(state, query, feedback)


@pytest.mark.slow
def test_random_games_crash_nowhere_and_stay_on_their_set_and_in_their_text():
    start, played = time.monotonic(), 0
    while time.monotonic() - start < SECONDS:
        policy, actions, theta, rng = drawn_game(played)
        on_ball = isinstance(actions, ss.UnitBall)
        with warnings.catch_warnings(action="ignore"):  # of arms that do not span
            try:
                check_game(policy, actions, theta, rng, rounds=4 if on_ball else 15)
            except Exception as error:
                raise AssertionError(f"game {played}: {policy!r} on {actions!r}") from error
        played += 1
    assert played >= 100
