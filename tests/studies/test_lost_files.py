"""A SQLite file that is deleted, replaced or emptied, a lost log: nothing is acknowledged and gone."""

import os
import shutil
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from workers import Worker

from sidestep.errors import StorageReplaced
from sidestep.studies.storage.copies import backup, verified
from sidestep.studies.storage.doctor import doctor
from sidestep.studies.storage.sql import SqlStore

NAME = "study"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "clinic.db"
    store = SqlStore.open(path)
    store.create(NAME, {}, actor="ada", body={})
    store.close()
    return path


def add(store: SqlStore, count: int = 1, size: int = 10) -> int:
    """Append entries; how many there are."""
    for _ in range(count):
        with store.writing(NAME) as log:
            log.append("asked", body={"give": "x" * size}, actor="ada")
    return store.head(NAME).seq


def write_and_wait(reports: Connection, path: Path, count: int) -> None:
    """A server: it writes, and stays until it is killed."""
    store = SqlStore.open(path)
    add(store, count)
    reports.send("written")
    time.sleep(600)


def write_and_end(reports: Connection, path: Path, count: int) -> None:
    """The command line, beside a server."""
    store = SqlStore.open(path)
    reports.send(add(store, count))
    store.close()


def killed_after(path: Path, count: int) -> None:
    """Leave the file as a server leaves it that was killed after so many entries."""
    server = Worker(write_and_wait, path, count)
    server.until("written")
    server.kill()


def beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def refused(store: SqlStore) -> str:
    """The sentence with which an entry, the check of a server and a read are refused, again and again."""
    said = set()
    for what in (add, add, lambda it: it.database.check_writing(), lambda it: it.events(NAME)):
        with pytest.raises(StorageReplaced) as refusal:
            what(store)
        said.add(str(refusal.value))
    assert len(said) == 1
    return said.pop()


def verify(reports: Connection, path: Path) -> None:
    store = SqlStore.open(path)
    reports.send([(it.events, it.holds) for it in verified(store)])
    store.close()


def is_whole(path: Path, entries: int) -> bool:
    """Whether a process that is started anew finds that many entries, in an unbroken chain."""
    return Worker(verify, path).join() == [[(entries, True)]]


def test_a_deleted_file_takes_no_more_entries(file):
    store = SqlStore.open(file)
    add(store, 5)
    shutil.copy(file, kept := beside(file, ".kept"))
    file.unlink()
    assert f"{file} was deleted while this process had it open" in refused(store)
    os.rename(kept, file)
    refused(store)
    store.close()


@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_deleted_log_takes_no_more_entries(file, end):
    store = SqlStore.open(file)
    add(store, 5)
    beside(file, end).unlink()
    assert f"{end} was deleted while this process had it open" in refused(store)
    store.close()


def test_a_backup_moved_over_the_file_takes_no_more_entries(file):
    store = SqlStore.open(file)
    backup(store, beside(file, ".copy"))
    add(store, 100)
    os.rename(beside(file, ".copy"), file)
    assert f"{file} was replaced" in refused(store)
    store.close()


@pytest.mark.parametrize("later", [1, 30, 300])
@pytest.mark.parametrize("earlier", [0, 30, 300])
def test_a_file_copied_over_the_file_takes_no_more_entries(file, earlier, later):
    """Same device and inode, other contents; the log has much, little or nothing of what was added.

    Where it has all, the file and its log may be whole together: then it goes on, and nothing is lost.
    """
    store = SqlStore.open(file)
    add(store, earlier)
    backup(store, beside(file, ".copy"))
    seq = add(store, later, size=2000)
    shutil.copyfile(beside(file, ".copy"), file)
    if later > 1:
        assert "no longer holds what was saved in it" in refused(store)
        store.close()
        return
    try:
        seq = add(store, 50)
    except StorageReplaced:
        assert "no longer holds what was saved in it" in refused(store)
        store.close()
    else:
        store.close()
        assert is_whole(file, seq)


def test_another_study_copied_over_the_file_takes_no_more_entries(file, tmp_path):
    other = SqlStore.open(tmp_path / "other.db")
    other.create(NAME, {"other": True}, actor="bob", body={})
    add(other, 400)
    store = SqlStore.open(file)
    add(store, 5)
    backup(other, tmp_path / "other.copy")
    shutil.copyfile(tmp_path / "other.copy", file)
    assert "no longer holds what was saved in it" in refused(store)
    other.close()
    store.close()


@pytest.mark.parametrize("count", [1, 50, 300])
def test_a_lost_log_is_said_when_the_file_is_opened(file, count):
    killed_after(file, count)
    beside(file, "-wal").unlink()
    with pytest.raises(
        StorageReplaced, match=rf"but {count + 1} entries were saved in it.*-wal was lost"
    ):
        SqlStore.open(file)
    beside(file, "-head").unlink()  # as the sentence says
    store = SqlStore.open(file)
    assert store.head(NAME).seq <= count  # study and tables were never only in the log
    store.close()


