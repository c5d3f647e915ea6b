"""Processes to be killed: forked from one that has imported everything, so they start at once."""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["drills", "sidestep.studies.deciding", "sqlalchemy.dialects.sqlite", "psycopg"]
)


class Worker:
    """A client in a process of its own, which reports what it was told."""

    def __init__(self, work: Callable[..., None], *args: Any) -> None:
        self.reports, theirs = PROCESSES.Pipe(duplex=False)
        given = (tempfile.gettempdir(), work, theirs, *args)
        self.process = PROCESSES.Process(target=_run, args=given, daemon=True)
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


def _run(folder: str, work: Callable[..., None], reports: Connection, *args: Any) -> None:
    os.environ["TMPDIR"] = tempfile.tempdir = folder  # of the test, not of the first that forked
    work(reports, *args)
    reports.close()
