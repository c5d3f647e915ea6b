"""The frame of a page: who is logged in, the CSRF token of its forms, and static files."""

import hmac
import secrets
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from sidestep.service.auth import Caller, Door
from sidestep.service.pages.views import capital, day_text, example_text, plain_typed
from sidestep.studies.cards.words import counted
from sidestep.studies.storage.events import CODE

BROWSER = "sidestep_browser"
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}

_PAGES = Environment(
    loader=PackageLoader("sidestep.service.pages", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def read_templates() -> int:
    """Compile every template before the first request; returns their number."""
    return len([_PAGES.get_template(name) for name in _PAGES.list_templates(extensions=["html"])])


def page(
    request: Request,
    template: str,
    context: Mapping[str, Any] | None = None,
    status: int = 200,
    *,
    caller: Caller | None = None,
) -> HTMLResponse:
    """A template with the values common to all pages; the CSRF token is bound to this browser."""
    browser = request.cookies.get(BROWSER) or secrets.token_urlsafe(24)
    state = request.app.state
    text = _PAGES.get_template(template).render(
        **(context or {}),
        caller=caller,
        csrf=lambda: forms_secret(state.door, browser),
        key=lambda: secrets.token_hex(16),
        version=CODE,
    )
    response = HTMLResponse(text, status)
    if BROWSER not in request.cookies:
        set_cookie(response, state.door, BROWSER, browser)
    return response


def set_cookie(
    response: Response, door: Door, name: str, value: str, age: int | None = None
) -> None:
    """A cookie that no script reads and no other site sends."""
    response.set_cookie(
        name, value, max_age=age, httponly=True, samesite="strict", secure=door.settings.https
    )


def forms_secret(door: Door, browser: str) -> str:
    """The CSRF token of a form; different every time, so that compression does not reveal it."""
    nonce = secrets.token_hex(8)
    return f"{nonce}.{_signed(door, nonce, browser)}"


def is_forms_secret(door: Door, browser: str, given: str) -> bool:
    """Whether a form came from one of our pages in this browser."""
    nonce, _, signature = given.partition(".")
    return bool(browser) and hmac.compare_digest(signature, _signed(door, nonce, browser))


def _signed(door: Door, nonce: str, browser: str) -> str:
    text = f"{nonce} {browser}".encode()
    return hmac.new(door.forms_key, text, sha256).hexdigest()


def go(path: str) -> RedirectResponse:
    """A redirect after a form, so that a reload does not send the form again."""
    return RedirectResponse(path, 303)


def study_path(name: str, *more: object) -> str:
    """The address of a study's page, or of something below it."""
    return "/".join(["/studies", quote(name, safe=""), *map(str, more)])


def attachment(name: str) -> str:
    """The header of a file to be saved under this name, in any script."""
    plain = "".join(each if each.isascii() and each not in '"\\' else "_" for each in name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def of_question(question: Mapping[str, Any] | None, more: str = "") -> str:
    """The end of an address: which question the page shows, as a recommendation is for its context."""
    said = [f"question={question['id']}"] if question else []
    parts = [*said, *([more] if more else [])]
    return f"?{'&'.join(parts)}" if parts else ""


@cache
def file(name: str) -> tuple[bytes, str, str]:
    """A static file: its content, type and digest."""
    found = resources.files("sidestep.service.pages").joinpath("static", name)
    content = found.read_bytes()
    kind = KINDS[name.rpartition(".")[2]]
    return content, kind, sha256(content).hexdigest()[:12]


@cache
def names_of_files() -> frozenset[str]:
    """The files there are."""
    folder = resources.files("sidestep.service.pages").joinpath("static")
    return frozenset(found.name for found in folder.iterdir())


def file_path(name: str) -> str:
    """The address of a static file, which changes with its content."""
    return f"/static/{name}?v={file(name)[2]}"


PACE = {"again": 10, "news": 5}  # seconds until a page tries to save again, or looks for news
_PAGES.globals |= {"file": file_path, "study_path": study_path, "of_question": of_question}
_PAGES.globals |= {"pace": PACE}
_PAGES.filters |= {"capital": capital, "day": day_text, "counted": counted}
_PAGES.filters |= {"plain": plain_typed, "example": example_text}
