"""If something was not saved: the form again, with the typed values and the reason."""

from typing import Any

from fastapi import Request, Response

from sidestep.errors import AlreadyAnswered, NotFoundError, SidestepError
from sidestep.service.auth import Visit
from sidestep.service.desk import OpenStudy
from sidestep.service.kinds import kind_of
from sidestep.service.pages.entries import lines_of
from sidestep.service.pages.forms import Form
from sidestep.service.pages.shell import page
from sidestep.service.pages.study_view import common
from sidestep.studies.cards.words import plain
from sidestep.studies.factors import Setting
from sidestep.studies.plan import Plan

VERBS = ("correct", "withdraw")


def not_saved(
    request: Request, visit: Visit, error: SidestepError, template: str, context: dict[str, Any]
) -> Response:
    """The page of the form again; status and sentence say that nothing was saved."""
    whole = {**common(visit), "doubt": "", **context, "error": str(error)}
    return page(request, template, whole, kind_of(error).status, caller=visit.caller)


def doubted(
    request: Request, visit: Visit, doubt: str, template: str, context: dict[str, Any]
) -> Response:
    """The page of the form again, to confirm a surprising value before it is saved."""
    whole = {**common(visit), **context, "doubt": doubt, "error": ""}
    return page(request, template, whole, caller=visit.caller)


def check_unanswered(study: OpenStudy, number: int) -> None:
    """Refuse to withdraw a question that was answered meanwhile: this would take back the answer."""
    waits = any(each.id == number for each in study.questions())
    told = [each for each in study.verbs.about(number) if each.kind == "answered"]
    if told and not waits:
        raise AlreadyAnswered(
            f"question {number} was answered by {told[-1].actor} meanwhile; nothing was changed"
        )


def settled_entry(study: OpenStudy, number: int, verb: str) -> dict[str, Any]:
    """An entry to be changed: its content, and its current value."""
    if verb not in VERBS:
        raise NotFoundError(f"an entry can be corrected or withdrawn, got {verb!r}")
    found = [event for event in study.verbs.history(number - 1, 1) if event.seq == number]
    if not found or found[0].kind not in ("asked", "answered"):
        raise NotFoundError(f"entry {number} is no question and no result")
    event, about = found[0], study.verbs.about(found[0].ticket or number)
    answers = [each for each in about if each.kind == "answered"] or [event]
    answer = event if event.kind == "answered" else answers[0]
    later = [
        each for each in about if each.kind == "corrected" and each.body["answer"] == answer.seq
    ]
    now = later[-1].body["is"] if later else answer.body.get("value")
    outcome = answer.body.get("outcome", "")
    return {
        "number": number,
        "verb": verb,
        "line": lines_of(study.plan, [event], study.verbs.about)[0],
        "is_question": event.kind == "asked" and answer is event,
        "outcome": outcome,
        "unit": study.plan.outcome(outcome).unit if outcome else "",
        "value": "" if now is None else plain(now).replace("\u2212", "-"),
        "action": (later[-1] if later else answer).body["action"],
    }


def really_done(plan: Plan, form: Form, asked: Setting) -> dict[str, Any] | None:
    """The setting that was really used, if it was typed and differs from the question."""
    given = form.setting("given.", plan.factors)
    return None if given is None or given == asked else given
