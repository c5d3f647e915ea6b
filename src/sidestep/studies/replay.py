"""`verify --asks`: compute every question again from the results known at that time, and compare."""

from typing import NamedTuple

from sidestep.studies.book import Book
from sidestep.studies.deciding import decide
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


def replayed(store: Store, name: str, plan: Plan) -> tuple[int, list[Difference]]:
    """How many questions were computed again, and which of them differ."""
    book, mind, count = Book(), Mind(plan), 0
    found: list[Difference] = []
    while events := store.events(name, book.seq, PAGE):
        for event in events:
            if event.kind == "asked":
                mind.learn(book)
                request = request_from_json(event.body.get("request", {}))
                again = decide(mind, event.seq, book, request)
                found += [
                    Difference(event.seq, part, event.body[part], again[part])
                    for part in COMPARED
                    if event.body[part] != again[part]
                ]
                count += 1
            book.take([event])
    return count, found
