"""The server: listens until a signal stops it, then finishes running requests."""

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
from sidestep.service.connections import Connections, Counted, most_connections
from sidestep.service.logs import set_up_logs
from sidestep.service.pages.shell import read_templates
from sidestep.service.settings import Settings
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.store import open_store

GRACE = 8  # seconds that running requests get after a stop signal


class Server(uvicorn.Server):
    """Reports its address, and ends event streams when it is stopped."""

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, ready: Callable[[str], object]
    ) -> None:
        super().__init__(config)
        self._app, self._ready = app, ready

    async def startup(self, sockets: Any = None) -> None:
        """Start to listen, then report the address."""
        await super().startup(sockets)
        if self.started:
            self._ready(address_of(self))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal asks to finish, the second one stops at once; neither is passed on."""
        self._app.state.listeners.stopping.set()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def open_sql(storage: str) -> SqlStore:
    """The database of a storage; a service does not accept a storage in memory."""
    store = open_store(storage, serving=True)
    if not isinstance(store, SqlStore):
        raise InputError(f"a service needs a file or a database that stays, got {storage!r}")
    return store


def check_host_allowed(app: FastAPI, settings: Settings) -> None:
    """Raise if other machines could reach the service while there is no admin."""
    if settings.is_local or app.state.door.accounts.has_admin():
        return
    raise InputError(
        f"host must be this machine (127.0.0.1) until there is an admin, got {settings.host!r}: make one "
        "with `sidestep user add NAME --admin` or `sidestep token create NAME --role admin`"
    )


def check_port_free(settings: Settings) -> None:
    """Raise one sentence if the port is in use, before anything else is done."""
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
    """Serve until a signal comes; returns the exit code. `ready` is called with the address."""
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
    """The configuration of uvicorn."""
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=parser(Connections(most_connections(settings.connections))),
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


def parser(room: Connections) -> Any:
    """The HTTP parser: the one in C, or if it is missing the one in Python, at twice the cost."""
    base: Any
    if find_spec("httptools") is None:
        from uvicorn.protocols.http.h11_impl import H11Protocol as base  # noqa: PLC0415, N813
    else:
        from sidestep.service.heads import LimitedHttp as base  # noqa: PLC0415, N813
    return type("Http", (Counted, base), {"room": room})


def address_of(server: uvicorn.Server) -> str:
    """The address of the server, with the actual port."""
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
