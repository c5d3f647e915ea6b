"""The caches of a study in one process: the book and the policy's state, updated from the record.

Both can be computed again from the events. A snapshot in the store saves a new process from reading all
events.
"""

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from sidestep.errors import StorageError, StudyClosed
from sidestep.studies.book import Book, Question, book_from_json, question_of
from sidestep.studies.keys import check_same_request, repeat_of
from sidestep.studies.plan import Plan
from sidestep.studies.recording import Author
from sidestep.studies.request import Request
from sidestep.studies.storage.events import CODE, Event, canonical, digest
from sidestep.studies.storage.log import Log
from sidestep.studies.storage.store import CLOSED, Snapshot, Store

if TYPE_CHECKING:
    from sidestep.studies.mind import Mind

NOTED = ("asked", "answered")  # events that change no earlier result
EVERY = 100  # events from one snapshot to the next


class Live:
    """The caches of one study; not shared between threads."""

    def __init__(self, store: Store, name: str, plan: Plan) -> None:
        self._store, self._name, self._plan = store, name, plan
        self._policy = digest(canonical([plan.to_config(), CODE]))
        self._mind: Mind | None = None
        self._state: str | None = None  # the policy's state from the snapshot
        self.book = Book()
        self._begin()

    def follow(self, log: Log | None = None) -> Book:
        """The book, updated with all events recorded so far; with a log, read under the study's lock."""
        head = log.head if log else self._store.head(self._name)
        if (head.seq, head.hash) == (self.book.seq, self.book.hash):
            return self.book
        events = self._tail(log)
        if self.book.seq and (not events or events[0].prev_hash != self.book.hash):
            self._begin()  # not the record that was followed: a backup was restored
            events = self._tail(log)
        self.book.take(events)
        if self.book.stale:
            self._begin()
            self.book.take(self._tail(log))
        if self.book.stale:
            self._forget()
            self.book.take(self._tail(log))
        return self.book

    def mind(self) -> "Mind":
        """The policy's state after every result of the book; numpy is imported only here."""
        from sidestep.studies.mind import Mind  # noqa: PLC0415

        if self._mind is None:
            self._mind = Mind(self._plan, self._state)
        self._mind.learn(self.book)
        return self._mind

    def asked(
        self, log: Log, request: Request, author: Author, *, new: bool
    ) -> tuple[Question, Event | None]:
        """The question and, if it is new, its event; called under the study's lock."""
        wanted = json.loads(json.dumps(request.to_json()))
        found = repeat_of(
            log, author.key, ("asked",), lambda event: event.body.get("request", {}) == wanted
        )
        if found is not None:
            return question_of(found), None
        if log.head.status == CLOSED:
            raise StudyClosed(
                f"study {self._name!r} is closed and asks nothing more: results of its questions may "
                "still be told, and `best` still answers; to go on, create another study"
            )
        from sidestep.studies.deciding import decide  # noqa: PLC0415

        book = self.follow(log)
        mine = None if new else book.open_of(author.actor)
        if mine is not None:
            check_same_request(mine, wanted)
            return mine, None
        body = decide(self.mind(), log.head.seq + 1, book, request)
        event = log.append("asked", body=body, actor=author.actor, key=author.key)
        return question_of(event), event

    def took(self, event: Event) -> None:
        """Take note of our own saved event; in a shared transaction the book may have it already."""
        if event.prev_hash == self.book.hash and event.kind in NOTED:
            self.book.take([event])
        if self._mind is not None and self.book.seq - self.book.kept >= EVERY:
            self._keep(self._mind)

    def _keep(self, mind: "Mind") -> None:
        """Store a snapshot for the next process; a failure to store it does no harm."""
        if not mind.knows(self.book):
            return
        self.book.kept = self.book.seq
        kept = json.dumps({"book": self.book.to_json(), "state": mind.state.to_json()})
        snapshot = Snapshot(self.book.seq, self.book.hash, self._policy, kept)
        with suppress(StorageError):  # only a cache; the entry itself is saved
            self._store.put_snapshot(self._name, snapshot)

    def _tail(self, log: Log | None) -> list[Event]:
        after = self.book.seq
        return log.events(after) if log else self._store.events(self._name, after)

    def _begin(self) -> None:
        """Begin from the latest snapshot, or from an empty book."""
        self._forget()
        snapshot = self._store.snapshot(self._name, self._policy)
        if snapshot is not None:
            kept = json.loads(snapshot.state)
            self.book = book_from_json(kept["book"], snapshot.seq, snapshot.hash)
            self._state = kept["state"]

    def _forget(self) -> None:
        self.book, self._state, self._mind = Book(), None, None
