"""The report: one page that needs nothing else, from the traces alone."""

import csv
import html.parser
import re
import shutil

import numpy as np
import polars
import pytest
from made_up import HORIZON, spec_of, trace_of, write

from sidestep.cli.printing import table_lines
from sidestep.core import theory
from sidestep.core.problem import Problem
from sidestep.environments import synthetic
from sidestep.errors import InputError
from sidestep.experiments.analysis.bounds import pairs_of, upper_rows
from sidestep.experiments.analysis.summary import summarise
from sidestep.experiments.figures.styles import Rendered
from sidestep.experiments.report import build
from sidestep.experiments.report.figure_list import SHEETS
from sidestep.experiments.results import write_extra
from sidestep.experiments.spec import parse_spec
from sidestep.experiments.sweep import sweep

pytestmark = pytest.mark.full  # make test runs them, make check does not

T = np.arange(1, HORIZON + 1)
GREEDY = {"id": "greedy", "policy": "epsilon-greedy", "grid": {"epsilon": [0.5, 1]}}


def plain(job):
    rng = np.random.default_rng([job.run, len(job.policy_id)])
    return rng.random(job.horizon) * (1 + len(job.policy_id) % 3)


class Page(html.parser.HTMLParser):
    """What a page holds."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], text
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def sketch(plan):
    """An empty picture, which takes no time to draw."""
    return Rendered(plan.name, b"png", b"<svg/>", b"<svg/>")


@pytest.fixture
def sketched(monkeypatch):
    """For claims that are not about pictures."""
    monkeypatch.setattr(build, "render", sketch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    spec = spec_of("oful", GREEDY, "uniform", worlds=("a", "b"), reference="oful", note="x < y & z")
    return write(tmp_path_factory.mktemp("results"), spec, plain)


@pytest.fixture(scope="module")
def built(folder):
    return build.build(folder)


@pytest.fixture(scope="module")
def page(built):
    return Page(built.page.read_text(encoding="utf-8"))


def test_the_page_needs_no_network(page):
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?\s*(https?:)?//""", page.text)
    assert not page.all("script")
    assert not page.all("link")
    assert "@import" not in page.text
    assert page.all("img")
    assert all(image["src"].startswith("data:image/svg+xml,") for image in page.all("img"))


def test_the_page_fits_a_phone_and_the_dark(page):
    viewports = [meta["content"] for meta in page.all("meta") if meta.get("name") == "viewport"]
    assert viewports == ["width=device-width, initial-scale=1"]
    assert "prefers-color-scheme: dark" in page.text
    assert page.text.count("<table") == page.text.count('<div class="scroll"><table')


def test_the_page_is_well_formed_and_every_picture_has_words(page):
    assert not page.open
    assert all(image["alt"] for image in page.all("img"))


def test_every_link_of_the_contents_leads_somewhere(page):
    targets = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    links = [link["href"] for link in page.all("a")]
    assert len(links) == 3
    assert {link.removeprefix("#") for link in links} <= targets
    assert len([attrs for _, attrs in page.tags if "id" in attrs]) == len(targets)


def test_words_of_a_spec_cannot_break_the_page(page):
    assert "x &lt; y &amp; z" in page.text


def test_figures_and_tables_lie_beside_the_page(folder, page):
    drawn = [f"made-up-{world}-regret" for world in ("a", "b")]
    drawn += ["finding", *(f"made-up-{kind}" for kind in SHEETS)]
    assert {path.stem for path in (folder / "figures").iterdir()} == set(drawn)
    for name in drawn:
        assert (folder / f"figures/{name}.png").stat().st_size < 150_000
        assert (folder / f"figures/{name}.svg").exists()
    rows = list(csv.DictReader((folder / "tables/policies.csv").read_text().splitlines()))
    assert {row["policy"] for row in rows} == {
        "oful", "greedy+epsilon=0.5", "greedy+epsilon=1", "uniform",
    }  # fmt: skip
    grid = list(csv.DictReader((folder / "tables/grids.csv").read_text().splitlines()))
    assert {row["policy"] for row in grid} == {"greedy+epsilon=0.5", "greedy+epsilon=1"}


