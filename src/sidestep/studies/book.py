"""The fold of a record: which questions are open, and which results count, with which values.

    asked       a question is open until it is answered or withdrawn
    answered    a result counts, at the setting that was really used
    corrected   the result counts with another value, at its old place in the order; or no longer
    withdrawn   the question is closed, and nothing is learned from it
    imported    past results count, row by row
    erased      who asked is no longer known

The fold needs neither the policy nor numpy. A book can begin at a snapshot: then it lists only the
results after the snapshot, and a change of an earlier result makes it stale.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sidestep.studies.factors import Setting
from sidestep.studies.measurement import VALUE, Measurement, measurement_of_body
from sidestep.studies.storage.events import ERASED, Event, written

OLD = ("0.1.", "0.2.")  # versions that believed in straight lines


class Result(NamedTuple):
    """A result that counts."""

    entry: int  # seq of its event
    row: int  # row in an import; else 0
    outcome: str
    measured: Measurement
    setting: Setting  # what was really done
    context: dict[str, Any] | None
    round: int  # of its question; without one, the latest
    expected: tuple[float, float] | None = None  # where it was expected, 19 times in 20

    @property
    def value(self) -> float:
        """The value that was told."""
        return self.measured.value

    @property
    def inside(self) -> bool | None:
        """Whether it fell inside what was expected; None: nothing was, or it is no plain value."""
        if self.expected is None or self.measured.kind != VALUE:
            return None
        low, high = self.expected
        return low <= self.value <= high


@dataclass(frozen=True, slots=True)
class Question:
    """An ask, as it was recorded."""

    id: int
    body: Mapping[str, Any]
    actor: str
    at: str  # UTC
    waiting: tuple[str, ...]  # outcomes that are still to come

    @property
    def panel(self) -> tuple[str, ...]:
        """The outcomes that were asked for."""
        return tuple(self.body["measure"])

    def to_json(self) -> dict[str, Any]:
        """The question as a snapshot keeps it."""
        return {
            "id": self.id,
            "body": self.body,
            "actor": self.actor,
            "at": self.at,
            "waiting": list(self.waiting),
        }


def question_of(event: Event) -> Question:
    """The question that an `asked` event put."""
    waiting = tuple(event.body["measure"])
    return Question(event.seq, event.body, event.actor, written(event.at), waiting)


@dataclass(slots=True)
class Book:
    """The study after its events 1..seq."""

    seq: int = 0
    hash: str = ""
    # seq of the snapshot that the book began with; it contains all results up to here
    since: int = 0
    kept: int = 0  # seq of the latest snapshot
    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # results per outcome
    open: dict[int, Question] = field(default_factory=dict)
    used: Setting | None = None  # the last setting with a result
    used_of: int = 0  # number of the question, or of the result without one, that `used` belongs to
    results: dict[tuple[int, int], Result] = field(default_factory=dict)  # those after `since`
    revision: int = 0  # how often a result that counted was changed
    stale: bool = False  # a result before `since` was changed: fold again from the beginning
    inside: int = 0  # results that fell inside what was expected of them
    foreseen: int = 0  # results of which something was expected
    code: str = ""  # version that wrote the latest entry
    taken_back: dict[tuple[int, int], Result] = field(default_factory=dict)  # those after `since`

    def take(self, events: Iterable[Event]) -> None:
        """Fold further events, in order."""
        for event in events:
            handler = _HANDLERS.get(event.kind)
            if handler is not None:
                handler(self, event)
            self.seq, self.hash, self.code = event.seq, event.hash, event.code

    def open_of(self, actor: str) -> Question | None:
        """The oldest question of a person that nothing was told of yet."""
        mine = (
            question
            for question in self.open.values()
            if question.actor == actor and question.waiting == question.panel
        )
        return next(mine, None)

    @property
    def last(self) -> Setting | None:
        """The last setting that was used, as far as is known: that of a withdrawn question was not."""
        asked = next(reversed(self.open.values()), None)
        return asked.body["action"] if asked and asked.id > self.used_of else self.used

    @property
    def is_old(self) -> bool:
        """Whether no version that believes in bends has written into it yet."""
        return self.code.startswith(OLD)

    @property
    def n_results(self) -> int:
        """Number of results that count."""
        return self.counts.total()

    def to_json(self) -> dict[str, Any]:
        """What a snapshot stores: all but the results, of which it keeps the sums."""
        return {
            "rounds": self.rounds,
            "counts": dict(self.counts),
            "open": [question.to_json() for question in self.open.values()],
            "last": self.used,
            "last_of": self.used_of,
            "inside": self.inside,
            "foreseen": self.foreseen,
            "code": self.code,
        }

    def _asked(self, event: Event) -> None:
        self.rounds += 1
        self.open[event.seq] = question_of(event)

    def _answered(self, event: Event) -> None:
        body = event.body
        question = self.open.get(event.ticket or 0)
        setting, number = body["action"], event.ticket or event.seq
        if number >= self.used_of:
            self.used, self.used_of = setting, number
        self._add(event, 0, body, question)
        if question is not None:
            self._settle(question, body["outcome"])

    def _settle(self, question: Question, outcome: str) -> None:
        """A result of another outcome also closes a question, unless the question is a panel."""
        waiting = tuple(name for name in question.waiting if name != outcome)
        if not waiting or len(question.panel) == 1:
            del self.open[question.id]
        else:
            self.open[question.id] = replace(question, waiting=waiting)

    def _corrected(self, event: Event) -> None:
        body = event.body
        place = (body["answer"], body.get("row", 0))
        self.revision += 1
        if event.ticket == self.used_of:
            self.used = body["action"]
        if place[0] <= self.since:
            self.stale = True
            return
        known = self.results.get(place) or self.taken_back[place]
        if place in self.results:
            self._count(known, -1)
        if body["is"] is None:
            del self.results[place]
            self.taken_back[place] = known
            return
        told = measurement_of_body(body, "is")
        revised = known._replace(measured=told, setting=body["action"])
        if known.setting != revised.setting:
            revised = revised._replace(expected=None)
        self.taken_back.pop(place, None)
        self.results[place] = revised
        self._count(revised, 1)

    def _withdrawn(self, event: Event) -> None:
        self.open.pop(event.ticket or 0, None)

    def _imported(self, event: Event) -> None:
        for row, each in enumerate(event.body["rows"]):
            self._add(event, row, each)

    def _erased(self, event: Event) -> None:
        for seq in event.body["events"]:
            if seq in self.open:
                self.open[seq] = replace(self.open[seq], actor=ERASED)

    def _add(
        self, event: Event, row: int, body: Mapping[str, Any], question: Question | None = None
    ) -> None:
        outcome, told = body["outcome"], measurement_of_body(body)
        expected, round_ = None, self.rounds
        if question is not None:
            round_ = question.body.get("round", self.rounds)
            if body["action"] == question.body["action"]:
                expected = (question.body.get("expected") or {}).get(outcome)
        result = Result(
            event.seq,
            row,
            outcome,
            told,
            body["action"],
            body.get("context"),
            round_,
            None if expected is None else (expected[1], expected[2]),
        )
        self.results[event.seq, row] = result
        self._count(result, 1)

    def _count(self, result: Result, by: int) -> None:
        """Count a result, or no longer."""
        self.counts[result.outcome] += by
        if result.inside is not None:
            self.foreseen += by
            self.inside += by * result.inside


_HANDLERS = {
    "asked": Book._asked,
    "answered": Book._answered,
    "corrected": Book._corrected,
    "withdrawn": Book._withdrawn,
    "imported": Book._imported,
    "erased": Book._erased,
}


def book_from_json(kept: Mapping[str, Any], seq: int, event_hash: str) -> Book:
    """The book from a snapshot at `seq`."""
    opened = [
        Question(each["id"], each["body"], each["actor"], each["at"], tuple(each["waiting"]))
        for each in kept["open"]
    ]
    return Book(
        seq=seq,
        hash=event_hash,
        since=seq,
        kept=seq,
        rounds=kept["rounds"],
        counts=Counter(kept["counts"]),
        open={question.id: question for question in opened},
        used=kept["last"],
        used_of=kept.get("last_of", 0),
        inside=kept["inside"],
        foreseen=kept["foreseen"],
        code=kept["code"],
    )
