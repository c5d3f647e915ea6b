"""The benchmark of bends: its worlds are the published ones, and it judges by the truth."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.bend_rivals import plan
from benchmarks.bend_studies import (
    GUARD,
    WITHOUT,
    Cell,
    Grounds,
    Look,
    Nature,
    looks_of,
    play,
    promise,
    read,
    run,
    summary,
)
from benchmarks.bend_worlds import FAMILIES, formulas, random_world
from benchmarks.few_results import ROWS, pairs
from sidestep.studies.learning.next_question import Asked


def test_tyre_and_chemistry_are_the_published_models_at_their_centres_and_corners():
    tire, chem = formulas()["tire"], formulas()["chem"]
    assert tire.truth[:, tire.base] == pytest.approx([139.12, 1261.11, 400.38, 68.91])
    corner = tire.settings.index({"silica": 1.0, "silane": 1.0, "sulfur": 1.0})
    assert tire.truth[0, corner] == pytest.approx(
        139.12 + 16.49 + 17.88 + 10.91 - 4.01 - 3.45 - 1.57 + 5.13 + 7.13 + 7.88
    )
    at = chem.settings.index({"time": 1.0, "temperature": 0.0})
    assert chem.truth[0, at] == pytest.approx(79.94 + 0.995 - 1.376)
    # the yield is largest at (.389, .306), so no candidate is better than there
    assert chem.truth[0].max() == pytest.approx(80.21, abs=0.02)


@pytest.mark.parametrize("name", ["emax", "convex"])
def test_clinics_that_bend_have_the_effects_of_the_straight_one_at_full_dose(name):
    straight, bent = formulas()["clinic"], formulas()[name]
    drug = [s for s in straight.settings if s["lisinopril"] == 20 and s["chlortalidone"] == 0]
    none, half, full = (straight.settings.index({**drug[0], "amlodipine": d}) for d in (0, 5, 10))
    pressure = bent.truth[0] - bent.truth[0, none]
    assert pressure[full] == pytest.approx(straight.truth[0, full] - straight.truth[0, none])
    assert pressure[half] < straight.truth[0, half] - straight.truth[0, none] < 0  # saturates
    rate = bent.truth[4] - bent.truth[4, none]
    assert (rate[half] > rate[full] / 2) == (name == "emax")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("factors", [2, 4, 9])
def test_a_random_world_has_something_to_find_and_something_to_fear(family, factors):
    world = random_world(family, 3, factors)
    assert world.best > 0.05
    assert not world.within.all()
    assert world.within[world.base]
    assert world.given_up(world.base) == 1
    best = int(np.argmax(np.where(world.within, world.effects[0], -np.inf)))
    assert world.given_up(best) == 0
    assert world.excess(best) <= 1e-9
    assert all(world.excess(int(number)) > 0 for number in np.flatnonzero(~world.within))
    assert len(world.settings) <= 800


def test_a_run_that_was_stopped_goes_on_to_the_same_file(tmp_path):
    cells = [Cell("chem", last=8), Cell("optima", visits=True, factors=2, last=4)]
    run(cells, tmp_path / "once", Grounds(), 3)
    run(cells, tmp_path / "twice", Grounds(), 1)
    longer = [Cell("chem", last=15), cells[1]]
    run(longer, tmp_path / "twice", Grounds(), 3)
    once, twice = read(tmp_path / "once"), read(tmp_path / "twice")
    assert once[cells[1].key()] == twice[cells[1].key()]
    for seed, looks in once[cells[0].key()].items():
        assert twice[cells[0].key()][seed] == looks | {15: twice[cells[0].key()][seed][15]}
    assert len((tmp_path / "twice").read_text().splitlines()) == 7  # one was too short
    assert {stop: len(looks) for stop, looks in looks_of(once, cells[1]).items()} == {2: 3, 4: 3}


def test_what_is_measured_has_the_noise_the_level_and_the_faults_of_its_cell():
    ground = Grounds().of(Cell("clinic"), 0)
    noise = ground.world.noise / ground.world.half
    at = 7

    def results(**how):
        nature = Nature(Cell("clinic", last=10, **how), ground, 1)
        return [nature.result(1, at, 10) for _ in range(2000)]

    effect, level = ground.world.effects[1][at], (4.2 - 4.5) / 1.5
    four = 4 / np.sqrt(2000)  # four standard errors
    plain = np.array([r.value for r in results()]) - effect - level
    assert abs(plain.mean()) < four * noise[1]
    assert plain.std() == pytest.approx(noise[1], rel=four)
    assert abs(np.mean([r.value for r in results(level="told")]) - effect) < four * noise[1]
    drift = np.mean([r.value for r in results(wrong="drift")]) - effect - level
    assert abs(abs(drift) - noise[1]) < four * noise[1]
    change = np.array([r.value for r in results(wrong="change")]) - effect
    assert change.std() == pytest.approx(np.sqrt(2) * noise[1], rel=four)
    for wrong, scale in (("se", 1.0), ("half", 2.0)):
        shares = [(r.value - effect - level) / r.se for r in results(wrong=wrong)]
        assert np.std(shares) == pytest.approx(scale, rel=four)
    gross = np.array([r.value for r in results(wrong="gross")]) - effect - level
    share = np.mean(np.abs(gross) > 5 * noise[1])
    assert 0.005 < share < 0.03  # of one in fifty, those that stand out


def test_shares_beyond_and_of_the_card_are_of_moves_and_errors_fall_with_their_root():
    stay = Look(1.0, False, False, 1.0, None, None, 0.0, 0)
    right = Look(0.2, True, False, 0.9, 1.0, 0.97, 0.0, 1)
    wrong = Look(0.0, True, True, 0.5, 0.5, 0.99, 0.4, 2)
    found = summary([stay, right, wrong] * 12)
    assert (found.studies, found.moves) == (36, 24)
    assert found.given_up[0] == pytest.approx(0.4)
    assert found.beyond == pytest.approx((0.5, np.sqrt(0.25 / 23)))
    thrice = summary([right, wrong] * 36, [number // 6 for number in range(72)])
    assert thrice.beyond == pytest.approx((0.5, 0.0))  # every study has as many right as wrong
    twice = summary([right, right, wrong, wrong] * 12, [number // 2 for number in range(48)])
    assert twice.beyond == found.beyond  # two looks at a study are worth one
    assert found.card[0] == pytest.approx(0.75)
    assert found.gap[0] == pytest.approx(0.98 - 0.5)
    assert found.breaks(promise(Cell("emax"), 30)) == "beyond, covered, card"
    assert summary([right] * 20).breaks(promise(Cell("emax"), 30)) == "covered"
    assert not summary([right] * 20).breaks(promise(Cell("slump", visits=True), 8))


def test_six_earlier_results_at_the_baseline_are_counted_as_results():
    cell = Cell("clinic", visits=True, earlier=6, last=2)
    asked = []

    def question(inquiry, panel):
        asked.append(list(inquiry.counts))
        return Asked(int(inquiry.contenders[0]), tuple(range(panel)))

    list(play(cell, Grounds().of(cell, 0), 0, choose=question))
    assert asked == [[6] * 5, [7] * 5]


def test_every_row_of_few_results_is_played_by_a_cell_that_stops_where_it_is_shown():
    for row in ROWS:
        assert set(row.most) <= set(row.cell.stops), row.name
        assert row.cell.world in (*formulas(), *FAMILIES, "compiler", "lipid", "slump", "olive")


@pytest.mark.parametrize(("wrong", "times"), [("wide", 3), ("narrow", 1 / 3)])
def test_wrong_ranges_change_the_scale_and_nothing_that_is_true(wrong, times):
    right = Grounds().of(Cell("emax"), 0).world
    told = Grounds().of(Cell("emax", wrong=wrong), 0).world
    assert told.half == pytest.approx(times * right.half)
    assert told.effects * times == pytest.approx(right.effects)
    assert (told.within == right.within).all()
    assert told.best * times == pytest.approx(right.best)


@pytest.mark.parametrize("part", WITHOUT)
def test_a_belief_without_a_part_is_another_belief(part):
    cell = Cell("chem", last=15)
    if part == GUARD:  # it holds back where little else is open
        cell = Cell("clinic", shape="straight", last=8)
    ground = Grounds().of(cell, 0)
    usual, other = (dict(play(replace(cell, without=one), ground, 0)) for one in ("", part))
    assert usual != other


def test_telling_more_is_compared_in_the_same_worlds(tmp_path):
    cells = [Cell("straight", factors=3, last=8, noise=noise) for noise in ("untold", "told")]
    run(cells[:1], tmp_path / "file", Grounds(), 3)
    run(cells[1:], tmp_path / "file", Grounds(), 2)
    found = read(tmp_path / "file")
    less, more = (found[cell.key()] for cell in cells)
    assert pairs(found, *cells, 8) == [more[s][8].given_up - less[s][8].given_up for s in (0, 1)]


def test_second_order_least_squares_keep_their_promise_where_second_order_is_true():
    cell = Cell("chem", visits=True, design="second order", last=12)
    grounds, found = Grounds(), []
    for seed in range(40):
        looks = dict(play(cell, grounds.of(cell, seed), seed))
        assert list(looks) == [8, 12]  # six coefficients need as many visits
        found.append(looks[12])
    held = [look.covered for look in found]
    assert abs(np.mean(held) - 0.95) < 4 * np.std(held) / np.sqrt(40)
    assert summary(found).given_up[0] < 0.1
    line = replace(cell, design="straight line")
    bent = [dict(play(line, grounds.of(line, seed), seed))[12] for seed in range(40)]
    assert summary(bent).beyond[0] > 0.5


def test_a_d_optimal_design_of_a_straight_line_is_at_the_corners():
    ground = Grounds().of(Cell("tire"), 0)
    rows, design = plan(ground, 1, 8)
    corners = rows[design]
    assert (np.abs(corners) == 1).all()
    assert corners.T @ corners == pytest.approx(8 * np.eye(4))
