"""The report tells a story: what was found first, the paper in its own order, numbers from the runs."""

import numpy as np
import pytest
from made_up import HORIZON, spec_of, trace_of, write

from sidestep.experiments.analysis.bounds import pairs_of, upper_rows
from sidestep.experiments.analysis.summary import summarise
from sidestep.experiments.figures.styles import Rendered
from sidestep.experiments.report import build, headline, paper_claims
from sidestep.experiments.report.html import brief

PLAYERS = ("protected-linucb", "epsilon-greedy", "directed-thompson")
LEVELS = {"protected-linucb": 7.0, "epsilon-greedy": 5.0, "directed-thompson": 1.0}
NOISY = "synthetic-r0.1"


def cost(job):
    """Regret that falls with the rounds; with more noise the paper's player looks for a core set."""
    regret = LEVELS[job.policy_id] * (1 + 0.1 * job.run) / np.arange(1, HORIZON + 1)
    stuck = job.policy_id == "protected-linucb" and job.world_id == NOISY
    return trace_of(job, regret + stuck, "core-set" if stuck else "play")


def on_ball(job):
    trace = cost(job)
    trace.arm[:] = -1
    return trace


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    first = {"id": "synthetic", "world": "synthetic", "title": "calm"}
    noisy = {"id": NOISY, "world": "synthetic", "title": "noisy"}
    write(folder, spec_of(*PLAYERS, name="synthetic", worlds=(first, noisy)), cost)
    write(folder, spec_of(*PLAYERS, name="ball", worlds=("ball",)), on_ball)
    unknown = {"id": "unknown", "world": "synthetic", "judged": False}
    write(folder, spec_of(*PLAYERS, name="another", worlds=("other", unknown)), cost)
    return folder


@pytest.fixture(scope="module")
def summary(folder):
    return summarise(folder)


def final(summary, world, entry):
    (found,) = [
        series.final.mean()
        for one in summary.worlds
        for series in one.series
        if (one.spec.id, series.entry) == (world, entry)
    ]
    return brief(float(found))


@pytest.mark.full
def test_the_finding_is_five_sentences_with_the_numbers_of_the_runs(summary):
    scope, stand, first, why, bound = headline.sentences(summary, [])
    assert scope.startswith("3 players, 5 worlds, 60 runs")
    assert "lowest mean regret on 4 of the 4 rows that are judged" in stand
    assert (
        "on the other 1, where the arms cannot show which one is best, it is up to 1.00 times"
        in stand
    )
    for world in ("synthetic", NOISY):
        for entry in PLAYERS:
            assert final(summary, world, entry) in first
    assert "causes 0% and 100% of its regret" in why
    (row,) = [row for world in summary.worlds for row in upper_rows(world) if row["proved"]]
    assert "holds in every run" in bound
    assert f"{100 * row['largest'] / row['corrected']:.0f}% of the bound" in bound


@pytest.mark.full
def test_a_farthest_world_is_named_with_its_factor(summary):
    words = headline.stand(headline.rows_of(summary, []), "epsilon-greedy")
    assert "its worst ratio is 5.00, on synthetic: calm" in words


def test_what_was_not_played_is_not_spoken_of(tmp_path):
    write(tmp_path, spec_of("oful"), lambda job: np.ones(HORIZON))
    assert len(headline.sentences(summarise(tmp_path), [])) == 1


def test_rows_come_in_the_papers_order_and_a_pair_is_one_row(tmp_path, folder, summary):
    names = [row.panel.title.partition(":")[0] for row in headline.rows_of(summary, [])]
    assert names == ["synthetic", "synthetic", "ball", "another", "another"]
    worlds = [
        {"id": f"lower-bound-{which}", "world": "lower-bound", "horizon": 100, "group": "pair"}
        for which in (1, 2)
    ]
    write(tmp_path, spec_of("oful", "uniform", worlds=worlds), lambda job: np.ones(HORIZON))
    pairs = pairs_of(summarise(tmp_path).worlds)
    (row,) = headline.rows_of(summarise(tmp_path), pairs)
    assert row.panel.title == "lower bound: the larger of the pair, T=100"
    (words,) = headline.sentences(summarise(tmp_path), pairs)
    assert "2 worlds" in words
    assert "rows" not in words  # a figure of one row is not drawn
    assert [series.final.mean() for series in row.panel.series] == [100.0, 100.0]


def test_the_first_screen_counts_worlds_once_and_says_how_they_became_rows(tmp_path):
    pair = [
        {"id": f"lower-bound-{which}-T{horizon}", "world": "lower-bound", "horizon": horizon}
        for horizon in (50, 100)
        for which in (1, 2)
    ]
    aside = {"id": "aside", "world": "synthetic", "judged": False}

    def constant(job):
        return np.full(job.horizon, LEVELS[job.policy_id])

    write(tmp_path, spec_of(*PLAYERS, worlds=(*pair, "a", "b", aside), runs=1), constant)
    write(tmp_path, spec_of(*PLAYERS, name="all", worlds=("c",), runs=1, panel=True), constant)
    summary = summarise(tmp_path)
    scope, stand = headline.sentences(summary, pairs_of(summary.worlds))[:2]
    assert scope.startswith("3 players, 8 worlds, 24 runs")
    assert scope.endswith(
        "The figure has 4 rows: the panel, with 1 of the worlds, has its own figure, and the 4 worlds "
        "of the lower bound are one row, the pair with the longest horizon."
    )
    assert "on 3 of the 3 rows that are judged" in stand
    assert "on the other 1" in stand


def test_every_experiment_of_the_paper_says_what_print_says_what_was_found_and_the_difference(
    summary,
):
    (spec,) = [spec for spec in summary.specs if spec.name == "synthetic"]
    told = paper_claims.told(summary, spec, [])
    assert "R = 0.001" in told.says
    assert (
        f"calm: protected-linucb at {final(summary, 'synthetic', 'protected-linucb')} ±"
        in (told.found[0])
    )
    assert "is 1.40 times that of tuned" in told.differs[0]
    assert "100% at noisy" in told.differs[1]
    assert set(paper_claims.SAYS) == set(paper_claims.ORDER) == set(paper_claims.TELLERS)


def test_an_experiment_of_ones_own_has_no_such_words(summary):
    (spec,) = [spec for spec in summary.specs if spec.name == "another"]
    assert paper_claims.told(summary, spec, []) is None


def test_the_page_begins_with_the_finding_and_folds_details_away(folder, monkeypatch):
    monkeypatch.setattr(
        build, "render", lambda plan: Rendered(plan.name, b"png", b"<svg/>", b"<svg/>")
    )
    text = build.build(folder).page.read_text(encoding="utf-8")
    places = [text.index(mark) for mark in ('class="lead"', "<nav", 'id="synthetic"', 'id="ball"')]
    assert places == sorted(places)
    assert text.index('id="ball"') < text.index('id="another"') < text.index('id="promises"')
    assert text.count("<b>The paper.</b>") == text.count("<b>Found.</b>") == 2
    assert "<details><summary>Every number, world by world</summary>" in text
