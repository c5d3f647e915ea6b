"""Entries of the record as a person reads them: what happened, who, when, why, and what can be done."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sidestep.service.pages.views import capital, day_name, day_text
from sidestep.studies.cards.words import counted, measured_text, named, plain, set_text
from sidestep.studies.measurement import measurement_of_body
from sidestep.studies.plan import Plan
from sidestep.studies.storage.events import ERASED, Event

About = Callable[[int], list[Event]]  # everything about a ticket


class Line(NamedTuple):
    """An entry."""

    seq: int
    kind: str
    title: str
    text: str
    why: str
    by: str
    at: str
    act: str  # "correct", "withdraw" or nothing
    number: int  # of the entry that this is done to
    row: int | None  # of an import
    hash: str


def lines_of(plan: Plan, events: Iterable[Event], about: About) -> list[Line]:
    """The entries, in the order they came; `about` is asked once for every ticket."""
    known: dict[int, list[Event]] = {}
    found = []
    for event in events:
        ticket = event.ticket or (event.seq if event.kind == "answered" else 0)
        if ticket and ticket not in known:
            known[ticket] = about(ticket)
        found.append(_line(plan, event, known.get(ticket, [])))
    return found


def _line(plan: Plan, event: Event, about: list[Event]) -> Line:
    title, text = _WORDS.get(event.kind, _plainly)(plan, event, about)
    why = f"“{event.reason}”" if event.reason and event.reason != ERASED else event.reason or ""
    act, number, row = _act(event, about)
    day = day_text(event.at)
    return Line(
        event.seq, event.kind, title, text, why, event.actor, day, act, number, row, event.hash
    )


def _round(plan: Plan, about: list[Event]) -> str:
    if about and about[0].kind == "asked":
        return f"{capital(plan.words.round)} {about[0].body['round']}"
    return "A result without a question"


def _asked(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    body = event.body
    setting, measure = capital(named(plan, body["action"])), ", ".join(body["measure"])
    title = f"{capital(plan.words.round)} {body['round']} asked."
    return title, f"{setting}; measure {measure}."


def _answered(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    body = event.body
    told = measured_text(plan.outcome(body["outcome"]), measurement_of_body(body), plan.factors)
    text = f"{capital(body['outcome'])} {told}."
    if body.get("on"):
        text += f" Measured on {day_name(body['on'])}."
    if body.get("given"):
        text += f" {capital(plan.words.done)}: {named(plan, body['action'])}."
    later = [
        each.seq for each in about if each.kind == "corrected" and each.body["answer"] == event.seq
    ]
    if later:
        text += f" Corrected by entry {later[-1]}."
    title = (
        f"{_round(plan, about)} answered." if event.ticket else "A result that nobody asked for."
    )
    return title, text


def _corrected(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    body = event.body
    was = "nothing" if body["was"] is None else plain(body["was"])
    if body["is"] is None:
        text = f"{capital(body['outcome'])} {was} is taken back."
    else:
        now = measured_text(
            plan.outcome(body["outcome"]), measurement_of_body(body, "is"), plan.factors
        )
        text = f"{capital(body['outcome'])} {was} is now {now}."
    return (
        f"{_round(plan, about)} corrected.",
        f"{text} Everything learned since was worked out again.",
    )


def _withdrawn(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    named = ", ".join(event.body["outcomes"])
    return f"{_round(plan, about)} withdrawn.", f"No {named}; nothing is learned from it."


def _imported(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    return "Imported.", f"{counted(len(event.body['rows']), 'result')} from before.".capitalize()


def _created(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    factors = capital(counted(len(plan.factors), "factor"))
    outcomes = counted(len(plan.outcomes), plan.words.outcome, plan.words.outcomes)
    return "Set up.", f"{factors}, {outcomes}."


def _decided(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    setting = event.body.get("action")
    said = set_text(plan.factors, setting) if setting else "nothing"
    title = "The recommendation was overruled." if event.kind == "overruled" else "Accepted."
    return title, f"{capital(plan.words.verb)} {said}."


def _granted(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    given = event.kind == "granted"
    if "link" in event.body:
        what = f"a link to answer question {event.body['ticket']}"
    else:
        what = f"the role {event.body['role']!r} to {event.body['holder']}"
    return "Access given." if given else "Access taken back.", f"{capital(what)}."


def _erased(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    named = ", ".join(str(seq) for seq in event.body["events"][:20])
    return "Words were erased.", f"Who wrote entries {named}, and why; what was measured stays."


def _plainly(plan: Plan, event: Event, about: list[Event]) -> tuple[str, str]:
    return ("The study was closed.", "") if event.kind == "closed" else (capital(event.kind), "")


_WORDS = {
    "asked": _asked,
    "answered": _answered,
    "corrected": _corrected,
    "withdrawn": _withdrawn,
    "imported": _imported,
    "created": _created,
    "accepted": _decided,
    "overruled": _decided,
    "granted": _granted,
    "revoked": _granted,
    "erased": _erased,
}


def _act(event: Event, about: list[Event]) -> tuple[str, int, int | None]:
    """What can be done about an entry, and to which result: a question that waits is withdrawn.

    A result is corrected where its latest value stands; one that was taken back no longer counts.
    """
    if event.kind == "asked":
        settled = {each.outcome for each in about if each.kind in ("answered", "withdrawn")}
        return ("" if settled else "withdraw"), event.seq, None
    if event.kind not in ("answered", "corrected"):
        return "", event.seq, None
    number, row = place = event.body.get("answer", event.seq), event.body.get("row", 0)
    changes = [
        each
        for each in about
        if each.kind == "corrected" and (each.body["answer"], each.body["row"]) == place
    ]
    latest = changes[-1] if changes else event
    counts = latest.seq == event.seq and latest.body.get("is", 0) is not None
    unasked = event.kind == "corrected" and event.ticket == number
    return ("correct" if counts else ""), number, (row if unasked else None)
