"""The open studies of the service: for each, one object that writes, two that read, and cached results.

Entries are saved in groups (studies/storage/groups.py). Reading the record and computing use separate
`Study` objects, so that a long computation delays neither a result nor a page. Results that need
posterior draws are computed once for every state of the record, in separate threads; a page need not wait
for them.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sidestep.service.notices import Notices
from sidestep.studies.advice import Best, Explanation, Response, Tradeoff
from sidestep.studies.book import Question
from sidestep.studies.cards.card import Card
from sidestep.studies.factors import Setting, Value
from sidestep.studies.learning.trajectory import Step
from sidestep.studies.plan import Plan
from sidestep.studies.storage.events import canonical
from sidestep.studies.storage.groups import Groups
from sidestep.studies.storage.log import Head, Log
from sidestep.studies.storage.sql import SqlStore
from sidestep.studies.storage.store import Store, Writer
from sidestep.studies.study import Study

T = TypeVar("T")
Context: TypeAlias = Mapping[str, Any] | None
MOST = 64  # studies that stay open
KEPT = 16  # cached results per study
WORKERS = 2
SOON = 0.5  # seconds that a receipt waits for the new recommendation


class _Known(NamedTuple):
    """A result, finished or being computed, for one state of the record."""

    hash: str
    result: "Future[Any]"


class OpenStudy:
    """A study that is in use."""

    def __init__(
        self, name: str, store: SqlStore, writer: Writer, pool: ThreadPoolExecutor
    ) -> None:
        self.name, self.store, self._pool = name, store, pool
        self.verbs = Study.open(name, store, writer=writer)
        self._reader = Study.open(name, store, writer=writer)
        self._thinker = Study.open(name, store, writer=writer)
        self._reading, self._thinking = threading.Lock(), threading.Lock()
        self._turn = threading.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._bests: deque[tuple[int, Best]] = deque(maxlen=KEPT)

    @property
    def plan(self) -> Plan:
        """What was set up in the beginning."""
        return self.verbs.plan

    def head(self) -> Head:
        """Where the record ends now."""
        return self.store.head(self.name)

    def read(self, look: Callable[[Study], T]) -> T:
        """The result of a quick read of the record; one at a time."""
        with self._reading:
            return look(self._reader)

    def think(self, look: Callable[[Study], T]) -> T:
        """The result of a read that needs computation; one at a time."""
        with self._thinking:
            return look(self._thinker)

    def show(self) -> Card:
        """Where it stands."""
        return self.read(lambda study: study.show())

    def questions(self) -> list[Question]:
        """The questions that wait, the oldest first."""
        return self.read(lambda study: study.questions())

    def table(self) -> list[list[Value]] | None:
        """The rows of its candidates, if they are a table."""
        candidates = self.plan.candidates
        return candidates.to_rows() if candidates.kind == "table" else None

    def best(
        self, *, certainty: float | None = None, rounds: bool = False, context: Context = None
    ) -> Best:
        """What it recommends today."""
        return self.worked_out(*_best(certainty, rounds=rounds, context=context))

    def best_within(self, patience: float | None, context: Context) -> Best | None:
        """Today's recommendation; None if it takes longer than `patience`, in seconds."""
        head = self.head().seq
        best = self.worked_out_soon(*_best(context=context), patience)
        if best is not None:
            self._bests.append((head, best))
        return best

    def bests_around(self, entry: int) -> tuple[Best | None, Best | None]:
        """The recommendations before and after an entry, as far as they were computed."""
        head = self.head().seq
        after = self.best_within(SOON, None) if not self.plan.context else None
        before = [best for seq, best in self._bests if seq < entry]
        return before[-1] if before else None, after if head >= entry else None

    def explain(
        self, *, certainty: float | None = None, top: int = 8, context: Context = None
    ) -> Explanation:
        """Every candidate."""
        return self.worked_out(*_explain(context, top, certainty))

    def tradeoff(self, *, context: Context = None) -> Tradeoff:
        """The largest effect at every chance of staying within limits."""
        return self.worked_out(*_tradeoff(context))

    def tradeoff_within(self, patience: float | None, context: Context) -> Tradeoff | None:
        """The same; None if it takes longer than `patience`, in seconds."""
        return self.worked_out_soon(*_tradeoff(context), patience)

    def responses_within(
        self, patience: float | None, along: Sequence[tuple[str, str]]
    ) -> list[Response] | None:
        """Outcomes along factors; None if it takes longer than `patience`, in seconds."""

        def look(study: Study) -> list[Response]:
            return [study.response(outcome, factor) for outcome, factor in along]

        return self.worked_out_soon(
            f"responses {canonical(list(map(list, along)))}", look, patience
        )

    def explain_within(self, patience: float | None, context: Context) -> Explanation | None:
        """Every candidate; None if it takes longer than `patience`, in seconds."""
        return self.worked_out_soon(*_explain(context), patience)

    def story_within(
        self, patience: float | None, action: Setting, context: Context
    ) -> list[Step] | None:
        """How a recommendation came about; None if it takes longer than `patience`, in seconds."""

        def look(study: Study) -> list[Step]:
            return study.trajectory(action, context=context)

        return self.worked_out_soon(f"story {canonical([action, context])}", look, patience)

    def worked_out(self, what: str, look: Callable[[Study], T]) -> T:
        """The result of `look`, cached until the record changes."""
        result: T = self._future(what, look).result()
        return result

    def worked_out_soon(
        self, what: str, look: Callable[[Study], T], patience: float | None
    ) -> T | None:
        """The result of `look`; None if it takes longer than `patience`, in seconds."""
        with suppress(NotYet):
            result: T = self._future(what, look).result(patience)
            return result
        return None

    def _future(self, what: str, look: Callable[[Study], T]) -> "Future[T]":
        here = self.head().hash
        with self._turn:
            known = self._known.get(what)
            if known is None or known.hash != here or _failed(known):
                known = _Known(here, self._pool.submit(self.think, look))
            self._known[what] = known
            self._known.move_to_end(what)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return known.result


