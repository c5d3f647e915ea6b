"""Backups: whole, verified, and brought back."""

import sqlite3
import threading

import pytest

from sidestep.errors import ConflictError, InputError, StorageError
from sidestep.studies.storage.copies import backup, check_backup, restore
from sidestep.studies.storage.events import digest
from sidestep.studies.storage.exchange import export_study
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.store import Snapshot


@pytest.fixture
def store(storage):
    opened = SqlStore.open(storage)
    opened.put_blob(digest("[1]"), "[1]")
    for name in ("one", "two"):
        opened.create(name, {"rows": digest("[1]")}, actor="ada", body={})
        for _ in range(5):
            with opened.writing(name) as log:
                log.append("asked", body={"give": 40.0}, actor="ada")
    head = opened.head("one")
    opened.put_snapshot("one", Snapshot(head.seq, head.hash, "p", "{}"))
    yield opened
    opened.close()


def everything(store):
    return {name: list(export_study(store, name)) for name in store.names()}


def test_a_backup_is_one_file_that_holds_everything(store, tmp_path):
    verdicts = backup(store, tmp_path / "copy.db")
    assert [(it.name, it.events, it.holds) for it in verdicts] == [
        ("one", 6, True),
        ("two", 6, True),
    ]
    made = sorted(path.name for path in tmp_path.iterdir() if "study" not in path.name)
    assert made == ["copy.db"]
    copy = SqlStore.open(tmp_path / "copy.db")
    assert everything(copy) == everything(store)
    assert copy.snapshot("one", "p") == store.snapshot("one", "p")
    copy.close()


def test_a_restore_drill_leaves_the_backup_alone(store, tmp_path):
    path = tmp_path / "copy.db"
    backup(store, path)
    before = path.read_bytes()
    assert [it.holds for it in check_backup(path)] == [True, True]
    assert path.read_bytes() == before


def test_what_was_restored_is_what_was_backed_up_and_goes_on(store, tmp_path):
    backup(store, tmp_path / "copy.db")
    home = SqlStore.open(tmp_path / "restored.db")
    assert [it.events for it in restore(tmp_path / "copy.db", home)] == [6, 6]
    assert everything(home) == everything(store)
    home.create("three", {}, actor="ada", body={})
    with home.writing("one") as log:
        assert log.append("asked", body={}, actor="ada").seq == 7
    home.close()


def test_a_sqlite_backup_comes_back_on_postgresql(postgres, tmp_path):
    here = SqlStore.open(tmp_path / "here.db")
    here.create("pilot", {}, actor="ada", body={})
    backup(here, tmp_path / "copy.db")
    there = SqlStore.open(postgres.emptied())
    restore(tmp_path / "copy.db", there)
    assert everything(there) == everything(here)
    there.create("another", {}, actor="ada", body={})  # the numbering of studies goes on
    here.close()
    there.close()


def test_a_backup_is_never_written_over_a_file(store, tmp_path):
    backup(store, tmp_path / "copy.db")
    with pytest.raises(InputError, match="a backup must be a new file"):
        backup(store, tmp_path / "copy.db")
    with pytest.raises(InputError, match="a folder that exists"):
        backup(store, tmp_path / "no" / "copy.db")


def test_a_backup_is_restored_into_an_empty_storage_only(store, tmp_path):
    backup(store, tmp_path / "copy.db")
    before = everything(store)
    with pytest.raises(ConflictError, match="is not empty"):
        restore(tmp_path / "copy.db", store)
    assert everything(store) == before


def test_what_is_no_backup_is_refused(store, tmp_path):
    with pytest.raises(InputError, match="a backup must be a file that exists"):
        check_backup(tmp_path / "nothing.db")
    (tmp_path / "text.db").write_text("not a database" * 100)
    with pytest.raises(StorageError, match="is not a SQLite database"):
        check_backup(tmp_path / "text.db")


def test_a_damaged_record_is_backed_up_and_said_to_be_damaged(tmp_path):
    store = SqlStore.open(tmp_path / "study.db")
    store.create("pilot", {}, actor="ada", body={})
    with sqlite3.connect(tmp_path / "study.db") as raw:
        raw.execute("DROP TRIGGER events_no_update")
        raw.execute("UPDATE events SET body = '{}'")
    raw.close()
    (verdict,) = backup(store, tmp_path / "copy.db")
    assert "event 1 was edited" in verdict.flaws[0].sentence
    assert not check_backup(tmp_path / "copy.db")[0].holds
    store.close()


def test_a_backup_taken_while_others_write_is_a_moment_of_the_record(store, tmp_path):
    stop, failed = threading.Event(), []

    def work():
        while not stop.is_set():
            try:
                with store.writing("one") as log:
                    log.append("asked", body={}, actor="ada")
            except StorageError as error:
                failed.append(error)

    writer = threading.Thread(target=work)
    writer.start()
    verdicts = [backup(store, tmp_path / f"{number}.db")[0] for number in range(3)]
    stop.set()
    writer.join()
    assert failed == []
    assert all(verdict.holds for verdict in verdicts)
    assert [it.events for it in verdicts] == sorted(it.events for it in verdicts)


def test_a_file_in_use_can_be_checked_with_what_is_still_in_its_log(tmp_path):
    store = SqlStore.open(tmp_path / "study.db")
    store.create("pilot", {}, actor="ada", body={})
    assert (tmp_path / "study.db-wal").stat().st_size > 0
    assert [it.events for it in check_backup(tmp_path / "study.db")] == [1]
    store.close()
