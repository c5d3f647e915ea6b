"""Figures: small, labelled, the same every time, and told apart without colour."""

import io
import itertools
import re
import struct
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from sidestep.experiments.analysis.summary import Series
from sidestep.experiments.figures import figures
from sidestep.experiments.figures.styles import (
    COLOURS,
    DPI,
    PLAYERS,
    SETTINGS,
    Drawing,
    Line,
    Panel,
    png_of,
    styles_of,
)
from sidestep.experiments.spec import parse_spec, shipped_specs
from sidestep.policies.base import PHASES

pytestmark = pytest.mark.full  # make test runs them, make check does not

ROUNDS = np.arange(1.0, 201.0)


def series(entry, scale=1.0, power=0.5, **changes):
    mean = scale * ROUNDS**power
    made = {
        "entry": entry,
        "policy": entry,
        "knobs": {},
        "label": entry,
        "name": entry,
        "rounds": ROUNDS,
        "mean": mean,
        "sd": 0.1 * mean,
        "slope": power,
        "linear": 0.0,
        "final": mean[-1] * np.linspace(0.8, 1.2, 10),
        "phases": dict.fromkeys(PHASES, mean[-1] / 3),
        "counts": np.array([100.0, 60.0, 40.0]),
        "widths": np.array([ROUNDS, 1 / np.sqrt(ROUNDS)]),
    }
    return Series(**(made | changes))


def drawing(kind="regret", panels=1, policies=4, **changes):
    many = [series(f"policy-{k}", 1.0 + 0.2 * k) for k in range(policies)]
    styles = styles_of([one.entry for one in many])
    return Drawing(
        "name", kind, [Panel(f"world {k}", many) for k in range(panels)], styles, **changes
    )


def lines_of(axis):
    """Curves by label of the legend handles' order: those with more than two points."""
    return [line for line in axis.lines if len(line.get_xdata()) > 2]


def words_of(figure):
    return {text.get_text() for text in figure.findobj(match=lambda a: hasattr(a, "get_text"))}


def test_the_band_is_not_drawn_below_zero_where_the_mean_is_above():
    low, _ = figures.band(series("oful", sd=np.full(200, 5.0)))
    assert low.min() == 0.0
    deep = series("oful", -1.0, sd=np.ones(200))
    np.testing.assert_array_equal(figures.band(deep)[0], deep.mean)


def test_the_band_is_mean_plus_and_minus_one_sd():
    one = series("oful")
    low, high = figures.band(one)
    np.testing.assert_allclose(low, one.mean - one.sd)
    np.testing.assert_allclose(high, one.mean + one.sd)
    figure = figures.regret(Drawing("n", "regret", [Panel("w", [one])], styles_of(["oful"])))
    drawn = figure.axes[0].collections[0].get_paths()[0].vertices
    for edge in (np.column_stack([ROUNDS, low]), np.column_stack([ROUNDS, high])):
        assert all((np.abs(drawn - point).sum(axis=1) < 1e-9).any() for point in edge[::20])


def test_one_run_has_a_curve_and_no_band_to_speak_of():
    one = series("oful", sd=np.full(200, np.nan))
    low, high = figures.band(one)
    np.testing.assert_array_equal(low, high)


def test_curves_are_the_means():
    plan = drawing()
    drawn = lines_of(figures.regret(plan).axes[0])
    for line, one in zip(drawn, plan.panels[0].series, strict=True):
        np.testing.assert_allclose(line.get_ydata(), one.mean)


def test_axes_are_labelled_fit_the_rounds_and_the_legend_has_names_alone():
    figure = figures.regret(drawing())
    axis = figure.axes[0]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("round", "cumulative pseudo-regret")
    assert axis.get_title(loc="left") or axis.get_title()
    assert axis.get_xlim() == (0.0, ROUNDS[-1])
    assert axis.get_ylim()[0] == 0.0
    assert [text.get_text() for text in figure.legends[0].texts] == [
        f"policy-{k}" for k in range(4)
    ]


def test_the_exponent_is_written_beside_the_policy():
    figure = figures.growth(drawing("growth"))
    assert "policy-2: exponent 0.50" in words_of(figure)
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"


