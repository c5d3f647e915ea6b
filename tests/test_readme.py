"""The README: its code prints what it shows to the last digit, and its pictures are small."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sidestep.cli.main import PAPER, app
from sidestep.experiments.spec import jobs_of, parse_spec, shipped_specs

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n(?:\nIt prints\n\n```text\n(.*?)^```)?", re.M | re.S)
EXAMPLES = EXAMPLE.findall(README)
PICTURE = re.compile(r"!\[[^]]+\]\(([^)]+)\)")
COMMAND = re.compile(r"`sidestep ([a-z]+)[^`]*`")


@pytest.mark.full
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_prints_what_is_shown_to_the_last_digit(number, tmp_path):
    code, shown = EXAMPLES[number]
    mine = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}  # nothing is compiled for so few rounds
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path, env=os.environ | mine, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == shown, done.stderr


def test_the_best_candidates_in_three_units_are_those_of_the_page_that_is_linked(capsys):
    explanation = ROOT / "docs" / "explanation"
    limits = (explanation / "limits.md").read_text(encoding="utf-8")
    page = (explanation / "aims.md").read_text(encoding="utf-8")
    exec("import numpy as np\n" + re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)[1], {})
    clean = re.findall(r"clean takes (no\. \d+)", capsys.readouterr().out)
    assert f"changes from {' to '.join(clean)}" in " ".join(limits.split())


def test_every_python_block_is_such_an_example():
    assert README.count("```python") == len(EXAMPLES) == 2


def test_pictures_are_there_and_small():
    found = PICTURE.findall(README)
    assert len(found) == 3
    assert all((ROOT / name).stat().st_size < 250_000 for name in found)


@pytest.mark.parametrize("command", sorted(set(COMMAND.findall(README))))
def test_every_command_that_is_named_exists(command):
    assert CliRunner().invoke(app, [command, "--help"]).exit_code == 0


def test_every_target_that_is_named_is_in_the_makefile():
    made = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in set(re.findall(r"`?make ([a-z-]+)", README)):
        assert re.search(rf"^{name}:", made, re.M), name


def test_as_many_runs_are_promised_as_are_played():
    specs = [parse_spec(shipped_specs()[name], name) for name in PAPER]
    assert f"plays {sum(len(jobs_of(spec)) for spec in specs):,} runs" in README
