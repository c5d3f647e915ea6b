"""The interface of a store: append to a study's record under its lock, and read the record.

A transaction is `with store.writing(name) as log`. It holds the study's lock, so what `log` shows is
current until the end of the block. All appended events are saved together when the block ends, and are
durable from then on. If the block raises, or an append was refused, nothing is saved.
"""

import os
import random
import re
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from sidestep.core.validation import did_you_mean
from sidestep.errors import (
    AlreadyAnswered,
    InputError,
    KeyReused,
    StorageLost,
    StudyExists,
    StudyNotFound,
)
from sidestep.studies.storage.events import GENESIS, Body, Entry, Event
from sidestep.studies.storage.events import digest as digest_of
from sidestep.studies.storage.log import Events, Head, Log
from sidestep.studies.storage.outlines import Outlined

T = TypeVar("T")
NAME = re.compile(r"[^\s/\\\x00-\x1f\x7f](?:[^/\\\x00-\x1f\x7f]{0,98}[^\s/\\\x00-\x1f\x7f])?")
RESERVED = (".", "..", "*")  # path segments of URLs, and the sign for all studies in grants
OPEN, CLOSED = "open", "closed"
SNAPSHOTS_KEPT = 4


class Snapshot(NamedTuple):
    """A cached fold of events 1..seq; valid only if event `seq` has this hash, and for this policy."""

    seq: int
    hash: str
    policy: str
    state: str


Heads = list[Head]
Names = list[str]


@runtime_checkable
class Store(Protocol):
    """Where studies are kept. Safe to use from several threads and processes."""

    def create(
        self, name: str, config: Body, *, actor: str, body: Body, key: str | None = None
    ) -> Event:
        """Write event 1, `created`; its body includes the name and the config, so the chain covers them.

        StudyExists if the study exists. If it was created with this key, its event 1 is returned, or
        KeyReused is raised if the content differs.
        """
        ...

    def adopt(self, head: Head, events: Iterable[Event]) -> None:
        """Store a whole study that was written elsewhere, all or nothing; StudyExists if it exists."""
        ...

    def names(self) -> Names:
        """Every study, in alphabetical order."""
        ...

    def list(
        self, *, status: str | None = None, after: Head | None = None, limit: int | None = None
    ) -> Heads:
        """Heads by status, latest change first; `after` is the last one of the page before."""
        ...

    def records(self) -> Iterable[tuple[Head, Events]]:
        """Every study with its whole record, in no order."""
        ...

    def outlines(self) -> Iterable[Outlined]:
        """Every study with the outlines of its entries, in no order."""
        ...

    def head(self, name: str) -> Head:
        """The head of one study; StudyNotFound."""
        ...

    def events(self, name: str, after: int = 0, limit: int | None = None) -> Events:
        """Events with a larger seq, oldest first; StudyNotFound."""
        ...

    def about(self, name: str, ticket: int) -> Events:
        """Everything about a ticket, oldest first; empty where there is no such ticket."""
        ...

    def find(self, name: str, key: str) -> Event | None:
        """The event that was written with this key."""
        ...

    def writing(self, name: str) -> AbstractContextManager[Log]:
        """A transaction that holds the study's lock; StudyNotFound. Not to be nested."""
        ...

    def blobs(self) -> Names:
        """The digests of every blob."""
        ...

    def blob(self, digest: str) -> str | None:
        """The text with this digest."""
        ...

    def put_blob(self, digest: str, body: str) -> None:
        """Store a text under its digest, once; before, not inside, the transaction that refers to it."""
        ...

    def snapshot(self, name: str, policy: str) -> Snapshot | None:
        """The latest snapshot for this policy that still fits the record."""
        ...

    def put_snapshot(self, name: str, snapshot: Snapshot) -> bool:
        """Store a snapshot; returns False if the event has another hash, or an answer changed since."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


def open_store(
    storage: "str | Path | Store | None" = None, *, create: bool = True, serving: bool = False
) -> Store:
    """The store behind a path, sqlite:///..., postgresql://..., "memory:", or SIDESTEP_STORAGE.

    With `create=False` a missing file is an error instead of being created; with `serving` others wait
    for it.
    """
    if storage is None:
        storage = os.environ.get("SIDESTEP_STORAGE") or None
    if isinstance(storage, Store):
        return storage
    if storage == "memory:":
        from sidestep.studies.storage.memory import MemoryStore  # noqa: PLC0415

        return MemoryStore()
    if not storage:
        raise InputError(
            "storage must be a path, sqlite:///..., postgresql://... or memory:"
            f" (or set SIDESTEP_STORAGE), got {storage!r}"
        )
    from sidestep.studies.storage.sql import SqlStore  # noqa: PLC0415  # a database is loaded when it is used

    return SqlStore.open(storage, create=create, serving=serving)


def check_name(name: str) -> None:
    """Raise if a name would cause problems in a file, on a page or on a terminal."""
    usable = isinstance(name, str) and NAME.fullmatch(name) and name.isprintable()
    if not usable or name in RESERVED:
        raise InputError(
            "a study's name must have 1 to 100 characters without slashes, line breaks or"
            f" spaces at its ends, and not be '.', '..' or '*', got {name!r}"
        )


def check_digest(digest: str, body: str) -> None:
    """Raise if a text does not have this digest."""
    if digest != digest_of(body):
        raise InputError(f"a blob must be named by its SHA-256, {digest_of(body)}, got {digest!r}")


def begun(
    name: str, config: Body, *, actor: str, body: Body, key: str | None, at: datetime
) -> tuple[Head, Event]:
    """A new study: its head, and event 1 with the caller's body, the name and the configuration."""
    check_name(name)
    entry = Entry("created", {**body, "name": name, "config": config}, actor, key=key)
    event = entry.linked(1, GENESIS, at)
    return Head(name, OPEN, event.body["config"], 1, event.hash, at), event


