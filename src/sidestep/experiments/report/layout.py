"""Builds the page: the finding, the experiments in the paper's order, what can be concluded."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import polars

from sidestep.experiments.analysis.bounds import Pairs
from sidestep.experiments.analysis.summary import Summary, WorldSummary
from sidestep.experiments.figures.styles import Rendered
from sidestep.experiments.report import headline, panel, paper_claims, sections
from sidestep.experiments.report.figure_list import (
    STORY,
    has_failure,
    kinds_of,
    sheets_of,
    stands_alone,
    styles_for,
    worlds_of,
)
from sidestep.experiments.report.html import (
    details,
    items,
    page,
    paragraphs,
    picture,
    pictures_row,
    section,
    table,
    text,
)
from sidestep.experiments.report.sections import legend
from sidestep.experiments.spec import Spec

TITLE = "Bandits with protected outcomes: results"
ENDS = (("promises", "What is and is not promised"), ("repeat", "How to reproduce it"))


class Material(NamedTuple):
    """The inputs of a page."""

    summary: Summary
    pairs: Mapping[str, Pairs]  # by the name of the figure
    pictures: Mapping[str, Rendered]
    extras: Mapping[str, str]  # HTML of an experiment's own


def assemble(material: Material) -> str:
    """The whole page."""
    summary = material.summary
    played = [spec for spec in _in_order(summary.specs) if worlds_of(summary, spec)]
    parts = [
        section(1, "", TITLE),
        f'<p class="soft">sidestep report of {datetime.now(UTC):%Y-%m-%d %H:%M} UTC</p>\n',
        _lead(material),
        _contents(played),
        *(_experiment(material, spec) for spec in played),
        sections.promises(),
        sections.repeat(summary),
    ]
    return page("sidestep report", "".join(parts))


def _in_order(specs: Sequence[Spec]) -> list[Spec]:
    """The paper's order, then all others."""
    return sorted(specs, key=lambda spec: (spec.panel, paper_claims.place_of(spec.name)))


def _lead(material: Material) -> str:
    """Five sentences and one figure."""
    summary, pairs = material.summary, list(material.pairs.values())
    said = "".join(f"<p>{text(words)}</p>\n" for words in headline.sentences(summary, pairs))
    drawn = ""
    if STORY in material.pictures:
        panels = headline.common(headline.rows_of(summary, pairs))
        names = {series.entry: series.name for panel in panels for series in panel.series}
        drawn = picture(material.pictures[STORY].bare, headline.FIGURE)
        drawn = f"<div>{drawn}{legend(styles_for(summary), names)}</div>"
    return f'<div class="lead"><div>{said}</div>{drawn}</div>\n'


def _contents(specs: Sequence[Spec]) -> str:
    links = [(spec.name, spec.title or spec.name) for spec in specs]
    lines = [f'<a href="#{text(anchor)}">{text(words)}</a>' for anchor, words in [*links, *ENDS]]
    return f'<nav aria-label="Contents"><b>Contents</b>{items(lines)}</nav>\n'


def _experiment(material: Material, spec: Spec) -> str:
    """One experiment: its subject, figures, one table; the rest collapsed."""
    worlds = worlds_of(material.summary, spec)
    parts = [
        _words(material, spec, worlds),
        _missing(spec, worlds),
        _panel(material, spec) if spec.panel else _curves(material, spec, worlds),
        sections.lower(_pairs(material, spec), material.pictures),
        sections.upper(worlds, material.pictures),
        sections.keeping(worlds),
        details("Where the patients come from", material.extras[spec.name]),
        _figures(material, spec, worlds),
        sections.numbers(material.summary, worlds),
        sections.settings(spec, worlds),
    ]
    return section(2, spec.name, spec.title or spec.name, *parts)


def _words(material: Material, spec: Spec, worlds: Sequence[WorldSummary]) -> str:
    note = " ".join(spec.note.replace("`", "").split())
    told = paper_claims.told(material.summary, spec, list(material.pairs.values()))
    if told:
        said = {"The paper": [told.says], "Played": [note], "Found": told.found}
        return paragraphs(said | {"Where they differ": told.differs})
    words = f'<p class="note">{text(note)}</p>\n' if note else ""
    if spec.panel or len(worlds) > 4:
        return words
    for world in worlds:
        title = f"<b>{text(world.title)}</b>" if len(worlds) > 1 else ""
        words += title + items(sections.in_words(material.summary, world))
    return words


def _missing(spec: Spec, worlds: Sequence[WorldSummary]) -> str:
    """The runs that are missing after an interrupted sweep."""
    missing = sum(world.missing for world in worlds)
    played = {world.spec.id for world in worlds}
    absent = [world.id for world in spec.worlds if world.id not in played]
    words = ""
    if missing:
        why = "an interrupted sweep, or runs that failed"
        words += f"<p><b>{missing} runs are missing</b>: {why}.</p>\n"
    if absent:
        words += f"<p><b>Not played: {text(', '.join(absent))}.</b></p>\n"
    return words


def _curves(material: Material, spec: Spec, worlds: Sequence[WorldSummary]) -> str:
    """Regret on every world or group of worlds, one legend for all, and the table across worlds."""
    alone = [world for world in worlds if stands_alone(spec, world)]
    drawn = [sections.failure_figure(material.pictures)] if has_failure(spec, worlds) else []
    for world in alone:
        svg = material.pictures[f"{spec.name}-{world.spec.id}-regret"].bare
        words = f"Cumulative regret of every player, {world.title}."
        drawn.append(picture(svg, words, caption=""))
    drawn += [
        picture(material.pictures[f"{name}-regret"].svg, sections.CAPTIONS["regret"], wide=True)
        for name, members in sheets_of(spec, worlds).items()
        if "regret" in kinds_of(spec, members)
    ]
    names = {series.entry: series.name for world in alone for series in world.series}
    keys = legend(styles_for(material.summary), names)
    keys += f'<p class="soft">{text(sections.CAPTIONS["regret"])}</p>\n' if alone else ""
    across = table(sections.across(material.summary, worlds), sections.ACROSS) if alone else ""
    return keys + pictures_row(drawn) + across


def _pairs(material: Material, spec: Spec) -> dict[str, Pairs]:
    return {
        name: pair
        for name, pair in material.pairs.items()
        if pair.worlds[0].experiment == spec.name and not spec.panel
    }


def _panel(material: Material, spec: Spec) -> str:
    """All worlds of an experiment in one table, relative to the best on each."""
    mine = (polars.col("experiment") == spec.name) & polars.col("shown")
    rows = material.summary.policies.filter(mine).to_dicts()
    lines = items([text(line) for line in panel.in_words(spec, rows)])
    drawn = picture(material.pictures[f"{spec.name}-panel"].svg, panel.FIGURE)
    totals = table(panel.totals_of(spec, rows), panel.TOTALS)
    worlds = table(panel.table_of(spec, rows), panel.CAPTION)
    return lines + totals + pictures_row([drawn]) + worlds


def _figures(material: Material, spec: Spec, worlds: Sequence[WorldSummary]) -> str:
    """The other figures, collapsed."""
    drawn = []
    for name, members in sheets_of(spec, worlds).items():
        drawn += [
            picture(material.pictures[f"{name}-{kind}"].svg, sections.CAPTIONS[kind], wide=True)
            for kind in kinds_of(spec, members)
            if spec.panel or kind != "regret"
        ]
    return details(
        "More figures: growth, phases, final regrets, queries, widths", pictures_row(drawn)
    )
