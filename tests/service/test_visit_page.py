"""A visit on the pages: all its outcomes in one form, with a day and a note; the visits as a table."""

import csv
import io

import pytest
from houses import text_of

from clinic import clinic, play
from sidestep.studies.study import Study

VISIT = {"value__0": "141,5", "value__1": "4.1", "value__2": "", "value__3": "70"}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """However busy the machine is, a page waits for its arithmetic."""
    monkeypatch.setattr("sidestep.service.pages.study_view.PATIENCE", 60.0)


def test_all_that_was_measured_at_a_visit_is_told_in_one_form(running, browser):
    study = clinic(running.store)
    ticket = study.ask(actor="ada")
    page = browser.get("/studies/bp")
    assert all(f'name="value.{place}"' in page.text for place in range(4))
    assert "and only that" not in text_of(page)
    visit = {**VISIT, "on": "2026-11-16", "reason": "taken in the morning", "key": "k"}
    saved = browser.post(f"/studies/bp/questions/{ticket.id}/answer", **visit)
    if 'name="sure"' in saved.text:  # one of them is far from what was expected
        assert 'value="taken in the morning"' in saved.text
        saved = browser.post(f"/studies/bp/questions/{ticket.id}/answer", **visit, sure="1")
    assert "Measured on 16 November 2026." in text_of(saved)
    told = [event for event in study.history() if event.kind == "answered"]
    assert {event.outcome: event.body["value"] for event in told} == {
        "systolic pressure": 141.5,
        "potassium": 4.1,
        "heart rate": 70,
    }
    assert {(event.body["on"], event.reason) for event in told} == {
        ("2026-11-16", "taken in the morning")
    }
    assert study.questions() == []


def test_a_day_that_is_none_is_refused_and_nothing_typed_is_lost(running, browser):
    clinic(running.store).ask(actor="ada")
    page = browser.post(
        "/studies/bp/questions/2/answer",
        **{**VISIT, "on": "16/11", "reason": "fasting", "sure": "1"},
    )
    assert page.status_code == 422
    assert "must be a day such as 2026-11-18, got '16/11'" in text_of(page)
    for typed in ('value="141,5"', 'value="70"', 'value="fasting"'):
        assert typed in page.text
    assert running.store.head("bp").seq == 2


def test_the_day_of_past_results_is_read_from_their_table(running):
    study = clinic(running.store)
    rows = {"candidate": [0, 1], "outcome": ["sodium"] * 2, "value": [138, 139]}
    study.import_results(rows | {"date": ["2026-05-02", None]})
    kept = study.history()[-1].body
    assert [row.get("on") for row in kept["rows"]] == ["2026-05-02", None]
    study.import_results(rows | {"date": ["May 2", "May 3"], "value": [137, 136]})
    assert study.history()[-1].body["unused"] == ["date"]  # as before: words, and not days


def test_the_visits_are_a_table_with_corrections_and_each_can_be_corrected(running, browser):
    study = clinic(running.store)
    study.import_results(
        {
            "candidate": [0, 1],
            "outcome": ["sodium"] * 2,
            "value": [138, 139],
            "date": ["2026-05-02"] * 2,
        }
    )
    play(study, 2)
    seq = study.history()[-1].seq
    study.correct(seq, 139.25, reason="misread")
    study.withdraw(4, reason="haemolysed")
    page = browser.get("/studies/bp/visits")
    text = text_of(page)
    assert "2 May 2026" in text
    assert "139.25" in text
    assert "was" in text
    assert "misread" in text
    assert "taken back" in text
    for link in ("entries/2/correct?row=0", "entries/2/correct?row=1", f"entries/{seq}/correct"):
        assert f'href="/studies/bp/{link}' in page.text
    assert 'href="/studies/bp/visits"' in browser.get("/studies/bp").text
    table = browser.get("/studies/bp/visits.csv")
    assert "bp-visits.csv" in table.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert len(rows) == 4
    assert [row["status"] for row in rows].count("taken back") == 1
    assert {"date", "round", "lisinopril", "outcome", "value", "unit", "by", "note", "was"} <= set(
        rows[0]
    )
    assert rows[-1]["value"] == "139.25"
    assert rows[-1]["status"] == "corrected"
    assert rows[0]["date"] == "2026-05-02"


def test_a_table_of_visits_is_empty_before_the_first_result(running, browser):
    clinic(running.store)
    assert "There are no results yet" in text_of(browser.get("/studies/bp/visits"))
    assert browser.get("/studies/bp/visits.csv").text.startswith("date,")


def test_many_visits_are_shown_page_by_page(running, browser, monkeypatch):
    monkeypatch.setattr("sidestep.service.pages.visits.SCREEN", 3)
    study = clinic(running.store)
    play(study, 5)
    first = browser.get("/studies/bp/visits")
    assert first.text.count("/correct") == 3
    assert 'href="/studies/bp/visits?begin=3"' in first.text
    assert browser.get("/studies/bp/visits?begin=3").text.count("/correct") == 2
    assert len(browser.get("/studies/bp/visits.csv").text.splitlines()) == 6
    assert isinstance(Study.open("bp", running.store), Study)
