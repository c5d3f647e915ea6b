"""C, history: clients record what they were told under faults; a checker compares it with the record."""

import random
import time

import pytest
from drills import STUDY, fresh
from history import FAIL, OK, UNKNOWN, Operation, violations
from reference import Client
from workers import Worker

from sidestep.errors import ConflictError, InputError, StorageError
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.sql import SqlStore

pytestmark = pytest.mark.full


def one(client, chance, key):
    """One random request; what it is called and how it is made."""
    tickets = [it.seq for it in client.store.events(STUDY) if it.kind == "asked"][-6:] or [2]
    ticket, value = chance.choice(tickets), chance.choice([1.0, 2.0])
    what = chance.choice(["ask", "tell", "tell", "correct", "withdraw", "read"])
    if what == "ask":
        return "ask", key, lambda key: client.ask(key=key, new=True), None
    if what == "tell":
        return what, key, lambda key: client.tell(ticket, value, key=key), value
    if what == "correct":
        return what, key, lambda key: client.correct(ticket, value, "why", key=key), None
    if what == "withdraw":
        return what, key, lambda key: client.withdraw(ticket, "missed", key=key), None
    return what, key, lambda _: client.store.head(STUDY), None


def live(reports, storage, actor, count, seed):
    """Requests at random; each reported before and after."""
    store = SqlStore.open(storage)
    client, chance = Client(store, STUDY, actor), random.Random(seed)
    for number in range(count):
        what, key, act, value = one(client, chance, f"{actor}/{number}")
        began = time.monotonic()
        reports.send(Operation(what, key, began, float("inf"), UNKNOWN, value=value))
        try:
            done = act(key)
        except (ConflictError, InputError):
            result, seq, hash_ = FAIL, 0, ""
        except StorageError:
            result, seq, hash_ = UNKNOWN, 0, ""
        else:
            result, seq, hash_ = OK, done.seq, done.hash
        reports.send(Operation(what, key, began, time.monotonic(), result, seq, hash_, value))
    store.close()


def gathered(workers):
    """The last that was heard of every request."""
    last = {(it.key, it.what): it for worker in workers for it in worker.join()}
    return list(last.values())


def storm(storage, *, clients, requests, kills, seed=0):
    """Clients at random, some of them killed and started anew under another name."""
    fresh(storage)
    chance = random.Random(seed)
    workers = [Worker(live, storage, f"c{n}", requests, seed + n) for n in range(clients)]
    for number in range(kills):
        victim = chance.choice(workers)
        while len(victim.heard) < 12 and victim.process.is_alive():
            victim.listen(0.02)
        victim.listen(chance.uniform(0.0, 0.2))
        victim.process.kill()
        workers.append(
            Worker(live, storage, f"c{clients + number}", requests, seed + clients + number)
        )
    operations = gathered(workers)
    store = SqlStore.open(storage)
    events = store.events(STUDY)
    flaws = verify(store, STUDY).flaws
    store.close()
    return operations, events, flaws


def test_a_history_under_kills_agrees_with_the_record(storage):
    operations, events, flaws = storm(storage, clients=3, requests=25, kills=3)
    assert len([it for it in operations if it.result == OK]) > 25
    assert violations(operations, events) == []
    assert flaws == ()


@pytest.mark.slow
def test_a_long_history_under_kills_agrees_with_the_record(storage):
    operations, events, flaws = storm(storage, clients=5, requests=300, kills=15, seed=1)
    assert len([it for it in operations if it.result == OK]) > 1000
    assert violations(operations, events) == []
    assert flaws == ()


# ---- the checker itself: a history that is wrong is found out


@pytest.fixture
def events():
    store = MemoryStore()
    store.create(STUDY, {}, actor="a", body={})
    client = Client(store, STUDY, "a")
    client.ask(key="ask")
    client.tell(2, 1.0, key="tell")
    return store.events(STUDY)


def op(what, key, began, ended, event=None, result=OK, **more):
    seq, hash_ = (event.seq, event.hash) if event else (0, "")
    return Operation(what, key, began, ended, result, **{"seq": seq, "hash": hash_, **more})


def test_the_checker_finds_nothing_where_nothing_is_wrong(events):
    asked = op("ask", "ask", 0, 1, events[1])
    told = op("tell", "tell", 2, 3, events[2], value=1.0)
    read = op("read", "r", 4, 5, events[2])
    assert violations([asked, told, read], events) == []
    assert violations([told._replace(result=UNKNOWN)], events) == []


def test_the_checker_finds_a_lost_answer(events):
    told = op("tell", "tell", 0, 1, events[2], value=1.0)
    assert "lost or changed" in violations([told], events[:2])[0]


def test_the_checker_finds_a_changed_answer(events):
    told = op("tell", "tell", 0, 1, events[2], value=2.0)
    assert "says otherwise" in violations([told], events)[0]


def test_the_checker_finds_a_refusal_that_was_written(events):
    assert "was refused" in violations([op("tell", "tell", 0, 1, result=FAIL)], events)[0]


def test_the_checker_finds_an_order_against_time(events):
    first = op("tell", "tell", 0, 1, events[2], value=1.0)
    second = op("ask", "ask", 2, 3, events[1])
    assert "began after 3 was saved" in violations([first, second], events)[0]


def test_the_checker_finds_a_stale_read(events):
    told = op("tell", "tell", 0, 1, events[2], value=1.0)
    stale = op("read", "r", 2, 3, events[1])
    assert "a read showed 2 after 3" in violations([told, stale], events)[0]


def test_the_checker_finds_gaps_and_doubles(events):
    assert "a gap in seq" in violations([], events[1:])
    assert "tell was written twice" in violations([], [*events, events[2]])
    assert "ticket 2 was settled twice" in violations([], [*events, events[2]])
