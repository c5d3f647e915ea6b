"""Results for a terminal of 80 columns: the main table, and the table of a panel."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from sidestep.experiments.analysis.summary import STUCK
from sidestep.experiments.analysis.tuning import FLATTERED, HERE
from sidestep.experiments.report.panel import in_words, name_of, times, totals_of
from sidestep.experiments.spec import Spec

Rows = Sequence[Mapping[str, Any]]

WIDE = 80
NAME = 29  # columns for the name of a policy; a longer name gets its own line
CELL = 8  # columns of a cell of a panel
HEADER = f"  {'policy':<{NAME}}{'mean':>10}{'sd':>9}  {'minus reference':<16}{'lin.':>5}{'x':>7}"
KEPT = f"  {'  and of tolerances:':<{NAME}}{'beyond':>10}{'within':>9}  said within"
LEGEND = (
    "Final regret. minus reference: 95% interval of the difference to the reference, run by run. "
    "lin.: share of runs whose regret still grew in the second half as in the first. x: times the "
    "lowest mean of that world. More is on the page."
)


def table_lines(rows: Rows) -> list[str]:
    """The main table, a block for every world."""
    lines = []
    last = None
    for row in rows:
        here = f"{row['experiment']} / {row['world']}"
        if here != last:
            lines += ["", here, HEADER, *([KEPT] if _has_tolerances(row) else [])]
            last = here
        lines += _lines(row)
    notes = [LEGEND]
    chosen = list(dict.fromkeys(row["tuned_on"] for row in rows if row["tuned_on"] != HERE))
    if elsewhere := ", ".join(filter(None, chosen)):
        notes.append(f"* point of its grid chosen on {elsewhere}, not on the runs shown.")
    if any(row["tuned_on"] == HERE for row in rows):
        notes.append(f"** {FLATTERED[0].upper()}{FLATTERED[1:]}.")
    return [*lines, "", *(line for note in notes for line in textwrap.wrap(note, WIDE))]


def _lines(row: Mapping[str, Any]) -> list[str]:
    """One policy: its name and its numbers, on two lines where the name is long."""
    sd = "" if row["sd"] is None else f"{row['sd']:.3g}"
    label = row["label"] + star_of(row)
    gap = _span(row["difference_low"], row["difference_high"])
    numbers = (
        f"{row['mean']:>10.4g}{sd:>9}  {gap:<16}{row['share_linear']:>5.0%}"
        f"{times(row['relative']):>7}"
    )
    kept = [_kept(row)] if _has_tolerances(row) else []
    if len(label) <= NAME:
        return [f"  {label:<{NAME}}{numbers}", *kept]
    return [f"  {label}", f"  {'':<{NAME}}{numbers}", *kept]


def star_of(row: Mapping[str, Any]) -> str:
    """The mark of a point of a grid: one star, or two where these very runs chose it."""
    return {"": "", HERE: " **"}.get(row["tuned_on"], " *")


def _has_tolerances(row: Mapping[str, Any]) -> bool:
    return row.get("beyond_tolerance") is not None


def _kept(row: Mapping[str, Any]) -> str:
    """Rounds beyond a tolerance, runs that end within all, runs that say so."""
    names = ("beyond_tolerance", "recommends_within", "says_within")
    shares = ["" if row[name] is None else f"{row[name]:.0%}" for name in names]
    return f"  {'':<{NAME}}{shares[0]:>10}{shares[1]:>9}  {shares[2]:<16}".rstrip()


def _span(low: float | None, high: float | None) -> str:
    """An interval with signs: -180..-55.1."""
    if low is None or high is None:
        return ""
    return "..".join(f"{end:+,.0f}" if abs(end) >= 1000 else f"{end:+.3g}" for end in (low, high))


def panels_lines(specs: Sequence[Spec], rows: Rows) -> list[str]:
    """The tables of all experiments that are panels."""
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
        mark = "!" if row["share_linear"] > STUCK else " "
        cells.setdefault(row["world"], {})[row["entry"]] = times(row["relative"]) + mark
    names = {world.id: name_of(world) for world in spec.worlds if world.id in cells}
    left = min(max(map(len, names.values())), WIDE - 4 * CELL)
    lines = [f"{spec.name}: mean regret relative to the lowest; ! over a tenth of the runs linear"]
    lines += [f"{columns[entry.id]:>4}  {entry.label or entry.id}" for entry in spec.policies]
    fit = (WIDE - left) // CELL
    for start in range(0, len(columns), fit):
        part = dict(list(columns.items())[start : start + fit])
        lines += ["", " " * left + "".join(f"{column:>{CELL - 1}} " for column in part.values())]
        lines += [_panel_line(name[:left], cells[key], part, left) for key, name in names.items()]
    wrapped = [line for words in in_words(spec, rows) for line in textwrap.wrap(words, WIDE)]
    return [*(line.rstrip() for line in lines), "", *_total_lines(spec, rows), "", *wrapped]


def _total_lines(spec: Spec, rows: Rows) -> list[str]:
    """The results of every policy over all judged worlds."""
    lines = [f"{'over judged worlds':<42}{'worlds':>7}{'mean x':>9}{'worst x':>9}{'linear':>9}"]
    for row in totals_of(spec, rows):
        numbers = f"{row['geometric mean']:>9}{row['worst']:>9}{row['linear runs']:>9}"
        lines.append(f"{row['policy'][:41]:<42}{row['worlds']:>7}{numbers}")
    return lines


def _panel_line(name: str, found: Mapping[str, str], part: Mapping[str, str], left: int) -> str:
    return f"{name:<{left}}" + "".join(f"{found.get(entry, ' '):>{CELL}}" for entry in part)
