"""/v1 as a program uses it: ask, tell, look, page on, ask for less, listen."""

import json
import threading
import time

import httpx
import pytest

from clinic import AIM, FACTORS, PROTECTED, TARGET, clinic, play
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.exchange import export_study
from sidestep.studies.storage.memory import MemoryStore

GIVEN = dict.fromkeys(("lisinopril", "amlodipine", "chlortalidone"), 0)


def tell(web, study, **told):
    ticket = web.post(f"{study}/tickets", json={}).json()["ticket"]
    return web.post(f"{study}/tickets/{ticket}/answer", json={"value": 138, **told}).json()


def test_a_study_is_set_up_asked_and_told(web):
    settings = {
        "name": "bp",
        "factors": [factor.to_config() for factor in FACTORS],
        "target": TARGET.to_config(),
        "protected": [outcome.to_config() for outcome in PROTECTED],
        **AIM,
        "vocabulary": "clinic",
        "seed": 7,
    }
    made = web.post("/v1/studies", json=settings, headers={"Idempotency-Key": "k"})
    assert made.status_code == 201
    assert made.headers["location"].endswith("/v1/studies/bp")
    assert (
        web.post("/v1/studies", json=settings, headers={"Idempotency-Key": "k"}).status_code == 201
    )
    assert web.post("/v1/studies", json=settings).status_code == 409
    asked = web.post("/v1/studies/bp/tickets", json={}).json()
    same = clinic(MemoryStore()).ask()
    assert (asked["ticket"], asked["action"], asked["measure"]) == (2, same.action, [same.measure])
    told = web.post("/v1/studies/bp/tickets/2/answer", json={"value": 140.0}).json()
    assert (told["repeated"], told["entries"][0]["entry"]) == (False, 3)
    again = web.post("/v1/studies/bp/tickets/2/answer", json={"value": 140}).json()
    assert again["repeated"]


def test_a_study_may_have_a_name_in_any_script(web):
    sketch = {
        "factors": [FACTORS[0].to_config()],
        "target": TARGET.to_config(),
        "name": "血圧 ?#% pilot",
    }
    made = web.post("/v1/studies", json=sketch)
    assert made.status_code == 201
    assert web.get(made.headers["location"]).json()["study"] == sketch["name"]
    effects = web.get(f"{made.headers['location']}/explain").json()["rows"][0]["effects"]
    assert "-0.0" not in str(effects)


