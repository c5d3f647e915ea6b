"""A database connection that waits for locks, reconnects after a restart, and raises clear errors."""

import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from sidestep.errors import StorageBusy
from sidestep.studies.storage import schema
from sidestep.studies.storage.engines import (
    PATIENCE,
    engine_of,
    place_of,
    url_of,
    warn_if_forgetful,
)
from sidestep.studies.storage.faults import (
    is_away,
    is_busy,
    is_read_only,
    is_starting,
    sentences,
    translated,
)
from sidestep.studies.storage.ready import Ready, Values
from sidestep.studies.storage.statements import Fields

T = TypeVar("T")


class Database:
    """An engine, its name for people, and how long to wait for it."""

    def __init__(
        self, storage: str | Path, *, create: bool = True, patience: float = PATIENCE
    ) -> None:
        url = url_of(storage, create=create)
        self.where = place_of(url)
        self.patience = patience
        self.engine = engine_of(url, patience=patience)
        # closes the connections when the object is no longer referenced
        weakref.finalize(self, self.engine.dispose)
        self.on_sqlite = self.engine.dialect.name == "sqlite"
        self._reader = self.engine
        if not self.on_sqlite:  # on SQLite a SELECT outside BEGIN is a transaction of its own
            self._reader = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._turn = threading.Lock()  # threads of one process queue here, not at the file
        self._has_turn: int | None = None
        self._opened = False
        self._prepare()

    def read(self, statement: Ready, values: Values) -> list[Fields]:
        """Rows of a SELECT, with the current data."""

        def act() -> list[Fields]:
            with self._reader.connect() as connection:
                return statement.rows(connection, values)

        return self._patiently(act)

    @contextmanager
    def transaction(self, first: Callable[[Connection], T]) -> Iterator[tuple[Connection, T]]:
        """A connection that holds its locks, and the result of `first`; committed when the block ends.

        `first` must not write, because it may be run again on a new connection.
        """
        with self._my_turn():
            connection, seen = self._patiently(lambda: self._begun(first))
            try:
                yield connection, seen
                with sentences(self.where):
                    connection.commit()
            except BaseException:
                self._undo(connection)
                raise
            finally:
                connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection for reading one consistent snapshot."""
        calm = {} if self.on_sqlite else {"isolation_level": "REPEATABLE READ"}
        with sentences(self.where), self.engine.connect().execution_options(**calm) as connection:
            if self.on_sqlite:
                connection.exec_driver_sql("BEGIN")
            yield connection
            connection.rollback()

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def _prepare(self) -> None:
        """Set WAL on SQLite, warn if PostgreSQL is not durable, and migrate the tables."""
        try:
            with sentences(self.where, at_stake=False):
                ready = self._patiently(self._is_ready)
            if not ready:
                with self.transaction(lambda _: None) as (connection, _):
                    schema.upgrade(connection, self.where)
        except BaseException:
            self.close()
            raise
        self._opened = True

    def _is_ready(self) -> bool:
        if self.on_sqlite:
            self._write_ahead()
        with self._reader.connect() as connection:
            if not self.on_sqlite:
                warn_if_forgetful(connection, self.where)
            return schema.is_current(connection, self.where)

    def _write_ahead(self) -> None:
        with self.engine.connect() as connection:
            mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar()
            if mode == "wal":
                return
            try:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            except DBAPIError as error:
                if not is_read_only(error):  # then it can be read as it is
                    raise

    def _begun(self, first: Callable[[Connection], T]) -> tuple[Connection, T]:
        connection = self.engine.connect()
        try:
            connection.begin()
            if self.on_sqlite:
                self._begin_immediate(connection)
            return connection, first(connection)
        except BaseException:
            self._undo(connection)
            connection.close()
            raise

    def _begin_immediate(self, connection: Connection) -> None:
        """Wait at the file itself: an attempt costs a hundredth of one through the connection pool."""
        file = connection.connection.driver_connection
        deadline = time.monotonic() + self.patience
        while True:
            try:
                file.execute("BEGIN IMMEDIATE")  # type: ignore[union-attr]
            except sqlite3.Error as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise translated(error, self.where, at_stake=False) from error
                time.sleep(_short_nap())
            else:
                return

    def _undo(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except SQLAlchemyError:
            connection.invalidate()  # the transaction was lost with the connection

    def _patiently(self, act: Callable[[], T]) -> T:
        deadline = time.monotonic() + self.patience
        while True:
            try:
                return act()
            except DBAPIError as error:
                nap = self._nap(error)
                if nap is None or time.monotonic() > deadline:
                    raise translated(error, self.where, at_stake=False) from error
                time.sleep(nap)

    def _nap(self, error: DBAPIError) -> float | None:
        """How long to sleep before another attempt, in seconds; None if another attempt is useless."""
        if self.on_sqlite:
            return _short_nap() if is_busy(error) else None
        coming = is_away(error) if self._opened else is_starting(error)  # a wrong address: never
        return random.uniform(0.05, 0.2) if coming else None  # noqa: S311

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        if not self.on_sqlite:
            yield  # the lock of the row is enough, and other studies need not wait
            return
        if self._has_turn == threading.get_ident():
            raise RuntimeError(
                "a transaction is open in this thread; transactions cannot be nested"
            )
        if not self._turn.acquire(timeout=self.patience):
            raise StorageBusy(f"{self.where} is busy with another entry; nothing was saved")
        self._has_turn = threading.get_ident()
        try:
            yield
        finally:
            self._has_turn = None
            self._turn.release()


def _short_nap() -> float:
    """Seconds to wait for another writer's commit; SQLite's own waits grow to a tenth of a second."""
    return random.uniform(0.0003, 0.003)  # noqa: S311  # so that two do not wake together
