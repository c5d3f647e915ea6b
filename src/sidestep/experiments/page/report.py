"""A results folder as figures, tables and one page, from its traces alone.

DIR/figures/*.png, *.svg   DIR/tables/*.csv   DIR/report.html (nothing to load, fit for a phone)
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars

from sidestep.experiments.executors import Runner, Serial
from sidestep.experiments.numbers import bounds
from sidestep.experiments.numbers.summary import Summary, summarise
from sidestep.experiments.page.assembly import Material, assemble
from sidestep.experiments.page.plan import drawings_of, pair_names
from sidestep.experiments.pictures.figures import render
from sidestep.experiments.results import read_extra, write_whole
from sidestep.experiments.spec import Spec


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

    `on_progress` is called with messages; `runner` draws the figures, for instance in processes.
    """
    folder = Path(folder)
    summary = summarise(folder)
    pairs = pair_names(bounds.pairs_of(summary.worlds))
    plan = drawings_of(summary, pairs)
    pictures = {}
    for done in (runner or Serial()).run(render, plan):
        write_whole(folder / "figures" / f"{done.name}.png", done.png)
        write_whole(folder / "figures" / f"{done.name}.svg", done.svg)
        pictures[done.name] = done
        if on_progress:
            on_progress(f"report: {len(pictures)}/{len(plan)} figures, {done.name}")
    _write_tables(folder, summary, list(pairs.values()))
    extras = {spec.name: read_extra(folder, spec) for spec in summary.specs}
    page = folder / "report.html"
    write_whole(page, assemble(Material(summary, pairs, pictures, extras)).encode())
    if on_progress:
        on_progress(f"report: {page}")
    shown = summary.policies.filter("shown").drop("shown").fill_nan(None)
    return Report(page, summary.specs, shown)


def _write_tables(folder: Path, summary: Summary, pairs: Sequence[bounds.Pairs]) -> None:
    frames: Mapping[str, polars.DataFrame] = {
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