def test_a_card_is_available_as_text(web, study):
    asked = web.post(f"{study}/tickets", json={}, headers={"Accept": "text/plain"})
    assert asked.headers["content-type"] == "text/plain; charset=utf-8"
    assert asked.text.startswith("Visit 1")
    assert "Give" in asked.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("tickets", {"new": True}),
        ("tickets/2/answer", {"value": 139}),
        (
            "answers",
            {
                "value": 139,
                "measured": "sodium",
                "given": dict.fromkeys(("lisinopril", "amlodipine", "chlortalidone"), 0),
            },
        ),
        ("tickets/4/correction", {"value": 141, "reason": "misread"}),
        ("tickets/2/withdrawal", {"reason": "lost"}),
        ("close", {"reason": "enough"}),
        (
            "import",
            {
                "columns": {
                    "lisinopril": [0],
                    "amlodipine": [0],
                    "chlortalidone": [0],
                    "sodium": [138],
                }
            },
        ),
    ],
)
def test_the_same_key_is_the_same_write(web, study, path, body):
    web.post(f"{study}/tickets", json={"actor": "a"})
    web.post(f"{study}/tickets", json={"actor": "b"})
    web.post(f"{study}/tickets/3/answer", json={"value": 140})
    first, again = (
        web.post(f"{study}/{path}", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (200, 200), again.text
    entries = web.get(study).json()["entries"]
    assert entries == 5
    if path != "tickets":
        assert again.json()["repeated"]
        assert [e["entry"] for e in first.json()["entries"]] == [5]
        assert again.json()["entries"][0]["entry"] == 5


def test_the_same_key_with_other_contents_is_refused(web, study):
    key = {"Idempotency-Key": "k"}
    web.post(f"{study}/tickets", json={}, headers=key)
    response = web.post(f"{study}/tickets/2/answer", json={"value": 1}, headers=key)
    assert response.status_code == 409
    assert response.json()["type"] == "/problems/key-reused"


def test_unchanged_responses_are_not_sent_again(web, study):
    tell(web, study)
    for path in ("", "/best", "/explain", "/history"):
        first = web.get(f"{study}{path}")
        tag = first.headers["etag"]
        again = web.get(f"{study}{path}", headers={"If-None-Match": f'W/"x", {tag}'})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["etag"] == tag
    before = web.get(f"{study}/best").headers["etag"]
    tell(web, study)
    assert web.get(f"{study}/best", headers={"If-None-Match": before}).status_code == 200
    assert (
        web.get(
            "/v1/studies", headers={"If-None-Match": web.get("/v1/studies").headers["etag"]}
        ).status_code
        == 304
    )


def test_another_decision_on_a_closed_study_is_a_conflict(web, study):
    assert web.post(f"{study}/close", json={"reason": "enough"}).json()["repeated"] is False
    assert web.post(f"{study}/close", json={"reason": "enough"}).json()["repeated"] is True
    named = dict.fromkeys(("lisinopril", "amlodipine", "chlortalidone"), 0)
    refused = web.post(f"{study}/close", json={"overrule": named, "reason": "too high"})
    assert refused.status_code == 409
    assert refused.json()["type"] == "/problems/study-closed"
    assert "closed already, without a decision" in refused.json()["detail"]


def test_studies_are_listed_in_pages_with_whose_turn_it_is(web, running):
    for name in "abcde":
        clinic(running.store, name)
    web.post("/v1/studies/b/tickets", json={})
    web.post("/v1/studies/d/close", json={})
    found, after, pages = [], None, 0
    while pages == 0 or after:
        query = {"limit": 2} | ({"after": after} if after else {})
        page = web.get("/v1/studies", params=query).json()
        found += page["studies"]
        after, pages = page["next"], pages + 1
    assert pages == 3
    assert [line["study"] for line in found] == ["d", "b", "e", "c", "a"]
    assert [line["turn"] for line in found] == ["closed", "answer", "ask", "ask", "ask"]
    only = web.get("/v1/studies", params={"status": "closed"}).json()["studies"]
    assert [line["study"] for line in only] == ["d"]


def test_the_record_is_read_in_pages(web, study, running):
    play(clinic(running.store, "long"), 4)
    path, after, seen = "/v1/studies/long/history", 0, []
    while after is not None:
        page = web.get(path, params={"after": after, "limit": 4}).json()
        seen += page["events"]
        after = page["next"]
    assert [event["seq"] for event in seen] == list(range(1, 10))
    assert seen[1]["prev_hash"] == seen[0]["hash"]


def test_an_export_is_an_import_bit_for_bit(web, study, running, tmp_path):
    play(clinic(running.store, "whole"), 3)
    lines = web.get("/v1/studies/whole/export").text
    assert lines.splitlines() == list(export_study(running.store, "whole"))
    headers = {"Content-Type": "application/x-ndjson"}
    assert web.post("/v1/import", content=lines, headers=headers).status_code == 201
    changed = lines.replace('"name":"whole"', '"name":"elsewhere"', 1)
    assert web.post("/v1/import", content=changed, headers=headers).status_code in (409, 422)
    broken = web.post("/v1/import", content=lines.replace("asked", "askef", 1), headers=headers)
    assert broken.status_code in (201, 409, 422)
    assert web.get("/v1/studies/whole/verify").json()["holds"]


def test_a_study_from_elsewhere_comes_with_every_word(web, running):
    elsewhere = MemoryStore()
    there = clinic(elsewhere, "far")
    there.tell(there.ask().id, 140.0, reason="one line\u2028and \x85 another")
    lines = list(there.export())
    headers = {"Content-Type": "application/x-ndjson"}
    content = "".join(f"{line}\n" for line in lines).encode()
    assert web.post("/v1/import", content=content, headers=headers).status_code == 201
    assert list(export_study(running.store, "far")) == lines


def test_results_come_as_csv_too(web, study):
    table = "lisinopril,amlodipine,chlortalidone,sodium\n0,0,0,138.5\n10,2.5,0,139\n"
    response = web.post(f"{study}/import", content=table, headers={"Content-Type": "text/csv"})
    assert response.status_code == 200, response.text
    assert web.get(study).json()["counts"] == {"sodium": 2}
    long = "x" * 200_000
    twice = "lisinopril,amlodipine,chlortalidone,sodium,sodium\n0,0,0,138.5,140\n"
    for wrong in ("a,b\n1\n", f"a,b\n1,{long}\n", twice):
        refused = web.post(f"{study}/import", content=wrong, headers={"Content-Type": "text/csv"})
        assert refused.status_code == 422
    assert web.get(study).json()["counts"] == {"sodium": 2}


def test_a_listener_hears_every_entry_as_it_is_written(web, study, running):
    heard, ready = [], threading.Event()

    def listen():
        with (
            httpx.Client(base_url=running.url, timeout=20) as ears,
            ears.stream("GET", f"{study}/events?after=0") as stream,
        ):
            for line in stream.iter_lines():
                if line.startswith("event:"):
                    heard.append(line.partition(": ")[2])
                    ready.set()
                if line.startswith("data:") and len(heard) == 3:
                    heard.append(json.loads(line.partition(": ")[2])["seq"])
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    assert ready.wait(10)
    tell(web, study)
    thread.join(10)
    assert heard == ["created", "asked", "answered", 3]


def test_a_listener_goes_on_where_it_was_cut_off(web, study):
    tell(web, study)
    with web.stream("GET", f"{study}/events", headers={"Last-Event-ID": "2"}) as stream:
        lines = iter(stream.iter_lines())
        assert next(line for line in lines if line.startswith("id:")) == "id: 3"
    far = {"headers": {"Last-Event-ID": "9" * 20}, "timeout": 0.7}
    with web.stream("GET", f"{study}/events", **far) as stream, pytest.raises(httpx.ReadTimeout):
        list(stream.iter_lines())  # nothing is there yet, and it listens on


def test_listeners_are_counted_and_too_many_are_refused(tmp_path):
    from running import Running  # noqa: PLC0415

    with (
        Running(tmp_path / "s.db", streams=1) as running,
        httpx.Client(base_url=running.url, timeout=10) as web,
    ):
        clinic(running.store)
        with web.stream("GET", "/v1/studies/bp/events") as first:
            lines = first.iter_lines()
            next(lines)
            assert web.get("/v1/studies/bp/events").status_code == 429
            assert "sidestep_streams 1.0" in web.get("/metrics").text


def test_health_readiness_and_metrics_are_reported(web, study, running):
    assert web.get("/health").json() == {"alive": True}
    assert web.get("/ready").json() == {"ready": True}
    tell(web, study)
    text = web.get("/metrics").text
    assert (
        'sidestep_requests_total{method="POST",route="/v1/studies/{name}/tickets",status="200"} 1.0'
        in text
    )
    assert "sidestep_commit_entries_count 2.0" in text
    running.app.state.listeners.stopping.set()
    assert web.get("/ready").status_code == 503


def test_reading_changes_nothing(web, study):
    tell(web, study)
    before = web.get(f"{study}/history").text
    for path in (
        "",
        "/best",
        "/explain",
        "/history",
        "/export",
        "/verify?asks=true",
        "?candidates=true",
    ):
        assert web.get(f"{study}{path}").status_code == 200
    assert web.get(f"{study}/history").text == before


def test_http_records_what_python_records(web):
    far = Factor("load", 0, 8e12, baseline=0)
    goal = Outcome("yield", goal="raise", range=(0, 9e12), matters=1)
    settings = {"name": "far", "factors": [far.to_config()], "target": goal.to_config()}
    assert web.post("/v1/studies", json=settings).status_code == 201
    ticket = web.post("/v1/studies/far/tickets", json={}).json()["ticket"]
    told = {"value": 5e12, "given": {"load": 6e12}}
    assert web.post(f"/v1/studies/far/tickets/{ticket}/answer", json=told).status_code == 200
    beyond = web.post("/v1/studies/far/tickets", json={}).json()["ticket"]
    refused = web.post(f"/v1/studies/far/tickets/{beyond}/answer", json={"value": 5e15})
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"value": "1,5"}, "body.value"),
        ({"value": {"sodium": "138,5"}}, "body.value.sodium"),
    ],
)
def test_a_number_in_quotes_is_refused_with_one_sentence(web, study, body, where):
    ticket = web.post(f"{study}/tickets", json={}).json()["ticket"]
    refused = web.post(f"{study}/tickets/{ticket}/answer", json=body)
    assert refused.status_code == 422
    assert refused.json()["detail"] == (
        f"{where} must be a number without quotes and with a point for decimals, such as 1.5"
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"value": [1]}, "body.value must be a number or must be an object in braces"),
        ([1], "body must be an object in braces"),
        ({"value": 140, "reason": 5}, "body.reason must be text in quotes"),
        ({"value": 140, "comment": 5}, "body.comment is not known here"),
    ],
)
def test_what_json_should_be_is_said_in_words_of_json(web, study, body, sentence):
    ticket = web.post(f"{study}/tickets", json={}).json()["ticket"]
    refused = web.post(f"{study}/tickets/{ticket}/answer", json=body)
    assert refused.status_code == 422
    assert sentence in refused.json()["detail"]
    assert "valid" not in refused.json()["detail"]


