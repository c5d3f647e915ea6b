"""A results folder as figures, tables and one page, from its traces alone.

DIR/figures/*.png, *.svg   DIR/tables/*.csv   DIR/report.html (nothing to load, fit for a phone)
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import polars

from sidestep.experiments.executors import Runner, Serial
from sidestep.experiments.numbers import bounds
from sidestep.experiments.numbers.summary import Summary, WorldSummary, summarise
from sidestep.experiments.page import closing, panel, sections
from sidestep.experiments.page.page import (
    details,
    items,
    page,
    picture,
    section,
    table,
    text,
)
from sidestep.experiments.pictures.figures import render
from sidestep.experiments.pictures.sheets import Drawing, Panel, Style, styles_of
from sidestep.experiments.results import read_extra, write_whole
from sidestep.experiments.spec import Spec

KINDS = ("regret", "growth", "phases", "finals", "tolerances", "queries", "widths")


class Report(NamedTuple):
    """What was built."""

    page: Path
    specs: list[Spec]
    shown: polars.DataFrame  # a row for every experiment, world and policy that the page shows


def build(
    folder: Path | str,
    *,
    on_progress: Callable[[str], None] | None = None,
    runner: Runner | None = None,
) -> Report:
    """Write figures, tables and report.html into a results folder.

    `on_progress` hears how far it is; `runner` draws the figures elsewhere, for instance in processes.
    """
    folder = Path(folder)
    summary = summarise(folder)
    pairs = bounds.pairs_of(summary.worlds)
    plan = drawings_of(summary, pairs)
    pictures = {}
    for done in (runner or Serial()).run(render, plan):
        write_whole(folder / "figures" / f"{done.name}.png", done.png)
        write_whole(folder / "figures" / f"{done.name}.svg", done.svg)
        pictures[done.name] = done.png
        if on_progress:
            on_progress(f"report: {len(pictures)}/{len(plan)} figures, {done.name}")
    _write_tables(folder, summary, pairs)
    extras = {spec.name: read_extra(folder, spec) for spec in summary.specs}
    page = folder / "report.html"
    write_whole(page, _page(summary, pairs, pictures, extras).encode())
    if on_progress:
        on_progress(f"report: {page}")
    shown = summary.policies.filter("shown").drop("shown").fill_nan(None)
    return Report(page, summary.specs, shown)


def groups_of(worlds: Sequence[WorldSummary], experiment: str) -> dict[str, list[WorldSummary]]:
    """The worlds of an experiment by figure: one each, or all of a group."""
    groups: dict[str, list[WorldSummary]] = {}
    for world in worlds:
        if world.experiment == experiment:
            groups.setdefault(world.spec.group or world.spec.id, []).append(world)
    return groups


def drawings_of(summary: Summary, pairs: Sequence[bounds.Pairs]) -> list[Drawing]:
    """Every figure of the report."""
    ids = [[spec.reference, *(policy.id for policy in spec.policies)] for spec in summary.specs]
    styles = styles_of([[name for name in group if name] for group in ids])
    alone = {spec.name for spec in summary.specs if not spec.panel}
    shown = [world for world in summary.worlds if world.experiment in alone]
    plan = [Drawing("failure", "failure", [], {})] if sections.has_failure(shown) else []
    for spec in summary.specs:
        for group, worlds in groups_of(summary.worlds, spec.name).items():
            panels = [Panel(world.spec.title or world.spec.id, world.series) for world in worlds]
            plan += [
                Drawing(f"{spec.name}-{group}-{kind}", kind, panels, _used(styles, panels))
                for kind in _kinds(worlds)
            ]
        if _has_panel(summary, spec):
            panels = [
                Panel(panel.name_of(world.spec), world.series)
                for world in summary.worlds
                if world.experiment == spec.name
            ]
            plan.append(Drawing(f"{spec.name}-panel", "panel", panels, _used(styles, panels)))
    for world in summary.worlds:
        lines = bounds.laws(world)
        if lines:
            players = [series for series in world.series if series.policy == "protected-linucb"]
            panels = [Panel(world.spec.title or world.spec.id, players)]
            name = f"bound-{world.experiment}-{world.spec.id}"
            plan.append(Drawing(name, "growth", panels, _used(styles, panels), lines))
    for k, pair in enumerate(pairs):
        panels = [Panel(f"pairs of instances, R={pair.noise:g}", pair.series())]
        plan.append(Drawing(f"pairs-{k}", "pairs", panels, _used(styles, panels), pair.laws()))
    return plan


def _kinds(worlds: Sequence[WorldSummary]) -> list[str]:
    """The figures of a group of worlds; that of tolerances only where there are some."""
    has_some = any(series.kept for world in worlds for series in world.series)
    return [kind for kind in KINDS if has_some or kind != "tolerances"]


def _has_panel(summary: Summary, spec: Spec) -> bool:
    """Whether the worlds of an experiment are to be set side by side, and were played."""
    return spec.panel and any(world.experiment == spec.name for world in summary.worlds)


def _used(styles: Mapping[str, Style], panels: Sequence[Panel]) -> dict[str, Style]:
    there = {series.entry for panel in panels for series in panel.series}
    return {entry: style for entry, style in styles.items() if entry in there}


def _write_tables(folder: Path, summary: Summary, pairs: Sequence[bounds.Pairs]) -> None:
    frames = {
        "policies": summary.policies,
        "grids": summary.policies.filter("grid"),
        "phases": summary.phases,
        "queries": summary.queries,
        "effects": summary.effects,
        "runs": summary.runs,
        "bounds": polars.DataFrame([row for w in summary.worlds for row in bounds.upper_rows(w)]),
        "lower-bound": polars.DataFrame([row for pair in pairs for row in pair.rows()]),
    }
    for name, frame in frames.items():
        if frame.height:
            content = frame.fill_nan(None).write_csv()
            write_whole(folder / "tables" / f"{name}.csv", content.encode())


def _page(
    summary: Summary,
    pairs: Sequence[bounds.Pairs],
    pictures: Mapping[str, bytes],
    extras: Mapping[str, str],
) -> str:
    parts = [
        section(1, "", "What was played, and what came of it"),
        f'<p class="soft">sidestep report of {datetime.now(UTC):%Y-%m-%d %H:%M} UTC: '
        f"{len(summary.specs)} experiments, {len(summary.worlds)} worlds, "
        f"{summary.runs.height} runs.</p>\n",
        _contents(summary),
        section(2, "glance", "At a glance", table(sections.glance(summary))),
    ]
    for spec in summary.specs:
        groups = groups_of(summary.worlds, spec.name)
        if groups:
            parts.append(_experiment(spec, summary, groups, pictures, extras[spec.name]))
    parts.append(closing.theory(summary.worlds, pairs, pictures))
    parts.append(closing.promises())
    parts.append(closing.repeat(summary))
    return page("sidestep report", "".join(parts))


def _contents(summary: Summary) -> str:
    lines = ['<a href="#glance">At a glance</a>']
    for spec in summary.specs:
        groups = groups_of(summary.worlds, spec.name)
        inner = items(
            [
                f'<a href="#{text(spec.name)}-{text(group)}">{text(sections.title_of(group, worlds))}</a>'
                for group, worlds in groups.items()
            ]
        )
        if groups:
            lines.append(f'<a href="#{text(spec.name)}">{text(spec.title or spec.name)}</a>{inner}')
    ends = [("theory", "Beside the bounds"), ("promises", "What is and is not promised")]
    ends.append(("repeat", "Machine, versions, seeds; how to repeat"))
    lines += [f'<a href="#{anchor}">{words}</a>' for anchor, words in ends]
    return f'<nav aria-label="Contents"><b>Contents</b>{items(lines)}</nav>\n'


def _experiment(
    spec: Spec,
    summary: Summary,
    groups: Mapping[str, list[WorldSummary]],
    pictures: Mapping[str, bytes],
    extra: str,
) -> str:
    worlds = [world for group in groups.values() for world in group]
    missing = sum(world.missing for world in worlds)
    played = {world.spec.id for world in worlds}
    absent = [world.id for world in spec.worlds if world.id not in played]
    parts = [
        f'<p class="note">{text(spec.note.strip())}</p>\n' if spec.note else "",
        f"<p><b>{missing} runs are missing</b>: an interrupted sweep, or runs that failed."
        "</p>\n" if missing else "",
        f"<p><b>Not played: {text(', '.join(absent))}.</b></p>\n" if absent else "",
        extra,
        "" if spec.panel else sections.failure_figure(worlds, pictures),
        _side_by_side(spec, summary, worlds, pictures),
        sections.keeping(summary, worlds),
        details("Policies and knobs", table(sections.policies(spec))),
    ]  # fmt: skip
    for group, members in groups.items():
        name = f"{spec.name}-{group}"
        parts.append(section(3, name, sections.title_of(group, members)))
        parts.append(
            sections.group(
                spec, summary, members, {k: pictures[f"{name}-{k}"] for k in _kinds(members)}
            )
        )
    return section(2, spec.name, spec.title or spec.name, *parts)


def _side_by_side(
    spec: Spec, summary: Summary, worlds: Sequence[WorldSummary], pictures: Mapping[str, bytes]
) -> str:
    """All worlds of an experiment in one table; for a panel relative to the best, with a figure."""
    if not spec.panel:
        return table(sections.across(summary, worlds), sections.ACROSS) if len(worlds) > 1 else ""
    mine = (polars.col("experiment") == spec.name) & polars.col("shown")
    rows = summary.policies.filter(mine).to_dicts()
    lines = items([text(line) for line in panel.in_words(spec, rows)])
    drawn = picture(pictures[f"{spec.name}-panel"], panel.FIGURE, wide=True)
    numbers = table(panel.table_of(spec, rows), panel.CAPTION)
    return f'{numbers}{lines}<div class="figures">{drawn}</div>\n'
