"""What was measured, on the scale of a study, and its sums: all that a belief needs of the results.

A row is the mean of results that measure the same: the same place against the same reference, in the same
epoch and block, with the same told error. Rows hold sums, so results may come in any order and rows of
neighbouring epochs are added when a study grows longer.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sidestep.core.arrays import FloatArray, IntArray

BoolArray: TypeAlias = NDArray[np.bool_]
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
    """

    place: int
    value: float
    se: float | None = None
    repeats: float = 1.0
    below: bool = False
    against: int | None = None
    round: int = 0
    block: int | None = None


class Key(NamedTuple):
    """What results of one row share."""

    place: int
    against: int  # -1: none
    epoch: int
    block: int  # -1: none
    se: float  # 0: none
    below: bool


@dataclass
class Sums:
    """The sums of the results of one outcome, by row."""

    rows: dict[Key, list[float]] = field(
        default_factory=dict
    )  # weight, w y, w y^2, results, least, most
    width: int = 1  # rounds in an epoch

    def add(self, result: Observation) -> None:
        """Add one result."""
        while result.round // self.width >= EPOCHS:
            self._widen()
        against = -1 if result.against is None else result.against
        block = -1 if result.block is None else result.block
        # a change without an error is a difference of two results; its level and its drift drop out
        weight = result.repeats * (0.5 if against >= 0 and not result.se else 1.0)
        epoch = result.round // self.width if against < 0 else 0
        key = Key(result.place, against, epoch, block, result.se or 0.0, result.below)
        self._put(
            key,
            [
                weight,
                weight * result.value,
                weight * result.value**2,
                1.0,
                result.value,
                result.value,
            ],
        )

    def _put(self, key: Key, more: list[float]) -> None:
        known = self.rows.get(key)
        if known is None:
            self.rows[key] = more
        else:
            self.rows[key] = [
                *(a + b for a, b in zip(known[:4], more[:4], strict=True)),
                min(known[4], more[4]),
                max(known[5], more[5]),
            ]

    def _widen(self) -> None:
        old, self.rows, self.width = self.rows, {}, self.width * 2
        for key, sums in old.items():
            self._put(key._replace(epoch=key.epoch // 2), sums)

    def table(self) -> "Rows":
        """The rows in an order that does not depend on the order of the results."""
        keys = sorted(self.rows)
        sums = np.array([self.rows[key] for key in keys]).reshape(-1, 6)
        kept = np.array(keys, dtype=float).reshape(-1, 6)
        mean = sums[:, 1] / sums[:, 0] if keys else np.zeros(0)
        return Rows(
            place=kept[:, 0].astype(int),
            against=kept[:, 1].astype(int),
            epoch=kept[:, 2].astype(int),
            block=kept[:, 3].astype(int),
            told=kept[:, 4] ** 2,
            below=kept[:, 5] > 0,
            weight=sums[:, 0],
            mean=mean,
            scatter=np.maximum(sums[:, 2] - sums[:, 0] * mean**2, 0.0),
            count=sums[:, 3],
            width=self.width,
        )


@dataclass(frozen=True)
class Rows:
    """The rows of one outcome; every array has a number per row.

    told      variance that the results bring with them; 0: they have the noise of the outcome
    weight    the mean has the variance of one result divided by this
    scatter   weighted sum of squares within the row
    count     number of results
    width     rounds in an epoch
    """

    place: IntArray
    against: IntArray
    epoch: IntArray
    block: IntArray
    told: FloatArray
    below: BoolArray
    weight: FloatArray
    mean: FloatArray
    scatter: FloatArray
    count: FloatArray
    width: int

    def __len__(self) -> int:
        return len(self.place)


def sums_of(results: Iterable[Observation]) -> Sums:
    """The sums of some results."""
    sums = Sums()
    for result in results:
        sums.add(result)
    return sums
