"""Reads request bodies: with a limit on their size, and JSON without ambiguity."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sidestep.service.problems import MALFORMED, MEDIA, SLOW, TOO_LARGE, HttpProblem, problem

LONGEST_HEAD = 16 * 1024  # bytes
PATIENCE = 30.0  # seconds for a whole request to arrive
NOT_JSON = "the body must be JSON, with every key once and without NaN or infinity"
IMPORTING = "/import"  # end of the path of an import


class BodyLimit:
    """Reads the whole request before it is handled, and refuses one that is too long."""

    def __init__(self, app: ASGIApp, limit: int, import_limit: int) -> None:
        self._app, self._limit, self._import_limit = app, limit, import_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on once it is complete, or refuse it."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self._app(scope, receive, send)
            return
        limit = self._import_limit if scope["path"].endswith(IMPORTING) else self._limit
        try:
            async with asyncio.timeout(PATIENCE):  # wait_for would make a task of it
                body = await _read(receive, limit)
        except HttpProblem as refusal:
            await _refuse(refusal, scope, receive, send)
        except TimeoutError:
            late = HttpProblem(SLOW, f"the request must arrive within {PATIENCE:g} seconds")
            await _refuse(late, scope, receive, send)
        else:
            if body is not None:
                await self._app(scope, _again(body, receive), send)


async def _read(receive: Receive, limit: int) -> bytes | None:
    """The body; None if the caller disconnected."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > limit:
            raise HttpProblem(TOO_LARGE, f"a request must have at most {limit} bytes, got more")
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that first gives the body that was read, then later messages, such as a disconnect."""
    told = False

    async def read() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


async def _refuse(refusal: HttpProblem, scope: Scope, receive: Receive, send: Send) -> None:
    response = problem(refusal.kind, refusal.detail, {"Connection": "close"})
    await response(scope, receive, send)


class StrictRequest(Request):
    """A request whose JSON has no duplicate key, no NaN, no infinity, and the content type of JSON."""

    async def json(self) -> Any:
        """The body as JSON; otherwise an error that the framework passes on."""
        body = await self.body()
        try:
            return strict_json(body)
        except HttpProblem as refusal:
            raise json.JSONDecodeError(refusal.detail, "", 0) from None


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class StrictRoute(APIRoute):
    """A route that reads requests strictly; a blocking handler runs in one thread, to its end."""

    def get_route_handler(self) -> Handler:
        """The handler, given a strict request."""
        blocks = not iscoroutinefunction(self.endpoint)
        if blocks:
            _call_directly(self.dependant)
        handler = super().get_route_handler()
        takes_json = self.body_field is not None

        async def handle(request: Request) -> Response:
            if takes_json:
                check_media(request, "application/json")
            strict = StrictRequest(request.scope, request.receive)
            return await (
                run_in_threadpool(_finished, handler, strict) if blocks else handler(strict)
            )

        return handle


def _call_directly(dependant: Dependant) -> None:
    """Call a route and its dependencies in the same thread; the framework would use a thread for each."""
    for needed in dependant.dependencies:
        _call_directly(needed)
    if dependant.call is not None and not iscoroutinefunction(dependant.call):
        dependant.call = _direct(dependant.call)


def _direct(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    async def called(*args: Any, **named: Any) -> Any:
        return call(*args, **named)

    return called


def _finished(handler: Handler, request: Request) -> Response:
    """The response of a handler that never awaits anything: BodyLimit has read the whole request."""
    steps = handler(request)
    try:
        steps.send(None)
    except StopIteration as end:
        response: Response = end.value
        return response
    raise RuntimeError(f"{request.url.path} must not wait in its thread")


def check_media(request: Request, *kinds: str) -> str:
    """The content type; refused if it is not one of these."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in kinds:
        raise HttpProblem(MEDIA, f"Content-Type must be {' or '.join(kinds)}")
    return kind


def strict_json(body: bytes) -> Any:
    """JSON that every parser reads in the same way; HttpProblem otherwise."""
    try:
        return json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise HttpProblem(MALFORMED, NOT_JSON) from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)
