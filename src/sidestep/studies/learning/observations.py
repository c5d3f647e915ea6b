"""What was measured, on the scale of a study, and its sums: all that a belief needs of the results.

A row is the mean of results that measure the same: the same place against the same reference, in the same
epoch and block, with the same told error. Rows hold sums, so results may come in any order and rows of
neighbouring epochs are added when a study grows longer. No numpy: a result is saved without it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

EPOCHS = 12  # at most so many pieces of a level that drifts


class Observation(NamedTuple):
    """One result of one outcome, in half-ranges from the zero of the outcome's scale.

    place     where it was measured (features.place)
    value     the result; the limit of detection if `below`; treatment minus control with `against`
    se        its standard error, if it brings one
    repeats   it is the mean of so many results
    below     it was below the limit of detection
    against   the place of the control of a change; None: a plain result
    round     number of the round whose question it answers
    block     number of the batch, device or laboratory; None: none
    above     it was above the value: `below` for a target that should fall, whose scale is turned round
    """

    place: int
    value: float
    se: float | None = None
    repeats: float = 1.0
    below: bool = False
    against: int | None = None
    round: int = 0
    block: int | None = None
    above: bool = False


class Key(NamedTuple):
    """What results of one row share."""

    place: int
    against: int  # -1: none
    epoch: int
    block: int  # -1: none
    se: float  # 0: none
    side: int  # -1: below the value, 1: above it, 0: measured


class Total(NamedTuple):
    """The sums of a row, and its extreme results.

    weight    the mean has the variance of one result divided by this
    first     sum of weight times value
    second    sum of weight times value squared
    results   number of results
    logs      sum of logarithms of their weights
    least, most   (value, weight) of the extreme results
    """

    weight: float
    first: float
    second: float
    results: int
    logs: float
    least: tuple[float, float]
    most: tuple[float, float]

    def plus(self, other: "Total") -> "Total":
        """The sums of both."""
        return Total(
            self.weight + other.weight,
            self.first + other.first,
            self.second + other.second,
            self.results + other.results,
            self.logs + other.logs,
            min(self.least, other.least),
            max(self.most, other.most),
        )

    def without(self, value: float, weight: float) -> "Total":
        """The sums without one result."""
        return self._replace(
            weight=self.weight - weight,
            first=self.first - weight * value,
            second=self.second - weight * value**2,
            results=self.results - 1,
            logs=self.logs - math.log(weight),
        )


@dataclass
class Sums:
    """The sums of the results of one outcome, by row."""

    rows: dict[Key, Total] = field(default_factory=dict)
    width: int = 1  # rounds in an epoch

    def add(self, result: Observation) -> None:
        """Add one result."""
        while result.round // self.width >= EPOCHS:
            self._widen()
        against = -1 if result.against is None else result.against
        block = -1 if result.block is None or against >= 0 else result.block
        # a change without an error is a difference of two results; its level and its drift drop out
        weight = result.repeats * (0.5 if against >= 0 and not result.se else 1.0)
        epoch = result.round // self.width if against < 0 else 0
        side = int(result.above) - int(result.below)
        key = Key(result.place, against, epoch, block, result.se or 0.0, side)
        one = (result.value, weight)
        first, second = weight * result.value, weight * result.value**2
        self._put(key, Total(weight, first, second, 1, math.log(weight), one, one))

    def _put(self, key: Key, more: Total) -> None:
        known = self.rows.get(key)
        self.rows[key] = more if known is None else known.plus(more)

    def _widen(self) -> None:
        old, self.rows, self.width = self.rows, {}, self.width * 2
        for key, total in old.items():
            self._put(key._replace(epoch=key.epoch // 2), total)

    def to_json(self) -> dict[str, Any]:
        """The sums as plain values; places are numbers of the features that made them."""
        return {"width": self.width, "rows": [[*key, *total] for key, total in self.rows.items()]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Sums":
        """The sums that were stored."""
        sums = cls(width=data["width"])
        for row in data["rows"]:
            *key, weight, first, second, count, logs, least, most = row
            pairs = (least[0], least[1]), (most[0], most[1])
            sums.rows[Key(*key)] = Total(weight, first, second, count, logs, *pairs)
        return sums


def sums_of(results: Iterable[Observation]) -> Sums:
    """The sums of some results."""
    sums = Sums()
    for result in results:
        sums.add(result)
    return sums
