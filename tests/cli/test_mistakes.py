"""Failures of files and disks: each is one sentence and its exit code."""

import json
import os
import resource
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import sidestep
from disks import fill_up
from sidestep.studies.storage.sql import SqlStore

pytestmark = pytest.mark.full  # make test runs them, make check does not

SOURCE = Path(sidestep.__file__).parents[1]


def told(started, *options):
    """The result of answering question 2, with its output."""
    return started("tell", "bp", 2, 139, "--yes", *options)


def is_sentence(done, code, *words):
    """Whether the command failed with this code and one line on stderr with these words."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert all(word in done.stderr for word in words), done.stderr
    return True


@pytest.fixture
def database(started):
    with closing(sqlite3.connect(started.folder / "sidestep.db", isolation_level=None)) as opened:
        yield opened


def test_a_locked_file_is_waited_for_and_then_said(started, database, monkeypatch):
    monkeypatch.setitem(SqlStore.open.__func__.__kwdefaults__, "patience", 0.3)
    database.execute("BEGIN IMMEDIATE")
    assert is_sentence(told(started), 1, "sidestep.db is locked", "nothing was saved", "try again")
    assert started("show", "bp").returncode == 0  # reading goes on
    database.execute("ROLLBACK")
    assert told(started).returncode == 0


def test_a_file_of_a_newer_version_is_refused_and_left_alone(started, database):
    database.execute("UPDATE sidestep_schema SET version_num = '9999'")
    before = (started.folder / "sidestep.db").read_bytes()
    for verb in (["show", "bp"], ["ask", "bp"], ["tell", "bp", 2, 139, "--yes"]):
        assert is_sentence(started(*verb), 1, "newer sidestep", "nothing was changed")
    assert (started.folder / "sidestep.db").read_bytes() == before


def test_a_file_of_another_program_is_refused(run):
    (run.folder / "sidestep.db").write_text("dear diary, " * 100)
    done = run("list")
    assert is_sentence(done, 1, "not a SQLite database")
    with closing(sqlite3.connect(run.folder / "other.db")) as other:
        other.execute("CREATE TABLE events (mine TEXT)")
    done = run("create", "bp", "--from", "study.toml", "-s", "other.db")
    assert is_sentence(done, 1, "another program", "nothing was changed")


def unguarded(database):
    """Remove the triggers that protect the record from changes."""
    names = database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in names:
        database.execute(f"DROP TRIGGER {name}")


def test_a_corrupted_row_is_named_and_nothing_is_built_on_it(started, database):
    unguarded(database)
    database.execute("UPDATE events SET body = '{not json' WHERE seq = 2")
    assert is_sentence(started("ask", "bp", "--new"), 1, "2")
    assert is_sentence(started("show", "bp"), 1, "2")
    assert started("verify", "bp").returncode == 1


def test_a_damaged_file_is_said_to_be(started):
    path = started.folder / "sidestep.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    path.write_bytes(bytes(content))
    done = started("history", "bp")
    assert is_sentence(done, 1, "damaged")


def test_a_directory_for_a_path_is_said_to_be_one(started):
    (started.folder / "here").mkdir()
    for options in (
        ["ask", "bp", "-s", "here"],
        ["create", "bq", "--from", "here"],
        ["create", "bq", "--from", "study.toml", "--candidates", "here"],
        ["export", "bp", "--out", "here"],
        ["backup", "here"],
        ["restore", "here", "-s", "new.db"],
        ["import", "bp", "here"],
    ):
        assert is_sentence(started(*options), 2, "here"), options


def command(folder, *arguments, **how):
    """The command in a process of its own."""
    line = [sys.executable, "-m", "sidestep.cli.main", "study", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        line, cwd=folder, env=environment, capture_output=True, text=True, check=False, **how
    )


def test_on_a_full_disk_it_says_so_reads_and_goes_on_by_itself(started, small_disk):
    assert started("backup", small_disk / "sidestep.db").returncode == 0
    place = ("--storage", small_disk / "sidestep.db")
    ballast = fill_up(small_disk)
    assert is_sentence(told(started, *place), 1, "disk full", "nothing was saved")
    ballast.unlink()
    assert told(started, *place).returncode == 0
    history = json.loads(started("history", "bp", "--json", *place).stdout)
    assert len(history["events"]) == 3


def test_where_the_file_may_not_grow_one_sentence_says_so(started):
    def no_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    done = command(started.folder, "tell", "bp", 2, 139, "--yes", preexec_fn=no_room)
    assert is_sentence(done, 1, "sidestep.db")
    assert started("verify", "bp").returncode == 0
    assert told(started).returncode == 0


@pytest.fixture
def read_only(request, started):
    """The study in a place where nothing can be written."""
    if os.geteuid():
        folder = started.folder / "shared"
        folder.mkdir()
        started("backup", folder / "sidestep.db")
        (folder / "sidestep.db").chmod(0o444)
        folder.chmod(0o555)
        yield folder / "sidestep.db"
        folder.chmod(0o755)
        return
    folder = request.getfixturevalue("small_disk")  # root may write anywhere but here
    started("backup", folder / "sidestep.db")
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    yield folder / "sidestep.db"


def test_where_nothing_can_be_written_one_sentence_says_so(started, read_only):
    assert is_sentence(told(started, "-s", read_only), 1, "sidestep.db")
    new = read_only.parent / "new.db"
    done = started("create", "bq", "--from", "study.toml", "-s", new)
    assert done.returncode in (1, 2)
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("polars", ["import", "bp", "rows.parquet"], "sidestep[lab]"),
        ("python_calamine", ["import", "bp", "rows.xlsx"], "sidestep[data]"),
        ("psycopg", ["ask", "bp", "-s", "postgresql://127.0.0.1/x"], "sidestep[postgres]"),
        ("formulaic", ["create", "bq", "--from", "formula.toml"], "sidestep[formula]"),
    ],
)
def test_a_missing_extra_is_named(started, monkeypatch, module, arguments, extra):
    (started.folder / "rows.parquet").write_bytes(b"PAR1")
    (started.folder / "rows.xlsx").write_bytes(b"PK")
    setup = (started.folder / "study.toml").read_text()
    (started.folder / "formula.toml").write_text(f'model = "0 + lisinopril"\n{setup}')
    monkeypatch.setitem(sys.modules, module, None)
    assert is_sentence(started(*arguments), 2, extra)
