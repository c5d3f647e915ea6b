"""Writes responses: a card as JSON or as text, with ETags."""

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fastapi import Request, Response

from sidestep.errors import InputError
from sidestep.studies.cards.card import Card
from sidestep.studies.cards.card_json import card_to_json
from sidestep.studies.storage.events import digest, written
from sidestep.studies.storage.log import Head

TEXT, JSON = "text/plain", "application/json"


def card_reply(
    request: Request, card: Card, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The card as JSON with numbers and words, or as text if the caller accepts text."""
    if request.headers.get("accept", "").startswith(TEXT):
        text = f"{card.text(100)}\n"
        return Response(text, status, media_type=f"{TEXT}; charset=utf-8", headers=headers)
    return json_reply({**card.data, "card": card_to_json(card)}, status, headers)


def json_reply(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Plain JSON, without NaN."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Response(text.encode(), status, media_type=JSON, headers=dict(headers or {}))


def tagged(request: Request, response: Response) -> Response:
    """The response with its ETag; 304 if the caller has it already."""
    text = bytes(response.body).decode()
    tag = digest(text)[:32]
    return not_modified(request, tag) or with_tag(response, tag)


def tag_of(request: Request, head: Head, *more: object) -> str:
    """ETag of a response that depends on the record and on the request."""
    asked = f"{request.url.query} {request.headers.get('accept', '')}"
    return digest(" ".join((head.hash, asked, *map(str, more))))[:32]


def not_modified(request: Request, tag: str) -> Response | None:
    """304 if the caller's copy is still valid, else None."""
    known = request.headers.get("if-none-match", "")
    if f'"{tag}"' not in (each.strip().removeprefix("W/") for each in known.split(",")):
        return None
    return with_tag(Response(status_code=304), tag)


def with_tag(response: Response, tag: str) -> Response:
    """The response with this ETag."""
    response.headers["ETag"] = f'"{tag}"'
    response.headers["Cache-Control"] = "private, no-cache"
    return response


def cursor_of(head: Head) -> str:
    """Cursor at the end of a page of studies, for the parameter `after`."""
    place = json.dumps([head.status, written(head.updated), head.name])
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def head_at(cursor: str) -> Head:
    """The head at a cursor; it has only the fields by which a list is ordered."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        status, updated, name = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        return Head(str(name), str(status), {}, 0, "", datetime.fromisoformat(updated))
    except (ValueError, TypeError):
        raise InputError("after must be what `next` said, got something else") from None