def test_a_grid_tuned_otherwise_in_another_panel_is_not_named_by_one_point():
    panels = [
        Panel("a", [series("g", label="g (e=1)", name="g, tuned")]),
        Panel("b", [series("g", label="g (e=2)", name="g, tuned")]),
    ]
    figure = figures.regret(Drawing("n", "regret", panels, styles_of(["g"])))
    assert [text.get_text() for text in figure.legends[0].texts] == ["g, tuned"]


def test_one_policy_that_would_flatten_the_rest_leaves_the_frame_and_is_named():
    panel = Panel("w", [series("a"), series("b", 1.5), series("awful", 50.0)])
    figure = figures.regret(Drawing("n", "regret", [panel], styles_of(["a", "b", "awful"])))
    assert figure.axes[0].get_ylim()[1] < panel.series[2].mean[-1]
    assert any(text.startswith("out of frame: awful, ends at 707") for text in words_of(figure))


def test_two_of_six_that_would_flatten_the_rest_leave_the_frame_and_are_named():
    scales = {"a": 1.0, "b": 1.1, "c": 1.2, "d": 3.0, "awful": 60.0, "worse": 90.0}
    panel = Panel("w", [series(name, scale) for name, scale in scales.items()])
    figure = figures.regret(Drawing("n", "regret", [panel], styles_of(list(scales))))
    assert panel.series[3].mean[-1] < figure.axes[0].get_ylim()[1] < panel.series[4].mean[-1]
    (words,) = [text for text in words_of(figure) if text.startswith("out of frame")]
    assert [line.split(",")[0] for line in words.split("\n")] == [
        "out of frame:",
        "awful",
        "worse",
    ]


def test_half_of_the_policies_are_never_cut_off():
    panel = Panel("w", [series("a"), series("b"), series("c", 60.0), series("d", 70.0)])
    figure = figures.regret(Drawing("n", "regret", [panel], styles_of(["a", "b", "c", "d"])))
    assert figure.axes[0].get_ylim()[1] >= panel.series[3].mean[-1]


def test_policies_that_differ_little_all_stay_in_the_frame():
    plan = drawing()
    top = max(figures.band(one)[1].max() for one in plan.panels[0].series)
    assert figures.regret(plan).axes[0].get_ylim()[1] >= top


def test_a_policy_has_one_style_whatever_else_is_drawn():
    all_of_it = styles_of([*PLAYERS, "mine"])
    assert styles_of(["uniform", "oful", "other"])["oful"] == all_of_it["oful"]
    assert styles_of(["a", "b"])["a"] == styles_of(["a", "b", "c"])["a"]


def test_no_two_players_of_a_report_share_a_colour_while_there_are_enough():
    for names in (PLAYERS, [*PLAYERS[:9], *(f"p{k}" for k in range(len(COLOURS) - 9))]):
        styles = styles_of(names)
        assert len({style.colour for style in styles.values()}) == len(COLOURS)
    more = styles_of([f"p{k}" for k in range(2 * len(COLOURS))])
    assert len(set(more.values())) == len(more)


def test_every_player_of_a_shipped_experiment_has_a_look_of_its_own():
    for name, text in shipped_specs().items():
        ids = [entry.id for entry in parse_spec(text, name).policies]
        assert len({style.colour for style in styles_of(ids).values()}) == len(ids), name


def test_neighbouring_policies_differ_without_colour():
    styles = list(styles_of([f"p{k}" for k in range(20)]).values())
    assert all(a[1:] != b[1:] for a, b in itertools.pairwise(styles))


def test_phases_stack_to_the_whole_regret():
    plan = drawing("phases", policies=2)
    bars = figures.phases(plan).axes[0].patches
    ends = {round(bar.get_y(), 6): bar.get_x() + bar.get_width() for bar in bars}
    wholes = [sum(one.phases.values()) for one in plan.panels[0].series]
    assert sorted(ends.values()) == pytest.approx(sorted(wholes))


