"""All worlds of an experiment in one table: every policy relative to the best on that world.

Computed from the rows of the main table (`shown` ones), so that page, terminal and JSON agree.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sidestep.experiments.analysis.run_facts import Row
from sidestep.experiments.analysis.summary import NEAR
from sidestep.experiments.analysis.tuning import HERE
from sidestep.experiments.report.html import UNKNOWN, interval, number, share, slope
from sidestep.experiments.spec import Spec, WorldSpec

CAPTION = "Mean final regret relative to the lowest of that world (share of linear runs, exponent)."
FIGURE = (
    "Mean final regret of every policy relative to the lowest on that world. Hollow: more than a "
    f"tenth of its runs turned linear. Grey: within {NEAR:g} times the lowest."
)

Rows = Sequence[Mapping[str, Any]]


def name_of(world: WorldSpec) -> str:
    """The name of a world in the table."""
    return (world.title or world.id) + ("" if world.judged else " (not judged)")


def table_of(spec: Spec, rows: Rows) -> list[Row]:
    """One row per world, one column per policy."""
    labels = {entry.id: entry.label or entry.id for entry in spec.policies}
    cells: dict[str, Row] = {}
    for row in rows:
        inner = f"{share(row['share_linear'])}, {slope(row['exponent'])}"
        cells.setdefault(row["world"], {})[row["entry"]] = f"{times(row['relative'])} ({inner})"
    return [
        {"world": name_of(world)}
        | {label: cells[world.id].get(entry) for entry, label in labels.items()}
        for world in spec.worlds
        if world.id in cells
    ]


TOTALS = (
    "Over the judged worlds that a policy played: its mean regret relative to the lowest, as a "
    "geometric mean and at worst, and the share of its runs that turned linear."
)


def totals_of(spec: Spec, rows: Rows) -> list[Row]:
    """One row per policy: its results over all judged worlds."""
    judged = {world.id: name_of(world) for world in spec.worlds if world.judged}
    totals: list[Row] = []
    for entry in spec.policies:
        own = [
            row
            for row in rows
            if row["entry"] == entry.id
            and row["world"] in judged
            and times(row["relative"]) != UNKNOWN
        ]
        if own:
            totals.append({"policy": entry.label or entry.id} | _total(own, judged))
    return totals


def _total(own: Rows, judged: Mapping[str, str]) -> Row:
    worst = max(own, key=lambda row: row["relative"])
    mean = math.exp(sum(math.log(row["relative"]) for row in own) / len(own))
    runs = sum(row["n"] for row in own)
    linear = sum(row["n"] * row["share_linear"] for row in own)
    return {
        "worlds": len(own),
        "geometric mean": times(mean),
        "worst": times(worst["relative"]),
        "on": judged[worst["world"]],
        "linear runs": share(linear / runs),
    }


def times(value: float | None) -> str:
    """How many times the lowest: 1.00, 34.6, 1,234."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def in_words(spec: Spec, rows: Rows) -> list[str]:
    """Sentences on the reference policy over the judged worlds, and on worlds where another one leads."""
    own = {row["world"]: row for row in rows if row["entry"] == spec.reference}
    played = [world for world in spec.worlds if world.id in own]
    known = [
        world for world in played if world.judged and times(own[world.id]["relative"]) != UNKNOWN
    ]
    lines = _overall({name_of(world): own[world.id] for world in known})
    for world in played:
        best = min((row for row in rows if row["world"] == world.id), key=lambda row: row["mean"])
        if best["entry"] != spec.reference:
            lines.append(_behind(world, own[world.id], best))
    return lines


def _overall(own: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Sentences on a policy over all worlds, from its rows."""
    if not own:
        return []
    factors = {world: row["relative"] for world, row in own.items()}
    led, near = (sum(factor <= limit for factor in factors.values()) for limit in (1, NEAR))
    worst = max(factors, key=factors.__getitem__)
    label = next(iter(own.values()))["label"]
    stuck = {world: row["share_linear"] for world, row in own.items() if row["share_linear"]}
    return [
        f"{label} has the lowest mean regret on {led} of {len(own)} judged worlds and stays within "
        f"{NEAR:g} times the lowest on {near}; it is farthest from it on {worst}: "
        f"{times(factors[worst])}.",
        "Its linear runs: "
        + (", ".join(f"{world} {share(part)}" for world, part in stuck.items()) or "none")
        + ".",
    ]


def _behind(world: WorldSpec, own: Mapping[str, Any], best: Mapping[str, Any]) -> str:
    """Which policy leads on a world, by how much, and the reason if the spec gives one."""
    words = (
        f"{name_of(world)}: {best['label']} has the lowest mean regret, {number(best['mean'])}; "
        f"{own['label']} {number(own['mean'])}, {times(own['relative'])} times that"
    )
    if best["difference"] is not None:
        low, high = (best[f"difference_{end}"] for end in ("low", "high"))
        gap = interval(*(None if end is None else -end for end in (high, low)))
        words += f" (run by run {number(-best['difference'])} more, 95% interval {gap}"
        chosen = best["tuned_on"] == HERE
        words += ", beside the best point of a grid on these very runs)" if chosen else ")"
    return " ".join(f"{words}. {world.note}".split())
