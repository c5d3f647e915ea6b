"""The app: store, desk, login, routes, pages, and the middleware in front of them."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from sidestep.errors import InputError, SidestepError
from sidestep.service import answers
from sidestep.service.auth import Door, Names
from sidestep.service.bodies import BodyLimit
from sidestep.service.desk import Desk
from sidestep.service.importing import imports
from sidestep.service.kinds import KINDS, Kind, kind_of
from sidestep.service.metrics import Metrics
from sidestep.service.notices import Notices
from sidestep.service.pages.answering import answering
from sidestep.service.pages.errors import files, is_for_people, problem_page
from sidestep.service.pages.forms import typed
from sidestep.service.pages.link import link_pages
from sidestep.service.pages.login import login_pages
from sidestep.service.pages.people import people_pages
from sidestep.service.pages.record import record_pages
from sidestep.service.pages.studies import list_pages
from sidestep.service.pages.study import study_pages
from sidestep.service.pages.visits import visit_pages
from sidestep.service.passwords import Guard
from sidestep.service.problems import HttpProblem, places, plain_kind, problem
from sidestep.service.routes import api
from sidestep.service.settings import Settings
from sidestep.service.streams import Listeners, streams
from sidestep.service.system import system
from sidestep.service.tokens import tokens
from sidestep.service.watch import LOGGER, Watch
from sidestep.service.writers import WriterLimit
from sidestep.studies.book import Question
from sidestep.studies.storage.events import CODE
from sidestep.studies.storage.faults import translated
from sidestep.studies.storage.groups import Groups
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.study import Study

PAGES = (
    list_pages,
    study_pages,
    visit_pages,
    answering,
    record_pages,
    people_pages,
    link_pages,
    login_pages,
    files,
)
AGAIN = 0.5  # seconds for which an entry is tried again; after that, whoever sent it does so
DESCRIPTION = (
    "Ask what to try next and which outcome to measure, tell what came of it, see what is best; on a "
    "record that stays. Send no names of patients."
)


Laboratory = Callable[[Study, Question], float]  # for the demo: simulates the result of a question


def create_app(
    settings: Settings, store: SqlStore, laboratory: Laboratory | None = None
) -> FastAPI:
    """The service on a store; the caller closes the store."""
    app = FastAPI(
        title="sidestep",
        version=CODE,
        summary="Move one outcome and leave the others alone.",
        description=DESCRIPTION,
        lifespan=_life,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    state, metrics = app.state, Metrics()
    state.settings, state.metrics, state.laboratory = settings, metrics, laboratory
    groups = Groups(watch=metrics.group.observe, patience=AGAIN)
    notices = Notices(settings, metrics)
    state.desk = Desk(store, groups, notices)
    state.door = Door(store, settings)
    state.listeners = Listeners(settings.streams, metrics)
    state.guard = Guard()
    for router in (api, imports, streams, tokens, system, *PAGES):
        app.router.routes.extend(router.routes)  # as they are, so that the app can list them
    _handle(app)
    _describe(app)
    app.add_middleware(GZipMiddleware, minimum_size=1000, compresslevel=6)
    app.add_middleware(WriterLimit, threads=settings.threads)
    app.add_middleware(BodyLimit, limit=settings.body_limit, import_limit=settings.import_limit)
    app.add_middleware(Names, names=settings.names)
    app.add_middleware(Watch, metrics=metrics)
    return app


@asynccontextmanager
async def _life(app: FastAPI) -> AsyncIterator[None]:
    anyio.to_thread.current_default_thread_limiter().total_tokens = app.state.settings.threads
    yield
    app.state.listeners.stopping.set()
    await anyio.to_thread.run_sync(app.state.desk.close)


def _handle(app: FastAPI) -> None:
    """Turn every exception into a problem response; unexpected ones are handled in watch.py."""
    app.add_exception_handler(SidestepError, _ours)
    app.add_exception_handler(SQLAlchemyError, _of_database)
    app.add_exception_handler(HttpProblem, _of_http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_framework)


async def _answer(
    request: Request, kind: Kind, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """The problem as JSON, or as a page if a person is asking."""
    if is_for_people(request):
        return problem_page(request, kind, detail, await typed(request))
    return problem(kind, detail, headers, **more)


async def _ours(request: Request, error: Exception) -> Response:
    kind = kind_of(error)  # type: ignore[arg-type]
    if kind.status >= 500:
        LOGGER.error("a storage problem", exc_info=error)
    return await _answer(request, kind, str(error))


async def _of_database(request: Request, error: Exception) -> Response:
    where = request.app.state.desk.store.database.where
    return await _ours(request, translated(error, where))


async def _of_http(request: Request, error: Exception) -> Response:
    refusal: HttpProblem = error  # type: ignore[assignment]
    return await _answer(request, refusal.kind, refusal.detail, refusal.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    found: list[Any] = error.errors()  # type: ignore[attr-defined]
    wrong = places(found)
    detail = "; ".join(f"{each['where']} {each['sentence']}" for each in wrong[:3])
    return await _answer(request, KINDS[InputError], detail, errors=wrong)


async def _of_framework(request: Request, error: Exception) -> Response:
    refusal: HTTPException = error  # type: ignore[assignment]
    kind = plain_kind(refusal.status_code)
    return await _answer(request, kind, kind.title, refusal.headers)


def _describe(app: FastAPI) -> None:
    """The OpenAPI description of /v1 only, with the schema of a problem; built once."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            routes = [route for route in app.routes if _is_interface(route)]
            schema = get_openapi(
                title=app.title,
                version=app.version,
                summary=app.summary,
                description=app.description,
                routes=routes,
            )
            _finish(schema)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]


def _is_interface(route: Any) -> bool:
    path = getattr(route, "path", "")
    return path.startswith("/v1/") or path in ("/health", "/ready", "/metrics")


def _finish(schema: dict[str, Any]) -> None:
    parts = schema.setdefault("components", {})
    shapes = parts.setdefault("schemas", {})
    shapes["ProblemOut"] = answers.ProblemOut.model_json_schema()
    for leftover in ("HTTPValidationError", "ValidationError"):
        shapes.pop(leftover, None)
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{"token": []}, {}]
