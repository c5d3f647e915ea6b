"""What every store does to append: check, link to the chain, store, move the head."""

from sidestep.studies.storage.events import Body, Clock, Entry, Event, canonical
from sidestep.studies.storage.store import Head, key_reused, study_exists


class Appending:
    """A log without the storing of an event, which a subclass adds."""

    def __init__(self, head: Head, clock: Clock) -> None:
        self.head = head
        self.refusal: Exception | None = None  # raised again at the end of the block
        self._clock = clock

    def append(
        self,
        kind: str,
        *,
        body: Body,
        actor: str,
        ticket: int | None = None,
        outcome: str | None = None,
        key: str | None = None,
        reason: str | None = None,
        status: str | None = None,
    ) -> Event:
        """The event, linked to the chain; see `Log.append` for what is refused."""
        try:
            entry = Entry(kind, body, actor, ticket, outcome, key, reason)
            event = entry.linked(self.head.seq + 1, self.head.hash, self._clock())
            head = self.head._replace(
                seq=event.seq, hash=event.hash, updated=event.at, status=status or self.head.status
            )
            self._keep(event, head)
        except Exception as refusal:
            self.refusal = refusal
            raise
        self.head = head
        return event

    def _keep(self, event: Event, head: Head) -> None:
        raise NotImplementedError


def created_before(first: Event, wanted: Entry) -> Event:
    """Event 1 of an existing study, if the same request created it; raises otherwise."""
    if wanted.key is None or first.key != wanted.key:
        raise study_exists(wanted.body["name"])
    if canonical(first.body) != canonical(wanted.body):
        raise key_reused(wanted.key)
    return first
