"""Common to all figures: the style of every policy, sheets of panels with a legend below, PNG and SVG.

A policy has the same style in every figure of every report. Styles differ in line and marker as well as
in colour (Okabe and Ito's colours come first, safe for the colour-blind), so that grey prints work.
"""

import io
import math
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import Bbox
from PIL import Image

from sidestep.experiments.analysis.bounds import Line
from sidestep.experiments.analysis.summary import Series
from sidestep.experiments.figures.compact_svg import compact

COLOURS = (
    "#D55E00", "#000000", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777", "#882255",
    "#999933", "#332288", "#44AA99", "#AA4499", "#7A4A1E", "#DDAA99", "#66AA00", "#AA0000", "#9999DD",
)  # fmt: skip
PLAYERS = (  # policies with a fixed colour, line and marker in every report; others get free ones
    "directed-thompson", "protected-linucb", "epsilon-greedy", "certified", "round-robin", "oful",
    "round-robin-2", "uniform", "protected-thompson", "protected-linucb-rho1", "explore-then-commit",
    "as-printed", "ellipsoid", "first-order", "adaptive", "all-constraints", "directed-resolution",
    "directed-untold",
)  # fmt: skip
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (6, 2),
    (6, 2, 1, 2),
    (1, 1),
    (6, 1),
    (3, 1, 1, 1, 1, 1),
    (4, 3),
)
MARKERS = "osD^vP*Xh<>dp8"
GREY = "#555555"
DPI = 150
NARROW = 2.5  # inches; panels narrower than this do not stand beside each other
LETTERS = 13  # letters of a legend in an inch
# a row of `dots_sheet`: its height in inches, and in rows: its ends, its label, its markers
ROW, ABOVE, LABEL, BELOW = 0.46, 0.66, 0.45, 0.34
MARKERS_FROM, MARKERS_TO = -0.12, 0.22
SETTINGS: Any = {
    "font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8,
    "xtick.labelsize": 8, "ytick.labelsize": 8, "axes.titlelocation": "left",
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "svg.fonttype": "none", "svg.hashsalt": "sidestep", "font.sans-serif": ["DejaVu Sans", "Arial"],
}  # fmt: skip


class Style(NamedTuple):
    """How a policy is drawn."""

    colour: str
    dashes: tuple[float, ...]  # on, off, ...; none for a solid line
    marker: str


class Panel(NamedTuple):
    """One world of a picture."""

    title: str
    series: Sequence[Series]


class Drawing(NamedTuple):
    """What to draw; small enough to be sent to another process."""

    name: str  # of the file, without its suffix
    kind: str  # key of KINDS
    panels: list[Panel]
    styles: dict[str, Style]
    laws: tuple[Line, ...] = ()
    width: float | None = None  # inches of the whole figure; None: as wide as on the page
    formats: tuple[str, ...] = ()  # of print_formats.PRINTED, beside PNG and SVG


class Rendered(NamedTuple):
    """A picture as the bytes of files."""

    name: str
    png: bytes
    svg: bytes
    bare: bytes  # the SVG without its legend, where a page has one for several pictures
    prints: tuple[tuple[str, bytes], ...] = ()  # format and content, at the width asked for


def styles_of(entries: Sequence[str]) -> dict[str, Style]:
    """A style for every policy, the same in every report; colours repeat only if there are too few."""
    taken = {entry: PLAYERS.index(entry) for entry in entries if entry in PLAYERS}
    free = [slot for slot in range(len(COLOURS)) if slot not in taken.values()]
    strangers = [entry for entry in dict.fromkeys(entries) if entry not in taken]
    for k, entry in enumerate(strangers):
        taken[entry] = free[k] if k < len(free) else len(COLOURS) + k - len(free)
    return {entry: _style(taken[entry]) for entry in dict.fromkeys(entries)}


def _style(slot: int) -> Style:
    colour = COLOURS[slot % len(COLOURS)]
    return Style(colour, DASHES[slot % len(DASHES)], MARKERS[slot % len(MARKERS)])


