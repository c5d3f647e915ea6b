"""The scoreboard: what the live side promises, measured, beside Optuna's storage in the same run.

python benchmarks/reliability.py            minutes; --long: the counts that are promised
pip install -r benchmarks/peers.txt         for the column of Optuna
"""

import argparse
import math
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
HERE = (TESTS, TESTS / "studies", TESTS / "service", Path(__file__).parent)
sys.path[:0] = map(str, HERE)

import drills  # noqa: E402
from http_floor import floor_over_http  # noqa: E402
from long_records import long_record  # noqa: E402
from over_http import first_paint, killed_service, pairs_over_http  # noqa: E402
from reference import Client  # noqa: E402
from scoreboard import LONG, SHORT, Board, Counts, Places, said, started  # noqa: E402
from workers import Worker  # noqa: E402

from sidestep.studies.storage.record import verify  # noqa: E402
from sidestep.studies.storage.sql import SqlStore  # noqa: E402
from sidestep.studies.study import Study  # noqa: E402


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--long", action="store_true", help="the counts that are promised")
    words.add_argument("--no-peer", action="store_true", help="leave Optuna out")
    words.add_argument("--only", default="", help="one of: " + ", ".join(ROWS))
    options = words.parse_args()
    counts = LONG if options.long else SHORT
    folder = Path(tempfile.mkdtemp(prefix="sidestep-reliability-"))
    folder.chmod(0o755)
    server = started(folder / "server")
    places, board = Places(folder, server), Board()
    print("| claim | where | found |\n|---|---|---|")
    try:
        for name, row in ROWS.items():
            if options.only in name:
                row(board, places, counts)
        if options.only:
            return
        if not options.no_peer and find_spec("optuna"):
            from optuna_drills import rows  # noqa: PLC0415

            rows(board, places, counts)
        elif not options.no_peer:
            print("\nOptuna is not installed: pip install -r benchmarks/peers.txt")
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


# ---- rows


def killed_clients(board: Board, places: Places, counts: Counts) -> None:
    for where, place in places.both():
        tally = drills.kill_clients(place(), counts.acknowledged, clients=3, life=counts.life)
        board.put(
            "acknowledged tells lost under SIGKILL of the client",
            where,
            f"{tally.lost} of {tally.acknowledged} in {tally.kills} kills"
            f" ({tally.doubled} written twice, {tally.flaws} flaws in the chain)",
        )
        board.put("asks left open with no explanation", where, f"{tally.unexplained}")


def killed_server(board: Board, places: Places, counts: Counts) -> None:
    if places.server is None:
        return
    each = counts.pairs_under_server_kills
    tally = drills.kill_server(places.server, each, kills=counts.server_kills)
    board.put(
        "... under SIGKILL of the database server",
        "PostgreSQL",
        f"{tally.lost} of {tally.acknowledged} in {tally.kills} kills; every client finished;"
        f" {tally.doubled} written twice",
    )


def two_values(board: Board, places: Places, counts: Counts) -> None:
    for where, place in places.both():
        tally = drills.tell_two_values(place(), counts.tickets)
        board.put(
            "one ticket told two values at once: both acknowledged",
            where,
            f"{tally.both} of {tally.tickets}",
        )
        board.put("... an acknowledged value then overwritten", where, f"{tally.overwritten}")


def hand_outs(board: Board, places: Places, counts: Counts) -> None:
    for where, place in places.both():
        tally = drills.hand_out(place(), counts.hand_outs)
        claim = "one queued ask handed to two askers, 4 processes"
        board.put(claim, where, f"{tally.twice} of {tally.asks}")


def told_again(board: Board, places: Places, counts: Counts) -> None:
    for where, place in places.both():
        storage = place()
        drills.fresh(storage, drills.OF_STUDY)
        study = Study.open(drills.STUDY, storage)
        _told_again(board, where, study)


def _told_again(board: Board, where: str, study: Study) -> None:
    ticket = study.ask().id
    study.tell(ticket, 38.0)
    before = len(study.history())
    same = study.tell(ticket, 38.0).repeated and len(study.history()) == before
    board.put("the same tell again", where, "same answer, nothing written" if same else "WRONG")
    board.put("a different tell again", where, said(lambda: study.tell(ticket, 36.0)))
    waiting = study.ask().id
    bad = {"NaN": math.nan, "infinity": math.inf, "text": "4,2", "10^400": 10**400}
    for name, value in bad.items():
        words = said(lambda value=value: study.tell(waiting, value))
        board.put(f"told {name}", where, words)
    nothing = len(study.history()) == before + 1
    study.tell(waiting, 1.0)
    board.put("... and after that", where, f"nothing written: {nothing}; a good value is taken")


def resumed(board: Board, places: Places, counts: Counts) -> None:
    """A study that is opened anew for every round asks what one asks that never was closed."""
    for where, place in places.both():
        stories = []
        for again in (False, True):
            storage = place()
            drills.fresh(storage, drills.OF_STUDY)
            stories.append(story(storage, counts.rounds, again=again))
        same = sum(one == other for one, other in zip(*stories, strict=True))
        board.put(
            "seeded study stopped and resumed = one shot",
            where,
            f"{same} of {counts.rounds} asks identical, bit for bit",
        )


