"""Migration, backup, restore, import and erasure are killed on the way: all of it is done, or nothing."""

import os
import signal
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from workers import Worker

from databases import server_user
from disks import fill_up
from sidestep.errors import StorageError, StorageFull
from sidestep.studies.storage.copies import backup, check_backup, restore, verified
from sidestep.studies.storage.database import Database
from sidestep.studies.storage.doctor import doctor
from sidestep.studies.storage.events import ERASED
from sidestep.studies.storage.exchange import export_study, import_study
from sidestep.studies.storage.ready import Ready
from sidestep.studies.storage.record import erase
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.tables import EVENTS, SCHEMA, STUDIES, TEXTS, VERSION_TABLE

pytestmark = pytest.mark.full

SCHEMAS = Path(__file__).parent / "schemas"
ENTRIES = 6
NEVER = 10**9


def filled(store, entries=ENTRIES, size=10):
    """Two studies, each with this many entries."""
    for name in ("one", "two"):
        store.create(name, {}, actor="ada", body={})
        for _ in range(entries - 1):
            with store.writing(name) as log:
                log.append("asked", body={"give": "x" * size}, actor="ada")
    return store


def everything(store):
    return {name: list(export_study(store, name)) for name in store.names()}


def opened(storage):
    return closing(SqlStore.open(storage))


# ---- what is done, in a process of its own


def restore_it(storage, file):
    with opened(storage) as store:
        restore(file, store)


def import_it(storage, file):
    with opened(storage) as store, file.with_suffix(".jsonl").open() as lines:
        import_study(store, lines)


def back_it_up(storage, file):
    with opened(storage) as store:
        backup(store, file)


def erase_it(storage, file):
    with opened(storage) as store:
        erase(store, "one", [2, 3, 4], actor="admin")


def migrate_it(storage, file):
    with opened(storage):
        pass


def watched(reached):
    """Be told of every statement and every commit, before it runs."""
    run = Ready._run

    def told(*_):
        reached()

    def running(*given):
        reached()
        return run(*given)

    Ready._run = running
    sa.event.listen(sa.Engine, "before_cursor_execute", told)
    sa.event.listen(sa.Engine, "commit", told)


def work_until(reports, work, storage, file, nth, sign):
    """Do the work; at the n-th statement the process gets a signal."""
    passed = [0]

    def reached():
        passed[0] += 1
        if passed[0] == nth:
            reports.send("here")
            os.kill(os.getpid(), sign)

    watched(reached)
    with suppress(StorageError):
        work(storage, file)
        reports.send(passed[0])


def length(work, storage, file):
    """How many statements and commits the whole of it is."""
    return Worker(work_until, work, storage, file, NEVER, signal.SIGKILL).join()[-1]


def moments(count):
    """Where it is killed: at the first statements, in between, and at every one near the commit."""
    inside = {1, count // 3, count * 2 // 3, *range(count - 4, count + 1)}
    return sorted(nth for nth in inside if 1 <= nth <= count)


# ---- storages in which it can be done


class Place(NamedTuple):
    """A storage, or how to have another one that is empty."""

    new: object
    is_sqlite: bool


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    numbers = iter(range(1000))
    if request.param == "sqlite":
        return Place(lambda: str(tmp_path / f"study-{next(numbers)}.db"), is_sqlite=True)
    server = request.getfixturevalue("postgres")
    return Place(server.new_database, is_sqlite=False)


@pytest.fixture
def file(tmp_path):
    """A backup and an export."""
    with opened(tmp_path / "first.db") as store:
        backup(filled(store), tmp_path / "copy.db")
        (tmp_path / "copy.jsonl").write_text("\n".join(export_study(store, "one")))
    return tmp_path / "copy.db"


def of_first_schema(place, source):
    """A storage as the first version of the tables left it, with studies."""
    storage = place.new()
    if place.is_sqlite:
        with closing(sqlite3.connect(storage)) as raw:
            raw.executescript((SCHEMAS / "0001.sql").read_text())
        return storage
    url = sa.make_url(storage).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url)
    with engine.begin() as connection, closing(Database(source)) as filled_one:
        settings = Config()
        settings.set_main_option("script_location", "sidestep.studies.storage:migrations")
        settings.attributes["connection"] = connection
        command.upgrade(settings, "0001")
        with filled_one.snapshot() as reading:
            for table in (STUDIES, EVENTS, TEXTS):
                rows = [dict(row) for row in reading.execute(sa.select(table)).mappings()]
                connection.execute(sa.insert(table), rows)
    engine.dispose()
    return storage


