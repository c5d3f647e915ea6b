"""Where every study of a storage stands, from a few columns of its entries.

A list of thousands of studies needs neither what was set nor why: of most entries not even the body is
read. `Book` (book.py) folds whole entries, and agrees with this.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sidestep.studies.storage.outlines import Outline


class Standing(NamedTuple):
    """How many results of a study count, and since when each of its open questions waits."""

    results: int
    waiting: tuple[str, ...]  # times in UTC, the oldest question first


def standing_of(entries: Iterable[Outline]) -> Standing:
    """The fold of the entries of one study."""
    asked: dict[int, str] = {}  # open questions, and when they were asked
    measures: dict[int, list[str]] = {}  # what they asked for, and is still to come
    panels: dict[int, bool] = {}
    counting: set[tuple[int, int]] = set()  # entry and row of the results that count
    for entry in entries:
        ticket = entry.ticket or 0
        if entry.kind == "asked":
            asked[entry.seq], measures[entry.seq] = entry.at, list(entry.part)
            panels[entry.seq] = len(entry.part) > 1
        elif entry.kind == "answered":
            counting.add((entry.seq, 0))
            if ticket in asked:
                measures[ticket] = [name for name in measures[ticket] if name != entry.outcome]
                if not (panels[ticket] and measures[ticket]):
                    del asked[ticket]
        elif entry.kind == "withdrawn":
            asked.pop(ticket, None)
        elif entry.kind == "imported":
            counting.update((entry.seq, row) for row in range(entry.part))
        else:
            place = (entry.part["answer"], entry.part.get("row", 0))
            (counting.discard if entry.part["is"] is None else counting.add)(place)
    return Standing(len(counting), tuple(asked.values()))
