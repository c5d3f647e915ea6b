"""Connections of the service: so many at once, and so long for a head.

A head (method, address, headers) that never ends costs its sender nothing and us a connection. So a head
must be complete within seconds, however its bytes trickle in. At the limit of connections, which is below
what the operating system allows, the one that has waited longest without a request makes room.
"""

import asyncio
import logging
from typing import Any

LOGGER = logging.getLogger("sidestep.service")
HEAD = 10.0  # seconds for a head to arrive
RESERVED = 100  # open files that are no connections: the storage, logs, templates
FEWEST = 10  # connections, whatever the operating system says
QUIET = 10.0  # seconds between two warnings

LATE = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\ncontent-length: 0\r\n"
    b"connection: close\r\n\r\n"
)


def most_connections(wanted: int) -> int:
    """So many connections as the operating system allows beside our other files, at most `wanted`."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = wanted + RESERVED
    if soft < needed and (hard == resource.RLIM_INFINITY or hard > soft):
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(FEWEST, min(wanted, soft - RESERVED))


class Connections:
    """Every open connection: those without a complete head, those between two requests, and the rest."""

    def __init__(self, most: int) -> None:
        self.most, self.patience = most, HEAD
        self._open = 0
        self._headless: dict[Any, float] = {}  # since when; the one that waits longest first
        self._idle: dict[Any, None] = {}
        self._closed = 0  # since the last warning
        self._warned = float("-inf")
        self._timer: asyncio.TimerHandle | None = None

    def opened(self, connection: Any) -> None:
        """A new one, which has no head yet; at the limit another makes room, or it is refused."""
        self._open += 1
        self.begins(connection)
        if self._open <= self.most:
            return
        for waiting in (self._idle, self._headless):
            for oldest in waiting:
                if oldest is not connection:
                    self._end(oldest, LATE if waiting is self._headless else b"")
                    return
        self._end(connection, FULL)

    def begins(self, connection: Any) -> None:
        """The first bytes of a head came, or may come now."""
        self._idle.pop(connection, None)
        self._headless.setdefault(connection, connection.loop.time())
        if self._timer is None:
            self._timer = connection.loop.call_later(self.patience, self._sweep, connection.loop)

    def has_head(self, connection: Any) -> None:
        """A head is complete."""
        self._headless.pop(connection, None)
        self._idle.pop(connection, None)

    def is_idle(self, connection: Any) -> None:
        """It was answered, and another request may come."""
        if connection not in self._headless:
            self._idle[connection] = None

    def closed(self, connection: Any) -> None:
        """It is gone."""
        self._open -= 1
        self.has_head(connection)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close those whose heads are late, and come again when the next one is."""
        self._timer, now = None, loop.time()
        for connection, since in list(self._headless.items()):
            if since + self.patience > now:
                wait = since + self.patience - now
                self._timer = loop.call_later(wait, self._sweep, loop)
                return
            self._end(connection, LATE)

    def _end(self, connection: Any, answer: bytes) -> None:
        self.has_head(connection)
        if answer and not connection.transport.is_closing():
            connection.transport.write(answer)
        connection.transport.close()
        self._closed += 1
        now = connection.loop.time()
        if answer and now - self._warned > QUIET:
            LOGGER.warning(
                f"connections without a complete request are closed, {self._closed} since the last "
                f"such line; {self._open} of {self.most} are open: a proxy in front can limit them"
            )
            self._warned, self._closed = now, 0


class Counted:
    """What is added to a protocol of the server: it tells its connections what happens to it."""

    room: Connections
    cycle: Any
    transport: Any

    def connection_made(self, transport: Any) -> None:
        """It is open."""
        super().connection_made(transport)  # type: ignore[misc]
        self.room.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self.room.closed(self)
        super().connection_lost(exc)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        """Bytes came: of a head, or of the body of a request."""
        if not self._has_request():
            self.room.begins(self)
        super().data_received(data)  # type: ignore[misc]
        if self._has_request():
            self.room.has_head(self)

    def on_response_complete(self) -> None:
        """It was answered."""
        super().on_response_complete()  # type: ignore[misc]
        if not self._has_request():
            self.room.is_idle(self)

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete
