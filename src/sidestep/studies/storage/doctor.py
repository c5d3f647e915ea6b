"""Checks of a storage, each with its result in one sentence."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from sidestep.errors import StorageError
from sidestep.studies.storage.copies import HALF_BACKUP, HALF_RESTORE, verified
from sidestep.studies.storage.database import Database
from sidestep.studies.storage.engines import settings_off
from sidestep.studies.storage.events import Clock, utc_now, written
from sidestep.studies.storage.exchange import DRAFT
from sidestep.studies.storage.faults import sentences
from sidestep.studies.storage.ready import Ready
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.tables import EVENTS, SCHEMA, STUDIES

State = Literal["ok", "warning", "wrong"]

SCARCE = 100 * 2**20  # bytes
GUARDED = ("events", "texts", "blobs", "studies")
REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "9p")

# times are kept as text of one form, whose order is that of time
_FUTURE = Ready(
    sa.select(STUDIES.c.name, sa.func.count(), sa.func.min(EVENTS.c.seq), sa.func.max(EVENTS.c.at))
    .join(EVENTS, EVENTS.c.study_id == STUDIES.c.id)
    .where(EVENTS.c.at > sa.bindparam("now", type_=sa.Text))
    .group_by(STUDIES.c.name)
    .order_by(STUDIES.c.name)
)


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    state: State
    sentence: str


def doctor(store: SqlStore, *, clock: Clock = utc_now) -> list[Finding]:
    """Check everything that is known to go wrong with a storage; changes nothing."""
    database = store.database
    checks = (
        _version(database),
        _durability(database),
        _file(database),
        _guards(database),
        _writing(database),
        _clock(store, clock),
        _debris(database),
        _records(store),
    )
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check  # a generator: it looks only now
        except StorageError as error:
            findings.append(Finding("storage", "wrong", str(error)))
    return findings


def _version(database: Database) -> Iterator[Finding]:
    if database.on_sqlite:
        engine = "SQLite " + str(_scalar(database, "SELECT sqlite_version()"))
    else:
        engine = "PostgreSQL " + str(_scalar(database, "SHOW server_version"))
    yield Finding("storage", "ok", f"{database.where}: {engine}, schema {SCHEMA}")


def _durability(database: Database) -> Iterator[Finding]:
    if database.on_sqlite:
        mode = _scalar(database, "PRAGMA journal_mode")
        if mode == "wal":
            yield Finding("durability", "ok", "write-ahead log, flushed at every commit")
        else:
            yield Finding(
                "durability", "warning", f"journal mode is {mode}: readers make writers wait"
            )
        return
    with database.engine.connect() as connection, sentences(database.where):
        off = settings_off(connection)
    if off:
        yield Finding("durability", "warning", f"{' and '.join(off)} off: a crash may lose entries")
    else:
        yield Finding("durability", "ok", "fsync, synchronous_commit and full_page_writes are on")


def _file(database: Database) -> Iterator[Finding]:
    if not database.on_sqlite:
        return
    damage = _scalar(database, "PRAGMA quick_check(1)")
    if damage == "ok":
        yield Finding("file", "ok", "its pages and indexes are in order")
    else:
        yield Finding("file", "wrong", f"{database.where} is damaged ({damage}); restore a backup")
    free = shutil.disk_usage(Path(database.where).parent).free
    state: State = "ok" if free > SCARCE else "warning"
    yield Finding("room", state, f"{free // 2**20} MB free on its disk")
    kind = _filesystem(Path(database.where))
    if kind in REMOTE:
        yield Finding(
            "room", "warning", f"it lies on a network disk ({kind}), where SQLite's locks may fail"
        )


def _guards(database: Database) -> Iterator[Finding]:
    with database.engine.connect() as connection, sentences(database.where):
        found = _triggers(connection)
    wanted = {f"{table}_no_{verb}" for table in GUARDED for verb in ("update", "delete")}
    missing = sorted(wanted - found)
    if missing:
        yield Finding(
            "guards", "wrong", f"triggers that keep the record are off: {', '.join(missing)}"
        )
    else:
        yield Finding("guards", "ok", "the database refuses to edit or delete what is on record")


def _writing(database: Database) -> Iterator[Finding]:
    with database.transaction(lambda _: None):
        pass
    yield Finding("writing", "ok", "a transaction can be opened")
    if database.file:  # the transaction has compared them
        saved = database.file.entries
        yield Finding(
            "saved",
            "ok",
            f"the file holds the {saved} entries that {database.where}-head says were saved"
            if saved
            else f"{database.where}-head will say how many entries must be in the file, from the"
            " next one on",
        )


def _debris(database: Database) -> Iterator[Finding]:
    """What a killed backup, restore or export has left; a running one has it as well."""
    found = list(Path(tempfile.gettempdir()).glob(f"{HALF_RESTORE}*"))
    if database.on_sqlite:
        folder = Path(database.where).parent
        found += [*folder.glob(f"{HALF_BACKUP}*"), *folder.glob(f".*{DRAFT}")]
    if found:
        yield Finding(
            "left over",
            "warning",
            "of a backup, a restore or an export that was killed; delete it unless one is running: "
            + ", ".join(sorted(map(str, found))),
        )


def _clock(store: SqlStore, clock: Clock) -> Iterator[Finding]:
    rows = store.database.read(_FUTURE, {"now": written(clock())})
    for name, count, seq, latest in rows:
        several = f"{count} entries" if count > 1 else "an entry"
        yield Finding(
            "clock",
            "warning",
            f"{name!r} has {several} from the future, the first is {seq}, the latest at {latest}: a"
            " clock was wrong; order is not affected",
        )
    if rows:
        return
    yield Finding("clock", "ok", "no entry is from the future")


def _records(store: SqlStore) -> Iterator[Finding]:
    for verdict in verified(store):
        if verdict.holds:
            yield Finding("record", "ok", f"{verdict.name!r}: {verdict.events} events, chain whole")
        for flaw in verdict.flaws:
            yield Finding("record", "wrong", f"{verdict.name!r}: {flaw.sentence}")


def _scalar(database: Database, statement: str) -> object:
    with database.engine.connect() as connection, sentences(database.where):
        return connection.exec_driver_sql(statement).scalar()


def _triggers(connection: Connection) -> set[str]:
    if connection.dialect.name == "sqlite":
        rows = connection.execute(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'"))
    else:
        rows = connection.execute(
            sa.text(
                "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
                " WHERE relnamespace = current_schema()::regnamespace AND tgenabled <> 'D'"
            )
        )
    return set(rows.scalars())


def _filesystem(path: Path) -> str:
    """The type of the file system of a file, if the operating system tells it."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return ""
    found = [line.split()[1:3] for line in mounts.read_text().splitlines()]
    under = [(where, kind) for where, kind in found if path.is_relative_to(where)]
    return max(under, key=lambda mount: len(mount[0]), default=("", ""))[1]
