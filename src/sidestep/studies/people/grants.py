"""Roles and links to one question; every change is an entry in the study's record.

Entries can never be edited, so they name people by their id; the names themselves can be erased.
"""

import hmac
import secrets
from datetime import datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from sidestep.errors import AccountNotFound, InputError
from sidestep.studies.people.accounts import change_values
from sidestep.studies.people.roles import EVERYWHERE, Grant, Rights, checked_roles
from sidestep.studies.recording import check_asked
from sidestep.studies.storage.events import digest, utc_now, written
from sidestep.studies.storage.ready import Ready
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.statements import NEW_GRANT
from sidestep.studies.storage.tables import CHANGES, GRANTS, LINKS
from sidestep.studies.values import checked_name, shown


class Link(NamedTuple):
    """The right to answer one question, once."""

    id: str
    digest: str
    study: str
    ticket: int
    label: str  # who it is for; it signs the answer
    created: str
    expires: str
    revoked: str | None

    def is_good(self, now: datetime) -> bool:
        """Whether it is valid: neither revoked nor expired."""
        return self.revoked is None and written(now) < self.expires


_sought: sa.BindParameter[str] = sa.bindparam("sought")
_HELD = Ready(sa.select(GRANTS.c.study, GRANTS.c.role).where(GRANTS.c.holder == _sought))
_HERE = Ready(
    sa.select(GRANTS).where(sa.or_(GRANTS.c.study == _sought, GRANTS.c.study == EVERYWHERE))
)
_LINK = Ready(sa.select(LINKS).where(LINKS.c.id == _sought))
_LINKS = Ready(sa.select(LINKS).where(LINKS.c.study == _sought).order_by(LINKS.c.created))


class Grants:
    """Who may do what, in which study."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def of(self, holder: str) -> Rights:
        """Everything that a person or a token may do."""
        rows = self._store.database.read(_HELD, {"sought": holder})
        return Rights((study, role) for study, role in rows)

    def here(self, study: str) -> list[Grant]:
        """The roles in a study, including roles for all studies."""
        rows = self._store.database.read(_HERE, {"sought": study})
        return sorted(Grant(*row) for row in rows)

    def check_study(self, study: str) -> None:
        """Raise if the study does not exist."""
        self._store.head(study)

    def give(self, grant: Grant, *, actor: str, by: str) -> None:
        """Give a role; the same again changes nothing. `actor` signs the entry, `by` is their id."""
        checked_roles([grant.role])
        if grant.role not in {
            role for study, role in self.of(grant.holder) if study == grant.study
        }:
            self._change("granted", grant, actor, by)

    def take(self, grant: Grant, *, actor: str, by: str) -> None:
        """Take a role back; one that is not held changes nothing."""
        if (grant.study, grant.role) in self.of(grant.holder):
            self._change("revoked", grant, actor, by)

    def add_link(
        self, study: str, ticket: int, label: str, *, expires: datetime, actor: str
    ) -> tuple[Link, str]:
        """A new link and its secret, which is not stored and cannot be shown again."""
        checked_name("who a link is for", label)
        until, now = written(expires), written(utc_now())
        if until <= now:
            raise InputError(f"the end of a link must be a time to come, got {until}")
        identity, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        link = Link(identity, digest(secret), study, ticket, label, now, until, None)
        with self._store.writing(study) as log:
            check_asked(log.about(ticket), ticket, study)
            log.also(sa.insert(LINKS), link._asdict())
            body = {"link": link.id, "ticket": ticket, "expires": until}
            log.append("granted", body=body, actor=actor)
        return link, f"{identity}-{secret}"

    def link_shown(self, text: str) -> Link | None:
        """The link with this secret, valid or expired."""
        identity, _, secret = text.partition("-")
        link = self.link(identity)
        known = link is not None and hmac.compare_digest(link.digest, digest(secret))
        return link if known else None

    def link(self, identity: str) -> Link | None:
        """The link of this id."""
        rows = self._store.database.read(_LINK, {"sought": identity})
        return next((Link(*row) for row in rows), None)

    def links(self, study: str) -> list[Link]:
        """The links of a study, the newest last."""
        return [Link(*row) for row in self._store.database.read(_LINKS, {"sought": study})]

    def revoke_link(self, study: str, identity: str, *, actor: str) -> None:
        """Revoke a link."""
        link = self.link(identity)
        if link is None or link.study != study:
            raise AccountNotFound(f"there is no link {shown(identity)} in study {study!r}")
        if link.revoked is None:
            with self._store.writing(study) as log:
                done = sa.update(LINKS).where(LINKS.c.id == identity)
                log.also(done.values(revoked=written(utc_now())), {})
                log.append("revoked", body={"link": identity, "ticket": link.ticket}, actor=actor)

    def _change(self, kind: str, grant: Grant, actor: str, by: str) -> None:
        """Change the row and write the entry about it, in one transaction."""
        if grant.study != EVERYWHERE:
            with self._store.writing(grant.study) as log:
                log.also(*self._statement(kind, grant))
                body = {"holder": grant.holder, "role": grant.role}
                log.append(kind, body=body, actor=actor)
            return
        with self._store.database.transaction(lambda _: None) as (connection, _):
            connection.execute(*self._statement(kind, grant))
            body = {kind: grant.holder, "role": grant.role}
            connection.execute(sa.insert(CHANGES), change_values(by, body))

    def _statement(self, kind: str, grant: Grant) -> tuple[Any, dict[str, str]]:
        if kind == "granted":
            dialect = self._store.database.engine.dialect.name
            return NEW_GRANT[dialect], grant._asdict()
        column = GRANTS.c
        gone = sa.delete(GRANTS).where(
            column.holder == grant.holder, column.study == grant.study, column.role == grant.role
        )
        return gone, {}
