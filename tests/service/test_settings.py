"""Settings by flag, environment and file; notices to an allowed host."""

import hmac
import json
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest

from clinic import clinic
from running import Running
from sidestep.service.notices import checked_address
from sidestep.service.settings import HIDDEN, Settings, load


def test_a_flag_goes_before_the_environment_before_the_file(tmp_path):
    file = tmp_path / "serve.toml"
    file.write_text(
        'port = 1\nhost = "10.0.0.1"\nlog_level = "error"\nwebhook_hosts = ["a", "b"]\n'
    )
    environment = {"SIDESTEP_HOST": "10.0.0.2", "SIDESTEP_PORT": "2", "OTHER": "x"}
    found = load({"port": 3, "host": None}, file, environment)
    settings = found.settings
    assert (settings.port, settings.host, settings.log_level) == (3, "10.0.0.2", "error")
    assert settings.webhook_hosts == ("a", "b")
    assert [found.sources[name] for name in ("port", "host", "log_level", "threads")] == [
        "flag",
        "environment",
        str(file),
        "usual",
    ]
    assert load({}, None, {"SIDESTEP_CONFIG": str(file)}).settings.port == 1
    assert load({}, None, {"SIDESTEP_NAMES": "a, b"}).settings.names == ("a", "b")


def test_every_setting_is_shown_and_no_secret_is():
    told = {"webhook_secret": "s3cret", "storage": "postgresql://ada:pa@ss@host/db"}
    rows = {row.name: row for row in load(told, None, {}).shown()}
    assert set(rows) == set(Settings.model_fields)
    assert all(row.about for row in rows.values())
    assert rows["webhook_secret"].value == HIDDEN
    assert rows["storage"].value == f"postgresql://{HIDDEN}@host/db"
    assert "s3cret" not in repr(rows)


@pytest.mark.parametrize(
    ("flags", "content", "words"),
    [
        ({"port": 99999}, "", ["port", "65535"]),
        ({"log_level": "loud"}, "", ["log_level"]),
        ({}, "prot = 1", ["'prot'", "did you mean 'port'"]),
        ({}, "port = ", ["TOML"]),
        ({"body_limit": 1}, "", ["body_limit"]),
    ],
)
def test_what_cannot_be_set_is_said_so(tmp_path, refusal, flags, content, words):
    file = tmp_path / "serve.toml"
    file.write_text(content)
    message = refusal(load, flags, file, {})
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.1.2.3", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("x.org", False),
    ],
)
def test_loopback_is_known(host, local):
    assert Settings(host=host).is_local is local


@pytest.mark.parametrize("webhook", ["ftp://a", "nonsense", "http://elsewhere/x"])
def test_a_webhook_goes_to_an_allowed_host_only(refusal, webhook):
    settings = Settings(webhook=webhook, webhook_hosts=("a",))
    assert "webhook must be" in refusal(checked_address, settings)


@pytest.fixture
def ear():
    """A server that receives notices, after it has refused one."""
    heard, rude = [], [True]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = 503 if rude else 204
            rude.clear()
            if status == 204:
                heard.append((self.path, self.headers["X-Sidestep-Signature"], body))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/notice?to=me", heard
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_answer_is_noticed_without_its_value(tmp_path, ear):
    address, heard = ear
    settings = {"webhook": address, "webhook_hosts": ("127.0.0.1",), "webhook_secret": "key"}
    with (
        Running(tmp_path / "s.db", **settings) as running,
        httpx.Client(base_url=running.url) as web,
    ):
        clinic(running.store)
        web.post("/v1/studies/bp/tickets", json={})
        for _ in range(2):
            web.post("/v1/studies/bp/tickets/2/answer", json={"value": 140.25})
    assert len(heard) == 1
    path, signature, body = heard[0]
    assert path == "/notice?to=me"
    assert hmac.new(b"key", body, sha256).hexdigest() == signature
    notice = json.loads(body)
    assert (notice["study"], notice["entry"], notice["question"]) == ("bp", 3, 2)
    assert b"140" not in body
