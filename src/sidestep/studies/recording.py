"""Writes results, corrections and withdrawals into the record. Needs neither the policy nor numpy."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sidestep.errors import InputError, TicketNotFound
from sidestep.studies.answers import (
    Answer,
    Kept,
    Place,
    check_open,
    check_same,
    entry_of,
    find_answer,
)
from sidestep.studies.cards.words import listed
from sidestep.studies.factors import Setting, setting_of
from sidestep.studies.keys import repeat_of, same_reason
from sidestep.studies.measurement import (
    VALUE,
    Measurement,
    is_report,
    measured,
    measurement_of_body,
)
from sidestep.studies.plan import Plan
from sidestep.studies.request import context_of
from sidestep.studies.storage.events import Event
from sidestep.studies.storage.log import Log
from sidestep.studies.values import checked_day, shown


class Told(NamedTuple):
    """A result as the caller gives it."""

    value: object  # a number or a report, or one for every outcome of a panel
    measured: str | None = None
    given: Mapping[str, object] | None = None
    context: Mapping[str, Any] | None = None
    reason: str | None = None  # why a surprising value is right
    block: str | None = None  # batch, device or laboratory of the round
    on: object = None  # the day on which it was measured


class Written(NamedTuple):
    """The entries that contain the results, and whether they existed already."""

    events: tuple[Event, ...]
    repeated: bool


class Withdrawal(NamedTuple):
    """What a withdrawal does: it closes a question, or takes back one result."""

    waiting: tuple[str, ...] = ()  # the outcomes that are no longer awaited; other results stay
    answer: Answer | None = None  # the result that no longer counts
    done: tuple[Event, ...] = ()  # the entries that did it before


class Author(NamedTuple):
    """Who writes, and under which key."""

    actor: str
    key: str | None = None


def tell(log: Log, plan: Plan, ticket: int, told: Told, author: Author) -> Written:
    """Record results of a question; the same value again changes nothing, another is a conflict."""
    about = check_asked(log.about(ticket), ticket, log.head.name)
    asked = about[0]
    results = results_of(plan, told, tuple(asked.body["measure"]))
    given = _changed(plan, asked.body["action"], told.given)
    action, context = asked.body["action"] | given, asked.body.get("context")
    if told.context is not None:
        context = dict(context_of(plan, told.context))
    before = repeat_of(
        log,
        author.key,
        ("answered",),
        lambda event: (
            _says(event, ticket, results) and given.items() <= event.body["action"].items()
        ),
    )
    known = {event.outcome: event for event in about if event.kind == "answered"}
    fresh = {name: told for name, told in results.items() if name not in known}
    for name in results.keys() - fresh.keys():
        holds = find_answer(log, (known[name].seq, None), None)
        check_same(plan, known[name], holds, (results[name], given), again=before is not None)
    if fresh:
        check_open(about, ticket)
    events = [
        log.append(
            "answered",
            ticket=ticket,
            outcome=name,
            body=_answer(name, result, action, context, told),
            actor=author.actor,
            reason=told.reason,
            key=author.key if place == 0 else None,
        )
        for place, (name, result) in enumerate(fresh.items())
    ]
    return Written(tuple(events) or tuple(known[name] for name in results), not fresh)


def tell_unasked(log: Log, plan: Plan, told: Told, author: Author) -> Written:
    """Record a result without a question; the setting and the measured outcome must be given."""
    if told.given is None:
        raise InputError("a result without a question must say what was given, got none")
    action = setting_of(plan.factors, told.given, "given", on_steps=False)
    context = dict(context_of(plan, told.context)) or None
    results = results_of(plan, told, ())
    found = repeat_of(
        log,
        author.key,
        ("answered",),
        lambda event: _says(event, None, results) and event.body["action"] == action,
    )
    if found is not None:
        return Written((found,), repeated=True)
    events = [
        log.append(
            "answered",
            body=_answer(name, result, action, context, told),
            outcome=name,
            actor=author.actor,
            reason=told.reason,
            key=author.key if place == 0 else None,
        )
        for place, (name, result) in enumerate(results.items())
    ]
    return Written(tuple(events), repeated=False)


def correct(log: Log, plan: Plan, place: Place, told: Told, author: Author, reason: str) -> Written:
    """Replace the value of a result at its place in the order; both values stay on record."""
    answer = find_answer(log, place, told.measured)
    result = corrected_result(plan, answer, told)
    given = _changed(plan, answer.action, told.given)
    action = answer.action | given
    body = _revised(result)
    change: dict[str, Any] = {"answer": answer.entry, "row": answer.row, **body}
    change |= {"action": given} if given else {}
    found = repeat_of(
        log,
        author.key,
        ("corrected",),
        lambda event: _revises(event, change, result) and same_reason(event, reason),
    )
    if found is not None:
        return Written((found,), repeated=True)
    if (result, action) == (answer.result, answer.action):
        return Written((answer.latest,), repeated=True)
    return _revise(log, answer, {**body, "action": action}, author, reason)


def withdraw(log: Log, place: Place, author: Author, reason: str) -> Written:
    """Close a question that will not be answered, or take back its answer."""
    number = place[0]
    entry_of(log, number)  # raises if there is none
    found = repeat_of(
        log,
        author.key,
        ("withdrawn", "corrected"),
        lambda entry: _takes_back(entry, place) and same_reason(entry, reason),
    )
    if found is not None:
        return Written((found,), repeated=True)
    what = withdrawal_of(log, place)
    if what.done:
        return Written(what.done, repeated=True)
    if what.answer is not None:
        answer = what.answer
        return _revise(log, answer, {"is": None, "action": answer.action}, author, reason)
    waiting = list(what.waiting)
    done = log.append(
        "withdrawn",
        ticket=number,
        outcome=waiting[0] if len(waiting) == 1 else None,
        body={"outcomes": waiting},
        actor=author.actor,
        reason=reason,
        key=author.key,
    )
    return Written((done,), repeated=False)


def withdrawal_of(log: Log | Kept, place: Place) -> Withdrawal:
    """What withdrawing this question, or the result at this place, would do."""
    number = place[0]
    event = entry_of(log, number)
    about = log.about(number) if event.kind == "asked" else []
    before = tuple(each for each in about if each.kind == "withdrawn")
    if before:
        return Withdrawal(done=before)
    waiting = tuple(_waiting(about))
    if waiting:
        return Withdrawal(waiting)
    answer = find_answer(log, place, None)
    return Withdrawal(answer=answer, done=(answer.latest,) if answer.result is None else ())


def _revise(
    log: Log, answer: Answer, change: Mapping[str, Any], author: Author, reason: str
) -> Written:
    body: dict[str, Any] = {
        "answer": answer.entry,
        "row": answer.row,
        "outcome": answer.outcome,
        "was": None if answer.result is None else answer.result.value,
        **change,
    }
    if answer.context:
        body["context"] = dict(answer.context)
    event = log.append(
        "corrected",
        ticket=answer.ticket,
        outcome=answer.outcome,
        body=body,
        actor=author.actor,
        reason=reason,
        key=author.key,
    )
    log.drop_snapshots(answer.entry)
    return Written((event,), repeated=False)


def _says(event: Event, ticket: int | None, results: Mapping[str, Measurement]) -> bool:
    """Whether an event answers this question with one of these results."""
    known = measurement_of_body(event.body)
    return event.ticket == ticket and results.get(str(event.outcome)) == known


def _revised(result: Measurement) -> dict[str, Any]:
    """The keys of a correction that say what the result is."""
    body: dict[str, Any] = dict(result.to_body())
    return {"is": body.pop("value"), **body}


def _revises(event: Event, change: Mapping[str, Any], result: Measurement) -> bool:
    """Whether an entry makes this correction."""
    same = change.items() <= event.body.items()
    return same and measurement_of_body(event.body, "is") == result


def _takes_back(event: Event, place: Place) -> bool:
    """Whether an entry withdraws this question, or the result of this question or entry."""
    number, row = place
    same = number in (event.ticket, event.body.get("answer"))
    return same and event.body.get("is") is None and row in (None, event.body.get("row"))


def check_asked(about: list[Event], ticket: object, name: str) -> list[Event]:
    """The events about a question; raises if there is no such question."""
    if not about or about[0].kind != "asked":
        raise TicketNotFound(f"there is no question {shown(ticket)} in study {name!r}")
    return about


def _waiting(about: list[Event]) -> list[str]:
    """Outcomes of a question that are not measured yet; a result of another outcome counts too."""
    if not about:
        return []
    panel = about[0].body["measure"]
    answered = {event.outcome for event in about if event.kind == "answered"}
    return [] if answered and len(panel) == 1 else [name for name in panel if name not in answered]


def results_of(plan: Plan, told: Told, panel: tuple[str, ...]) -> dict[str, Measurement]:
    """The given results by outcome, checked."""
    names = {outcome.name for outcome in plan.outcomes}
    value = told.value
    if isinstance(value, Mapping) and (set(value) <= names or not is_report(value)):
        if told.measured is not None or not value:
            raise InputError(f"a panel must be told as outcome: value, got {shown(value)}")
        return {name: _measured(plan, name, each, told) for name, each in value.items()}
    name = told.measured
    if name is None and len(panel) != 1:
        wanted = listed(list(panel)) if panel else "an outcome"
        raise InputError(f"which outcome was measured must be said ({wanted}), got only a value")
    name = panel[0] if name is None else name
    return {name: _measured(plan, name, value, told)}


def _measured(plan: Plan, name: str, value: object, told: Told) -> Measurement:
    return measured(plan.outcome(name), plan.factors, value, told.block)


def corrected_result(plan: Plan, answer: Answer, told: Told) -> Measurement:
    """What a result really is; a number alone corrects the value, and its error and block stay."""
    known = answer.result
    result = _measured(plan, answer.outcome, told.value, told)
    if known is None:
        return result
    block = result.block or known.block
    if isinstance(told.value, Mapping) or known.kind != VALUE:
        return replace(result, block=block)
    return replace(known, value=result.value, block=block)


def _changed(plan: Plan, action: Setting, given: Mapping[str, object] | None) -> Setting:
    """The setting that was really used: `action`, changed by `given`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"given must be a value for factors, got {shown(given)}")
    return setting_of(plan.factors, {**action, **given}, "given", on_steps=False)


def _answer(
    name: str, result: Measurement, action: Setting, context: Any, told: Told
) -> dict[str, Any]:
    body: dict[str, Any] = {"outcome": name, **result.to_body(), "action": action}
    if context:
        body["context"] = context
    if told.on is not None:
        body["on"] = checked_day("the day of a result", told.on)
    return {**body, "given": True} if told.given else body
