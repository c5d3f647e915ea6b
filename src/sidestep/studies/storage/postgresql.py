"""Connections to PostgreSQL that never wait for ever, and that are known to work before they are used.

A server may stop answering without a word: it is stalled, its machine is gone, or a failover dropped the
connections on the way. Three things notice it. The kernel (keepalives and unacknowledged data) notices
that nobody is there. The client notices silence, which the kernel does not as long as somebody holds the
connection. And a connection that was idle is tried before it is used, so that the first request after a
failover makes new ones.
"""

import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from sqlalchemy import Engine
from sqlalchemy.exc import InvalidatePoolError

from sidestep.studies.storage.waits import SERVING, Outage, Waits

TICK = 0.1  # seconds between two looks at the clock while a server is silent
PING = 0.7  # seconds in which an idle connection must answer; else all are made anew
FRESH = 1.0  # seconds for which a connection need not be tried again
LOCK = 1.0  # longest wait of one statement for a lock; then it is tried again
STALLED = 60  # seconds after which the server ends an idle transaction that holds a lock
KERNEL = {  # of the connection, in libpq's words: a machine that is gone is noticed within 10 s
    "application_name": "sidestep",
    "connect_timeout": 2,
    "keepalives": 1,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 8000,  # milliseconds
}


class SilentError(psycopg.OperationalError):
    """The server did not answer in time; the connection is closed."""


class PatientConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server says nothing for too long."""

    waits: Waits = SERVING
    outage: Outage = Outage(None)
    limit: float | None = None  # seconds, instead of those of `waits`

    def wait(self, gen: Any, *more: Any, **named: Any) -> Any:
        """What the exchange with the server gives; SilentError if it stops in the middle."""
        named["interval"] = TICK
        return super().wait(self._impatient(gen), **named)

    def _impatient(self, gen: Any) -> Generator[Any, Any, Any]:
        limit = self.limit or (self.waits.read if self._autocommit else self.waits.write)
        try:
            state = next(gen)
            heard = time.monotonic()
            while True:
                ready = yield state
                now = time.monotonic()
                if ready:
                    heard = now
                elif now - heard > limit or self._is_out(heard, now):
                    self._give_up(now - heard)
                state = gen.send(ready)
        except StopIteration as done:
            return done.value

    def _is_out(self, heard: float, now: float) -> bool:
        """Whether another connection found the server away while this one waited."""
        return self.limit is None and now - heard > FRESH and self.outage.noted_at > heard

    def _give_up(self, silence: float) -> None:
        self.outage.note()
        self.pgconn.finish()  # without a word to the server: it would not be heard
        raise SilentError(f"no answer for {silence:.1f} s")

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Wait so long for every answer within the block."""
        before, self.limit = self.limit, seconds
        try:
            yield
        finally:
            self.limit = before

    def ping(self) -> None:
        """Raise if the server does not answer within moments."""
        with self.limited(PING):
            self.autocommit = True
            self.execute("")
            self.autocommit = False


def engine_to(url: sa.URL, waits: Waits, outage: Outage) -> Engine:
    """An engine whose connections are durable, patient and tried."""
    settings = (
        f"SET lock_timeout = {int(1000 * min(LOCK, waits.lock))};"
        f" SET statement_timeout = {int(1000 * waits.statement)};"
        f" SET idle_in_transaction_session_timeout = {1000 * STALLED}"
    )
    asked = {name: value for name, value in KERNEL.items() if name not in url.query}
    engine = sa.create_engine(
        url,
        pool_use_lifo=True,
        pool_timeout=waits.away,
        isolation_level="READ COMMITTED",  # after waiting for the row it must see the newest data
        connect_args=asked,
    )

    def connect(_: Any, __: Any, arguments: Any, named: Mapping[str, Any]) -> PatientConnection:
        connection = PatientConnection.connect(*arguments, **named)
        connection.waits, connection.outage = waits, outage
        try:
            connection.autocommit = True
            connection.execute(settings)
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection

    def noted(_: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    def tried(connection: PatientConnection, record: Any, _: Any) -> None:
        used = record.info.get("used")
        if used is None or (time.monotonic() - used < FRESH and used > outage.noted_at):
            return
        try:
            connection.ping()
        except psycopg.Error as error:
            raise InvalidatePoolError from error

    sa.event.listen(engine, "do_connect", connect)
    sa.event.listen(engine, "checkin", noted)
    sa.event.listen(engine, "checkout", tried)
    return engine


@contextmanager
def unhurried(connection: sa.Connection) -> Iterator[None]:
    """Within the block, statements of this transaction may take as long as they need: a migration."""
    driver: Any = connection.connection.driver_connection
    with driver.limited(3600.0):
        connection.exec_driver_sql(
            "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '60s'"
        )
        yield
