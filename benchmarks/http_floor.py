"""The floor under pairs over HTTP: the same server and the same clients, but constant answers.

The answers are those of a real study, in their real size; nothing is read from a request and nothing is
decided. "Saved" commits one row per request through the engine of the storage.

python benchmarks/reliability.py --no-peer --only floor
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    TESTS = Path(__file__).parents[1] / "tests"
    sys.path[:0] = map(str, (TESTS, TESTS / "studies", TESTS / "service"))

import drills
from fastapi import FastAPI, Request, Response
from over_http import CLIENTS, paced
from scoreboard import Board, Counts, Places
from served import Load, Served
from sqlalchemy import Column, MetaData, Table, Text
from starlette.concurrency import run_in_threadpool

from sidestep.service.replies import json_reply
from sidestep.service.server import Server, config_of, open_sql
from sidestep.service.settings import Settings
from sidestep.studies.cards.card_json import card_to_json
from sidestep.studies.storage.ready import Ready
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.study import Study

KINDS = CONSTANT, SAVED = "constant", "saved"
ROUNDS = 20  # after which answers have their usual size
ROWS = Table("floor", MetaData(), Column("body", Text))


class Floor(Served):
    """The server of this file."""

    def __init__(self, storage: str, log: Path, kind: str) -> None:
        self.kind = kind
        super().__init__(storage, log)

    def command(self) -> list[str]:
        return [sys.executable, __file__, self.storage, self.kind]


def floor_over_http(board: Board, places: Places, counts: Counts) -> None:
    """Pairs a second of constant answers, then of answers that also commit a row."""
    for where, place in places.both():
        for kind in KINDS:
            storage = place()
            drills.fresh(storage, drills.OF_STUDY)
            with Floor(storage, places.folder / "log", kind) as server:
                Load([server.url], drills.STUDY, 1, 5, name="first").start().join()
                for clients in CLIENTS:
                    claim = f"floor, {kind}, {clients} client{'s' * (clients > 1)}"
                    board.put(claim, where, paced(server, clients, counts.pairs))


def app_of(store: SqlStore, kind: str) -> FastAPI:
    app, save = FastAPI(), saver(store)
    shown, asked, told = answers(store)

    def answer(path: str, method: str, body: bytes) -> None:
        async def handle(request: Request) -> Response:
            await request.body()
            if kind == SAVED and method == "POST":
                await run_in_threadpool(save, body.decode())
            return Response(body, media_type="application/json")

        app.add_api_route(path, handle, methods=[method])

    answer("/v1/studies/{name}", "GET", shown)
    answer("/v1/studies/{name}/tickets", "POST", asked)
    answer("/v1/studies/{name}/tickets/{id}/answer", "POST", told)
    return app


def answers(store: SqlStore) -> list[bytes]:
    """What a study answers to a look, to an ask and to a tell."""
    study = Study.open(drills.STUDY, store)
    for value in range(ROUNDS):
        ticket = study.ask()
        receipt = study.tell(ticket.id, float(value))
    shown = study.show()
    shown = replace(shown, data={**shown.data, "candidates": None})  # a client wants to know them
    cards = (shown, ticket.card, receipt.card)
    return [bytes(json_reply({**card.data, "card": card_to_json(card)}).body) for card in cards]


def saver(store: SqlStore) -> Callable[[str], None]:
    new = Ready(ROWS.insert())
    with store.database.transaction(lambda _: None) as (connection, _):
        ROWS.create(connection)

    def save(body: str) -> None:
        with store.database.transaction(lambda _: None) as (connection, _):
            new.change(connection, {"body": body})

    return save


def main() -> None:
    storage, kind = sys.argv[1:]
    app = app_of(open_sql(storage), kind)
    config = config_of(app, Settings(port=0))
    Server(config, app, lambda url: print(f"listening at {url}", flush=True)).run()


if __name__ == "__main__":
    main()
