"""The picture of a benchmark: rates on logarithmic axes, ours beside others and beside the limit."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sidestep.experiments.figures.styles import SETTINGS, log_axis, png_of

Row = dict[str, Any]
FILLS = {"ours": "#222222", "rival": "#999999", "peer": "#E4E4E4"}  # apart in grey
OUTLINE: Any = {"edgecolor": "black", "linewidth": 0.5}
WORDS = {"ours": "sidestep", "rival": "the same rule without a compiler", "peer": "other packages"}


def png(results: Row) -> bytes:
    """The figure as a file; needs the tables `contest` or `decisions`."""
    with mpl.rc_context(SETTINGS):
        return png_of(draw(results["tables"]))


def draw(tables: Row) -> Figure:
    """Left the contests, right every policy beside its limit; a panel a world."""
    columns = [
        (worlds_of(tables[table]), fill)
        for table, fill in (("contest", _contest), ("decisions", _decisions))
        if tables.get(table)
    ]
    inches = max(sum(map(_height, worlds.values())) for worlds, _ in columns)
    figure = Figure(figsize=(5.4 * len(columns), inches + 0.3), layout="constrained")
    for part, (worlds, fill) in zip(
        figure.subfigures(1, len(columns), squeeze=False)[0], columns, strict=True
    ):
        axes = part.subplots(
            len(worlds), 1, height_ratios=list(map(_height, worlds.values())), squeeze=False
        )
        for axis, (title, rows) in zip(axes[:, 0], worlds.items(), strict=True):
            _panel(axis, title, rows, fill)
        part.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper left", ncols=3)
    return figure


def worlds_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows that have a rate, fastest first, by world."""
    shown: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: -(row["rate"] or 0)):
        if row["rate"]:
            shown.setdefault(row["world"], []).append(row)
    return {title: shown[title] for title in dict.fromkeys(row["world"] for row in rows)}


def _height(rows: Sequence[Row]) -> float:
    return 0.2 * len(rows) + 0.75


def _panel(
    axis: Axes, title: str, rows: Sequence[Row], fill: Callable[[Axes, Sequence[Row]], list[str]]
) -> None:
    axis.set_yticks(range(len(rows)), fill(axis, rows))
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.tick_params(axis="y", length=0)
    speeds = [row[key] for row in rows for key in ("rate", "limit") if row.get(key)]
    axis.set_xlim(
        10 ** math.floor(math.log10(min(speeds))), 10 ** math.ceil(math.log10(max(speeds)))
    )
    log_axis(axis.xaxis)
    axis.set_title(title)
    axis.set_xlabel("rounds a second")
    axis.grid(axis="x", color="#dddddd", linewidth=0.5)


def _contest(axis: Axes, rows: Sequence[Row]) -> list[str]:
    for kind in dict.fromkeys(row["kind"] for row in rows):
        places = [place for place, row in enumerate(rows) if row["kind"] == kind]
        rates = [rows[place]["rate"] for place in places]
        axis.barh(places, rates, color=FILLS[kind], label=WORDS[kind], **OUTLINE)
    return [row["who"] for row in rows]


def _decisions(axis: Axes, rows: Sequence[Row]) -> list[str]:
    axis.barh(
        range(len(rows)),
        [row["rate"] for row in rows],
        color="#777777",
        label="measured",
        **OUTLINE,
    )
    places, limits = zip(
        *((k, row["limit"]) for k, row in enumerate(rows) if row["limit"]), strict=True
    )
    axis.scatter(limits, places, marker="|", color="black", s=140, linewidth=2, label="the limit")
    return [row["policy"] for row in rows]
