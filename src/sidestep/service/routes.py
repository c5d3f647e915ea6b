"""/v1, for programs: every handler reads the request, calls one verb, and writes its card."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from sidestep.errors import InputError
from sidestep.service import answers as out
from sidestep.service import listing
from sidestep.service.auth import Caller, Needs, Visit, allowed, known_caller, known_owner
from sidestep.service.bodies import StrictRoute, strict_json
from sidestep.service.problems import MEDIA_TYPE, HttpProblem
from sidestep.service.replies import (
    card_reply,
    cursor_of,
    head_at,
    json_reply,
    not_modified,
    tag_of,
    tagged,
    with_tag,
)
from sidestep.service.schemas import Answer, Ask, Closing, Correction, NewStudy, Signed, Withdrawal
from sidestep.service.wire import KEY_PATTERN
from sidestep.studies.cards.card import Card
from sidestep.studies.people.roles import ADMIN, ASK, CORRECT, READ, TELL
from sidestep.studies.storage.exchange import event_to_json
from sidestep.studies.study import Study

PAGE = 1000
NDJSON = "application/x-ndjson"

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=KEY_PATTERN,
        description="The same key again is the same request, not a second one.",
    ),
]
Number = Annotated[int, Path(alias="id", ge=1, le=2**53)]
Limit = Annotated[int, Query(ge=1, le=PAGE)]
Flag = Annotated[bool, Query()]
Certainty = Annotated[float | None, Query(ge=0.5, lt=1)]
Context = Annotated[str | None, Query(max_length=2000, description="A JSON object.")]
Readers = Annotated[Visit, Depends(Needs(READ))]
Askers = Annotated[Visit, Depends(Needs(ASK))]
Tellers = Annotated[Visit, Depends(Needs(TELL))]
Correctors = Annotated[Visit, Depends(Needs(CORRECT))]
Admins = Annotated[Visit, Depends(Needs(ADMIN))]
Anybody = Annotated[Caller, Depends(known_caller)]
Owner = Annotated[Caller, Depends(known_owner)]


def context_of(text: str | None) -> dict[str, Any] | None:
    """A context that came in an address."""
    if text is None:
        return None
    try:
        found = strict_json(text.encode())
    except HttpProblem:
        found = None
    if not isinstance(found, dict):
        raise InputError("context must be a JSON object, got something else")
    return found


def signed(visit: Visit, body: Signed, key: str | None) -> dict[str, Any]:
    """The arguments of a verb that writes: what was sent, its author and its key."""
    return {**body.told("actor"), "actor": visit.caller.signs(body.actor), "key": key}


def computed(request: Request, visit: Visit, compute: Callable[[], Card]) -> Response:
    """The card that `compute` returns; 304 without computing if the caller has it already."""
    tag = tag_of(request, visit.study.head())
    return not_modified(request, tag) or with_tag(card_reply(request, compute()), tag)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The refusals of a route, for its description."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemOut"}}}
    usual = {400, 401, 403, 404, 408, 413, 415, 421, 422, 503, 507, *statuses}
    return {status: {"description": "A problem", "content": content} for status in sorted(usual)}


def shown(model: type[Any], status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The answer of a route, for its description; it is written without being checked again."""
    return {status: {"model": model, "description": "As described"}, **problems(409)}


api = APIRouter(prefix="/v1", route_class=StrictRoute)


