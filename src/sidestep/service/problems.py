"""Problem responses (RFC 9457); kinds.py has the names of our exceptions."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

from sidestep.errors import AccessError
from sidestep.service.kinds import KINDS, Kind
from sidestep.service.schemas import NOT_TEXT
from sidestep.service.wire import KEY_PATTERN, KEY_SENTENCE

MEDIA_TYPE = "application/problem+json"
LONGEST_PLACE = 60


_OURS = re.compile(r"[a-z_]{1,20}|\d{1,6}")  # anything else may be the caller's own words
_BRANCH = re.compile(
    r"(constrained-|function-|dict\[|list\[|tuple\[|(float|int|str|bool|ReportIn)$)"
)
_WORDS = (
    ("Input should be", "must be"),
    ("Value error, ", ""),
    (f"String should match pattern '{KEY_PATTERN}'", KEY_SENTENCE),
    ("String should have", "must have"),
    ("a valid dictionary or instance of", "an object in braces for"),
    ("a valid dictionary or object to extract fields from", "an object in braces"),
    ("a valid dictionary", "an object in braces"),
    ("a valid list", "a list in square brackets"),
    ("a valid number", "a number"),
    ("a valid integer", "a whole number"),
    ("a valid string", "text in quotes"),
    ("a valid boolean", "true or false"),
    ("Extra inputs are not permitted", "is not known here"),
    ("Field required", "is missing"),
)


UNAUTHENTICATED = Kind(401, "unauthenticated", "Who are you?")
FORBIDDEN = KINDS[AccessError]
NO_SUCH_PAGE = Kind(404, "no-such-address", "There is nothing at this address")
SLOW = Kind(408, "slow", "The request took too long to arrive")
TOO_LARGE = Kind(413, "too-large", "The request is too large")
MEDIA = Kind(415, "media-type", "This kind of content is not understood")
MALFORMED = Kind(400, "malformed", "The request cannot be read")
MISDIRECTED = Kind(421, "misdirected", "This host name is not answered here")
TOO_MANY = Kind(429, "too-many", "Too many at once")


class HttpProblem(Exception):  # noqa: N818  # RFC 9457's word
    """A refusal that is not about studies: authentication, form or size of a request."""

    def __init__(self, kind: Kind, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.headers = kind, detail, dict(headers or {})


def problem(
    kind: Kind, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """The problem as a response."""
    body = {"type": f"/problems/{kind.name}", "title": kind.title, "status": kind.status}
    waits = {"Retry-After": "1"} if kind.status == 503 else {}
    return JSONResponse(
        {**body, "detail": detail, **more},
        status_code=kind.status,
        headers={**waits, **(headers or {})},
        media_type=MEDIA_TYPE,
    )


def places(found: Sequence[Any]) -> list[dict[str, str]]:
    """Where a request is wrong and what is expected; never the value itself, which may be a secret."""
    said: dict[str, list[str]] = {}
    for each in _without_branches(found)[:20]:
        sentences = said.setdefault(_place(each["loc"]), [])
        sentences.append(_sentence(each["msg"]))
    return [
        {"where": where, "sentence": " or ".join(dict.fromkeys(sentences))[:300]}
        for where, sentences in said.items()
    ]


def _without_branches(found: Sequence[Any]) -> list[Any]:
    """What is wrong; where text was sent for a number, not what else could have been there."""
    texts = [_steps(each) for each in found if NOT_TEXT in each["msg"]]

    def beside(each: Any) -> bool:
        here = _steps(each)
        return NOT_TEXT not in each["msg"] and any(text[: len(here)] == here for text in texts)

    return [each for each in found if not beside(each)]


def _steps(each: Any) -> list[str]:
    return [str(part) for part in each["loc"] if not _BRANCH.match(str(part))]


def plain_kind(status: int) -> Kind:
    """The kind for a status that the framework returned."""
    if status == 404:
        return NO_SUCH_PAGE
    phrase = HTTPStatus(status).phrase
    return Kind(status, phrase.lower().replace(" ", "-"), phrase)


def _place(loc: tuple[Any, ...]) -> str:
    """The path to a wrong value: our names and numbers, without the validator's internal names."""
    if loc[:1] == ("header",):
        return str(loc[-1])  # declared by a route, so not the caller's words
    parts = (str(part) for part in loc)
    kept = (part for part in parts if not _BRANCH.match(part))
    return ".".join(part if _OURS.fullmatch(part) else "…" for part in kept)[:LONGEST_PLACE]


def _sentence(said: str) -> str:
    for theirs, ours in _WORDS:
        said = said.replace(theirs, ours)
    return said[:200]
