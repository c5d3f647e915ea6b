"""A service that runs in a thread of the tests, on a port of its own."""

import asyncio
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn

from sidestep.service.app import create_app
from sidestep.service.server import address_of, config_of
from sidestep.service.settings import Settings, load
from sidestep.studies.storage.sql import SqlStore

PASSWORD = "correct horse battery"
NAP = 0.005  # seconds


@cache
def empty_file() -> bytes:
    """A database without a study: made once, as migrations take a while."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        SqlStore.open(path).close()
        return path.read_bytes()


class Prompt(uvicorn.Server):
    """uvicorn, which naps for a tenth of a second before it sees that it should stop, and again after."""

    async def main_loop(self) -> None:
        await self.on_tick(0)
        while not self.should_exit:
            await asyncio.sleep(NAP)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:
            await asyncio.sleep(NAP)
        await self.lifespan.shutdown()


class Running:
    """An app and where it listens."""

    def __init__(
        self, storage: Any, laboratory: Callable[..., float] | None = None, **settings: Any
    ):
        flags = {"storage": str(storage), "port": 0, **settings}
        self.settings: Settings = load(flags, environment={}).settings
        if isinstance(storage, Path) and not storage.exists():
            storage.write_bytes(empty_file())
        self.store = SqlStore.open(str(storage), patience=10.0)
        self.app = create_app(self.settings, self.store, laboratory)
        self._server = Prompt(config_of(self.app, self.settings))
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> "Running":
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the service did not start")
            time.sleep(0.005)
        self.url = address_of(self._server)
        return self

    def __exit__(self, *_: object) -> None:
        self.app.state.listeners.stopping.set()
        self._server.should_exit = True
        self._thread.join(20)
        self.store.close()

    @property
    def door(self) -> Any:
        return self.app.state.door
