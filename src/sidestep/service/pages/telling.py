"""An answer on a page: typed, doubted, saved, or not; the same for a person and for a lab's link."""

from typing import Any, NamedTuple

from fastapi import Request, Response

from sidestep.errors import AlreadyAnswered, InputError, SidestepError, StorageError
from sidestep.service.auth import Visit
from sidestep.service.desk import OpenStudy
from sidestep.service.kinds import kind_of
from sidestep.service.pages.forms import Form
from sidestep.service.pages.not_saved import really_done
from sidestep.service.pages.shell import go, page
from sidestep.service.pages.views import day_text, question_view, uncapital
from sidestep.studies.answers import Kept, find_answer
from sidestep.studies.book import Question, question_of
from sidestep.studies.cards.words import measured_text
from sidestep.studies.importing import doubt_of
from sidestep.studies.measurement import read_report
from sidestep.studies.recording import check_asked
from sidestep.studies.ticket import Receipt


class Telling(NamedTuple):
    """Who answers which question, and where they go from there."""

    study: OpenStudy
    number: int
    actor: str
    back: str  # the address of the page they came from
    narrow: bool = False  # a lab's link: nothing else of the study is shown


def tell(request: Request, telling: Telling, form: Form, visit: Visit | None = None) -> Response:
    """Save what was typed, and go where it can be seen; or say what was not saved, and why."""
    question = asked_question(telling.study, telling.number)
    try:
        results, given = typed_results(telling, question, form)
        doubt = telling.study.read(lambda study: study.doubt(telling.number, results))
        if doubt and not (form.text("sure") and form.text("reason")):
            return _state(request, telling, form, question, "doubt", {"doubt": doubt})
        receipt = telling.study.verbs.tell(
            telling.number,
            results,
            given=given,
            block=form.maybe("block"),
            on=form.maybe("on"),
            reason=form.maybe("reason"),
            actor=telling.actor,
            key=form.maybe("key"),
        )
    except AlreadyAnswered as error:
        held = holding(telling.study, telling.number, str(error))
        return _state(request, telling, form, question, "held", held, 409)
    except StorageError as error:
        why = {"sentence": str(error), "headline": uncapital(kind_of(error).title)}
        return _state(request, telling, form, question, "lost", why, kind_of(error).status)
    except SidestepError as error:
        return _state(request, telling, form, question, "wrong", {"sentence": str(error)}, 422)
    return go(f"{telling.back}?saved={receipt.entries[0]}")


def tell_unasked(study: OpenStudy, form: Form, actor: str) -> Receipt:
    """Record one result with what was done, or a table of them."""
    plan, key = study.plan, form.maybe("key")
    if form.text("do") == "many":
        return study.verbs.import_results(form.table("table") or {}, actor=actor, key=key)
    name = form.text("measured")
    return study.verbs.tell(
        None,
        form.report("value", name),
        measured=name,
        block=form.maybe("block"),
        on=form.maybe("on"),
        reason=form.maybe("reason"),
        given=form.setting("given.", plan.factors),
        context=form.setting("context.", plan.context),
        actor=actor,
        key=key,
    )


def doubt_unasked(study: OpenStudy, form: Form) -> str | None:
    """What is surprising about results without a question; None if nothing is."""
    if form.text("do") == "many":
        return doubt_of(study.plan, form.table("table") or {})
    name = form.text("measured")
    return study.verbs.doubt(None, form.report("value", name), measured=name)


def asked_question(study: OpenStudy, number: int) -> Question:
    """The question of that number, be it open or settled."""
    return question_of(check_asked(study.verbs.about(number), number, study.name)[0])


def typed_results(
    telling: Telling, question: Question, form: Form
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A value for every outcome that was typed, and what was really done where it was said."""
    plan = telling.study.plan
    results = {}
    for place, name in enumerate(outcome.name for outcome in plan.outcomes):
        text = form.text(f"value.{place}")
        if text and (name in question.panel or not telling.narrow):
            results[name] = read_report(name, text)
    if not results:
        wanted = ", ".join(question.panel)
        raise InputError(f"a result must be typed ({wanted}), got none")
    if telling.narrow:
        return results, None
    return results, really_done(plan, form, dict(question.body["action"]))


def holding(study: OpenStudy, number: int, sentence: str) -> dict[str, Any]:
    """What a question holds already: every answer as it counts now, by whom and when."""
    record = Kept(study.store, study.name)
    told = [each.seq for each in record.about(number) if each.kind == "answered"]
    found = [find_answer(record, (seq, None), None) for seq in told]
    answers = [
        {
            "value": measured_text(
                study.plan.outcome(each.outcome), each.result, study.plan.factors
            ),
            "outcome": each.outcome,
            "entry": each.entry,
            "by": each.latest.actor,
            "at": day_text(each.latest.at),
        }
        for each in found
        if each.result is not None
    ]
    return {"answers": answers, "sentence": sentence}


def _state(
    request: Request,
    telling: Telling,
    form: Form,
    question: Question,
    state: str,
    more: dict[str, Any],
    status: int = 200,
) -> Response:
    """A page that says what was not saved; it keeps what was typed."""
    plan = telling.study.plan
    typed = [
        (name, text, outcome.unit)
        for place, outcome in enumerate(plan.outcomes)
        if (text := form.text(f"value.{place}")) and (name := outcome.name)
    ]
    context = {
        "name": telling.study.name,
        "title": plan.title or telling.study.name,
        "words": plan.words,
        "plan": plan,
        "state": state,
        "question": question_view(plan, question),
        "typed": typed,
        "fields": {name: values[0] for name, values in form.items() if name != "csrf"},
        "back": telling.back,
        "action": request.url.path,
        "narrow": telling.narrow,
        **more,
    }
    return page(request, "answer.html", context, status)
