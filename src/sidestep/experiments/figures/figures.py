"""The figures of a report: one function per picture, from a Drawing to a matplotlib Figure."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from sidestep.core.arrays import FloatArray
from sidestep.experiments.analysis.bounds import Line
from sidestep.experiments.analysis.summary import NEAR, STUCK, Series
from sidestep.experiments.figures.print_formats import printed
from sidestep.experiments.figures.styles import (
    GREY,
    MARKERS_FROM,
    MARKERS_TO,
    SETTINGS,
    Drawing,
    Panel,
    Rendered,
    bare_svg_of,
    bars_sheet,
    dots_sheet,
    law_look_of,
    legend_columns,
    lines_sheet,
    log_axes,
    log_axis,
    look_of,
    png_of,
    svg_of,
)

FILLS = {  # distinct in grey as well
    "core-set": "#333333",
    "locked-in": "#A0522D",
    "explore": "#D98200",
    "held": "#6A5ACD",
    "cautious": "#7FB77E",
    "confirm": "#8C8C8C",
    "play": "#BFE3F7",
}
RARE = ("held", "cautious", "confirm")  # in the legend only if they have regret


FLAT = 1e-3  # a bound below this share of the smallest regret would flatten all curves: not drawn
BARE = ("regret", "panel")  # drawn without a legend: the page has one legend for all of them


def render(drawing: Drawing) -> Rendered:
    """Draw, and write as PNG (few colours, small) and SVG (text stays text)."""
    with mpl.rc_context(SETTINGS):
        figure = KINDS[drawing.kind](drawing._replace(width=None))
        png, svg = png_of(figure), svg_of(figure)
        bare = bare_svg_of(figure) if drawing.kind in BARE else svg
        return Rendered(drawing.name, png, svg, bare, _prints(drawing))


def _prints(drawing: Drawing) -> tuple[tuple[str, bytes], ...]:
    """The figure for a paper, drawn anew for every format."""
    return tuple((form, printed(KINDS[drawing.kind](drawing), form)) for form in drawing.formats)


def regret(drawing: Drawing) -> Figure:
    """Cumulative pseudo-regret: mean over the runs, and mean +- 1 sd as a band."""
    figure, axes = lines_sheet(drawing, lambda _, name: name, "cumulative pseudo-regret")
    for axis, panel in zip(axes, drawing.panels, strict=True):
        for series in panel.series:
            style, (low, high) = drawing.styles[series.entry], band(series)
            axis.plot(
                series.rounds, series.mean, markevery=len(series.rounds) // 7 or 1, **look_of(style)
            )
            axis.fill_between(series.rounds, low, high, color=style.colour, alpha=0.13, linewidth=0)
        axis.set_xlim(0, max(float(series.rounds[-1]) for series in panel.series))
        _frame(axis, panel)
    return figure


def band(series: Series) -> tuple[FloatArray, FloatArray]:
    """Mean - 1 sd, but not below zero unless the mean is, and mean + 1 sd; (n,) each."""
    sd = np.nan_to_num(series.sd)
    return np.maximum(series.mean - sd, np.minimum(series.mean, 0.0)), series.mean + sd


def _frame(axis: Axes, panel: Panel) -> None:
    """Cut off the few policies that would flatten all others, and say so in the figure."""
    tops = sorted(
        (float(band(series)[1].max()), series.name, series.mean[-1]) for series in panel.series
    )
    low = min(float(band(series)[0].min()) for series in panel.series)
    shown = len(tops) - _too_high([top for top, *_ in tops])
    top = (1.08 if shown < len(tops) else 1.0) * tops[shown - 1][0]
    cut = [f"{name}, ends at {final:.4g}" for _, name, final in tops[shown:]]
    if cut:
        words = "\n".join(["out of frame:", *cut]) if len(cut) > 1 else f"out of frame: {cut[0]}"
        look = {"ha": "right", "va": "top", "fontsize": 7}
        axis.text(0.98, 0.985, words, look, transform=axis.transAxes)
    if top > 0:
        axis.set_ylim(1.05 * min(low, 0.0), 1.04 * top)


def _too_high(tops: Sequence[float]) -> int:
    """How many of the highest curves flatten the others: none, or one, or up to a third of them.

    Of two policies, which are there to be compared, one is cut off only if the other would be lost.
    """
    for count in range(1, max(len(tops) // 3, 1) + 1):
        rest = len(tops) - count
        flattens = 10.0 if len(tops) == 2 else 2.5 * count
        if rest > 0 and tops[rest] > flattens * tops[rest - 1] > 0:
            return count
    return 0


def growth(drawing: Drawing) -> Figure:
    """The means on logarithmic axes; thicker where the exponent in the legend was fitted."""
    what = "larger of the two regrets" if drawing.kind == "pairs" else "cumulative pseudo-regret"
    figure, axes = lines_sheet(
        drawing, lambda series, name: _exponents(series, name, drawing.panels), what
    )
    for axis, panel in zip(axes, drawing.panels, strict=True):
        for series in panel.series:
            good, look = series.mean > 0, look_of(drawing.styles[series.entry])
            often = 0.15 if good.sum() > 1 else 1  # a single point is its marker
            axis.plot(series.rounds[good], series.mean[good], markevery=often, **look)
            late = good & (series.rounds >= series.rounds[-1] / 2) & math.isfinite(series.slope)
            axis.plot(
                series.rounds[late], series.mean[late], color=look["color"], linewidth=5, alpha=0.2
            )
        _draw_laws(axis, panel, drawing.laws)
        log_axes(axis, "no regret above zero")
    return figure


def price(drawing: Drawing) -> Figure:
    """Regret over p G sqrt(t) on logarithmic axes; 1 is what every policy pays in the limit."""
    label = "regret / (p G √t)"
    figure, axes = lines_sheet(drawing, lambda _, name: name, label)
    for axis, panel in zip(axes, drawing.panels, strict=True):
        axis.axhline(1.0, color=GREY, linewidth=1.0)
        for series in panel.series:
            good, look = series.mean > 0, look_of(drawing.styles[series.entry])
            axis.plot(series.rounds[good], series.mean[good], markevery=0.15, **look)
        log_axes(axis, "no regret above zero")
    return figure


def _draw_laws(axis: Axes, panel: Panel, laws: Sequence[Line]) -> None:
    """The bounds; one that would flatten all curves is not drawn, but named."""
    paid = [float(mean) for series in panel.series for mean in series.mean if mean > 0]
    for k, law in enumerate(laws):
        if paid and max(law.y) < FLAT * min(paid):
            words = f"out of frame: {law.label}, ends at {law.y[-1]:.2g}"
            axis.text(0.98, 0.02, words, transform=axis.transAxes, ha="right", fontsize=7)
        else:
            axis.plot(law.x, law.y, **law_look_of(k))


def _exponents(series: Series, name: str, panels: Sequence[Panel]) -> str:
    """A policy and its exponent in every panel, in order."""
    slopes = [
        other.slope for panel in panels for other in panel.series if other.entry == series.entry
    ]
    words = ", ".join("no fit" if math.isnan(slope) else f"{slope:.2f}" for slope in slopes)
    return f"{name}: exponent {words}".replace("-0.00", "0.00")


def widths(drawing: Drawing) -> Figure:
    """How uncertain the measured effect was before it was measured."""
    figure, axes = lines_sheet(drawing, lambda _, name: name, "half-width of the interval")
    for axis, panel in zip(axes, drawing.panels, strict=True):
        for series in panel.series:
            good, look = series.widths[1] > 0, look_of(drawing.styles[series.entry])
            axis.plot(series.widths[0][good], series.widths[1][good], markevery=0.15, **look)
        log_axes(axis, "no policy here has an interval")
    return figure


def phases(drawing: Drawing) -> Figure:
    """Regret by phase: CORE-SET, lock-in as far as the monitor detected it, exploration, play."""
    figure, axes = bars_sheet(drawing, "mean pseudo-regret")
    for axis, panel in zip(axes, drawing.panels, strict=True):
        start = np.zeros(len(panel.series))
        for name, colour in FILLS.items():
            length = np.array([series.phases[name] for series in panel.series])
            if name in RARE and not length.any():
                continue
            rows = range(len(length))
            axis.barh(rows, length, left=start, height=0.6, color=colour, label=name)
            start += length
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=legend_columns(drawing, 4), frameon=False
    )
    return figure


def queries(drawing: Drawing) -> Figure:
    """Which vector was measured how often; 0 is the target."""
    figure, axes = bars_sheet(drawing, "share of the queries (0: the target)")
    for axis, panel in zip(axes, drawing.panels, strict=True):
        for row, series in enumerate(panel.series):
            shares = series.counts / series.counts.sum()
            start = np.cumsum(shares) - shares
            shade = mpl.colormaps["Blues"](0.75 - 0.6 * np.arange(len(shares)) / len(shares))
            axis.barh(row, shares, left=start, height=0.6, color=shade, edgecolor="white")
            for i in np.flatnonzero(shares > 0.05):
                ink = "white" if i < 0.35 * len(shares) else "black"
                look = {"ha": "center", "va": "center", "fontsize": 7, "color": ink}
                axis.text(start[i] + shares[i] / 2, row, str(i), look)
        axis.set_xlim(0, 1)
    return figure


def tolerances(drawing: Drawing) -> Figure:
    """Share of rounds beyond a tolerance, and of runs that recommend something beyond one."""
    figure, axes = bars_sheet(drawing, "share beyond a tolerance")
    for axis, panel in zip(axes, drawing.panels, strict=True):
        for row, series in enumerate(panel.series):
            colour = drawing.styles[series.entry].colour
            if series.kept:
                axis.barh(row, series.kept.beyond, height=0.6, color=colour, alpha=0.5)
                axis.plot(1 - series.kept.within, row, "D", color=colour, markeredgecolor="black")
        axis.set_xlim(-0.02, 1)
    diamond: Any = {"color": GREY, "markeredgecolor": "black", "linestyle": "none"}
    axes[0].barh(0, 0, color=GREY, alpha=0.5, label="of the rounds")
    axes[0].plot([], [], marker="D", label="of the last recommendations", **diamond)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=legend_columns(drawing, 2), frameon=False
    )
    return figure


def finals(drawing: Drawing) -> Figure:
    """Final regret of every run: box of the quartiles, line at the median, whiskers to the ends."""
    figure, axes = bars_sheet(drawing, "final cumulative pseudo-regret")
    for axis, panel in zip(axes, drawing.panels, strict=True):
        for row, series in enumerate(panel.series):
            low, first, middle, third, high = np.quantile(series.final, [0, 0.25, 0.5, 0.75, 1])
            colour = drawing.styles[series.entry].colour
            axis.plot([low, high], [row, row], color=colour, linewidth=1)
            axis.barh(row, third - first, left=first, height=0.5, color="white", edgecolor=colour)
            axis.plot([middle] * 2, [row - 0.25, row + 0.25], color=colour, linewidth=2.2)
            spread = row + 0.16 * np.sin(2.4 * np.arange(len(series.final)))
            axis.plot(series.final, spread, ".", color=colour, markersize=3.5, alpha=0.6)
        axis.use_sticky_edges = False
        values = np.concatenate([series.final for series in panel.series])
        if values.min() > 0 and values.max() > 20 * values.min():
            log_axis(axis.xaxis)
    return figure


def relative(drawing: Drawing) -> Figure:
    """Mean final regret divided by the lowest on that world; hollow if runs turned linear."""
    figure, axis = dots_sheet(drawing, "mean final regret / lowest on that world")
    axis.axvspan(1.0, NEAR, color="#eeeeee", zorder=0)
    for row, panel in enumerate(drawing.panels):
        means = [float(series.final.mean()) for series in panel.series]
        shifts = np.linspace(MARKERS_FROM, MARKERS_TO, len(means))
        for series, mean, shift in zip(panel.series, means, shifts, strict=True):
            look = look_of(drawing.styles[series.entry]) | {"linestyle": "none"}
            hollow = {"markerfacecolor": "white"} if series.linear > STUCK else {}
            if min(means) > 0:
                axis.plot(mean / min(means), row + shift, **look | hollow)
    log_axis(axis.xaxis)
    return figure


def failure_picture(width: float | None = None) -> Figure:
    """The instance on which optimism fails: playing a_1 never shortens the set along u(-45 deg)."""
    scale = (width or 4.8) / 4.8
    figure = Figure(figsize=(4.8 * scale, 3.9 * scale))
    axis = figure.add_axes((0.01, 0.01, 0.98, 0.98))
    turn = np.linspace(0, 2 * np.pi, 200)
    axis.plot(np.cos(turn), np.sin(turn), color="#bbbbbb", linewidth=1)
    half = math.sqrt(0.5)
    axis.add_patch(
        Ellipse((1, 0), 2.3, 0.34, angle=-45, facecolor="#56B4E9", alpha=0.3, edgecolor="#0072B2")
    )
    arrows = [
        ((1, 0), "-", "#0072B2", r"$\theta_1 = u_0$", (1.05, 0.07)),
        ((half, half), "-", "#000000", r"$a_1 = \theta_0 = u_{\pi/4}$, reward 0.5", (0.75, 0.76)),
        ((0, 1), "-", "#009E73", r"$a_2 = u_{\pi/2}$, reward 0.71", (0.04, 1.08)),
        ((half, -half), "--", GREY, r"$u_{-\pi/4}$", (0.5, -0.86)),
        ((1 + half, -half), "-", "#D55E00", r"$\bar\theta_1 = u_0 + u_{-\pi/4}$", (1.32, -1.0)),
    ]
    for tip, line, colour, words, at in arrows:
        look = {"arrowstyle": "-|>", "color": colour, "linestyle": line, "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", tip, (0, 0), arrowprops=look)
        axis.text(*at, words, color=colour, fontsize=9 * scale)
    axis.text(1.52, -0.24, "confidence set\nof $\\theta_1$", color="#0072B2", fontsize=9 * scale)
    axis.plot([-0.5, 0.383], [-1.207, 0.924], color="#D55E00", linewidth=0.7, linestyle=":")
    axis.text(
        -0.95,
        -1.2,
        "left over if\n$\\bar\\theta_1$ is protected",
        color="#D55E00",
        ha="center",
        fontsize=9 * scale,
    )
    axis.set(xlim=(-1.5, 2.4), ylim=(-1.5, 1.5), aspect="equal")
    axis.axis("off")
    return figure


KINDS: dict[str, Callable[[Drawing], Figure]] = {
    "regret": regret,
    "growth": growth,
    "phases": phases,
    "queries": queries,
    "widths": widths,
    "finals": finals,
    "tolerances": tolerances,
    "pairs": growth,
    "price": price,
    "panel": relative,
    "failure": lambda drawing: failure_picture(drawing.width),
}
