"""What came out, for a terminal: the main table, and the worlds of a panel side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from sidestep.experiments.numbers.summary import STUCK
from sidestep.experiments.page.page import slope
from sidestep.experiments.page.panel import in_words, name_of, times
from sidestep.experiments.spec import Spec

Rows = Sequence[Mapping[str, Any]]

HEADER = (
    f"  {'policy':<42}{'mean':>10}{'sd':>10}  {'95% interval':<22}{'vs reference':<24}"
    f"{'linear':<8}{'exponent':<10}x lowest"
)


KEPT = f"  {'beyond':<8}{'ends within':<13}says so"


def table_lines(rows: Rows) -> list[str]:
    """The main table, a block for every world."""
    lines = []
    last = None
    for row in rows:
        here = f"{row['experiment']} / {row['world']}"
        if here != last:
            lines += ["", here, HEADER + (KEPT if _has_tolerances(row) else "")]
            last = here
        lines.append(_line(row))
    if any(row["grid"] for row in rows):
        lines += ["", "* best point of its grid on these very runs"]
    return lines


def _line(row: Mapping[str, Any]) -> str:
    interval = _span(row["low"], row["high"])
    gap = _span(row["difference_low"], row["difference_high"])
    gap = "" if row["difference"] is None else f"{row['difference']:+.4g} {gap}"
    sd = "" if row["sd"] is None else f"{row['sd']:.4g}"
    label = row["label"] + (" *" if row["grid"] else "")
    line = (
        f"  {label:<42}{row['mean']:>10.4g}{sd:>10}  {interval:<22}{gap:<24}"
        f"{row['share_linear']:<8.0%}{slope(row['exponent']):<10}{times(row['relative']):<10}"
    )
    return f"{line}{_kept(row)}".rstrip()


def _has_tolerances(row: Mapping[str, Any]) -> bool:
    return row.get("beyond_tolerance") is not None


def _kept(row: Mapping[str, Any]) -> str:
    """Rounds beyond a tolerance, runs that end within all, runs that say so."""
    if not _has_tolerances(row):
        return ""
    names = ("beyond_tolerance", "recommends_within", "says_within")
    shares = ["" if row[name] is None else f"{row[name]:.0%}" for name in names]
    return f"{shares[0]:<8}{shares[1]:<13}{shares[2]}"


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.4g}, {high:.4g}]"


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
        mark = "!" if row["share_linear"] > STUCK else " "
        cells.setdefault(row["world"], {})[row["entry"]] = times(row["relative"]) + mark
    worlds = [world for world in spec.worlds if world.id in cells]
    left = max(len(name_of(world)) for world in worlds)
    lines = [f"{spec.name}: mean regret relative to the lowest; ! over a tenth of the runs linear"]
    lines += [f"{columns[entry.id]:>4}  {entry.label or entry.id}" for entry in spec.policies]
    lines.append(" " * left + "".join(f"{column:>7} " for column in columns.values()))
    for world in worlds:
        found = "".join(f"{cells[world.id].get(entry, ' '):>8}" for entry in columns)
        lines.append(f"{name_of(world):<{left}}{found}".rstrip())
    return [*lines, "", *in_words(spec, rows)]
