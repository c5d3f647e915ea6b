"""A study's page, its parts, its candidates, and what is new in it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from sidestep.errors import InputError
from sidestep.service.auth import Visit
from sidestep.service.kinds import kind_of
from sidestep.service.pages.candidates_view import candidates_view, csv_text, sorting_of
from sidestep.service.pages.entries import lines_of
from sidestep.service.pages.forms import STEP, Form
from sidestep.service.pages.receipts import receipt_view
from sidestep.service.pages.shell import attachment, page
from sidestep.service.pages.study_view import (
    Wanted,
    chosen_question,
    common,
    context_here,
    parts,
    study_context,
)
from sidestep.service.routes import Flag, Readers
from sidestep.studies.cards.words import plain

PART_PATIENCE = 2.0  # seconds that a part of a page may take before it is asked for again
SCREEN = 50  # candidates
PARTS = ("best", "trade", "bends", "story", "candidates")

study_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)

Entry = Annotated[int | None, Query(ge=1, le=2**53)]


@study_pages.get("/studies/{name}")
def study(
    request: Request,
    visit: Readers,
    *,
    question: Entry = None,
    saved: Entry = None,
    wait: Flag = False,
) -> Response:
    """The page: the question first."""
    return study_page(request, visit, Wanted(question, saved, wait))


def not_asked(request: Request, visit: Visit, error: InputError, form: Form) -> Response:
    """The page again, with what was typed for a question that cannot be asked, and why."""
    wrong = form.wrong_steps(visit.study.plan.factors)
    more = {"ask_error": str(error), "typed": form, "wrong": wrong}
    return study_page(request, visit, Wanted(), kind_of(error).status, more)


def study_page(
    request: Request,
    visit: Visit,
    wanted: Wanted,
    status: int = 200,
    more: dict[str, Any] | None = None,
) -> Response:
    """The page; `more` replaces parts of it."""
    saved, name = wanted.saved, visit.caller.name
    context = {
        **study_context(visit, wanted),
        "receipt": None if saved is None else receipt_view(visit.study, saved, name),
        "simulated": request.app.state.laboratory is not None and visit.study.name == "demo",
        **(more or {}),
    }
    typed, factors = context["typed"], visit.study.plan.factors
    context["steps_typed"] = any(typed.text(f"{STEP}{n}") for n in range(len(factors)))
    return page(request, "study.html", context, status, caller=visit.caller)


@study_pages.get("/studies/{name}/parts/{part}")
def part(request: Request, visit: Readers, part: str, question: Entry = None) -> Response:
    """A computed part of the page, once it is ready; until then a placeholder."""
    chosen = chosen_question(visit.study, visit.caller.name, question)
    found = parts(visit.study, chosen, PART_PATIENCE)
    if part not in PARTS:
        return Response(status_code=404)
    context = {**common(visit), "part": found, "question": {"id": chosen.id} if chosen else None}
    return page(request, f"parts/{part}.html", context, caller=visit.caller)


@study_pages.get("/studies/{name}/news")
def news(
    request: Request, visit: Readers, after: Annotated[int, Query(ge=0, le=2**53)] = 0
) -> Response:
    """What colleagues have written since the page was loaded; empty if nothing."""
    events = [each for each in visit.study.verbs.history(after, 20) if each.kind != "granted"]
    theirs = [each for each in events if each.actor != visit.caller.name]
    if not theirs:
        return Response(status_code=204)
    lines = lines_of(visit.study.plan, theirs[-1:], visit.study.verbs.about)
    context = {**common(visit), "line": lines[0], "more": len(theirs) - 1}
    return page(request, "parts/news.html", context, caller=visit.caller)


@study_pages.get("/studies/{name}/candidates")
def candidates(
    request: Request,
    visit: Readers,
    sort: Annotated[str | None, Query(max_length=100)] = None,
    order: Annotated[str | None, Query(max_length=4)] = None,
    begin: Annotated[int, Query(ge=0, le=100_000)] = 0,
    question: Entry = None,
) -> Response:
    """Every candidate, sorted here; for the context of the question that the page before showed."""
    plan, here = visit.study.plan, _context_of(visit, question)
    best, explanation = visit.study.best(context=here), visit.study.explain(context=here)
    table = candidates_view(
        plan,
        explanation.rows,
        best=best,
        asked=None,
        sorting=sorting_of(plan, sort, order),
        begin=begin,
        most=SCREEN,
    )
    context = {
        "table": table,
        "question": {"id": question} if question else None,
        "context": [(name, plain(value)) for name, value in (here or {}).items()],
    }
    return page(request, "candidates.html", {**common(visit), **context}, caller=visit.caller)


@study_pages.get("/studies/{name}/candidates.csv")
def candidates_csv(visit: Readers, question: Entry = None) -> Response:
    """Every candidate, for a spreadsheet."""
    text = csv_text(visit.study.explain(context=_context_of(visit, question)))
    headers = {"Content-Disposition": attachment(f"{visit.study.name}-candidates.csv")}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def _context_of(visit: Visit, question: int | None) -> dict[str, Any] | None:
    """The context of an open question; without one, the default."""
    asked = next((each for each in visit.study.questions() if each.id == question), None)
    return context_here(visit.study.plan, asked)
