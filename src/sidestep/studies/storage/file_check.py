"""Whether a SQLite file is still the one that was opened, and holds everything that was saved in it.

SQLite goes on writing into a file that was deleted or replaced under it, and opens a file whose log was
lost as if nothing had been saved. So beside every file `study.db` lies `study.db-head`: how many entries
were saved, and the hash of the last one. It is written after a commit, never before, so it names at most
what the file must hold. It is not flushed, since that would double the cost of a commit: after a power
failure it may name less.

Under the lock of every transaction, and where it is asked whether the storage can work, we compare

    the device and inode of the file, its log and its index of the log, with those that are open
    the entry that `-head` names, with the file as SQLite reads it
    size and time of the file with those after the log was last copied into it

A difference is refused until the file is opened anew, and so is a file that holds less when it is opened.
"""

import ctypes
import errno
import fcntl
import json
import os
import sqlite3
import tempfile
import time
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from sidestep.errors import StorageError, StorageReplaced

NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
BESIDE = ("-wal", "-shm")  # SQLite's log, and the index of it that processes share
HEAD = "-head"
WIDTH = 200  # bytes of a head, always the same
COPYING, NAP = 0.5, 0.002  # seconds, while another process copies its log into the file
LAST = "SELECT rowid, hash FROM events ORDER BY rowid DESC LIMIT 1"
CHANGES = "SELECT max(rowid) FROM changes"
AT = "SELECT hash FROM events WHERE rowid = ?"

_ABANDONED: list[Any] = []  # of a parent: even closing them here would disturb it


Stamp: TypeAlias = tuple[int, int]  # size and time of the last change


class Held(NamedTuple):
    """What a file holds: entries are only ever added, so their number says how far it is."""

    entries: int
    hash: str  # of the last entry
    changes: int  # of accounts
    stamp: Stamp | None = None  # of the file itself, without its log

    def to_line(self) -> bytes:
        """The line beside the file, of one width, with its own digest."""
        text = json.dumps(self._asdict())
        return f"{sha256(text.encode()).hexdigest()[:16]} {text}".ljust(WIDTH - 1).encode() + b"\n"


NOTHING = Held(0, "", 0)


