"""Many clients, servers that die, a database that dies: nothing acknowledged is lost or written twice."""

import random
import threading
import time
from contextlib import ExitStack, closing

import pytest
from drills import OF_STUDY, STUDY, fresh
from history import FAIL, OK, UNKNOWN, Operation, violations
from served import Load, Served, judged, under_kills

from sidestep.errors import ConflictError, InputError
from sidestep.service.client import Client
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.sql import SqlStore

pytestmark = pytest.mark.full


@pytest.fixture
def serve(tmp_path):
    """Servers on a storage, put away in the end."""
    with ExitStack() as stack:
        yield lambda storage: stack.enter_context(Served(str(storage), tmp_path / "log"))


def test_fifty_clients_lose_nothing_when_the_server_is_killed_or_told_to_stop(serve, tmp_path):
    storage, codes = str(tmp_path / "load.db"), []
    fresh(storage, OF_STUDY)
    server = serve(storage)
    load = Load([server.url], STUDY, clients=50, pairs=3)
    deaths = [server.kill, lambda: codes.append(server.stop())]
    under_kills(load, deaths, server.start, wanted=150)
    assert codes == [0]
    assert judged(storage, STUDY, load.told) == (150, 0, 0, 0, 0)


@pytest.mark.slow
def test_fifty_clients_of_two_replicas_outlive_their_database(serve, own_postgres):
    storage = own_postgres.new_database()
    fresh(storage, OF_STUDY)
    load = Load([serve(storage).url, serve(storage).url], STUDY, clients=50, pairs=2)
    under_kills(load, [own_postgres.kill], own_postgres.start, wanted=100)
    assert judged(storage, STUDY, load.told) == (100, 0, 0, 0, 0)


# ---- two replicas, a history


class Recorder:
    """A client that does things at random and records what it was told."""

    def __init__(self, url, actor, seed, requests):
        self.operations, self._chance = [], random.Random(seed)
        self._url, self._actor, self._requests = url, actor, requests

    def run(self):
        with Client(self._url, patience=60.0) as client:
            study = client.open(STUDY, actor=self._actor)
            tickets = []
            for number in range(self._requests):
                self._one(study, tickets, f"{self._actor}/{number}")

    def _one(self, study, tickets, key):
        what = self._chance.choice(["ask", "tell", "tell", "correct", "read"]) if tickets else "ask"
        began, value = time.monotonic(), self._chance.choice([1.0, 2.0])
        ticket = self._chance.choice(SHARED[-6:]) if SHARED else 0
        try:
            what, entry = self._done(study, what, key, ticket, value)
        except (ConflictError, InputError):
            entry = 0
        ended = time.monotonic()
        if what == "ask":
            tickets.append(entry)
            SHARED.append(entry)
        hash_ = study.history(after=entry - 1, limit=1)[0].hash if entry else ""
        told = value if what == "tell" else None
        result = OK if entry else FAIL
        self.operations.append(Operation(what, key, began, ended, result, entry, hash_, told))

    def _done(self, study, what, key, ticket, value):
        """What was done, and the entry that was shown for it."""
        if what == "read":
            return what, study.show().data["entries"]
        if what == "ask":
            return what, study.ask(key=key, new=True).id
        if what == "correct":
            return what, study.correct(ticket, value, reason="why", key=key).entries[0]
        saved = study.tell(ticket, value, key=key)
        return "repeat" if saved.repeated else "tell", saved.entries[0]


SHARED = []  # questions that any client may answer


def test_two_replicas_on_one_database_agree_with_the_record_while_one_is_killed(serve, postgres):
    storage = postgres.new_database()
    fresh(storage, OF_STUDY)
    SHARED.clear()
    first, second = serve(storage), serve(storage)
    clients = [
        Recorder((first, second)[n % 2].url, f"client-{n}", seed=n, requests=15) for n in range(6)
    ]
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    while sum(len(client.operations) for client in clients) < 30:
        time.sleep(0.02)
    first.kill()
    first.start()
    for thread in threads:
        thread.join(120)
    operations = [each for client in clients for each in client.operations]
    with closing(SqlStore.open(storage)) as store:
        events = store.events(STUDY)
        assert verify(store, STUDY).flaws == ()
    assert len(operations) == 90
    assert sum(each.result == OK for each in operations) > 45
    assert all(each.result != UNKNOWN for each in operations)
    assert violations(operations, events) == []
