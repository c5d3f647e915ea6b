"""The caches of a study in one process: the book, the evidence and the beliefs, updated from the record.

All can be computed again from the events. A snapshot in the store saves a new process from reading all
events: it holds the book and the sums of the results, and is taken without numpy.
"""

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from sidestep.errors import StorageError, StudyClosed
from sidestep.studies.book import Book, Question, book_from_json, question_of
from sidestep.studies.keys import check_same_request, repeat_of
from sidestep.studies.learning.evidence import Evidence
from sidestep.studies.plan import WITHIN, Plan
from sidestep.studies.recording import Author
from sidestep.studies.request import Request
from sidestep.studies.storage.events import CODE, Event, canonical, digest
from sidestep.studies.storage.log import Log
from sidestep.studies.storage.store import CLOSED, Snapshot, Store

if TYPE_CHECKING:
    from sidestep.studies.learning.study_learner import StudyLearner
    from sidestep.studies.mind import Mind

NOTED = ("asked", "answered")  # events that change no earlier result
EVERY = 100  # events from one snapshot to the next
SNAPSHOTS = 2  # what a snapshot holds: every change of it raises this


class Prepared(NamedTuple):
    """A question that was decided on before the study was locked."""

    seq: int  # entry that it would be
    hash: str  # of the record that it rests on
    body: dict[str, Any]


class Live:
    """The caches of one study; not shared between threads."""

    def __init__(self, store: Store, name: str, plan: Plan) -> None:
        self._store, self._name, self._plan = store, name, plan
        # the state of a policy is that of a version of the program; sums are the same in all
        version = CODE if plan.policy is not None else ""
        self._key = digest(canonical([plan.to_config(), SNAPSHOTS, version]))
        self._kept: dict[str, Any] | None = None  # the sums of the snapshot
        self._evidence: Evidence | None = None
        self._learner: StudyLearner | None = None
        self._mind: Mind | None = None
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

    def evidence(self) -> Evidence:
        """The sums of every result of the book."""
        if self._evidence is None:
            self._evidence = Evidence(self._plan, self._kept)
        self._evidence.learn(self.book)
        return self._evidence

    def learner(self) -> "StudyLearner":
        """The belief after every result of the book; numpy is imported only here and in `mind`."""
        from sidestep.studies.learning.study_learner import StudyLearner  # noqa: PLC0415

        evidence = self.evidence()
        if self._learner is None or self._learner.evidence is not evidence:
            self._learner = StudyLearner(self._plan, evidence)
        return self._learner

    def mind(self) -> "Mind":
        """The state of a policy that was named, after every result of the book."""
        from sidestep.studies.mind import Mind  # noqa: PLC0415

        if self._mind is None:
            self._mind = Mind(self._plan, (self._kept or {}).get("state"))
        self._mind.learn(self.book)
        return self._mind

    def prepared(self, request: Request, author: Author, *, new: bool) -> Prepared | None:
        """The question that would be asked now; None if there is nothing to decide."""
        if author.key is not None and self._store.find(self._name, author.key) is not None:
            return None
        if self._store.head(self._name).status == CLOSED:
            return None
        book = self.follow()
        if not new and book.open_of(author.actor) is not None:
            return None
        return Prepared(book.seq + 1, book.hash, self._decided(book.seq + 1, request))

    def asked(
        self,
        log: Log,
        request: Request,
        author: Author,
        prepared: Prepared | None,
        *,
        new: bool,
        last: bool,
    ) -> tuple[Question, Event | None] | None:
        """The question and, if it is new, its event; called under the study's lock.

        None if what was prepared no longer holds and must be prepared again; `last`: it is decided here.
        """
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
        if prepared is not None and prepared.hash == log.head.hash:
            event = log.append("asked", body=prepared.body, actor=author.actor, key=author.key)
            return question_of(event), event
        book = self.follow(log)
        mine = None if new else book.open_of(author.actor)
        if mine is not None:
            check_same_request(mine, wanted)
            return mine, None
        if not last:
            return None
        body = self._decided(log.head.seq + 1, request)
        event = log.append("asked", body=body, actor=author.actor, key=author.key)
        return question_of(event), event

    def _decided(self, seq: int, request: Request) -> dict[str, Any]:
        """The question of entry `seq` after the results of the book."""
        news = {"news": True} if self.book.is_old and self._plan.aim == WITHIN else {}
        if self._plan.policy is None:
            from sidestep.studies.learning import decision  # noqa: PLC0415

            return decision.decide(self.learner(), seq, self.book, request) | news
        from sidestep.studies.deciding import decide  # noqa: PLC0415

        return decide(self.mind(), seq, self.book, request) | news

    def took(self, event: Event) -> None:
        """Take note of our own saved event; in a shared transaction the book may have it already."""
        if event.prev_hash == self.book.hash and event.kind in NOTED:
            self.book.take([event])
        if self.book.seq - self.book.kept >= EVERY:
            self._keep()

    def _keep(self) -> None:
        """Store a snapshot for the next process; a failure to store it does no harm."""
        kept: dict[str, Any] = {"book": self.book.to_json()}
        if self._plan.policy is not None:
            if self._mind is None or not self._mind.knows(self.book):
                return
            kept["state"] = self._mind.state.to_json()
        if self._plan.aim == WITHIN:
            kept["evidence"] = self.evidence().to_json()
        self.book.kept = self.book.seq
        snapshot = Snapshot(self.book.seq, self.book.hash, self._key, json.dumps(kept))
        with suppress(StorageError):  # only a cache; the entry itself is saved
            self._store.put_snapshot(self._name, snapshot)

    def _tail(self, log: Log | None) -> list[Event]:
        after = self.book.seq
        return log.events(after) if log else self._store.events(self._name, after)

    def _begin(self) -> None:
        """Begin from the latest snapshot, or from an empty book."""
        self._forget()
        snapshot = self._store.snapshot(self._name, self._key)
        if snapshot is not None:
            kept = json.loads(snapshot.state)
            self.book = book_from_json(kept["book"], snapshot.seq, snapshot.hash)
            self._kept = kept.get("evidence", {}) | (
                {"state": kept["state"]} if "state" in kept else {}
            )

    def _forget(self) -> None:
        self.book, self._kept = Book(), None
        self._evidence = self._learner = self._mind = None