def test_query_shares_fill_the_bar():
    bars = figures.queries(drawing("queries", policies=1)).axes[0].patches
    assert [bar.get_width() for bar in bars] == pytest.approx([0.5, 0.3, 0.2])


def test_final_regrets_are_all_there_with_their_median():
    plan = drawing("finals", policies=1)
    axis = figures.finals(plan).axes[0]
    final = plan.panels[0].series[0].final
    dots = next(line for line in axis.lines if line.get_marker() == ".")
    assert sorted(dots.get_xdata()) == pytest.approx(sorted(final))
    assert any(set(line.get_xdata()) == {np.median(final)} for line in axis.lines)


def dots_of(axis):
    """What is drawn at a single point: (x, row), and whether its marker is hollow."""
    single = [line for line in axis.lines if len(line.get_xdata()) == 1]
    return [
        (line.get_xdata()[0], round(line.get_ydata()[0]), line.get_markerfacecolor() == "white")
        for line in single
    ]


def test_a_panel_shows_every_policy_relative_to_the_lowest_of_its_world():
    panels = [
        Panel("one", [series("a"), series("b", 3.0)]),
        Panel("two", [series("a", 8.0), series("b", 4.0, linear=0.5)]),
    ]
    figure = figures.relative(Drawing("n", "panel", panels, styles_of(["a", "b"])))
    axis = figure.axes[0]
    expected = [(1.0, 0, False), (3.0, 0, False), (2.0, 1, False), (1.0, 1, True)]
    for (x, row, hollow), wanted in zip(dots_of(axis), expected, strict=True):
        assert (pytest.approx(x), row, hollow) == wanted
    assert axis.get_xscale() == "log"
    assert {"one", "two"} <= words_of(figure)


def test_the_label_of_a_row_is_clear_of_every_marker():
    players = [f"p{k}" for k in range(14)]
    panels = [
        Panel(
            f"a long name of world {k}", [series(p, 1.0 + 0.01 * j) for j, p in enumerate(players)]
        )
        for k in range(15)
    ]
    figure = figures.relative(Drawing("n", "panel", panels, styles_of(players)))
    png_of(figure)
    axis = figure.axes[0]
    labels = [text.get_window_extent() for text in axis.texts]
    points = figure.dpi / 72
    for line in (line for line in axis.lines if len(line.get_xdata()) == 1):
        x, y = axis.transData.transform((line.get_xdata()[0], line.get_ydata()[0]))
        half = (line.get_markersize() + line.get_markeredgewidth()) / 2 * points
        for label in labels:
            apart = max(
                label.x0 - x - half, x - half - label.x1, label.y0 - y - half, y - half - label.y1
            )
            assert apart > 1.0 * points


def test_a_world_where_somebody_loses_nothing_has_no_relative_regret():
    panels = [Panel("one", [series("a"), series("b", 0.0)]), Panel("two", [series("a")])]
    figure = figures.relative(Drawing("n", "panel", panels, styles_of(["a", "b"])))
    assert [dot[:2] for dot in dots_of(figure.axes[0])] == [(1.0, 1)]


def test_policies_without_sets_are_left_out_of_the_widths():
    panel = Panel("w", [series("a"), series("b", widths=np.empty((2, 0)))])
    figure = figures.widths(Drawing("n", "widths", [panel], styles_of(["a", "b"])))
    assert len(lines_of(figure.axes[0])) == 1


def test_laws_are_drawn_and_named():
    law = Line("bound", np.array([1.0, 10.0, 200.0]), np.array([5.0, 50.0, 500.0]))
    figure = figures.growth(drawing("growth", laws=(law,)))
    assert "bound" in {text.get_text() for text in figure.legends[0].texts}
    assert any(np.array_equal(line.get_ydata(), law.y) for line in figure.axes[0].lines)


def test_a_law_that_would_flatten_every_curve_leaves_the_frame_and_is_named():
    law = Line("tiny bound", np.array([1.0, 200.0]), np.array([1e-9, 3e-9]))
    figure = figures.growth(drawing("growth", laws=(law,)))
    assert "out of frame: tiny bound, ends at 3e-09" in words_of(figure)
    assert figure.axes[0].get_ylim()[0] > 1e-6


