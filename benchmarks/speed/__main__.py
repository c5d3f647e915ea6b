"""Measure step by step, keep every step, print tables: `python -m benchmarks.speed --help`."""

# ruff: noqa: E402  (the number of threads must be set before numpy is imported)
import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

for threads in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{threads}_NUM_THREADS"] = "1"

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.progress import Progress as Bar

from benchmarks.speed import figure, page, plan
from benchmarks.speed.targets import verdicts
from sidestep.experiments.results import write_whole

console = Console(stderr=True)
INTERRUPTED = 130  # what shells expect after Ctrl-C


def main() -> int:
    """The exit code: 0, or 130 where Ctrl-C ended it early."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed",
        description="How fast decisions are: against the machine's limits, numpy, other packages.",
    )
    parser.add_argument("--peers", action="store_true", help="also those of benchmarks/peers.txt")
    parser.add_argument("--quick", action="store_true", help="a look: a minute, once compiled")
    parser.add_argument("--out", type=Path, default=Path("bench"), help="for bench.json, .md, .png")
    parser.add_argument("--json", action="store_true", help="print JSON for a program to read")
    asked = parser.parse_args()
    if bench(asked.out, quick=asked.quick, with_peers=asked.peers, as_json=asked.json):
        return 0
    print(f"interrupted; what was measured is kept in {asked.out}", file=sys.stderr)
    return INTERRUPTED


def bench(out: Path, *, quick: bool, with_peers: bool, as_json: bool) -> bool:
    """Measure and print; False where Ctrl-C ended it early. What was finished is kept either way."""
    today = date.today().isoformat()
    results = plan.empty_results(quick=quick, with_peers=with_peers, date=today)
    whole = True
    try:
        _measure(results, out, quick=quick, with_peers=with_peers)
    except KeyboardInterrupt:
        whole = False
    results["promises"] = verdicts(results["tables"])
    _save(results, out)
    write_whole(out / "bench.md", page.markdown(results).encode())
    if {"contest", "decisions"} & set(results["tables"]):
        write_whole(out / "bench.png", figure.png(results))
    print(json.dumps(results, indent=1) if as_json else page.markdown(results))
    return whole


def _measure(results: dict[str, Any], out: Path, *, quick: bool, with_peers: bool) -> None:
    steps = plan.steps(quick=quick, with_peers=with_peers)
    with _progress(len(steps)) as say:
        for number, step in plan.run_all(steps, results):
            say(number, step.title)
            _save(results, out)


def _save(results: dict[str, Any], out: Path) -> None:
    write_whole(out / "bench.json", json.dumps(results, indent=1).encode())


@contextmanager
def _progress(count: int) -> Iterator[Any]:
    """A bar on a terminal, a line a step in a pipe."""
    if not console.is_terminal:
        yield lambda number, title: print(
            f"{number + 1}/{count} {title}", file=sys.stderr, flush=True
        )
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=console) as bar:
        task = bar.add_task("", total=count)
        yield lambda number, title: bar.update(task, completed=number, description=title)


if __name__ == "__main__":
    sys.exit(main())
