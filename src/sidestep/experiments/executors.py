"""Runs jobs in this process, in worker processes or on a Dask cluster; yields results as they finish.

Ctrl-C stops at once: finished results are still yielded, running jobs are dropped.
"""

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol
from urllib.parse import urlsplit

from sidestep.errors import ExecutorError, InputError

Work = Callable[[Any], Any]

FRESH = get_context("spawn")  # forking a process with threads may hang
SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")


class Runner(Protocol):
    """Runs jobs and yields results in any order."""

    def run(self, work: Work, jobs: Sequence[Any]) -> Iterator[Any]:
        """One result a job."""


class Serial:
    """One job after another, in this process."""

    def run(self, work: Work, jobs: Sequence[Any]) -> Iterator[Any]:
        """One result a job."""
        for job in jobs:
            result = work(job)
            with uninterrupted():  # until the caller has saved the result
                yield result


class Processes:
    """Several processes of this machine. The job of a process that dies is run again.

    The pool of concurrent.futures waits for its jobs before it reacts to Ctrl-C, and stops all of
    its processes if one dies. Here each process has its own pipe, and can be replaced.

    Between two calls of `run` the processes wait, with everything that they have imported and compiled.
    They end with this object.
    """

    def __init__(self, count: int, tries: int = 3) -> None:
        self.count = count
        self.tries = tries
        self._idle: list[_Worker] = []

    def run(self, work: Work, jobs: Sequence[Any]) -> Iterator[Any]:
        """One result a job."""
        todo = deque((job, self.tries) for job in jobs)
        workers: dict[Connection, _Worker] = {}
        try:
            while todo or workers:
                while todo and len(workers) < self.count:
                    worker = self._free_worker()
                    workers[worker.pipe] = worker
                    worker.take(work, *todo.popleft())
                for pipe in wait(list(workers)):
                    with uninterrupted():  # until the caller has saved the result
                        yield from self._next(workers, pipe, work, todo)
        except KeyboardInterrupt:
            for worker in workers.values():
                with uninterrupted():
                    yield from worker.finished()
            raise
        finally:
            for worker in workers.values():
                worker.stop()

    def _free_worker(self) -> "_Worker":
        """A worker that waits for a job, or a new one; workers that died while waiting are removed."""
        while self._idle:
            worker = self._idle.pop()
            if worker.process.is_alive():
                return worker
            worker.stop()
        return _Worker()

    def _next(
        self, workers: dict[Any, "_Worker"], pipe: Any, work: Work, todo: deque[Any]
    ) -> list[Any]:
        """The result of a worker, in a list; empty if it died. Then gives the worker the next job."""
        worker = workers[pipe]
        try:
            result = worker.result()
        except (EOFError, OSError):
            worker.stop()
            del workers[pipe]
            if worker.tries == 1:
                raise ExecutorError(
                    f"worker processes died {self.tries} times over one run, "
                    f"{len(todo) + len(workers) + 1} runs are not done; finished runs are kept"
                ) from None
            todo.appendleft((worker.job, worker.tries - 1))
            return []
        if todo:
            worker.take(work, *todo.popleft())
        else:
            self._idle.append(workers.pop(pipe))
        return [result]


class _Worker:
    """A process and its current job."""

    def __init__(self) -> None:
        self.pipe, theirs = FRESH.Pipe()
        self.process = FRESH.Process(target=_serve, args=(theirs,), daemon=True)
        start_without_ctrl_c(self.process)
        theirs.close()  # so that the pipe ends with the process

    def take(self, work: Work, job: Any, tries: int) -> None:
        """Start a job; after `tries` processes have died with it, it is not tried again."""
        self.job, self.tries = job, tries
        self.pipe.send((work, job))

    def result(self) -> Any:
        """The result of the job; raises the exception that the job raised."""
        good, result = self.pipe.recv()
        if not good:
            raise result
        return result

    def finished(self) -> list[Any]:
        """The result in a list, if it is there already."""
        try:
            return [self.result()] if self.pipe.poll() else []
        except (EOFError, OSError):
            return []

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    """Main function of a worker process: receive a job, send its result, until the pipe is closed."""
    try:
        while True:
            work, job = pipe.recv()
            try:
                answer = True, work(job)
            except Exception as error:
                answer = False, error
            pipe.send(answer)
    except (EOFError, OSError):
        return


class Dask:
    """The workers of a Dask scheduler. Jobs of a worker that dies go to another one."""

    def __init__(self, address: str, timeout: float = 10.0) -> None:
        self.address = _checked_address(address)
        self.timeout = timeout

    def run(self, work: Work, jobs: Sequence[Any]) -> Iterator[Any]:
        """One result a job."""
        try:
            import distributed  # noqa: PLC0415  (an extra)
        except ImportError:
            raise ExecutorError(
                "--scheduler needs the extra 'dask': install sidestep[dask]"
            ) from None
        try:
            client = distributed.Client(self.address, timeout=self.timeout, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ExecutorError(f"no Dask scheduler answers at {self.address}") from error
        with client:
            left = set(client.map(work, list(jobs), pure=False, retries=3))
            try:
                for future in distributed.as_completed(list(left), loop=client.loop):
                    result = future.result()
                    with uninterrupted():
                        left.discard(future)
                        yield result
            except distributed.KilledWorker as error:
                raise ExecutorError(
                    f"workers of {self.address} died again and again over one run; finished runs are "
                    "kept"
                ) from error
            except KeyboardInterrupt:
                for future in [future for future in left if future.status == "finished"]:
                    with uninterrupted():
                        yield future.result()
                client.cancel(list(left))
                raise


def _checked_address(address: str) -> str:
    """The address; raises one sentence if it cannot be the address of a scheduler."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        good = parts.scheme in SCHEMES and bool(parts.hostname) and bool(parts.port)
    except ValueError:
        good = False
    if not good:
        raise InputError(f"scheduler must be an address, tcp://HOST:PORT, got {address!r}")
    return address


CAN_BLOCK = hasattr(signal, "pthread_sigmask")  # not on Windows


def start_without_ctrl_c(process: BaseProcess) -> None:
    """Start a process that does not receive Ctrl-C (a terminal sends it to every process at once).

    The process inherits the set of blocked signals. The helper process of multiprocessing, which starts
    with the first process, unblocks Ctrl-C again, so it is started first.
    """
    if CAN_BLOCK:
        resource_tracker.ensure_running()
    with uninterrupted():
        process.start()


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block.

    Another thread may receive a signal that is blocked in this one, so the handler is replaced as well.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before: Any = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if CAN_BLOCK else set()
    try:
        yield
    finally:
        if CAN_BLOCK:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)
