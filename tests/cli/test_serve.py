"""`sidestep serve`: where it cannot begin, and what a person sees where it does."""

import json
import logging
import re
import signal
import socket
import subprocess
import sys
import urllib.request
import warnings

import pytest

from sidestep.cli.main import main
from sidestep.service.logs import PlainFormatter


def test_a_port_in_use_is_said_in_one_sentence_before_anything_is_begun(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets its own
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["sidestep", "serve", "--demo", "--port", str(port)])
        with pytest.raises(SystemExit) as left:
            main()
    assert left.value.code == 1
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert f"port {port}" in said
    assert "--port" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full  # a server that plays 26 visits first
def test_the_demo_begins_with_the_address_for_people_and_logs_only_after_it(tmp_path):
    code = "import sys; from sidestep.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as served:
        said = [next(served.stderr).strip() for _ in range(5)]
        address = said[2].removeprefix("sidestep: listening at ")
        with urllib.request.urlopen(f"{address}/studies/demo") as page:
            assert page.status == 200
        served.send_signal(signal.SIGINT)
        logged = served.stderr.read()
    assert served.returncode == 0
    assert said[0] == "sidestep: playing the first visits of the demo ..."
    assert said[3] == f"Open {address}/studies/demo in a browser. Ctrl-C stops."
    assert [json.loads(line)["route"] for line in logged.split("\n") if line] == ["/studies/{name}"]


@pytest.mark.parametrize(
    ("level", "message", "more", "shown"),
    [
        (20, "answered", {"method": "GET", "route": "/", "status": 200, "ms": 3.7}, ""),
        (40, "a storage problem", {}, "error: a storage problem"),
    ],
)
def test_a_person_at_a_terminal_reads_short_lines(level, message, more, shown):
    record = logging.makeLogRecord({"levelno": level, "levelname": "ERROR", "msg": message})
    record.more = more
    line = PlainFormatter().format(record)
    assert re.fullmatch(r"\d\d:\d\d:\d\d .+", line)
    assert line[9:] == (shown or "GET / 200 in 3.7 ms")


@pytest.mark.parametrize("storage", ["", "  "])
def test_a_storage_without_a_name_is_refused_and_opens_nothing(
    storage, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main sets its own
    monkeypatch.setattr(sys, "argv", ["sidestep", "serve", storage, "--settings"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "STORAGE must be a file" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
