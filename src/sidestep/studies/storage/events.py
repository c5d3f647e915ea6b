"""The record of a study: events that are appended, chained by hashes and never edited.

digest(text)  SHA-256 in hexadecimal
hash          digest(prev_hash, the plain columns, the body): reveals an edited, missing or swapped event
seal          text by people (actor, reason) enters the hash only as a salted digest, so that the
              text can be blanked on request and the chain stays valid
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib import import_module
from typing import Any, NamedTuple

from sidestep.errors import InputError

Body = dict[str, Any]
Clock = Callable[[], datetime]

KINDS = (
    "created",
    "asked",
    "answered",
    "corrected",
    "withdrawn",
    "accepted",
    "overruled",
    "imported",
    "granted",
    "revoked",
    "closed",
    "erased",
)
SETTLING = ("answered", "withdrawn")  # one of these per ticket and outcome
REVISING = ("corrected", "withdrawn", "erased")  # these change the result of an earlier fold
# read this way, since no module imports the package root
CODE: str = import_module("sidestep").__version__
GENESIS = "0" * 64  # what the first event links to
ERASED = "(erased)"  # replaces the text of a person that was blanked

LONGEST_KEY = 200
LONGEST_ACTOR = 200
LONGEST_REASON = 10_000


class Seal(NamedTuple):
    """What the hash covers beside the plain columns, and the salts that prove the text is unchanged."""

    text: str  # the body, canonical, as stored
    actor: str  # digest of salt and actor
    actor_salt: str | None  # None once erased
    reason: str | None = None
    reason_salt: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One entry of the record. `seq` is the order; the time is only informative."""

    seq: int
    kind: str
    ticket: int | None  # seq of the ask that this is about; an ask's own seq
    key: str | None
    outcome: str | None
    body: Body
    actor: str
    reason: str | None
    at: datetime  # UTC
    code: str  # version that wrote it
    prev_hash: str
    hash: str
    seal: Seal = field(repr=False)

    def blanked(self) -> "Event":
        """The event without the text of people; its hash stays valid."""
        seal = self.seal._replace(actor_salt=None, reason_salt=None)
        reason = None if self.reason is None else ERASED
        return replace(self, actor=ERASED, reason=reason, seal=seal)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a caller wants recorded; it becomes an event when it is linked to the chain."""

    kind: str
    body: Body
    actor: str
    ticket: int | None = None
    outcome: str | None = None
    key: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        check_words("actor", self.actor, LONGEST_ACTOR)
        if self.key is not None:
            check_words("key", self.key, LONGEST_KEY)
        if self.reason is not None:
            check_words("reason", self.reason, LONGEST_REASON)
        if self.outcome is not None:
            check_words("outcome", self.outcome, LONGEST_KEY)

    def linked(self, seq: int, prev_hash: str, at: datetime) -> Event:
        """The event that continues a chain; an ask is its own ticket."""
        text = canonical(self.body)
        seal = Seal(text, *_sealed(self.actor), *_sealed(self.reason))
        ticket = seq if self.kind == "asked" and self.ticket is None else self.ticket
        plain = (seq, self.kind, ticket, self.key, self.outcome)
        return Event(
            *plain,
            body=json.loads(text),
            actor=self.actor,
            reason=self.reason,
            at=at,
            code=CODE,
            prev_hash=prev_hash,
            hash=_hash(prev_hash, (*plain, seal.actor, seal.reason, written(at), CODE), text),
            seal=seal,
        )


def hash_of(event: Event) -> str:
    """The right hash of an event: over the previous hash, its columns and its body."""
    columns = (
        event.seq,
        event.kind,
        event.ticket,
        event.key,
        event.outcome,
        event.seal.actor,
        event.seal.reason,
        written(event.at),
        event.code,
    )
    return _hash(event.prev_hash, columns, event.seal.text)


def _hash(prev_hash: str, columns: tuple[object, ...], text: str) -> str:
    return digest("\n".join((prev_hash, _compact(columns), text)))


def words_hold(event: Event) -> bool:
    """Whether actor and reason are unchanged, or were erased."""
    seal = event.seal
    pairs = (
        (event.actor, seal.actor, seal.actor_salt),
        (event.reason, seal.reason, seal.reason_salt),
    )
    return all(_holds(*pair) for pair in pairs)


def canonical(value: object) -> str:
    """The canonical JSON of a value: sorted keys, no spaces, no NaN; raises if JSON cannot express it."""
    try:
        text = _compact(value)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"a body must be plain JSON without NaN or infinity, got {error}"
        ) from None
    return text


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def written(at: datetime) -> str:
    """A time as it is stored: UTC, microseconds always."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def utc_now() -> datetime:
    """The machine's clock, in UTC."""
    return datetime.now(UTC)


def check_words(what: str, words: str, longest: int) -> None:
    """Raise if the text is too long, unreadable, or cannot be stored as one line."""
    if not isinstance(words, str) or not words.strip():
        raise InputError(f"{what} must be a text that is not empty, got {words!r}")
    if len(words) > longest:
        raise InputError(f"{what} must have at most {longest} characters, got {len(words)}")
    if "\0" in words or not _encodes(words):
        raise InputError(f"{what} must be text that can be stored, got {words!r}")


def _encodes(words: str) -> bool:
    try:
        words.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _compact(value: object) -> str:
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def _sealed(words: str | None) -> tuple[str, str] | tuple[None, None]:
    if words is None:
        return None, None
    salt = os.urandom(16).hex()
    return digest(salt + words), salt


def _holds(words: str | None, sealed: str | None, salt: str | None) -> bool:
    if sealed is None:
        return words is None and salt is None
    if salt is None:
        return words == ERASED
    return words is not None and digest(salt + words) == sealed
