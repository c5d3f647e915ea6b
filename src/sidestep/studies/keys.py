"""Keys of requests: a repeated request gets its first answer; another one with its key is refused."""

from collections.abc import Callable, Mapping
from typing import Any

from sidestep.errors import ConflictError, KeyReused
from sidestep.studies.book import Question
from sidestep.studies.storage.events import ERASED, Event
from sidestep.studies.storage.log import Log


def repeat_of(
    log: Log, key: str | None, kinds: tuple[str, ...], says: Callable[[Event], bool]
) -> Event | None:
    """The entry that this request wrote before; None if its key is new.

    kinds   kinds of entries that such a request writes
    says    whether an entry has the content of this request
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
    """Whether an entry has this reason; erased text cannot be compared and counts as the same."""
    return event.reason in (reason, ERASED)


def check_same_request(mine: Question, wanted: Mapping[str, Any]) -> None:
    """Raise unless the open question answers this request: plain, or with the same restrictions."""
    if wanted and wanted != mine.body.get("request", {}):
        raise ConflictError(
            f"question {mine.id} is open: answer or withdraw it first, or ask for a new one (new=True)"
        )
