"""The measurement of guardrails: what it counts."""

import numpy as np
import pytest

from benchmarks.guardrails import WORLDS, Advice, advice_of, advice_row, chance_cost, ratio


def test_the_ratio_of_a_player_to_itself_is_one_and_its_interval_has_no_width():
    paid = np.random.default_rng(0).uniform(1, 2, 30)
    assert ratio(paid, paid) == pytest.approx((1.0, 1.0, 1.0))
    middle, low, high = ratio(paid, 2 * np.flip(paid))
    assert middle == pytest.approx(0.5)
    assert low < middle < high


def test_shares_are_of_those_runs_that_say_within():
    right = Advice(True, True, True, (5, 5), (4, 4), True)
    wrong = right._replace(within=False, effects=(3, 5), loss_held=False)
    quiet = right._replace(said=False, is_clear=False)
    row = advice_row("arms", 0.1, [right, wrong, quiet])
    cells = ["1 of 2 (50.0%)", "2 of 2 (100.0%)", "13 of 15 (86.7%)", "12 of 12 (100.0%)"]
    assert [cell.strip() for cell in row.split("|")[3:7]] == cells


def test_the_cost_of_chance_is_the_mean_regret_over_all_arms():
    world = WORLDS["arms"].make(0, 0.1)
    worths = np.array([world.reward(arm) for arm in world.actions.vectors])
    assert chance_cost(world) == pytest.approx(worths.max() - worths.mean())


@pytest.mark.slow
def test_advice_is_judged_with_learned_levels():
    short = WORLDS["grid"]._replace(advised=60)
    found = advice_of(short, 0.05, 1)
    assert found.is_clear  # the zero action is on the menu
    assert found.effects[1] == 4
