"""The store on SQLite and PostgreSQL: one transaction per entry, under the lock of the study's row."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Executable
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from sidestep.errors import RecordError, SidestepError
from sidestep.studies.storage import statements as st
from sidestep.studies.storage.database import Database
from sidestep.studies.storage.engines import PATIENCE
from sidestep.studies.storage.events import Body, Clock, Event, utc_now
from sidestep.studies.storage.events import digest as digest_of
from sidestep.studies.storage.faults import sentences, translated
from sidestep.studies.storage.log import Events, Head, Log
from sidestep.studies.storage.outlines import Outline, Outlined, outline_of
from sidestep.studies.storage.ready import Ready
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
from sidestep.studies.storage.tables import KEY_INDEX, SETTLED_INDEX

STUDIES_AT_ONCE = 50  # whose records are read by one statement
CHUNK = 1000  # rows per statement, when a whole study is imported


class SqlLog(Log):
    """A study's record while its row is locked."""

    def __init__(self, connection: Connection, where: str, row: st.Fields, clock: Clock) -> None:
        super().__init__(st.head_of(row[1:]), clock)
        self._study = row[0]
        self._connection, self._where = connection, where

    def events(self, after: int = 0, limit: int | None = None) -> Events:
        """Events with a larger seq, oldest first, those of this transaction included."""
        return self._select(st.TAIL, number=after, most=st.most(limit))

    def about(self, ticket: int) -> Events:
        """Everything about a ticket, oldest first."""
        return self._select(st.ABOUT, number=ticket)

    def find(self, key: str) -> Event | None:
        """The event that was written with this key."""
        return next(iter(self._select(st.FIND, sought=key)), None)

    def drop_snapshots(self, since: int) -> None:
        """Delete the snapshots from this seq on."""
        self._change(st.DROP_FROM, number=since)

    def blank(self, seq: int) -> None:
        """Erase the text of people in one event."""
        self._change(st.BLANK, number=seq)

    def also(self, statement: Executable, values: Mapping[str, Any]) -> Any:
        """Run a statement in the same transaction: its changes and the entry are saved together."""
        with sentences(self._where):
            return self._connection.execute(statement, values)

    def _keep(self, event: Event, head: Head) -> None:
        """Insert the event and its text, and move the head; fails if another writer has moved it."""
        values = st.append_values(self._study, event, head)
        with conflicts(event, self._where):
            for statement in st.APPEND[self._connection.dialect.name]:
                moved = statement.change(self._connection, values)
        if moved != 1:
            raise RecordError(f"the head of {head.name!r} was moved by another program")

    def _select(self, statement: Ready, **values: Any) -> Events:
        with sentences(self._where):
            rows = statement.rows(self._connection, {"study": self._study, **values})
        return [st.event_of(row) for row in rows]

    def _change(self, statement: Ready, **values: Any) -> None:
        with sentences(self._where):
            statement.change(self._connection, {"study": self._study, **values})


