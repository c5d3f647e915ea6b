"""Authentication: the user of this machine, a person with a session, or a program with a token.

On loopback, no login is needed as long as there is neither a person nor a token. Otherwise, and on every
other host, everybody has to log in. To a caller without a role in a study, the study does not exist.
"""

import time
from typing import NamedTuple

from fastapi import Request
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.types import ASGIApp, Receive, Scope, Send

from sidestep.errors import StudyNotFound
from sidestep.service.desk import Desk, OpenStudy
from sidestep.service.problems import FORBIDDEN, MISDIRECTED, UNAUTHENTICATED, HttpProblem, problem
from sidestep.service.settings import Settings
from sidestep.studies.people.accounts import Accounts, Person
from sidestep.studies.people.grants import Grants
from sidestep.studies.people.roles import ADMIN, ALL_RIGHTS, EVERYWHERE, READ, Rights
from sidestep.studies.storage.events import utc_now
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.study import user_of_the_machine

SESSION = "sidestep_session"
LOCAL, PERSON, TOKEN = "local", "person", "token"
LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
FRESH = 1.0  # seconds for which the answer "there is nobody yet" is cached
AHEAD = 60.0  # seconds that the clock of another server may be ahead of ours


class Caller(NamedTuple):
    """Whoever sent the request, and what they may do."""

    kind: str
    id: str
    name: str
    rights: Rights

    def signs(self, actor: str | None = None) -> str:
        """The author in the record: a program may name somebody, a person always signs as themselves."""
        if actor is None or self.kind == PERSON:
            return self.name
        return actor if self.kind == LOCAL else f"{self.name}: {actor}"


class Visit(NamedTuple):
    """A caller who has the required roles in a study."""

    caller: Caller
    study: OpenStudy


class Door:
    """Decides who may use the service."""

    def __init__(self, store: SqlStore, settings: Settings) -> None:
        self.settings = settings
        self.accounts, self.grants = Accounts(store), Grants(store)
        secret = self.accounts.secret("cookies")
        self.signer = URLSafeTimedSerializer(secret, salt="session")
        self.forms_key = f"forms {secret}".encode()
        self._nobody_until = 0.0
        self._here = Caller(LOCAL, LOCAL, user_of_the_machine(), ALL_RIGHTS)

    @property
    def needs_login(self) -> bool:
        """Whether callers have to log in."""
        if not self.settings.is_local:
            return True
        if time.monotonic() < self._nobody_until:
            return False
        if self.accounts.anybody():
            return True
        self._nobody_until = time.monotonic() + FRESH
        return False

    def caller(self, request: Request) -> Caller | None:
        """The caller of a request; None without valid credentials."""
        given = request.headers.get("authorization", "")
        if given:
            return self._token(given)
        if not self.needs_login:
            check_host(request)
            return self._here
        person = self.person(request)
        if person is None:
            return None
        return Caller(PERSON, person.id, person.name, self.grants.of(person.id))

    def person(self, request: Request) -> Person | None:
        """The person whose session this is."""
        try:
            session, began = self.signer.loads(
                request.cookies.get(SESSION, ""), return_timestamp=True
            )
            person = self.accounts.person(session["person"])
        except (BadData, KeyError, TypeError):
            return None
        age = (utc_now() - began).total_seconds()
        valid = -AHEAD <= age <= 3600 * self.settings.session_hours
        return person if valid and person and person.stamp == session.get("stamp") else None

    def session(self, person: Person) -> str:
        """A session cookie for this person; invalid once they log out or the password changes."""
        return str(self.signer.dumps({"person": person.id, "stamp": person.stamp}))

    def _token(self, given: str) -> Caller | None:
        scheme, _, text = given.partition(" ")
        token = self.accounts.token_shown(text.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            return None
        return Caller(TOKEN, token.id, token.name, self.grants.of(token.id))


def check_host(request: Request) -> None:
    """Without login, refuse host names other than this machine's (against DNS rebinding)."""
    named = request.app.state.settings.names  # these were checked before
    if not named and host_of(request) not in LOOPBACK:
        raise HttpProblem(MISDIRECTED, "without login only localhost is answered, got another host")


class Names:
    """Accepts only the host names that were set, if any; /health under any name."""

    def __init__(self, app: ASGIApp, names: tuple[str, ...]) -> None:
        self._app, self._names = app, tuple(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on, or refuse it."""
        bound = scope["type"] == "http" and scope["path"] not in ("/health", "/ready")
        if bound and self._names and host_of(Request(scope)) not in self._names:
            refusal = problem(MISDIRECTED, "only the names of this service are answered")
            await refusal(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def host_of(request: Request) -> str:
    """The host name of a request, without its port."""
    host = request.headers.get("host", "").lower()
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host


def known_caller(request: Request) -> Caller:
    """The caller, or 401."""
    door: Door = request.app.state.door
    caller = door.caller(request)
    if caller is None:
        raise HttpProblem(
            UNAUTHENTICATED,
            "a token (Authorization: Bearer ss_...) or a session is needed",
            {"WWW-Authenticate": "Bearer"},
        )
    if caller.kind != TOKEN:
        check_origin(request)
    return caller


def check_origin(request: Request) -> None:
    """Refuse changes requested by a page of another site; browsers send the origin of a request."""
    elsewhere = request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
    if elsewhere and request.method not in ("GET", "HEAD"):
        raise HttpProblem(FORBIDDEN, "a page of another site must not change anything here")


class Needs:
    """A dependency: the caller has these roles in the study of the address."""

    def __init__(self, *roles: str) -> None:
        self.roles = roles

    def __call__(self, request: Request, name: str) -> Visit:
        """The visit; 401, 404 or 403 if it is not allowed."""
        caller, desk = known_caller(request), request.app.state.desk
        return Visit(caller, allowed(desk, caller, self.roles, name))


def known_owner(request: Request) -> Caller:
    """The caller, who has the role admin in all studies; 401 or 403 otherwise."""
    caller = known_caller(request)
    if not caller.rights.allow(ADMIN, EVERYWHERE):
        raise HttpProblem(FORBIDDEN, f"this needs the role {ADMIN!r} in all studies")
    return caller


def allowed(desk: Desk, caller: Caller, roles: tuple[str, ...], name: str) -> OpenStudy:
    """The study, if the caller has the roles; without any role, it does not exist."""
    if not caller.rights.allow(READ, name):
        raise StudyNotFound(f"there is no study {name!r}")  # and no hint at others
    study = desk.study(name)
    for role in roles:
        if not caller.rights.allow(role, name):
            raise HttpProblem(FORBIDDEN, f"this needs the role {role!r} in study {name!r}")
    return study
