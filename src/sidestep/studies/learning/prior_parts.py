"""What a study was told before its first result: parts of the prior, and what became of them."""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.advice import Trust
from sidestep.studies.expected_changes import Ends, scaled_changes, told_of_changes
from sidestep.studies.learning.belief import Belief
from sidestep.studies.learning.bends import contrasts
from sidestep.studies.learning.expectations import Expected, variants_of
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.knowledge import EARLIER, UNKNOWN, Part
from sidestep.studies.learning.lesson_record import parts_of_frozen
from sidestep.studies.learning.prior import Prior
from sidestep.studies.plan import Plan

OWN = "nothing"  # name of the part that knows of no earlier studies


class Contradiction(NamedTuple):
    """An expectation that the results contradict.

    outcome   number of the outcome
    factor    its name
    ends      what was expected of the change over the factor's whole range, in units
    chance    that it is not as expected
    """

    outcome: int
    factor: str
    ends: Ends
    chance: float


def parts_of(plan: Plan, features: Features, prior: Prior) -> tuple[Part, ...]:
    """What the plan says of effects, as parts of the prior."""
    expected = expected_of(plan)
    if plan.earlier:
        told = [variants_of(features, prior, some) if some else None for some in expected]
        return parts_of_frozen(plan, features, prior, plan.earlier, told)
    if not any(expected):
        return UNKNOWN
    outcomes = [variants_of(features, prior, some) for some in expected]
    return (Part(OWN, 1.0, outcomes),)


def trust_of(plan: Plan, belief: Belief) -> Trust | None:
    """How far the earlier studies are believed to speak of this one; None: it learned from none."""
    if not plan.earlier:
        return None
    return Trust(len(plan.earlier["studies"]), belief.parts().get(EARLIER, 0.0))


def expected_of(plan: Plan) -> list[Expected]:
    """What is expected of every outcome, on its scale."""
    told = told_of_changes(plan.expect, plan.monotone)
    return [scaled_changes(outcome, told.get(outcome.name, {})) for outcome in plan.outcomes]


def contradictions(plan: Plan, belief: Belief, doubted: float = 0.5) -> list[Contradiction]:
    """Expectations that are likelier wrong than right after the results, the surest first."""
    told, scaled = told_of_changes(plan.expect, plan.monotone), expected_of(plan)
    names = [factor.name for factor in plan.factors if any(factor.name in some for some in scaled)]
    if not names:
        return []
    ends = np.array([_whole_range(belief.features, plan, name) for name in names])
    changes, found = contrasts(belief, ends), []
    for number, (outcome, expected) in enumerate(zip(plan.outcomes, scaled, strict=True)):
        if not expected or not belief.results(number):
            continue
        for row, name in enumerate(names):
            if name in expected:
                chance = 1.0 - float(changes.within(number, expected[name])[row])
                if chance > doubted:
                    found.append(Contradiction(number, name, told[outcome.name][name], chance))
    return sorted(found, key=lambda each: -each.chance)


def _whole_range(features: Features, plan: Plan, name: str) -> FloatArray:
    """The features of a factor's high end minus those of its low end, all others at the baseline."""
    factor = next(each for each in plan.factors if each.name == name)
    settings = [{**plan.baseline, name: end} for end in (factor.low, factor.high)]
    low, high = features.rows(settings)  # type: ignore[arg-type]
    return np.asarray(high - low)
