"""What the benchmark measures, step by step; each step gives rows of one table.

The steps are run one after another by whoever calls, who may stop between any two and keep the rest.
"""

import os
import platform
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speed import contest, cores, grid
from benchmarks.speed.child import (
    commands,
    compiled_anew,
    first_rounds_cached,
    memory_of,
)
from benchmarks.speed.clock import FULL, QUICK
from benchmarks.speed.limits import as_rows, measured
from benchmarks.speed.peers import PEERS, installed
from benchmarks.speed.worlds import (
    AXES,
    GRID,
    HUGE,
    LARGE,
    LOOK,
    PAPER,
    PAPER_GIVEN,
    WARFARIN,
)
from sidestep.policies.catalog import POLICIES

Row = dict[str, Any]
SCHEMA = 1  # of the JSON file
LONG = ("protected-linucb", "oful", "directed-thompson")  # who plays a million rounds
FEW = ("protected-linucb", "oful")


class Step(NamedTuple):
    """One measurement: what it is called, the table it belongs to, and how it is taken."""

    title: str
    table: str
    measure: Callable[[], list[Row]]


def steps(*, quick: bool, with_peers: bool) -> list[Step]:
    """Everything that is to be measured, the machine's own limits first."""
    effort, every = (QUICK if quick else FULL), list(POLICIES)
    limits = cache(partial(measured, effort))
    found = [Step("limits of the machine", "limits", lambda: as_rows(limits()))]
    for world in (PAPER_GIVEN, WARFARIN) if quick else (PAPER_GIVEN, WARFARIN, LARGE):
        measure = partial(contest.contest, world, effort, with_peers=with_peers)
        found.append(Step(f"ours and others, {world.title}", "contest", measure))
    for world in LOOK if quick else GRID:
        measure = partial(grid.decisions, world, every, effort, limits)
        found.append(Step(f"decisions, {world.title}", "decisions", measure))
        measure = partial(grid.latency, world, every, effort)
        found.append(Step(f"ask and tell, {world.title}", "latency", measure))
    for world in LOOK:
        measure = partial(contest.recomputing, world, effort)
        found.append(Step(f"recomputing, {world.title}", "recomputing", measure))
    measure = partial(grid.sharing, FEW if quick else every, effort)
    found.append(Step("arms shared between runs", "sharing", measure))
    for axis, sizes in AXES.items():
        measure = partial(grid.slope, axis, FEW if quick else every, sizes[:3] if quick else sizes)
        found.append(Step(f"growth in {axis}", "slopes", measure))
    found.append(Step("start of commands", "startup", commands))
    found.append(Step("start of a run", "startup", partial(first_rounds_cached, FEW)))
    return found if quick else found + _long(every)


def _long(every: Sequence[str]) -> list[Step]:
    """What takes minutes: long runs, memory, two cores, compiling from nothing."""
    measure = partial(grid.slope_in_rounds, LONG, grid.HORIZONS)
    found = [Step("growth in T", "slopes", measure)]
    for world, rounds, kept in ((HUGE, 1000, 1), (PAPER, 100_000, 100), (PAPER, 1_000_000, 100)):
        job = (world, "protected-linucb", rounds, rounds // kept)
        title = f"memory of {rounds:,} rounds, {world.title}"
        found.append(Step(title, "memory", partial(memory_of, job)))
    found.append(Step("two cores", "cores", cores.scaling))
    found.append(Step("compiling from nothing", "startup", partial(compiled_anew, every)))
    return found


def run_all(plan: list[Step], results: Row) -> Iterator[tuple[int, Step]]:
    """Take the steps, each after it was announced; rows go into the tables of `results`."""
    for number, step in enumerate(plan):
        yield number, step
        results["tables"].setdefault(step.table, []).extend(step.measure())


def empty_results(*, quick: bool, with_peers: bool, date: str) -> Row:
    """The JSON file before the first step: the machine, the versions, the settings."""
    return {
        "schema": SCHEMA,
        "date": date,
        "machine": {
            "processor": processor(),
            "cores": os.cpu_count(),
            "system": platform.system(),
            "load": os.getloadavg()[1] if hasattr(os, "getloadavg") else None,  # before we start
        },
        "versions": versions(),
        "settings": {"quick": quick, "peers": with_peers, "threads": 1},
        "tables": {},
    }


def processor() -> str:
    """What the processor calls itself."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Ours, and of what we and the peers stand on."""
    found = {"sidestep": version("sidestep"), "python": platform.python_version()}
    for package in ("numpy", "numba", "scipy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    for package in dict.fromkeys(peer.package for peer in PEERS):
        found[package] = installed(package) or "not installed"
    return found