def _best(
    certainty: float | None = None, *, rounds: bool = False, context: Context = None
) -> tuple[str, Callable[[Study], Best]]:
    what = f"best {certainty} {rounds} {canonical(context)}"
    return what, lambda study: study.best(certainty=certainty, rounds=rounds, context=context)


def _explain(
    context: Context = None, top: int = 8, certainty: float | None = None
) -> tuple[str, Callable[[Study], Explanation]]:
    what = f"explain {certainty} {top} {canonical(context)}"
    return what, lambda study: study.explain(certainty=certainty, top=top, context=context)


def _tradeoff(context: Context = None) -> tuple[str, Callable[[Study], Tradeoff]]:
    return f"tradeoff {canonical(context)}", lambda study: study.tradeoff(context=context)


def _failed(known: _Known) -> bool:
    return known.result.done() and known.result.exception() is not None


class Desk:
    """Every open study; the least recently used ones are closed."""

    def __init__(self, store: SqlStore, groups: Groups, notices: Notices) -> None:
        self.store, self.groups, self._notices = store, groups, notices
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="working out")
        self._turn = threading.Lock()
        self._open: OrderedDict[str, OpenStudy] = OrderedDict()

    def study(self, name: str) -> OpenStudy:
        """The study of that name; StudyNotFound."""
        with self._turn:
            found = self._open.get(name)
        if found is None:
            found = OpenStudy(name, self.store, self._write, self._pool)
        with self._turn:
            found = self._open.setdefault(name, found)
            self._open.move_to_end(name)
            while len(self._open) > MOST:
                self._open.popitem(last=False)
        return found

    def __len__(self) -> int:
        return len(self._open)

    def _write(
        self,
        store: Store,
        name: str,
        act: Callable[[Log], T],
        after: Callable[[T], None] | None = None,
        *,
        decides: bool = False,
    ) -> T:
        """What `act` returned, once it is saved; notices are sent afterwards."""
        done = self.groups.write(store, name, act, after, decides=decides)
        self._notices.saw(name, done)
        return done

    def close(self) -> None:
        """Finish running computations and writes."""
        self.groups.close()
        self._notices.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
