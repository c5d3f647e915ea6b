"""`verify --asks`: compute every question again from the results known at that time, and compare."""

from typing import NamedTuple

from sidestep.studies.book import Book
from sidestep.studies.deciding import DECISIONS, decide
from sidestep.studies.mind import Mind
from sidestep.studies.plan import Plan
from sidestep.studies.request import request_from_json
from sidestep.studies.storage.store import Store

COMPARED = ("action", "candidate", "measure", "state")
PAGE = 1000


class Difference(NamedTuple):
    """A question that this version of the program would have chosen differently."""

    seq: int
    part: str
    was: object
    now: object


class Replay(NamedTuple):
    """What computing the questions again has found."""

    computed: int  # questions
    differences: tuple[Difference, ...]  # asked by this version, and yet computed otherwise
    changed: tuple[int, ...]  # asked before versions were noted, and computed otherwise now
    skipped: tuple[int, ...]  # asked by another version, and so not computed again


def replayed(store: Store, name: str, plan: Plan) -> Replay:
    """Compute the questions of a study again that this version asked.

    Those of version 0.2 do not say what they were computed with: they are compared, and a difference says
    only that this version asks otherwise.
    """
    book, mind, count = Book(), Mind(plan), 0
    found: list[Difference] = []
    changed: list[int] = []
    skipped: list[int] = []
    while events := store.events(name, book.seq, PAGE):
        for event in events:
            if event.kind == "asked" and event.body.get("computed", DECISIONS) != DECISIONS:
                skipped.append(event.seq)
            elif event.kind == "asked":
                mind.learn(book)
                request = request_from_json(event.body.get("request", {}))
                again = decide(mind, event.seq, book, request)
                differ = [
                    Difference(event.seq, part, event.body.get(part), again.get(part))
                    for part in COMPARED
                    if event.body.get(part) != again.get(part)
                ]
                if "computed" in event.body:
                    found += differ
                elif differ:
                    changed.append(event.seq)
                count += 1
            book.take([event])
    return Replay(count, tuple(found), tuple(changed), tuple(skipped))
