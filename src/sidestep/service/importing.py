"""What comes in by the table or by the file: results from before, and whole studies."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic import ValidationError

from sidestep.errors import InputError
from sidestep.service import answers as out
from sidestep.service.bodies import StrictRoute, check_media, strict_json
from sidestep.service.problems import MALFORMED, HttpProblem, places
from sidestep.service.replies import JSON, card_reply
from sidestep.service.routes import NDJSON, Key, Owner, Tellers, shown
from sidestep.service.schemas import Results
from sidestep.studies.frames import csv_columns
from sidestep.studies.storage.exchange import import_study

CSV = "text/csv"
imports = APIRouter(prefix="/v1", route_class=StrictRoute)


def body_of(request: Request) -> bytes:
    """The body as it came."""
    content: bytes = request.state.body
    return content


Body = Annotated[bytes, Depends(body_of)]


def taken(*kinds: tuple[str, Any]) -> dict[str, Any]:
    """What a route takes, for its description."""
    content = {kind: {"schema": schema} for kind, schema in kinds}
    return {"requestBody": {"required": True, "content": content}}


@imports.post(
    "/studies/{name}/import",
    responses=shown(out.ReceiptOut),
    summary="Results from before",
    openapi_extra=taken((JSON, Results.model_json_schema()), (CSV, {"type": "string"})),
)
def import_results(request: Request, visit: Tellers, body: Body, key: Key = None) -> Response:
    """Record results from before, all of them or none; a table of columns, or CSV with a heading."""
    kind = check_media(request, JSON, CSV)
    if kind == CSV:
        table = Results.model_construct(columns=csv_columns(_text(body), "results"))
    else:
        table = _results(body)
    actor = visit.caller.signs(table.actor)
    receipt = visit.study.verbs.import_results(
        table.columns, again=table.again, actor=actor, key=key
    )
    return card_reply(request, receipt.card)


@imports.post(
    "/import",
    status_code=201,
    responses=shown(out.StudyOut, 201),
    summary="A whole study",
    openapi_extra=taken((NDJSON, {"type": "string"})),
)
def import_whole(request: Request, caller: Owner, body: Body) -> Response:
    """Keep a study as it was exported elsewhere: its chain comes along and is checked on the way in."""
    check_media(request, NDJSON)
    head = import_study(request.app.state.desk.store, _text(body).split("\n"))
    return card_reply(request, request.app.state.desk.study(head.name).show(), 201)


def _results(body: bytes) -> Results:
    try:
        return Results.model_validate(strict_json(body))
    except ValidationError as error:
        wrong = places(error.errors(include_url=False, include_input=False))[0]
        raise InputError(f"{wrong['where']}: {wrong['sentence']}") from None


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise HttpProblem(MALFORMED, "the body must be text in UTF-8") from None
