"""The list of studies, with whose turn it is; and the set-up of a study, with its first question."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from sidestep.errors import SidestepError
from sidestep.service import listing
from sidestep.service.auth import Caller
from sidestep.service.pages.forms import Form, Posted
from sidestep.service.pages.mistakes import FACTOR, PROTECTED, TARGET, Mistakes
from sidestep.service.pages.setup import (
    HINTS,
    PURPOSES,
    SHAPES,
    example_form,
    first_question,
    form_like,
    not_in_form,
    read_setup,
    rows_of,
)
from sidestep.service.pages.shell import go, page, study_path
from sidestep.service.pages.study_view import ending_view
from sidestep.service.pages.views import day_text
from sidestep.service.replies import cursor_of, head_at
from sidestep.service.routes import Anybody, Owner
from sidestep.studies.cards.list_card import age_text
from sidestep.studies.cards.overview import goal_text
from sidestep.studies.cards.words import listed
from sidestep.studies.people.roles import ADMIN, EVERYWHERE
from sidestep.studies.study import Study

SCREEN = 30

list_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@list_pages.get("/")
def studies(
    request: Request, caller: Anybody, after: Annotated[str | None, Query(max_length=1000)] = None
) -> Response:
    """Every study that the caller may see, latest change first."""
    desk = request.app.state.desk
    begin = None if after is None else head_at(after)
    lines, last = listing.page(desk, caller, status=None, after=begin, limit=SCREEN)
    context = {
        "lines": [_line(request, line) for line in lines],
        "next": None if last is None else cursor_of(last),
        "first": after is None,
        "owner": caller.rights.allow(ADMIN, EVERYWHERE),
    }
    return page(request, "studies.html", context, caller=caller)


@list_pages.get("/new")
def new(
    request: Request, caller: Owner, like: Annotated[str | None, Query(max_length=100)] = None
) -> Response:
    """An empty form, the example's, or that of a study like another."""
    if like is not None:
        plan = request.app.state.desk.study(like).plan
        return _new_page(request, caller, form_like(plan), like=like, left=not_in_form(plan))
    form = example_form() if "example" in request.query_params else Form()
    return _new_page(request, caller, form)


@list_pages.post("/new")
def set_up(request: Request, caller: Owner, form: Posted) -> Response:
    """Show the first question, or set the study up."""
    if form.text("do").startswith("more"):
        return _new_page(request, caller, form)
    settings, mistakes = read_setup(form)
    if mistakes:
        return _new_page(request, caller, form, mistakes=mistakes)
    name = form.text("name")
    try:
        preview = first_question(name, settings, request.app.state.desk.store)
        if form.text("do") != "create":
            return _new_page(request, caller, form, preview=preview)
        store, actor = request.app.state.desk.store, caller.signs()
        Study.create(name, store, actor=actor, key=form.maybe("key"), **settings)
    except SidestepError as error:
        return _new_page(request, caller, form, mistakes=Mistakes({"": str(error)}))
    return go(study_path(name))


def _new_page(
    request: Request,
    caller: Caller,
    form: Form,
    *,
    preview: dict[str, Any] | None = None,
    mistakes: Mistakes | None = None,
    like: str = "",
    left: Sequence[str] = (),
) -> Response:
    context = {
        "form": form,
        "rows": rows_of(form),
        "labels": {"f": FACTOR, "t": TARGET, "p": PROTECTED},
        "preview": preview,
        "mistakes": mistakes or {},
        "hints": HINTS,
        "shapes": SHAPES,
        "purposes": PURPOSES,
        "like": like,
        "left": listed(list(left)) if left else "",
    }
    return page(request, "new.html", context, 422 if mistakes else 200, caller=caller)


def _line(request: Request, line: listing.Line) -> dict[str, Any]:
    """A study in the list: what it is, where it stands, whose turn it is."""
    study = request.app.state.desk.study(line.head.name)
    plan, oldest = study.plan, next(iter(line.questions), None)
    shown = {
        "name": line.head.name,
        "title": line.title,
        "goal": goal_text(plan),
        "results": line.results,
        "turn": line.turn,
        "updated": day_text(line.head.updated),
        "closed": ending_view(study),
        "awaited": "",
        "age": "",
    }
    if oldest is not None:
        shown["awaited"] = listed(list(oldest.waiting))
        shown["age"] = f"asked {age_text(oldest.at)} by {oldest.actor}"
        shown["more"] = len(line.questions) - 1
    return shown
