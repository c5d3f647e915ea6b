"""Where actions come from: fixed arms, fresh unit vectors, one of several menus, the ball."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import FreshArms, Instance, Menus
from sidestep.environments.action_sources import draw_actions

A, B = np.eye(2), np.array([[0.6, 0.8]])


def test_fixed_actions_are_the_same_and_take_no_chance():
    for source in (ss.Arms(A), ss.UnitBall(2)):
        rng = np.random.default_rng(0)
        before = rng.bit_generator.state
        assert draw_actions(source, rng) is source
        assert rng.bit_generator.state == before


@pytest.mark.parametrize(("count", "dim"), [(1, 1), (7, 3), (100, 6)])
def test_fresh_arms_are_unit_vectors_and_new_every_round(count, dim):
    rng = np.random.default_rng(0)
    one, other = (draw_actions(FreshArms(count, dim), rng) for _ in range(2))
    for arms in (one, other):
        assert arms.vectors.shape == (count, dim)
        np.testing.assert_allclose(np.linalg.norm(arms.vectors, axis=1), 1.0, rtol=1e-15)
    if dim > 1:
        assert not np.isclose(one.vectors, other.vectors).any()


def test_fresh_arms_come_evenly_from_the_sphere(oracle):
    rng = np.random.default_rng(1)
    drawn = draw_actions(FreshArms(20_000, 3), rng).vectors
    for axis in range(3):
        assert oracle.mean_about(drawn[:, axis], 0.0)
        # Archimedes: a coordinate of an even point on the sphere of R^3 is itself even on [-1, 1]
        for low in (-1.0, -0.5, 0.0, 0.5):
            inside = (drawn[:, axis] >= low) & (drawn[:, axis] < low + 0.5)
            assert oracle.about(int(inside.sum()), len(drawn), 0.25)


def test_a_run_meets_fresh_arms_every_round():
    instance = Instance(np.eye(3), FreshArms(5, 3))
    trace = ss.simulate(ss.Uniform(instance.problem), instance, 50)
    assert len(np.unique(trace.action, axis=0)) == 50
    np.testing.assert_allclose(np.linalg.norm(trace.action, axis=1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("weights", [[0.2, 0.8], [1, 3], [0.0, 2.0], None])
def test_menus_come_with_their_weights(oracle, weights):
    source = Menus([A, B], weights)
    rng = np.random.default_rng(2)
    drawn = [draw_actions(source, rng) for _ in range(5_000)]
    second = sum(len(arms) == 1 for arms in drawn)
    share = 0.5 if weights is None else weights[1] / sum(weights)
    assert oracle.about(second, 5_000, share)
    if share == 1:
        assert second == 5_000


@pytest.mark.full
@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_meets_menus_with_their_weights(oracle, compiled):
    instance = Instance(np.eye(2), Menus([A, B], [0.2, 0.8]))
    trace = ss.simulate(ss.Uniform(instance.problem), instance, 2_000, seed=5, compiled=compiled)
    second = (trace.action == B[0]).all(axis=1)
    assert oracle.about(int(second.sum()), 2_000, 0.8)


def test_menus_may_be_arms_or_arrays_of_any_sizes():
    source = Menus([ss.Arms(A), B, np.vstack([A, B])])
    assert [len(menu) for menu in source.menus] == [2, 1, 3]
    assert (source.dim, source.longest) == (2, 1.0)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: FreshArms(0, 3), "count must be an integer >= 1, got 0"),
        (lambda: FreshArms(2.5, 3), "count must be an integer >= 1, got 2.5"),
        (lambda: FreshArms(3, 0), "dim must be an integer >= 1, got 0"),
        (lambda: ss.UnitBall(0), "dim must be an integer >= 1, got 0"),
        (lambda: Menus([]), "menus must be one or more arm sets of the same dimension, got"),
        (lambda: Menus([A, np.eye(3)]), "same dimension, got dimensions [2, 3]"),
        (lambda: Menus([A, np.zeros((0, 2))]), "arms must be a non-empty array"),
        (lambda: Menus([A, B], [1.0]), "weights must be 2 numbers"),
        (lambda: Menus([A, B], [1.0, -1.0]), "weights must be 2 numbers, none negative"),
        (lambda: Menus([A, B], [0.0, 0.0]), "not all zero, got [0.0, 0.0]"),
        (lambda: Menus([A, B], [1.0, np.nan]), "weights must be 2 numbers"),
        (lambda: Menus([A, B], [1.0, np.inf]), "weights must be 2 numbers"),
        (lambda: Menus([A, [[np.nan, 0.0]]]), "arms must be finite numbers"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(refusal, make, expected):
    assert expected in refusal(make)
