"""Which figures a report has.

A world that is not in a group has its own regret figure. All other figures are one sheet for the worlds
that belong together: those of a group of the spec, and all others of the experiment.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from sidestep.experiments.analysis import bounds
from sidestep.experiments.analysis.bounds import Pairs
from sidestep.experiments.analysis.summary import Summary, WorldSummary
from sidestep.experiments.figures.styles import Drawing, Panel, Style, styles_of
from sidestep.experiments.report import headline, panel
from sidestep.experiments.spec import Spec

SHEETS = ("growth", "phases", "finals", "queries", "widths")
BESIDE = ("protected-linucb", "protected-thompson", "directed-thompson")  # drawn beside the bounds
STORY = "finding"


def styles_for(summary: Summary) -> dict[str, Style]:
    """How every policy of a report is drawn."""
    return styles_of([policy.id for spec in summary.specs for policy in spec.policies])


def pair_names(pairs: Sequence[Pairs]) -> dict[str, Pairs]:
    """Every pair of instances by the name of its figure."""
    return {f"pairs-{k}": pair for k, pair in enumerate(pairs)}


def worlds_of(summary: Summary, spec: Spec) -> list[WorldSummary]:
    """The worlds of an experiment that were played."""
    return [world for world in summary.worlds if world.experiment == spec.name]


def sheets_of(spec: Spec, worlds: Sequence[WorldSummary]) -> dict[str, list[WorldSummary]]:
    """The worlds that share a sheet, by the beginning of its name; a pair has its own figure."""
    groups: dict[str, list[WorldSummary]] = {}
    for world in worlds:
        name = f"{spec.name}-{world.spec.group}" if world.spec.group else spec.name
        if not bounds.is_paired(world):
            groups.setdefault(name, []).append(world)
    return groups


def stands_alone(spec: Spec, world: WorldSummary) -> bool:
    """Whether a world has its own regret figure."""
    return not (spec.panel or world.spec.group or bounds.is_paired(world))


def drawings_of(summary: Summary, pairs: Mapping[str, Pairs]) -> list[Drawing]:
    """Every figure of the report."""
    styles = styles_for(summary)
    rows = headline.common(headline.rows_of(summary, list(pairs.values())))
    plan = [_drawing(STORY, "panel", rows, styles)] if len(rows) > 1 else []
    for spec in summary.specs:
        plan += _experiment(spec, worlds_of(summary, spec), styles)
    for name, pair in pairs.items():
        panels = [Panel(f"pairs of instances, R={pair.noise:g}", pair.series())]
        plan.append(_drawing(name, "pairs", panels, styles)._replace(laws=pair.laws()))
    return plan


def _experiment(
    spec: Spec, worlds: Sequence[WorldSummary], styles: Mapping[str, Style]
) -> list[Drawing]:
    plan = []
    if has_failure(spec, worlds):
        plan.append(Drawing("failure", "failure", [], {}))
    for world in (world for world in worlds if stands_alone(spec, world)):
        name = f"{spec.name}-{world.spec.id}-regret"
        plan.append(_drawing(name, "regret", [_panel(world)], styles))
    for name, members in sheets_of(spec, worlds).items():
        panels = [_panel(world) for world in members]
        plan += [
            _drawing(f"{name}-{kind}", kind, panels, styles) for kind in kinds_of(spec, members)
        ]
    if spec.panel and worlds:
        panels = [Panel(panel.name_of(world.spec), world.series) for world in worlds]
        plan.append(_drawing(f"{spec.name}-panel", "panel", panels, styles))
    plan += [_bound(world, styles) for world in worlds if bounds.laws(world)]
    return plan + [_price(world, styles) for world in worlds if world.facts.price > 0]


def kinds_of(spec: Spec, worlds: Sequence[WorldSummary]) -> list[str]:
    """The sheets of worlds that belong together; that of tolerances only if there are some."""
    has_some = any(series.kept for world in worlds for series in world.series)
    first = [] if stands_alone(spec, worlds[0]) else ["regret"]
    return [*first, *(["tolerances"] if has_some else []), *SHEETS]


def has_failure(spec: Spec, worlds: Sequence[WorldSummary]) -> bool:
    """Whether the failure example is among the worlds; its picture is drawn as in the paper."""
    return not spec.panel and any(world.spec.world == "failure" for world in worlds)


def _bound(world: WorldSummary, styles: Mapping[str, Style]) -> Drawing:
    players = [series for series in world.series if series.policy in BESIDE]
    name = f"bound-{world.experiment}-{world.spec.id}"
    drawn = _drawing(name, "growth", [_panel(world)._replace(series=players)], styles)
    return drawn._replace(laws=bounds.laws(world))


def _price(world: WorldSummary, styles: Mapping[str, Style]) -> Drawing:
    """Regret over p G sqrt(t), the price of protection on the ball."""
    units = [world.facts.price * np.sqrt(series.rounds) for series in world.series]
    scaled = [
        series._replace(mean=series.mean / unit, sd=series.sd / unit)
        for series, unit in zip(world.series, units, strict=True)
    ]
    name = f"price-{world.experiment}-{world.spec.id}"
    return _drawing(name, "price", [_panel(world)._replace(series=scaled)], styles)


def _panel(world: WorldSummary) -> Panel:
    return Panel(world.title, world.series)


def _drawing(name: str, kind: str, panels: Sequence[Panel], styles: Mapping[str, Style]) -> Drawing:
    there = {series.entry for panel in panels for series in panel.series}
    used = {entry: style for entry, style in styles.items() if entry in there}
    return Drawing(name, kind, list(panels), used)