def test_beside_every_figure_lie_its_numbers(folder, built):
    drawn = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert {path.stem for path in (folder / "figures").glob("*.csv")} == drawn
    world = summarise(folder).worlds[0]
    rows = polars.read_csv(folder / "figures/made-up-a-regret.csv")
    for one in world.series:
        mine = rows.filter(world="a", policy=one.label)
        assert mine["round"].to_list() == one.rounds.tolist()
        assert mine["mean"].to_list() == pytest.approx(one.mean.tolist())
        assert mine["high"].to_list() == pytest.approx((one.mean + one.sd).tolist())
    finals = polars.read_csv(folder / "figures/made-up-finals.csv")
    assert finals.height == 2 * 3 * 4
    relative = polars.read_csv(folder / "figures/finding.csv")["relative"]
    assert relative.min() == 1.0
    assert relative.len() == 2 * 3


def test_prints_are_written_beside_the_others(tmp_path):
    write(tmp_path, spec_of("oful"), plain)
    build.build(tmp_path, formats=("pdf", "pgf"), width=3.3)
    by_form = {
        form: {path.stem for path in (tmp_path / "figures").glob(f"*.{form}")}
        for form in ("png", "pdf", "pgf")
    }
    assert by_form["pdf"] == by_form["pgf"] == by_form["png"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"formats": ("jpg",)},
            "format must be of pdf and pgf (PNG and SVG are always there), got 'jpg'",
        ),
        ({"width": 3.3}, "width must go with a format, pdf or pgf, got 3.3 alone"),
        ({"formats": ("pdf",), "width": 33}, "width must be 2 to 12 inches, got 33"),
    ],
)
def test_formats_and_widths_that_cannot_be_drawn_get_a_sentence(tmp_path, asked, words):
    with pytest.raises(InputError, match=re.escape(words)):
        build.build(tmp_path, **asked)


def test_the_page_says_mean_interval_difference_and_share_linear(folder, page):
    summary = summarise(folder)
    told = next(r for r in summary.policies.to_dicts() if r["policy"] == "uniform")
    for value in (
        told["mean"],
        told["sd"],
        told["low"],
        told["difference"],
        told["difference_high"],
    ):
        assert f"{value:.4g}" in page.text
    assert "a tenth of a round of Uniform" in page.text
    assert "The grid of greedy" in page.text
    assert "(tuned on these runs)" in page.text
    assert "by chance its mean is too low, and its intervals do not include that" in page.text


def test_the_page_says_what_is_promised_and_how_to_repeat(page):
    for words in ("Protection is part of the reward", "unit ball", "sidestep report DIR", "numba"):
        assert words in page.text


def test_the_same_traces_elsewhere_give_the_same_report(folder, page, tmp_path):
    shutil.copytree(folder / "made-up", tmp_path / "made-up")
    again = build.build(tmp_path).page.read_text(encoding="utf-8")
    clock = re.compile(r"report of [^:]+:\d\d UTC")
    assert clock.sub("", again) == clock.sub("", page.text)
    figure = "figures/made-up-a-regret.svg"
    assert (tmp_path / figure).read_bytes() == (folder / figure).read_bytes()


def test_extras_stand_within_their_experiment(tmp_path, sketched):
    spec = spec_of("oful")
    write(tmp_path, spec, plain)
    write_extra(tmp_path, spec, "<p>MINE</p>")
    write_extra(tmp_path, spec_of("oful", name="other"), "<p>NOT</p>")
    text = build.build(tmp_path).page.read_text()
    assert build.build(tmp_path / "made-up").page.read_text().count("<p>MINE</p>") == 1
    assert text.index('id="made-up"') < text.index("<p>MINE</p>") < text.index('id="promises"')
    assert "<p>NOT</p>" not in text


def test_watchers_hear_of_every_figure_and_another_runner_may_draw(tmp_path, sketched):
    write(tmp_path, spec_of("oful"), plain)

    class Backwards:
        def run(self, work, jobs):
            return map(work, reversed(jobs))

    heard = []
    build.build(tmp_path, on_progress=heard.append, runner=Backwards())
    assert len(heard) == len(SHEETS) + 2
    assert heard[0].startswith("report: 1/6 figures, made-up-widths")


