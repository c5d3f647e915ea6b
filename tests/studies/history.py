"""A history of what clients did and what they were told, and a checker that compares it with the record.

The claim: appends to a study are linearizable. There is one order (`seq`) that agrees with real time; a
request that succeeded is in it once, one that was refused is not, one whose fate is unknown is in it at
most once; and a read shows everything that had succeeded before it began.
"""

from collections import Counter
from typing import NamedTuple

from sidestep.studies.storage.events import Event

OK, FAIL, UNKNOWN = "ok", "fail", "unknown"


class Operation(NamedTuple):
    """One request of one client. Times are of one clock for all processes of a machine."""

    what: str  # "ask", "tell", "correct", "withdraw", "read"
    key: str
    began: float
    ended: float
    result: str
    seq: int = 0  # of the event that was shown as saved; of the head, for a read
    hash: str = ""
    value: float | None = None


def violations(operations: list[Operation], events: list[Event]) -> list[str]:
    """Everything in which the history and the record contradict each other."""
    by_key = {event.key: event for event in events if event.key}
    found = [*_numbering(events), *_answers(events)]
    for operation in operations:
        if operation.what != "read":
            found += _kept(operation, by_key.get(operation.key), events)
    done = [it for it in operations if it.result == OK]
    wrote = {it.key for it in done if it.key in by_key and by_key[it.key].seq == it.seq}
    return found + _in_real_time(done, wrote)


def _numbering(events: list[Event]) -> list[str]:
    found = [] if [it.seq for it in events] == list(range(1, len(events) + 1)) else ["a gap in seq"]
    twice = [key for key, count in Counter(it.key for it in events).items() if key and count > 1]
    return found + [f"{key} was written twice" for key in twice]


def _answers(events: list[Event]) -> list[str]:
    settled = Counter(it.ticket for it in events if it.kind in ("answered", "withdrawn"))
    return [f"ticket {ticket} was settled twice" for ticket, count in settled.items() if count > 1]


def _kept(operation: Operation, event: Event | None, events: list[Event]) -> list[str]:
    """One write against the event of its key."""
    if operation.result == FAIL and event is not None:
        return [f"{operation.key} was refused and is event {event.seq}"]
    if operation.result != OK:
        return []
    shown = events[operation.seq - 1] if operation.seq <= len(events) else None
    if shown is None or shown.hash != operation.hash:
        return [f"{operation.key} was shown as event {operation.seq}, which is lost or changed"]
    if operation.what == "tell" and shown.body.get("value") != operation.value:
        return [f"{operation.key} was told {operation.value}, event {shown.seq} says otherwise"]
    return []


def _in_real_time(done: list[Operation], wrote: set[str]) -> list[str]:
    """What had ended before another began comes first, and a read shows all of that.

    A repeated request shows an earlier event, so only those that wrote their own have a place in time.
    """
    found, highest, place = [], 0, 0
    ends = sorted((it for it in done if it.key in wrote), key=lambda it: it.ended)
    for later in sorted(done, key=lambda it: it.began):
        while place < len(ends) and ends[place].ended < later.began:
            highest = max(highest, ends[place].seq)
            place += 1
        if later.what == "read" and later.seq < highest:
            found.append(f"a read showed {later.seq} after {highest} was saved")
        if later.key in wrote and later.seq < highest:
            found.append(f"{later.key} is event {later.seq}, and began after {highest} was saved")
    return found
