"""Translates all database errors into our exceptions, with a sentence that says what to do."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from sidestep.errors import RecordError, StorageBusy, StorageError, StorageFull, StorageLost

# SQLite's result codes by the start of their name; PostgreSQL's SQLSTATEs by their start.
BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "55P03", "40P01", "40001")
SLOW = ("57014",)  # a statement that took longer than it may
SERVED = "the database"  # of a service: its callers are not told where it is
FULL = ("SQLITE_FULL", "53100")
READ_ONLY = ("SQLITE_READONLY", "25006", "42501", "SQLITE_PERM", "SQLITE_AUTH")
DAMAGED = ("SQLITE_CORRUPT", "XX001", "XX002")
UNREADABLE = "letters"
FOREIGN = ("SQLITE_NOTADB",)
CANNOT_OPEN = ("SQLITE_CANTOPEN",)
# a server that is going, starting or crowded
COMING_BACK = ("57P01", "57P02", "57P03", "53300", "08", "25P03", "25P04")
# what a refusal that waiting does not change says; it has no SQLSTATE
HOPELESS = (
    "authentication failed",
    "does not exist",
    "resolve host",
    "no pg_hba",
    "not support SSL",
)
INPUT_OUTPUT = ("SQLITE_IOERR",)
SHARED_MEMORY = ("SQLITE_IOERR_SHM",)  # shared memory of the processes that have a file open
ROOM = 2**16  # bytes of that shared memory


def code_of(error: BaseException) -> str:
    """SQLite's name of the error or PostgreSQL's SQLSTATE; empty for other errors."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, UnicodeDecodeError):  # SQLite names what is damaged, in damaged letters
        return UNREADABLE
    return getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""


def is_busy(error: BaseException) -> bool:
    """Whether another writer holds the lock."""
    return code_of(error).startswith(BUSY)


def is_read_only(error: BaseException) -> bool:
    """Whether this user may only read."""
    return code_of(error).startswith(READ_ONLY)


def is_away(error: BaseException) -> bool:
    """Whether the server went away, or is not there yet."""
    if not isinstance(error, DBAPIError):
        return False
    code = code_of(error)
    if error.connection_invalidated or code.startswith(COMING_BACK):
        return True
    of_psycopg = any(each.__module__.startswith("psycopg") for each in type(error.orig).__mro__)
    hopeless = any(sign in str(error.orig) for sign in HOPELESS)
    return not code and of_psycopg and not hopeless


def is_starting(error: BaseException) -> bool:
    """Whether the server refuses connections because it is starting or stopping."""
    return "the database system is" in str(error)


def translated(error: Exception, where: str, *, at_stake: bool = True) -> StorageError:
    """Our exception for a database error; `at_stake`: an entry was being written."""
    code, said = code_of(error), _said(error)
    if isinstance(error, PoolTimeout) or code.startswith(SLOW):
        return StorageBusy(f"{where} has too much to do now; nothing was saved; try again soon")
    if is_busy(error):
        return StorageBusy(
            f"{where} is locked by another program; nothing was saved; try again when it is done"
        )
    if code.startswith(FULL) or (code.startswith(SHARED_MEMORY) and _is_full(where)):
        return StorageFull(
            f"disk full: {where} has no room left; nothing was saved, what was saved before is safe"
            f"{' and can be read' if code.startswith(FULL) else ''}; make room and try again"
        )
    if is_away(error):
        return StorageLost(_lost(where, said, at_stake=at_stake))
    if isinstance(error, IntegrityError):
        return RecordError(f"{where} refused a change of its record: {said}")
    return StorageError(_plainly(code, where, said))


@contextmanager
def sentences(where: str, *, at_stake: bool = True) -> Iterator[None]:
    """Raise database errors as our exceptions."""
    try:
        yield
    except (SQLAlchemyError, UnicodeDecodeError) as error:
        raise translated(error, where, at_stake=at_stake) from error


def _lost(where: str, said: str, *, at_stake: bool) -> str:
    detail = _in_detail(where, said)
    if not at_stake:
        return f"{where} cannot be reached{detail}; nothing was saved"
    return (
        f"the connection to {where} broke{detail}; whether the last entry was saved is not known;"
        " trying again with the same key is safe"
    )


def _in_detail(where: str, said: str) -> str:
    """The driver's words, which may name the server: only for whoever opened the storage."""
    return "" if where == SERVED else f" ({said})"


def _plainly(code: str, where: str, said: str) -> str:
    if code.startswith(READ_ONLY):
        what = _read_only_file(where)
        return (
            f"{what} is read-only for this user; nothing was saved; it can still be read ({said})"
        )
    if code.startswith(DAMAGED) or code == UNREADABLE:
        return f"{where} is damaged ({said}); restore a backup; nothing was changed"
    if code.startswith(FOREIGN):
        return f"{where} is not a SQLite database, or is damaged; nothing was changed"
    if code.startswith(INPUT_OUTPUT):
        return (
            f"the disk of {where} failed ({said}); whether the last entry was saved is not known;"
            " trying again with the same key is safe"
        )
    if code.startswith(CANNOT_OPEN):
        return (
            f"{where} cannot be opened; the file and its folder must exist and be writable for"
            " this user, as SQLite keeps two more files beside it"
        )
    why = "the log of this service says why" if where == SERVED else said
    return f"{where} cannot be used: {why}"


def _read_only_file(where: str) -> str:
    """Which of the files of a storage cannot be written: itself, its log, their index, their folder."""
    for path in (Path(where), Path(f"{where}-wal"), Path(f"{where}-shm"), Path(where).parent):
        if path.exists() and not os.access(path, os.W_OK):
            return str(path) if path.is_file() else f"{where}: its folder {path}"
    return where


def _is_full(where: str) -> bool:
    """Whether the disk of a file is full."""
    try:
        return shutil.disk_usage(Path(where).parent).free < ROOM
    except OSError:  # it is not a file, or it went away
        return False


def _said(error: Exception) -> str:
    """The first line of the driver's message."""
    cause = getattr(error, "orig", None) or error
    return str(cause).strip().partition("\n")[0]