def test_little_is_only_in_the_log(file):
    killed_after(file, 300)
    beside(file, "-wal").unlink()
    beside(file, "-head").unlink()
    store = SqlStore.open(file)
    assert store.head(NAME).seq > 200
    store.close()


def test_a_killed_server_leaves_all(file):
    killed_after(file, 50)
    assert is_whole(file, 51)


def test_an_emptied_file_is_said_and_its_log_is_kept(file):
    killed_after(file, 20)
    whole = file.read_bytes()
    file.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StorageReplaced, match=r"is empty, but 21 entries were saved in it"):
            SqlStore.open(file)
    file.write_bytes(whole)
    assert is_whole(file, 21)


def test_a_log_without_its_file_is_kept(file):
    killed_after(file, 20)
    os.rename(file, beside(file, ".moved"))
    with pytest.raises(StorageReplaced, match=r"is gone, but its log .*-wal is still there"):
        SqlStore.open(file)
    os.rename(beside(file, ".moved"), file)
    assert is_whole(file, 21)


def test_an_older_copy_put_in_its_place_is_said(file):
    store = SqlStore.open(file)
    backup(store, beside(file, ".copy"))
    add(store, 5)
    store.close()
    os.rename(beside(file, ".copy"), file)
    with pytest.raises(StorageReplaced, match=r"holds 1 entry, but 6 entries were saved in it"):
        SqlStore.open(file)


def test_a_deleted_study_can_be_begun_anew(file):
    file.unlink()
    store = SqlStore.open(file)
    store.create(NAME, {}, actor="ada", body={})
    assert add(store) == 2
    store.close()


def test_what_two_processes_save_is_no_difference(file):
    store = SqlStore.open(file)
    for count in (1, 40, 300):
        add(store, count)
        others = [Worker(write_and_end, file, count) for _ in range(2)]
        add(store, count)
        for other in others:
            assert other.join()
    store.close()
    assert is_whole(file, 1 + 4 * 341)


def test_entries_of_another_process_without_the_index_of_the_log_are_kept(file):
    """Without it another process makes a new one, and each is blind for what the other saves."""
    store = SqlStore.open(file)
    seq = add(store, 20)
    beside(file, "-shm").unlink()
    assert Worker(write_and_end, file, 5).join() == [seq + 5]
    assert "-shm was replaced" in refused(store)
    store.close()
    assert is_whole(file, seq + 5)


def test_entries_that_this_process_does_not_see_are_not_overwritten(file, monkeypatch):
    """The same where the inodes say nothing: what was saved beside the file is compared with it."""
    store = SqlStore.open(file)
    seq = add(store, 20)
    beside(file, "-shm").unlink()
    assert Worker(write_and_end, file, 5).join() == [seq + 5]
    store.database.file._files.clear()
    with pytest.raises(StorageReplaced, match="writes beside this one without seeing it"):
        add(store)
    store.close()
    assert is_whole(file, seq + 5)


def test_a_child_process_looks_for_itself(file):
    store = SqlStore.open(file)
    add(store, 3)
    child = os.fork()
    if child == 0:
        done: Any = 1
        try:
            done = 0 if add(store, 3) == 7 else 2
        finally:
            os._exit(done)
    assert os.waitpid(child, 0)[1] == 0
    assert add(store) == 8
    store.close()


def test_doctor_says_how_the_file_is_watched(file):
    store = SqlStore.open(file)
    add(store, 3)
    found = [it for it in doctor(store) if it.what == "saved"]
    assert [(it.state, "4 entries" in it.sentence) for it in found] == [("ok", True)]
    store.close()


REFUSES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
static int refuse(int command) { return command == F_SETLK || command == F_SETLKW; }
int fcntl64(int file, int command, ...) {
    va_list rest; va_start(rest, command); void *given = va_arg(rest, void *); va_end(rest);
    if (refuse(command)) { errno = ENOLCK; return -1; }
    return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64"))(file, command, given);
}
int fcntl(int file, int command, ...) {
    va_list rest; va_start(rest, command); void *given = va_arg(rest, void *); va_end(rest);
    if (refuse(command)) { errno = ENOLCK; return -1; }
    return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl"))(file, command, given);
}
"""

OPENS = """
import sys, time
from sidestep.errors import StorageError
from sidestep.studies.storage.sql import SqlStore
begun = time.monotonic()
try:
    SqlStore.open(sys.argv[1])
except StorageError as error:
    print(error)
print(time.monotonic() - begun)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler is needed to refuse locks")
def test_a_file_system_that_does_not_lock_is_said_at_once(tmp_path):
    """As on a network disk: every lock is refused, which SQLite takes for a lock of another program."""
    (tmp_path / "refuses.c").write_text(REFUSES)
    library = tmp_path / "refuses.so"
    build = ["cc", "-shared", "-fPIC", "-o", library, tmp_path / "refuses.c", "-ldl"]
    subprocess.run(build, check=True)
    done = subprocess.run(
        [sys.executable, "-c", OPENS, tmp_path / "study.db"],
        env=os.environ | {"LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
        check=True,
    )
    said, seconds = done.stdout.splitlines()
    assert "does not lock files" in said
    assert float(seconds) < 10  # half of the patience with another program
