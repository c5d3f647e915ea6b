"""The beginning of the report: the finding, in five sentences and one figure."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sidestep.experiments.analysis.bounds import Pairs, is_paired, upper_rows
from sidestep.experiments.analysis.summary import NEAR, Series, Summary, WorldSummary
from sidestep.experiments.figures.styles import Panel
from sidestep.experiments.report.html import brief, share
from sidestep.experiments.report.panel import name_of, times
from sidestep.experiments.report.paper_claims import GREEDY, OURS, THEIRS, place_of

FIGURE = (
    "Mean final regret of every player relative to the lowest on that world: further to the left is "
    f"better. Grey band: within {NEAR:g} times the lowest. Hollow marker: more than a tenth of the "
    "runs turned linear."
)
PAPER_AIM = "paper-aim"  # our player, told the paper's aim where the world has tolerances
FIRST, NOISY = ("synthetic", "synthetic"), ("synthetic", "synthetic-r0.1")  # experiment, world


class Row(NamedTuple):
    """One world of the figure."""

    panel: Panel
    judged: bool  # whether it counts where policies are compared over all worlds


def rows_of(summary: Summary, pairs: Sequence[Pairs]) -> list[Row]:
    """The rows of the figure: every world except those of a panel; of a pair, the larger regret."""
    alone = {spec.name for spec in summary.specs if not spec.panel}
    rows = [
        (world.experiment, Row(Panel(_name(world), world.series), world.spec.judged))
        for world in summary.worlds
        if world.experiment in alone and not is_paired(world)
    ]
    larger = [(pair.worlds[0].experiment, Row(_larger(pair), judged=True)) for pair in pairs]
    rows += [(name, row) for name, row in larger if name in alone]
    return [row for _, row in sorted(rows, key=lambda named: place_of(named[0]))]


def _name(world: WorldSummary) -> str:
    return f"{world.experiment}: {name_of(world.spec)}"


def _larger(pair: Pairs) -> Panel:
    last = pair.horizons[-1]
    series = [one._replace(final=one.mean[-1:]) for one in pair.series() if one.rounds[-1] == last]
    return Panel(f"lower bound: the larger of the pair, T={last}", series)


def common(rows: Sequence[Row]) -> list[Panel]:
    """The rows, with only those policies that play more than half of them."""
    panels = [row.panel for row in rows]
    counts = Counter(series.entry for panel in panels for series in panel.series)
    many = {entry for entry, count in counts.items() if 2 * count > len(rows)}
    return [panel._replace(series=[s for s in panel.series if s.entry in many]) for panel in panels]


def sentences(summary: Summary, pairs: Sequence[Pairs]) -> list[str]:
    """At most five sentences; worlds that were not played are not mentioned."""
    rows = rows_of(summary, pairs)
    found = [_scope(summary, rows, pairs), stand(rows, OURS), _first_figure(summary), _why(summary)]
    found += [_beside_the_bound(summary), _within_tolerances(summary)]
    return [words for words in found if words]


def _scope(summary: Summary, rows: Sequence[Row], pairs: Sequence[Pairs]) -> str:
    """What was played, and why the figure has fewer rows than there are worlds."""
    players = {entry.id for spec in summary.specs for entry in spec.policies}
    words = (
        f"{len(players)} players, {len(summary.worlds)} worlds, {summary.runs.height} runs: regret is "
        "the reward lost against a player who knows the hidden vectors."
    )
    panels = {spec.name for spec in summary.specs if spec.panel}
    aside = sum(world.experiment in panels for world in summary.worlds)
    paired = sum(len(pair.worlds) for pair in pairs if pair.worlds[0].experiment not in panels)
    merged = len(rows) - (len(summary.worlds) - aside - paired)
    why = [f"the panel, with {aside} of the worlds, has its own figure"] if aside else []
    if paired:
        how = "one row, the pair" if merged == 1 else f"{merged} rows, the pairs"
        why.append(f"the {paired} worlds of the lower bound are {how} with the longest horizon")
    if len(rows) < 2 or not why:
        return words
    return f"{words} The figure has {len(rows)} rows: {', and '.join(why)}."


def stand(rows: Sequence[Row], entry: str) -> str:
    """The results of a policy over all worlds."""
    judged = _factors([row.panel for row in rows if row.judged], entry)
    aside = _factors([row.panel for row in rows if not row.judged], entry)
    if not judged:
        return ""
    found = [series for row in rows for series in row.panel.series if series.entry == entry]
    led, near = (sum(factor <= limit for factor in judged.values()) for limit in (1, NEAR))
    worst = max(judged, key=judged.__getitem__)
    which = f"{len(judged)} rows that are judged" if aside else f"{len(judged)} rows"
    words = (
        f"Our {found[0].label} has the lowest mean regret on {led} of the {which} and is "
        f"within {NEAR:g} times the lowest on {near}"
    )
    if judged[worst] > 1:
        words += f"; its worst ratio is {times(judged[worst])}, on {worst}"
    if aside:
        words += (
            f"; on the other {len(aside)}, where the arms cannot show which one is best, it is up to "
            f"{times(max(aside.values()))} times the lowest"
        )
    return f"{words}."


def _factors(panels: Sequence[Panel], entry: str) -> dict[str, float]:
    """Mean regret of a policy divided by the lowest, by world."""
    factors = {}
    for panel in panels:
        means = {series.entry: float(series.final.mean()) for series in panel.series}
        if entry in means and min(means.values()) > 0:
            factors[panel.title] = means[entry] / min(means.values())
    return factors


def _series(summary: Summary, place: tuple[str, str], entry: str) -> Series | None:
    return next(
        (
            series
            for world in summary.worlds
            if (world.experiment, world.spec.id) == place
            for series in world.series
            if series.entry == entry
        ),
        None,
    )


def _first_figure(summary: Summary) -> str:
    """Final regret of three policies on the paper's first figure, and on the same with more noise."""
    ends: list[Any] = [
        [_series(summary, place, entry) for entry in (OURS, THEIRS, GREEDY)]
        for place in (FIRST, NOISY)
    ]
    if not all(all(group) for group in ends):
        return ""
    left, right = ([brief(float(one.final.mean())) for one in group] for group in ends)
    return (
        f"On the world of the paper's first figure it ends at {left[0]}, the paper's player (Protected "
        f"LinUCB) at {left[1]} and tuned epsilon-greedy at {left[2]}; with a hundred times that noise "
        f"they end at {right[0]}, {right[1]} and {right[2]}."
    )


