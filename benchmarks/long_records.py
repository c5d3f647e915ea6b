"""Records that would take long to play: what a few real rounds wrote, again, with other values."""

import random
import tempfile
from collections.abc import Callable
from contextlib import closing

import drills

from sidestep.studies.storage.events import Entry, Event, utc_now
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.study import Study


def long_record(storage: str, count: int, make: Callable[[str], object], rounds: int = 1) -> None:
    """A study of so many events, which `make` sets up on a storage."""
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        small = f"{folder}/small.db"
        make(small)
        study = Study.open(drills.STUDY, small)
        for _ in range(rounds):
            study.tell(study.ask().id, chance.gauss(0, 10))
        with closing(SqlStore.open(small)) as store:
            head, (created, *played) = store.head(drills.STUDY), store.events(drills.STUDY)
    events = [created]
    for seq in range(2, count + 1):
        entry = _entry(played[(seq - 2) % len(played)], seq, chance)
        events.append(entry.linked(seq, events[-1].hash, utc_now()))
    end = events[-1]
    with closing(SqlStore.open(storage)) as store:
        store.adopt(head._replace(seq=end.seq, hash=end.hash, updated=end.at), events)


def _entry(model: Event, seq: int, chance: random.Random) -> Entry:
    if model.kind == "asked":
        return Entry("asked", model.body | {"round": seq // 2}, "ada", key=f"ask/{seq}")
    body = model.body | {"value": chance.gauss(0, 10)}
    return Entry("answered", body, "ada", seq - 1, body["outcome"], f"tell/{seq}")