def story(storage: str, rounds: int, *, again: bool) -> list[dict[str, Any]]:
    """The asks of a study, as recorded."""
    study, values = Study.open(drills.STUDY, storage), random.Random(0)
    for _ in range(rounds):
        if again:
            study = Study.open(drills.STUDY, storage)
        study.tell(study.ask().id, values.gauss(0, 10))
    return [event.body for event in study.history() if event.kind == "asked"]


def full_disk(board: Board, places: Places, counts: Counts) -> None:
    store = SqlStore.open(places.sqlite())
    store.create(drills.STUDY, {}, actor="ada", body={})
    from sqlalchemy import event  # noqa: PLC0415

    room = {"pages": 14}

    @event.listens_for(store.database.engine, "checkout")
    def limit(connection: Any, *_: Any) -> None:
        connection.execute(f"PRAGMA max_page_count = {room['pages']}")

    def write() -> None:
        with store.writing(drills.STUDY) as log:
            log.append("accepted", body={"long": "x" * 100_000}, actor="ada")

    words = said(write)
    holds = verify(store, drills.STUDY).holds
    room["pages"] = 100_000
    write()
    board.put("disk full", "SQLite", f"{words.split(';')[0]}; reads work: {holds}; then goes on")
    store.close()


def clock_jumps(board: Board, places: Places, counts: Counts) -> None:
    for where, place in places.both():
        shift = {"by": timedelta()}
        store = SqlStore.open(place(), clock=lambda shift=shift: datetime.now(UTC) + shift["by"])
        store.create(drills.STUDY, {}, actor="ada", body={})
        client = Client(store, drills.STUDY, "ada")
        seqs = []
        for hours in (0, 1, -1, 0):
            shift["by"] = timedelta(hours=hours)
            seqs.append(client.tell(client.ask().seq, 1.0).seq)
        fine = seqs == [3, 5, 7, 9] and verify(store, drills.STUDY).holds
        board.put("clock jumps one hour either way", where, "no effect" if fine else "WRONG")
        store.close()


def pairs_a_second(board: Board, places: Places, counts: Counts) -> None:
    """In turns, so that a busy machine is busy for everyone; medians."""
    for where, place in places.both():
        for clients in (1, 4):
            players = contestants(where, place, counts, clients)
            paces: dict[str, list[drills.Pace]] = {name: [] for name in players}
            for _ in range(counts.turns):
                for name, play in players.items():
                    paces[name].append(play())
            medians = {name: median(pace.rate for pace in turns) for name, turns in paces.items()}
            for name, turns in paces.items():
                slow = 1000 * median(pace.p99 for pace in turns)
                board.put(
                    f"ask and tell pairs a second, {clients} client{'s' * (clients > 1)}",
                    f"{where}, {name}",
                    f"{medians[name]:.1f}, p99 of tell {slow:.0f} ms{against(medians, name)}",
                )


def contestants(
    where: str, place: Callable[[], str], counts: Counts, clients: int
) -> dict[str, Callable[[], drills.Pace]]:
    """Who plays for pairs a second: storage alone, a whole study, and Optuna."""

    def ours(kind: str) -> Callable[[], drills.Pace]:
        return lambda: drills.pace(place(), counts.pairs, clients=clients, kind=kind)

    players = {"storage alone": ours(drills.OF_STORE), "a whole study": ours(drills.OF_STUDY)}
    if find_spec("optuna"):
        import optuna_drills  # noqa: PLC0415

        scheme = "sqlite:///" if where == "SQLite" else "postgresql+psycopg://"
        players["Optuna"] = lambda: optuna_drills.pace(
            scheme + place().removeprefix("postgresql://"), counts.peer, clients=clients
        )
    return players


def against(medians: dict[str, float], name: str) -> str:
    if "Optuna" not in medians or name == "Optuna":
        return ""
    return f", {medians[name] / medians['Optuna']:.1f}x Optuna"


def first_ask(reports: Any, storage: str) -> None:
    before = time.process_time()
    study = Study.open(drills.STUDY, storage, actor="bob")
    study.ask(new=True)
    reports.send(time.process_time() - before)


def reopening(board: Board, places: Places, counts: Counts) -> None:
    for where, place in places.both():
        storage = place()
        long_record(storage, counts.events, lambda small: drills.fresh(small, drills.OF_STUDY))
        for claim in ("reading a record without a snapshot", "reopening and the first ask"):
            (seconds,) = Worker(first_ask, storage).join()
            board.put(f"{claim}, {counts.events} events", where, f"{seconds:.3f} s of CPU")
        with closing(SqlStore.open(storage)) as store:
            before = time.process_time()
            verdict = verify(store, drills.STUDY)
            each = 1e6 * (time.process_time() - before) / verdict.events
        board.put("verify", where, f"{each:.0f} us an event; holds: {verdict.holds}")


ROWS = {
    "killed clients": killed_clients,
    "killed server": killed_server,
    "two values": two_values,
    "hand-outs": hand_outs,
    "told again": told_again,
    "full disk": full_disk,
    "clock": clock_jumps,
    "resumed": resumed,
    "pairs": pairs_a_second,
    "reopening": reopening,
    "over HTTP": pairs_over_http,
    "floor": floor_over_http,
    "killed service": killed_service,
    "first paint": first_paint,
}


if __name__ == "__main__":
    main()
