"""How long to wait for a database, and whether it was away a moment ago."""

import threading
import time
from typing import NamedTuple

from sidestep.errors import StorageLost

REST = 0.5  # seconds for which a server that did not answer is left alone
TRIAL = 5.0  # longest time for which one caller tries it


class Waits(NamedTuple):
    """How long to wait for a server, in seconds."""

    lock: float  # for a lock that another writer holds
    away: float  # for a server to come back
    read: float  # for its next word where nothing is at stake
    write: float  # for its next word in a transaction
    statement: float  # for a whole statement; then the server ends it


SERVING = Waits(lock=10.0, away=2.0, read=2.0, write=2.0, statement=15.0)


def alone(patience: float) -> Waits:
    """How long a program waits that nobody else waits for."""
    return Waits(lock=patience, away=patience, read=30.0, write=30.0, statement=300.0)


class Outage:
    """Whether the server was away a moment ago; then one caller tries it, and the others do not wait.

    name   of the server, for the sentence; None: everybody tries
    """

    def __init__(self, name: str | None) -> None:
        self._name, self._turn = name, threading.Lock()
        self._left_alone_until = 0.0
        self.noted_at = 0.0  # when it was last found away

    def check(self) -> None:
        """Raise if the server was away a moment ago and it is not this caller's turn to try."""
        if self._name is None or not self._left_alone_until:
            return
        with self._turn:
            now = time.monotonic()
            if now < self._left_alone_until:
                raise StorageLost(
                    f"{self._name} does not answer; nothing was saved; try again soon"
                )
            self._left_alone_until = now + TRIAL

    def note(self) -> None:
        """It does not answer."""
        with self._turn:
            self.noted_at = time.monotonic()
            self._left_alone_until = self.noted_at + REST

    def end(self) -> None:
        """It answers."""
        if self._left_alone_until:
            with self._turn:
                self._left_alone_until = 0.0
