"""A database connection that waits for locks, reconnects after a restart, and raises clear errors."""

import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

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
    SERVED,
    is_away,
    is_busy,
    is_read_only,
    is_starting,
    sentences,
    translated,
)
from sidestep.studies.storage.file_check import FileCheck, held
from sidestep.studies.storage.ready import Ready, Values, errors_of
from sidestep.studies.storage.statements import Fields
from sidestep.studies.storage.waits import SERVING, Outage, alone

T = TypeVar("T")


class Database:
    """An engine, its name for people, and how long to wait for it.

    serving   others wait for it too: a database server that does not answer is said at once to all of
              them, and its address to none
    """

    def __init__(
        self,
        storage: str | Path,
        *,
        create: bool = True,
        patience: float = PATIENCE,
        serving: bool = False,
    ) -> None:
        url = url_of(storage, create=create)
        hidden = serving and url.get_backend_name() != "sqlite"
        self.where = place_of(url)  # whoever starts a service is told where it is
        self.file = FileCheck(self.where) if url.get_backend_name() == "sqlite" else None
        if self.file:
            self.file.before_opening()
        self.patience = patience
        self._waits = SERVING if hidden else alone(patience)
        self._outage = Outage(SERVED if hidden else None)
        self.engine = engine_of(url, self._waits, self._outage)
        # closes the connections when the object is no longer referenced
        weakref.finalize(self, _closed, self.engine, self.file)
        self.on_sqlite = self.engine.dialect.name == "sqlite"
        self._reader = self.engine
        if not self.on_sqlite:  # on SQLite a SELECT outside BEGIN is a transaction of its own
            self._reader = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._turn = threading.Lock()  # threads of one process queue here, not at the file
        self._has_turn: int | None = None
        self._opened = False
        self._locks = False  # whether the file system is known to lock files
        self._prepare()
        if hidden:
            self.where = SERVED

    def read(self, statement: Ready, values: Values) -> list[Fields]:
        """Rows of a SELECT, with the current data."""
        if self.file:
            self.file.check()

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
                    self._commit(connection)
            except BaseException:
                self._undo(connection)
                raise
            finally:
                connection.close()

    def check_writing(self) -> None:
        """Raise if nothing could be saved in a SQLite file now; that somebody is saving is no reason."""
        if self.file is None:
            return
        self.file.check()
        with sentences(self.where, at_stake=False), self.engine.connect() as connection:
            file = connection.connection.driver_connection
            try:
                with errors_of(connection):
                    self._lock(file)
            except DBAPIError as error:
                self._forget_read_only(connection, error)
                if not is_busy(error):
                    raise
                return
            try:
                with errors_of(connection):
                    self.file.check(file)
            finally:
                file.execute("ROLLBACK")  # type: ignore[union-attr]

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection for reading one consistent snapshot."""
        if self.file:
            self.file.check()
        calm = {} if self.on_sqlite else {"isolation_level": "REPEATABLE READ"}
        with sentences(self.where), self.engine.connect().execution_options(**calm) as connection:
            if self.on_sqlite:
                connection.exec_driver_sql("BEGIN")
            yield connection
            connection.rollback()

    def close(self) -> None:
        """Close every connection."""
        _closed(self.engine, self.file)

    def _prepare(self) -> None:
        """Set WAL on SQLite, warn if PostgreSQL is not durable, and migrate the tables."""
        try:
            with sentences(self.where, at_stake=False):
                ready = self._patiently(self._is_ready)
            if not ready:
                with (
                    self.transaction(lambda _: None) as (connection, _),
                    self._unhurried(connection),
                ):
                    schema.upgrade(connection, self.where)
            if self.file:
                self._check_file(self.file, fresh=not ready)
        except BaseException:
            self.close()
            raise
        self._opened = True

    def _check_file(self, file: FileCheck, *, fresh: bool) -> None:
        """Check that the file holds what was saved in it; new tables are put into the file itself."""

        def act() -> None:
            with self.engine.connect() as connection:
                if fresh:
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")
                with errors_of(connection):
                    file.opened(connection.connection.driver_connection)

        self._patiently(act)

    def _unhurried(self, connection: Connection) -> AbstractContextManager[None]:
        if self.on_sqlite:
            return nullcontext()
        from sidestep.studies.storage.postgresql import unhurried  # noqa: PLC0415  # needs the driver

        return unhurried(connection)

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
            if self._is_known(connection):
                return connection, first(connection)
        except BaseException:
            self._undo(connection)
            connection.close()
            raise
        self._undo(connection)
        connection.close()
        self.engine.dispose()  # new connections have nothing of the file in memory
        return self._begun(first)

    def _is_known(self, connection: Connection) -> bool:
        """Whether a SQLite file is as this connection knows it; raises if it is another one."""
        if self.file is None or not self._opened:
            return True
        with errors_of(connection):
            return self.file.check(connection.connection.driver_connection)

    def _begin_immediate(self, connection: Connection) -> None:
        """Wait at the file itself: an attempt costs a hundredth of one through the connection pool."""
        file = connection.connection.driver_connection
        deadline = time.monotonic() + self.patience
        while True:
            try:
                self._lock(file)
            except sqlite3.Error as error:
                self._forget_read_only(connection, error)
                if is_busy(error) and self.file:
                    self._check_locks(self.file)
                if not is_busy(error) or time.monotonic() > deadline:
                    raise translated(error, self.where, at_stake=False) from error
                time.sleep(_short_nap())
            else:
                return

    def _commit(self, connection: Connection) -> None:
        """Commit, and note beside a SQLite file what it holds now."""
        if self.file is None or not self._opened:
            connection.commit()
            return
        with errors_of(connection):
            here = held(connection.connection.driver_connection)
        connection.commit()
        self.file.saved(here)

    def _check_locks(self, file: FileCheck) -> None:
        """Raise, the first time that somebody else seems to hold a lock, if there are no locks at all."""
        if not self._locks:
            file.check_locks()
            self._locks = True

    def _lock(self, file: Any) -> None:
        """Begin to write, or raise why not: a file that can only be read says so at its first change."""
        file.execute("BEGIN IMMEDIATE")
        if self._opened:
            try:
                file.execute("DELETE FROM secrets WHERE 0")
            except sqlite3.Error:
                file.execute("ROLLBACK")
                raise

    def _forget_read_only(self, connection: Connection, error: Exception) -> None:
        """Open the file anew after it could only be read: what forbade writing may be mended."""
        if self.file is not None and is_read_only(error):
            connection.invalidate()
            self.engine.dispose()
            self.file.release()

    def _undo(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except SQLAlchemyError:
            connection.invalidate()  # the transaction was lost with the connection

    def _patiently(self, act: Callable[[], T]) -> T:
        begun, failed = time.monotonic(), False
        self._outage.check()
        while True:
            try:
                done = act()
            except (DBAPIError, PoolTimeout) as error:
                nap = self._nap(error, time.monotonic() - begun)
                if is_away(error) and (failed or nap is None):
                    self._outage.note()
                if nap is None:
                    raise translated(error, self.where, at_stake=False) from error
                failed = True
                time.sleep(nap)
            else:
                self._outage.end()
                return done

    def _nap(self, error: SQLAlchemyError, waited: float) -> float | None:
        """How long to sleep before another attempt, in seconds; None if another attempt is useless."""
        if is_busy(error):
            if self.file:
                self._check_locks(self.file)
            return _short_nap() if waited < self._waits.lock else None
        coming = is_away(error) if self._opened else is_starting(error)  # a wrong address: never
        if self.on_sqlite or not coming or waited > self._waits.away:
            return None
        return random.uniform(0.05, 0.2)  # noqa: S311

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


def _closed(engine: Engine, file: FileCheck | None) -> None:
    """Close every connection to a database."""
    if file and file.abandon(engine.pool):
        return
    if file:
        file.release()
    engine.dispose()


def _short_nap() -> float:
    """Seconds to wait for another writer's commit; SQLite's own waits grow to a tenth of a second."""
    return random.uniform(0.0003, 0.003)  # noqa: S311  # so that two do not wake together
