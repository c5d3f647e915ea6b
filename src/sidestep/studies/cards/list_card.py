"""Every study of a storage on a line: where it stands, and whose turn it is."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sidestep.studies.cards.card import Card, Prose, Section, Table
from sidestep.studies.cards.words import counted
from sidestep.studies.standing import Standing
from sidestep.studies.storage.store import CLOSED


class Line(NamedTuple):
    """A study in the list."""

    name: str
    status: str
    updated: str  # UTC
    standing: Standing


def list_card(lines: Sequence[Line], data: Sequence[dict[str, Any]] = ()) -> Card:
    """The list by name; `data` is what a program gets of every study."""
    now = datetime.now(UTC)
    rows = tuple(
        (
            line.name,
            counted(line.standing.results, "result"),
            _turn(line, now),
            f"changed {age_text(line.updated, now)}",
        )
        for line in sorted(lines)
    )
    empty = Prose("There is no study here yet: sidestep study create --example")
    return Card(
        kind="list",
        title=counted(len(rows), "study", "studies").capitalize(),
        sections=(Section("", (Table(rows) if rows else empty,)),),
        data={"studies": sorted(data, key=lambda study: str(study["study"]))},
    )


def _turn(line: Line, now: datetime) -> str:
    """Who is awaited: an answer, or a question."""
    if line.status == CLOSED:
        return "closed"
    waiting = line.standing.waiting
    if not waiting:
        return "ready to ask"
    return f"awaits {counted(len(waiting), 'answer')}, oldest asked {age_text(waiting[0], now)}"


def age_text(at: str, now: datetime | None = None) -> str:
    """How long ago, as a person says it."""
    days = ((now or datetime.now(UTC)) - datetime.fromisoformat(at)).total_seconds() / 86400
    if days < 1 / 24:
        return "just now" if days < 1 / 288 else f"{max(days, 0) * 1440:.0f} minutes ago"
    if days < 1:
        return f"{counted(round(days * 24), 'hour')} ago"
    return f"{counted(round(days), 'day')} ago"