def state_of_schema(storage, *, is_sqlite):
    """The version that the tables say they are, and whether those of the second one are there."""
    url = f"sqlite:///{storage}" if is_sqlite else storage.replace("sql://", "sql+psycopg://", 1)
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        version = connection.execute(sa.text(f"SELECT * FROM {VERSION_TABLE}")).scalar()
        there = sa.inspect(connection).has_table("people")
    engine.dispose()
    return version, there


# ---- the process is killed


@pytest.mark.parametrize("work", [restore_it, import_it])
def test_a_killed_restore_or_import_leaves_nothing_and_can_be_repeated(place, file, work):
    trial, storage = place.new(), place.new()
    for each in (trial, storage):
        SqlStore.open(each).close()
    all_of_it = ["one", "two"] if work is restore_it else ["one"]
    for nth in moments(length(work, trial, file)):
        assert Worker(work_until, work, storage, file, nth, signal.SIGKILL).join() == ["here"]
        with opened(storage) as store:
            names = store.names()
        assert names in ([], all_of_it), nth
        if names:
            break  # it was saved, and what was killed was its verification
    else:
        work(storage, file)
    with opened(storage) as store, opened(file) as source:
        kept = everything(store)
        assert kept.items() <= everything(source).items()
        assert list(kept) == all_of_it
        assert all(verdict.holds for verdict in verified(store))


def test_a_killed_backup_leaves_no_file_of_that_name_and_doctor_names_the_rest(place, tmp_path):
    storage, target = place.new(), tmp_path / "backup.db"
    with opened(storage) as store:
        before = everything(filled(store))
    for nth in moments(length(back_it_up, storage, tmp_path / "trial.db")):
        assert Worker(work_until, back_it_up, storage, target, nth, signal.SIGKILL).join() == [
            "here"
        ]
        assert not target.exists(), nth
    with opened(storage) as store:
        if place.is_sqlite:
            left = [found.sentence for found in doctor(store) if found.what == "left over"]
            assert ".backup-" in left[0]
        assert everything(store) == before
    back_it_up(storage, target)
    assert [(it.events, it.holds) for it in check_backup(target)] == [(ENTRIES, True)] * 2


def test_a_killed_erasure_erases_all_or_nothing(place, tmp_path):
    storage = place.new()
    with opened(storage) as store:
        filled(store)
    trial = place.new()
    with opened(trial) as store:
        filled(store)
    for nth in moments(length(erase_it, trial, tmp_path)):
        Worker(work_until, erase_it, storage, tmp_path, nth, signal.SIGKILL).join()
        with opened(storage) as store:
            actors = [event.actor for event in store.events("one")]
            assert actors == ["ada"] * ENTRIES, nth
            assert all(verdict.holds for verdict in verified(store))
    erase_it(storage, tmp_path)
    with opened(storage) as store:
        assert [event.actor for event in store.events("one")][1:4] == [ERASED] * 3
        assert all(verdict.holds for verdict in verified(store))


def test_a_killed_migration_leaves_the_old_tables_or_the_new_ones(place, file):
    source = file.with_name("first.db")
    storage = of_first_schema(place, source)
    for nth in moments(length(migrate_it, of_first_schema(place, source), file)):
        Worker(work_until, migrate_it, storage, file, nth, signal.SIGKILL).join()
        state = state_of_schema(storage, is_sqlite=place.is_sqlite)
        assert state in (("0001", False), (SCHEMA, True)), nth
    with opened(storage) as store:
        assert store.names()
        assert all(verdict.holds for verdict in verified(store))
    assert state_of_schema(storage, is_sqlite=place.is_sqlite) == (SCHEMA, True)


# ---- the server is killed


