"""A database that stops answering, behind a server in a process of its own: nobody waits for ever."""

import re
import threading
import time
from contextlib import suppress

import httpx
import pytest
from served import Served

from clinic import clinic
from sidestep.errors import SidestepError
from sidestep.service.client import Client
from sidestep.studies.storage.sql import SqlStore

STUDIES = [f"s{number}" for number in range(6)]


@pytest.fixture
def database(postgres):
    """An empty database with six studies, each with a question."""
    url = postgres.emptied()
    store = SqlStore.open(url)
    for name in STUDIES:
        clinic(store, name).ask(actor="ada")
    yield url
    store.close()


@pytest.fixture
def served(database, way, tmp_path):
    with Served(way.url(database), tmp_path / "log") as server:
        for name in STUDIES:
            assert httpx.get(f"{server.url}/v1/studies/{name}", timeout=30).status_code == 200
        yield server


def events(database, name, kind="answered"):
    store = SqlStore.open(database)
    try:
        return [event for event in store.events(name) if event.kind == kind]
    finally:
        store.close()


VALUES = {"systolic pressure": 140.0, "potassium": 4.1, "sodium": 139.0, "heart rate": 70.0}


def tell_all(server, told, patience=60.0):
    """Answer the question of every study, each in a thread; `told` gets the names of those saved."""

    def play(name):
        with Client(server.url, patience=patience) as client, suppress(SidestepError):
            study = client.open(name, actor="ada")
            outcome = study.history()[1].body["measure"][0]
            study.tell(2, {outcome: VALUES[outcome]})
            told.append(name)

    threads = [threading.Thread(target=play, args=(name,)) for name in STUDIES]
    for thread in threads:
        thread.start()
    return threads


def test_after_a_failover_all_studies_go_on_within_seconds(served, database, way):
    way.lose()  # the connections that the server holds are silent, new ones are not
    told, began = [], time.monotonic()
    for thread in tell_all(served, told):
        thread.join(60)
    assert time.monotonic() - began < 15
    assert sorted(told) == STUDIES
    assert [len(events(database, name)) for name in STUDIES] == [1] * 6


def test_while_the_database_is_silent_all_is_refused_soon_and_then_goes_on(served, database, way):
    outcome = events(database, "s0", "asked")[0].body["measure"][0]
    told = []
    way.stall()
    try:
        threads = tell_all(served, told)
        time.sleep(1.0)
        with httpx.Client(base_url=served.url, timeout=30) as web:
            for path in ("/ready", "/studies/s0", "/", "/v1/studies", "/ready"):
                began = time.monotonic()
                answer = web.get(path)
                assert time.monotonic() - began < 3, path
                assert answer.status_code == 503, path
                assert int(answer.headers["Retry-After"]) <= 5
                assert not re.search(rf"{way.port}|postgres", answer.text), answer.text
            assert web.get("/health").status_code == 200
            began = time.monotonic()
            refused = web.post("/v1/studies/s1/tickets/2/answer", json={"value": VALUES[outcome]})
            assert (refused.status_code, time.monotonic() - began < 20) == (503, True)
        assert told == []
    finally:
        way.resume()
    began = time.monotonic()
    for thread in threads:
        thread.join(60)
    assert time.monotonic() - began < 15
    assert sorted(told) == STUDIES  # the clients repeated what was refused
    assert [len(events(database, name)) for name in STUDIES] == [1] * 6


def test_a_typed_answer_stays_in_the_form_while_the_database_is_silent(served, database, way):
    outcome = events(database, "s0", "asked")[0].body["measure"][0]
    field = f"value.{list(VALUES).index(outcome)}"
    path = "/studies/s0/questions/2/answer"
    with httpx.Client(base_url=served.url, timeout=30) as web:
        csrf = re.search(r'name="csrf" value="([^"]+)"', web.get("/studies/s0").text)[1]
        typed = {"csrf": csrf, "key": "typed once", field: str(VALUES[outcome])}
        way.stall()
        try:
            began = time.monotonic()
            page = web.post(path, data=typed)
            assert (page.status_code, time.monotonic() - began < 20) == (503, True)
            foreign = web.post(path, data={**typed, "csrf": "of.another"})
        finally:
            way.resume()
        assert f'name="{field}" value="{VALUES[outcome]}"' in page.text
        assert str(VALUES[outcome]) not in foreign.text  # we would send it with a valid token
        kept = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
        time.sleep(1.0)
        for _ in range(2):
            assert web.post(path, data=kept).status_code == 303
    assert [event.key for event in events(database, "s0")] == ["typed once"]


def test_a_server_stops_within_seconds_while_the_database_is_silent(served, way):
    way.stall()
    try:
        threads = tell_all(served, [], patience=5.0)
        time.sleep(0.5)
        began = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - began < 10
        for thread in threads:
            thread.join(60)
    finally:
        way.resume()
