"""The simulations behind the tables of docs/theory.md."""

import numpy as np

import sidestep as ss
from benchmarks.theory_tables import (
    EQUAL,
    PROPORTIONAL,
    into_cone,
    last_direction,
    three_stages,
    vectors,
)
from sidestep.core import theory
from sidestep.environments import Instance


def shares_of_the_price(dim, size, horizon, shares, runs):
    theta = vectors(dim, size, 1)
    price = theory.price_of_protection(Instance(theta, ss.UnitBall(dim), noise_scale=1.0))
    rng = np.random.default_rng(7)
    costs = [three_stages(theta, 1.0, horizon, shares, rng) for _ in range(runs)]
    return np.array(costs) / price.regret(horizon)


def test_the_three_stages_approach_the_price(oracle):
    for dim, size in ((4, 1), (6, 4)):
        near, far = (shares_of_the_price(dim, size, T, PROPORTIONAL, 3000) for T in (1e10, 1e22))
        assert far.mean() < near.mean()
        assert oracle.mean_at_most(far, 1.05)
        assert not oracle.mean_at_most(far, 0.9)


def test_equal_shares_cost_what_the_proof_says(oracle):
    theta = vectors(4, 1, 1)
    price = theory.price_of_protection(Instance(theta, ss.UnitBall(4), noise_scale=1.0))
    squares = 2 * (1 + float(price.coefficients @ price.coefficients))
    predicted = (1 + squares / price.noise**2) / 2  # the budget is that of the proportional shares
    assert oracle.mean_about(shares_of_the_price(4, 1, 1e24, EQUAL, 600), predicted)


def test_where_one_direction_is_left_every_phase_costs_the_same():
    """Theorem 14: so the regret grows like the number of phases, log T."""
    theta, rng = vectors(4, 3, 2), np.random.default_rng(0)
    costs = np.mean([last_direction(theta, 0.1, 40, rng) for _ in range(400)], axis=0)
    late = costs[20:]
    assert late.max() < 1.5 * late.min()
    assert late.max() < 3 * costs[:20].max()


def test_the_nearest_direction_of_the_cone_is_in_it_and_leaves_its_own_alone():
    axis, rng = np.eye(3)[0], np.random.default_rng(1)
    for _ in range(100):
        direction = axis + 0.2 * rng.standard_normal(3)
        direction /= np.linalg.norm(direction)
        moved = into_cone(direction, axis)
        sine = np.sqrt(max(1 - (moved @ axis) ** 2, 0))
        assert sine <= 1 / 15 + 1e-9
        assert abs(np.linalg.norm(moved) - 1) < 1e-12
        if np.sqrt(1 - (direction @ axis) ** 2) <= 1 / 15:
            np.testing.assert_array_equal(moved, direction)
