"""The list of studies reads a few columns of their entries, and counts as whole entries are counted."""

import json
import random

import pytest
from typer.testing import CliRunner

from clinic import clinic
from sidestep.cli.main import app
from sidestep.errors import SidestepError
from sidestep.studies.book import Book
from sidestep.studies.standing import Standing, standing_of
from sidestep.studies.storage import statements
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.store import open_store

VALUES = {"systolic pressure": 140.0, "potassium": 4.1, "sodium": 139.0, "heart rate": 70.0}
ROWS = [
    {"lisinopril": 20, "amlodipine": 5, "chlortalidone": 0, "potassium": 4.0, "sodium": 140},
    {"lisinopril": 10, "amlodipine": 0, "chlortalidone": 0, "potassium": 4.2, "sodium": None},
]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request, tmp_path):
    if request.param == "memory":
        opened = MemoryStore()
    elif request.param == "sqlite":
        opened = open_store(tmp_path / "study.db")
    else:
        opened = open_store(request.getfixturevalue("postgres").emptied())
    yield opened
    opened.close()


def live(study, chance, steps=25):
    """Whatever people do with a study, right or wrong, at random."""
    done = set()
    for step in range(steps):
        entries = [event.seq for event in study.history()]
        number = chance.choice(entries)
        outcome = chance.choice(sorted(VALUES))
        act = chance.choice(
            ["ask", "panel", "tell", "tell", "part", "correct", "withdraw", "import"]
        )
        try:
            if act in ("ask", "panel"):
                panel = ["potassium", "sodium"] if act == "panel" else 1
                study.ask(new=True, panel=panel, actor=f"actor {step}")
            elif act == "tell":
                study.tell(number, dict.fromkeys([outcome], VALUES[outcome]))
            elif act == "part":
                study.tell(number, VALUES[outcome], measured=outcome)
            elif act == "correct":
                study.correct(number, VALUES[outcome] * 1.01, reason="misread")
            elif act == "withdraw":
                study.withdraw(number, reason="missed")
            else:
                study.import_results(ROWS, again=True)
            done.add(act)
        except SidestepError:  # what cannot be done with this entry
            continue
    return done


def test_what_is_counted_in_outlines_is_what_is_counted_in_whole_entries(store):
    done = set()
    for number in range(6):
        done |= live(clinic(store, f"study {number}"), random.Random(number))
    assert done == {"ask", "panel", "tell", "part", "correct", "withdraw", "import"}
    listed = {study.name: study for study in store.outlines()}
    results = 0
    for head, events in store.records():
        book = Book()
        book.take(events)
        waiting = tuple(question.at for question in book.open.values())
        assert standing_of(listed[head.name].entries) == Standing(book.n_results, waiting)
        assert listed[head.name].status == head.status
        results += book.n_results
    assert len(listed) == 6
    assert results > 30


def test_the_list_on_a_terminal_says_what_it_says_to_a_program(tmp_path):
    path = str(tmp_path / "study.db")
    store = open_store(path)
    first = clinic(store, "first")
    live(first, random.Random(1))
    clinic(store, "second").close(reason="done")
    store.close()
    shown = CliRunner().invoke(app, ["study", "list", "-s", path])
    told = json.loads(CliRunner().invoke(app, ["study", "list", "-s", path, "--json"]).stdout)
    assert shown.stdout.strip() == told["text"].strip()
    assert [study["study"] for study in told["studies"]] == ["first", "second"]
    assert "2 studies" in shown.stdout.lower()
    assert "closed" in shown.stdout


def test_a_list_reads_no_whole_entry(tmp_path, monkeypatch):
    path = str(tmp_path / "study.db")
    store = open_store(path)
    live(clinic(store, "first"), random.Random(1))
    store.close()
    monkeypatch.setattr(statements, "event_of", None)
    shown = CliRunner().invoke(app, ["study", "list", "-s", path])
    assert (shown.exit_code, "first" in shown.stdout) == (0, True)
