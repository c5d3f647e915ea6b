"""The commands of the lab: run specs as sweeps, show progress, build the report."""

import html
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from sidestep.core.validation import check_lab, look_up
from sidestep.errors import FailedRunsError, InputError
from sidestep.experiments.executors import Dask, Processes, Runner, Serial
from sidestep.experiments.results import write_extra
from sidestep.experiments.results_folder import check_owner
from sidestep.experiments.spec import (
    Spec,
    check_names,
    has_patients,
    parse_spec,
    patients_of,
    read_spec,
    shipped_specs,
    shortened,
    with_table,
)
from sidestep.experiments.sweep import Failed, OnProgress, Progress, check_jobs, compile_loop, sweep

console = Console(stderr=True)


LAB = ("numba", "polars", "matplotlib", "PIL")  # what a sweep and its report need
SHOWN = 10  # failed runs that are named


def reproduce(
    names: list[str],
    *,
    data: Path | None,
    settings: Mapping[str, Any],
    runner: Runner,
    out: Path,
    overwrite: bool,
) -> list[Failed]:
    """Run shipped experiments, keeping finished runs; if one is refused, nothing runs."""
    check_lab("reproduce", *LAB)
    shipped = shipped_specs()
    texts = {name: look_up("experiment", name, shipped) for name in names}
    specs = [shortened(parse_spec(text, f"{name}.toml"), settings) for name, text in texts.items()]
    if data is not None and not any(map(has_patients, specs)):
        raise InputError(
            "--data must go with an experiment on patients, warfarin, guardrails or panel, "
            f"got {', '.join(names)}"
        )
    specs = [with_table(spec, data) for spec in specs]
    for spec in specs:
        check_owner(out, spec, resume=True, overwrite=overwrite)
    patients = [patients_of(spec) for spec in specs]
    _compile(specs, runner)
    failed = []
    for spec, lines in zip(specs, patients, strict=True):
        _say_patients(out, spec, lines)
        failed += _sweep(spec, out, runner, resume=True, overwrite=overwrite)
    return failed


def _say_patients(out: Path, spec: Spec, lines: list[str]) -> None:
    """Print the facts on the terminal, and save them beside the spec for the report."""
    if lines:
        _say("\n\n".join(lines))
        write_extra(out, spec, "".join(f"<pre>{html.escape(text)}</pre>\n" for text in lines))


def run_spec(
    path: Path, *, out: Path, runner: Runner, resume: bool, overwrite: bool
) -> list[Failed]:
    """Run an experiment from a file; returns the runs that failed."""
    check_lab("run", *LAB)
    spec = read_spec(path)
    check_names(spec, str(path))
    check_owner(out, spec, resume=resume, overwrite=overwrite)
    _compile([spec], runner)
    return _sweep(spec, out, runner, resume=resume, overwrite=overwrite)


def finish(
    folder: Path,
    *,
    runner: Runner,
    as_json: bool,
    failed: Sequence[Failed] = (),
    formats: str = "",
    width: float | None = None,
) -> None:
    """Build the report and print its tables; raise at the end if runs failed."""
    if not failed or any(folder.glob("*/traces/*/*/*.parquet")):
        _report(folder, runner, as_json=as_json, formats=formats, width=width)
    if failed:
        for run in failed[:SHOWN]:
            _say(run.reason)
        more = f", {len(failed) - SHOWN} more than shown" if len(failed) > SHOWN else ""
        raise FailedRunsError(
            f"{len(failed)} runs failed{more}; the others are kept, and only these are played again "
            "when it is resumed"
        )


def _report(
    folder: Path, runner: Runner, *, as_json: bool, formats: str, width: float | None
) -> None:
    from sidestep.cli.printing import panels_lines, table_lines  # noqa: PLC0415  (after the last
    from sidestep.experiments.report.build import build  # noqa: PLC0415            round: matplotlib)

    wanted = [form.strip().lower() for form in formats.split(",") if form.strip()]
    heard = _every_two_seconds()
    report = build(folder, formats=wanted, width=width, on_progress=heard, runner=runner)
    rows = report.shown.to_dicts()
    if as_json:
        print(json.dumps(rows, indent=1, default=str))
    else:
        lines = [*table_lines(rows), *panels_lines(report.specs, rows), "", str(report.page)]
        print("\n".join(lines))


def runner_of(jobs: int, scheduler: str = "") -> Runner:
    """The workers of a Dask scheduler if one is given, else processes of this machine."""
    if scheduler:
        return Dask(scheduler)
    return Processes(jobs) if jobs > 1 else Serial()


def _compile(specs: list[Spec], runner: Runner) -> None:
    """Check every job, then compile the loops that the sweeps will need, or find them in the cache.

    The loops on solids take longest, so they come first.
    """
    found = {loop: job for spec in specs for loop, job in check_jobs(spec).items()}
    loops = [found[loop] for loop in sorted(found, key=itemgetter(1), reverse=True)]
    if not loops or isinstance(runner, Dask):
        return
    start = time.perf_counter()
    with _progress_bar("compiling") as on_progress:
        for done, policy in enumerate(runner.run(compile_loop, loops), 1):
            on_progress(Progress(done, len(loops), 0, time.perf_counter() - start, policy))


def _sweep(spec: Spec, out: Path, runner: Runner, *, resume: bool, overwrite: bool) -> list[Failed]:
    with _progress_bar(spec.name) as on_progress:
        swept = sweep(
            spec, out, runner, resume=resume, overwrite=overwrite, on_progress=on_progress
        )
    return swept.failed


@contextmanager
def _progress_bar(name: str) -> Iterator[OnProgress]:
    """A bar on a terminal, a line now and then in a pipe."""
    if not console.is_terminal:
        yield _plain(name)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(name, total=None, speed="")

        def on_progress(progress: Progress) -> None:
            bar.update(task, completed=progress.done, total=progress.jobs, speed=_speed(progress))

        yield on_progress


def _speed(progress: Progress) -> str:
    speed = progress.rounds / max(progress.seconds, 1e-9)
    return f"{speed:,.0f} rounds/s" if progress.rounds else ""


def _plain(name: str) -> OnProgress:
    last = [time.perf_counter()]

    def on_progress(progress: Progress) -> None:
        now = time.perf_counter()
        if progress.done == progress.jobs or now - last[0] > 10:
            last[0] = now
            _say(f"{name}: {progress.done}/{progress.jobs} {_speed(progress)}".rstrip())

    return on_progress


def _every_two_seconds() -> Callable[[str], None]:
    last = [time.perf_counter()]

    def on_progress(words: str) -> None:
        if time.perf_counter() - last[0] > 2:
            last[0] = time.perf_counter()
            _say(words)

    return on_progress


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
