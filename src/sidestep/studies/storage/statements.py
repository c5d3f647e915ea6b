"""Every statement that a store runs, built once."""

from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from json import loads
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Table,
    Text,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    text,
    update,
)

from sidestep.errors import RecordError
from sidestep.studies.storage.events import ERASED, REVISING, Event, Seal, canonical, written
from sidestep.studies.storage.log import Head
from sidestep.studies.storage.outlines import COUNTED
from sidestep.studies.storage.ready import Ready, Values
from sidestep.studies.storage.tables import (
    BLOBS,
    EVENTS,
    GRANTS,
    SECRETS,
    SNAPSHOTS,
    STUDIES,
    TEXTS,
)

Fields = Sequence[Any]  # of a row

NO_LIMIT = 2**62

_study, _seq = bindparam("study", type_=BigInteger), bindparam("number", type_=BigInteger)
_limit = bindparam("most", type_=BigInteger)
_e, _t, _s = EVENTS.c, TEXTS.c, STUDIES.c

HEAD_COLUMNS = (_s.name, _s.status, _s.config, _s.head_seq, _s.head_hash, _s.updated)
_one = select(_s.id, *HEAD_COLUMNS).where(_s.name == bindparam("study"))
STUDY = Ready(_one)
LOCK = Ready(_one.with_for_update())  # SQLite ignores it: BEGIN IMMEDIATE has locked the file
NAMES = Ready(select(_s.name))
HEADS = Ready(select(_s.id, *HEAD_COLUMNS).order_by(_s.id))
_status, _updated = bindparam("status", type_=Text), bindparam("updated", type_=Text)
PAGE = Ready(
    select(*HEAD_COLUMNS)
    .where(
        or_(bindparam("any_status", type_=Boolean), _s.status == bindparam("only", type_=Text)),
        or_(
            bindparam("from_start", type_=Boolean),
            _s.status > _status,
            and_(_s.status == _status, _s.updated < _updated),
            and_(
                _s.status == _status,
                _s.updated == _updated,
                _s.name > bindparam("name", type_=Text),
            ),
        ),
    )
    .order_by(_s.status, _s.updated.desc(), _s.name)
    .limit(_limit)
)


class NewRow(dict[str, Any]):
    """By dialect, an INSERT that does nothing if the row exists; built on first use.

    The dialect of PostgreSQL takes a tenth of a second to load.
    """

    def __init__(self, table: Table, *returned: Any) -> None:
        super().__init__()
        self.table, self.returned = table, returned

    def __missing__(self, dialect: str) -> Any:
        added = import_module(f"sqlalchemy.dialects.{dialect}").insert(self.table)
        added = added.on_conflict_do_nothing()
        self[dialect] = added.returning(*self.returned) if self.returned else added
        return self[dialect]


NEW_STUDY = NewRow(STUDIES, _s.id)
# every column but those that the study's id and the seq of a text would repeat, as event_of reads them
_whole = select(*_e.values()[1:], *_t.values()[2:]).select_from(
    EVENTS.outerjoin(TEXTS, and_(_t.study_id == _e.study_id, _t.seq == _e.seq))
)
_in_study = _whole.where(_e.study_id == _study)
TAIL = Ready(_in_study.where(_e.seq > _seq).order_by(_e.seq).limit(_limit))
SEVERAL = Ready(
    _whole.add_columns(_e.study_id)
    .where(_e.study_id >= _study, _e.study_id <= bindparam("last", type_=BigInteger))
    .order_by(_e.study_id, _e.seq)
)


def _outlines(measure: str, rows: str) -> Ready:
    """By study, the entries of a list without their bodies; both are taken out of the JSON by SQL."""
    kinds = ", ".join(f"'{kind}'" for kind in COUNTED)
    return Ready(
        text(
            "SELECT study_id, seq, kind, ticket, outcome, at,"  # noqa: S608  # constants of ours
            f" CASE kind WHEN 'asked' THEN {measure} WHEN 'imported' THEN {rows}"
            " WHEN 'corrected' THEN body END FROM events"
            f" WHERE study_id BETWEEN :study AND :last AND kind IN ({kinds})"
            " ORDER BY study_id, seq"
        )
    )


LISTED = Ready(select(_s.id, _s.name, _s.status, _s.updated).order_by(_s.id))
OUTLINES = {
    "sqlite": _outlines(
        "json_extract(body, '$.measure')", "CAST(json_array_length(body, '$.rows') AS text)"
    ),
    "postgresql": _outlines(
        "CAST(CAST(body AS json) -> 'measure' AS text)",
        "CAST(json_array_length(CAST(body AS json) -> 'rows') AS text)",
    ),
}
ABOUT = Ready(_in_study.where(_e.ticket == _seq).order_by(_e.seq))
FIND = Ready(_in_study.where(_e.key == bindparam("sought")))
NEW_EVENT = insert(EVENTS)
NEW_TEXT = insert(TEXTS)

# One append. On PostgreSQL it is one statement and one round trip; on SQLite round trips cost nothing.
_event = insert(EVENTS).values({it.name: bindparam(f"event_{it.name}") for it in _e})
_words = insert(TEXTS).values({it.name: bindparam(f"text_{it.name}") for it in _t})
_move = (
    update(STUDIES)
    .where(_s.id == bindparam("event_study_id"), _s.head_seq == bindparam("event_seq") - 1)
    .values(
        {name: bindparam(f"new_{name}") for name in ("status", "head_seq", "head_hash", "updated")}
    )
)
APPEND = {
    "sqlite": (Ready(_event), Ready(_words), Ready(_move)),
    "postgresql": (Ready(_move.add_cte(_event.cte("new_event"), _words.cte("new_words"))),),
}
BLANK = Ready(
    update(TEXTS)
    .where(_t.study_id == _study, _t.seq == _seq)
    .values(actor=None, actor_salt=None, reason=None, reason_salt=None)
)

