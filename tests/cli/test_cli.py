"""The command line: exit codes, sentences, JSON, and what it leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from made_up import TOML

pytestmark = pytest.mark.full  # make test runs them, make check does not

SPEC = TOML.replace("runs = 3", 'runs = 2\nreference = "greedy"')

COMMANDS = ["reproduce", "run", "report", "policies", "environments"]


def sidestep(*arguments, cwd=None):
    return subprocess.run(
        [sys.executable, "-m", "sidestep.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=300,
        check=False,
    )


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPEC)
    return path


@pytest.mark.parametrize("word", ["", *COMMANDS])
def test_every_command_has_help_with_an_example(word, called):
    done = called(*word.split(), "--help")
    assert done.returncode == 0
    assert "Usage" in done.stdout
    assert not word or "Example: sidestep" in done.stdout


def test_version_is_the_package_version():
    from sidestep import __version__  # noqa: PLC0415

    assert sidestep("--version").stdout == f"sidestep {__version__}\n"


@pytest.mark.parametrize(("word", "key"), [("policies", "policy"), ("environments", "world")])
def test_catalogs_are_listed_for_people_and_for_programs(word, key, called):
    rows = json.loads(called(word, "--json").stdout)
    plain = called(word).stdout
    assert len(rows) >= 5
    for row in rows:
        assert row["what"]
        assert row[key] in plain
        assert all(knob in plain for knob in row["knobs"])


@pytest.mark.full
def test_run_leaves_traces_tables_figures_and_a_page(spec, tmp_path, called):
    done = sidestep("run", spec, "--jobs", 1, "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {row["policy"] for row in rows} >= {"greedy", "uniform"}
    out = tmp_path / "out"
    assert len(list(out.rglob("traces/*/*/*.parquet"))) == 4
    assert (out / "report.html").stat().st_size > 10_000
    assert list((out / "figures").glob("*.png"))
    assert list((out / "figures").glob("*.svg"))
    assert list((out / "tables").glob("*.csv"))
    again = called("run", spec, "--jobs", 1, "--out", out)
    assert again.returncode == 2
    assert "--resume" in again.stderr
    resumed = called("run", spec, "--jobs", 1, "--out", out, "--resume")
    assert resumed.returncode == 0
    assert "greedy" in resumed.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "mine.toml", "--scheduler", "hello"], 2, ["tcp://HOST:PORT", "'hello'"]),
        (["run", "nowhere.toml"], 3, ["nowhere.toml", "no such file"]),
        (["reproduce", "syntetic"], 2, ["experiment", "did you mean 'synthetic'"]),
        (["reproduce", "warfarin", "--data", "nowhere.csv"], 3, ["nowhere.csv"]),
        (["reproduce", "failure", "--data", "mine.csv"], 2, ["--data", "warfarin", "failure"]),
        (["reproduce", "synthetic", "--horizon", "0"], 2, ["--horizon"]),
        (["report", "empty"], 2, ["results folder"]),
        (["nonsense"], 2, ["nonsense"]),
    ],
)
def test_a_wrong_request_gets_a_sentence_and_its_exit_code(
    arguments, code, words, called, tmp_path
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine.toml").write_text(SPEC)
    done = called(*arguments)
    assert done.returncode == code
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


OWN = """
class Breaks:
    def __init__(self, problem):
        self.problem = problem

    def init(self):
        return None

    def ask(self, state, actions, rng):
        raise RuntimeError("no idea")

    def tell(self, state, query, feedback):
        return None
"""


def test_runs_that_fail_are_named_the_others_kept_and_the_exit_code_is_1(spec, tmp_path, called):
    (tmp_path / "own.py").write_text(OWN)
    own = '\n[[policies]]\nid = "own"\npolicy = "own:Breaks"\n'
    spec.write_text(SPEC + own)
    done = sidestep("run", spec, "--jobs", 1, "--out", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert (
        "mine: world small, policy own, run 1: RuntimeError: no idea (own.py, line " in done.stderr
    )
    assert "2 runs failed; the others are kept" in done.stderr
    assert "Traceback" not in done.stderr
    assert "uniform" in done.stdout
    assert (tmp_path / "out" / "report.html").exists()
    spec.write_text(SPEC.partition("[[policies]]")[0].replace('"greedy"', '""') + own)
    alone = called("run", spec, "--jobs", 1, "--out", "alone")
    assert alone.returncode == 1
    assert "2 runs failed" in alone.stderr


@pytest.mark.slow
def test_an_unreachable_scheduler_gets_a_sentence_and_exit_code_1(spec, tmp_path):
    done = sidestep("run", spec, "--scheduler", "tcp://127.0.0.1:9", "--out", tmp_path / "out")
    assert done.returncode == 1
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


LONG = """
[[worlds]]
id = "long"
world = "synthetic"
horizon = 1000000
knobs = { dim = 3, n_protected = 2, subspace_dim = 1, arms = 5, noise_scale = 0.1 }
"""


def seconds_to_start():
    """Seconds that a bare interpreter with numpy takes now; about 0.2 s on a quiet machine."""
    started = time.monotonic()
    subprocess.run([sys.executable, "-c", "import numpy"], check=True)
    return time.monotonic() - started


@pytest.mark.full
@pytest.mark.parametrize(("jobs", "presses"), [(1, 1), (2, 2)])
def test_ctrl_c_leaves_within_three_seconds_and_keeps_what_was_finished(tmp_path, jobs, presses):
    path, out = tmp_path / "long.toml", tmp_path / "out"
    path.write_text(SPEC + LONG)  # four short runs, and then four that take minutes
    command = [sys.executable, "-m", "sidestep.cli.main", "run", path, "--jobs", jobs, "--out", out]
    child = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        start_new_session=True,  # Ctrl-C goes to every process of a terminal
    )
    deadline = time.monotonic() + 200
    while len(list(out.rglob("*.parquet"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)  # now the long runs are being played
    allowed = 3 * max(1.0, seconds_to_start())  # three seconds on a quiet machine
    started = time.monotonic()
    for _ in range(presses):
        os.killpg(child.pid, signal.SIGINT)
        time.sleep(0.02)
    try:
        _, said = child.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    assert time.monotonic() - started < allowed
    assert child.returncode == 130
    assert presses == 2 or "finished runs are kept, --resume goes on" in said
    assert "Traceback" not in said
    assert len(list(out.rglob("*.parquet"))) == 4
    assert not list(out.rglob("*.part"))
    while alive(child.pid) and time.monotonic() - started < 5:
        time.sleep(0.1)
    assert not alive(child.pid)


def alive(group):
    """Processes of a group that are alive."""
    listed = subprocess.check_output(["ps", "-A", "-o", "pgid=,stat="], text=True)
    rows = [line.split() for line in listed.splitlines()]
    return [row for row in rows if row[0] == str(group) and not row[1].startswith("Z")]
