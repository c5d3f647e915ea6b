"""Server-sent events: every entry of a record as it is written, here or by another replica."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from sidestep.errors import SidestepError
from sidestep.service.auth import Visit, allowed, known_caller
from sidestep.service.bodies import StrictRoute
from sidestep.service.metrics import Metrics
from sidestep.service.problems import TOO_MANY, HttpProblem
from sidestep.service.routes import Readers, problems
from sidestep.studies.people.roles import READ
from sidestep.studies.storage.exchange import event_to_json

LOOK = 1.0  # seconds between two looks at the record
BEAT = 15.0  # seconds without entries after which a line is sent to keep the connection alive
MOST = 100  # entries at once

streams = APIRouter(prefix="/v1", route_class=StrictRoute)


class Listeners:
    """Number of open event streams, and whether the server is about to stop."""

    def __init__(self, most: int, metrics: Metrics) -> None:
        self._most, self._metrics, self._now = most, metrics, 0
        self.stopping = asyncio.Event()

    def enter(self) -> None:
        """One more, or 429."""
        if self._now >= self._most:
            raise HttpProblem(
                TOO_MANY, "too many listeners; try again later", {"Retry-After": "10"}
            )
        self._count(1)

    def leave(self) -> None:
        """One less."""
        self._count(-1)

    def _count(self, change: int) -> None:
        self._now += change
        self._metrics.streams.set(self._now)


@streams.get(
    "/studies/{name}/events",
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events"},
        **problems(429),
    },
    response_class=StreamingResponse,
    summary="Entries as they are written",
)
async def events(
    request: Request,
    visit: Readers,
    after: Annotated[int | None, Query(ge=0, le=2**53)] = None,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=20)] = None,
) -> StreamingResponse:
    """Entries after `after` (or Last-Event-ID, or now), each with its seq as id and its kind as event."""
    listeners: Listeners = request.app.state.listeners
    begin = min(int(last), 2**53) if last and last.isdecimal() else after
    if begin is None:
        begin = (await run_in_threadpool(visit.study.head)).seq
    listeners.enter()
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    told = _told(request, visit, begin, listeners)
    return StreamingResponse(told, media_type="text/event-stream", headers=headers)


async def _told(
    request: Request, visit: Visit, after: int, listeners: Listeners
) -> AsyncIterator[str]:
    silence = 0.0
    try:
        yield "retry: 2000\n\n"
        while not listeners.stopping.is_set() and not await request.is_disconnected():
            lines, after = await run_in_threadpool(_look, request, visit.study.name, after)
            for line in lines:
                yield line
            silence = 0.0 if lines else silence + LOOK
            if silence >= BEAT:
                silence = 0.0
                yield ": here\n\n"
            await _nap(listeners.stopping)
    except (HttpProblem, SidestepError):
        return  # access ended, or the storage is not available: the client will reconnect
    finally:
        listeners.leave()


def _look(request: Request, name: str, after: int) -> tuple[list[str], int]:
    """New entries; access is checked every time, since it may end."""
    study = allowed(request.app.state.desk, known_caller(request), (READ,), name)
    found = study.verbs.history(after, MOST)
    lines = [
        f"id: {event.seq}\nevent: {event.kind}\n"
        f"data: {json.dumps(event_to_json(event), ensure_ascii=False)}\n\n"
        for event in found
    ]
    return lines, found[-1].seq if found else after


async def _nap(stopping: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stopping.wait(), LOOK)
    except TimeoutError:
        return
