"""The service under load and under kills, and the first paint of a long study; rows of the scoreboard."""

import gzip
import time
import urllib.request
from typing import NamedTuple

import drills
from long_records import long_record
from scoreboard import Board, Counts, Places
from served import Load, Served, Tally, judged, under_kills

from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.study import Study

CLIENTS = (1, 4, 16)
MANY = 50  # clients while something is killed
EVENTS = 10_000
LOOKS = 5


def pairs_over_http(board: Board, places: Places, counts: Counts) -> None:
    """Pairs a second of clients of one server; the clients share a process, so these are floors."""
    for where, place in places.both():
        storage = place()
        drills.fresh(storage, drills.OF_STUDY)
        with Served(storage, places.folder / "log") as server:
            Load([server.url], drills.STUDY, 1, 5, name="first").start().join()
            for clients in CLIENTS:
                claim = f"pairs a second over HTTP, {clients} client{'s' * (clients > 1)}"
                board.put(claim, where, paced(server, clients, counts.pairs))


def paced(server: Served, clients: int, pairs: int) -> str:
    """How fast so many pairs are with so many clients, in a sentence."""
    before = server.cpu(), time.process_time()
    load = Load([server.url], drills.STUDY, clients, pairs // clients, name=f"of-{clients}")
    load.start().join()
    after = server.cpu(), time.process_time()
    cpu, ours = (1000 * (b - a) / len(load.told) for a, b in zip(before, after, strict=True))
    p50, p99 = (1000 * load.percentile(share) for share in (0.5, 0.99))
    return (
        f"{load.rate:.0f}; tell p50 {p50:.0f} ms, p99 {p99:.0f} ms;"
        f" {cpu:.1f} ms of the server's CPU a pair, {ours:.1f} of the clients'"
    )


def killed_service(board: Board, places: Places, counts: Counts) -> None:
    """SIGKILL of the server under 50 clients; then of the database under two servers."""
    kills, pairs = max(1, counts.server_kills // 2), max(2, counts.pairs // MANY)
    for where, place in places.both():
        storage = place()
        drills.fresh(storage, drills.OF_STUDY)
        with Served(storage, places.folder / "log") as server:
            load = Load([server.url], drills.STUDY, MANY, pairs)
            under_kills(load, [server.kill] * kills, server.start, wanted=MANY * pairs)
            found = said(judged(storage, drills.STUDY, load.told), kills)
        board.put(f"SIGKILL of the service under {MANY} clients", where, found)
    if (database := places.server) is None:
        return
    storage, log = database.new_database(), places.folder / "log"
    drills.fresh(storage, drills.OF_STUDY)
    with Served(storage, log) as one, Served(storage, log) as other:
        load = Load([one.url, other.url], drills.STUDY, MANY, pairs)
        under_kills(load, [database.kill] * kills, database.start, wanted=MANY * pairs)
        found = said(judged(storage, drills.STUDY, load.told), kills)
    board.put(f"SIGKILL of the database under {MANY} clients of two replicas", "PostgreSQL", found)


def said(tally: Tally, kills: int) -> str:
    return (
        f"{tally.lost} of {tally.acknowledged} lost in {kills} kills; {tally.doubled} written twice;"
        f" {tally.waiting} questions left open; {tally.flaws} flaws in the chain"
    )


class Paint(NamedTuple):
    """A page as a browser gets it."""

    seconds: float
    cpu: float
    compressed: int


def first_paint(board: Board, places: Places, counts: Counts) -> None:
    """The page of a study with 10,000 events and 2,000 candidates."""
    for where, place in places.both():
        storage = place()
        long_record(storage, EVENTS - 1, wide, rounds=12)
        Study.open(drills.STUDY, storage, actor="ada").ask()  # leaves a snapshot, as asking does
        with Served(storage, places.folder / "log") as server:
            looks = [look(server, f"/studies/{drills.STUDY}") for _ in range(LOOKS)]
            script = look(server, "/static/htmx.min.js").compressed
        opened, later = looks[0], min(looks[1:], key=lambda each: each.cpu)
        board.put(
            f"first paint, {EVENTS} events, 2000 candidates",
            where,
            f"opened {1000 * opened.cpu:.0f} ms of the server's CPU ({1000 * opened.seconds:.0f} ms"
            f" passed), then {1000 * later.cpu:.0f} ms ({1000 * later.seconds:.0f} ms);"
            f" page {max(each.compressed for each in looks) / 1000:.1f} KB compressed,"
            f" script {script / 1000:.1f} KB",
        )


def look(server: Served, path: str) -> Paint:
    """One page; what the server goes on to work out is waited for, and is not counted."""
    request = urllib.request.Request(server.url + path, headers={"Accept-Encoding": "gzip"})
    cpu, began = server.cpu(), time.monotonic()
    with urllib.request.urlopen(request) as response:
        body = response.read()
        packed = response.headers.get("Content-Encoding") == "gzip"
    seconds, used = time.monotonic() - began, server.cpu() - cpu
    rest(server)
    return Paint(seconds, used, len(body if packed else gzip.compress(body)))


def rest(server: Served) -> None:
    """Wait until the server has nothing to do."""
    before = -1.0
    while (now := server.cpu()) > before:
        before = now
        time.sleep(0.5)


def wide(storage: str) -> None:
    """A study of 2,000 candidates."""
    Study.create(
        drills.STUDY,
        storage,
        factors=[Factor("a", 0, 19, step=1), Factor("b", 0, 9, step=1), Factor("c", 0, 9, step=1)],
        target=Outcome("pressure", goal="lower", baseline=0, range=(-100, 100), matters=1.0),
        protected=[
            Outcome(name, baseline=0, range=(-100, 100), tolerance=5)
            for name in ("sodium", "potassium", "creatinine")
        ],
        actor="ada",
    )
