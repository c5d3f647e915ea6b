"""Expected regret and directed information: small cases that can be worked out by hand."""

import math

import numpy as np
import pytest

from sidestep.core.arm_forms import Menu
from sidestep.core.information_ratio import (
    Mixture,
    best_measurement,
    best_mixture,
    dearer,
    information,
    pays_back,
    picked,
    standing,
)
from sidestep.core.objective import expected_gain
from sidestep.core.posterior import Posterior
from sidestep.core.variance_reduction import variance


def test_expected_gain_is_the_mean_of_a_positive_part(oracle):
    rng = np.random.default_rng(0)
    for behind, spread in [(0.0, 1.0), (0.5, 1.0), (2.0, 0.7), (-0.3, 0.4)]:
        draws = np.maximum(rng.normal(-behind, spread, 40_000), 0.0)
        assert oracle.mean_about(draws, expected_gain(behind, spread))
    assert expected_gain(1.0, 0.0) == 0.0
    assert expected_gain(-1.0, 0.0) == 1.0


def test_if_all_draws_agree_the_rival_still_has_an_expected_gain():
    values = np.array([[1.0, 0.8, 0.0], [1.1, 0.7, 0.0], [0.9, 0.85, 0.0]])
    stand = standing(values)
    assert stand.leader == 0
    assert stand.rival == 1
    assert (stand.winners == 0).all()
    assert 0 < stand.regret[0] < 0.05
    assert stand.regret[1] - stand.regret[0] == pytest.approx(1.0 - 2.35 / 3)


def test_expected_regret_is_what_the_best_of_every_draw_has_more():
    values = np.array([[1.0, 0.0], [0.0, 1.0]])
    stand = standing(values)
    assert stand.winners.tolist() == [0, 1]
    assert stand.regret[0] == pytest.approx(max(0.5, expected_gain(0.0, math.sqrt(2))))


@pytest.fixture
def posterior():
    rng = np.random.default_rng(1)
    root = rng.standard_normal((3, 4, 4))
    inverse = np.linalg.inv(np.einsum("vij,vkj->vik", root, root) + np.eye(4))
    return Posterior(rng.standard_normal((3, 4)), inverse, np.array([0.5, 1.0, 2.0]))


def test_information_is_what_a_measurement_leaves_of_the_variance(posterior):
    rng = np.random.default_rng(2)
    arms, slopes = rng.standard_normal((5, 4)), rng.standard_normal((3, 4))
    menu = Menu(np.ascontiguousarray(arms.T), (arms**2).sum(axis=1))
    found = information(posterior, slopes[None], menu)
    for v in range(3):
        for k, arm in enumerate(arms):
            after = posterior.inverse.copy()
            after[v] = np.linalg.inv(np.linalg.inv(posterior.inverse[v]) + np.outer(arm, arm))
            left = variance(posterior._replace(inverse=after), slopes)
            assert found[v, k] == pytest.approx(-math.log(left / variance(posterior, slopes)))


def test_the_best_measurement_weighs_costs():
    told = np.array([[0.5, 0.2], [0.6, 0.3]])
    best, vector = best_measurement(told, np.array([1.0, 2.0]))
    assert vector.tolist() == [0, 0]
    assert best.tolist() == [0.5, 0.2]


def test_a_mixture_is_as_good_as_every_mixture_of_a_fine_grid():
    rng = np.random.default_rng(3)
    for _ in range(50):
        regret, information = rng.random(6) + 0.01, rng.random(6)
        mixture = best_mixture(regret, information)
        shares, chosen = (mixture.share, 1 - mixture.share), [mixture.first, mixture.second]
        r, i = (np.dot(shares, values[chosen]) for values in (regret, information))
        q = np.linspace(0, 1, 101)[:, None, None]
        mixed = (
            q * regret[:, None] + (1 - q) * regret,
            q * information[:, None] + (1 - q) * information,
        )
        assert r**2 / i <= (mixed[0] ** 2 / mixed[1]).min() * (1 + 1e-9)


def test_a_coin_picks_the_first_arm_of_a_mixture_as_often_as_its_share_says():
    mixture = Mixture(3, 1, 0.25)
    assert [picked(mixture, coin) for coin in (0.0, 0.2, 0.25, 0.9)] == [3, 3, 1, 1]
    assert dearer(np.array([0.0, 0.4, 0.0, 0.1]), mixture) == 1


def test_a_question_is_asked_at_once_where_it_earns_its_price_in_as_many_rounds_as_were_played():
    settled, price, least = 50.0, 0.6, 0.1  # one answer leaves nothing open
    assert not pays_back(least, price, settled, 5.0)
    assert pays_back(least, price, settled, 7.0)
    quarter = math.log(4.0)  # of the variance: half of the deviation, and of the regret, is left
    assert not pays_back(least, price, quarter, 11.0)
    assert pays_back(least, price, quarter, 13.0)
