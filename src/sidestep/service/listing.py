"""The studies that a caller may see, page by page, with their status and whose turn it is."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sidestep.service.auth import Caller
from sidestep.service.desk import Desk
from sidestep.studies.book import Question
from sidestep.studies.people.roles import READ
from sidestep.studies.storage.events import written
from sidestep.studies.storage.log import Head
from sidestep.studies.storage.store import CLOSED

CHUNK = 100
ASK, ANSWER = "ask", "answer"


class Line(NamedTuple):
    """A study in a list."""

    head: Head
    questions: list[Question]
    results: int

    @property
    def turn(self) -> str:
        """Whose turn it is: somebody's to ask, somebody's to answer, or nobody's."""
        if self.head.status == CLOSED:
            return CLOSED
        return ANSWER if self.questions else ASK

    @property
    def title(self) -> str:
        """Its title, or its name without one."""
        return str(self.head.config.get("title") or self.head.name)

    def to_json(self) -> dict[str, Any]:
        """The line for a program."""
        head = self.head
        return {
            "study": head.name,
            "title": self.title,
            "status": head.status,
            "turn": self.turn,
            "open": len(self.questions),
            "results": self.results,
            "entries": head.seq,
            "hash": head.hash,
            "updated": written(head.updated),
        }


def page(
    desk: Desk, caller: Caller, *, status: str | None, after: Head | None, limit: int
) -> tuple[list[Line], Head | None]:
    """One page, latest change first, and where the next one begins."""
    found: list[Head] = []
    for head in _visible(desk, caller, status, after):
        if len(found) == limit:
            return [line_of(desk, each) for each in found], found[-1]
        found.append(head)
    return [line_of(desk, each) for each in found], None


def line_of(desk: Desk, head: Head) -> Line:
    """The line of one study."""
    shown = desk.study(head.name)
    return Line(head, shown.questions(), shown.read(lambda study: study.n_results))


def _visible(desk: Desk, caller: Caller, status: str | None, after: Head | None) -> Iterator[Head]:
    while heads := desk.store.list(status=status, after=after, limit=CHUNK):
        yield from (head for head in heads if caller.rights.allow(READ, head.name))
        after = heads[-1]
