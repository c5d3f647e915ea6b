"""Drills: several processes on one study, killed, stopped and in conflict with each other.

Every drill returns a tally; tests check it, `benchmarks/reliability.py` prints it.
"""

import os
import random
import signal
import time
from collections import Counter
from contextlib import closing
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from reference import Client
from workers import PROCESSES, Worker

from sidestep.errors import AlreadyAnswered
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.events import Event
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.study import Study

STUDY = "drill"
OF_STORE, OF_STUDY = "store", "study"  # the drills play the plain client, or the whole product


class Kills(NamedTuple):
    """What was left after clients or servers were killed."""

    kills: int
    acknowledged: int
    lost: int  # acknowledged, and not in the record as acknowledged
    unexplained: int  # open asks that no actor would be given again
    doubled: int  # requests that were written twice
    flaws: int


class Conflicts(NamedTuple):
    """What came of telling tickets two values at once."""

    tickets: int
    both: int  # both tellers were told "saved"
    overwritten: int  # told "saved", and another value is on record
    neither: int


class HandOuts(NamedTuple):
    """What came of several askers and one queue."""

    asks: int
    twice: int
    missing: int


class Pace(NamedTuple):
    """How fast pairs of ask and tell were."""

    pairs: int
    seconds: float
    p99: float  # seconds a tell

    @property
    def rate(self) -> float:
        return self.pairs / self.seconds


class StudyClient:
    """Ask and tell of a whole `Study`, with the face of the plain client."""

    def __init__(self, store: SqlStore, actor: str) -> None:
        self.store, self.study = store, Study.open(STUDY, store, actor=actor)

    def ask(self, *, key: str | None = None, new: bool = False) -> Event:
        return self._event(self.study.ask(key=key, new=new).id)

    def tell(self, ticket: int, value: float, *, key: str | None = None) -> Event:
        return self._event(self.study.tell(ticket, value, key=key).entries[0])

    def _event(self, seq: int) -> Event:
        return self.store.events(STUDY, after=seq - 1, limit=1)[0]


def fresh(storage: str, kind: str = OF_STORE) -> None:
    """An empty study."""
    with closing(SqlStore.open(storage)) as store:
        if kind == OF_STORE:
            store.create(STUDY, {}, actor="drill", body={})
            return
        Study.create(
            STUDY,
            store,
            factors=[Factor("dose", 0, 40, step=10), Factor("other", 0, 10, step=5)],
            target=Outcome("pressure", goal="lower", baseline=0, range=(-100, 100)),
            protected=[Outcome("sodium", baseline=0, range=(-100, 100), tolerance=5)],
            aim="clean",
            rank=1,
            actor="drill",
        )


def client_of(storage: str, actor: str, kind: str) -> Any:
    """A client of a process of its own."""
    store = SqlStore.open(storage)
    if kind == OF_STUDY:
        return StudyClient(store, actor)
    return Client(store, STUDY, actor, patience=120.0)


# ---- clients: what runs in the processes


def pairs_for_ever(reports: Connection, storage: str, actor: str, kind: str) -> None:
    """Ask and tell; report each answer once it is saved."""
    client = client_of(storage, actor, kind)
    while True:
        ticket = client.ask().seq
        value = random.random()
        told = client.tell(ticket, value, key=f"{actor}/{ticket}")
        reports.send((ticket, value, told.hash))


def pairs(
    reports: Connection, storage: str, actor: str, kind: str, count: int, gate: Any = None
) -> None:
    """Ask and tell with a key each, and go on whatever happens to the server."""
    client = client_of(storage, actor, kind)
    if gate is not None:
        gate.wait(60)
    for number in range(count):
        ticket = client.ask(key=f"{actor}/ask/{number}").seq
        before = time.monotonic()
        told = client.tell(ticket, float(number), key=f"{actor}/tell/{number}")
        reports.send((ticket, float(number), told.hash, time.monotonic() - before))


def tell_all(
    reports: Connection, storage: str, kind: str, tickets: list[int], value: float, gate: Any
) -> None:
    """Tell every ticket, each at the same moment as the other teller."""
    client = client_of(storage, f"teller of {value}", kind)
    for ticket in tickets:
        gate.wait(60)
        try:
            client.tell(ticket, value)
        except AlreadyAnswered:
            continue
        reports.send(ticket)


def ask_many(
    reports: Connection, storage: str, actor: str, kind: str, count: int, gate: Any
) -> None:
    """Take new tickets as fast as they come."""
    client = client_of(storage, actor, kind)
    gate.wait(60)
    for _ in range(count):
        reports.send(client.ask(new=True).seq)


# ---- drills


