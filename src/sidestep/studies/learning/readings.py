"""Readings of the results of one outcome: which of them are grossly wrong.

One result in fifty may say nothing: it may be anything in twice the range. All ways to read results
are too many, so readings are nested: the first counts every result, the next leaves out the result that
fits worst, and so on while that is worth a thought. Readings are averaged by likelihood, none is dropped.
Results below a limit of detection are stood for by the Gaussian with the moments of what they may be.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, logsumexp

from sidestep.core.arrays import FloatArray
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.observations import Sums
from sidestep.studies.learning.posterior import Cell, Posterior, Shape, Solution, Told
from sidestep.studies.learning.prior import Prior
from sidestep.studies.learning.rows import Extreme, Rows, rows_of

SPREAD = 0.25  # their density per half-range: anywhere in twice the range
DOUBT = 2.5  # s.d. beyond which a result is worth the thought; more where it is one of many
FEWEST = 4  # results that are needed for one of them to look odd
MOST = 3  # at most so many, and one in twenty
KEPT = 1e-3  # least weight of a reading
SWEEPS = 4  # over the results below a limit


@dataclass(frozen=True, eq=False)
class Reading:
    """One way to read the results of an outcome.

    gross        the results that say nothing
    log_weight   of its prior weight, and of the density of these results
    """

    posterior: Posterior
    gross: tuple[Extreme, ...]
    log_weight: float


def readings_of(
    features: Features,
    prior: Prior,
    shapes: Sequence[Shape],
    outcome: int,
    told: Told,
    sums: Sums,
) -> list[Reading]:
    """The readings that are worth a thought, the one with all results first."""

    def read(gross: tuple[Extreme, ...]) -> Reading:
        rows = rows_of(sums, gross)
        posterior = Posterior(features, prior, shapes, outcome, told, rows)
        if (rows.side != 0).any():
            for _ in range(SWEEPS):
                rows = _stood_for(posterior, rows)
                posterior = Posterior(features, prior, shapes, outcome, told, rows)
        odds = prior.gross / (1 - prior.gross) * SPREAD
        return Reading(posterior, gross, len(gross) * float(np.log(odds)) if gross else 0.0)

    readings = [read(())]
    count = sum(total.results for total in sums.rows.values())
    most = min(MOST, 1 + count // 20) if count >= FEWEST and prior.gross else 0
    best = _evidence(readings[0])
    while len(readings) <= most:
        worst = _worst(readings[-1], sums, told)
        if worst is None:
            break
        reading = read((*readings[-1].gross, worst))
        if _evidence(reading) < best + np.log(KEPT):
            break
        best = max(best, _evidence(reading))
        readings.append(reading)
    return readings


def _evidence(reading: Reading) -> float:
    return float(logsumexp(reading.posterior.logs)) + reading.log_weight


def _likeliest(posterior: Posterior) -> tuple[Solution, FloatArray]:
    """The likeliest component, if all shapes and sizes weigh the same, and its noise of the rows."""
    best = np.unravel_index(int(np.argmax(posterior.logs)), posterior.logs.shape)
    proportions, scale = posterior.noise_of(int(best[2]))
    solution = posterior.solved(Cell(*(np.array([index]) for index in best)))[0][1]
    return solution, np.asarray(proportions * scale)


def _doubt(count: int) -> float:
    """S.d. beyond which one of so many is worth the thought: the largest come so far by chance."""
    return max(DOUBT, float(np.sqrt(2 * np.log(max(count, 1)))))


def _worst(reading: Reading, sums: Sums, told: Told) -> Extreme | None:
    """The result that fits worst to all others, if by more than a doubt.

    A single result at a setting, within the range that was told, is believed, however odd: nothing tells
    whether the result is wrong or the setting is unlike its neighbours, and the own effects of settings
    allow for that. Only what another result at its setting contradicts, or the range, can be wrong.
    """
    posterior, rows = reading.posterior, reading.posterior.rows
    solution, noise = _likeliest(posterior)
    pull, precision = (each[0] for each in solution.row_fit())
    fitted = rows.mean - noise * pull
    left = np.maximum(noise - noise**2 * precision, 0.0)
    found: tuple[float, Extreme] | None = None
    places = Counter[tuple[int, int]]()
    for key, total in sums.rows.items():
        places[key.place, key.against] += total.results
    doubt = _doubt(sum(total.results for total in sums.rows.values()))
    taken = {(key, value) for key, value, _ in reading.gross}
    for number, key in enumerate(rows.keys):
        if key.side:
            continue
        total = sums.rows[key]
        for value, weight in {total.least, total.most}:
            alone = places[key.place, key.against] < 2
            believed = key.against >= 0 or told.reach[0] <= value <= told.reach[1]
            if (key, value) in taken or (alone and believed):
                continue
            one = noise[number] * rows.weight[number] / weight
            lever = min(left[number] / one, 1 - 1e-9)
            odd = abs(value - fitted[number]) / np.sqrt(one * (1 - lever))
            if odd > doubt and (found is None or odd > found[0]):
                found = float(odd), (key, value, weight)
    return None if found is None else found[1]


def _stood_for(posterior: Posterior, rows: Rows) -> Rows:
    """The rows with Gaussians for results below (or above) their limit, given all other results."""
    solution, noise = _likeliest(posterior)
    pull, precision = (each[0] for each in solution.row_fit())
    means, extra = rows.mean.copy(), rows.extra.copy()
    for number in np.flatnonzero(rows.side):
        middle = rows.mean[number] - pull[number] / precision[number]
        square = max(1 / precision[number] - rows.extra[number], noise[number])
        mean, variance = _cut(middle, square, rows.limit[number], int(rows.side[number]))
        keep = max(1 / variance - 1 / square, 1e-6)
        means[number], extra[number] = (mean / variance - middle / square) / keep, 1 / keep
    return rows.standing_for(means, extra)


def _cut(mean: float, square: float, limit: float, side: int) -> tuple[float, float]:
    """Mean and variance of a Gaussian that is known to lie below (side -1) or above (1) a limit."""
    spread = float(np.sqrt(square))
    z = side * (mean - limit) / spread
    ratio = float(np.exp(-0.5 * z * z - log_ndtr(z)) / np.sqrt(2 * np.pi))
    return mean + side * spread * ratio, square * min(max(1 - ratio * (ratio + z), 1e-3), 1 - 1e-6)
