"""Aims: what an action is worth, its gradient, and the two properties that `within` is chosen for."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.objective import (
    projected,
    rests,
    value_within,
    values_within,
    within,
)
from sidestep.core.problem import limits_of
from sidestep.core.projection import pooled_frame
from sidestep.core.tolerance_program import best_within


def some(seed, d=5, n_protected=3):
    """Random vectors, arms and limits: one two-sided, one only upwards, one without any."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(n_protected + 1, d)) / np.sqrt(d)
    pairs = ((-0.1, 0.2), (-np.inf, 0.1), (-np.inf, np.inf))[:n_protected]
    return vectors, rng.normal(size=(30, d)) / 2, limits_of(pairs, (2.0, 3.0, 0.0)[:n_protected])


def by_hand(vectors, action, limits):
    value = action @ vectors[0]
    for i, vector in enumerate(vectors[1:]):
        effect = action @ vector
        over = max(0.0, effect - limits.high[i], limits.low[i] - effect)
        value -= limits.penalty[i] * over
    return value


@pytest.mark.parametrize("seed", range(5))
def test_draws_and_arms_at_once_are_worth_what_each_is_by_hand(seed):
    vectors, arms, limits = some(seed)
    draws = np.stack([vectors, -vectors, 2 * vectors])
    values = within(draws, arms, limits)
    assert values.shape == (3, 30)
    for n, drawn in enumerate(draws):
        np.testing.assert_allclose(values[n], [by_hand(drawn, a, limits) for a in arms], atol=1e-12)
        np.testing.assert_allclose(
            values_within(limits, drawn, arms.T.copy(), len(arms)), values[n], atol=1e-12
        )
        assert value_within(limits, drawn, arms[4]) == pytest.approx(values[n, 4], abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_projected_is_the_reward_of_the_pooled_frame(seed, rank):
    vectors, arms, _ = some(seed)
    weights = np.random.default_rng(seed).uniform(0.1, 1, 4)
    draws = np.stack([vectors, vectors[::-1]])
    rewards = projected(draws, arms, rank, weights)
    for n, drawn in enumerate(draws):
        rest = pooled_frame(drawn, weights, rank).rest
        np.testing.assert_allclose(rests(draws, rank, weights)[n], rest, atol=1e-12)
        np.testing.assert_allclose(rewards[n], arms @ rest, atol=1e-12)


def test_without_protection_or_with_endless_tolerance_it_is_the_plain_linear_bandit():
    vectors, arms, _ = some(0)
    alone = within(vectors[None, :1], arms, limits_of((), ()))
    endless = within(vectors[None], arms, limits_of(((-np.inf, np.inf),) * 3, (5.0,) * 3))
    np.testing.assert_allclose(alone, (arms @ vectors[0])[None], atol=1e-15)
    np.testing.assert_allclose(endless, alone, atol=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_on_the_ball_without_tolerance_the_penalty_decides_whether_the_best_is_the_papers(seed):
    """An exact penalty: the paper's own action above every |x_i|, and not below the largest."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(4, 6))
    coefficients = np.linalg.lstsq(vectors[1:].T, vectors[0], rcond=None)[0]
    rest = vectors[0] - coefficients @ vectors[1:]
    papers = rest / np.linalg.norm(rest)
    largest = np.abs(coefficients).max()
    ball = ss.UnitBall(6).body
    for factor, same in ((1.02, True), (0.98, False)):
        limits = limits_of(((0.0, 0.0),) * 3, (factor * largest,) * 3)
        action, value = best_within(ball, limits, vectors)
        assert np.allclose(action, papers, atol=1e-5) == same
        assert value >= by_hand(vectors, papers, limits) - 1e-9


def test_rescaling_a_lever_keeps_the_best_candidate_within_tolerances_and_not_projected():
    """60 candidates of four factors, one of them in other units (times 0.01 or 100)."""
    kept, kept_projected = 0, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        vectors, arms = rng.normal(size=(3, 4)), rng.uniform(0, 1, (60, 4))
        limits = limits_of(((-0.3, 0.3),) * 2, (5.0,) * 2)
        best, papers = set(), set()
        for factor in (1.0, 0.01, 100.0):
            unit = np.array([1.0, factor, 1.0, 1.0])
            best.add(int(np.argmax(within(vectors / unit, arms * unit, limits))))
            papers.add(int(np.argmax(projected(vectors / unit, arms * unit, 2))))
        kept += len(best) == 1
        kept_projected += len(papers) == 1
    assert kept == 20
    assert kept_projected <= 10


SOLIDS = {
    "ball": ss.UnitBall(4),
    "box": ss.Box([-0.5, 0.0, -0.2, -0.4], [0.5, 0.6, 0.3, 0.1]),
    "ellipsoid": ss.Ellipsoid(np.diag([0.5, 1.0, 0.2, 0.7]), [0.1, -0.2, 0.0, 0.1]),
    "simplex": ss.Simplex(4, 0.8),
}


@pytest.mark.parametrize("name", SOLIDS)
@pytest.mark.parametrize("seed", range(4))
def test_no_point_of_a_solid_beats_the_action_that_the_program_finds(name, seed):
    solid, rng = SOLIDS[name], np.random.default_rng(seed)
    vectors = rng.normal(size=(4, 4))
    limits = limits_of(((-0.05, 0.1), (-np.inf, 0.1), (0.0, 0.0)), (1.0, 2.0, 0.7))
    action, value = best_within(solid.body, limits, vectors)
    assert solid.contains(action)
    assert value == pytest.approx(by_hand(vectors, action, limits), abs=1e-12)
    points = inside(solid, rng, 20_000)
    points = np.vstack([points, action + 0.02 * (points - action)])  # and around the action
    assert all(solid.contains(point) for point in points[::500])
    assert within(vectors[None], points, limits).max() <= value + 1e-8


def inside(solid, rng, count):
    """Random points of a solid."""
    if isinstance(solid, ss.Box):
        return rng.uniform(solid.low, solid.high, (count, solid.dim))
    if isinstance(solid, ss.Simplex):
        return solid.total * rng.dirichlet(np.full(solid.dim, 0.5), count)
    directions = rng.normal(size=(count, solid.dim))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    points = directions * rng.uniform(0, 1, (count, 1)) ** 0.2
    return points if isinstance(solid, ss.UnitBall) else solid.centre + points @ solid.axes.T
