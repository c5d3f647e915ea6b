"""The panel: every policy relative to the best of each world, the same on page, terminal and in JSON."""

import numpy as np
import polars
import pytest
from made_up import HORIZON, spec_of, write

from sidestep.cli.printing import panel_lines, panels_lines
from sidestep.experiments.analysis.run_facts import exponent
from sidestep.experiments.analysis.summary import summarise
from sidestep.experiments.figures.styles import Rendered
from sidestep.experiments.report import build, panel
from sidestep.experiments.spec import jobs_of

T = np.arange(1, HORIZON + 1)
WORLDS = (
    {"id": "easy", "world": "failure", "title": "Easy"},
    {"id": "hard", "world": "synthetic", "note": "It asks\ntoo much.\n", "runs": 6},
    {"id": "aside", "world": "synthetic", "judged": False},
)
POLICIES = (
    {"id": "mine", "policy": "oful", "label": "Mine"},
    {"id": "greedy", "policy": "epsilon-greedy", "grid": {"epsilon": [1, 2]}},
    {"id": "slow", "policy": "oful", "worlds": ["easy"]},
    "uniform",
)
LEVELS = {
    "easy": {"mine": 1.0, "greedy+epsilon=1": 3.0, "greedy+epsilon=2": 2.0, "slow": 4.0},
    "hard": {"mine": 5.0, "greedy+epsilon=1": 2.0, "greedy+epsilon=2": 8.0},
    "aside": {"mine": 9.0, "greedy+epsilon=1": 3.0, "greedy+epsilon=2": 6.0},
}


def cost(job):
    """Regret that falls like 1 / sqrt(t), a little different in every run; Uniform's is constant."""
    level = LEVELS[job.world_id].get(job.policy_id)
    wobble = 1 + 0.01 * (job.run - 1.5)
    return np.full(HORIZON, 4.0) if level is None else wobble * level / np.sqrt(T)


@pytest.fixture(scope="module")
def spec():
    return spec_of(*POLICIES, worlds=WORLDS, reference="mine", panel=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, spec):
    return write(tmp_path_factory.mktemp("panel"), spec, cost)


@pytest.fixture(scope="module")
def rows(folder):
    return summarise(folder).policies.filter("shown").to_dicts()


def factor(rows, world, entry):
    (found,) = [row for row in rows if (row["world"], row["entry"]) == (world, entry)]
    return found["relative"]


@pytest.mark.full
def test_a_policy_is_compared_with_the_lowest_mean_of_its_world(rows):
    assert factor(rows, "easy", "mine") == 1.0
    assert factor(rows, "easy", "greedy") == pytest.approx(2.0)
    assert factor(rows, "easy", "slow") == pytest.approx(4.0)
    assert factor(rows, "hard", "mine") == pytest.approx(2.5)
    assert factor(rows, "hard", "greedy") == 1.0


@pytest.mark.full
def test_a_world_with_runs_of_its_own_is_summarised_over_those(folder, spec):
    frame = summarise(folder).policies.filter(polars.col("policy") == "mine")
    assert dict(frame.select("world", "n").iter_rows()) == {"easy": 4, "hard": 6, "aside": 4}
    assert summarise(folder).worlds[1].missing == 0
    assert len(jobs_of(spec)) == 5 * 4 + 4 * 6 + 4 * 4


def test_without_a_positive_lowest_regret_nothing_is_relative(tmp_path):
    write(tmp_path, spec_of("oful", "uniform", runs=2), lambda job: np.zeros(HORIZON))
    assert np.isnan(summarise(tmp_path).policies["relative"].to_list()).all()


def test_the_table_has_a_row_a_world_and_a_column_a_policy(spec, rows):
    easy, hard, aside = panel.table_of(spec, rows)
    assert easy["world"] == "Easy"
    assert easy["Mine"] == f"1.00 (0%, {exponent(T, np.cumsum(1 / np.sqrt(T))):.2f})"
    assert easy["uniform"].endswith("(100%, 1.00)")
    assert hard["slow"] is None
    assert aside["world"] == "aside (not judged)"


