"""What came out, for a terminal: the main table, and the worlds of a panel side by side."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from sidestep.experiments.numbers.summary import STUCK
from sidestep.experiments.page.panel import in_words, name_of, times
from sidestep.experiments.spec import Spec

Rows = Sequence[Mapping[str, Any]]

WIDE = 80  # columns of a terminal
LABEL = 38
CELL = 8
HEADER = f"  {'policy':<{LABEL}}{'mean':>9}{'sd':>9}  {'95% interval':<15}x low"
STUCK_NOTE = f"! more than {STUCK:.0%} of the runs are linear"


def table_lines(rows: Rows) -> list[str]:
    """The main table, a block for every world."""
    lines = []
    last = None
    for row in rows:
        here = f"{row['experiment']} / {row['world']}"
        if here != last:
            lines += ["", here, HEADER]
            last = here
        lines.append(_line(row))
    if any(row["grid"] for row in rows):
        lines += ["", "* best point of its grid on these very runs"]
    if any(row["share_linear"] > STUCK for row in rows):
        lines += ["", STUCK_NOTE]
    return lines


def _line(row: Mapping[str, Any]) -> str:
    """One policy; differences, shares and exponents are on the page and in --json."""
    interval = _span(row["low"], row["high"])
    sd = "" if row["sd"] is None else f"{row['sd']:.3g}"
    label = _shortened(row["label"], LABEL - 2) + (" *" if row["grid"] else "")
    return (
        f"  {label:<{LABEL}}{row['mean']:>9.4g}{sd:>9}  {interval:<15}"
        f"{times(row['relative'])}{_mark(row)}"
    ).rstrip()


def _mark(row: Mapping[str, Any]) -> str:
    return "!" if row["share_linear"] > STUCK else " "


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.3g} .. {high:.3g}"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."


def panels_lines(specs: Sequence[Spec], rows: Rows) -> list[str]:
    """Of every experiment that is a panel, its worlds side by side."""
    lines = []
    for spec in specs:
        mine = [row for row in rows if row["experiment"] == spec.name]
        if spec.panel and mine:
            lines += ["", *panel_lines(spec, mine)]
    return lines


def panel_lines(spec: Spec, rows: Rows) -> list[str]:
    """A row for every world, a numbered column for every policy, and the sentences under it."""
    columns = {entry.id: str(k) for k, entry in enumerate(spec.policies, 1)}
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        cell = times(row["relative"]) + _mark(row)
        cells.setdefault(row["world"], {})[row["entry"]] = cell
    worlds = [world for world in spec.worlds if world.id in cells]
    left = min(max(len(name_of(world)) for world in worlds), WIDE // 2)
    lines = [f"{spec.name}: mean regret relative to the lowest", STUCK_NOTE]
    lines += [f"{columns[entry.id]:>4}  {entry.label or entry.id}" for entry in spec.policies]
    fit = (WIDE - left) // CELL
    names = list(columns)
    for some in (names[k : k + fit] for k in range(0, len(names), fit)):
        lines += ["", " " * left + "".join(f"{columns[name]:>7} " for name in some).rstrip()]
        for world in worlds:
            found = "".join(f"{cells[world.id].get(name, ' '):>{CELL}}" for name in some)
            lines.append(f"{_shortened(name_of(world), left):<{left}}{found}".rstrip())
    said = [textwrap.fill(sentence, WIDE) for sentence in in_words(spec, rows)]
    return [*lines, "", *said]