def test_worlds_of_one_group_share_their_figures(tmp_path, sketched):
    worlds = [{"id": name, "world": "synthetic", "group": "both"} for name in ("a", "b")]
    write(tmp_path, spec_of("oful", worlds=worlds), plain)
    build.build(tmp_path)
    names = {path.stem for path in (tmp_path / "figures").glob("*.png")}
    assert names == {"finding", *(f"made-up-both-{kind}" for kind in ("regret", *SHEETS))}


def test_an_interrupted_sweep_is_reported_as_such(tmp_path, sketched):
    def half(job):
        return None if job.world_id == "b" or job.run > 1 else plain(job)

    write(tmp_path, spec_of("oful", worlds=("a", "b")), half)
    text = build.build(tmp_path).page.read_text()
    assert "<b>2 runs are missing</b>" in text
    assert "Not played: b." in text


def test_core_set_that_eats_the_horizon_is_said_in_words(tmp_path, sketched):
    write(tmp_path, spec_of("oful"), lambda job: trace_of(job, np.ones(HORIZON), "core-set"))
    text = build.build(tmp_path).page.read_text()
    assert "CORE-SET had not ended by round 100 in 100% of the runs" in text


def test_the_failure_example_comes_with_its_picture(tmp_path, sketched):
    worlds = [{"id": "f", "world": "failure"}]
    write(tmp_path, spec_of("oful", worlds=worlds), plain)
    build.build(tmp_path)
    assert (tmp_path / "figures/failure.png").exists()
    assert "never shrinks the confidence set" in (tmp_path / "report.html").read_text()


def protected(job):
    """A trace of Protected LinUCB on the ball: no arm has a number there."""
    trace = trace_of(job, np.full(job.horizon, 0.1))
    trace.arm[:] = -1
    return trace


def test_regret_on_the_ball_stands_beside_the_bound_of_theory(tmp_path, sketched):
    write(tmp_path, spec_of("protected-linucb"), protected)
    world = summarise(tmp_path).worlds[0]
    told = upper_rows(world)[0]
    problem = Problem(dim=2, n_protected=1, subspace_dim=1, noise_scale=0.1, norm_bound=1.0)
    assert told["proved"]
    assert told["lambda_min"] == pytest.approx(1.0)
    for form in ("main", "appendix", "corrected"):
        bound = theory.regret_bound(problem, HORIZON, told["lambda_min"], 0.01, 0.5, form=form)
        assert told[form] == pytest.approx(bound)
    text = build.build(tmp_path).page.read_text()
    assert (tmp_path / "figures/bound-made-up-world.png").exists()
    assert f"{told['corrected']:.4g}" in text


def test_over_arms_the_bound_is_marked_as_not_proved(tmp_path, sketched):
    def on_arms(job):
        trace = protected(job)
        trace.arm[:] = 0
        return trace

    write(tmp_path, spec_of("protected-linucb"), on_arms)
    assert not upper_rows(summarise(tmp_path).worlds[0])[0]["proved"]
    text = build.build(tmp_path).page.read_text()
    assert ">no<" in text
    assert "which are not proved here</summary>" in text
    assert not (tmp_path / "figures/bound-made-up-world.png").exists()


def test_of_a_pair_the_larger_regret_counts_and_the_exponent_is_fitted_over_horizons(
    tmp_path, sketched
):
    horizons = (100, 200, 400)
    worlds = [
        {"id": f"lower-bound-{which}-T{t}", "world": "lower-bound", "horizon": t, "group": "pair"}
        for t in horizons
        for which in (1, 2)
    ]
    spec = spec_of("oful", worlds=worlds)

    def cost(job):
        total = job.horizon**0.75 if "-2-" in job.world_id else 1.0
        return np.full(job.horizon, total / job.horizon)

    write(tmp_path, spec, cost)
    (pair,) = pairs_of(summarise(tmp_path).worlds)
    assert [row["larger"] for row in pair.rows()] == pytest.approx([t**0.75 for t in horizons])
    assert pair.series()[0].slope == pytest.approx(0.75)
    for row in pair.rows():
        for form in ("printed", "corrected"):
            assert row[form] == theory.lower_bound(row["horizon"], 0.1, form=form)
    text = build.build(tmp_path).page.read_text()
    assert "lower bound, corrected" in text
    assert (tmp_path / "figures/pairs-0.png").exists()