class SqlStore:
    """Studies in a SQLite file or a PostgreSQL database."""

    def __init__(self, database: Database, clock: Clock = utc_now) -> None:
        self.database = database
        self._clock = clock

    @classmethod
    def open(
        cls,
        storage: str | Path,
        *,
        create: bool = True,
        clock: Clock = utc_now,
        patience: float = PATIENCE,
        serving: bool = False,
    ) -> "SqlStore":
        """The store at a path or a URL, with its tables migrated; `serving`: others wait for it."""
        return cls(Database(storage, create=create, patience=patience, serving=serving), clock)

    def create(
        self, name: str, config: Body, *, actor: str, body: Body, key: str | None = None
    ) -> Event:
        """Event 1, `created`."""
        head, event = begun(name, config, actor=actor, body=body, key=key, at=self._clock())
        if self._adopted(head, [event]):
            return event
        return created_before(self.events(name, limit=1)[0], event)

    def adopt(self, head: Head, events: Iterable[Event]) -> None:
        """Keep a whole study as it was written elsewhere, all or nothing; StudyExists."""
        if not self._adopted(head, events):
            raise study_exists(head.name)

    def names(self) -> Names:
        """Every study, in alphabetical order."""
        return sorted(row[0] for row in self.database.read(st.NAMES, {}))

    def list(
        self, *, status: str | None = None, after: Head | None = None, limit: int | None = None
    ) -> Heads:
        """Heads by status, latest change first."""
        values = st.page_values(status, after, limit)
        return [st.head_of(row) for row in self.database.read(st.PAGE, values)]

    def records(self) -> Iterator[tuple[Head, Events]]:
        """Every study with its whole record, read in few statements and at one moment."""
        where = self.database.where
        with self.database.snapshot() as connection:
            with sentences(where):
                rows = st.HEADS.rows(connection, {})
            for first in range(0, len(rows), STUDIES_AT_ONCE):
                part = rows[first : first + STUDIES_AT_ONCE]
                found: dict[int, Events] = {row[0]: [] for row in part}
                with sentences(where):
                    ends = {"study": part[0][0], "last": part[-1][0]}
                    several = st.SEVERAL.rows(connection, ends)
                for *event, study in several:
                    found[study].append(st.event_of(event))
                yield from ((st.head_of(row[1:]), found[row[0]]) for row in part)

    def outlines(self) -> Iterator[Outlined]:
        """Every study with the outlines of its entries, read in few statements and at one moment."""
        where = self.database.where
        with self.database.snapshot() as connection:
            with sentences(where):
                rows = st.LISTED.rows(connection, {})
            for first in range(0, len(rows), STUDIES_AT_ONCE):
                part = rows[first : first + STUDIES_AT_ONCE]
                found: dict[int, list[Outline]] = {row[0]: [] for row in part}
                ends = {"study": part[0][0], "last": part[-1][0]}
                with sentences(where):
                    entries = st.OUTLINES[connection.dialect.name].rows(connection, ends)
                for study, *entry in entries:
                    found[study].append(outline_of(entry))
                for study, name, status, updated in part:
                    yield Outlined(name, status, updated, found[study])

    def head(self, name: str) -> Head:
        """The head of one study."""
        return st.head_of(self._row(name)[1:])

    def events(self, name: str, after: int = 0, limit: int | None = None) -> Events:
        """Events with a larger seq, oldest first."""
        return self._select(st.TAIL, name, number=after, most=st.most(limit))

    def about(self, name: str, ticket: int) -> Events:
        """Everything about a ticket, oldest first."""
        return self._select(st.ABOUT, name, number=ticket)

    def find(self, name: str, key: str) -> Event | None:
        """The event that was written with this key."""
        return next(iter(self._select(st.FIND, name, sought=key)), None)

    @contextmanager
    def writing(self, name: str) -> Iterator[SqlLog]:
        """A transaction that holds the lock of the study's row."""
        with self._locked(name) as (connection, row):
            log = SqlLog(connection, self.database.where, row, self._clock)
            yield log
            log.finish()

    def blobs(self) -> Names:
        """The digests of every blob."""
        return sorted(row[0] for row in self.database.read(st.BLOB_NAMES, {}))

    def blob(self, digest: str) -> str | None:
        """The text with this digest."""
        found = next((row[0] for row in self.database.read(st.BLOB, {"digest": digest})), None)
        if found is not None and digest_of(found) != digest:
            raise RecordError(f"the table {digest[:16]} was edited or damaged; restore a backup")
        return None if found is None else str(found)

    def put_blob(self, digest: str, body: str) -> None:
        """Keep a text under its digest, once."""
        check_digest(digest, body)
        known = {"digest": digest}
        with self.database.transaction(lambda db: st.BLOB.rows(db, known)) as (db, old):
            if not old:
                with sentences(self.database.where):
                    db.execute(st.NEW_BLOB[db.dialect.name], {"hash": digest, "body": body})

    def snapshot(self, name: str, policy: str) -> Snapshot | None:
        """The latest snapshot for this policy that still fits the record."""
        values = {"study": self._row(name)[0], "policy": policy}
        return next((Snapshot(*row) for row in self.database.read(st.SNAPSHOT, values)), None)

    def put_snapshot(self, name: str, snapshot: Snapshot) -> bool:
        """Whether it was kept."""
        with self._locked(name) as (connection, row), sentences(self.database.where):
            here = {"study": row[0], "number": snapshot.seq}
            if st.HASH_AT.rows(connection, here) != [(snapshot.hash,)]:
                return False
            if st.REVISED.rows(connection, here):
                return False
            st.DROP_AT.change(connection, here)
            st.NEW_SNAPSHOT.change(connection, {"study_id": row[0], **snapshot._asdict()})
            for (old,) in st.SNAPSHOT_SEQS.rows(connection, here)[SNAPSHOTS_KEPT:]:
                st.DROP_AT.change(connection, {"study": row[0], "number": old})
            return True

    def close(self) -> None:
        """Close files and connections."""
        self.database.close()

    @contextmanager
    def _locked(self, name: str) -> Iterator[tuple[Connection, st.Fields]]:
        def lock(connection: Connection) -> st.Fields | None:
            return next(iter(st.LOCK.rows(connection, {"study": name})), None)

        with self.database.transaction(lock) as (connection, row):
            if row is None:
                raise study_not_found(name, self.names())
            yield connection, row

    def _adopted(self, head: Head, events: Iterable[Event]) -> bool:
        """Store a study if it is new; returns whether it was."""
        where, row = self.database.where, st.study_values(head)
        with self.database.transaction(lambda _: None) as (connection, _):
            db = connection.dialect.name
            with sentences(where):
                study = connection.execute(st.NEW_STUDY[db], row).scalar()
            if study is None:
                return False
            left = iter(events)
            while chunk := list(islice(left, CHUNK)):
                insert_events(connection, where, study, chunk)
        return True

    def _row(self, name: str) -> st.Fields:
        rows = self.database.read(st.STUDY, {"study": name})
        if not rows:
            raise study_not_found(name, self.names())
        return rows[0]

    def _select(self, statement: Ready, name: str, **values: Any) -> Events:
        rows = self.database.read(statement, {"study": self._row(name)[0], **values})
        return [st.event_of(row) for row in rows]


def insert_events(connection: Connection, where: str, study: int, events: Events) -> None:
    """Insert many events and their text; a conflict is raised as our exception."""
    with conflicts(events[0], where):
        connection.execute(st.NEW_EVENT, [st.event_values(study, event) for event in events])
        connection.execute(st.NEW_TEXT, [st.text_values(study, event) for event in events])


@contextmanager
def conflicts(event: Event, where: str) -> Iterator[None]:
    """Raise a refused insert as our exception."""
    try:
        yield
    except IntegrityError as error:
        raise _refused(error, event, where) from error
    except SQLAlchemyError as error:
        raise translated(error, where) from error


def _refused(error: IntegrityError, event: Event, where: str) -> SidestepError:
    """The exception for a violated constraint; SQLite names the columns, PostgreSQL the index."""
    diagnosis = getattr(error.orig, "diag", None)
    broken = str(diagnosis.constraint_name if diagnosis else error.orig)
    if KEY_INDEX in broken or "events.key" in broken:
        return key_reused(event.key)
    if SETTLED_INDEX in broken:
        return already_settled(event.ticket, event.outcome)
    return translated(error, where)
