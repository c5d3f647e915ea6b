"""Forms that write: a question, an answer, a correction, a withdrawal, closing."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import HTMLResponse

from sidestep.errors import InputError, SidestepError
from sidestep.service.auth import Needs, Visit
from sidestep.service.pages.forms import Form, Posted
from sidestep.service.pages.not_saved import (
    check_unanswered,
    doubted,
    not_saved,
    really_done,
    settled_entry,
)
from sidestep.service.pages.shell import go, page, study_path
from sidestep.service.pages.study import not_asked
from sidestep.service.pages.study_view import common, context_here, open_text
from sidestep.service.pages.telling import (
    Telling,
    asked_question,
    doubt_unasked,
    tell,
    tell_unasked,
)
from sidestep.service.routes import Admins, Askers, Correctors, Tellers
from sidestep.studies.cards.words import set_text
from sidestep.studies.people.roles import ASK, CORRECT
from sidestep.studies.request import arguments_of

answering = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)

Exchangers = Annotated[Visit, Depends(Needs(CORRECT, ASK))]
Number = Annotated[int, Path(ge=1, le=2**53)]
Row = Annotated[int | None, Query(ge=0, le=10_000)]  # of an import


@answering.post("/studies/{name}/ask")
def ask(request: Request, visit: Askers, form: Posted) -> Response:
    """Ask a question, or show the open one again."""
    plan, name = visit.study.plan, visit.study.name
    try:
        ticket = visit.study.verbs.ask(
            new=form.text("new") == "1",
            purpose=form.text("purpose") or "learn",
            measure=form.maybe("measure"),
            price_cap=form.maybe_number("price_cap", "the price"),
            largest_step=form.steps(plan.factors),
            context=form.setting("context.", plan.context),
            actor=visit.caller.signs(),
            key=form.maybe("key"),
        )
    except InputError as error:
        return not_asked(request, visit, error, form)
    return go(f"{study_path(name)}?question={ticket.id}#question")


@answering.post("/studies/{name}/questions/{number}/answer")
def answer(request: Request, visit: Tellers, number: Number, form: Posted) -> Response:
    """Record a result; a surprising one must be confirmed before it is saved."""
    telling = Telling(visit.study, number, visit.caller.signs(), study_path(visit.study.name))
    return tell(request, telling, form, visit)


@answering.post("/studies/{name}/questions/{number}/simulate")
def simulate(request: Request, visit: Tellers, number: Number, form: Posted) -> Response:
    """Let the demo's laboratory answer."""
    laboratory, study = request.app.state.laboratory, visit.study
    question = next((each for each in study.questions() if each.id == number), None)
    if laboratory is None or question is None or study.name != "demo":
        raise InputError("a question of the demo must be named, got another")
    receipt = study.verbs.tell(
        number, laboratory(study.verbs, question), actor="simulated laboratory"
    )
    return go(f"{study_path(study.name)}?saved={receipt.entries[0]}")


@answering.post("/studies/{name}/questions/{number}/instead")
def instead(request: Request, visit: Exchangers, number: Number, form: Posted) -> Response:
    """Withdraw a question that costs too much, and ask a cheaper one."""
    verbs, actor = visit.study.verbs, visit.caller.signs()
    cap = form.number("price_cap", "the price")
    check_unanswered(visit.study, number)
    asked = asked_question(visit.study, number).body.get("request", {})
    verbs.withdraw(number, reason=f"one that costs at most {cap:g} is asked instead", actor=actor)
    wanted = arguments_of(asked) | {"price_cap": cap}
    ticket = verbs.ask(new=True, **wanted, actor=actor, key=form.maybe("key"))
    return go(f"{study_path(visit.study.name)}?question={ticket.id}#question")


@answering.get("/studies/{name}/results")
def results(request: Request, visit: Tellers) -> Response:
    """The forms for results without a question."""
    context = {**common(visit), "typed": Form(), "error": "", "doubt": ""}
    return page(request, "results.html", context, caller=visit.caller)


