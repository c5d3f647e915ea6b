"""The server: listens until it is told to stop, then finishes what was begun."""

import signal
import socket
import sys
from collections.abc import Callable
from importlib.util import find_spec
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from sidestep.errors import InputError, ServiceError
from sidestep.service.app import Laboratory, create_app
from sidestep.service.bodies import LONGEST_HEAD
from sidestep.service.logs import set_up_logs
from sidestep.service.pages.shell import read_templates
from sidestep.service.settings import Settings
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.store import open_store

GRACE = 20  # seconds for requests that are under way when it is told to stop


class Server(uvicorn.Server):
    """Says where it listens, and lets listeners go when it is told to stop."""

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, ready: Callable[[str], object]
    ) -> None:
        super().__init__(config)
        self._app, self._ready = app, ready

    async def startup(self, sockets: Any = None) -> None:
        """Listen, then say so."""
        await super().startup(sockets)
        if self.started:
            self._ready(address_of(self))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal asks to finish, a second one to stop at once; neither is passed on."""
        self._app.state.listeners.stopping.set()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def open_sql(storage: str) -> SqlStore:
    """The database behind a storage; a service cannot do with memory."""
    store = open_store(storage)
    if not isinstance(store, SqlStore):
        raise InputError(f"a service needs a file or a database that stays, got {storage!r}")
    return store


def check_host_allowed(app: FastAPI, settings: Settings) -> None:
    """Refuse to be seen by other machines until there is somebody who may let people in."""
    if settings.is_local or app.state.door.accounts.has_admin():
        return
    raise InputError(
        f"host must be this machine (127.0.0.1) until there is an admin, got {settings.host!r}: make one "
        "with `sidestep user add NAME --admin` or `sidestep token create NAME --role admin`"
    )


def check_port_free(settings: Settings) -> None:
    """Say in a sentence that nobody can listen there, before anything is begun."""
    try:
        place = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        socket.create_server(place[4][:2], family=place[0]).close()
    except OSError as error:
        raise ServiceError(
            f"nobody can listen at {settings.host}, port {settings.port} ({error.strerror}): choose "
            "another with --port (0: any that is free)"
        ) from error


def run(
    settings: Settings,
    store: SqlStore,
    ready: Callable[[str], object],
    laboratory: Laboratory | None = None,
) -> int:
    """Serve until a signal comes; the exit code. `ready` is told the address."""
    app = create_app(settings, store, laboratory)
    check_host_allowed(app, settings)
    set_up_logs(settings.log_level)
    read_templates()
    server = Server(config_of(app, settings), app, ready)
    server.run()
    if not server.started:
        print(f"sidestep: {settings.host}:{settings.port} cannot be listened on", file=sys.stderr)
        return 1
    return 0


def config_of(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How it listens."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=parser(),
        h11_max_incomplete_event_size=LONGEST_HEAD,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=settings.proxies or None,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=30,
        lifespan="on",
    )


def parser() -> Any:
    """What reads requests: a parser in C, or where there is none the one in Python, at twice the cost."""
    if find_spec("httptools") is None:
        return "h11"
    from sidestep.service.heads import LimitedHttp  # noqa: PLC0415

    return LimitedHttp


def address_of(server: uvicorn.Server) -> str:
    """Where it listens, the port being the one it got."""
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
