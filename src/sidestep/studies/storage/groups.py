"""Group commit: the first caller saves all waiting entries of a study in one transaction.

Most of the time of an entry is spent waiting for the disk, which takes as long for one entry as for
sixteen. A caller gets its result after the commit that contains its entry; if that commit fails, all of
its callers get the error. The callers take turns: one saves for all, then the next of those that arrived
in the meantime.

A question is decided inside its transaction, which takes several times as long as saving a result. So
results and questions are saved in separate transactions, results first and questions two at a time: a
result waits for at most two decisions.
"""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from sidestep.errors import StorageError
from sidestep.studies.storage.log import Log
from sidestep.studies.storage.store import Store, write

T = TypeVar("T")
MOST = 64  # most entries in one transaction, so that nobody waits too long
DECIDED = 2  # most questions in one transaction: a result that arrives waits for their decisions
PASSED = 8  # transactions of results in a row before a waiting question
YOUR_TURN = object()  # message to the next caller that saves


class _Waiting(NamedTuple):
    """A waiting caller: it gets either its turn to save, or the result of its own entry."""

    act: Callable[[Log], Any]
    after: Callable[[Any], None] | None
    told: "SimpleQueue[Any]"


class _Line:
    """Who waits to write to one study."""

    def __init__(self) -> None:
        self.results: deque[_Waiting] = deque()
        self.questions: deque[_Waiting] = deque()
        self._passed = 0  # transactions of results in a row while a question waited

    def group(self, most: int, *, decides: bool) -> list[_Waiting]:
        """Take out those of one kind that are saved together."""
        line, most = (self.questions, min(most, DECIDED)) if decides else (self.results, most)
        self._passed = self._passed + 1 if self.questions and not decides else 0
        return [line.popleft() for _ in range(min(len(line), most))]

    def following(self) -> _Waiting | None:
        """Whose turn it is: results go first, unless they passed a question too often."""
        lines = (self.results, self.questions)
        ordered = lines if self._passed < PASSED else reversed(lines)
        return next((line[0] for line in ordered if line), None)


class _Refused(NamedTuple):
    """Why the entry of a caller was not saved."""

    why: BaseException


class _SpoiltError(Exception):
    """An act failed after an append: nothing of this transaction can be saved."""


class Groups:
    """Callers that save together, study by study.

    watch      is told how many entries every commit held
    patience   seconds for which an entry is tried again after the connection was lost
    """

    def __init__(self, *, watch: Callable[[int], object] = id, patience: float = 60.0) -> None:
        self._most, self._watch, self._patience = MOST, watch, patience
        self._lines: dict[tuple[int, str], _Line] = {}  # of studies that are written to
        self._turn = threading.Condition()

    def write(
        self,
        store: Store,
        name: str,
        act: Callable[[Log], T],
        after: Callable[[T], None] | None = None,
        *,
        decides: bool = False,
    ) -> T:
        """What `act` returned, once the transaction that it shared with others is durable."""
        me, study = _Waiting(act, after, SimpleQueue()), (id(store), name)
        with self._turn:
            alone = study not in self._lines
            line = self._lines.setdefault(study, _Line())
            (line.questions if decides else line.results).append(me)
        told: Any = YOUR_TURN if alone else me.told.get()
        if told is YOUR_TURN:
            self._save_all(store, name, decides=decides)
            told = me.told.get()
        if isinstance(told, _Refused):
            raise told.why
        result: T = told
        return result

    def close(self, patience: float = 10.0) -> None:
        """Wait until every submitted entry is saved or refused."""
        with self._turn:
            self._turn.wait_for(lambda: not self._lines, patience)

    def _save_all(self, store: Store, name: str, *, decides: bool) -> None:
        """Save the waiting entries of a kind, the caller's own first; then it is another's turn."""
        with self._turn:
            line = self._lines[id(store), name]
            group = line.group(self._most, decides=decides)
        try:
            _save(store, name, group, self._patience)
            self._watch(len(group))
        finally:
            with self._turn:
                if following := line.following():
                    following.told.put(YOUR_TURN)
                else:
                    del self._lines[id(store), name]
                    self._turn.notify_all()


def _save(store: Store, name: str, group: list[_Waiting], patience: float) -> None:
    def act(log: Log) -> list[Any]:
        return [_tried(waiting, log) for waiting in group]

    try:
        done = write(store, name, act, patience=patience)
    except _SpoiltError:
        done = [_saved_alone(store, name, waiting, patience) for waiting in group]
    except BaseException as error:  # nothing was saved, and every caller gets the error
        done = [_Refused(error)] * len(group)
    for waiting, result in zip(group, done, strict=True):
        waiting.told.put(result)  # before anything else, since the entry is saved
    for waiting, result in zip(group, done, strict=True):
        if waiting.after is not None and not isinstance(result, _Refused):
            waiting.after(result)


def _tried(waiting: _Waiting, log: Log) -> Any:
    """The result of an act; or its refusal, if it had not appended anything."""
    before = log.head.seq
    try:
        return waiting.act(log)
    except StorageError:
        raise
    except Exception as why:
        if log.refusal is not None or log.head.seq != before:
            raise _SpoiltError from why
        return _Refused(why)


def _saved_alone(store: Store, name: str, waiting: _Waiting, patience: float) -> Any:
    try:
        return write(store, name, waiting.act, patience=patience)
    except Exception as why:
        return _Refused(why)
