"""The card of a receipt, from the record alone."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sidestep.studies.cards.card import Card, Prose, Section
from sidestep.studies.cards.words import counted, local_time, measured_text, plain, with_unit
from sidestep.studies.measurement import measurement_of_body
from sidestep.studies.plan import Plan
from sidestep.studies.recording import Written
from sidestep.studies.storage.events import Event, written

CORRECTABLE = ("answered", "corrected", "imported")
NAMED = 5  # largest number of unused columns that are named


def told_card(plan: Plan, name: str, done: Written) -> Card:
    """What was saved and the number of its entry, or that it was on record already."""
    lines = []
    for event in done.events:
        when = f"at {local_time(written(event.at))} by {event.actor}"
        saved = "It was on record already, as" if done.repeated else "Saved as"
        text = f"{saved} entry {event.seq} {when}."
        lines.append(Prose(text, lead=_told_text(plan, event)))
    if any(event.kind in CORRECTABLE for event in done.events):
        lines.append(Prose("If it is wrong, you can correct it later with a reason."))
    data = [
        {"entry": event.seq, "ticket": event.ticket, "kind": event.kind, **event.body}
        for event in done.events
    ]
    return Card(
        kind="tell",
        title="Nothing changed" if done.repeated else "Saved",
        sections=(Section("", tuple(lines)),),
        data={"study": name, "repeated": done.repeated, "entries": data},
    )


def _imported_text(body: Mapping[str, Any]) -> str:
    """The number of imported results per outcome, and the unused columns."""
    counts = Counter(row["outcome"] for row in body["rows"])
    each = ", ".join(f"{name} {count}" for name, count in counts.items())
    unused = body.get("unused", [])
    more = f" and {len(unused) - NAMED} more" if len(unused) > NAMED else ""
    rest = f" Columns not used: {', '.join(unused[:NAMED])}{more}." if unused else ""
    return f"Imported: {counted(len(body['rows']), 'result')} ({each}).{rest}"


def _told_text(plan: Plan, event: Event) -> str:
    """What an entry says, in a few words."""
    body = event.body
    if event.kind == "imported":
        return _imported_text(body)
    if event.kind == "closed":
        return "The study is closed; results may still be told."
    if event.kind == "withdrawn":
        return f"Withdrawn: question {event.ticket} ({', '.join(body['outcomes'])})."
    outcome = plan.outcome(body["outcome"])
    if event.kind == "answered":
        text = measured_text(outcome, measurement_of_body(body), plan.factors)
        return f"Recorded: {outcome.name} {text}."
    was = "nothing" if body["was"] is None else plain(body["was"])
    if body["is"] is None:
        return f"Taken back: {body['outcome']} {with_unit(was, outcome.unit)}."
    now = measured_text(outcome, measurement_of_body(body, "is"), plan.factors)
    return f"Corrected: {body['outcome']} {was} is now {now}."