class FileCheck:
    """The check of one file by one process."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._anchor: sqlite3.Connection | None = None  # while it is open, SQLite deletes no file
        self._process = os.getpid()
        self._files: dict[str, tuple[int, int]] = {}
        self._seen: Stamp | None = None
        self._known = True  # whether a process that we know changed the file last
        self.refusal: str | None = None

    def before_opening(self) -> None:
        """Raise if the file was emptied, or is gone and left its log; SQLite would delete the log."""
        size, log = _size(self._path), _size(self._path + BESIDE[0])
        kept = self._head() if size == 0 else NOTHING
        if size == 0 and (kept.entries or log):
            raise StorageReplaced(
                f"{self._path} is empty, but {_counted(kept.entries) if kept.entries else 'entries'}"
                f" were saved in it; restore a backup, or put the file back; {self._anew()}"
            )
        if size is None and log:
            raise StorageReplaced(
                f"{self._path} is gone, but its log {self._path}-wal is still there; put the file"
                f" back beside it, or move the log away to begin anew"
            )
        if size is None:  # a new file: what an earlier one held is of no concern
            with suppress(OSError):
                Path(self._path + HEAD).unlink(missing_ok=True)

    def opened(self, driver: Any) -> None:
        """Raise if the file holds less than was saved in it."""
        self._hold()
        kept = self._head()
        if not _holds(driver, kept):
            here = held(driver)
            raise StorageReplaced(
                f"{self._path} holds {_counted(here.entries)}, but {_counted(kept.entries)} were"
                f" saved in it: its log {self._path}-wal was lost, or an older copy was put in its"
                f" place; nothing was changed; put the log back, or restore a backup; {self._anew()}"
            )

    def check(self, driver: Any = None) -> bool:
        """Raise if it is no longer the file that was opened; with a connection, also its contents.

        The connection must hold the lock for writing. Returns whether it may go on: not where what it
        has in memory may differ from the file.
        """
        if self.refusal is None:
            self._known = True
            self.refusal = self._difference(driver)
        if self.refusal is not None:
            raise StorageReplaced(self.refusal)
        return self._known

    def saved(self, held: Held) -> None:
        """Take note of what the file holds after a commit."""
        self._seen = _stamp(self._path)
        with suppress(OSError):  # it is only a second witness
            handle = os.open(self._path + HEAD, os.O_WRONLY | os.O_CREAT, _mode(self._path))
            try:
                os.pwrite(handle, held._replace(stamp=self._seen).to_line(), 0)
            finally:
                os.close(handle)

    def check_locks(self) -> None:
        """Raise if the file system refuses locks, which SQLite takes for a lock of somebody else."""
        try:
            with tempfile.TemporaryFile(dir=Path(self._path).parent) as probe:
                fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in NO_LOCKS:
                raise StorageError(
                    f"the file system of {self._path} does not lock files ({error.strerror}); nothing"
                    " was saved; keep the file on a disk of this machine, or use PostgreSQL"
                ) from error

    @property
    def entries(self) -> int:
        """How many entries must be in the file at least; 0 if nothing beside it says so."""
        return self._head().entries

    def abandon(self, connections: Any) -> bool:
        """Whether these must stay open to the end of the process, as the file is not what it was.

        SQLite would copy the log that it knows into the file and delete it, and with it what another
        process has saved there.
        """
        if self.refusal is not None:
            for each in (connections, self._anchor):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(each))
        return self.refusal is not None

    def release(self) -> None:
        """Stop looking, so that SQLite may delete its log."""
        if self._anchor is not None and self._process == os.getpid():
            self._anchor.close()
        self._anchor, self._files = None, {}

    def _difference(self, driver: Any) -> str | None:
        self._hold()
        for name, known in self._files.items():
            if _identity(name) != known:
                what = "deleted" if _identity(name) is None else "replaced"
                return (
                    f"{name} was {what} while this process had it open; nothing more is saved here; "
                    f"put the right file back, and start this process again"
                )
        if driver is None:
            return None
        if not _holds(driver, self._head()) or not self._file_goes_on(driver):
            return (
                f"{self._path} no longer holds what was saved in it: another file was copied over it,"
                " or another process writes beside this one without seeing it; nothing more is saved"
                " here; stop every process that has it open, keep a copy of the file and its -wal,"
                " check them with `sidestep study verify`, or restore a backup"
            )
        return None

    def _hold(self) -> None:
        """Remember which files are open; they cannot change rightly while a connection is open."""
        if self._process != os.getpid():  # a child: its parent's connection is not ours to use
            _ABANDONED.append(self._anchor)
            self._anchor, self._files, self._process = None, {}, os.getpid()
        if self._anchor is not None:
            return
        with suppress(sqlite3.Error):  # as where it can only be read: then nothing is saved either
            self._anchor = self._connected("mode=rw")
            self._anchor.execute("PRAGMA schema_version").fetchone()  # this opens the log
        names = (self._path, *(self._path + end for end in BESIDE))
        found = {name: _identity(name) for name in names}
        self._files = {name: identity for name, identity in found.items() if identity}
        self._seen = _stamp(self._path)

    def _connected(self, how: str) -> sqlite3.Connection:
        address = f"{Path(self._path).as_uri()}?{how}"
        return sqlite3.connect(address, uri=True, timeout=0, check_same_thread=False)

    def _file_goes_on(self, driver: Any) -> bool:
        """Whether the file itself, without its log, was changed only by copying its log into it.

        Every process notes that it has done so. One that was killed could not, nor does another program:
        then the whole file is looked at.
        """
        deadline = time.monotonic() + COPYING
        while (stamp := _stamp(self._path)) not in (self._seen, self._head().stamp):
            if time.monotonic() > deadline:
                self._known = False
                if not self._is_whole(driver):
                    return False
                break
            time.sleep(NAP)
        self._seen = stamp
        return True

    def _is_whole(self, driver: Any) -> bool:
        """Whether a connection that has nothing of the file in memory finds all of it, in order."""
        here = held(driver)
        try:
            with closing(self._connected("mode=ro")) as fresh:
                right = fresh.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",)
                count = fresh.execute("SELECT count(*) FROM events").fetchone()
                return right and held(fresh) == here and count == (here.entries,)
        except sqlite3.Error:
            return False

    def _head(self) -> Held:
        """What was saved, as the line beside the file says; nothing where it cannot be read."""
        try:
            line = Path(self._path + HEAD).read_bytes()
            digest, text = line.decode().strip().split(" ", 1)
            if sha256(text.encode()).hexdigest()[:16] == digest:
                kept = Held(**json.loads(text))
                return kept._replace(stamp=kept.stamp and (kept.stamp[0], kept.stamp[1]))
        except (OSError, ValueError, TypeError):
            pass
        return NOTHING

    def _anew(self) -> str:
        return f"to go on with what it holds, delete {self._path}{HEAD}"


def held(driver: Any) -> Held:
    """What a connection sees."""
    entries, hash_ = driver.execute(LAST).fetchone() or (0, "")
    return Held(entries, hash_, _changes(driver))


def _holds(driver: Any, kept: Held) -> bool:
    return _has(driver, kept.entries, kept.hash) and _changes(driver) >= kept.changes


def _has(driver: Any, entry: int, hash_: str) -> bool:
    return not entry or driver.execute(AT, (entry,)).fetchone() == (hash_,)


def _changes(driver: Any) -> int:
    return driver.execute(CHANGES).fetchone()[0] or 0


def _stamp(path: str) -> Stamp | None:
    """Size and time of a file; None if it is not there."""
    found = _stat(path)
    return None if found is None else (found.st_size, found.st_mtime_ns)


def _identity(path: str) -> tuple[int, int] | None:
    found = _stat(path)
    return None if found is None else (found.st_dev, found.st_ino)


def _size(path: str) -> int | None:
    found = _stat(path)
    return None if found is None else found.st_size


def _stat(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _mode(path: str) -> int:
    """The permissions of a file beside another: its own."""
    found = _stat(path)
    return 0o600 if found is None else found.st_mode & 0o666


def _counted(entries: int) -> str:
    return f"{entries} entr{'y' if entries == 1 else 'ies'}"