@pytest.mark.parametrize("work", [restore_it, import_it, back_it_up, erase_it])
def test_when_the_server_dies_all_is_done_or_nothing(own_postgres, file, work):
    """At a statement in the middle, and at the last ones; whatever was refused can be repeated."""
    server, storage = own_postgres, own_postgres.new_database()
    with opened(storage) as store:
        if work in (back_it_up, erase_it):
            filled(store)
        before = everything(store)
    trial = server.new_database()
    with opened(trial) as store:
        if work in (back_it_up, erase_it):
            filled(store)
    whole = length(work, trial, file.with_name("trial.db") if work is back_it_up else file)
    target = file.with_name("of server.db") if work is back_it_up else file
    for nth in (whole // 2, whole - 2, whole):
        worker = Worker(work_until, work, storage, target, nth, signal.SIGSTOP)
        worker.until("here")
        server.kill()
        server.start()
        os.kill(worker.process.pid, signal.SIGCONT)
        done = worker.join()[-1] != "here"
        with opened(storage) as store:
            assert all(verdict.holds for verdict in verified(store))
            if not done and work is not back_it_up:
                assert everything(store) == before, nth
        if work is back_it_up:
            assert target.exists() == done
        if done:
            break
    else:
        work(storage, target)
    with opened(storage) as store:
        assert store.names()
        assert (everything(store) != before) == (work is not back_it_up)
    if work is back_it_up:
        assert all(verdict.holds for verdict in check_backup(target))


# ---- the disk is full


@pytest.fixture
def small_server(own_postgres, small_disk):
    """The address of a database on a small disk."""
    own = small_disk / "space"
    own.mkdir()
    if os.geteuid() == 0:
        os.chown(own, server_user(), -1)
    url = sa.make_url(own_postgres.url()).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as admin:
        admin.exec_driver_sql(f"CREATE TABLESPACE small LOCATION '{own}'")
        admin.exec_driver_sql("CREATE DATABASE small TABLESPACE small")
    engine.dispose()
    return own_postgres.url("small")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A backup and an export of two megabytes."""
    folder = tmp_path_factory.mktemp("large")
    with opened(folder / "first.db") as store:
        backup(filled(store, 120, 8000), folder / "copy.db")
        (folder / "copy.jsonl").write_text("\n".join(export_study(store, "one")))
    return folder / "copy.db"


@pytest.mark.parametrize("work", [restore_it, import_it])
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_on_a_full_disk_nothing_is_restored_and_with_room_it_is(
    request, small_disk, large, work, kind
):
    storage = small_disk / "study.db"
    if kind == "postgresql":
        storage = request.getfixturevalue("small_server")
    SqlStore.open(storage).close()
    ballast = fill_up(small_disk)
    with pytest.raises(StorageFull, match="disk full: .* nothing was saved"):
        work(storage, large)
    ballast.unlink()
    with opened(storage) as store:
        assert store.names() == []
    work(storage, large)
    with opened(storage) as store:
        assert all((it.events, it.holds) == (120, True) for it in verified(store))
        assert store.names()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_backup_to_a_full_disk_is_refused_and_leaves_nothing(request, tmp_path, small_disk, kind):
    storage = tmp_path / "study.db"
    if kind == "postgresql":
        storage = request.getfixturevalue("postgres").new_database()
    with opened(storage) as store:
        before = everything(filled(store, 20, 4000))
        ballast = fill_up(small_disk)
        with pytest.raises(StorageError, match="disk full|cannot be"):
            backup(store, small_disk / "copy.db")
        assert [it.name for it in small_disk.iterdir()] == [ballast.name]
        assert everything(store) == before
        ballast.unlink()
        assert all(verdict.holds for verdict in backup(store, small_disk / "copy.db"))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_erasure_on_a_full_disk_erases_all_or_nothing(request, small_disk, kind):
    storage = small_disk / "study.db"
    if kind == "postgresql":
        storage = request.getfixturevalue("small_server")
    with opened(storage) as store:
        filled(store, 300, 100)
        ballast, chosen = fill_up(small_disk), list(range(1, 301))
        try:
            erase(store, "one", chosen, actor="admin")
        except StorageFull:
            assert {event.actor for event in store.events("one")} == {"ada"}
            ballast.unlink()
            erase(store, "one", chosen, actor="admin")
        erased = [event.actor for event in store.events("one") if event.kind != "erased"]
        assert erased == [ERASED] * 300
        assert all(verdict.holds for verdict in verified(store))