def test_the_terminal_gets_the_same_numbers(built):
    rows = built.shown.to_dicts()
    said = "\n".join(table_lines(rows))
    assert all(len(line) <= 80 for line in said.splitlines())
    assert "made-up / a" in said
    assert len(rows) == 2 * 3
    for row in rows:
        assert f"{row['mean']:.4g}" in said
    assert "** Best point of its grid on these very runs" in said
    assert "greedy (epsilon=0.5) **" in said or "greedy (epsilon=1) **" in said


def test_beside_a_grid_that_other_seeds_chose_every_table_names_these_seeds(tmp_path, sketched):
    write(tmp_path, spec_of("oful", GREEDY, tune_seeds=(90, 92)), plain)
    built = build.build(tmp_path)
    text, said = built.page.read_text(), "\n".join(table_lines(built.shown.to_dicts()))
    assert "(tuned on seeds 90 to 92)" in text
    assert "Chosen on seeds 90 to 92." in text
    assert "tuned on these runs" not in text
    assert "* point of its grid chosen on seeds 90 to 92, not on the runs shown." in said
    assert "**" not in said


def test_one_run_of_one_policy_is_enough_for_a_page(tmp_path):
    write(tmp_path, spec_of("oful", runs=1, horizon=1), plain)
    built = build.build(tmp_path)
    assert Page(built.page.read_text()).all("img")
    assert any("oful" in line for line in table_lines(built.shown.to_dicts()))


def test_a_broken_run_leaves_the_last_page_as_it_was(tmp_path, sketched):
    write(tmp_path, spec_of("oful"), plain)
    before = build.build(tmp_path).page.read_bytes()
    (tmp_path / "made-up/traces/world/oful/0.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"0\.parquet: must be a run that sidestep wrote"):
        build.build(tmp_path)
    assert (tmp_path / "report.html").read_bytes() == before


BALL = """
name = "small-ball"
horizon = 300
runs = 3

[[worlds]]
id = "ball"
world = "synthetic"
knobs = { dim = 4, n_protected = 1, subspace_dim = 1, arms = "ball", noise_scale = 0.001 }

[[policies]]
id = "protected-thompson"
policy = "protected-thompson"

[[policies]]
id = "uniform"
policy = "uniform"
"""


def test_on_the_ball_a_figure_shows_regret_over_the_price_of_protection(tmp_path):
    sweep(parse_spec(BALL, "small-ball"), tmp_path)
    world = summarise(tmp_path).worlds[0]
    worlds = [synthetic(4, 1, 1, "ball", noise_scale=0.001, seed=seed) for seed in range(3)]
    prices = [theory.price_of_protection(each) for each in worlds]
    expected = np.mean([each.directions * each.noise for each in prices])
    assert world.facts.price == pytest.approx(expected, rel=0.02)
    page = build.build(tmp_path).page.read_text()
    assert "p G √t" in page
    with (tmp_path / "figures/price-small-ball-ball.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["policy"] == "uniform"]
    last = world.series[-1]
    assert last.entry == "uniform"
    found = float(rows[-1]["mean"]) * world.facts.price * np.sqrt(float(rows[-1]["round"]))
    assert found == pytest.approx(last.mean[-1], rel=1e-3)


def test_over_arms_and_with_more_vectors_than_directions_there_is_no_price(tmp_path):
    for change in ('arms = "ball"', "arms = 9"), ("n_protected = 1", "n_protected = 2"):
        folder = tmp_path / change[1]
        sweep(parse_spec(BALL.replace(*change), "small-ball"), folder)
        assert not summarise(folder).worlds[0].facts.price > 0
