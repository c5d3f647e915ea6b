"""Look-up of results with their current values, by the number of a question or of an entry."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sidestep.errors import AlreadyAnswered, InputError, TicketNotFound
from sidestep.studies.cards.words import local_time, measured_text, set_text
from sidestep.studies.factors import Setting
from sidestep.studies.measurement import Measurement, measurement_of_body
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan
from sidestep.studies.storage.events import Event, written
from sidestep.studies.storage.log import Events, Head, Log
from sidestep.studies.storage.store import Store
from sidestep.studies.values import shown

Place = tuple[int, int | None]  # number of a question or an entry; row, for an import


class Kept:
    """A record to read, without its lock."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name

    @property
    def head(self) -> Head:
        """Where the chain ends."""
        return self._store.head(self._name)

    def events(self, after: int = 0, limit: int | None = None) -> Events:
        """Events with a larger seq, oldest first."""
        return self._store.events(self._name, after, limit)

    def about(self, ticket: int) -> Events:
        """Everything about a ticket, oldest first."""
        return self._store.about(self._name, ticket)


class Answer(NamedTuple):
    """A result with its current value, and the entry that set it."""

    entry: int
    row: int
    ticket: int
    outcome: str
    result: Measurement | None  # None: taken back
    action: Setting
    context: Mapping[str, Any] | None
    latest: Event


def find_answer(log: Log | Kept, place: Place, outcome: str | None) -> Answer:
    """The result of a question, or of an entry that brought results; an import has rows."""
    number, row = place
    event = entry_of(log, number)
    if event.kind == "asked":
        event = _one_of(log.about(number), number, outcome)
    body, row = event.body, _row_of(event, row)
    if event.kind == "imported":
        body = body["rows"][row]
    if outcome not in (None, body["outcome"]):
        raise InputError(f"entry {event.seq} must be of {outcome!r}, got {body['outcome']!r}")
    ticket = event.ticket or event.seq
    result: Measurement | None = measurement_of_body(body)
    action, latest = body["action"], event
    for each in log.about(ticket):
        if each.kind == "corrected" and (each.body["answer"], each.body["row"]) == (event.seq, row):
            back = each.body["is"] is None
            result = None if back else measurement_of_body(each.body, "is")
            action, latest = each.body["action"], each
    return Answer(
        event.seq, row, ticket, body["outcome"], result, action, body.get("context"), latest
    )


def check_same(
    plan: Plan, known: Event, holds: Answer, came: tuple[Measurement, Setting], *, again: bool
) -> None:
    """Accept a repeated result; raise a conflict that names both if it differs.

    known   the entry with the answer
    holds   the current value of that answer
    came    the value that is told now and, if given, what was really done
    again   whether this is the same request as the one that wrote the answer; the answer may have been
            taken back since
    """
    result, given = came
    same = result in (measurement_of_body(known.body), holds.result)
    same &= not given or given in (known.body["action"], holds.action)
    if same and (again or holds.result is not None):
        return
    outcome, latest = plan.outcome(known.outcome), holds.latest
    text = _result_text(plan, outcome, holds.result, holds.action if given else {})
    verb = "told" if latest.kind == "answered" else "corrected"
    raise AlreadyAnswered(
        f"question {known.ticket} holds {text} for {known.outcome}, "
        f"{verb if holds.result is not None else 'taken back'} by {latest.actor} at "
        f"{local_time(written(latest.at))}; {_result_text(plan, outcome, result, given)} was not "
        "recorded: correct it with a reason"
    )


def _result_text(plan: Plan, outcome: Outcome, result: Measurement | None, given: Setting) -> str:
    """A result with its unit, and the setting if the two settings differ."""
    if result is None:
        return "nothing"
    text = measured_text(outcome, result, plan.factors)
    return f"{text} at {set_text(plan.factors, given)}" if given else text


def check_open(about: list[Event], ticket: int) -> None:
    """Raise if the question was withdrawn."""
    for event in about:
        if event.kind == "withdrawn":
            raise AlreadyAnswered(
                f"question {ticket} was withdrawn by {event.actor} ({event.reason}); nothing was "
                "recorded: tell the result without a question, with what was given"
            )


def _row_of(event: Event, row: int | None) -> int:
    """The row of the result in an import; any other entry has only row 0."""
    count = len(event.body["rows"]) if event.kind == "imported" else 1
    if row is None and count > 1:
        raise InputError(
            f"entry {event.seq} has {count} results: which one must be said (row=N, --row N; rows count "
            "from 0 in the order of `history --json`, a row for every result), got none"
        )
    if not 0 <= (row or 0) < count:
        raise InputError(
            f"row must lie in 0..{count - 1} for entry {event.seq}, got {row}"
            if event.kind == "imported"
            else f"row must be left out for entry {event.seq}, which is no import, got {row}"
        )
    return row or 0


def _one_of(about: list[Event], number: int, outcome: str | None) -> Event:
    """The answer for this outcome, if a question has several."""
    answers = {event.outcome: event for event in about if event.kind == "answered"}
    if not answers:
        raise InputError(f"question {number} must have an answer to change, got none so far")
    if outcome is None and len(answers) > 1:
        names = ", ".join(str(name) for name in answers)
        raise InputError(
            f"question {number} has {len(answers)} results: which one must be said ({names}), by the "
            "number of its own entry in `history`, or in a correction by measured=, got none"
        )
    if outcome is not None and outcome not in answers:
        names = ", ".join(str(name) for name in answers)
        raise InputError(f"question {number} must have a result of it ({names}), got {outcome!r}")
    return answers[outcome] if outcome is not None else next(iter(answers.values()))


def entry_of(log: Log | Kept, number: int) -> Event:
    """The entry of that number, which may be a question or a result."""
    whole = isinstance(number, int) and not isinstance(number, bool)
    found = log.events(number - 1, 1) if whole and 0 < number < 2**53 else []
    if not found or found[0].kind not in ("asked", "answered", "imported"):
        raise TicketNotFound(
            f"there is no question or result {shown(number)} in study {log.head.name!r}"
        )
    return found[0]
