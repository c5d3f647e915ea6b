"""Reads request bodies: with a limit on their size, and JSON without ambiguity."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from inspect import iscoroutinefunction
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sidestep.service.problems import MALFORMED, MEDIA, SLOW, TOO_LARGE, HttpProblem, problem

LONGEST_HEAD = 16 * 1024  # bytes
PATIENCE = 30.0  # seconds for a whole request to arrive
NOT_JSON = "the body must be JSON, with every key once and without NaN or infinity"
IMPORTING = "/import"  # how the address of an import ends
NO_BODY = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}
Faults = list[Any]  # of a request, as the framework says them


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


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class StrictRoute(APIRoute):
    """A route that reads requests strictly; one that blocks is worked on in one thread, to its end.

    The framework describes it. What it is called with is worked out here: the framework would go through
    coroutines, and for every dependency through another thread.
    """

    def get_route_handler(self) -> Handler:
        """The handler of one that blocks; the framework's where it does not."""
        if iscoroutinefunction(self.endpoint):
            return super().get_route_handler()
        takes_json, takes_body = self.body_field is not None, "POST" in (self.methods or ())

        async def handle(request: Request) -> Response:
            if takes_json:
                check_media(request, "application/json")
            if takes_body:
                request.state.body = await request.body()
            return await run_in_threadpool(_answered, self.dependant, request)

        return handle


def _answered(route: Dependant, request: Request) -> Response:
    """What a route answers; RequestValidationError where it cannot be called."""
    content = strict_json(request.state.body) if route.body_params and request.state.body else None
    arguments, wrong = _arguments(route, request, content)
    if wrong:
        raise RequestValidationError(wrong)
    response: Response = route.call(**arguments)  # type: ignore[misc]
    return response


def _arguments(called: Dependant, request: Request, content: Any) -> tuple[dict[str, Any], Faults]:
    """What a route or a dependency is called with, and what is wrong with that."""
    arguments: dict[str, Any] = {}
    wrong: Faults = []
    for needed in called.dependencies:
        found, faults = _arguments(needed, request, content)
        wrong += faults
        if not faults:
            arguments[str(needed.name)] = needed.call(**found)  # type: ignore[misc]
    for fields, given in (
        (called.path_params, request.path_params),
        (called.query_params, request.query_params),
        (called.header_params, request.headers),
    ):
        found, faults = request_params_to_args(fields, given)
        arguments |= found
        wrong += faults
    for field in called.body_params:
        if request.state.body:
            arguments[field.name], faults = field.validate(content, arguments, loc=("body",))
            wrong += faults or []
        else:
            wrong.append(NO_BODY)
    if called.request_param_name:
        arguments[called.request_param_name] = request
    return arguments, wrong


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
