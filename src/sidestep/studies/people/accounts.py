"""People and tokens: who may log in. grants.py has what they may do, and links to one question.

Secrets are 32 random bytes. The storage has only their SHA-256, so they cannot be read from it. Passwords
are hashed by a slower function before they come here.
"""

import hmac
import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from sidestep.errors import AccountExists, AccountNotFound, KeyReused
from sidestep.studies.people.roles import ADMIN, EVERYWHERE
from sidestep.studies.storage.events import digest, utc_now, written
from sidestep.studies.storage.faults import sentences
from sidestep.studies.storage.ready import Ready
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.statements import NEW_SECRET
from sidestep.studies.storage.tables import CHANGES, GRANTS, PEOPLE, SECRETS, TOKENS
from sidestep.studies.values import checked_name, shown

PREFIX = "ss"


class Person(NamedTuple):
    """Somebody who may log in."""

    id: str
    name: str
    password: str  # hashed
    stamp: str  # the version of the account: sessions with another one have ended
    created: str


class Token(NamedTuple):
    """What a program shows instead of a password."""

    id: str
    name: str
    digest: str
    created: str
    expires: str | None
    revoked: str | None
    key: str | None

    def is_good(self, now: datetime) -> bool:
        """Whether it is valid: neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or written(now) < self.expires)


_sought: sa.BindParameter[str] = sa.bindparam("sought")
_PERSON, _TOKEN = Ready(sa.select(PEOPLE)), Ready(sa.select(TOKENS))
_PERSON_BY_ID = Ready(sa.select(PEOPLE).where(PEOPLE.c.id == _sought))
_PERSON_BY_NAME = Ready(sa.select(PEOPLE).where(PEOPLE.c.name == _sought))
_TOKEN_BY_ID = Ready(sa.select(TOKENS).where(TOKENS.c.id == _sought))
_TOKEN_BY_KEY = Ready(sa.select(TOKENS).where(TOKENS.c.key == _sought))
_ANY = tuple(Ready(sa.select(table.c.id).limit(1)) for table in (PEOPLE, TOKENS))
_ADMINS = Ready(
    sa.select(GRANTS.c.holder).where(GRANTS.c.study == EVERYWHERE, GRANTS.c.role == ADMIN)
)
_SECRET = Ready(sa.select(SECRETS.c.value).where(SECRETS.c.name == _sought))


class Accounts:
    """The accounts, stored beside the studies; every change adds a line to `changes`."""

    def __init__(self, store: SqlStore) -> None:
        self.database = store.database

    def people(self) -> list[Person]:
        """Everybody, by name."""
        return sorted((Person(*row) for row in self._read(_PERSON)), key=lambda person: person.name)

    def person(self, sought: str) -> Person | None:
        """The person of this id."""
        return next((Person(*row) for row in self._read(_PERSON_BY_ID, sought=sought)), None)

    def person_named(self, name: str) -> Person | None:
        """The person of this name."""
        return next((Person(*row) for row in self._read(_PERSON_BY_NAME, sought=name)), None)

    def add_person(self, name: str, password: str, *, actor: str) -> Person:
        """Add a person."""
        checked_name("the name of a person", name)
        person = Person(f"p{secrets.token_hex(6)}", name, password, secrets.token_hex(16), _now())
        try:
            with self.changing(actor, {"added": person.id}) as connection:
                connection.execute(sa.insert(PEOPLE), person._asdict())
        except IntegrityError:
            raise AccountExists(f"there is a person {name!r} already") from None
        return person

    def set_password(self, name: str, password: str, *, actor: str) -> None:
        """Set a new password; every session ends."""
        person = self.known(name)
        new = {"password": password, "stamp": secrets.token_hex(16)}
        with self.changing(actor, {"password of": person.id}) as connection:
            connection.execute(sa.update(PEOPLE).where(PEOPLE.c.id == person.id).values(new))

    def end_sessions(self, person: Person, *, actor: str) -> None:
        """End every session of a person, on every server; they may log in again."""
        with self.changing(actor, {"sessions ended": person.id}) as connection:
            here = sa.update(PEOPLE).where(PEOPLE.c.id == person.id)
            connection.execute(here.values(stamp=secrets.token_hex(16)))

    def remove_person(self, name: str, *, actor: str) -> None:
        """Remove a person; what they wrote stays on record until it is erased there."""
        person = self.known(name)
        with self.changing(actor, {"removed": person.id}) as connection:
            connection.execute(sa.delete(GRANTS).where(GRANTS.c.holder == person.id))
            connection.execute(sa.delete(PEOPLE).where(PEOPLE.c.id == person.id))

    def known(self, name: str) -> Person:
        """The person of this name; raises one sentence if there is none."""
        person = self.person_named(name)
        if person is None:
            raise AccountNotFound(f"there is no person {shown(name)}")
        return person

    def tokens(self) -> list[Token]:
        """Every token, the newest last."""
        return sorted((Token(*row) for row in self._read(_TOKEN)), key=lambda token: token.created)

    def token(self, sought: str) -> Token | None:
        """The token of this id."""
        return next((Token(*row) for row in self._read(_TOKEN_BY_ID, sought=sought)), None)

    def token_shown(self, text: str, now: datetime | None = None) -> Token | None:
        """The token with this secret, if it is valid."""
        prefix, _, rest = text.partition("_")
        sought, _, secret = rest.partition("_")
        token = self.token(sought) if prefix == PREFIX and secret else None
        if token is None or not hmac.compare_digest(token.digest, digest(secret)):
            return None
        return token if token.is_good(now or utc_now()) else None

    def add_token(
        self, name: str, *, actor: str, expires: datetime | None = None, key: str | None = None
    ) -> tuple[Token, str | None]:
        """A new token and its secret, which is not stored and cannot be shown again."""
        checked_name("the name of a token", name)
        found = [Token(*row) for row in self._read(_TOKEN_BY_KEY, sought=key)] if key else []
        if found and found[0].name != name:
            raise KeyReused(f"the key {key!r} belongs to another token, {found[0].name!r}")
        if found:
            return found[0], None
        secret, until = secrets.token_urlsafe(32), None if expires is None else written(expires)
        token = Token(secrets.token_hex(6), name, digest(secret), _now(), until, None, key)
        with self.changing(actor, {"token": token.id}) as connection:
            connection.execute(sa.insert(TOKENS), token._asdict())
        return token, f"{PREFIX}_{token.id}_{secret}"

    def revoke_token(self, sought: str, *, actor: str) -> Token:
        """Revoke a token."""
        token = self.token(sought)
        if token is None:
            raise AccountNotFound(f"there is no token {shown(sought)}")
        if token.revoked is None:
            token = token._replace(revoked=_now())
            with self.changing(actor, {"token revoked": token.id}) as connection:
                done = sa.update(TOKENS).where(TOKENS.c.id == token.id)
                connection.execute(done.values(revoked=token.revoked))
        return token

    def anybody(self) -> bool:
        """Whether there is any person or token."""
        return any(self._read(statement) for statement in _ANY)

    def has_admin(self) -> bool:
        """Whether there is a person or a valid token with the role of an admin."""
        holders = {row[0] for row in self._read(_ADMINS)}
        tokens = {token.id for token in self.tokens() if token.is_good(utc_now())}
        return bool(holders & (tokens | {person.id for person in self.people()}))

    def secret(self, name: str) -> str:
        """A secret that all replicas share; created on first use."""
        known = self._read(_SECRET, sought=name)
        if not known:
            fresh = {"name": name, "value": secrets.token_hex(32)}
            with self.database.transaction(lambda _: None) as (connection, _):
                connection.execute(NEW_SECRET[connection.dialect.name], fresh)
            known = self._read(_SECRET, sought=name)  # perhaps another replica has just created it
        return str(known[0][0])

    @contextmanager
    def changing(self, actor: str, body: dict[str, Any]) -> Iterator[Connection]:
        """A transaction that also records who changed what."""
        with self.database.transaction(lambda _: None) as (connection, _):
            yield connection
            with sentences(self.database.where):
                connection.execute(sa.insert(CHANGES), change_values(actor, body))

    def _read(self, statement: Ready, **values: Any) -> Any:
        return self.database.read(statement, values)


def change_values(actor: str, body: dict[str, Any]) -> dict[str, str]:
    """A line of `changes`; it holds no names, only ids."""
    return {"id": secrets.token_hex(8), "at": _now(), "actor": actor, "body": json.dumps(body)}


def _now() -> str:
    return written(utc_now())
