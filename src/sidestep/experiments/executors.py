"""Where jobs run: here, in processes, or on a Dask cluster. Results come as they are finished."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Protocol

from sidestep.errors import ExecutorError

Work = Callable[[Any], Any]


class Runner(Protocol):
    """Runs jobs and yields results in any order."""

    def run(self, work: Work, jobs: Sequence[Any]) -> Iterator[Any]:
        """One result a job."""


class Serial:
    """One job after another, in this process."""

    def run(self, work: Work, jobs: Sequence[Any]) -> Iterator[Any]:
        """One result a job."""
        yield from map(work, jobs)


class Mapped:
    """Anything with the `map` of concurrent.futures."""

    def __init__(self, executor: Any) -> None:
        self.executor = executor

    def run(self, work: Work, jobs: Sequence[Any]) -> Iterator[Any]:
        """One result a job."""
        yield from self.executor.map(work, jobs)


class Processes:
    """Several processes of this machine. What a process that dies had in hand is run again."""

    def __init__(self, count: int, tries: int = 3) -> None:
        self.count = count
        self.tries = tries

    def run(self, work: Work, jobs: Sequence[Any]) -> Iterator[Any]:
        """One result a job."""
        left = dict(enumerate(jobs))
        for _ in range(self.tries):
            try:
                for number, result in self._run_once(work, left):
                    del left[number]
                    yield result
                return
            except BrokenProcessPool:
                continue
        raise ExecutorError(
            f"worker processes died {self.tries} times over, {len(left)} runs are not done; "
            "finished runs are kept"
        )

    def _run_once(self, work: Work, left: dict[int, Any]) -> Iterator[tuple[int, Any]]:
        fresh = multiprocessing.get_context("spawn")  # forking a process with threads may hang
        with ProcessPoolExecutor(min(self.count, len(left)), mp_context=fresh) as pool:
            numbers = {pool.submit(work, job): number for number, job in left.items()}
            try:
                for future in as_completed(numbers):
                    yield numbers[future], future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


class Dask:
    """The workers of a Dask scheduler. Jobs of a worker that dies go to another one."""

    def __init__(self, address: str, timeout: float = 10.0) -> None:
        self.address = address
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
            futures = client.map(work, list(jobs), pure=False, retries=3)
            for future in distributed.as_completed(futures, loop=client.loop):
                try:
                    yield future.result()
                except distributed.KilledWorker as error:
                    raise ExecutorError(
                        f"workers of {self.address} died again and again over one run; finished "
                        "runs are kept"
                    ) from error
