"""The results of a study as a belief takes them: on the common scale, summed. No numpy.

Every result that counts is one observation of one outcome. Sums hold all that a belief needs, so a
snapshot of them replaces thousands of results; the digest names the results that were summed.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from sidestep.studies.book import Book, Result
from sidestep.studies.learning.observations import Observation, Sums
from sidestep.studies.learning.places import Place, Places
from sidestep.studies.measurement import BELOW, CHANGE
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan
from sidestep.studies.storage.events import canonical, digest

Limits = tuple[float | None, float | None]  # in half-ranges


class Evidence:
    """The sums of a study's results, in the order of its outcomes."""

    def __init__(self, plan: Plan, kept: Mapping[str, Any] | None = None) -> None:
        self.plan = plan
        self.places = Places(plan.factors, plan.context)
        self.blocks: dict[str, int] = {}
        self.versions = [0] * len(plan.outcomes)  # how often the sums of an outcome have changed
        self._start = kept  # of the snapshot
        if kept is not None:
            self.places.take(kept["places"])
        self._learned = (0, 0)  # revision of the book, and number of its results that were summed
        self._begin()

    def _begin(self) -> None:
        """Begin with the sums of the snapshot, or with none."""
        kept = self._start or {}
        self.sums = [Sums.from_json(each) for each in kept.get("sums", ())]
        self.sums = self.sums or [Sums() for _ in self.plan.outcomes]
        self.digest: str = kept.get("digest", "")
        for name in kept.get("blocks", ()):
            self.blocks.setdefault(name, len(self.blocks))
        self.versions = [version + 1 for version in self.versions]

    def learn(self, book: Book) -> None:
        """Follow the book; from the beginning if a result was changed."""
        revision, count = self._learned
        if revision != book.revision:
            self._begin()
            count = 0
        for result in islice(book.results.values(), count, None):
            self.add(result)
        self._learned = (book.revision, len(book.results))

    def knows(self, book: Book) -> bool:
        """Whether all results of the book are summed."""
        return self._learned == (book.revision, len(book.results))

    def add(self, result: Result) -> None:
        """Add one result."""
        outcome = self.plan.index(result.outcome)
        self.sums[outcome].add(self.observation(result))
        self.versions[outcome] += 1
        told = result.measured.to_body()
        where = [result.outcome, result.setting, result.context or {}, result.round]
        self.digest = digest(canonical([self.digest, told, *where]))

    def observation(self, result: Result) -> Observation:
        """A result on the common scale."""
        outcome, told = self.plan.outcome(result.outcome), result.measured
        place = self.places.of(result.setting, result.context)
        block = told.block
        number = None if block is None else self.blocks.setdefault(block, len(self.blocks))
        repeats = float(told.repeats or 1)
        if told.kind == CHANGE:
            return Observation(
                place,
                outcome.sign * outcome.change_scaled(told.value),
                None if told.se is None else outcome.change_scaled(told.se),
                repeats,
                against=self.places.of(told.against or self.plan.baseline, result.context),
                round=result.round,
            )
        below = told.kind == BELOW
        return Observation(
            place,
            outcome.scaled(told.value),
            None if told.se is None else outcome.error_scaled(told.se, told.value),
            repeats,
            below=below and outcome.sign > 0,
            above=below and outcome.sign < 0,
            round=result.round,
            block=number,
        )

    def measured(self) -> list[Place]:
        """The places that have results, or were the control of one, in the order they were met."""
        known = self.places.known
        return [known[number] for number in self._used()]

    def _used(self) -> list[int]:
        keys = [key for sums in self.sums for key in sums.rows]
        return sorted({key.place for key in keys} | {key.against for key in keys} - {-1})

    def to_json(self) -> dict[str, Any]:
        """The sums as a snapshot keeps them, with the places that they name."""
        known = self.places.known
        used = list(dict.fromkeys([0, *self._used()]))
        again = {number: place for place, number in enumerate(used)} | {-1: -1}
        sums = [
            Sums(
                {
                    key._replace(place=again[key.place], against=again[key.against]): total
                    for key, total in each.rows.items()
                },
                each.width,
            )
            for each in self.sums
        ]
        return {
            "places": [list(known[number]) for number in used],
            "sums": [each.to_json() for each in sums],
            "blocks": list(self.blocks),
            "digest": self.digest,
        }


def limits_of(plan: Plan) -> list[Limits | None]:
    """The limits of every outcome's effect; None: it has none, as the target."""
    found: list[Limits | None] = []
    for outcome in plan.outcomes:
        low, high = outcome.limits
        if low is None and high is None:
            found.append(None)
            continue
        ends = [None if end is None else outcome.change_scaled(end) for end in (low, high)]
        found.append((ends[0], ends[1]))
    return found


def never_of(plan: Plan) -> list[Limits | None] | None:
    """The limits of every outcome's own value, on its scale; None: no outcome has any."""
    found = [_never(outcome) for outcome in plan.outcomes]
    return found if any(each is not None for each in found) else None


def _never(outcome: Outcome) -> Limits | None:
    if outcome.never is None:
        return None
    low, high = (None if end is None else outcome.scaled(end) for end in outcome.never)
    return (low, high) if outcome.sign > 0 else (high, low)


def reach_of(outcome: Outcome) -> tuple[float, float]:
    """The values that are believed without checking: the range, on the outcome's scale."""
    ends = sorted((outcome.scaled(outcome.low), outcome.scaled(outcome.high)))
    return ends[0], ends[1]
