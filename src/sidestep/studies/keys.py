"""A key belongs to one request: the same again is answered from the record, another one is refused."""

from collections.abc import Callable, Mapping
from typing import Any

from sidestep.errors import ConflictError, KeyReused
from sidestep.studies.book import Question
from sidestep.studies.storage.events import ERASED, Event
from sidestep.studies.storage.store import Log


def repeat_of(
    log: Log, key: str | None, kinds: tuple[str, ...], says: Callable[[Event], bool]
) -> Event | None:
    """The entry that this very request wrote before; None where its key is new.

    kinds   of entries that such a request writes
    says    whether an entry says what this request says
    """
    found = log.find(key) if key else None
    if found is None:
        return None
    if found.kind not in kinds or not says(found):
        raise KeyReused(
            f"the key {key!r} belongs to another request, which wrote entry {found.seq}; nothing was "
            "changed"
        )
    return found


def same_reason(event: Event, reason: str | None) -> bool:
    """Whether an entry gives this reason; words that were erased can no longer be compared."""
    return event.reason in (reason, ERASED)


def check_same_request(mine: Question, wanted: Mapping[str, Any]) -> None:
    """An open question is handed out again for the same request or a plain one, not for another."""
    if wanted and wanted != mine.body.get("request", {}):
        raise ConflictError(
            f"question {mine.id} is open: answer or withdraw it first, or ask for a new one (new=True)"
        )
