"""`sidestep serve` in separate processes that can be killed, and clients that put load on it.

Every drill returns what clients were told; `judged` holds that against the record.
`benchmarks/over_http.py` prints the same drills.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from sidestep.service.client import Client
from sidestep.studies.storage.record import verify
from sidestep.studies.storage.sql import SqlStore

START = 120.0  # seconds, on a machine that is busy
SERVE = "import sys; from sidestep.cli.main import main; sys.exit(main())"
TICKS = os.sysconf("SC_CLK_TCK")


class Served:
    """A server that can be killed and comes back at the same address."""

    def __init__(self, storage: str, log: Path) -> None:
        self.storage, self.log, self.port = storage, log, 0
        self.start()

    def start(self) -> None:
        """Listening when this returns."""
        with self.log.open("ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(self.command(), stderr=log, stdout=log)
        deadline = time.monotonic() + START
        while (found := re.search(rb"listening at (\S+:(\d+))", self._said(begin))) is None:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"no server: {self._said(begin)[-500:].decode()}")
            time.sleep(0.02)
        self.url, self.port = found[1].decode(), int(found[2])

    def command(self) -> list[str]:
        """What starts it."""
        command = [sys.executable, "-c", SERVE, "serve", self.storage, "--port", str(self.port)]
        return [*command, "--config", os.devnull]

    def _said(self, begin: int) -> bytes:
        return self.log.read_bytes()[begin:]

    def kill(self) -> None:
        """Simulate a power failure."""
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> int:
        """Ask it to finish; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def cpu(self) -> float:
        """Seconds of processor that it has used."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / TICKS

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


class Told(NamedTuple):
    """A result that a client was told is saved."""

    ticket: int
    value: float
    entry: int
    seconds: float


class Tally(NamedTuple):
    """What clients were told, against the record."""

    acknowledged: int
    lost: int  # not in the record as it was acknowledged
    doubled: int  # requests that were written twice
    waiting: int  # questions left open
    flaws: int


class Load:
    """Several clients, each with its pairs of ask and tell, on one server or several."""

    def __init__(
        self, urls: Sequence[str], study: str, clients: int, pairs: int, name: str = "client"
    ) -> None:
        self.told: list[Told] = []
        self.failed: list[BaseException] = []
        self._study, self._pairs = study, pairs
        self._threads = [
            threading.Thread(target=self._run, args=(urls[n % len(urls)], f"{name}-{n}"))
            for n in range(clients)
        ]

    def start(self) -> "Load":
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def until(self, told: int, seconds: float = 120.0) -> None:
        """Wait until so many results are told to be saved."""
        deadline = time.monotonic() + seconds
        while len(self.told) < told and not self.failed:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.told)} of {told} results after {seconds} s")
            time.sleep(0.005)

    def join(self) -> "Load":
        for thread in self._threads:
            thread.join(300)
        self.seconds = time.monotonic() - self._began
        if self.failed:
            raise self.failed[0]
        return self

    def percentile(self, share: float) -> float:
        """So many tells of a hundred took at most this, in seconds."""
        took = sorted(each.seconds for each in self.told)
        return took[min(len(took) - 1, int(share * len(took)))]

    @property
    def rate(self) -> float:
        """Pairs a second."""
        return len(self.told) / self.seconds

    def _run(self, url: str, actor: str) -> None:
        try:
            with Client(url, patience=120.0) as client:
                self._play(client.open(self._study, actor=actor), actor)
        except BaseException as error:  # whatever it is fails the drill
            self.failed.append(error)

    def _play(self, study: Any, actor: str) -> None:
        for number in range(self._pairs):
            ticket = study.ask(key=f"{actor}/ask/{number}", new=True)
            began = time.monotonic()
            saved = study.tell(ticket.id, float(number), key=f"{actor}/tell/{number}")
            took = time.monotonic() - began
            self.told.append(Told(ticket.id, float(number), saved.entries[0], took))


def under_kills(
    load: Load, deaths: Sequence[Callable[[], object]], back: Callable[[], None], *, wanted: int
) -> Load:
    """Let something die while clients go on, and bring it back, spread over the load."""
    load.start()
    for number, die in enumerate(deaths, start=1):
        load.until(number * wanted // (len(deaths) + 1))
        die()
        back()
    return load.join()


def judged(storage: str, study: str, told: Sequence[Told]) -> Tally:
    """What clients were told, held against the record."""
    with closing(SqlStore.open(storage, patience=30.0)) as store:
        events = store.events(study)
        flaws = len(verify(store, study).flaws)
    kept = {
        event.seq: (event.ticket, event.body["value"])
        for event in events
        if event.kind == "answered"
    }
    lost = sum(kept.get(each.entry) != (each.ticket, each.value) for each in told)
    keys = Counter(event.key for event in events if event.key)
    asked = sum(event.kind == "asked" for event in events)
    doubled = sum(count - 1 for count in keys.values()) + max(0, len(kept) - len(told))
    return Tally(len(told), lost, doubled, asked - len(kept), flaws)
