"""What went wrong, as RFC 9457 has it: one table from our exceptions to a status and a name."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from fastapi.responses import JSONResponse

from sidestep import errors

MEDIA_TYPE = "application/problem+json"
LONGEST_PLACE = 60  # characters of the caller's own words that are repeated


_BRANCH = re.compile(r"(constrained-|function-|dict\[|list\[|tuple\[|(float|int|str|bool)$)")


class Kind(NamedTuple):
    """A kind of problem: its status, its name (the end of its `type`), its title."""

    status: int
    name: str
    title: str


KINDS: dict[type[errors.SidestepError], Kind] = {
    errors.InputError: Kind(422, "input", "What was sent cannot be used"),
    errors.UnknownNameError: Kind(422, "unknown-name", "There is nothing of that name"),
    errors.NotFoundError: Kind(404, "not-found", "There is nothing of that name"),
    errors.StudyNotFound: Kind(404, "study-not-found", "There is no such study"),
    errors.TicketNotFound: Kind(404, "ticket-not-found", "There is no such question"),
    errors.AccountNotFound: Kind(404, "account-not-found", "There is no such person or token"),
    errors.ConflictError: Kind(409, "conflict", "It contradicts what is on record"),
    errors.StudyExists: Kind(409, "study-exists", "There is a study of that name"),
    errors.AccountExists: Kind(409, "account-exists", "There is a person of that name"),
    errors.AlreadyAnswered: Kind(409, "already-answered", "The question has an answer"),
    errors.KeyReused: Kind(409, "key-reused", "The key belongs to another request"),
    errors.StudyClosed: Kind(409, "study-closed", "The study is closed"),
    errors.StorageError: Kind(503, "storage", "The storage cannot be used"),
    errors.StorageBusy: Kind(503, "storage-busy", "The storage is busy"),
    errors.StorageFull: Kind(507, "storage-full", "The disk is full"),
    errors.StorageLost: Kind(503, "storage-lost", "The storage went away"),
    errors.SchemaError: Kind(503, "schema", "The storage is of another version"),
    errors.RecordError: Kind(500, "record", "The record is not as it was written"),
    errors.CoreSetError: Kind(500, "core-set", "The policy came to no end"),
    errors.ResultsError: Kind(500, "results", "Results cannot be written"),
    errors.ExecutorError: Kind(500, "executor", "There is nobody to run it"),
    errors.SidestepError: Kind(500, "sidestep", "Something went wrong"),
}

UNAUTHENTICATED = Kind(401, "unauthenticated", "Who are you?")
FORBIDDEN = Kind(403, "forbidden", "This is not yours to do")
NO_SUCH_PAGE = Kind(404, "no-such-address", "There is nothing at this address")
SLOW = Kind(408, "slow", "The request took too long to arrive")
TOO_LARGE = Kind(413, "too-large", "The request is too large")
MEDIA = Kind(415, "media-type", "This kind of content is not understood")
MALFORMED = Kind(400, "malformed", "The request cannot be read")
MISDIRECTED = Kind(421, "misdirected", "This host name is not answered here")
TOO_MANY = Kind(429, "too-many", "Too many at once")


class HttpProblem(Exception):  # noqa: N818  # RFC 9457's word
    """A refusal that has nothing to do with studies: who is asking, how, or how much."""

    def __init__(self, kind: Kind, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.headers = kind, detail, dict(headers or {})


def kind_of(error: errors.SidestepError) -> Kind:
    """What an exception of ours is called over HTTP."""
    return next(KINDS[each] for each in type(error).__mro__ if each in KINDS)


def problem(
    kind: Kind, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """The response that says so."""
    body = {"type": f"/problems/{kind.name}", "title": kind.title, "status": kind.status}
    waits = {"Retry-After": "1"} if kind.status == 503 else {}
    return JSONResponse(
        {**body, "detail": detail, **more},
        status_code=kind.status,
        headers={**waits, **(headers or {})},
        media_type=MEDIA_TYPE,
    )


def places(found: Sequence[Any]) -> list[dict[str, str]]:
    """Where a request is wrong and what it must be; never what came, which may be a secret."""
    said: dict[str, list[str]] = {}
    for each in found[:20]:
        sentences = said.setdefault(_place(each["loc"]), [])
        sentences.append(_sentence(each["msg"]))
    return [
        {"where": where, "sentence": " or ".join(dict.fromkeys(sentences))[:300]}
        for where, sentences in said.items()
    ]


def plain_kind(status: int) -> Kind:
    """A kind for a status that the framework came up with."""
    if status == 404:
        return NO_SUCH_PAGE
    phrase = HTTPStatus(status).phrase
    return Kind(status, phrase.lower().replace(" ", "-"), phrase)


def _place(loc: tuple[Any, ...]) -> str:
    """Names and numbers, without what the checker calls its own branches."""
    parts = (str(part) for part in loc)
    return ".".join(part for part in parts if not _BRANCH.match(part))[:LONGEST_PLACE]


def _sentence(said: str) -> str:
    return said.replace("Input should be", "must be").replace("Value error, ", "")[:200]
