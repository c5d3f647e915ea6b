"""What the interface refuses, and how it says so: strictly, in one sentence, and never a 5xx."""

import json
import socket
import time

import httpx
import pytest

from running import Running
from sidestep import errors
from sidestep.service.kinds import KINDS, error_of, kind_of
from sidestep.service.watch import HEADERS

PROBLEM = "application/problem+json"


def post(web, path, content, kind="application/json", **headers):
    return web.post(path, content=content, headers={"Content-Type": kind, **headers})


def is_problem(response, status):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == PROBLEM
    body = response.json()
    assert body["status"] == status
    assert body["type"].startswith("/problems/")
    assert body["title"]
    assert body["detail"]
    return body


@pytest.mark.parametrize(
    "body",
    [
        '{"value": NaN}',
        '{"value": Infinity}',
        '{"value": 1e999}',
        '{"value": "0.5"}',
        '{"value": true}',
        '{"value": null}',
        '{"value": [1]}',
        '{"value": {}}',
        '{"value": 1' + "0" * 400 + "}",
        '{"value": 1e13}',
        '{"value": 138, "value": 139}',
        '{"value": 138, "given": {"lisinopril": 20, "lisinopril": 30}}',
        '{"value": 138, "surprise": 1}',
        '{"value": 138',
        "",
        "[" * 100_000,
        "\xff\xfe",
        '"text"',
    ],
    ids=lambda body: body[:24],
)
def test_what_is_no_result_is_refused_and_nothing_is_written(web, study, body):
    web.post(f"{study}/tickets", json={})
    response = post(web, f"{study}/tickets/2/answer", body.encode("latin-1"))
    assert response.status_code in (400, 422)
    is_problem(response, response.status_code)
    assert web.get(study).json()["entries"] == 2
    assert web.post(f"{study}/tickets/2/answer", json={"value": 138}).status_code == 200


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_only_what_is_called_json_is_read(web, study, kind):
    is_problem(post(web, f"{study}/tickets", "{}", kind), 415)


@pytest.mark.parametrize(("body", "where"), [('{"value": "x"}', "body.value"), ("", "body")])
def test_everything_that_is_wrong_with_a_request_is_said_at_once(web, study, body, where):
    response = post(web, f"{study}/tickets/0/answer", body, **{"Idempotency-Key": "visit 7"})
    errors = is_problem(response, 422)["errors"]
    assert [each["where"] for each in errors] == ["path.id", "Idempotency-Key", where]


def test_a_refusal_does_not_repeat_what_came(web, study):
    secret = "sk_live_0123456789"
    body = json.dumps({"value": secret, secret * 9: 1})
    text = post(web, f"{study}/tickets/2/answer", body).text
    assert "must be a number without quotes" in text
    assert secret not in text


def test_a_bad_header_is_named(web, study):
    refused = post(web, f"{study}/tickets", "{}", **{"Idempotency-Key": "visit 7"})
    is_problem(refused, 422)
    assert refused.json()["detail"].startswith("Idempotency-Key must be letters, digits")


def test_a_request_that_is_too_large_is_refused_as_it_streams(web, running):
    sent = 0

    def chunks():
        nonlocal sent
        for _ in range(600):
            sent += 100_000
            yield b"x" * 100_000

    try:
        response = web.post(
            "/v1/studies", content=chunks(), headers={"Content-Type": "application/json"}
        )
        assert is_problem(response, 413)["detail"].startswith("a request must have at most 1000000")
    except (httpx.WriteError, httpx.RemoteProtocolError):
        pass  # the server closed the connection, which is acceptable too
    assert sent < 60_000_000
    assert web.get("/health").status_code == 200


CHUNKED = b"Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n2\r\n{}\r\n0\r\n"


