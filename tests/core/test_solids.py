"""Boxes, ellipsoids and simplices: the farthest point is the farthest, and bad ones are refused."""

import pickle

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.actions import farthest

RNG = np.random.default_rng(5)
AXES = RNG.standard_normal((3, 3))

SOLIDS = {
    "ball": ss.UnitBall(3),
    "box": ss.Box([-0.2, 0.1, -1.0], [0.5, 0.1, 0.3]),
    "ellipsoid": ss.Ellipsoid(AXES, [0.3, -0.1, 0.2]),
    "ellipsoid by its half-axes": ss.Ellipsoid(np.array([1.0, 0.5, 0.1])),
    "simplex": ss.Simplex(3, total=0.7),
}


def points_of(name: str, count: int) -> np.ndarray:
    """Points spread over a solid."""
    rng, solid = np.random.default_rng(1), SOLIDS[name]
    inside = rng.standard_normal((count, 3))
    inside *= rng.random((count, 1)) ** (1 / 3) / np.linalg.norm(inside, axis=1, keepdims=True)
    if isinstance(solid, ss.Box):
        return solid.low + rng.random((count, 3)) * (np.asarray(solid.high) - solid.low)
    if isinstance(solid, ss.Ellipsoid):
        return solid.centre + inside @ solid.axes.T
    if isinstance(solid, ss.Simplex):
        return solid.total * rng.dirichlet(np.ones(3), count)
    return inside


@pytest.mark.parametrize("name", SOLIDS)
def test_no_point_of_a_solid_lies_farther_than_the_farthest(name):
    solid, points = SOLIDS[name], points_of(name, 2000)
    for direction in np.random.default_rng(2).standard_normal((50, 3)):
        action = farthest(solid.body, direction)
        assert solid.contains(action)
        assert (points @ direction).max() <= action @ direction + 1e-12


@pytest.mark.parametrize("name", SOLIDS)
def test_a_solid_contains_its_points_and_none_beyond_its_farthest(name):
    solid = SOLIDS[name]
    assert all(solid.contains(point) for point in points_of(name, 200))
    for direction in np.random.default_rng(3).standard_normal((20, 3)):
        assert not solid.contains(farthest(solid.body, direction) + 0.01 * direction)


@pytest.mark.parametrize("name", SOLIDS)
def test_no_action_is_longer_than_the_longest(name):
    solid = SOLIDS[name]
    lengths = np.linalg.norm(points_of(name, 2000), axis=1)
    assert lengths.max() <= solid.longest * (1 + 1e-12)


@pytest.mark.parametrize("name", SOLIDS)
def test_a_solid_can_be_pickled(name):
    twin = pickle.loads(pickle.dumps(SOLIDS[name]))
    direction = np.array([0.3, -0.4, 0.5])
    assert (farthest(twin.body, direction) == farthest(SOLIDS[name].body, direction)).all()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ss.Box([0, 0], [1]), "box must have corners low and high of one length"),
        (lambda: ss.Box([1.0], [0.0]), "box must have finite corners with low <= high"),
        (lambda: ss.Box([np.nan], [0.0]), "box must have finite corners with low <= high"),
        (lambda: ss.Box(["a"], [0.0]), "box must be an array of numbers"),
        (lambda: ss.Ellipsoid(np.ones((2, 3))), "axes must have shape"),
        (lambda: ss.Ellipsoid(np.ones((2, 2))), "axes must be independent"),
        (lambda: ss.Ellipsoid(np.eye(2), [1.0]), "centre must have shape (2,)"),
        (lambda: ss.Ellipsoid(np.diag([1.0, np.inf])), "axes and centre must be finite"),
        (lambda: ss.Simplex(0), "dim must be an integer >= 1"),
        (lambda: ss.Simplex(2, total=-1.0), "total must be positive and finite"),
    ],
)
def test_wrong_arguments_of_a_solid_are_refused_with_a_sentence(make, sentence, refusal):
    assert refusal(make).startswith(sentence)


def test_a_solid_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        SOLIDS["box"].low[0] = 3.0
