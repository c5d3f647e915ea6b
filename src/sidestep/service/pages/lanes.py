"""What was measured, and when: a timeline for every outcome."""

from typing import Any, NamedTuple

from sidestep.service.pages import svg
from sidestep.studies.book import Question
from sidestep.studies.cards.markup import Markup
from sidestep.studies.cards.words import counted
from sidestep.studies.plan import Plan
from sidestep.studies.storage.events import Event

SHOWN = 60  # rounds that are shown, the last ones
EVENTS = 8 * SHOWN  # events that are read for them


class Lane(NamedTuple):
    """One outcome: where it was measured, and how often in all."""

    name: str
    picture: Markup
    results: int


def lanes_view(
    plan: Plan, events: list[Event], questions: list[Question], counts: dict[str, int]
) -> dict[str, Any]:
    """The lanes of the latest entries, and the names of their two ends."""
    rounds = {event.seq: event.body["round"] for event in events if event.kind == "asked"}
    last = max([*rounds.values(), 1])
    first = max(last - SHOWN + 1, min([*rounds.values(), 1]), 1)
    told = _told(events, rounds, first)
    waiting = {name for question in questions[-1:] for name in question.waiting}
    return {
        "lanes": [
            _lane(
                plan, name, told.get(name, []), (first, last), counts.get(name, 0), name in waiting
            )
            for name in (outcome.name for outcome in plan.outcomes)
        ],
        "first": f"{plan.words.round} {first}",
        "last": f"{last}, asked now" if waiting else f"{plan.words.round} {last}",
        "any": bool(rounds),
    }


def _told(events: list[Event], rounds: dict[int, int], first: int) -> dict[str, list[int]]:
    """The rounds in which each outcome was measured."""
    found: dict[str, list[int]] = {}
    for event in events:
        at = rounds.get(event.ticket or 0)
        if event.kind == "answered" and at is not None and at >= first:
            found.setdefault(str(event.outcome), []).append(at)
    return found


def _lane(
    plan: Plan,
    name: str,
    rounds: list[int],
    ends: tuple[int, int],
    count: int,
    waiting: bool,  # noqa: FBT001
) -> Lane:
    first, last = ends
    word, wide = plan.words.round, max(last - first, 1)
    places = [((at - first) / wide, f"{word} {at}") for at in rounds]
    listed = ", ".join(str(at) for at in rounds[-20:])
    spoken = counted(count, "result") + (f", {word}s {listed}" if rounds else "")
    return Lane(name, svg.lane(places, spoken, waiting), count)
