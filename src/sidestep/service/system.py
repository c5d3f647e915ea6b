"""For those who run it: is it alive, can it work, what has it counted."""

from fastapi import APIRouter, Request, Response

from sidestep.service.kinds import Kind
from sidestep.service.problems import problem
from sidestep.service.replies import json_reply
from sidestep.service.routes import Owner, problems

NOT_READY = Kind(503, "not-ready", "It cannot work now")

system = APIRouter()


@system.get("/health", summary="Alive?", responses={200: {"description": "It is"}})
async def health() -> Response:
    """It answers: do not restart it."""
    return json_reply({"alive": True})


@system.get("/ready", summary="Ready?", responses={200: {"description": "It is"}, **problems()})
def ready(request: Request) -> Response:
    """It can reach its storage and is not about to stop: send it work."""
    if request.app.state.listeners.stopping.is_set():
        return problem(NOT_READY, "it is about to stop")
    store = request.app.state.desk.store
    store.database.check_writing()
    store.list(limit=1)
    return json_reply({"ready": True})


@system.get(
    "/metrics",
    summary="Counted",
    responses={200: {"content": {"text/plain": {}}, "description": "Prometheus"}, **problems()},
)
def metrics(request: Request, caller: Owner) -> Response:
    """Everything that is counted, as Prometheus reads it."""
    state = request.app.state
    state.metrics.studies.set(len(state.desk))
    return Response(state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
