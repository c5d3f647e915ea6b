"""`sidestep` and `sidestep study` as the commands run, but in this process."""

import io
import sys
import warnings
from typing import NamedTuple

import pytest

from sidestep.cli.main import main


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def called(tmp_path, monkeypatch, capsys):
    """`sidestep` in an empty folder, as the command runs but in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIDESTEP_STORAGE", raising=False)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets its own

    def call(*arguments, stdin="", terminal=False):
        monkeypatch.setattr(sys, "argv", ["sidestep", *map(str, arguments)])
        typed = io.StringIO(stdin)
        typed.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stdin", typed)
        with pytest.raises(SystemExit) as left:
            main()
        printed = capsys.readouterr()
        return Done(left.value.code or 0, printed.out, printed.err)

    return call


_KEPT: dict[str, bytes] = {}  # the files of a study that was asked once: made by its first test


@pytest.fixture
def run(called, tmp_path):
    """`sidestep study` in a folder with a set-up."""

    def call(*arguments, **settings):
        return called("study", *arguments, **settings)

    call.folder = tmp_path
    example = call("create", "--example").stdout
    (tmp_path / "study.toml").write_text(example)
    return call


@pytest.fixture
def started(run):
    """The same, with a study and a first question in it."""
    if not _KEPT:
        assert run("create", "bp", "--from", "study.toml").returncode == 0
        assert run("ask", "bp").returncode == 0
        _KEPT.update({path.name: path.read_bytes() for path in run.folder.iterdir()})
    for name, content in _KEPT.items():
        (run.folder / name).write_bytes(content)
    return run