def test_a_single_point_is_drawn_with_its_marker():
    one = series("a")._replace(rounds=np.array([300.0]), mean=np.array([20.0]), slope=np.nan)
    figure = figures.growth(Drawing("n", "pairs", [Panel("w", [one])], styles_of(["a"])))
    assert any(line.get_markevery() == 1 for line in figure.axes[0].lines)


@pytest.fixture(scope="module")
def rendered():
    """Every kind of figure, with two panels of ten policies."""
    return {kind: figures.render(drawing(kind, 2, policies=10)) for kind in figures.KINDS}


def test_every_figure_is_a_small_png(rendered):
    for done in rendered.values():
        assert len(done.png) < 150_000
        image = Image.open(io.BytesIO(done.png))
        assert image.format == "PNG"
        assert image.info["dpi"][0] == pytest.approx(DPI, abs=1)


def test_every_figure_is_an_svg_that_loads_nothing(rendered):
    for done in rendered.values():
        assert ET.fromstring(done.svg).tag.endswith("svg")
        drawn = done.svg.split(b"</metadata>")[-1]
        assert not re.search(rb"""(href|src)=["'](?!#)""", drawn)


def test_without_its_legend_a_figure_has_the_same_axes_and_fewer_words(rendered):
    done = rendered["regret"]
    assert b"policy-7" in done.svg
    assert b"policy-7" not in done.bare
    tall = [float(ET.fromstring(svg).get("viewBox").split()[3]) for svg in (done.svg, done.bare)]
    assert tall[1] < tall[0] - 80
    assert b"cumulative pseudo-regret" in done.bare


def test_nothing_is_cut_at_the_edges(rendered):
    for kind, done in rendered.items():
        grey = np.asarray(Image.open(io.BytesIO(done.png)).convert("L"))
        edges = [grey[:2], grey[-2:], grey[:, :2], grey[:, -2:]]
        assert min(edge.min() for edge in edges) > 245, kind


@pytest.mark.parametrize("kind", figures.KINDS)
def test_a_figure_of_one_column_has_that_width_and_nothing_is_cut(kind):
    plan = drawing(kind, 2, policies=10)._replace(width=3.3)
    with mpl.rc_context(SETTINGS):
        figure = figures.KINDS[kind](plan)
        picture = png_of(figure)
    assert figure.get_figwidth() == pytest.approx(3.3)
    grey = np.asarray(Image.open(io.BytesIO(picture)).convert("L"))
    edges = [grey[:2], grey[-2:], grey[:, :2], grey[:, -2:]]
    assert min(edge.min() for edge in edges) > 245
    wide = figures.KINDS[kind](plan._replace(width=6.8))
    assert wide.get_figwidth() == pytest.approx(6.8)


def test_the_same_drawing_gives_the_same_bytes():
    first, second = (figures.render(drawing("growth")) for _ in range(2))
    assert (first.png, first.svg) == (second.png, second.svg)


def test_the_failure_picture_names_what_the_example_names():
    words = " ".join(words_of(figures.failure_picture()))
    for name in (r"\theta_1 = u_0", r"a_1 = \theta_0", "a_2", r"u_{-\pi/4}", r"\bar\theta_1"):
        assert name in words
    assert struct.unpack(">I", png_of(figures.failure_picture())[16:20])[0] == int(4.8 * DPI)


@pytest.mark.parametrize("kind", figures.KINDS)
def test_every_figure_is_drawn_where_no_regret_was_paid_and_nobody_has_intervals(kind):
    nothing = {
        "mean": np.zeros(200),
        "sd": np.zeros(200),
        "slope": np.nan,
        "final": np.zeros(10),
        "phases": dict.fromkeys(PHASES, 0.0),
        "widths": np.zeros((2, 0)),
    }
    panel = Panel("w", [series("mine", **nothing)])
    done = figures.render(Drawing("n", kind, [panel], styles_of(["mine"])))
    assert done.png
    words = {"growth": b"no regret above zero", "widths": b"no policy here has an interval"}
    assert words.get(kind, b"") in done.svg
