"""Writes results, corrections and withdrawals into the record. Needs neither the policy nor numpy."""

from collections.abc import Mapping
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
from sidestep.studies.plan import Plan
from sidestep.studies.request import context_of
from sidestep.studies.storage.events import Event
from sidestep.studies.storage.log import Log
from sidestep.studies.values import checked_number, shown

FARTHEST = 1e5  # half-ranges from the baseline; a number beyond would dominate all sums


class Told(NamedTuple):
    """A result as the caller gives it."""

    value: object  # a number, or a number for every outcome of a panel
    measured: str | None = None
    given: Mapping[str, object] | None = None
    context: Mapping[str, Any] | None = None
    reason: str | None = None  # why a surprising value is right


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
    fresh = {name: value for name, value in results.items() if name not in known}
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
            body=_answer(name, value, action, context, given=bool(told.given)),
            actor=author.actor,
            reason=told.reason,
            key=author.key if place == 0 else None,
        )
        for place, (name, value) in enumerate(fresh.items())
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
            body=_answer(name, value, action, context, given=True),
            outcome=name,
            actor=author.actor,
            reason=told.reason,
            key=author.key if place == 0 else None,
        )
        for place, (name, value) in enumerate(results.items())
    ]
    return Written(tuple(events), repeated=False)


def correct(log: Log, plan: Plan, place: Place, told: Told, author: Author, reason: str) -> Written:
    """Replace the value of a result at its place in the order; both values stay on record."""
    answer = find_answer(log, place, told.measured)
    value = checked_result(plan, answer.outcome, told.value)
    given = _changed(plan, answer.action, told.given)
    action = answer.action | given
    change: dict[str, Any] = {"answer": answer.entry, "row": answer.row, "is": value}
    change |= {"action": given} if given else {}
    found = repeat_of(
        log,
        author.key,
        ("corrected",),
        lambda event: change.items() <= event.body.items() and same_reason(event, reason),
    )
    if found is not None:
        return Written((found,), repeated=True)
    if (value, action) == (answer.value, answer.action):
        return Written((answer.latest,), repeated=True)
    return _revise(log, answer, {"is": value, "action": action}, author, reason)


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
    return Withdrawal(answer=answer, done=(answer.latest,) if answer.value is None else ())


def _revise(
    log: Log, answer: Answer, change: Mapping[str, Any], author: Author, reason: str
) -> Written:
    body: dict[str, Any] = {
        "answer": answer.entry,
        "row": answer.row,
        "outcome": answer.outcome,
        "was": answer.value,
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


def _says(event: Event, ticket: int | None, results: Mapping[str, float]) -> bool:
    """Whether an event answers this question with one of these results."""
    return event.ticket == ticket and results.get(str(event.outcome)) == event.body["value"]


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


def results_of(plan: Plan, told: Told, panel: tuple[str, ...]) -> dict[str, float]:
    """The given results: value by outcome."""
    if isinstance(told.value, Mapping):
        if told.measured is not None or not told.value:
            raise InputError(f"a panel must be told as outcome: value, got {shown(told.value)}")
        return {name: checked_result(plan, name, value) for name, value in told.value.items()}
    name = told.measured
    if name is None and len(panel) != 1:
        names = listed(list(panel)) if panel else "an outcome"
        raise InputError(f"which outcome was measured must be said ({names}), got only a value")
    name = panel[0] if name is None else name
    return {name: checked_result(plan, name, told.value)}


def checked_result(plan: Plan, name: str, value: object) -> float:
    """A result that can be recorded: a finite number, at most FARTHEST half-ranges from the baseline."""
    outcome = plan.outcome(name)
    number = checked_number(name, value)
    if outcome.is_log and number <= 0:
        raise InputError(f'{name} must be above 0 on scale="log", got {number:g}')
    if not outcome.is_log and abs(number - outcome.level) > FARTHEST * outcome.half:
        raise InputError(
            f"{name} must lie within {FARTHEST:g} times half its range {outcome.low:g} to "
            f"{outcome.high:g}, got {number:g}"
        )
    return number


def _changed(plan: Plan, action: Setting, given: Mapping[str, object] | None) -> Setting:
    """The setting that was really used: `action`, changed by `given`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputError(f"given must be a value for factors, got {shown(given)}")
    return setting_of(plan.factors, {**action, **given}, "given", on_steps=False)


def _answer(
    name: str, value: float, action: Setting, context: Any, *, given: bool
) -> dict[str, Any]:
    body = {"outcome": name, "value": value, "action": action}
    if context:
        body["context"] = context
    return {**body, "given": True} if given else body
