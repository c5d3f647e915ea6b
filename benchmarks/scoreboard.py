"""What the rows of the scoreboard share: how much of everything, where, and how a row is printed."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from databases import Postgres, PostgresError
from sidestep.errors import SidestepError


class Counts(NamedTuple):
    """How much of everything."""

    acknowledged: int
    life: float  # seconds, at most, until a client is killed
    pairs_under_server_kills: int
    server_kills: int
    tickets: int
    hand_outs: int
    pairs: int
    turns: int
    rounds: int
    events: int
    peer: int  # Optuna's counts are these
    peer_rounds: int


SHORT = Counts(150, 0.4, 100, 4, 100, 100, 100, 3, 20, 10_000, 40, 200)
LONG = Counts(3000, 3.0, 1000, 20, 1000, 1000, 400, 5, 60, 100_000, 80, 1000)


class Places:
    """New storages, of either kind."""

    def __init__(self, folder: Path, server: Postgres | None) -> None:
        self.folder, self.server, self.made = folder, server, 0

    def sqlite(self) -> str:
        self.made += 1
        return str(self.folder / f"{self.made}.db")

    def postgresql(self) -> str:
        return self.server.new_database()

    def both(self) -> Iterator[tuple[str, Callable[[], str]]]:
        yield "SQLite", self.sqlite
        if self.server is not None:
            yield "PostgreSQL", self.postgresql


class Board:
    """Rows as they come, each printed at once."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str]] = []

    def put(self, claim: str, where: str, found: str) -> None:
        self.rows.append((claim, where, found))
        print(f"| {claim} | {where} | {found} |", flush=True)


def started(folder: Path) -> Postgres | None:
    folder.mkdir()
    try:
        server = Postgres(folder)
        server.start()
    except PostgresError as reason:
        print(f"PostgreSQL is left out: {reason}")
        return None
    return server


def said(act: Callable[[], Any]) -> str:
    try:
        act()
    except SidestepError as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"
