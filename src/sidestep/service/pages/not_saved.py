"""If something was not saved: the form again, with the typed values and the reason."""

from collections.abc import Mapping
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
from sidestep.service.pages.views import plausible_text
from sidestep.studies.answers import Kept, entry_of, find_answer
from sidestep.studies.cards.words import listed, measured_text, typed_text
from sidestep.studies.factors import Setting
from sidestep.studies.plan import Plan
from sidestep.studies.recording import withdrawal_of

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


def settled_entry(
    study: OpenStudy, number: int, verb: str, row: int | None = None
) -> dict[str, Any]:
    """An entry to be changed: its content, its current value, and what the change would do."""
    if verb not in VERBS:
        raise NotFoundError(f"an entry can be corrected or withdrawn, got {verb!r}")
    record, place = Kept(study.store, study.name), (number, row)
    event = entry_of(record, number)
    waiting: tuple[str, ...] = ()
    if verb == "withdraw":
        waiting, answer, _ = withdrawal_of(record, place)
    else:
        answer = find_answer(record, place, None)
    context: dict[str, Any] = {
        "number": number,
        "row": row,
        "verb": verb,
        "line": lines_of(study.plan, [event], study.verbs.about)[0],
        "is_question": answer is None,
        "waiting": listed(list(waiting)) if waiting else "",
        "stays": _stays(study, event.body, waiting),
        "outcome": "",
        "unit": "",
        "typical": "",
        "value": "",
        "action": {},
        "holds": "",
    }
    if answer is None:
        return context
    outcome, now = study.plan.outcome(answer.outcome), answer.result
    return context | {
        "outcome": outcome.name,
        "unit": outcome.unit,
        "typical": plausible_text(outcome),
        "value": "" if now is None else typed_text(outcome, now),
        "action": answer.action,
        "holds": ""
        if now is None
        else f"{outcome.name} {measured_text(outcome, now, study.plan.factors)}",
    }


def _stays(study: OpenStudy, asked: Mapping[str, Any], waiting: tuple[str, ...]) -> str:
    """The results of a panel that stay when the rest of it is withdrawn."""
    told = [name for name in asked.get("measure", []) if name not in waiting]
    return listed(told) if waiting and told else ""


def really_done(plan: Plan, form: Form, asked: Setting) -> dict[str, Any] | None:
    """The setting that was really used, if it was typed and differs from the question."""
    given = form.setting("given.", plan.factors)
    return None if given is None or given == asked else given
