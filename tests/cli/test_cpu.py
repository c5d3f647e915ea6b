"""A command is quick: it loads what it needs and no more, and that takes little CPU."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import sidestep

pytestmark = pytest.mark.full

HEAVY = {"alembic", "numba", "scipy.optimize", "scipy.stats", "sqlalchemy.dialects.postgresql"}
HEAVY |= {"matplotlib", "pandas", "polars", "fastapi", "jinja2", "sidestep.environments"}
COMMANDS = [
    ["create", "another", "--from", "study.toml", "-s", "{new}.db"],
    ["ask", "bp", "--actor", "{new}", "--new"],
    ["tell", "bp", "2", "139", "--yes"],
    ["best", "bp"],
]
LIMIT = 1.5  # seconds of CPU
TRIES = 4  # the fastest counts, since a busy machine slows everything down
SOURCE = Path(sidestep.__file__).parents[1]


def run_apart(folder, command, *options):
    """Run one command in a separate process with empty caches."""
    line = [sys.executable, *options, "-m", "sidestep.cli.main", "study", *command]
    places = {"PYTHONPATH": str(SOURCE), "NUMBA_CACHE_DIR": str(folder / "empty")}
    environment = {**os.environ, **places}
    return subprocess.run(
        line, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )


def ready(started, command):
    """The study as the command needs it."""
    if command[0] == "best":
        assert started("tell", "bp", 2, 139, "--yes").returncode == 0
    return started.folder


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_command_loads_nothing_that_it_does_not_need(started, command):
    words = [word.format(new="new") for word in command]
    log = run_apart(ready(started, command), words, "-X", "importtime").stderr
    loaded = {line.rpartition("|")[2].strip() for line in log.splitlines()}
    assert "sidestep.studies.study" in loaded
    assert not loaded & HEAVY
    if command[0] == "tell":
        assert not loaded & {"numpy", "scipy"}  # a result can be saved wherever Python runs


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_command_takes_less_than_a_second_and_a_half_of_cpu(started, command):
    folder, found = ready(started, command), []
    for number in range(TRIES):
        words = [word.format(new=f"new-{number}") for word in command]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run_apart(folder, words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if found[-1] < LIMIT:
            return
    pytest.fail(f"{command[0]} takes {min(found):.2f} s of CPU")
