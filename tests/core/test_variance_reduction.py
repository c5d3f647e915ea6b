"""Variance reduction by one measurement: as predicted, and no other measurement removes more."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.arm_forms import Menu
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.posterior import Posterior
from sidestep.core.variance_reduction import (
    most_telling,
    most_telling_action,
    most_telling_arm,
    reduction,
    variance,
)

RHO = np.full(2, 0.27)


def unit_rows(count, dim, rng):
    rows = rng.standard_normal((count, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def evidence_of():
    rng, evidence = np.random.default_rng(0), no_evidence(RHO, 3)
    for turn, action in enumerate(unit_rows(30, 3, rng)):
        absorb(evidence, RHO, action, turn % 2, rng.standard_normal())
    return evidence


def held_of(evidence):
    return Posterior(evidence.centre, evidence.inverse, np.array([0.3, 0.6]))


def test_a_measurement_removes_the_predicted_variance():
    evidence = evidence_of()
    slope, action = np.array([0.3, -0.2, 0.9]), np.array([0.6, 0.0, 0.8])
    slopes = np.vstack([np.zeros(3), slope])
    before = variance(held_of(evidence), slopes)
    announced = reduction(held_of(evidence), 1, slope, action)
    absorb(evidence, RHO, action, 1, 0.1)
    assert before - variance(held_of(evidence), slopes) == pytest.approx(announced, rel=1e-9)


def test_the_most_telling_arm_is_the_one_that_trying_them_all_finds():
    posterior, rng = held_of(evidence_of()), np.random.default_rng(3)
    arms, slopes = ss.Arms(unit_rows(40, 3, rng)), rng.standard_normal((2, 3))
    costs = np.array([1.0, 2.5])
    table = np.array(
        [
            [reduction(posterior, v, slopes[v], np.array(arm)) / costs[v] for v in range(2)]
            for arm in arms.vectors
        ]
    )
    arm, v, most = most_telling_arm(posterior, costs, slopes, Menu(arms.columns, arms.squared))
    assert (arm, v) == np.unravel_index(table.argmax(), table.shape)
    assert most == pytest.approx(table.max(), rel=1e-9)
    along, told = most_telling(posterior, costs, slopes, np.array(arms.vectors[7]))
    assert (along, told) == (table[7].argmax(), pytest.approx(table[7].max(), rel=1e-9))


@pytest.mark.parametrize("dim", [3, 12])
def test_arms_that_are_left_out_by_their_bound_are_never_the_most_telling(dim):
    rng = np.random.default_rng(dim)
    for _ in range(20):
        roots = rng.standard_normal((5, dim, dim)) * rng.uniform(0.01, 3, (5, 1, 1))
        inverse = roots @ roots.transpose(0, 2, 1)
        posterior = Posterior(np.zeros((5, dim)), inverse, rng.uniform(0.1, 1, 5))
        arms, slopes = ss.Arms(unit_rows(60, dim, rng)), rng.standard_normal((5, dim))
        table = np.array(
            [
                [reduction(posterior, v, slopes[v], np.array(arm)) for v in range(5)]
                for arm in arms.vectors
            ]
        )
        arm, v, _ = most_telling_arm(
            posterior, np.ones(5), slopes, Menu(arms.columns, arms.squared)
        )
        assert (arm, v) == np.unravel_index(table.argmax(), table.shape)


def test_of_arms_that_tell_equally_much_the_lowest_is_taken():
    posterior = held_of(evidence_of())
    arms = ss.Arms(np.repeat(unit_rows(8, 3, np.random.default_rng(5)), 3, axis=0))
    slopes = np.array([[0.3, -0.2, 0.9], [0.1, 0.5, 0.2]])
    menu = Menu(arms.columns, arms.squared)
    assert most_telling_arm(posterior, np.ones(2), slopes, menu)[0] % 3 == 0
    assert most_telling_arm(posterior, np.ones(2), np.zeros((2, 3)), menu) == (0, 0, 0.0)


@pytest.mark.parametrize(
    ("solid", "share"),
    [(ss.UnitBall(3), 1.0), (ss.Box(-np.ones(3), np.ones(3)), 0.9), (ss.Simplex(3), 0.9)],
)
def test_no_action_of_a_solid_tells_much_more_than_the_one_found(solid, share):
    """Exactly on the ball; elsewhere the denominator of red is left out of the search."""
    posterior, rng = held_of(evidence_of()), np.random.default_rng(4)
    slopes, costs = rng.standard_normal((2, 3)), np.ones(2)
    action, v, most = most_telling_action(posterior, costs, slopes, solid.body, np.ones(3))
    assert solid.contains(action)
    if isinstance(solid, ss.UnitBall):
        points = unit_rows(4000, 3, rng)
    elif isinstance(solid, ss.Box):
        points = rng.uniform(-1, 1, (4000, 3))
    else:
        points = rng.dirichlet(np.ones(3) * 0.3, 4000)
    tried = [reduction(posterior, v, slopes[v], point) for v in range(2) for point in points]
    assert most >= share * max(tried) * (1 - 1e-9)
    assert most == pytest.approx(reduction(posterior, v, slopes[v], action), rel=1e-9)
