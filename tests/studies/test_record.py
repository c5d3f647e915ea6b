"""Verification of the record: every change from outside is detected."""

import sqlite3

import pytest
import sqlalchemy as sa

from clinic import clinic
from sidestep.errors import InputError, RecordError
from sidestep.studies.storage.events import ERASED, Entry
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.record import erase, verify
from sidestep.studies.storage.sql import SqlStore


def fill(store, study="pilot", rounds=3):
    store.create(study, {"aim": "within"}, actor="ada", body={"seed": 7})
    for _ in range(rounds):
        with store.writing(study) as log:
            ticket = log.append("asked", body={"give": 40.0}, actor="ada", reason="as planned").seq
        with store.writing(study) as log:
            log.append("answered", ticket=ticket, outcome="x", body={"value": 1.5}, actor="lab")
    return store


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def store(path):
    filled = fill(SqlStore.open(path))
    yield filled
    filled.close()


def tamper(path, *statements):
    """What somebody with the file and a SQL shell can do."""
    with sqlite3.connect(path) as raw:
        triggers = raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            raw.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            raw.execute(statement)
    raw.close()


def flaws(store, **more):
    return [flaw.sentence for flaw in verify(store, "pilot", **more).flaws]


def test_an_unchanged_record_is_valid(store):
    verdict = verify(store, "pilot")
    assert verdict.holds
    assert (verdict.name, verdict.events) == ("pilot", 7)
    assert verdict.hash == store.head("pilot").hash


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE events SET body = '{\"value\":9.5}' WHERE seq = 3", "event 3 was edited"),
        ("UPDATE events SET body = '{\"value\": 1.5}' WHERE seq = 3", "event 3 was edited"),
        ("UPDATE events SET kind = 'withdrawn' WHERE seq = 3", "event 3 was edited"),
        ("UPDATE events SET ticket = 9 WHERE seq = 3", "event 3 was edited"),
        ("UPDATE events SET at = replace(at, '2026', '2027') WHERE seq = 3", "event 3 was edited"),
        ("UPDATE events SET at = '1999-01-01T00:00:00+00:00' WHERE seq = 3", "event 3 was edited"),
        ("UPDATE events SET hash = prev_hash WHERE seq = 3", "event 3 was edited"),
        ("UPDATE events SET body = 'spoilt' WHERE seq = 3", "event 3 cannot be read"),
        ("UPDATE events SET body = x'00' WHERE seq = 3", "event 3 cannot be read"),
        ("UPDATE events SET at = 'noon' WHERE seq = 3", "event 3 cannot be read"),
        (
            "UPDATE texts SET actor = 'eve' WHERE seq = 3",
            "actor or the reason of event 3 was edited",
        ),
        (
            "UPDATE texts SET reason = 'no' WHERE seq = 2",
            "actor or the reason of event 2 was edited",
        ),
        (
            "UPDATE texts SET reason = 'no' WHERE seq = 3",
            "actor or the reason of event 3 was edited",
        ),
        ("DELETE FROM texts WHERE seq = 3", "in event 3 was erased and no entry says so"),
        ("UPDATE studies SET config = '{}'", "the configuration of the study is not what event 1"),
        ("UPDATE studies SET head_hash = 'x'", "the head of the study is not the hash of its last"),
        ("UPDATE studies SET name = 'pilot' || ''", None),
    ],
)
def test_an_edited_row_is_detected(store, path, statement, said):
    tamper(path, statement)
    found = flaws(store)
    if said is None:
        assert found == []
    else:
        assert len(found) >= 1
        assert said in found[0]
    assert [it for it in found if "missing" in it] == []


def test_every_other_event_is_still_judged_where_one_cannot_be_read(store, path):
    tamper(
        path,
        "UPDATE events SET body = 'spoilt' WHERE seq = 3",
        "UPDATE events SET outcome = 'y' WHERE seq = 7",
    )
    assert [flaw.seq for flaw in verify(store, "pilot").flaws] == [3, 7]


@pytest.mark.parametrize("seq", [1, 4, 7])
def test_a_deleted_row_is_detected(store, path, seq):
    tamper(path, f"DELETE FROM texts WHERE seq = {seq}", f"DELETE FROM events WHERE seq = {seq}")
    assert flaws(store) == [f"event {seq} is missing"]


def test_a_truncated_record_is_detected(store, path):
    tamper(path, "DELETE FROM texts WHERE seq > 5", "DELETE FROM events WHERE seq > 5")
    assert flaws(store) == ["event 6 is missing", "event 7 is missing"]


