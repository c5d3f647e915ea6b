"""Expectations as knowledge: by how much an outcome changes over the whole range of a factor.

A change that lies between two ends 19 times in 20 gives the straight part of the factor a normal weight
of its own, which does not grow with the size c of the outcome. Where only one end is known, the straight
part lies beyond it by the absolute value of a normal weight of size c, taken with its mean and variance.
What is expected of sizes also weighs c.

People are too sure, and an expectation may be wrong altogether. So every outcome has variants: the s.d.
is twice, or five times, that of what was told; or nothing is known. Results move their weights.
"""

from collections.abc import Mapping

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.knowledge import Knowledge, Variants
from sidestep.studies.learning.prior import S0, Prior

WIDER = (
    (2.0, 0.5),
    (5.0, 0.3),
)  # s.d. in that of what was told, with weights; the rest: nothing known
INTERVAL = 3.92  # s.d. in an interval that holds 19 times in 20
HALF_NORMAL = float(np.sqrt(2 / np.pi))  # mean of the absolute value of a standard normal weight

Change = tuple[float | None, float | None]  # over the whole range, in half-ranges
Expected = Mapping[str, Change]  # by factor


def variants_of(features: Features, prior: Prior, expected: Expected) -> Variants:
    """What is expected of an outcome, as variants of what is known."""
    if not expected:
        return [(1.0, None)]
    found = [(w, knowledge_of(features, prior, expected, wider)) for wider, w in WIDER]
    return [*found, (1.0 - sum(weight for _, weight in WIDER), None)]


def knowledge_of(features: Features, prior: Prior, expected: Expected, wider: float) -> Knowledge:
    """Straight parts as expected, with an s.d. so many times as wide."""
    count, sizes = features.count, prior.centres.array
    share, mean, scaled = np.ones(count), np.zeros(count), np.zeros(count)
    roots: list[FloatArray] = []
    log = np.zeros(len(sizes))
    for name, (low, high) in expected.items():
        column = int(features.straight(name)[0])
        # the straight part is a weight times a coordinate that runs from -1 to 1
        if low is None or high is None:
            if wider > WIDER[0][0]:
                continue  # a sign that is doubted says nothing
            end = low if high is None else high
            share[column] = 1 - HALF_NORMAL**2
            mean[column] = (end or 0.0) / 2
            scaled[column] = HALF_NORMAL if high is None else -HALF_NORMAL
            continue
        share[column] = 0.0
        mean[column] = (low + high) / 4
        spread = wider * (high - low) / 2 / INTERVAL
        root = np.zeros(count)
        root[column] = spread
        roots.append(root)
        variance = (sizes * S0) ** 2 + spread**2
        log -= 0.5 * (np.log(variance) + mean[column] ** 2 / variance)
    chance = np.array(prior.centres.weights) @ prior.sizes_given_centre
    log -= np.log(chance / chance.sum() @ np.exp(log - log.max())) + log.max()
    return Knowledge(share, mean, scaled, np.array(roots).reshape(-1, count).T, log)
