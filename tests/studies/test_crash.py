"""B, crash: clients and servers die, disks fill up; what was acknowledged is there, and once only."""

import os
import resource
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from drills import (
    OF_STUDY,
    STUDY,
    fresh,
    hand_out,
    kill_clients,
    kill_server,
    stop_in_transaction,
    tell_two_values,
)
from reference import Client
from workers import Worker

from databases import server_user
from disks import fill_up
from sidestep.errors import AlreadyAnswered, StorageBusy, StorageError, StorageFull
from sidestep.studies.storage.ready import Ready
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.sql import SqlStore

pytestmark = pytest.mark.full

VALUE, KEY = 138.0, "tell/1"


def answers(store):
    return [event for event in store.events(STUDY) if event.kind == "answered"]


# ---- SIGKILL


def test_nothing_told_to_a_whole_study_is_lost_when_clients_are_killed(tmp_path):
    tally = kill_clients(str(tmp_path / "study.db"), 20, kind=OF_STUDY)
    assert tally.acknowledged >= 20
    assert tally[2:] == (0, 0, 0, 0)


def test_a_whole_study_has_one_answer_a_ticket_and_one_asker_a_ticket(tmp_path):
    assert tell_two_values(str(tmp_path / "told.db"), 15, kind=OF_STUDY)[1:] == (0, 0, 0)
    assert hand_out(str(tmp_path / "asked.db"), 40, kind=OF_STUDY) == (40, 0, 0)


def test_nothing_acknowledged_is_lost_when_clients_are_killed(storage):
    tally = kill_clients(storage, 40)
    assert tally.acknowledged >= 40
    assert tally[2:] == (0, 0, 0, 0)


@pytest.mark.slow
def test_nothing_of_3000_acknowledged_is_lost_when_clients_are_killed(storage):
    tally = kill_clients(storage, 3000, clients=3, life=3.0, seed=1)
    assert tally.acknowledged >= 3000
    assert tally[2:] == (0, 0, 0, 0)


def test_clients_outlive_their_server_and_write_nothing_twice(own_postgres):
    tally = kill_server(own_postgres, 25, kills=2)
    assert tally.kills >= 1
    assert tally[1:] == (75, 0, 0, 0, 0)


def test_a_whole_study_outlives_its_server_and_its_clients(own_postgres):
    tally = kill_server(own_postgres, 10, kills=1, clients=2, kind=OF_STUDY)
    assert tally[1:] == (20, 0, 0, 0, 0)
    tally = kill_clients(own_postgres.new_database(), 20, kind=OF_STUDY)
    assert tally[2:] == (0, 0, 0, 0)


@pytest.mark.slow
def test_clients_outlive_many_deaths_of_their_server(own_postgres):
    tally = kill_server(own_postgres, 1000, kills=20)
    assert tally.kills >= 5
    assert tally[1:] == (3000, 0, 0, 0, 0)


# ---- two at once


def test_one_ticket_is_never_told_two_values(storage):
    assert tell_two_values(storage, 40)[1:] == (0, 0, 0)


@pytest.mark.slow
def test_none_of_1000_tickets_is_told_two_values(storage):
    assert tell_two_values(storage, 1000)[1:] == (0, 0, 0)


def test_nothing_is_handed_to_two_askers(storage):
    assert hand_out(storage, 80) == (80, 0, 0)


@pytest.mark.slow
def test_none_of_1000_is_handed_to_two_askers(storage):
    assert hand_out(storage, 1000) == (1000, 0, 0)


def watch_statements(saw, patch=setattr):
    """Be told of every statement of a store, before it runs and after."""
    run = Ready._run

    def watched(self, connection, values, wanted):
        sql = self.text(connection.dialect)
        saw("before", sql)
        found = run(self, connection, values, wanted)
        saw("after", sql)
        return found

    patch(Ready, "_run", watched)


# ---- named failpoints: SIGKILL at a statement of our choice

FAILPOINTS = {
    "with the lock held": ("SELECT studies.id", "after"),
    "before the event": ("INSERT INTO events", "before"),
    "after the event": ("INSERT INTO events", "after"),
    "after its words": ("INSERT INTO texts", "after"),
    "after the head moved": ("UPDATE studies", "after"),
    "before the commit": ("COMMIT", "before"),
    "after the commit": ("COMMIT", "after"),
}


def die_at(reports, storage, ticket, point):
    """Tell a ticket and die on the way."""
    store = SqlStore.open(storage)
    statement, when = FAILPOINTS[point]

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def die_there(moment, sql):
        if moment == when and statement in sql:  # PostgreSQL takes an append as one statement
            die()

    if statement != "COMMIT":
        watch_statements(die_there)
    elif when == "before":
        sa.event.listen(store.database.engine, "commit", die)
    Client(store, STUDY, "lab").tell(ticket, VALUE, key=KEY)
    die()


@pytest.mark.parametrize("point", FAILPOINTS)
def test_a_client_that_dies_on_the_way_leaves_all_or_nothing(storage, point):
    fresh(storage)
    store = SqlStore.open(storage)
    ticket = Client(store, STUDY, "ada").ask().seq
    worker = Worker(die_at, storage, ticket, point)
    worker.join()
    assert worker.process.exitcode == -signal.SIGKILL
    left = answers(store)
    assert len(left) == (point == "after the commit")
    told = Client(store, STUDY, "lab").tell(ticket, VALUE, key=KEY)
    assert answers(store) == [told]
    assert left in ([], [told])
    assert verify(store, STUDY).holds
    store.close()


# ---- the k-th write fails


