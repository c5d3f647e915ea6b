"""Drills: several processes on one study, killed, stopped and set against each other.

Every drill returns a tally; tests hold it to its promise, `benchmarks/reliability.py` prints it.
"""

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from reference import Client

from sidestep.errors import AlreadyAnswered
from sidestep.studies.record import verify
from sidestep.studies.sql import SqlStore

STUDY = "drill"
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["drills", "sqlalchemy.dialects.sqlite", "psycopg"])


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


def fresh(storage: str) -> None:
    """An empty study."""
    store = SqlStore.open(storage)
    store.create(STUDY, {}, actor="drill", body={})
    store.close()


class Worker:
    """A client in a process of its own, which reports what it was told."""

    def __init__(self, work: Callable[..., None], *args: Any) -> None:
        self.reports, theirs = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=_run, args=(work, theirs, *args), daemon=True)
        self.process.start()
        theirs.close()
        self.heard: list[Any] = []

    def listen(self, seconds: float = 0.0) -> list[Any]:
        """Everything that was reported up to now, after waiting for that long."""
        deadline = time.monotonic() + seconds
        while self.reports.poll(max(0.0, deadline - time.monotonic())):
            try:
                self.heard.append(self.reports.recv())
            except EOFError:
                break
        return self.heard

    def until(self, sign: str, seconds: float = 60.0) -> None:
        """Wait for a report."""
        deadline = time.monotonic() + seconds
        while sign not in self.heard:
            if time.monotonic() > deadline or not self.reports.poll(seconds):
                raise TimeoutError(f"no {sign!r}, only {self.heard}")
            self.heard.append(self.reports.recv())

    def kill(self) -> None:
        self.process.kill()
        self.join()

    def join(self) -> list[Any]:
        """Wait for the end; everything that was reported."""
        while True:
            try:
                self.heard.append(self.reports.recv())
            except (EOFError, OSError):
                break
        self.process.join(60)
        self.reports.close()
        return self.heard


def _run(work: Callable[..., None], reports: Connection, *args: Any) -> None:
    work(reports, *args)
    reports.close()


# ---- clients: what runs in the processes


def pairs_for_ever(reports: Connection, storage: str, actor: str) -> None:
    """Ask and tell; report each answer once it is saved."""
    store = SqlStore.open(storage)
    client = Client(store, STUDY, actor)
    while True:
        ticket = client.ask().seq
        value = random.random()
        told = client.tell(ticket, value, key=f"{actor}/{ticket}")
        reports.send((ticket, value, told.hash))


def pairs(reports: Connection, storage: str, actor: str, count: int, gate: Any = None) -> None:
    """Ask and tell with a key each, and go on whatever happens to the server."""
    store = SqlStore.open(storage)
    client = Client(store, STUDY, actor, patience=120.0)
    if gate is not None:
        gate.wait(60)
    for number in range(count):
        ticket = client.ask(key=f"{actor}/ask/{number}").seq
        before = time.monotonic()
        told = client.tell(ticket, float(number), key=f"{actor}/tell/{number}")
        reports.send((ticket, float(number), told.hash, time.monotonic() - before))
    store.close()


def tell_all(
    reports: Connection, storage: str, tickets: list[int], value: float, gate: Any
) -> None:
    """Tell every ticket, each at the same moment as the other teller."""
    store = SqlStore.open(storage)
    client = Client(store, STUDY, f"teller of {value}")
    for ticket in tickets:
        gate.wait(60)
        try:
            client.tell(ticket, value)
        except AlreadyAnswered:
            continue
        reports.send(ticket)
    store.close()


def ask_many(reports: Connection, storage: str, actor: str, count: int, gate: Any) -> None:
    """Take new tickets as fast as they come."""
    store = SqlStore.open(storage)
    client = Client(store, STUDY, actor)
    gate.wait(60)
    for _ in range(count):
        reports.send(client.ask(new=True).body["item"])
    store.close()


# ---- drills


def kill_clients(storage: str, acknowledged: int, *, clients: int = 2, seed: int = 0) -> Kills:
    """SIGKILL clients at any moment, start them again, until so many answers were acknowledged."""
    fresh(storage)
    chance = random.Random(seed)
    heard: list[Any] = []
    kills = 0
    while len(heard) < acknowledged:
        workers = [Worker(pairs_for_ever, storage, f"actor {n}") for n in range(clients)]
        if chance.random() < 0.8:  # else it dies while it opens the file
            workers[0].reports.poll(30)
        for worker in workers:
            worker.listen(chance.uniform(0.0, 0.4))
            worker.kill()
            heard += worker.heard
        kills += clients
    return _judged(storage, kills, heard)


def kill_server(server: Any, pairs_each: int, *, kills: int, clients: int = 3) -> Kills:
    """SIGKILL the database server while clients go on; each finishes all its pairs."""
    storage = server.new_database()
    fresh(storage)
    workers = [Worker(pairs, storage, f"actor {n}", pairs_each) for n in range(clients)]
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


def tell_two_values(storage: str, tickets: int) -> Conflicts:
    """Two processes tell every ticket, at once, different values."""
    fresh(storage)
    store = SqlStore.open(storage)
    client = Client(store, STUDY, "asker")
    numbers = [client.ask(new=True).seq for _ in range(tickets)]
    gate = PROCESSES.Barrier(2)
    tellers = {value: Worker(tell_all, storage, numbers, value, gate) for value in (1.0, 2.0)}
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


def hand_out(storage: str, asks: int, *, askers: int = 4) -> HandOuts:
    """Several processes take from one queue."""
    fresh(storage)
    gate = PROCESSES.Barrier(askers)
    workers = [Worker(ask_many, storage, f"asker {n}", asks // askers, gate) for n in range(askers)]
    taken = Counter(item for worker in workers for item in worker.join())
    twice = sum(count > 1 for count in taken.values())
    return HandOuts(taken.total(), twice, asks - len(taken))


def pace(storage: str, count: int, *, clients: int = 1) -> Pace:
    """Pairs a second of so many clients on one study."""
    fresh(storage)
    gate, each = PROCESSES.Barrier(clients + 1), count // clients
    workers = [Worker(pairs, storage, f"actor {n}", each, gate) for n in range(clients)]
    gate.wait(60)
    before = time.monotonic()
    tells = sorted(report[3] for worker in workers for report in worker.join())
    seconds = time.monotonic() - before
    return Pace(len(tells), seconds, tells[int(0.99 * len(tells))])


def _judged(storage: str, kills: int, heard: list[tuple[int, float, str]]) -> Kills:
    """Compare what clients were told with what is on record."""
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
    """Take the study's lock and fall asleep on it, until somebody says SIGCONT."""
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
