"""Connections: the address of a storage, and the settings that make a database durable."""

import os
import sqlite3
import warnings
import weakref
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import URL, Engine
from sqlalchemy.exc import ArgumentError

from sidestep.errors import DurabilityWarning, InputError, NotFoundError
from sidestep.studies.storage.waits import Outage, Waits

PATIENCE = 20.0  # seconds to wait for a lock, or for a server to come back

_ABANDONED: list[Any] = []
_LEFT_ON = ("fsync", "synchronous_commit", "full_page_writes")


def url_of(storage: str | Path, *, create: bool) -> URL:
    """The database URL of a path or a URL; raises if it cannot be one, before anything is opened."""
    if isinstance(storage, Path) or "://" not in storage:
        return _file_url(Path(storage), create=create)
    try:
        url = sa.make_url(storage)
    except (ArgumentError, ValueError):  # a port that is no number
        raise _bad_url(storage) from None
    if url.drivername.partition("+")[0] == "sqlite":
        return _sqlite_url(url, create=create)
    if url.drivername.partition("+")[0] in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    raise _bad_url(storage)


def place_of(url: URL) -> str:
    """The name of a storage for people, without its password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def engine_of(url: URL, waits: Waits, outage: Outage) -> Engine:
    """An engine with durable connections and without its own waiting for locks."""
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(
            url,
            pool_use_lifo=True,  # the latest writer's connection still has the pages it wrote
            connect_args={"timeout": 0, "check_same_thread": False},
        )
        sa.event.listen(engine, "connect", _prepare_sqlite)
    else:
        _check_driver()
        from sidestep.studies.storage.postgresql import engine_to  # noqa: PLC0415  # needs the driver

        engine = engine_to(url, waits, outage)
    _drop_in_children(engine)
    return engine


def warn_if_forgetful(connection: sa.Connection, where: str) -> None:
    """Warn if PostgreSQL may lose acknowledged data."""
    off = settings_off(connection)
    if off:
        warnings.warn(
            f"{where} has {' and '.join(off)} off: after a crash it may have forgotten entries that"
            " it said were saved",
            DurabilityWarning,
            stacklevel=4,
        )


def settings_off(connection: sa.Connection) -> list[str]:
    """The settings that PostgreSQL needs for durability and that are off."""
    row = connection.execute(
        sa.text("SELECT " + ", ".join(f"current_setting('{name}')" for name in _LEFT_ON))
    ).one()
    return [name for name, value in zip(_LEFT_ON, row, strict=True) if value == "off"]


def _file_url(path: Path, *, create: bool) -> URL:
    path = path.expanduser().absolute()
    if path.is_dir():
        raise InputError(f"storage must be a file, got the folder {path}")
    if not path.parent.is_dir():
        raise InputError(f"storage must lie in a folder that exists, got {path}")
    if not create and not path.exists():
        raise NotFoundError(
            f"storage must be a file that exists, got {path}: `sidestep study create` begins one, and "
            "-s FILE (or SIDESTEP_STORAGE) names another"
        )
    return URL.create("sqlite+pysqlite", database=str(path))


def _sqlite_url(url: URL, *, create: bool) -> URL:
    if not url.database or url.database == ":memory:":
        raise InputError(f"storage must name a file (memory: is the store in memory), got {url}")
    if url.query or url.database.startswith("file:"):
        raise InputError(f"storage must be sqlite:/// and a plain path, got {url}")
    return _file_url(Path(url.database), create=create)


def _bad_url(storage: str) -> InputError:
    scheme = storage.partition("://")[0]
    return InputError(
        "storage must be a path, sqlite:///..., postgresql://user@host/database or memory:,"
        f" got an address that begins with {scheme}://"
    )


def _check_driver() -> None:
    try:
        import psycopg  # noqa: F401, PLC0415
    except ImportError:
        raise InputError(
            "storage on PostgreSQL needs its driver (pip install 'sidestep[postgres]'), got none"
        ) from None


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # we issue BEGIN: with Python's, a check and a write can race
    for pragma in (
        "busy_timeout = 0",  # its waits of up to 100 ms starve a waiter; ours are short
        "synchronous = FULL",  # a commit that returned is on the disk
        "fullfsync = ON",  # ... on a Mac too
        "foreign_keys = ON",
        "trusted_schema = OFF",
        "wal_autocheckpoint = 250",  # pages: a lost log is to lose little
    ):
        connection.execute(f"PRAGMA {pragma}")


def _drop_in_children(engine: Engine) -> None:
    """A forked child must not use its parent's connections."""
    kept = weakref.ref(engine)

    def forget() -> None:
        alive = kept()
        if alive is not None:
            _ABANDONED.append(alive.pool)  # even closing them here would disturb the parent
            alive.dispose(close=False)

    if hasattr(os, "register_at_fork"):  # Windows does not fork
        os.register_at_fork(after_in_child=forget)
