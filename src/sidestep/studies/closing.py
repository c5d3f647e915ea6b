"""Closes a study, and reads back how it was closed. Needs neither the policy nor numpy."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sidestep.errors import StudyClosed
from sidestep.studies.cards.words import set_text
from sidestep.studies.keys import same_reason
from sidestep.studies.plan import Plan
from sidestep.studies.recording import Author, Written
from sidestep.studies.storage.events import Event
from sidestep.studies.storage.log import Log
from sidestep.studies.storage.store import CLOSED

DECISIONS = ("accepted", "overruled")


class Ending(NamedTuple):
    """How a study was closed."""

    closed: Event
    decision: Event | None  # None: without a decision


def ending_of(events: Iterable[Event]) -> Ending | None:
    """How the study of this record was closed; None if the study is open."""
    decision = None
    for event in events:
        if event.kind in DECISIONS:
            decision = event
        if event.kind == "closed":
            return Ending(event, decision)
    return None


def decided_text(plan: Plan, ending: Ending) -> str:
    """The setting that was decided on; empty if the study was closed without a decision."""
    action = ending.decision.body.get("action") if ending.decision else None
    return set_text(plan.factors, action) if action else ""


def closed_text(plan: Plan, ending: Ending) -> str:
    """The study is closed, with lisinopril 10 (the recommendation was accepted)."""
    if ending.decision is None:
        return "The study is closed, without a decision."
    how = f"the recommendation was {ending.decision.kind}"
    return f"The study is closed, with {decided_text(plan, ending)} ({how})."


def close(
    log: Log, plan: Plan, decision: Mapping[str, Any] | None, author: Author, reason: str | None
) -> Written:
    """Close the study: with the recommended setting, with another one, or without a decision.

    To close it again as it was closed changes nothing; another decision or reason is a conflict.
    """
    ending = ending_of(log.events()) if log.head.status == CLOSED else None
    if ending is not None:
        _check_same(log.head.name, plan, ending, (decision, author, reason))
        return Written((ending.closed,), repeated=True)
    if decision is not None:
        kind = "overruled" if decision["overruled"] else "accepted"
        log.append(kind, body=dict(decision), actor=author.actor, reason=reason)
    event = log.append(
        "closed", body={}, actor=author.actor, reason=reason, key=author.key, status=CLOSED
    )
    return Written((event,), repeated=False)


def _check_same(
    name: str,
    plan: Plan,
    ending: Ending,
    wanted: tuple[Mapping[str, Any] | None, Author, str | None],
) -> None:
    """Raise unless nothing of this request would be lost."""
    decision, author, reason = wanted
    retried = author.key is not None and author.key == ending.closed.key
    same = reason is None or same_reason(ending.closed, reason)
    if same and (decision is None or _is_same(decision, ending.decision, retried=retried)):
        return
    how = f"with {text}" if (text := decided_text(plan, ending)) else "without a decision"
    raise StudyClosed(f"{name!r} was closed already, {how}; this decision was not recorded")


def _is_same(decision: Mapping[str, Any], known: Event | None, *, retried: bool) -> bool:
    """Whether this decision is on record; a late result does not make a retried acceptance another."""
    if known is None or (known.kind == "overruled") != decision["overruled"]:
        return False
    accepted_again = retried and not decision["overruled"]
    return accepted_again or bool(known.body.get("action") == decision["action"])