def test_swapped_rows_are_detected(store, path):
    renumber = (
        "UPDATE events SET seq = CASE seq WHEN 3 THEN -5 WHEN 5 THEN -3 END WHERE seq IN (3, 5)"
    )
    tamper(path, renumber, "UPDATE events SET seq = -seq WHERE seq < 0")
    found = flaws(store)
    assert any("event 3 was edited" in it for it in found)
    assert any("event 5 was edited" in it for it in found)


def test_an_inserted_row_is_detected(store, path):
    columns = "kind, ticket, key, body, at, code, actor_digest, reason_digest, prev_hash, hash"
    tamper(
        path,
        f"INSERT INTO events SELECT study_id, 8, {columns.replace('key,', 'key, outcome,')}"
        " FROM events WHERE seq = 2",
        "UPDATE studies SET head_seq = 8",
    )
    found = flaws(store)
    assert any("event 8 was edited" in it for it in found)
    assert any("event 8 does not follow" in it for it in found)


def test_a_rewritten_record_is_detected_by_a_hash_that_was_noted(store, path):
    """Whoever can write the file can write a whole valid chain; a hash noted elsewhere reveals it."""
    noted = verify(store, "pilot").hash
    with store.writing("pilot") as log:
        log.append("closed", body={}, actor="ada")
    assert verify(store, "pilot", known=noted).holds
    assert verify(store, "pilot", known=noted[:16]).holds  # as the card says it
    forged, link = [], ("0" * 64, 0)
    for event in store.events("pilot"):
        body = {"value": 9.9} if event.kind == "answered" else event.body
        entry = Entry(event.kind, body, event.actor, event.ticket, event.outcome, event.key)
        forged.append(entry.linked(event.seq, link[0], event.at))
        link = forged[-1].hash, event.seq
    other = MemoryStore()
    other.adopt(store.head("pilot")._replace(hash=link[0]), forged)
    assert verify(other, "pilot").holds
    assert flaws(other, known=noted) == [
        f"the hash {noted} that was noted earlier is not in the chain"
    ]


def test_a_damaged_row_raises_one_sentence_when_it_is_read(store, path):
    tamper(path, "UPDATE events SET body = 'spoilt' WHERE seq = 3")
    with pytest.raises(RecordError, match="event 3 cannot be read"):
        store.events("pilot")
    tamper(path, "UPDATE studies SET config = 'spoilt'")
    with pytest.raises(RecordError, match="the row of study 'pilot' cannot be read"):
        store.head("pilot")


def test_an_edited_row_is_detected_on_postgresql(postgres):
    store = fill(SqlStore.open(postgres.emptied()))
    with store.database.engine.begin() as connection:
        connection.execute(sa.text("SET session_replication_role = replica"))  # no triggers
        connection.execute(sa.text("UPDATE events SET outcome = 'y' WHERE seq = 3"))
        connection.execute(sa.text("DELETE FROM events WHERE seq = 5"))
    assert [flaw.seq for flaw in verify(store, "pilot").flaws] == [3, 5]
    store.close()


def test_erasing_says_so_and_the_record_holds(store):
    event = erase(store, "pilot", [2, 4], actor="admin", reason="asked to", key="e1")
    assert (event.kind, event.body) == ("erased", {"events": [2, 4]})
    assert [it.seq for it in store.events("pilot") if it.actor == "(erased)"] == [2, 4]
    assert verify(store, "pilot").holds
    assert erase(store, "pilot", [2, 4], actor="admin", key="e1") == event
    assert verify(store, "pilot").events == 8


def test_what_was_erased_is_not_in_the_file_any_more(tmp_path):
    store = SqlStore.open(tmp_path / "secret.db")
    store.create("pilot", {}, actor="Mrs Oxenstierna", body={})
    erase(store, "pilot", [1], actor="admin")
    with store.database.engine.connect() as connection:
        connection.exec_driver_sql("VACUUM")
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    assert b"Oxenstierna" not in (tmp_path / "secret.db").read_bytes()


def test_a_study_that_is_open_forgets_who_asked_too():
    store = MemoryStore()
    study = clinic(store)
    ticket = study.ask(actor="Ada")
    assert "Ada" in str(study.show())
    erase(store, "bp", [ticket.id], actor="admin")
    assert [question.actor for question in study.questions()] == [ERASED]
    assert "Ada" not in str(study.show())


@pytest.mark.parametrize("seqs", [[], [0], [8]], ids=str)
def test_only_events_that_exist_are_erased(store, seqs):
    with pytest.raises(InputError, match=r"seqs must name events in 1\.\.7"):
        erase(store, "pilot", seqs, actor="admin")
    assert verify(store, "pilot").events == 7
