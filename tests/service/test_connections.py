"""Heads that never end: they are closed, make room, and are in the log."""

import socket
import time
from contextlib import ExitStack

import httpx
import pytest
from served import Served

from running import Running
from sidestep.service.connections import most_connections

HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
OPEN_FILES = 256


class Narrow(Served):
    """A server that may have few open files."""

    def command(self):
        return ["prlimit", f"--nofile={OPEN_FILES}", *super().command()]


def connected(url):
    host, _, port = url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def test_unfinished_heads_leave_room_for_those_with_a_request(tmp_path):
    with Narrow(str(tmp_path / "s.db"), tmp_path / "log") as server, ExitStack() as held:
        for _ in range(2 * OPEN_FILES):
            slow = held.enter_context(connected(server.url))
            slow.sendall(HEAD)
        began = time.monotonic()
        with httpx.Client(base_url=server.url, timeout=8) as web:
            for _ in range(5):
                assert web.get("/ready").status_code == 200
        assert time.monotonic() - began < 8
        assert "connections without a complete request are closed" in (tmp_path / "log").read_text()
        assert server.stop() == 0


@pytest.mark.parametrize("parser", ["in C", "in Python"])
def test_a_head_must_be_complete_in_time_however_it_trickles_in(tmp_path, monkeypatch, parser):
    monkeypatch.setattr("sidestep.service.connections.HEAD", 0.6)
    if parser == "in Python":
        monkeypatch.setattr("sidestep.service.server.find_spec", lambda _: None)
    with (
        Running(tmp_path / "s.db") as running,
        httpx.Client(base_url=running.url) as web,
        connected(running.url) as usual,
        connected(running.url) as slow,
    ):
        usual.sendall(HEAD + b"\r\n")
        assert b"200 OK" in usual.recv(1000)
        began = time.monotonic()
        assert trickled(slow) in (b"", b"HTTP/1.1 408 Request Timeout")
        assert 0.5 < time.monotonic() - began < 15
        usual.sendall(HEAD + b"\r\n")  # between two requests there is more time
        assert b"200 OK" in usual.recv(1000)
        assert web.get("/health").status_code == 200


def trickled(slow):
    """Send a head for ever, a byte at a time; the first line of the answer."""
    slow.settimeout(0.05)
    slow.sendall(HEAD + b"X-Long: ")
    for _ in range(400):
        try:
            slow.sendall(b"x")
            return slow.recv(1000).partition(b"\r\n")[0]
        except TimeoutError:
            continue
        except OSError:
            return b""
    raise AssertionError("it is still listened to")


def test_where_all_are_at_work_a_new_one_is_refused_with_a_sentence(tmp_path):
    with Running(tmp_path / "s.db", connections=10) as running, ExitStack() as held:
        for _ in range(10):  # requests whose bodies are still to come
            busy = held.enter_context(connected(running.url))
            busy.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        time.sleep(0.3)
        late = held.enter_context(connected(running.url))
        late.sendall(HEAD + b"\r\n")
        answer = late.recv(1000)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after" in answer


def test_connections_stay_below_the_limit_of_open_files(monkeypatch):
    import resource  # noqa: PLC0415

    limits = {"now": (256, 256)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: limits.update(now=pair))
    assert most_connections(1000) == 156
    limits["now"] = (256, 4096)
    assert most_connections(1000) == 1000
    assert limits["now"] == (1100, 4096)
    limits["now"] = (64, 64)
    assert most_connections(1000) == 10
