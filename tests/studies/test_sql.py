"""Files and servers: every earlier schema opens, and whatever is wrong is said in a sentence."""

import gc
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from sidestep.errors import (
    SchemaError,
    StorageBusy,
    StorageError,
    StorageFull,
)
from sidestep.studies.storage.copies import backup
from sidestep.studies.storage.events import GENESIS, Entry, utc_now
from sidestep.studies.storage.log import Head
from sidestep.studies.storage.ready import Ready
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.store import OPEN, Snapshot, open_store
from sidestep.studies.storage.tables import METADATA, SCHEMA, VERSION_TABLE

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"


def revisions() -> list[str]:
    settings = Config()
    settings.set_main_option("script_location", "sidestep.studies.storage:migrations")
    return [step.revision for step in ScriptDirectory.from_config(settings).walk_revisions()][::-1]


def ask(store, study="pilot", **more):
    with store.writing(study) as log:
        return log.append("asked", body={"give": 1}, actor="ada", **more)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def opened(path):
    store = SqlStore.open(path, patience=0.2)
    store.create("pilot", {}, actor="ada", body={})
    yield store
    store.close()


def test_the_schema_of_this_version_is_the_newest_migration():
    assert revisions()[-1] == SCHEMA
    assert revisions() == sorted(revisions())


@pytest.mark.parametrize("revision", revisions())
def test_a_file_of_every_schema_opens_and_goes_on(revision, path):
    """A step that is released comes with a dump of a file it made: tests/studies/schemas."""
    with sqlite3.connect(path) as raw:
        raw.executescript((HERE / "schemas" / f"{revision}.sql").read_text())
    raw.close()
    store = open_store(path)
    kinds = ["created", "asked", "answered", "corrected", "asked", "withdrawn", "accepted"]
    assert [event.kind for event in store.events("pilot")] == kinds
    ask(store)
    verdict = verify(store, "pilot")
    assert (verdict.events, verdict.flaws) == (8, ())
    assert store.snapshot("pilot", "directed-thompson/1").state == '{"kept":true}'
    assert store.blob(store.blobs()[0]) == '["a","b"]'
    store.close()


def test_a_new_file_is_made_as_the_migrations_would_leave_it(opened, tmp_path):
    migrated = sa.create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    with migrated.begin() as connection:
        settings = Config()
        settings.set_main_option("script_location", "sidestep.studies.storage:migrations")
        settings.attributes["connection"] = connection
        command.upgrade(settings, "head")
    listed = sa.text("SELECT type, name, sql FROM sqlite_master ORDER BY name")
    version = sa.text(f"SELECT * FROM {VERSION_TABLE}")
    for question in (listed, version):
        with migrated.connect() as one, opened.database.engine.connect() as other:
            assert one.execute(question).all() == other.execute(question).all()
    migrated.dispose()


def test_a_store_that_nobody_holds_lets_go_of_its_connections(path):
    store = SqlStore.open(path)
    store.create("pilot", {}, actor="ada", body={})
    pool = store.database.engine.pool
    assert pool.checkedin() == 1
    del store
    gc.collect()
    assert pool.checkedin() == 0


def test_migrations_leave_the_tables_that_the_statements_expect_on_sqlite(opened, tmp_path):
    declared = sa.create_engine(f"sqlite:///{tmp_path / 'declared.db'}")
    METADATA.create_all(declared)
    made = [engine.connect() for engine in (opened.database.engine, declared)]
    listed = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql <> ''"
    by_migration, by_declaration = (dict(map(tuple, db.execute(sa.text(listed)))) for db in made)
    assert by_migration.pop(VERSION_TABLE)
    assert by_migration == by_declaration
    for connection in made:
        connection.close()
    declared.dispose()


def test_reopening_needs_no_migrations_and_not_even_their_library(opened, path):
    code = "import sys; from sidestep.studies.storage.store import open_store\n"
    code += f"open_store({str(path)!r})\n"
    code += "print('sqlalchemy' in sys.modules, 'alembic' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]


