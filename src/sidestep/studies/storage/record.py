"""`verify` checks the chain of a record; `erase` blanks the text of a person and records that."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sidestep.errors import InputError, RecordError
from sidestep.studies.storage.events import GENESIS, Event, hash_of, words_hold
from sidestep.studies.storage.log import Head
from sidestep.studies.storage.store import Store
from sidestep.studies.values import shown

PAGE = 1000
NOTED = re.compile("[0-9a-f]{16,64}")


class Flaw(NamedTuple):
    """Something in a record that was changed."""

    seq: int | None  # the event, where it is one
    sentence: str


class Verdict(NamedTuple):
    """What `verify` found."""

    name: str
    events: int
    hash: str  # of the last event: note it elsewhere, and a later `verify(known=...)` requires it
    flaws: tuple[Flaw, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing was found."""
        return not self.flaws


def verify(store: Store, name: str, *, known: str | None = None) -> Verdict:
    """Check the chain of a study, and report what was edited, removed, swapped or blanked without notice.

    `known` is a hash that was noted earlier (on a printout, in an export), or its beginning: it must be
    in the chain, which reveals a record that was rewritten from the beginning.
    """
    if known is not None and not NOTED.fullmatch(known):
        raise InputError(f"known must be 16 to 64 characters of a hash, got {shown(known)}")
    head = store.head(name)
    walk = _Walk(head)
    for found in pages(store, name, up_to=head.seq):
        walk.step(found)
    return walk.verdict(known)


def pages(store: Store, name: str, *, up_to: int | None = None) -> Iterator[Event | Flaw]:
    """Every event of a study up to a seq, read page by page; a row that cannot be read is a flaw."""
    after, last = 0, store.head(name).seq if up_to is None else up_to
    while after < last:
        most = min(PAGE, last - after)
        found = _readable(store, name, after, most)
        yield from (event for event in found if event.seq is None or event.seq <= last)
        after = max([event.seq for event in found if event.seq is not None], default=last)


def erase(
    store: Store,
    name: str,
    seqs: Iterable[int],
    *,
    actor: str,
    reason: str | None = None,
    key: str | None = None,
) -> Event:
    """Blank actor and reason of these events, for good; the `erased` event names them.

    The chain stays valid, because it covers salted digests of the text, and the salts are blanked too.
    """
    chosen = sorted(set(seqs))
    with store.writing(name) as log:
        earlier = log.find(key) if key else None
        if earlier is not None:
            return earlier
        if not chosen or chosen[0] < 1 or chosen[-1] > log.head.seq:
            raise InputError(f"seqs must name events in 1..{log.head.seq}, got {chosen}")
        for seq in chosen:
            log.blank(seq)
        log.drop_snapshots(1)  # they may contain names
        return log.append("erased", body={"events": chosen}, actor=actor, reason=reason, key=key)


class _Walk:
    """The state of a check along the chain."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.flaws: list[Flaw] = []
        self.seq, self.hash = 0, GENESIS
        self.count = 0
        self.seen: set[str] = set()
        self.blank: set[int] = set()
        self.announced: set[int] = set()

    def step(self, event: Event | Flaw) -> None:
        """Take one more event."""
        for missing in range(self.seq + 1, event.seq or 0):
            self._flaw(missing, f"event {missing} is missing")
        follows = event.seq == self.seq + 1
        self.seq = event.seq or self.seq
        if isinstance(event, Flaw):
            self.flaws.append(event)
            self.hash = ""  # the next link cannot be checked
            return
        self.count += 1
        self._contents(event)
        if follows and self.hash and event.prev_hash != self.hash:
            self._flaw(event.seq, f"event {event.seq} does not follow the event before it")
        self.hash = event.hash
        self.seen.add(event.hash)

    def verdict(self, known: str | None) -> Verdict:
        """The result of the check."""
        head = self.head
        for missing in range(self.seq + 1, head.seq + 1):
            self._flaw(missing, f"event {missing} is missing")
        if self.seq == head.seq and self.hash and self.hash != head.hash:
            self._flaw(None, "the head of the study is not the hash of its last event")
        if known is not None and not any(each.startswith(known) for each in self.seen):
            self._flaw(None, f"the hash {known} that was noted earlier is not in the chain")
        for seq in sorted(self.blank - self.announced):
            self._flaw(seq, f"what was written in event {seq} was erased and no entry says so")
        return Verdict(head.name, self.count, head.hash, tuple(self.flaws))

    def _contents(self, event: Event) -> None:
        seq = event.seq
        if event.hash != hash_of(event):
            self._flaw(seq, f"event {seq} was edited: its hash is not that of its contents")
        if not words_hold(event):
            self._flaw(seq, f"the actor or the reason of event {seq} was edited")
        if event.seal.actor_salt is None:
            self.blank.add(seq)
        if event.kind == "erased":
            self.announced.update(event.body.get("events", ()))
        if seq == 1 and event.body.get("config") != self.head.config:
            self._flaw(None, "the configuration of the study is not what event 1 says")
        if seq == 1 and event.body.get("name") != self.head.name:
            self._flaw(None, "the name of the study is not what event 1 says")

    def _flaw(self, seq: int | None, sentence: str) -> None:
        self.flaws.append(Flaw(seq, sentence))


def _readable(store: Store, name: str, after: int, most: int) -> list[Event | Flaw]:
    """A page of events; where a row cannot be read, one by one."""
    try:
        return list(store.events(name, after, most))
    except RecordError as error:
        if most == 1:
            return [Flaw(after + 1, str(error))]
    found: list[Event | Flaw] = []
    for before in range(after, after + most):
        found += [it for it in _readable(store, name, before, 1) if it.seq == before + 1]
    return found
