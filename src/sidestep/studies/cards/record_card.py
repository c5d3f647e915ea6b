"""What the record says, in words: its entries, and whether it is whole."""

from typing import TYPE_CHECKING

from sidestep.studies.cards.card import Card, Prose, Section
from sidestep.studies.cards.words import counted, local_time, measured_text, named, plain, set_text
from sidestep.studies.measurement import measurement_of_body
from sidestep.studies.plan import Plan
from sidestep.studies.storage.events import Event, written

if TYPE_CHECKING:
    from sidestep.studies.replay import Replay
    from sidestep.studies.storage.record import Verdict


def entry_text(plan: Plan, event: Event) -> str:
    """One line of the record: what happened."""
    body, kind = event.body, event.kind
    if kind == "asked":
        return f"asked: {named(plan, body['action'])}; measure {', '.join(body['measure'])}"
    if kind == "withdrawn":
        return f"question {event.ticket} withdrawn ({', '.join(body['outcomes'])})"
    if kind == "imported":
        return f"imported {counted(len(body['rows']), 'result')}"
    if kind not in ("answered", "corrected"):
        setting = body.get("action")
        done = {"accepted": "accepted: ", "overruled": "overruled, with "}.get(kind)
        return f"{done}{set_text(plan.factors, setting)}" if done and setting else kind
    return _result_text(plan, event)


def _result_text(plan: Plan, event: Event) -> str:
    """What a result, or its correction, says."""
    body = event.body
    outcome = plan.outcome(body["outcome"])
    about = f"question {event.ticket}" if event.ticket else "without a question"
    if event.kind == "answered":
        told = measured_text(outcome, measurement_of_body(body), plan.factors)
        text = f"{about}: {body['outcome']} {told}"
        if body.get("given"):
            text += f" ({named(plan, body['action'])} {plan.words.done})"
        return text
    was = "nothing" if body["was"] is None else plain(body["was"])
    if body["is"] is None:
        return f"{about} corrected: {body['outcome']} {was} taken back"
    now = measured_text(outcome, measurement_of_body(body, "is"), plan.factors)
    return f"{about} corrected: {body['outcome']} {was} is now {now}"


def verify_card(verdict: "Verdict", replay: "Replay | None" = None) -> Card:
    """Whether the chain of a record holds, and whether its questions would be put again."""
    entries = counted(verdict.events, "entry", "entries")
    lines = [Prose(f"{flaw.sentence}") for flaw in verdict.flaws]
    if verdict.holds:
        tip = f"{entries}, tip {verdict.hash[:16]}."
        lines.append(Prose(f"{tip} Keep the tip elsewhere; verify --known checks against it."))
    holds = verdict.holds
    if replay is not None:
        lines += [Prose(text) for text in _replayed_text(replay)]
        holds = holds and not replay.differences
    return Card(
        kind="verify",
        title=f"The record of {verdict.name} "
        + ("is whole" if holds else "is not as it should be"),
        sections=(Section("", tuple(lines)),),
        data={
            "study": verdict.name,
            "holds": holds,
            "events": verdict.events,
            "hash": verdict.hash,
            "flaws": [flaw._asdict() for flaw in verdict.flaws],
            "differences": replay and [each._asdict() for each in replay.differences],
            "changed": replay and list(replay.changed),
            "skipped": replay and list(replay.skipped),
        },
    )


def _replayed_text(replay: "Replay") -> list[str]:
    """What computing the questions again has found, a line each."""
    lines = [
        f"question {each.seq}: {each.part} was {each.was}, would now be {each.now}"
        for each in replay.differences
    ]
    same = replay.computed - len({each.seq for each in replay.differences}) - len(replay.changed)
    if same:
        lines.append(f"{counted(same, 'question')} decided again, all the same.")
    if replay.changed:
        numbers = ", ".join(map(str, replay.changed))
        lines.append(
            f"{counted(len(replay.changed), 'question')} asked by version 0.2, which did not note"
            f" what it computed with, would be another one today: {numbers}. The record is as it was."
        )
    if replay.skipped:
        lines.append(
            f"{counted(len(replay.skipped), 'question')} asked by another version: not computed again."
        )
    return lines


def history_card(plan: Plan, name: str, events: list[Event]) -> Card:
    """The record, oldest first: who, when, what, why."""
    content: list[Prose] = []
    for event in events:
        why = f" “{event.reason}”" if event.reason else ""
        who = f"{event.actor}, {local_time(written(event.at))}"
        content.append(Prose(f"{entry_text(plan, event)}.{why} {who}", lead=str(event.seq)))
    data = [
        {
            "seq": event.seq,
            "kind": event.kind,
            "ticket": event.ticket,
            "outcome": event.outcome,
            "body": event.body,
            "actor": event.actor,
            "reason": event.reason,
            "at": written(event.at),
            "hash": event.hash,
        }
        for event in events
    ]
    return Card(
        kind="history",
        title=f"The record of {name}",
        aside=counted(len(events), "entry", "entries"),
        sections=(Section("", tuple(content)),),
        data={"study": name, "events": data},
    )