def test_whichever_statement_fails_all_or_nothing_is_left(storage, monkeypatch):
    """As SQLite's own anomaly tests: fail the k-th call for every k, until none is left to fail."""
    fresh(storage)
    store = SqlStore.open(storage)
    client, state = Client(store, STUDY, "ada", patience=0.0), {"left": 0}

    def fail(moment, sql):
        state["left"] -= moment == "before"
        if state["left"] == 0 and moment == "before":
            raise sqlite3.OperationalError("disk I/O error")

    watch_statements(fail, monkeypatch.setattr)

    ticket = client.ask().seq
    for nth in range(1, 100):
        state["left"] = nth
        try:
            told = client.tell(ticket, VALUE, key=KEY)
        except (StorageError, sqlite3.OperationalError):
            state["left"] = 0
            assert answers(store) == []
            assert verify(store, STUDY).holds
        else:
            break
    state["left"] = 0
    assert nth >= 4
    assert answers(store) == [told]
    assert verify(store, STUDY).holds
    store.close()


def write_in_little_room(reports, storage, ticket):
    """Tell a ticket again and again, with a little more room in the files each time."""
    store = SqlStore.open(storage)
    client = Client(store, STUDY, "lab", patience=0.0)
    log = Path(f"{storage}-wal")
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    room = 0
    while True:
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + room, hard))
        try:
            client.tell(ticket, VALUE, key=KEY)
        except StorageError as error:
            said = type(error).__name__
        else:
            said = "saved"
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        reports.send((room, said, len(answers(store)), verify(store, STUDY).holds))
        if said == "saved":
            return
        room += 1500


def test_wherever_a_write_to_the_file_fails_all_or_nothing_is_left(tmp_path):
    storage = str(tmp_path / "study.db")
    fresh(storage)
    store = SqlStore.open(storage)
    ticket = Client(store, STUDY, "ada").ask().seq
    reports = Worker(write_in_little_room, storage, ticket).join()
    assert len(reports) >= 5
    for _, said, saved, holds in reports:
        assert saved == (said == "saved")
        assert said in ("saved", StorageError.__name__, StorageFull.__name__)
        assert holds
    assert len(answers(store)) == 1
    assert verify(store, STUDY).holds
    store.close()


# ---- SIGSTOP


def test_a_client_that_sleeps_on_the_lock_holds_up_writers_only(storage):
    fresh(storage)
    sleeper = Worker(stop_in_transaction, storage)
    sleeper.until("asleep")
    time.sleep(0.1)
    store = SqlStore.open(storage, patience=0.3)
    assert store.head(STUDY).seq == 1
    client = Client(store, STUDY, "ada", patience=0.0)
    with pytest.raises(StorageBusy, match="locked by another program; nothing was saved"):
        client.ask()
    os.kill(sleeper.process.pid, signal.SIGCONT)
    assert sleeper.join()[-1] == "saved"
    assert client.ask().seq == 3
    assert verify(store, STUDY).holds
    store.close()


def test_a_sleeper_that_is_killed_gives_up_its_lock(storage):
    fresh(storage)
    sleeper = Worker(stop_in_transaction, storage)
    sleeper.until("asleep")
    sleeper.kill()
    store = SqlStore.open(storage)
    assert store.find(STUDY, "sleeper") is None
    assert Client(store, STUDY, "ada").ask().seq == 2
    store.close()


# ---- full disk


def full_disk(store, folder):
    """Write until the disk is full, read, make room, go on."""
    store.create(STUDY, {}, actor="ada", body={})
    client = Client(store, STUDY, "ada")
    for number in range(5):
        client.tell(client.ask().seq, float(number))
    ballast, saved = fill_up(folder), []

    def write():
        with store.writing(STUDY) as log:
            event = log.append("accepted", body={"long": "x" * 2000}, actor="ada")
        saved.append(event)

    def write_on():
        while len(saved) < 2000:  # what is allocated already may last for a while
            write()

    with pytest.raises(StorageFull) as full:
        write_on()
    said = str(full.value)
    assert said.startswith("disk full: ")
    assert "nothing was saved" in said
    assert store.events(STUDY, after=11) == saved
    assert verify(store, STUDY).holds
    ballast.unlink()
    write()
    assert verify(store, STUDY).events == 11 + len(saved)


def test_on_a_full_disk_nothing_is_lost_and_it_goes_on_by_itself(small_disk):
    store = SqlStore.open(small_disk / "study.db")
    full_disk(store, small_disk)
    store.close()


def test_on_a_full_disk_of_a_server_nothing_is_lost_and_it_goes_on_by_itself(
    own_postgres, small_disk
):
    server = own_postgres
    own = small_disk / "space"
    own.mkdir()
    if os.geteuid() == 0:
        shutil.chown(own, server_user())
    engine = sa.create_engine(
        sa.make_url(server.url()).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as admin:
        admin.exec_driver_sql(f"CREATE TABLESPACE small LOCATION '{own}'")
        admin.exec_driver_sql("CREATE DATABASE small TABLESPACE small")
    engine.dispose()
    store = SqlStore.open(server.url("small"))
    full_disk(store, small_disk)
    store.close()


# ---- the same again


def test_the_same_tell_again_is_the_same_answer_and_another_value_is_a_conflict(storage):
    fresh(storage)
    store = SqlStore.open(storage)
    client = Client(store, STUDY, "ada")
    ticket = client.ask().seq
    told = client.tell(ticket, VALUE)
    assert client.tell(ticket, VALUE) == told
    with pytest.raises(AlreadyAnswered, match=r"told \{'value': 138.0\}, now came 136.0"):
        client.tell(ticket, 136.0)
    assert store.head(STUDY).seq == 3
    assert client.correct(ticket, 136.0, "misread").body == {"was": 138.0, "is": 136.0}
    store.close()
