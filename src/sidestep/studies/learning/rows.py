"""The rows of one outcome as arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.observations import Key, Sums, Total

BoolArray: TypeAlias = NDArray[np.bool_]
Extreme: TypeAlias = tuple[Key, float, float]  # a result: its row, its value, its weight


@dataclass(frozen=True)
class Rows:
    """The rows of one outcome; every array has a number per row.

    told      variance that the results bring with them; 0: they have the noise of the outcome
    weight    the mean has the variance of one result divided by this
    mean      the mean
    limit     the mean as it was told
    extra     variance of what stands for a result that was below, or above, the mean
    side      -1 below, 1 above, 0 measured
    scatter   weighted sum of squares within the row
    count     number of results
    logs      sum of logarithms of the weights of its results
    width     rounds in an epoch
    """

    keys: tuple[Key, ...]
    place: IntArray
    against: IntArray
    epoch: IntArray
    block: IntArray
    told: FloatArray
    side: IntArray
    weight: FloatArray
    mean: FloatArray
    limit: FloatArray
    extra: FloatArray
    scatter: FloatArray
    count: FloatArray
    logs: FloatArray
    width: int

    def __len__(self) -> int:
        return len(self.keys)

    def standing_for(self, means: FloatArray, extra: FloatArray) -> "Rows":
        """The same rows with other means and extra variances."""
        return replace(self, mean=means, extra=extra)


def rows_of(sums: Sums, gross: Sequence[Extreme] = ()) -> Rows:
    """The rows of some sums without gross results, in an order that is not that of the results."""
    totals: Mapping[Key, Total] = sums.rows
    if gross:
        totals = dict(totals)
        for key, value, share in gross:
            totals[key] = totals[key].without(value, share)
        totals = {key: total for key, total in totals.items() if total.results}
    keys = sorted(totals)
    table = np.array([totals[key][:5] for key in keys], dtype=float).reshape(-1, 5)
    kept = np.array(keys, dtype=float).reshape(-1, 6)
    weight, first, second, count, logs = table.T
    mean = first / weight
    whole = kept.astype(int)
    return Rows(
        keys=tuple(keys),
        place=whole[:, 0],
        against=whole[:, 1],
        epoch=whole[:, 2],
        block=whole[:, 3],
        told=kept[:, 4] ** 2,
        side=whole[:, 5],
        weight=weight,
        mean=mean,
        limit=mean,
        extra=np.zeros(len(keys)),
        scatter=np.maximum(second - first * mean, 0.0),
        count=count,
        logs=logs,
        width=sums.width,
    )
