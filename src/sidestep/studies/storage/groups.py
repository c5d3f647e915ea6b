"""Group commit: one writer a study takes everything that waits into one transaction.

Waiting for the disk is most of what an entry costs, and it costs the same for one entry as for sixteen.
A caller is told that its entry is saved after the commit that holds it; where that commit fails, all of
its callers are told so.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sidestep.errors import StorageError
from sidestep.studies.storage.store import Log, Store, write

T = TypeVar("T")
MOST = 64  # entries in one transaction, so that nobody waits for a crowd
IDLE = 30.0  # seconds until a writer without work goes home


class _Waiting(NamedTuple):
    """A caller that waits for its entry."""

    act: Callable[[Log], Any]
    after: Callable[[Any], None] | None
    future: "Future[Any]"


_Line: TypeAlias = "SimpleQueue[_Waiting | None]"  # None: go home


class _Refused(NamedTuple):
    """What an act said instead of appending anything: its own caller's business."""

    why: Exception


class _SpoiltError(Exception):
    """An act was refused in the middle: nothing of this transaction can be saved."""


class Groups:
    """The writers of a process, one for every study that is being written to.

    watch   is told how many entries every commit held
    """

    def __init__(
        self, *, most: int = MOST, idle: float = IDLE, watch: Callable[[int], object] = id
    ) -> None:
        self._most, self._idle, self._watch = most, idle, watch
        self._lines: dict[tuple[int, str], _Line] = {}
        self._turn = threading.Lock()
        self._writers: set[threading.Thread] = set()

    def write(
        self,
        store: Store,
        name: str,
        act: Callable[[Log], T],
        after: Callable[[T], None] | None = None,
    ) -> T:
        """What `act` returned, once the transaction that it shared with others is durable."""
        waiting = _Waiting(act, after, Future())
        with self._turn:
            self._line(store, name).put(waiting)
        result: T = waiting.future.result()
        return result

    def close(self, patience: float = 10.0) -> None:
        """Wait until every entry that was handed in is saved or refused."""
        with self._turn:
            lines, writers = list(self._lines.values()), list(self._writers)
        for line in lines:
            line.put(None)
        for writer in writers:
            writer.join(patience)

    def _line(self, store: Store, name: str) -> _Line:
        key = (id(store), name)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = SimpleQueue()
            writer = threading.Thread(
                target=self._serve, args=(store, name, line), name=f"writer of {name}", daemon=True
            )
            self._writers.add(writer)
            writer.start()
        return line

    def _serve(self, store: Store, name: str, line: _Line) -> None:
        """The life of a writer: take all that waits, save it, until nothing comes."""
        while group := self._next(line) or self._last_call(store, name, line):
            _save(store, name, group)
            self._watch(len(group))
        self._writers.discard(threading.current_thread())

    def _next(self, line: _Line) -> list[_Waiting]:
        """Everything that waits by now; empty where nothing came for a while, or the end did."""
        group = []
        try:
            waiting = line.get(timeout=self._idle)
            while waiting is not None:
                group.append(waiting)
                waiting = line.get_nowait() if len(group) < self._most else None
        except Empty:
            pass
        return group

    def _last_call(self, store: Store, name: str, line: _Line) -> list[_Waiting]:
        """Close the line, unless somebody joined it at the last moment."""
        with self._turn:
            if line.empty():
                del self._lines[id(store), name]
                return []
        return self._next(line)


def _save(store: Store, name: str, group: list[_Waiting]) -> None:
    try:
        done = write(store, name, lambda log: [_tried(waiting, log) for waiting in group])
    except _SpoiltError:
        for waiting in group:
            _save_alone(store, name, waiting)
    except Exception as error:  # whatever it was: nothing was saved, and nobody may think otherwise
        for waiting in group:
            waiting.future.set_exception(error)
    else:
        for waiting, result in zip(group, done, strict=True):
            _answer(waiting, result)


def _tried(waiting: _Waiting, log: Log) -> Any:
    """What an act returned; or its refusal, where it left no trace."""
    before = log.head.seq
    try:
        return waiting.act(log)
    except StorageError:
        raise
    except Exception as why:
        if log.refusal is not None or log.head.seq != before:
            raise _SpoiltError from why
        return _Refused(why)


def _save_alone(store: Store, name: str, waiting: _Waiting) -> None:
    try:
        result = write(store, name, waiting.act)
    except Exception as error:
        waiting.future.set_exception(error)
    else:
        _answer(waiting, result)


def _answer(waiting: _Waiting, result: Any) -> None:
    if isinstance(result, _Refused):
        waiting.future.set_exception(result.why)
        return
    waiting.future.set_result(result)  # first of all: it is saved
    if waiting.after is not None:
        waiting.after(result)