def test_a_yes_or_no_is_true_or_false_as_json(web):
    banner = {"name": "banner", "levels": [False, True], "baseline": False}
    settings = {
        "name": "shop",
        "factors": [banner, FACTORS[0].to_config()],
        "target": TARGET.to_config(),
    }
    assert web.post("/v1/studies", json=settings).status_code == 201
    asked = web.post("/v1/studies/shop/tickets", json={"allowed": {"banner": True}}).json()
    assert asked["action"]["banner"] is True
    told = {"value": 150, "given": {"banner": False, "lisinopril": 25}}
    assert (
        web.post(f"/v1/studies/shop/tickets/{asked['ticket']}/answer", json=told).status_code == 200
    )
    body = web.get("/v1/studies/shop/history").json()["events"][-1]["body"]
    assert body["action"] == {"banner": False, "lisinopril": 25}


def test_what_is_known_and_earlier_studies_are_told_as_json(web, tmp_path):
    body = {
        "factors": [{"name": "dose", "low": 0, "high": 40, "step": 10}],
        "target": {"name": "pain", "goal": "lower", "range": [0, 10], "noise": 0.5},
        "shape": "straight",
    }
    assert web.post("/v1/studies", json=body | {"name": "first"}).status_code == 201
    for dose in (0, 20, 40):
        told = {"value": 6 - dose / 20, "measured": "pain", "given": {"dose": dose}}
        assert web.post("/v1/studies/first/answers", json=told).status_code == 200
    more = {
        "expect": {"pain": {"dose": [None, 1]}},
        "monotone": {"pain": {"dose": "falls"}},
        "learn_from": ["first"],
    }
    assert web.post("/v1/studies", json=body | more | {"name": "next"}).status_code == 201
    config = web.get("/v1/studies/next/history").json()["events"][0]["body"]["config"]
    assert config["expect"] == {"pain": {"dose": [None, 1.0]}}
    assert config["earlier"]["studies"] == [{"name": "first", "results": 3}]
    told = {"value": 4.1, "measured": "pain", "given": {"dose": 40}}
    assert web.post("/v1/studies/next/answers", json=told).status_code == 200
    trust = web.get("/v1/studies/next/best").json()["trust"]
    assert trust["studies"] == 1
    assert 0.5 < trust["alike"] < 1
    file = tmp_path / "file.jsonl"
    file.write_text("{}", encoding="utf-8")
    for unknown in ("nobody", str(file)):  # no file of the service is read
        refused = web.post("/v1/studies", json=body | {"name": "x", "learn_from": [unknown]})
        assert refused.status_code in (404, 422)
        assert "there is no study" in refused.json()["detail"]


def test_a_formula_that_would_never_end_is_refused_at_once(web):
    body = {
        "name": "endless",
        "factors": [{"name": "dose", "low": 0, "high": 40, "step": 10}],
        "target": {"name": "pain", "goal": "lower", "range": [0, 10]},
    }
    for model in ("0 + dose +", "0 + dose + log(9**9**9)", "(dose)**9999999", "0+" * 450 + "dose"):
        began = time.process_time()  # of the service too, which runs in this process
        refused = web.post("/v1/studies", json={**body, "model": model})
        seconds = time.process_time() - began
        assert refused.status_code == 422, model
        assert "model" in refused.json()["detail"]
        assert seconds < 0.1 or model == "0 + dose +"  # the first request reads what all need
