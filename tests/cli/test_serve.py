"""`sidestep serve` where it cannot begin."""

import socket
import sys
import warnings

import pytest

from sidestep.cli.main import main


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