def created_before(first: Event, wanted: Event) -> Event:
    """Event 1 of an existing study, if the same request created it; raises otherwise."""
    if wanted.key is None or first.key != wanted.key:
        raise study_exists(wanted.body["name"])
    if first.seal.text != wanted.seal.text:
        raise key_reused(wanted.key)
    return first


class Writer(Protocol):
    """Runs `act`, saves the events that it appends, and returns its result once they are durable.

    Then `after` is called with the result, in the thread that saved it and before anything else of this
    study is saved. `decides`: `act` decides a question, which takes longer than saving a result.
    """

    def __call__(
        self,
        store: Store,
        name: str,
        act: Callable[[Log], T],
        after: Callable[[T], None] | None = None,
        *,
        decides: bool = False,
    ) -> T:
        """What `act` returned."""
        ...


def write(
    store: Store,
    name: str,
    act: Callable[[Log], T],
    after: Callable[[T], None] | None = None,
    *,
    decides: bool = False,  # makes no difference where entries are saved one by one
    patience: float = 60.0,
) -> T:
    """The result of `act`, once it is saved; repeated if the connection to the database was lost.

    It is not known whether a lost attempt was saved, so `act` must begin by looking for its key.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            with store.writing(name) as log:
                done = act(log)
        except StorageLost:
            if time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.05, 0.2))  # noqa: S311  # so that not all come back at once
        else:
            if after is not None:
                after(done)
            return done


def study_exists(name: str) -> StudyExists:
    """The study is there already."""
    return StudyExists(f"there is a study {name!r} already")


def study_not_found(name: str, names: Names) -> StudyNotFound:
    """There is no such study; names the most similar one, or says that there is none at all."""
    hint = did_you_mean(str(name), names) if names else "; the storage is empty"
    return StudyNotFound(f"there is no study {name!r}{hint}")


def key_reused(key: str | None) -> KeyReused:
    """The key was used before."""
    return KeyReused(f"the key {key!r} belongs to an earlier entry of this study")


def already_settled(ticket: int | None, outcome: str | None) -> AlreadyAnswered:
    """The ticket has its answer, or was withdrawn."""
    what = f" for {outcome!r}" if outcome else ""
    return AlreadyAnswered(f"ticket {ticket} was already answered or withdrawn{what}")