def test_a_newer_schema_is_refused_and_left_alone(opened, path):
    with sqlite3.connect(path) as raw:
        raw.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")
    raw.close()
    with pytest.raises(SchemaError, match=r"written by a newer sidestep \(its schema is 9999"):
        open_store(path)


def test_the_tables_of_another_program_are_left_alone(path):
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE studies (study_id INTEGER)")
    raw.close()
    with pytest.raises(SchemaError, match="a table 'studies' of another program"):
        open_store(path)


@pytest.mark.parametrize(
    ("storage", "said"),
    [
        ("mysql://me:hunter2@host/db", "begins with mysql://"),
        ("postgresql://host:port/db", "begins with postgresql://"),
        ("http://example.org/x.db", "begins with http://"),
        ("sqlite://", "memory: is the store in memory"),
        ("sqlite:///:memory:", "memory: is the store in memory"),
        ("sqlite:///x.db?mode=ro", "a plain path"),
        ("/no/such/folder/x.db", "a folder that exists"),
        ("/tmp", "a file, got the folder"),
        ("", "storage must be a path"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(storage, said, refusal, monkeypatch):
    monkeypatch.delenv("SIDESTEP_STORAGE", raising=False)
    message = refusal(open_store, storage)
    assert said in message
    assert "hunter2" not in message


def test_a_file_that_is_not_there_is_made_only_where_that_is_meant(path, refusal):
    assert "a file that exists" in refusal(open_store, path, create=False)
    assert not path.exists()
    open_store(f"sqlite:///{path}").close()
    assert path.exists()
    open_store(path, create=False).close()


def test_a_file_that_is_no_database_is_left_alone(path):
    path.write_bytes(b"name,dose\nada,40\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StorageError, match="is not a SQLite database, or is damaged"):
        open_store(path)
    assert path.read_bytes() == before


def test_a_damaged_file_says_so(path):
    store = SqlStore.open(path)
    store.create("pilot", {}, actor="ada", body={"long": "x" * 20_000})
    store.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    with pytest.raises(StorageError, match="is damaged|cannot be read"):
        open_store(path).events("pilot")


def test_a_locked_file_is_waited_for_and_then_said_to_be_locked(opened, path):
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    before = time.monotonic()
    with pytest.raises(StorageBusy, match="is locked by another program; nothing was saved"):
        ask(opened)
    assert 0.2 <= time.monotonic() - before < 5
    assert opened.head("pilot").seq == 1  # reading does not wait
    holder.rollback()
    holder.close()
    assert ask(opened).seq == 2


def test_a_thread_waits_for_its_turn_and_then_says_so(opened):
    entered, leave, failed = threading.Event(), threading.Event(), []

    def hold():
        with opened.writing("pilot"):
            entered.set()
            leave.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait(10)
    with pytest.raises(StorageBusy, match="busy with another entry"):
        ask(opened)
    leave.set()
    holder.join()
    assert failed == []
    assert ask(opened).seq == 2


def test_transactions_are_not_nested(opened):
    with opened.writing("pilot"), pytest.raises(RuntimeError, match="cannot be nested"):
        ask(opened)


def test_a_full_disk_says_so_and_goes_on_when_there_is_room(opened):
    room = {"pages": 12}

    @sa.event.listens_for(opened.database.engine, "checkout")
    def limit(connection, *_):
        connection.execute(f"PRAGMA max_page_count = {room['pages']}")

    long = {"long": "x" * 100_000}
    with pytest.raises(StorageFull, match=r"^disk full: .*can be read"):
        append(opened, long)
    assert opened.head("pilot").seq == 1
    room["pages"] = 10_000
    assert append(opened, long).seq == 2


def append(store, body):
    with store.writing("pilot") as log:
        return log.append("asked", body=body, actor="ada")


AS_NOBODY = """
import os, sys
from sidestep.errors import StorageError
from sidestep.studies.storage.store import open_store
from sidestep.studies.storage import sql
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
store = open_store(sys.argv[1])
print(store.head("pilot").seq)
try:
    with store.writing("pilot") as log:
        log.append("asked", body={}, actor="ada")
except StorageError as error:
    print(error)
"""


@pytest.fixture
def shared_folder():
    """A folder that another user can look into but not write to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_file_can_be_read_and_says_that_it_is_read_only(shared_folder):
    """SQLite's two other files stay beside it, as the store is open in this process."""
    path = shared_folder / "study.db"
    store = SqlStore.open(path)
    store.create("pilot", {}, actor="ada", body={})
    for file in shared_folder.iterdir():
        file.chmod(0o444)
    command = [sys.executable, "-c", AS_NOBODY, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    store.close()
    assert done.returncode == 0, done.stderr
    seq, said = done.stdout.splitlines()
    assert seq == "1"
    assert "is read-only for this user; nothing was saved" in said


GOES_ON = """
import os, sys
from sidestep.errors import StorageError
from sidestep.studies.storage.store import open_store
from sidestep.studies.storage import sql
os.setgid(65534); os.setuid(65534)
store = open_store(sys.argv[1])
for _ in sys.stdin:  # a line each time that something was changed
    try:
        store.database.check_writing()
        with store.writing("pilot") as log:
            log.append("asked", body={}, actor="ada")
        print("saved", flush=True)
    except StorageError as error:
        print(error, flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed, who does not own the file")
@pytest.mark.parametrize("end", ["", "-shm", "-wal"])
def test_a_file_that_was_read_only_goes_on_when_it_can_be_written(end):
    """The sentence names the file that is meant; what asks whether it is ready hears it too."""
    with tempfile.TemporaryDirectory() as name:
        folder, path = Path(name), Path(name) / "study.db"
        folder.chmod(0o777)
        store = SqlStore.open(path)
        store.create("pilot", {}, actor="ada", body={})
        for file in folder.iterdir():
            file.chmod(0o666)
        (folder / f"study.db{end}").chmod(0o444)
        command = [sys.executable, "-c", GOES_ON, str(path)]
        with subprocess.Popen(command, stdin=-1, stdout=-1, text=True, bufsize=1) as child:
            child.stdin.write("\n")
            said = child.stdout.readline()
            assert f"{path}{end} is read-only for this user; nothing was saved" in said
            (folder / f"study.db{end}").chmod(0o666)
            child.stdin.write("\n")
            assert child.stdout.readline() == "saved\n"
            child.stdin.close()
        assert store.head("pilot").seq == 2
        store.close()


def test_a_read_only_backup_can_be_read_where_it_lies(shared_folder):
    with closing(SqlStore.open(shared_folder / "study.db")) as store:
        store.create("pilot", {}, actor="ada", body={})
        backup(store, shared_folder / "copy.db")
    (shared_folder / "copy.db").chmod(0o444)
    command = [sys.executable, "-c", AS_NOBODY, str(shared_folder / "copy.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "1"
    assert "is read-only for this user" in done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET body = '{}' WHERE seq = 2",
        "DELETE FROM events WHERE seq = 2",
        "DELETE FROM texts",
        "UPDATE texts SET actor = 'eve' WHERE seq = 2",
        "UPDATE texts SET reason = 'none', reason_salt = 'x' WHERE seq = 2",
        "DELETE FROM studies",
        "UPDATE studies SET config = '{}x'",
        "UPDATE studies SET head_seq = 1",
        "UPDATE blobs SET body = 'x'",
        "DELETE FROM blobs",
    ],
)
def test_the_database_itself_refuses_to_edit_the_record(storage, statement):
    store = SqlStore.open(storage)
    store.create("pilot", {}, actor="ada", body={})
    store.put_blob(
        "a591a6d40bf420404a011733cfb7b190d62c65bf0bcda32b57b277d9ad9f146e", "Hello World"
    )
    ask(store)
    with (
        store.database.engine.connect() as connection,
        pytest.raises(sa.exc.DBAPIError, match="the record only grows"),
    ):
        connection.exec_driver_sql(statement)
    store.close()


def test_a_forked_child_has_connections_of_its_own(storage):
    store = SqlStore.open(storage)
    store.create("pilot", {}, actor="ada", body={})
    ask(store)
    child = os.fork()
    if child == 0:
        ask(store, key="child")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert ask(store, key="parent").seq == 4
    assert verify(store, "pilot").holds
    store.close()


BARE = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "scipy", "numba", "pydantic", "polars"):
            raise ImportError(f"{name} is not here")
sys.meta_path.insert(0, Blocked())
from sidestep.studies.storage.store import open_store
from sidestep.studies.storage.copies import backup
from sidestep.studies.storage.events import GENESIS, Entry, utc_now
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.exchange import export_study
from sidestep.studies.storage.copies import backup
from sidestep.studies.storage.doctor import doctor
store = open_store(sys.argv[1])
with store.writing("pilot") as log:
    ticket = log.append("asked", body={}, actor="ada").seq
    log.append("answered", ticket=ticket, outcome="sodium", body={"value": 138.0}, actor="lab")
    log.append("corrected", ticket=ticket, body={"is": 136.0}, actor="lab", reason="misread")
    log.append("withdrawn", ticket=ticket, body={}, actor="lab", reason="missed")
print(verify(store, "pilot").holds, len(list(export_study(store, "pilot"))))
print(len(backup(store, sys.argv[2])), {finding.state for finding in doctor(store)})
"""


def test_the_record_works_where_the_arithmetic_cannot_be_imported(opened, path, tmp_path):
    command = [sys.executable, "-c", BARE, str(path), str(tmp_path / "copy.db")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["True 6", "1 {'ok'}"]


@pytest.mark.slow
def test_100000_events_are_reopened_in_under_a_third_of_a_second(storage):
    link, events = GENESIS, []
    for seq in range(1, 100_001):
        body = {"name": "pilot", "config": {}} if seq == 1 else {"item": seq}
        entry = Entry("created" if seq == 1 else "asked", body, "ada", key=f"k{seq}")
        events.append(entry.linked(seq, link, utc_now()))
        link = events[-1].hash
    store = SqlStore.open(storage)
    store.adopt(Head("pilot", OPEN, {}, 100_000, link, events[-1].at), events)
    seen = events[-101]
    assert store.put_snapshot("pilot", Snapshot(seen.seq, seen.hash, "p", "[]"))
    store.close()
    before = time.process_time()
    again = open_store(storage)
    tail = again.events("pilot", after=again.snapshot("pilot", "p").seq)
    assert time.process_time() - before < 0.3
    assert (len(tail), tail[-1].hash) == (100, again.head("pilot").hash)
    again.close()


@pytest.mark.parametrize("whole", [True, False], ids=["records", "outlines"])
def test_all_studies_are_listed_in_few_statements(path, monkeypatch, whole):
    """Ten studies and ninety differ by one statement, as fifty are read at once."""
    store, run, counts = open_store(path), Ready._run, []
    monkeypatch.setattr(Ready, "_run", lambda *given: counts.append(1) or run(*given))
    needed = {}
    for number in range(90):
        store.create(f"study {number}", {}, actor="ada", body={})
        if number + 1 in (10, 90):
            counts.clear()
            found = list(store.records() if whole else store.outlines())
            needed[number + 1] = len(counts)
            names = [each[0].name if whole else each.name for each in found]
            assert names == [f"study {each}" for each in range(number + 1)]
            if whole:
                assert all(events[-1].hash == head.hash for head, events in found)
    assert needed == {10: 2, 90: 3}
    store.close()