@pytest.mark.parametrize("before", [b"", b"X-Long: ", CHUNKED, CHUNKED + b"X-Long: "])
def test_a_head_without_an_end_is_refused(running, web, before):
    """As one long line or many lines, at the beginning of a request or after its body."""
    line = b"x" * 1000 if before.endswith(b": ") else b"X-More: " + b"x" * 990 + b"\r\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2]))) as endless:
        endless.settimeout(30)
        endless.sendall(b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\n" + before)
        try:
            while sent < 60_000_000:
                endless.sendall(line)
                sent += len(line)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert sent < 60_000_000
    assert web.get("/health").status_code == 200


def test_an_import_may_be_larger(web, study):
    rows = 4000
    columns = {"lisinopril": [0] * rows, "amlodipine": [0] * rows, "chlortalidone": [0] * rows}
    columns |= {"sodium": [138.123456] * rows, "heart rate": [70.123456] * rows}
    body = json.dumps({"columns": columns, "actor": "x"}) + " " * 1_500_000
    response = post(web, f"{study}/import", body)
    assert response.status_code == 200, response.text
    assert web.get(study).json()["results"] == 2 * rows


def test_a_slow_request_keeps_nobody_else_waiting(running, web):
    with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2]))) as slow:
        slow.sendall(b"POST /v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
        began = time.monotonic()
        assert web.get("/v1/studies").status_code == 200
        assert time.monotonic() - began < 5


def test_every_answer_carries_the_headers_of_safety_and_its_number(web, study):
    for path in ("/", study, "/nothing", "/v1/nothing", "/health"):
        response = web.get(path, headers={"X-Request-ID": "my-number.1"})
        for name, value in HEADERS.items():
            assert response.headers[name] == value
        assert response.headers["x-request-id"] == "my-number.1"
    assert len(web.get("/health", headers={"X-Request-ID": "a b"}).headers["x-request-id"]) == 16


def test_every_exception_of_ours_has_one_status():
    def tree(error):
        yield error
        for child in error.__subclasses__():
            yield from tree(child)

    ours = {each for each in tree(errors.SidestepError) if each.__module__ == errors.__name__}
    assert set(KINDS) == ours
    assert len({kind.name for kind in KINDS.values()}) == len(KINDS)
    for error, kind in KINDS.items():
        assert error_of(kind.name, kind.status) is error
        assert kind_of(error("x")) is kind


@pytest.mark.parametrize(
    ("call", "status", "name"),
    [
        (("GET", "/v1/studies/nope", None), 404, "study-not-found"),
        (("POST", "/v1/studies/bp/tickets/99/answer", {"value": 1}), 404, "ticket-not-found"),
        (("POST", "/v1/studies/bp/tickets/0/answer", {"value": 1}), 422, "input"),
        (("POST", "/v1/studies/bp/tickets", {"purpose": "confirm"}), 422, "input"),
        (("GET", "/v1/studies?after=zzz", None), 422, "input"),
        (("GET", "/v1/studies?limit=0", None), 422, "input"),
        (("PUT", "/v1/studies", {}), 405, "method-not-allowed"),
        (("GET", "/v1/none", None), 404, "no-such-address"),
        (("GET", "/v1/studies/bp/best?context=[1]", None), 422, "input"),
        (("GET", "/v1/studies/bp/best?context=%7B%22age%22%3A1%7D", None), 422, "input"),
    ],
)
def test_a_problem_is_named(web, study, call, status, name):
    method, path, body = call
    response = web.request(method, path, json=body)
    assert is_problem(response, status)["type"] == f"/problems/{name}"


def test_a_conflict_names_both_values(web, study):
    web.post(f"{study}/tickets", json={})
    web.post(f"{study}/tickets/2/answer", json={"value": 138})
    body = is_problem(web.post(f"{study}/tickets/2/answer", json={"value": 136}), 409)
    assert body["type"] == "/problems/already-answered"
    assert "138" in body["detail"]
    assert "136" in body["detail"]


def test_only_the_names_that_were_set_are_answered(tmp_path):
    with (
        Running(tmp_path / "s.db", names=["Studies.example"]) as running,
        httpx.Client(base_url=running.url) as web,
    ):
        named = {"Host": "studies.example:8000"}
        assert web.get("/v1/studies", headers=named).status_code == 200
        for path in ("/", "/v1/studies", "/login", "/answer/x", "/static/style.css"):
            is_problem(web.get(path), 421)
        assert web.get("/health").status_code == 200


def test_another_host_name_is_not_answered_where_nobody_logs_in(web, study):
    for host in ("evil.example", "evil.example:80", "localhost.evil.example"):
        is_problem(web.get("/v1/studies", headers={"Host": host}), 421)
    for host in ("localhost", "127.0.0.1:1", "[::1]:8000"):
        assert web.get("/v1/studies", headers={"Host": host}).status_code == 200


def test_a_page_of_another_site_changes_nothing(web, study):
    response = web.post(f"{study}/tickets", json={}, headers={"Sec-Fetch-Site": "cross-site"})
    is_problem(response, 403)
    assert web.get(study).json()["entries"] == 1


def test_a_failing_storage_is_a_problem_with_a_sentence(web, study, running, monkeypatch):
    def full(*_, **__):
        raise errors.StorageFull("disk full: there is no room left")

    monkeypatch.setattr(running.app.state.desk.groups, "write", full)
    monkeypatch.setattr(running.app.state.desk, "_open", type(running.app.state.desk._open)())
    body = is_problem(web.post(f"{study}/tickets", json={}), 507)
    assert body["detail"].startswith("disk full")
    assert web.get(study).status_code == 200


def test_an_unexpected_error_is_a_problem_without_internal_details(
    web, study, running, monkeypatch
):
    def broken(_):
        raise ZeroDivisionError("the secret of the house")

    monkeypatch.setattr(running.app.state.desk, "study", broken)
    response = web.get(study)
    assert is_problem(response, 500)["type"] == "/problems/internal-server-error"
    assert "secret" not in response.text
    assert response.headers["content-security-policy"]