def kill_clients(
    storage: str,
    acknowledged: int,
    *,
    clients: int = 2,
    life: float = 0.4,
    seed: int = 0,
    kind: str = OF_STORE,
) -> Kills:
    """SIGKILL clients at any moment, start them again, until so many answers were acknowledged."""
    fresh(storage, kind)
    chance = random.Random(seed)
    heard: list[Any] = []
    kills = 0
    while len(heard) < acknowledged:
        workers = [Worker(pairs_for_ever, storage, f"actor {n}", kind) for n in range(clients)]
        if chance.random() < 0.8:  # else it dies while it opens the file
            workers[0].reports.poll(30)
        for worker in workers:
            worker.listen(chance.uniform(0.0, life))
            worker.kill()
            heard += worker.heard
        kills += clients
    return _judged(storage, kills, heard)


def kill_server(
    server: Any, pairs_each: int, *, kills: int, clients: int = 3, kind: str = OF_STORE
) -> Kills:
    """SIGKILL the database server while clients go on; each finishes all its pairs."""
    storage = server.new_database()
    fresh(storage, kind)
    workers = [Worker(pairs, storage, f"actor {n}", kind, pairs_each) for n in range(clients)]
    for worker in workers:
        worker.reports.poll(60)
    done = 0
    while done < kills and any(worker.process.is_alive() for worker in workers):
        for worker in workers:
            worker.listen(0.2)
        server.kill()
        time.sleep(0.2)
        server.start()
        done += 1
    heard = [report[:3] for worker in workers for report in worker.join()]
    tally = _judged(storage, done, heard)
    wanted = clients * pairs_each
    return tally._replace(lost=tally.lost + wanted - len(heard))


def tell_two_values(storage: str, tickets: int, *, kind: str = OF_STORE) -> Conflicts:
    """Two processes tell every ticket, at once, different values."""
    fresh(storage, kind)
    client = client_of(storage, "asker", kind)
    store = client.store
    numbers = [client.ask(new=True).seq for _ in range(tickets)]
    gate = PROCESSES.Barrier(2)
    tellers = {value: Worker(tell_all, storage, kind, numbers, value, gate) for value in (1.0, 2.0)}
    saved = {value: set(teller.join()) for value, teller in tellers.items()}
    kept = {
        event.ticket: event.body["value"]
        for event in store.events(STUDY)
        if event.kind == "answered"
    }
    store.close()
    wrong = sum(kept.get(ticket) != value for value, told in saved.items() for ticket in told)
    both = saved[1.0] & saved[2.0]
    return Conflicts(tickets, len(both), wrong, tickets - len(saved[1.0] | saved[2.0]))


def hand_out(storage: str, asks: int, *, askers: int = 4, kind: str = OF_STORE) -> HandOuts:
    """Several processes take tickets at once."""
    fresh(storage, kind)
    gate = PROCESSES.Barrier(askers)
    workers = [
        Worker(ask_many, storage, f"asker {n}", kind, asks // askers, gate) for n in range(askers)
    ]
    taken = Counter(item for worker in workers for item in worker.join())
    twice = sum(count > 1 for count in taken.values())
    return HandOuts(taken.total(), twice, asks - len(taken))


def pace(storage: str, count: int, *, clients: int = 1, kind: str = OF_STORE) -> Pace:
    """Pairs a second of so many clients on one study."""
    fresh(storage, kind)
    gate, each = PROCESSES.Barrier(clients + 1), count // clients
    workers = [Worker(pairs, storage, f"actor {n}", kind, each, gate) for n in range(clients)]
    gate.wait(60)
    before = time.monotonic()
    tells = sorted(report[3] for worker in workers for report in worker.join())
    seconds = time.monotonic() - before
    return Pace(len(tells), seconds, tells[int(0.99 * len(tells))])


def _judged(storage: str, kills: int, heard: list[tuple[int, float, str]]) -> Kills:
    """Compare what clients were told with what is on record, and ask again for those who wait."""
    store = SqlStore.open(storage)
    events = store.events(STUDY)
    kept = {event.hash: event for event in events if event.kind == "answered"}
    lost = sum(
        hash_ not in kept or kept[hash_].ticket != ticket or kept[hash_].body["value"] != value
        for ticket, value, hash_ in heard
    )
    settled = {event.ticket for event in events if event.kind in ("answered", "withdrawn")}
    waiting = Counter(
        event.actor for event in events if event.kind == "asked" and event.seq not in settled
    )
    unexplained = sum(count - 1 for count in waiting.values())
    for actor in waiting:
        again = Client(store, STUDY, actor).ask()
        unexplained += again.seq in settled or again.actor != actor
    keys = Counter(event.key for event in events if event.key)
    doubled = sum(count - 1 for count in keys.values())
    flaws = len(verify(store, STUDY).flaws)
    store.close()
    return Kills(kills, len(heard), lost, unexplained, doubled, flaws)


def stop_in_transaction(reports: Connection, storage: str) -> None:
    """Take the study's lock and stop while holding it, until SIGCONT."""
    store = SqlStore.open(storage)
    try:
        with store.writing(STUDY) as log:
            log.append("asked", body={}, actor="sleeper", key="sleeper")
            reports.send("asleep")
            os.kill(os.getpid(), signal.SIGSTOP)
    except Exception as error:  # whatever it is is reported
        reports.send(type(error).__name__)
    else:
        reports.send("saved")
    store.close()
