"""The doctor finds what is wrong and says so."""

import sqlite3
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sidestep.studies.storage.copies import HALF_RESTORE
from sidestep.studies.storage.doctor import doctor
from sidestep.studies.storage.events import utc_now
from sidestep.studies.storage.sql import SqlStore


@pytest.fixture
def store(storage):
    opened = SqlStore.open(storage)
    opened.create("pilot", {}, actor="ada", body={})
    yield opened
    opened.close()


def worst(findings):
    return [finding for finding in findings if finding.state != "ok"]


def test_every_check_of_a_healthy_storage_passes(store):
    findings = doctor(store)
    assert worst(findings) == []
    assert {"storage", "durability", "guards", "writing", "clock", "record"} <= {
        finding.what for finding in findings
    }
    assert "'pilot': 1 events, chain whole" in findings[-1].sentence


def test_a_clock_that_was_wrong_is_noticed(store):
    (finding,) = worst(doctor(store, clock=lambda: datetime(2020, 1, 1, tzinfo=UTC)))
    assert "'pilot' has an entry from the future" in finding.sentence


def test_entries_from_the_future_are_noticed_behind_a_later_one(storage):
    ahead = [True]
    hour = timedelta(hours=1)
    store = SqlStore.open(storage, clock=lambda: utc_now() + (hour if ahead[0] else 0 * hour))
    store.create("pilot", {}, actor="ada", body={})
    for ahead[0] in (True, False):
        with store.writing("pilot") as log:
            log.append("asked", body={}, actor="ada")
    assert store.head("pilot").updated < utc_now()
    (finding,) = worst(doctor(store))
    assert "'pilot' has 2 entries from the future, the first is 1" in finding.sentence
    store.close()


def test_missing_triggers_and_an_edited_event_are_noticed(tmp_path):
    store = SqlStore.open(tmp_path / "study.db")
    store.create("pilot", {}, actor="ada", body={})
    with sqlite3.connect(tmp_path / "study.db") as raw:
        raw.execute("DROP TRIGGER events_no_update")
        raw.execute("UPDATE events SET body = '{}'")
    raw.close()
    said = [finding.sentence for finding in worst(doctor(store))]
    assert "triggers that keep the record are off: events_no_update" in said
    assert any("event 1 was edited" in sentence for sentence in said)
    store.close()


def test_a_locked_file_is_a_finding_and_not_an_exception(tmp_path):
    store = SqlStore.open(tmp_path / "study.db", patience=0.1)
    store.create("pilot", {}, actor="ada", body={})
    holder = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    (finding,) = worst(doctor(store))
    assert "locked by another program" in finding.sentence
    holder.rollback()
    holder.close()
    store.close()


def test_what_a_killed_restore_left_in_the_temporary_folder_is_named(store):
    left = Path(tempfile.mkdtemp(prefix=HALF_RESTORE))
    (finding,) = worst(doctor(store))
    assert (finding.what, finding.state) == ("left over", "warning")
    assert str(left) in finding.sentence


def test_no_test_sees_what_another_left_in_the_temporary_folder(store):
    """The test before this one has left a folder."""
    assert worst(doctor(store)) == []
    assert not list(Path(tempfile.gettempdir()).iterdir())
