"""Entries without most of their bodies: all that a list of studies reads of them."""

from json import loads
from typing import Any, NamedTuple

from sidestep.errors import RecordError
from sidestep.studies.storage.events import Event, written

COUNTED = ("asked", "answered", "corrected", "withdrawn", "imported")


class Outline(NamedTuple):
    """One entry that decides what counts or what is open.

    part   of a question the outcomes that it asks for, of an import the number of its rows; the body of a
           correction
    """

    seq: int
    kind: str
    ticket: int | None
    outcome: str | None
    at: str  # UTC
    part: Any


class Outlined(NamedTuple):
    """A study in a list."""

    name: str
    status: str
    updated: str  # UTC
    entries: list[Outline]


def outline_of(row: Any) -> Outline:
    """The outline from a row of OUTLINES without its study; RecordError if the row is damaged."""
    seq, kind, ticket, outcome, at, part = row
    try:
        return Outline(seq, kind, ticket, outcome, at, None if part is None else loads(part))
    except (TypeError, ValueError) as error:
        raise RecordError(f"event {seq} cannot be read: {error}") from None


def outline_of_event(event: Event) -> Outline:
    """The outline of a whole entry."""
    body = event.body
    part: Any = body if event.kind == "corrected" else body.get("measure")
    if event.kind == "imported":
        part = len(body["rows"])
    return Outline(event.seq, event.kind, event.ticket, event.outcome, written(event.at), part)
