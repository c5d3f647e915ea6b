"""The rule: the largest expected effect within all limits with the stated certainty, or stay."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.learning.learner import Effects, Limits

CERTAINTY = 0.95
NEEDED = 3  # results of a protected outcome before anything but the baseline is recommended


@dataclass(frozen=True)
class Choice:
    """What is recommended.

    number   of the candidate; None: stay at the baseline
    within   chance that every candidate is within all limits; (K,)
    better   chance that every candidate is better than the baseline; (K,)
    mean     expected effect on the target; (K,)
    """

    number: int | None
    within: FloatArray
    better: FloatArray
    mean: FloatArray


def choice_of(
    effects: Effects, limits: Sequence[Limits | None], certainty: float = CERTAINTY
) -> Choice:
    """The recommendation among the settings of `effects`; limits[0] is None: the target's."""
    mean = effects.mean(0)
    within = effects.all_within(limits)
    better = 1.0 - effects.below(0, 0.0)
    belief = effects.belief
    counts = [belief.results(outcome) for outcome in range(len(limits))]
    known = counts[0] > 0 and min(counts[1:], default=NEEDED) >= NEEDED
    allowed = (within >= certainty) & (better > 0.5) & known
    if not allowed.any():
        return Choice(None, within, better, mean)
    return Choice(int(np.argmax(np.where(allowed, mean, -np.inf))), within, better, mean)
