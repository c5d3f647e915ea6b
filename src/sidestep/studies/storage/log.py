"""The record of a study while its lock is held: read it, and append to it.

A store adds where events are read from and where they are kept.
"""

from datetime import datetime
from typing import NamedTuple, Protocol

from sidestep.studies.storage.events import Body, Clock, Entry, Event

Events = list[Event]


class Head(NamedTuple):
    """The row of a study that a writer locks: the end of its chain, and its configuration."""

    name: str
    status: str
    config: Body
    seq: int
    hash: str
    updated: datetime


class Log(Protocol):
    """A study's record while its lock is held."""

    head: Head  # the end of the chain; moves with every append
    refusal: Exception | None  # why an append was refused: then nothing of the transaction is saved
    _clock: Clock

    def __init__(self, head: Head, clock: Clock) -> None:
        self.head, self.refusal, self._clock = head, None, clock

    def events(self, after: int = 0, limit: int | None = None) -> Events:
        """Events with a larger seq, oldest first, those of this transaction included."""
        ...

    def about(self, ticket: int) -> Events:
        """Everything about a ticket: its ask, answers, corrections, withdrawal; oldest first."""
        ...

    def find(self, key: str) -> Event | None:
        """The event that was written with this key."""
        ...

    def append(
        self,
        kind: str,
        *,
        body: Body,
        actor: str,
        ticket: int | None = None,
        outcome: str | None = None,
        key: str | None = None,
        reason: str | None = None,
        status: str | None = None,
    ) -> Event:
        """Append an event and return it, linked to the chain. An ask is its own ticket.

        Refused: a key that was used (KeyReused); a second `answered` or `withdrawn` of the same ticket
        and outcome (AlreadyAnswered), where None counts as an outcome; NaN in the body (InputError).
        """
        try:
            entry = Entry(kind, body, actor, ticket, outcome, key, reason)
            event = entry.linked(self.head.seq + 1, self.head.hash, self._clock())
            head = self.head._replace(
                seq=event.seq, hash=event.hash, updated=event.at, status=status or self.head.status
            )
            self._keep(event, head)
        except Exception as refusal:
            self.refusal = refusal
            raise
        self.head = head
        return event

    def drop_snapshots(self, since: int) -> None:
        """Delete the snapshots from this seq on, because an earlier answer has changed."""
        ...

    def blank(self, seq: int) -> None:
        """Erase the text of people in one event; `record.erase` also writes an entry about it."""
        ...

    def finish(self) -> None:
        """Raise the reason why an append was refused, even if the block continued."""
        if self.refusal is not None:
            raise self.refusal

    def _keep(self, event: Event, head: Head) -> None:
        """Keep an appended event, and the head that it moves."""
        ...
