"""A results folder as figures, tables and one page, from its traces alone.

DIR/figures/*.png, *.svg, *.csv   DIR/tables/*.csv   DIR/report.html (nothing to load, fit for a phone)
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import polars

from sidestep.errors import InputError
from sidestep.experiments.analysis import bounds
from sidestep.experiments.analysis.run_facts import Row
from sidestep.experiments.analysis.summary import Summary, summarise
from sidestep.experiments.executors import Runner, Serial
from sidestep.experiments.figures.figure_data import data_of
from sidestep.experiments.figures.figures import render
from sidestep.experiments.figures.print_formats import PRINTED
from sidestep.experiments.report.figure_list import drawings_of, pair_names
from sidestep.experiments.report.layout import Material, assemble
from sidestep.experiments.results import read_extra, write_whole
from sidestep.experiments.spec import Spec

WIDTHS = 2.0, 12.0  # inches, narrowest and widest figure


class Report(NamedTuple):
    """What was built."""

    page: Path
    specs: list[Spec]
    shown: polars.DataFrame  # a row for every experiment, world and policy that the page shows


def build(
    folder: Path | str,
    *,
    formats: Sequence[str] = (),
    width: float | None = None,
    on_progress: Callable[[str], None] | None = None,
    runner: Runner | None = None,
) -> Report:
    """Write figures, tables and report.html into a results folder.

    `formats` are those of print_formats.PRINTED that every figure has besides, `width` inches wide;
    `on_progress` hears how far it is; `runner` reads traces and draws figures elsewhere, for instance in
    processes.
    """
    _check_prints(formats, width)
    folder = Path(folder)
    summary = summarise(folder, runner)
    pairs = pair_names(bounds.pairs_of(summary.worlds))
    plan = [
        drawing._replace(formats=tuple(formats), width=width)
        for drawing in drawings_of(summary, pairs)
    ]
    for drawing in plan:
        _write_table(folder / "figures" / f"{drawing.name}.csv", data_of(drawing))
    pictures = {}
    for done in (runner or Serial()).run(render, plan):
        write_whole(folder / "figures" / f"{done.name}.png", done.png)
        write_whole(folder / "figures" / f"{done.name}.svg", done.svg)
        for form, content in done.prints:
            write_whole(folder / "figures" / f"{done.name}.{form}", content)
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


def _check_prints(formats: Sequence[str], width: float | None) -> None:
    """Raise one sentence for formats or a width that cannot be drawn."""
    for form in formats:
        if form not in PRINTED:
            known = " and ".join(PRINTED)
            raise InputError(
                f"format must be of {known} (PNG and SVG are always there), got {form!r}"
            )
    if width is not None and not formats:
        raise InputError(
            f"width must go with a format, {' or '.join(PRINTED)}, got {width:g} alone"
        )
    if width is not None and not WIDTHS[0] <= width <= WIDTHS[1]:
        low, high = WIDTHS
        raise InputError(f"width must be {low:g} to {high:g} inches, got {width:g}")


def _write_table(path: Path, table: polars.DataFrame | list[Row]) -> None:
    """A CSV file of a frame or of rows; none if there are no rows."""
    frame = polars.DataFrame(table, infer_schema_length=None)
    if frame.height:
        write_whole(path, frame.fill_nan(None).write_csv().encode())


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
        _write_table(folder / "tables" / f"{name}.csv", frame)