@answering.post("/studies/{name}/results")
def told(request: Request, visit: Tellers, form: Posted) -> Response:
    """Record one result, or a table of them."""
    try:
        doubt = None if form.text("sure") else doubt_unasked(visit.study, form)
        if doubt:
            return doubted(request, visit, doubt, "results.html", {"typed": form})
        receipt = tell_unasked(visit.study, form, visit.caller.signs())
    except SidestepError as error:
        return not_saved(request, visit, error, "results.html", {"typed": form})
    return go(f"{study_path(visit.study.name)}?saved={receipt.entries[0]}")


@answering.get("/studies/{name}/entries/{number}/{verb}")
def change(
    request: Request, visit: Correctors, number: Number, verb: str, row: Row = None
) -> Response:
    """The form of a correction or a withdrawal, with what is on record."""
    entry = settled_entry(visit.study, number, verb, row)
    context = {**common(visit), **entry, "typed": Form(), "error": "", "doubt": ""}
    return page(request, "change.html", context, caller=visit.caller)


@answering.post("/studies/{name}/entries/{number}/correct")
def correct(
    request: Request, visit: Correctors, number: Number, form: Posted, row: Row = None
) -> Response:
    """Correct a result, with a reason."""
    entry = settled_entry(visit.study, number, "correct", row)
    try:
        value, measured = form.report("value", entry["outcome"]), form.maybe("measured")
        doubt = visit.study.verbs.doubt_correction(number, value, measured=measured, row=row)
        if doubt and not form.text("sure"):
            return doubted(request, visit, doubt, "change.html", {**entry, "typed": form})
        receipt = visit.study.verbs.correct(
            number,
            value,
            reason=form.reason(),
            measured=measured,
            given=really_done(visit.study.plan, form, entry["action"]),
            row=row,
            actor=visit.caller.signs(),
            key=form.maybe("key"),
        )
    except SidestepError as error:
        return not_saved(request, visit, error, "change.html", {**entry, "typed": form})
    return go(f"{study_path(visit.study.name)}?saved={receipt.entries[0]}")


@answering.post("/studies/{name}/entries/{number}/withdraw")
def withdraw(
    request: Request, visit: Correctors, number: Number, form: Posted, row: Row = None
) -> Response:
    """Close a question without an answer, or take back an answer, with a reason."""
    entry = settled_entry(visit.study, number, "withdraw", row)
    try:
        if form.text("question"):
            check_unanswered(visit.study, number)
        receipt = visit.study.verbs.withdraw(
            number,
            reason=form.reason(),
            row=row,
            actor=visit.caller.signs(),
            key=form.maybe("key"),
        )
    except SidestepError as error:
        return not_saved(request, visit, error, "change.html", {**entry, "typed": form})
    return go(f"{study_path(visit.study.name)}?saved={receipt.entries[0]}")


@answering.get("/studies/{name}/close")
def closing(request: Request, visit: Admins) -> Response:
    """The form to close a study."""
    plan, best = visit.study.plan, visit.study.best(context=context_here(visit.study.plan, None))
    named = set_text(plan.factors, best.action) if best.action else ""
    context = {"best": named, "open": open_text(visit.study), "typed": Form(), "error": ""}
    return page(request, "close.html", {**common(visit), **context}, caller=visit.caller)


@answering.post("/studies/{name}/close")
def close(request: Request, visit: Admins, form: Posted) -> Response:
    """Close the study: with the recommendation, with another setting, or without a decision."""
    plan, how = visit.study.plan, form.text("how")
    try:
        setting = form.setting("given.", plan.factors) if how == "overrule" else None
        receipt = visit.study.think(
            lambda study: study.close(
                accept=how == "accept",
                overrule=setting,
                context=context_here(plan, None),
                reason=form.maybe("reason"),
                actor=visit.caller.signs(),
                key=form.maybe("key"),
            )
        )
    except SidestepError as error:
        again = {"best": "", "open": open_text(visit.study), "typed": form}
        return not_saved(request, visit, error, "close.html", again)
    return go(f"{study_path(visit.study.name)}?saved={receipt.entries[0]}")
