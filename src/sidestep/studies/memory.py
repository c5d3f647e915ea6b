"""The store in memory: for trying things out and for tests; gone with the process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sidestep.studies.events import GENESIS, REVISING, SETTLING, Body, Clock, Entry, Event, utc_now
from sidestep.studies.store import (
    OPEN,
    SNAPSHOTS_KEPT,
    Events,
    Head,
    Heads,
    Names,
    Snapshot,
    already_settled,
    check_digest,
    first_entry,
    key_reused,
    page_of,
    study_exists,
    study_not_found,
)


@dataclass(slots=True)
class _Kept:
    """One study as it is saved."""

    head: Head
    events: Events
    snapshots: dict[int, Snapshot] = field(default_factory=dict)


@dataclass(slots=True)
class MemoryLog:
    """A study's record while its lock is held; what is appended waits here for the end of the block."""

    kept: _Kept
    clock: Clock
    head: Head
    new: Events = field(default_factory=list)
    dropped: int | None = None  # snapshots from this seq on
    refusal: Exception | None = None

    def events(self, after: int = 0, limit: int | None = None) -> Events:
        """Events with a larger seq, oldest first, those of this transaction included."""
        return _after([*self.kept.events, *self.new], after, limit)

    def about(self, ticket: int) -> Events:
        """Everything about a ticket, oldest first."""
        return [event for event in self.events() if event.ticket == ticket]

    def find(self, key: str) -> Event | None:
        """The event that was written with this key."""
        return next((event for event in self.events() if event.key == key), None)

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
        """The event, linked to the chain; see `Log.append` for what is refused."""
        try:
            entry = Entry(kind, body, actor, ticket, outcome, key, reason)
            self._check(entry)
            event = entry.linked(self.head.seq + 1, self.head.hash, self.clock())
        except Exception as refusal:
            self.refusal = refusal
            raise
        self.new.append(event)
        self.head = self.head._replace(
            seq=event.seq, hash=event.hash, updated=event.at, status=status or self.head.status
        )
        return event

    def drop_snapshots(self, since: int) -> None:
        """Forget what was folded from this seq on."""
        self.dropped = since if self.dropped is None else min(since, self.dropped)

    def _check(self, entry: Entry) -> None:
        if entry.key is not None and self.find(entry.key):
            raise key_reused(entry.key)
        if entry.kind in SETTLING and entry.ticket is not None:
            for event in self.about(entry.ticket):
                if event.kind in SETTLING and event.outcome == entry.outcome:
                    raise already_settled(entry.ticket, entry.outcome)


class MemoryStore:
    """Studies in a dictionary; one writer at a time."""

    def __init__(self, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._studies: dict[str, _Kept] = {}
        self._blobs: dict[str, str] = {}
        self._turn = threading.Lock()

    def create(
        self, name: str, config: Body, *, actor: str, body: Body, key: str | None = None
    ) -> Event:
        """Event 1, `created`."""
        event = first_entry(name, config, body, actor, key).linked(1, GENESIS, self._clock())
        head = Head(name, OPEN, event.body["config"], 1, event.hash, event.at)
        with self._turn:
            kept = self._studies.setdefault(name, _Kept(head, [event]))
        first = kept.events[0]
        if first is not event and (key is None or first.key != key):
            raise study_exists(name)
        return first

    def names(self) -> Names:
        """Every study, in alphabetical order."""
        return sorted(self._studies)

    def list(
        self, *, status: str | None = None, after: Head | None = None, limit: int | None = None
    ) -> Heads:
        """Heads by status, latest change first."""
        heads = [kept.head for kept in list(self._studies.values())]
        return page_of(heads, status, after, limit)

    def head(self, name: str) -> Head:
        """The head of one study."""
        return self._kept(name).head

    def events(self, name: str, after: int = 0, limit: int | None = None) -> Events:
        """Events with a larger seq, oldest first."""
        return _after(self._kept(name).events, after, limit)

    def about(self, name: str, ticket: int) -> Events:
        """Everything about a ticket, oldest first."""
        return [event for event in self.events(name) if event.ticket == ticket]

    def find(self, name: str, key: str) -> Event | None:
        """The event that was written with this key."""
        return next((event for event in self.events(name) if event.key == key), None)

    @contextmanager
    def writing(self, name: str) -> Iterator[MemoryLog]:
        """A transaction that holds the lock of the store."""
        kept = self._kept(name)
        with self._turn:
            log = MemoryLog(kept, self._clock, kept.head)
            yield log
            if log.refusal is not None:
                raise log.refusal
            if log.dropped is not None:
                kept.snapshots = {at: s for at, s in kept.snapshots.items() if at < log.dropped}
            kept.events.extend(log.new)
            kept.head = log.head

    def blob(self, digest: str) -> str | None:
        """The text with this digest."""
        return self._blobs.get(digest)

    def put_blob(self, digest: str, body: str) -> None:
        """Keep a text under its digest, once."""
        check_digest(digest, body)
        self._blobs[digest] = body

    def snapshot(
        self, name: str, policy: str | None = None, *, before: int | None = None
    ) -> Snapshot | None:
        """The latest snapshot that still fits the record."""
        fitting = (
            snapshot
            for snapshot in self._kept(name).snapshots.values()
            if policy in (None, snapshot.policy) and (before is None or snapshot.seq < before)
        )
        return max(fitting, key=lambda snapshot: snapshot.seq, default=None)

    def put_snapshot(self, name: str, snapshot: Snapshot) -> bool:
        """Whether it was kept."""
        kept = self._kept(name)
        with self._turn:
            found = _after(kept.events, snapshot.seq - 1, 1)
            if not found or (found[0].seq, found[0].hash) != snapshot[:2]:
                return False
            if any(event.kind in REVISING for event in _after(kept.events, snapshot.seq, None)):
                return False
            kept.snapshots[snapshot.seq] = snapshot
            for seq in sorted(kept.snapshots)[:-SNAPSHOTS_KEPT]:
                del kept.snapshots[seq]
        return True

    def close(self) -> None:
        """Nothing to let go of."""

    def _kept(self, name: str) -> _Kept:
        if name not in self._studies:
            raise study_not_found(name, self.names())
        return self._studies[name]


def _after(events: Events, after: int, limit: int | None) -> Events:
    """Events are numbered from 1 without a gap, so a seq is a position."""
    return events[max(after, 0) :][:limit]