@api.get("/studies", responses=shown(out.StudiesOut), summary="The studies, latest change first")
def studies(
    request: Request,
    caller: Anybody,
    status: Annotated[str | None, Query(pattern="^(open|closed)$")] = None,
    after: Annotated[str | None, Query(max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Response:
    """The studies that the caller may see, and whose turn it is in each."""
    begin = None if after is None else head_at(after)
    lines, last = listing.page(
        request.app.state.desk, caller, status=status, after=begin, limit=limit
    )
    following = None if last is None else cursor_of(last)
    return tagged(
        request, json_reply({"studies": [line.to_json() for line in lines], "next": following})
    )


@api.post("/studies", status_code=201, responses=shown(out.StudyOut, 201), summary="Set up a study")
def create(request: Request, new: NewStudy, caller: Owner, key: Key = None) -> Response:
    """Set up a study; no names of patients in it, please."""
    actor = caller.signs(new.actor)
    for name in new.learn_from:
        allowed(request.app.state.desk, caller, (READ,), name)
    Study.create(new.name, request.app.state.desk.store, actor=actor, key=key, **new.settings())
    card = request.app.state.desk.study(new.name).show()
    address = f"{request.base_url}v1/studies/{quote(new.name, safe='')}"
    return card_reply(request, card, 201, {"Location": address})


@api.get("/studies/{name}", responses=shown(out.StudyOut), summary="Where a study stands")
def show(request: Request, visit: Readers, *, candidates: Flag = False) -> Response:
    """How it was set up, which questions are open, what was measured; its candidates where asked for."""
    card = visit.study.show()
    if candidates:
        card = replace(card, data={**card.data, "candidates": visit.study.table()})
    return tagged(request, card_reply(request, card))


@api.post("/studies/{name}/tickets", responses=shown(out.TicketOut), summary="Ask")
def ask(request: Request, wanted: Ask, visit: Askers, key: Key = None) -> Response:
    """What to do next, and what to measure. Asked again it is the same question until it is answered."""
    ticket = visit.study.verbs.ask(**signed(visit, wanted, key))
    return card_reply(request, ticket.card)


@api.post("/studies/{name}/tickets/{id}/answer", responses=shown(out.ReceiptOut), summary="Tell")
def tell(
    request: Request, number: Number, answer: Answer, visit: Tellers, key: Key = None
) -> Response:
    """Record a result; it is durable once this answers. The same again changes nothing."""
    receipt = visit.study.verbs.tell(number, **signed(visit, answer, key))
    return card_reply(request, receipt.card)


@api.post(
    "/studies/{name}/answers", responses=shown(out.ReceiptOut), summary="Tell what nobody asked"
)
def tell_unasked(request: Request, answer: Answer, visit: Tellers, key: Key = None) -> Response:
    """Record a result without a question: `measured` and `given` say what it is."""
    receipt = visit.study.verbs.tell(None, **signed(visit, answer, key))
    return card_reply(request, receipt.card)


@api.post(
    "/studies/{name}/tickets/{id}/correction", responses=shown(out.ReceiptOut), summary="Correct"
)
def correct(
    request: Request, number: Number, change: Correction, visit: Correctors, key: Key = None
) -> Response:
    """Change a result, with a reason; both values stay on record."""
    receipt = visit.study.verbs.correct(number, **signed(visit, change, key))
    return card_reply(request, receipt.card)


@api.post(
    "/studies/{name}/tickets/{id}/withdrawal", responses=shown(out.ReceiptOut), summary="Withdraw"
)
def withdraw(
    request: Request, number: Number, change: Withdrawal, visit: Correctors, key: Key = None
) -> Response:
    """Close a question that will have no answer, or take back the answer it has, with a reason."""
    receipt = visit.study.verbs.withdraw(number, **signed(visit, change, key))
    return card_reply(request, receipt.card)


@api.post("/studies/{name}/close", responses=shown(out.ReceiptOut), summary="End the asking")
def close(request: Request, end: Closing, visit: Admins, key: Key = None) -> Response:
    """End the asking, with what is recommended, with something else, or with nothing."""
    receipt = visit.study.think(lambda study: study.close(**signed(visit, end, key)))
    return card_reply(request, receipt.card)


@api.get("/studies/{name}/best", responses=shown(out.BestOut), summary="What is best today")
def best(
    request: Request,
    visit: Readers,
    *,
    certainty: Certainty = None,
    rounds: Flag = False,
    context: Context = None,
) -> Response:
    """What the study recommends today, whether that is enough, and what is not settled."""
    here = context_of(context)

    def look() -> Card:
        return visit.study.best(certainty=certainty, rounds=rounds, context=here).card

    return computed(request, visit, look)


@api.get("/studies/{name}/explain", responses=shown(out.ExplanationOut), summary="Every candidate")
def explain(
    request: Request,
    visit: Readers,
    *,
    certainty: Certainty = None,
    top: Annotated[int, Query(ge=1, le=PAGE)] = 8,
    context: Context = None,
) -> Response:
    """Every candidate: its effects with intervals and verdicts, and how likely it is the best."""
    here = context_of(context)

    def look() -> Card:
        return visit.study.explain(certainty=certainty, top=top, context=here).card

    return computed(request, visit, look)


@api.get("/studies/{name}/tradeoff", responses=shown(out.TradeoffOut), summary="What risk buys")
def tradeoff(request: Request, visit: Readers, *, context: Context = None) -> Response:
    """The largest effect on the target at every chance of staying within all limits."""
    here = context_of(context)
    return computed(request, visit, lambda: visit.study.tradeoff(context=here).card)


@api.get("/studies/{name}/verify", responses=shown(out.VerdictOut), summary="Is it whole?")
def verify(
    request: Request,
    visit: Readers,
    *,
    asks: Flag = False,
    known: Annotated[str | None, Query(pattern="^[0-9a-f]{16,64}$")] = None,
) -> Response:
    """Whether the chain of the record holds; `asks`: whether every question would be put again."""
    card = visit.study.think(lambda study: study.verify(asks=asks, known=known))
    return card_reply(request, card)


@api.get("/studies/{name}/history", responses=shown(out.HistoryOut), summary="The record")
def history(
    request: Request,
    visit: Readers,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Limit = 100,
) -> Response:
    """The record, oldest first; `next` is where the next page begins."""
    events = visit.study.verbs.history(after, limit + 1)
    following = events[limit - 1].seq if len(events) > limit else None
    lines = [event_to_json(event) for event in events[:limit]]
    return tagged(request, json_reply({"events": lines, "next": following}))


@api.get(
    "/studies/{name}/export",
    responses={200: {"content": {NDJSON: {}}, "description": "Lines"}, **problems()},
    response_class=StreamingResponse,
    summary="The whole record",
)
def export(visit: Readers) -> Response:
    """The record with its chain, as lines of JSON; importing them gives the same study, bit for bit."""
    lines = visit.study.verbs.export()
    first = next(lines)  # whatever is wrong with the record is said before the answer begins

    def written() -> Iterator[str]:
        yield f"{first}\n"
        yield from (f"{line}\n" for line in lines)

    return StreamingResponse(written(), media_type=NDJSON)
