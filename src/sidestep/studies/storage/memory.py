"""The store in memory, for trials and tests; it ends with the process."""

import math
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sidestep.studies.storage.events import REVISING, SETTLING, Body, Clock, Event, utc_now, written
from sidestep.studies.storage.log import Events, Head, Log
from sidestep.studies.storage.outlines import COUNTED, Outlined, outline_of_event
from sidestep.studies.storage.store import (
    SNAPSHOTS_KEPT,
    Heads,
    Names,
    Snapshot,
    already_settled,
    begun,
    check_digest,
    created_before,
    key_reused,
    study_exists,
    study_not_found,
)


@dataclass(slots=True)
class _Kept:
    """One stored study."""

    head: Head
    events: Events
    snapshots: dict[int, Snapshot] = field(default_factory=dict)


class MemoryLog(Log):
    """A study's record while its lock is held; appended events are stored at the end of the block."""

    def __init__(self, kept: _Kept, clock: Clock) -> None:
        super().__init__(kept.head, clock)
        self._kept = kept
        self._new: Events = []
        self._blanked: set[int] = set()
        self._dropped: float = math.inf  # snapshots from this seq on

    def events(self, after: int = 0, limit: int | None = None) -> Events:
        """Events with a larger seq, oldest first, those of this transaction included."""
        return _after([*self._kept.events, *self._new], after, limit)

    def about(self, ticket: int) -> Events:
        """Everything about a ticket, oldest first."""
        return [event for event in self.events() if event.ticket == ticket]

    def find(self, key: str) -> Event | None:
        """The event that was written with this key."""
        return next((event for event in self.events() if event.key == key), None)

    def drop_snapshots(self, since: int) -> None:
        """Delete the snapshots from this seq on."""
        self._dropped = min(since, self._dropped)

    def blank(self, seq: int) -> None:
        """Erase the text of people in one event."""
        self._blanked.add(seq)

    def finish(self) -> None:
        """Store everything; the head last, because others read without the lock."""
        super().finish()
        kept = self._kept
        kept.snapshots = {at: it for at, it in kept.snapshots.items() if at < self._dropped}
        kept.events = (
            [event.blanked() if event.seq in self._blanked else event for event in self.events()]
            if self._blanked
            else [*kept.events, *self._new]
        )
        kept.head = self.head

    def _keep(self, event: Event, head: Head) -> None:
        if event.key is not None and self.find(event.key):
            raise key_reused(event.key)
        if event.kind in SETTLING and event.ticket is not None:
            for other in self.about(event.ticket):
                if other.kind in SETTLING and other.outcome == event.outcome:
                    raise already_settled(event.ticket, event.outcome)
        self._new.append(event)


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
        head, event = begun(name, config, actor=actor, body=body, key=key, at=self._clock())
        with self._turn:
            kept = self._studies.setdefault(name, _Kept(head, [event]))
        first = kept.events[0]
        return event if first is event else created_before(first, event)

    def adopt(self, head: Head, events: Iterable[Event]) -> None:
        """Keep a whole study as it was written elsewhere."""
        kept = _Kept(head, list(events))
        with self._turn:
            if self._studies.setdefault(head.name, kept) is not kept:
                raise study_exists(head.name)

    def names(self) -> Names:
        """Every study, in alphabetical order."""
        return sorted(self._studies)

    def list(
        self, *, status: str | None = None, after: Head | None = None, limit: int | None = None
    ) -> Heads:
        """Heads by status, latest change first."""
        heads = [kept.head for kept in list(self._studies.values())]
        return _page(heads, status, after, limit)

    def records(self) -> Iterator[tuple[Head, Events]]:
        """Every study with its whole record."""
        yield from ((kept.head, kept.events) for kept in list(self._studies.values()))

    def outlines(self) -> Iterator[Outlined]:
        """Every study with the outlines of its entries."""
        for head, events in self.records():
            counted = [outline_of_event(event) for event in events if event.kind in COUNTED]
            yield Outlined(head.name, head.status, written(head.updated), counted)

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
            log = MemoryLog(kept, self._clock)
            yield log
            log.finish()

    def blobs(self) -> Names:
        """The digests of every blob."""
        return sorted(self._blobs)

    def blob(self, digest: str) -> str | None:
        """The text with this digest."""
        return self._blobs.get(digest)

    def put_blob(self, digest: str, body: str) -> None:
        """Keep a text under its digest, once."""
        check_digest(digest, body)
        self._blobs[digest] = body

    def snapshot(self, name: str, policy: str) -> Snapshot | None:
        """The latest snapshot for this policy that still fits the record."""
        kept = self._kept(name).snapshots.values()
        fitting = (snapshot for snapshot in kept if snapshot.policy == policy)
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
        """Nothing to close."""

    def _kept(self, name: str) -> _Kept:
        if name not in self._studies:
            raise study_not_found(name, self.names())
        return self._studies[name]


def _after(events: Events, after: int, limit: int | None) -> Events:
    """Events are numbered from 1 without a gap, so a seq is a position."""
    return events[max(after, 0) :][:limit]


def _page(heads: Heads, status: str | None, after: Head | None, limit: int | None) -> Heads:
    """One page of heads: by status, latest change first, then by name."""
    chosen = [head for head in heads if status in (None, head.status)]
    chosen.sort(key=_place)
    if after is not None:
        chosen = [head for head in chosen if _place(head) > _place(after)]
    return chosen[:limit]


def _place(head: Head) -> tuple[str, float, str]:
    return head.status, -head.updated.timestamp(), head.name
