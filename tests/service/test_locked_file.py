"""A SQLite file that another program has locked: whoever reads need not wait for whoever writes."""

import sqlite3
import threading
import time
from contextlib import closing

import httpx
import pytest
from served import Served

from clinic import clinic
from sidestep.studies.storage.sql import SqlStore

CLIENTS = 50  # more than the service has threads
PATHS = ("/studies/s0", "/", "/v1/studies", "/v1/studies/s1", "/studies/s1", "/ready")


@pytest.fixture
def served(tmp_path):
    store = SqlStore.open(tmp_path / "study.db")
    for number in range(4):
        clinic(store, f"s{number}")
    store.close()
    with Served(str(tmp_path / "study.db"), tmp_path / "log") as server:
        yield server


def test_pages_do_not_wait_for_those_who_wait_for_a_lock(served):
    """Fifty questions wait in all threads that they get; not one is answered before the pages are."""
    answered = []

    def ask(number):
        asked = {"new": True, "actor": f"actor-{number}"}
        path = f"{served.url}/v1/studies/s{number % 4}/tickets"
        answered.append(httpx.post(path, json=asked, timeout=90).status_code)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    with (
        closing(sqlite3.connect(served.storage, isolation_level=None)) as other,
        httpx.Client(base_url=served.url, timeout=60) as web,
    ):
        other.execute("BEGIN IMMEDIATE")
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        assert [web.get(path).status_code for path in PATHS] == [200] * len(PATHS)
        assert answered == []
        other.execute("ROLLBACK")
        for thread in threads:
            thread.join()
    assert answered == [200] * CLIENTS
