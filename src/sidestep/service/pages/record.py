"""The record of a study: its entries, verification, export and erasure."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from sidestep.errors import InputError, SidestepError
from sidestep.service.auth import Visit
from sidestep.service.pages.entries import lines_of
from sidestep.service.pages.forms import Posted
from sidestep.service.pages.shell import attachment, go, page, study_path
from sidestep.service.pages.study_view import check_view, common
from sidestep.service.routes import Admins, Readers, export
from sidestep.studies.storage.events import ERASED, Event
from sidestep.studies.storage.record import erase

SCREEN = 50

CHECK_PATIENCE = 10.0  # seconds; who comes from the study's page comes to read what was found

record_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@record_pages.get("/studies/{name}/record")
def record(
    request: Request, visit: Readers, before: Annotated[int | None, Query(ge=1)] = None
) -> Response:
    """A screen of entries, the newest first."""
    end = visit.study.head().seq
    last = min(before - 1, end) if before else end
    begin = max(0, last - SCREEN)
    events = visit.study.verbs.history(begin, last - begin)[::-1]
    check = check_view(visit.study, end, CHECK_PATIENCE)
    context = {
        "lines": lines_of(visit.study.plan, events, visit.study.verbs.about),
        "entries": end,
        "older": begin + 1 if begin else None,
        "newer": last < end,
        "flaws": [each["sentence"] for each in check["flaws"]] if check else [],
    }
    return page(request, "record.html", {**common(visit), **context}, caller=visit.caller)


@record_pages.post("/studies/{name}/verify")
def verify(request: Request, visit: Readers, form: Posted) -> Response:
    """Verify the whole chain now, and show the result."""
    known = form.maybe("known")
    card = visit.study.think(lambda study: study.verify(known=known))
    context = {**common(visit), "check": dict(card.data), "known": known}
    return page(request, "verified.html", context, caller=visit.caller)


@record_pages.get("/studies/{name}/export")
def download(visit: Readers) -> Response:
    """The whole record, as a file."""
    response = export(visit)
    response.headers["Content-Disposition"] = attachment(f"{visit.study.name}.jsonl")
    return response


@record_pages.get("/studies/{name}/erase")
def erasing(request: Request, visit: Admins) -> Response:
    """Whose text can be erased, and what stays."""
    context = {**common(visit), "people": _signers(visit), "error": ""}
    return page(request, "erase.html", context, caller=visit.caller)


@record_pages.post("/studies/{name}/erase")
def erased(request: Request, visit: Admins, form: Posted) -> Response:
    """Erase author and reason in every entry of a person; an entry records it, the chain stays valid."""
    try:
        entry = _erase(visit, form.text("who"), form.reason(), form.maybe("key"))
    except SidestepError as error:
        context = {**common(visit), "people": _signers(visit), "error": str(error)}
        return page(request, "erase.html", context, 422, caller=visit.caller)
    return go(f"{study_path(visit.study.name)}?saved={entry.seq}")


def _erase(visit: Visit, who: str, reason: str, key: str | None) -> Event:
    before = visit.study.store.find(visit.study.name, key) if key else None
    if before is not None and before.kind == "erased":
        return before  # the form was sent twice
    seqs = [event.seq for event in visit.study.verbs.history() if event.actor == who]
    if not seqs or who == ERASED:
        raise InputError(f"somebody must be named who wrote in this record, got {who!r}")
    name, actor = visit.study.name, visit.caller.signs()
    return erase(visit.study.store, name, seqs, actor=actor, reason=reason, key=key)


def _signers(visit: Visit) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for event in visit.study.verbs.history():
        counts[event.actor] = counts.get(event.actor, 0) + 1
    counts.pop(ERASED, None)
    return sorted(counts.items())
