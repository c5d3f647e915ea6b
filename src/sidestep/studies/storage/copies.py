"""Backups: every table of a storage in one verified SQLite file; and restoring them."""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, insert, select

from sidestep.errors import ConflictError, InputError
from sidestep.studies.storage.database import Database
from sidestep.studies.storage.faults import sentences, translated
from sidestep.studies.storage.record import Verdict, verify
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.tables import METADATA

CHUNK = 1000
HALF_BACKUP, HALF_RESTORE = ".backup-", "sidestep-restore-"  # folders that only a kill leaves


def backup(store: SqlStore, path: str | Path) -> list[Verdict]:
    """Write a backup, from either database, while others continue writing; returns its verification.

    The file gets its name once it is complete and on the disk. A record with a flaw is backed up
    unchanged.
    """
    target = Path(path).expanduser().absolute()
    if target.exists():
        raise InputError(f"a backup must be a new file, got {target}, which exists")
    if not target.parent.is_dir():
        raise InputError(f"a backup must lie in a folder that exists, got {target}")
    with tempfile.TemporaryDirectory(prefix=HALF_BACKUP, dir=target.parent) as folder:
        partial = Path(folder) / target.name
        copy = SqlStore.open(partial)
        try:
            _copy_tables(store.database, copy.database)
            verdicts = verified(copy)
            _into_one_file(copy.database)
        finally:
            copy.close()
        _flush(partial)
        _give_name(partial, target)
    _flush(target.parent)
    return verdicts


def restore(path: str | Path, store: SqlStore) -> list[Verdict]:
    """Restore a backup into an empty storage, all or nothing; returns its verification."""
    if store.names():
        raise ConflictError(
            f"{store.database.where} is not empty; a backup is restored into an empty storage"
        )
    with opened_backup(path) as copy:
        _copy_tables(copy.database, store.database)
    return verified(store)


def check_backup(path: str | Path) -> list[Verdict]:
    """Test a restore: open a copy of the backup, migrate it to this version, verify every chain."""
    with opened_backup(path) as copy:
        return verified(copy)


@contextmanager
def opened_backup(path: str | Path) -> Iterator[SqlStore]:
    """A copy of the backup, migrated to this version; the backup itself is not changed."""
    source = Path(path).expanduser().absolute()
    if not source.is_file():
        raise InputError(f"a backup must be a file that exists, got {source}")
    with tempfile.TemporaryDirectory(prefix=HALF_RESTORE) as folder:
        copy = Path(folder) / source.name
        _copy_file(source, copy)
        store = SqlStore.open(copy)
        try:
            yield store
        finally:
            store.close()


def _copy_tables(source: Database, target: Database) -> None:
    with source.snapshot() as reading, target.transaction(lambda _: None) as (writing, _):
        for table in METADATA.sorted_tables:
            with sentences(source.where):
                rows = reading.execution_options(yield_per=CHUNK).execute(select(table))
                for part in rows.mappings().partitions(CHUNK):
                    _insert(writing, target, table, [dict(row) for row in part])
        if not target.on_sqlite:
            writing.execute(_NEXT_STUDY)


_NEXT_STUDY = sa.text(
    "SELECT setval(pg_get_serial_sequence('studies', 'id'), coalesce(max(id), 0) + 1, false)"
    " FROM studies"
)


def _insert(
    connection: Connection, target: Database, table: sa.Table, rows: list[dict[str, Any]]
) -> None:
    with sentences(target.where):
        connection.execute(insert(table), rows)


def verified(store: SqlStore) -> list[Verdict]:
    """The verification of every study."""
    return [verify(store, name) for name in store.names()]


def _copy_file(source: Path, target: Path) -> None:
    """Copy a database file, including its write-ahead log if it is in use; reads only."""
    try:
        with (
            closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as reading,
            closing(sqlite3.connect(target)) as writing,
        ):
            reading.backup(writing)
    except sqlite3.Error as error:
        raise translated(error, str(source)) from error


def _give_name(partial: Path, target: Path) -> None:
    try:
        os.link(partial, target)  # unlike a rename it never overwrites
    except FileExistsError:
        raise InputError(f"a backup must be a new file, got {target}, which exists") from None


def _into_one_file(database: Database) -> None:
    """Switch off WAL, so that the database is a single file."""
    if database.file:
        database.file.release()
    with database.engine.connect() as connection, sentences(database.where):
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.exec_driver_sql("PRAGMA journal_mode = DELETE")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