def test_the_totals_are_over_the_judged_worlds_that_a_policy_played(spec, rows):
    totals = {row["policy"]: row for row in panel.totals_of(spec, rows)}
    mine, slow, chance = totals["Mine"], totals["slow"], totals["uniform"]
    assert (
        mine["geometric mean"] == f"{2.5**0.5:.2f}"
    )  # 1 and 2.5; what is not judged counts nothing
    assert (mine["worst"], mine["on"], mine["linear runs"]) == ("2.50", "hard", "0%")
    assert (slow["worlds"], slow["geometric mean"]) == (1, "4.00")
    assert chance["linear runs"] == "100%"


def test_the_words_count_judged_worlds_and_say_where_another_policy_leads_and_why(spec, rows):
    overall, linear, hard, aside = panel.in_words(spec, rows)
    assert "Mine has the lowest mean regret on 1 of 2 judged worlds" in overall
    assert "within 1.5 times the lowest on 1" in overall
    assert "farthest from it on hard: 2.50" in overall
    assert linear == "Its linear runs: none."
    assert hard.startswith("hard: greedy (epsilon=1) has the lowest mean regret")
    assert "2.50 times that (run by run" in hard
    assert hard.endswith("It asks too much.")
    assert aside.startswith("aside (not judged): greedy (epsilon=1)")


def test_the_gap_to_the_leader_is_positive_and_lies_in_its_interval(spec, rows):
    hard = panel.in_words(spec, rows)[2]
    mean, low, high = (
        float(word.rstrip(").,"))
        for word in (
            hard.partition("run by run ")[2].split()[0],
            hard.partition("interval ")[2].split()[0],
            hard.partition(" to ")[2].split()[0],
        )
    )
    assert 0 < low < mean < high


def test_the_terminal_gets_every_factor_and_a_mark_where_runs_are_linear(spec, rows):
    lines = panel_lines(spec, rows)
    assert all(len(line) <= 80 for line in lines)
    (easy,) = [line for line in lines if line.startswith("Easy")]
    uniform = f"{4.0 * HORIZON / np.sum(1 / np.sqrt(T)):.1f}!"
    assert easy.split() == ["Easy", "1.00", "2.00", "4.00", uniform]
    (hard,) = [line for line in lines if line.startswith("hard ")]
    assert len(hard.split()) == 4  # no column for the policy that was not played
    assert "   2  greedy" in lines


@pytest.mark.parametrize(
    ("value", "words"), [(1.0, "1.00"), (9.876, "9.88"), (34.56, "34.6"), (1234.5, "1,234")]
)
def test_factors_are_written_to_three_digits(value, words):
    assert panel.times(value) == words


def test_what_is_not_known_is_a_dash():
    assert panel.times(None) == panel.times(float("nan")) == "\N{EN DASH}"


def test_page_terminal_and_json_say_the_same(folder, rows, monkeypatch):
    monkeypatch.setattr(
        build, "render", lambda plan: Rendered(plan.name, b"png", b"<svg/>", b"<svg/>")
    )
    built = build.build(folder)
    page = built.page.read_text(encoding="utf-8")
    assert (folder / "figures/made-up-panel.png").exists()
    assert not (folder / "figures/failure.png").exists()  # a panel is about all its worlds
    told = built.shown.to_dicts()
    said = "\n".join(panels_lines(built.specs, told))
    assert {row["judged"] for row in told} == {True, False}
    for before, after in zip(rows, told, strict=True):
        assert after["relative"] == pytest.approx(before["relative"])
        assert panel.times(after["relative"]) in page
        assert panel.times(after["relative"]) in said
    assert "It asks too much." in page
    assert "It asks too much." in " ".join(said.split())


def test_an_experiment_that_is_no_panel_has_no_such_table(tmp_path, monkeypatch):
    monkeypatch.setattr(
        build, "render", lambda plan: Rendered(plan.name, b"png", b"<svg/>", b"<svg/>")
    )
    write(tmp_path, spec_of("oful", "uniform", worlds=("a", "b")), lambda job: np.ones(HORIZON))
    built = build.build(tmp_path)
    assert panel.CAPTION not in built.page.read_text(encoding="utf-8")
    assert panels_lines(built.specs, built.shown.to_dicts()) == []
