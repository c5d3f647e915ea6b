"""The tables of the record, after the newest migration.

studies    one row per study: the end of its chain; the row that a writer locks
events     the record: inserted, never updated, never deleted (triggers)
texts      text by people, separate from the hashed row: the only part that may be blanked
blobs      long texts under their digest: candidates, imported frames
snapshots  a cache of folds

people     who may log in          tokens   for programs           links   one question, for one answer
grants     who may do what, where  changes  every change of these  secrets for signing cookies
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    func,
    text,
)

SCHEMA = "0002"  # the newest migration
VERSION_TABLE = "sidestep_schema"
KEY_INDEX, SETTLED_INDEX = "events_key", "events_settled"

_SETTLING = text("kind IN ('answered', 'withdrawn')")
METADATA = MetaData()
_BIG = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER numbers rows by itself there


def _needed(name: str, kind: Any = Text) -> Column[Any]:
    return Column(name, kind, nullable=False)


STUDIES = Table(
    "studies",
    METADATA,
    Column("id", _BIG, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _needed("status"),
    _needed("config"),
    _needed("head_seq", _BIG),
    _needed("head_hash"),
    _needed("updated"),
)
Index("studies_by_change", STUDIES.c.status, STUDIES.c.updated.desc(), STUDIES.c.name)

EVENTS = Table(
    "events",
    METADATA,
    Column("study_id", _BIG, primary_key=True),
    Column("seq", _BIG, primary_key=True, autoincrement=False),
    _needed("kind"),
    Column("ticket", _BIG),
    Column("key", Text),
    Column("outcome", Text),
    _needed("body"),
    _needed("at"),
    _needed("code"),
    _needed("actor_digest"),
    Column("reason_digest", Text),
    _needed("prev_hash"),
    _needed("hash"),
    ForeignKeyConstraint(["study_id"], ["studies.id"]),
)
Index(KEY_INDEX, EVENTS.c.study_id, EVENTS.c.key, unique=True)
Index(
    SETTLED_INDEX,
    EVENTS.c.study_id,
    EVENTS.c.ticket,
    func.coalesce(EVENTS.c.outcome, text("''")),
    unique=True,
    sqlite_where=_SETTLING,  # on PostgreSQL too (v0001), whose dialect is not loaded to say so
)
Index("events_ticket", EVENTS.c.study_id, EVENTS.c.ticket)

TEXTS = Table(
    "texts",
    METADATA,
    Column("study_id", _BIG, primary_key=True),
    Column("seq", _BIG, primary_key=True, autoincrement=False),
    Column("actor", Text),
    Column("actor_salt", Text),
    Column("reason", Text),
    Column("reason_salt", Text),
    ForeignKeyConstraint(["study_id", "seq"], ["events.study_id", "events.seq"]),
    sqlite_with_rowid=False,
)

BLOBS = Table("blobs", METADATA, Column("hash", Text, primary_key=True), _needed("body"))

SNAPSHOTS = Table(
    "snapshots",
    METADATA,
    Column("study_id", _BIG, primary_key=True),
    Column("seq", _BIG, primary_key=True, autoincrement=False),
    _needed("hash"),
    _needed("policy"),
    _needed("state"),
    ForeignKeyConstraint(["study_id", "seq"], ["events.study_id", "events.seq"]),
)

PEOPLE = Table(
    "people",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _needed("password"),  # hashed
    _needed("stamp"),  # changes with the password and at a logout: what was signed before is void
    _needed("created"),
)

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    _needed("name"),
    _needed("digest"),
    _needed("created"),
    Column("expires", Text),
    Column("revoked", Text),
    Column("key", Text, unique=True),
)

GRANTS = Table(
    "grants",
    METADATA,
    Column("holder", Text, primary_key=True),  # id of a person or a token
    Column("study", Text, primary_key=True),  # its name; * for all
    Column("role", Text, primary_key=True),
)
Index("grants_by_study", GRANTS.c.study)

LINKS = Table(
    "links",
    METADATA,
    Column("id", Text, primary_key=True),
    _needed("digest"),
    _needed("study"),
    _needed("ticket", _BIG),
    _needed("label"),  # who it is for
    _needed("created"),
    _needed("expires"),
    Column("revoked", Text),
)
Index("links_by_study", LINKS.c.study, LINKS.c.ticket)

CHANGES = Table(
    "changes",
    METADATA,
    Column("id", Text, primary_key=True),
    _needed("at"),
    _needed("actor"),
    _needed("body"),
)

SECRETS = Table("secrets", METADATA, Column("name", Text, primary_key=True), _needed("value"))
