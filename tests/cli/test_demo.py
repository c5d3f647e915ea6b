"""`sidestep demo`: a clinic to play with, by hand or by itself."""

import io
import json
import sys
import warnings

import pytest

from sidestep.cli.main import main

pytestmark = pytest.mark.full


@pytest.fixture
def demo(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)

    def call(*arguments, typed=None):
        monkeypatch.setattr(sys, "argv", ["sidestep", "demo", *map(str, arguments)])
        stdin = io.StringIO(typed or "")
        stdin.isatty = lambda: typed is not None
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(SystemExit) as left:
            main()
        assert not left.value.code
        return capsys.readouterr().out

    return call


def test_the_demo_plays_by_itself_and_shows_the_truth_beside_it(demo):
    printed = demo("--rounds", 12)
    assert "If you stopped today" in printed
    assert "What only the simulation knows" in printed
    found = json.loads(demo("--rounds", 1, "--json"))
    assert found["results"] == 13
    assert isinstance(found["truth"]["within"], bool)


def test_the_demo_can_be_played_by_hand(demo):
    printed = demo(typed="\nb\n1,234\n150\nq\n")
    assert printed.count("Measure") == 3
    assert printed.count("Saved as entry") == 2
