"""A service with people and studies in it, and ways to talk to it."""

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx

from clinic import clinic
from running import PASSWORD, Running
from sidestep.service.auth import SESSION
from sidestep.service.pages.shell import BROWSER, forms_secret
from sidestep.service.passwords import hashed
from sidestep.studies.people.roles import EVERYWHERE, ROLES, Grant

PLAUSIBLE = {  # a result of every outcome of the clinic, as a form sends it
    "systolic pressure": {"value__0": "140"},
    "potassium": {"value__1": "4.1"},
    "sodium": {"value__2": "139"},
    "heart rate": {"value__3": "70"},
}
NOBODY, STRANGER, OWNER = "nobody", "stranger", "owner"
CALLERS = (NOBODY, STRANGER, *ROLES, OWNER)


@dataclass
class House:
    """A service with two studies, somebody of every role in the first, and a stranger to it."""

    running: Running
    people: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    def as_program(self, caller: str) -> httpx.Client:
        """What a program does with the token of a caller."""
        token = self.tokens.get(caller)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.running.url, headers=headers, timeout=30)

    def as_person(self, caller: str) -> "Browser":
        """What a person does in a browser."""
        person = self.people.get(caller)
        session = self.running.door.session(person) if person else None
        return Browser(self.running, session)


class Browser:
    """A browser without script: cookies, and forms that send back what their page gave them."""

    def __init__(self, running: Running, session: str | None = None) -> None:
        self.running, cookies = running, {BROWSER: "a-browser"}
        if session:
            cookies[SESSION] = session
        self.http = httpx.Client(base_url=running.url, cookies=cookies, timeout=60)

    def get(self, path: str) -> httpx.Response:
        return self.http.get(path)

    def post(self, path: str, follow: bool = True, **fields: Any) -> httpx.Response:
        data = {name.replace("__", "."): value for name, value in fields.items()}
        data.setdefault("csrf", forms_secret(self.running.door, "a-browser"))
        return self.http.post(path, data=data, follow_redirects=follow)

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()


@cache
def hashed_once() -> str:
    """The password of everybody, hashed: that takes a while, as it should."""
    return hashed(PASSWORD)


def furnish(running: Running) -> House:
    """Add a person and a token for every role, and ask a first question."""
    for name in ("bp", "other"):
        clinic(running.store, name).ask(actor="somebody")
    house, door = House(running), running.door
    password = hashed_once()
    for caller in CALLERS[1:]:
        person = door.accounts.add_person(caller, password, actor="test")
        token, shown = door.accounts.add_token(caller, actor="test")
        place = {OWNER: EVERYWHERE, STRANGER: "other"}.get(caller, "bp")
        role = "admin" if caller in (OWNER, STRANGER) else caller
        for holder in (person.id, token.id):
            door.grants.give(Grant(holder, place, role), actor="test", by="test")
        house.people[caller], house.tokens[caller] = person, shown
    return house


def text_of(response: httpx.Response) -> str:
    """What a reader sees of a page: its text, spaces in one."""
    plain = re.sub(r"<[^>]+>", " ", response.text)
    for entity, sign in (
        ("&#39;", "'"),
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#34;", '"'),
    ):
        plain = plain.replace(entity, sign)
    return " ".join(plain.split())
