"""Servers: what is wrong is said at once, a broken connection is made anew, nothing is written twice."""

import os
import socket
import threading
import time

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from sidestep.errors import DurabilityWarning, StorageBusy, StorageError, StorageLost
from sidestep.studies.storage.faults import sentences
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.store import open_store, write
from sidestep.studies.storage.tables import METADATA, VERSION_TABLE


def ask(store, study="pilot", **more):
    with store.writing(study) as log:
        return log.append("asked", body={"give": 1}, actor="ada", **more)


@pytest.fixture
def on_postgres(postgres):
    store = SqlStore.open(postgres.emptied(), patience=10.0)
    store.create("pilot", {}, actor="ada", body={})
    yield store
    store.close()


def test_migrations_leave_the_tables_that_the_statements_expect_on_postgresql(on_postgres):
    with on_postgres.database.engine.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, METADATA) == []


def test_where_nobody_listens_the_sentence_comes_at_once(tmp_path):
    before = time.monotonic()
    with pytest.raises(StorageLost, match="postgresql://ada@/pilot.* cannot be reached"):
        open_store(f"postgresql://ada@/pilot?host={tmp_path}")
    assert time.monotonic() - before < 5


def test_a_database_that_does_not_exist_is_named_without_the_password(postgres):
    url = postgres.url("nowhere").replace("postgres@", "postgres:hunter2@")
    with pytest.raises(StorageError, match='database "nowhere" does not exist') as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("setting", ["synchronous_commit"])
def test_a_server_without_durability_is_warned_about(postgres, setting):
    url = f"{postgres.emptied()}&options=-c{setting}%3Doff"
    with pytest.warns(DurabilityWarning, match=f"{setting} off: after a crash"):
        open_store(url).close()


def cut_off(store) -> int:
    """Cut every connection of the store, as a restart of the server does."""
    url = store.database.engine.url.set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as admin:
        return admin.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()[0]


def test_a_cut_connection_is_made_anew_where_nothing_is_at_stake(on_postgres):
    store = on_postgres
    assert cut_off(store) >= 1
    assert store.head("pilot").seq == 1
    cut_off(store)
    assert ask(store).seq == 2


def test_a_connection_cut_in_the_middle_is_lost_and_nothing_is_saved(on_postgres):
    store = on_postgres

    def act():
        with store.writing("pilot") as log:
            log.append("asked", body={}, actor="ada", key="k")
            cut_off(store)

    with pytest.raises(StorageLost, match="trying again with the same key is safe"):
        act()
    assert store.find("pilot", "k") is None


def test_write_tries_again_and_writes_once(on_postgres):
    store, tries = on_postgres, []

    def act(log):
        tries.append(log.head.seq)
        done = log.find("k") or log.append("asked", body={}, actor="ada", key="k")
        if len(tries) == 1:
            cut_off(store)
        return done

    assert write(store, "pilot", act).seq == 2
    assert tries == [1, 1]
    assert store.head("pilot").seq == 2


def test_a_lock_that_is_not_given_up_is_waited_for_and_then_said(postgres):
    url = postgres.emptied()
    store, other = SqlStore.open(url, patience=0.3), SqlStore.open(url, patience=0.3)
    store.create("pilot", {}, actor="ada", body={})
    with store.writing("pilot"), pytest.raises(StorageBusy, match="is locked by another program"):
        ask(other)
    assert ask(other).seq == 2
    store.close()
    other.close()


def test_two_studies_of_one_server_do_not_wait_for_each_other(on_postgres):
    on_postgres.create("other", {}, actor="ada", body={})
    with on_postgres.writing("pilot") as log:
        assert ask(on_postgres, "other").seq == 2
        log.append("asked", body={}, actor="ada")
    assert on_postgres.head("pilot").seq == 2


def test_the_kernel_notices_a_machine_that_is_gone(postgres, way):
    store = SqlStore.open(way.url(postgres.emptied()))
    with store.database.engine.connect() as connection:
        driver = connection.connection.driver_connection
        with socket.socket(fileno=os.dup(driver.fileno())) as held:
            unheard = held.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            idle, between, count = (
                held.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            assert held.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert 0 < unheard <= 10_000
        assert idle + between * count <= 10
        limit = connection.exec_driver_sql("SHOW statement_timeout").scalar()
        assert limit != "0"
    store.close()


def test_a_lost_connection_is_made_anew_and_a_silent_server_is_not_waited_for(postgres, way):
    url = postgres.emptied()
    store = SqlStore.open(way.url(url), serving=True)
    store.create("pilot", {}, actor="ada", body={})
    way.lose()
    time.sleep(1.1)  # a connection that was just used is not tried before it is used again
    began = time.monotonic()
    assert ask(store).seq == 2
    assert time.monotonic() - began < 10
    way.stall()
    try:
        began = time.monotonic()
        for _ in range(3):
            with pytest.raises(StorageLost) as caught:
                store.head("pilot")
            assert "the database" in str(caught.value)
            assert str(way.port) not in str(caught.value)
        assert time.monotonic() - began < 10
    finally:
        way.resume()
    time.sleep(1.0)
    assert ask(store).seq == 3
    store.close()


def test_a_statement_that_takes_too_long_is_ended_and_said(on_postgres):
    def sleep():
        with (
            on_postgres.database.transaction(lambda _: None) as (connection, _),
            sentences("here"),
        ):
            connection.exec_driver_sql("SET LOCAL statement_timeout = 50")
            connection.exec_driver_sql("SELECT pg_sleep(5)")

    with pytest.raises(StorageBusy, match="too much to do now"):
        sleep()


def test_more_callers_than_connections_get_a_sentence(postgres):
    store = SqlStore.open(postgres.emptied(), serving=True)
    store.create("pilot", {}, actor="ada", body={})
    done, go_on = [], threading.Event()

    def hold():
        with store.database.snapshot():
            done.append(1)
            go_on.wait(60)

    threads = [threading.Thread(target=hold) for _ in range(15)]
    for thread in threads:
        thread.start()
    try:
        deadline = time.monotonic() + 30
        while len(done) < 15:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with pytest.raises(StorageBusy, match="too much to do now; nothing was saved"):
            store.head("pilot")
    finally:
        go_on.set()
        for thread in threads:
            thread.join()
    assert store.head("pilot").seq == 1
    store.close()