def png_of(figure: Figure) -> bytes:
    """The picture at 150 dots per inch, with its own palette."""
    figure.set_dpi(DPI)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    figure.set_layout_engine(None)  # everything has its place now: an SVG is drawn once, not twice
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3])
    file = io.BytesIO()
    image.quantize(128, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(
        file, "PNG", dpi=(DPI, DPI)
    )
    return file.getvalue()


def svg_of(figure: Figure, box: Bbox | None = None) -> bytes:
    """The picture, or a box of it in inches, as lines and text; the same bytes every time."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches=box)
    return compact(file.getvalue().decode()).encode()


def bare_svg_of(figure: Figure) -> bytes:
    """The picture without the legend below it; the layout is fixed by an earlier drawing."""
    top = 0.0
    for legend in figure.legends:
        top = max(top, legend.get_window_extent().y1 / figure.dpi)
        legend.remove()
    wide, tall = figure.get_size_inches()
    return svg_of(figure, Bbox([[0, top], [wide, tall]]))


def _columns(drawing: Drawing) -> int:
    """How many panels stand beside each other: two, unless each would be too narrow to read."""
    wide = math.inf if drawing.width is None else drawing.width
    return min(len(drawing.panels), 2 if wide >= 2 * NARROW else 1)


def width_of(drawing: Drawing) -> float:
    """Inches of the whole figure."""
    return drawing.width or _columns(drawing) * (4.8 if len(drawing.panels) == 1 else 3.8)


def legend_columns(drawing: Drawing, most: int) -> int:
    """Columns of a legend that has `most` on the page: half of them in a narrow figure."""
    return most if width_of(drawing) >= 1.8 * NARROW else most // 2


def _fit(drawing: Drawing, letters: int) -> int:
    """Letters of a line that has `letters` in a panel of the page, in one of this drawing."""
    return max(int(letters * min(width_of(drawing) / _columns(drawing) / 3.8, 1.0)), 12)


def _sheet(drawing: Drawing, height: float, below: float) -> tuple[Figure, list[Axes]]:
    """Axes for the panels, at most two per row, and space below for a legend; sizes in inches."""
    count, columns = len(drawing.panels), _columns(drawing)
    rows = math.ceil(count / columns)
    wide, tall = width_of(drawing), rows * (height + 0.8) + below
    figure = Figure(figsize=(wide, tall), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def lines_sheet(
    drawing: Drawing, words: Callable[[Series, str], str], ylabel: str
) -> tuple[Figure, list[Axes]]:
    """A sheet with a legend below that names every policy and law once, a line each."""
    labels = {entry: words(*named) for entry, named in _names(drawing.panels).items()}
    order = [entry for entry in drawing.styles if entry in labels]
    fit = 66 if drawing.width is None else int(LETTERS * drawing.width)
    texts = [textwrap.fill(labels[entry], fit, subsequent_indent="  ") for entry in order]
    texts += [law.label for law in drawing.laws]
    lines = sum(text.count("\n") + 1 for text in texts)
    figure, axes = _sheet(drawing, 2.35, 0.15 * lines + 0.1)
    handles = [axes[0].plot([], [], **look_of(drawing.styles[entry]))[0] for entry in order]
    handles += [axes[0].plot([], [], **law_look_of(k))[0] for k in range(len(drawing.laws))]
    _legend(figure, handles, texts, handlelength=3.2)
    for axis, panel in zip(axes, drawing.panels, strict=True):
        axis.set_title(textwrap.fill(panel.title, _fit(drawing, 50)))
        axis.set_xlabel("horizon T" if drawing.kind == "pairs" else "round")
        axis.set_ylabel(ylabel)
        axis.grid(color="#dddddd", linewidth=0.5)
    return figure, axes


def _legend(figure: Figure, handles: Sequence[Any], texts: Sequence[str], **more: Any) -> None:
    """Names below the panels, on the left."""
    figure.legend(
        handles, texts, loc="outside lower left", frameon=False, labelspacing=0.25, **more
    )


def _names(panels: Sequence[Panel]) -> dict[str, tuple[Series, str]]:
    """Every policy, as first drawn, and its name."""
    found: dict[str, tuple[Series, str]] = {}
    for series in (series for panel in panels for series in panel.series):
        found.setdefault(series.entry, (series, series.name))
    return found


def look_of(style: Style) -> dict[str, Any]:
    """A style as the keywords of a plotted line."""
    line = (0, style.dashes) if style.dashes else "-"
    look: dict[str, Any] = {"color": style.colour, "linestyle": line, "marker": style.marker}
    return look | {"linewidth": 1.3, "markersize": 4, "markeredgewidth": 0.5}


def law_look_of(k: int) -> dict[str, Any]:
    """The style of a bound: grey and without markers, since it is not measured."""
    dashes = DASHES[k % len(DASHES)]
    return {"color": GREY, "linestyle": (0, dashes) if dashes else "-", "linewidth": 1.0}


def bars_sheet(drawing: Drawing, label: str) -> tuple[Figure, list[Axes]]:
    """A sheet with a row for every policy, the first on top."""
    longest = max(len(panel.series) for panel in drawing.panels)
    if drawing.width:  # the names of policies take about an inch and a half beside the axis
        label = textwrap.fill(
            label, max(int(LETTERS * (drawing.width / _columns(drawing) - 1.6)), 12)
        )
    figure, axes = _sheet(drawing, 0.36 * longest + 0.1, 0.25)
    for axis, panel in zip(axes, drawing.panels, strict=True):
        axis.set_title(textwrap.fill(panel.title, _fit(drawing, 36)))
        _rows(axis, [textwrap.fill(series.name, 24) for series in panel.series], label)
    return figure, axes


def dots_sheet(drawing: Drawing, label: str) -> tuple[Figure, Axes]:
    """One pair of axes with a row for every world, its name above it, and a legend below."""
    names = {entry: name for entry, (_, name) in _names(drawing.panels).items()}
    order = [entry for entry in drawing.styles if entry in names]
    rows = len(drawing.panels)
    wide = drawing.width or 5.4
    columns = legend_columns(drawing, 2)
    tall = ROW * rows + 0.18 * math.ceil(len(order) / columns) + 0.8
    figure = Figure(figsize=(wide, tall), layout="constrained")
    axis = figure.subplots()
    _rows(axis, [""] * rows, label)
    axis.set_ylim(rows - 1 + BELOW, -ABOVE)
    for row, panel in enumerate(drawing.panels):
        look = {"va": "center", "ha": "left", "fontsize": 7.5, "color": GREY}
        title = textwrap.shorten(panel.title, int(18 * wide), placeholder=" ...")
        axis.text(0.01, row - LABEL, title, look, transform=axis.get_yaxis_transform())
        axis.axhline(row - ABOVE, color="#dddddd", linewidth=0.5)
    looks = [look_of(drawing.styles[entry]) | {"linestyle": "none"} for entry in order]
    handles = [axis.plot([], [], **look)[0] for look in looks]
    _legend(figure, handles, [names[entry] for entry in order], ncols=columns)
    return figure, axis


def _rows(axis: Axes, names: Sequence[str], label: str) -> None:
    """A row for every name, the first on top, and the label of the axis along them."""
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    axis.set_xlabel(label)
    axis.grid(axis="x", color="#dddddd", linewidth=0.5)


def _short(value: float, _: object) -> str:
    """A number as short as it gets: 1e6, not 1e+06."""
    return f"{value:g}".replace("e+0", "e").replace("e-0", "e-")


def log_axes(axes: Axes, nothing: str) -> None:
    """Both axes logarithmic; if nothing drawn is above zero, the text `nothing` is shown instead."""
    if not all(math.isfinite(axis.get_minpos()) for axis in (axes.xaxis, axes.yaxis)):
        axes.text(0.5, 0.5, nothing, transform=axes.transAxes, ha="center", va="center")
        return
    log_axis(axes.xaxis)
    log_axis(axes.yaxis)


def log_axis(axis: XAxis | YAxis) -> None:
    """A logarithmic axis with plain numbers, more of them where it is short."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_view_interval()
    short = high < 60 * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,)))
    axis.set_major_formatter(FuncFormatter(_short))
    axis.set_minor_locator(NullLocator())
