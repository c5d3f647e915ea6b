"""The rule: the largest expected effect within all limits with the stated certainty, or stay.

A belief about an outcome with few results is mostly its prior, and the prior of a size c is a convention,
not knowledge: averaged over it, a small step looks safe although nothing is known of what it does. So
an effect must also be more likely than not within its limits for every size that the outcome's results
have not refuted (a likelihood of at least PLAUSIBLE of the largest), however improbable the prior and the
others make that size. Where results speak of a setting this asks for nothing; before an outcome was
measured nothing but the baseline passes. It is the chance under the least favourable prior of a size.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.studies.learning.belief import Belief
from sidestep.studies.learning.effects import MINOR, Effects, Limits, Reach
from sidestep.studies.learning.knowledge import STRANGER
from sidestep.studies.learning.posterior import Cell, log_sum
from sidestep.studies.learning.rows import BoolArray

CERTAINTY = 0.95
KEY = 0.5  # least chance of being within limits for every plausible size
TRIED = 32  # settings whose firmness is worked out at once, the best first
REFUTED = 0.02  # chance of being a stranger below which it counts no more
PLAUSIBLE = 0.1  # least likelihood of a size that counts, in that of the likeliest


@dataclass(frozen=True)
class Choice:
    """What is recommended, and what kept more from being recommended.

    number      of the candidate; None: stay at the baseline
    within      chance that every candidate is within all limits; (K,)
    better      chance that every candidate is better than the baseline; (K,)
    mean        expected effect on the target; (K,)
    unmeasured  outcomes without a result
    unfirm      outcomes with too few results to vouch for a candidate that is likely within all limits
    """

    number: int | None
    within: FloatArray
    better: FloatArray
    mean: FloatArray
    unmeasured: tuple[int, ...] = ()
    unfirm: tuple[int, ...] = ()


def choice_of(
    effects: Effects,
    limits: Sequence[Limits | None],
    certainty: float = CERTAINTY,
    never: Sequence[Limits | None] | None = None,
) -> Choice:
    """The recommendation among the settings of `effects`; limits[0] is None: the target's."""
    belief = effects.belief
    mean = effects.mean(0)
    within = effects.all_within(limits, never)
    better = 1.0 - effects.below(0, 0.0)
    unmeasured = tuple(o for o in range(len(limits)) if not belief.results(o))
    good = (within >= certainty) & (better > 0.5) & effects.moved
    likely = np.flatnonzero(good & alone(effects, limits))
    if unmeasured or not len(likely):
        return Choice(None, within, better, mean, unmeasured)
    likely = likely[np.argsort(-np.round(mean[likely], 9), kind="stable")]
    unfirm: tuple[int, ...] = ()
    for start in range(0, len(likely), TRIED):
        some = likely[start : start + TRIED]
        named, firm = _firm(effects, some, limits)
        passed = np.flatnonzero(firm.all(axis=0))
        if start == 0 and (not len(passed) or passed[0] > 0):
            unfirm = tuple(o for o, each in zip(named, firm[:, 0], strict=True) if not each)
        if len(passed):
            number = int(some[passed[0]])
            return Choice(number, within, better, mean, unmeasured, unfirm)
    return Choice(None, within, better, mean, unmeasured, unfirm)


def frontier_of(
    effects: Effects,
    limits: Sequence[Limits | None],
    choice: Choice,
    least: float,
) -> list[int]:
    """What would be recommended at every certainty from `least` on, the largest effects first."""
    if choice.unmeasured:
        return []
    good = (choice.within >= least) & (choice.better > 0.5) & effects.moved
    likely = np.flatnonzero(good & alone(effects, limits))
    likely = likely[np.argsort(-np.round(choice.mean[likely], 9), kind="stable")]
    found: list[int] = []
    reached = 0.0  # the chance of the last one that was found; what comes later must have more
    while len(likely := likely[choice.within[likely] > reached]):
        some, likely = likely[:TRIED], likely[TRIED:]
        vouched = np.asarray(_firm(effects, some, limits)[1].all(axis=0))
        for row, firm in zip(some.tolist(), vouched.tolist(), strict=True):
            if firm and choice.within[row] > reached:
                found.append(row)
                reached = float(choice.within[row])
    return found


def alone(effects: Effects, limits: Sequence[Limits | None]) -> BoolArray:
    """Which settings are likely within all limits, and better, also for a stranger; (K,).

    A study that learned from earlier ones may have nothing to do with them. Until its results say that
    it has, a recommendation must hold for a stranger too, more likely than not.
    """
    if effects.belief.parts().get(STRANGER, 0.0) < REFUTED:
        return np.ones(len(effects), dtype=bool)
    within, better = effects.given_part(STRANGER, limits)
    return np.asarray((within >= KEY) & (better >= KEY))


def _firm(
    effects: Effects, some: IntArray, limits: Sequence[Limits | None]
) -> tuple[list[int], BoolArray]:
    """The outcomes with limits, and whether their results vouch for some settings; (outcomes, some)."""
    named = [o for o, pair in enumerate(limits) if pair is not None]
    firm = [firm_chance(effects, some, o, limits[o] or (None, None)) >= KEY for o in named]
    return named, np.array(firm, dtype=bool).reshape(len(named), len(some))


def firm_chance(effects: Effects, chosen: IntArray, outcome: int, limits: Limits) -> FloatArray:
    """Least chance that effects are within limits, over the sizes that are not refuted; (chosen,)."""
    belief = effects.belief
    points = effects.points.only(chosen)
    reach = Reach(belief.features, belief.prior, points, effects=True)
    few = Effects(belief, points, reach, levelled=False)
    cell, sizes = _plausible(belief, outcome)
    low, high = limits
    inside = np.ones((len(cell.shape), len(chosen)))
    for numbers, solution in belief.readings[outcome][0].posterior.solved(cell):
        mean, spread = few.of(solution)
        spread = np.maximum(spread, 1e-12)
        if high is not None:
            inside[numbers] = ndtr((high - mean) / spread)
        if low is not None:
            inside[numbers] -= ndtr((low - mean) / spread)
    return np.asarray((sizes @ inside).min(axis=0))


def _plausible(belief: Belief, outcome: int) -> tuple[Cell, FloatArray]:
    """The components of the sizes that an outcome's own results do not refute, and weights given each.

    (m,) and (sizes, m)
    """
    logs = belief.readings[outcome][0].posterior.logs
    logs = logs + np.array([shape.log_weight for shape in belief.shapes])[:, None, None, None, None]
    own = log_sum(logs, (0, 2, 3, 4))
    cells, shares = [], []
    for size in np.flatnonzero(own >= own.max() + np.log(PLAUSIBLE)):
        weight = np.exp(logs[:, size] - own[size])
        order = np.argsort(weight, axis=None, kind="stable")
        kept = order[np.searchsorted(np.cumsum(weight.ravel()[order]), MINOR) :]
        shape, *rest = np.unravel_index(kept, weight.shape)
        share = weight.ravel()[kept]
        cells.append((shape, np.full(len(kept), size), *rest))
        shares.append(share / share.sum())
    table = np.zeros((len(cells), sum(len(each) for each in shares)))
    ends = np.cumsum([len(each) for each in shares])
    for number, (end, share) in enumerate(zip(ends, shares, strict=True)):
        table[number, end - len(share) : end] = share
    return Cell(*(np.concatenate(each) for each in zip(*cells, strict=True))), table