def _why(summary: Summary) -> str:
    """The regret of the paper's policy during CORE-SET, where it does not win."""
    spent = []
    for place in (FIRST, NOISY):
        series = _series(summary, place, THEIRS)
        if series is not None and series.final.mean() > 0:
            spent.append(share(series.phases["core-set"] / float(series.final.mean())))
    if len(spent) < 2:
        return ""
    return (
        "The paper's player does not win there because its first phase, CORE-SET, measures every side "
        f"effect along every axis until a worst-case bound holds: this phase causes {spent[0]} and "
        f"{spent[1]} of its regret."
    )


def _beside_the_bound(summary: Summary) -> str:
    """Whether the theorem holds where it is proved."""
    rows = [row for world in summary.worlds for row in upper_rows(world) if row["proved"]]
    if not rows:
        return ""
    parts = [row["largest"] / row["corrected"] for row in rows]
    holds = "in every run" if max(parts) <= 1 else "not in every run"
    return (
        f"On the unit ball, where the paper's theorem applies, its regret bound holds {holds}: the "
        f"largest regret is {share(float(np.max(parts)))} of the bound."
    )


def _within_tolerances(summary: Summary) -> str:
    """How our policy keeps tolerances, and how it would with the paper's aim."""
    kept: dict[str, list[Any]] = {OURS: [], PAPER_AIM: []}
    for world in summary.worlds:
        for series in world.series:
            if series.entry in kept and series.kept:
                kept[series.entry].append(series.kept)
    if not all(kept.values()):
        return ""
    beyond = {entry: _range([one.beyond for one in found]) for entry, found in kept.items()}
    ends = {entry: _range([one.within for one in found]) for entry, found in kept.items()}
    return (
        f"Told the tolerances, it exceeds one in {beyond[OURS]} of the rounds while it learns, by world, "
        f"and recommends an action truly within all of them in {ends[OURS]} of the runs; told the "
        f"paper's aim instead, {beyond[PAPER_AIM]} and {ends[PAPER_AIM]}."
    )


def _range(parts: Sequence[float]) -> str:
    low, high = share(min(parts)), share(max(parts))
    return low if low == high else f"{low.removesuffix('%')} to {high}"