BLOB = Ready(select(BLOBS.c.body).where(BLOBS.c.hash == bindparam("digest")))
BLOB_NAMES = Ready(select(BLOBS.c.hash))
NEW_BLOB, NEW_GRANT, NEW_SECRET = NewRow(BLOBS), NewRow(GRANTS), NewRow(SECRETS)

_c = SNAPSHOTS.c
SNAPSHOT = Ready(
    select(_c.seq, _c.hash, _c.policy, _c.state)
    .select_from(
        SNAPSHOTS.join(
            EVENTS, and_(_e.study_id == _c.study_id, _e.seq == _c.seq, _e.hash == _c.hash)
        )
    )
    .where(_c.study_id == _study, _c.policy == bindparam("policy"))
    .order_by(_c.seq.desc())
    .limit(1)
)
HASH_AT = Ready(select(_e.hash).where(_e.study_id == _study, _e.seq == _seq))
REVISED = Ready(
    select(_e.seq)
    .where(_e.study_id == _study, _e.seq > _seq, or_(*(_e.kind == kind for kind in REVISING)))
    .limit(1)
)
NEW_SNAPSHOT = Ready(insert(SNAPSHOTS).values({it.name: bindparam(it.name) for it in _c}))
SNAPSHOT_SEQS = Ready(select(_c.seq).where(_c.study_id == _study).order_by(_c.seq.desc()))
DROP_FROM = Ready(delete(SNAPSHOTS).where(_c.study_id == _study, _c.seq >= _seq))
DROP_AT = Ready(delete(SNAPSHOTS).where(_c.study_id == _study, _c.seq == _seq))


def head_of(row: Fields) -> Head:
    """The head from HEAD_COLUMNS; RecordError if the row is damaged."""
    name, status, config, seq, hash_, updated = row
    try:
        return Head(name, status, loads(config), seq, hash_, datetime.fromisoformat(updated))
    except (TypeError, ValueError) as error:
        raise RecordError(f"the row of study {name!r} cannot be read: {error}") from None


def event_of(row: Fields) -> Event:
    """The event from a row of TAIL, ABOUT or FIND; RecordError if the row is damaged."""
    (seq, kind, ticket, key, outcome, body, at, code, actor_digest, reason_digest, *rest) = row
    prev_hash, hash_, actor, actor_salt, reason, reason_salt = rest
    try:
        content, time = loads(_text(body)), datetime.fromisoformat(at)
    except (TypeError, ValueError) as error:
        raise RecordError(f"event {seq} cannot be read: {error}") from None
    if actor is None:
        actor = ERASED
    if reason is None and reason_digest is not None:
        reason = ERASED
    seal = Seal(body, actor_digest, actor_salt, reason_digest, reason_salt)
    return Event(
        seq, kind, ticket, key, outcome, content, actor, reason, time, code, prev_hash, hash_, seal
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text was expected, got {type(value).__name__}")
    return value


def event_values(study: int, event: Event) -> Values:
    """The columns of NEW_EVENT."""
    return {
        "study_id": study,
        "seq": event.seq,
        "kind": event.kind,
        "ticket": event.ticket,
        "key": event.key,
        "outcome": event.outcome,
        "body": event.seal.text,
        "at": written(event.at),
        "code": event.code,
        "actor_digest": event.seal.actor,
        "reason_digest": event.seal.reason,
        "prev_hash": event.prev_hash,
        "hash": event.hash,
    }


def text_values(study: int, event: Event) -> Values:
    """The columns of NEW_TEXT, without erased text."""
    seal = event.seal
    return {
        "study_id": study,
        "seq": event.seq,
        "actor": event.actor if seal.actor_salt else None,
        "actor_salt": seal.actor_salt,
        "reason": event.reason if seal.reason_salt else None,
        "reason_salt": seal.reason_salt,
    }


def append_values(study: int, event: Event, head: Head) -> Values:
    """The parameters of APPEND."""
    values = {f"event_{name}": value for name, value in event_values(study, event).items()}
    values |= {f"text_{name}": value for name, value in text_values(study, event).items()}
    return values | {f"new_{name}": value for name, value in head_values(head).items()}


def head_values(head: Head) -> Values:
    """The columns that move with the head."""
    return {
        "status": head.status,
        "head_seq": head.seq,
        "head_hash": head.hash,
        "updated": written(head.updated),
    }


def study_values(head: Head) -> Values:
    """The columns of NEW_STUDY."""
    return {"name": head.name, "config": canonical(head.config), **head_values(head)}


def page_values(status: str | None, after: Head | None, limit: int | None) -> Values:
    """The parameters of PAGE."""
    return {
        "any_status": status is None,
        "only": status or "",
        "from_start": after is None,
        "status": after.status if after else "",
        "updated": written(after.updated) if after else "",
        "name": after.name if after else "",
        "most": most(limit),
    }


def most(limit: int | None) -> int:
    """A limit as a number."""
    return NO_LIMIT if limit is None else limit
