"""What earlier studies taught, as the record of the next one keeps it: numbers by names of features."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.book import Result
from sidestep.studies.learning.earlier import (
    Lesson,
    Pooled,
    parts_of_pooled,
    pooled,
    pooled_columns,
)
from sidestep.studies.learning.evidence import Evidence, reach_of
from sidestep.studies.learning.features import Features, Kind
from sidestep.studies.learning.knowledge import Part, Variants
from sidestep.studies.learning.learner import Learner, told_of
from sidestep.studies.learning.prior import Prior, prior_of
from sidestep.studies.plan import Plan

WRONG = 0.5  # chance of being grossly wrong from which a result teaches nothing
DIGITS = 6  # that are kept


def taught(plan: Plan, studies: Sequence[Sequence[Result]]) -> dict[str, Any]:
    """The prior that the results of earlier studies make, frozen."""
    prior = prior_of(plan.shape)
    lessons = [_lesson(plan, prior, results) for results in studies]
    features = Features(plan.factors, plan.context)
    found = [pooled(features, prior, outcome, lessons) for outcome in range(len(plan.outcomes))]
    return {
        "features": names_of(features),
        "outcomes": {
            outcome.name: _frozen(each) for outcome, each in zip(plan.outcomes, found, strict=True)
        },
    }


def _lesson(plan: Plan, prior: Prior, results: Sequence[Result]) -> Lesson:
    """The sums of a study's results, and the noise that they show."""
    evidence = Evidence(plan)
    for result in results:
        evidence.add(result)
    features = Features(plan.factors, plan.context, None, evidence.places)
    told = [told_of(outcome.noise_scaled, reach=reach_of(outcome)) for outcome in plan.outcomes]
    learner = Learner(features, told, prior)
    learner.take(evidence.sums)
    belief = learner.belief()
    noises = [belief.noise(outcome) for outcome in range(len(told))]
    gross = [
        [result for result, chance in belief.surprises(outcome) if chance >= WRONG]
        for outcome in range(len(told))
    ]
    return Lesson(features, evidence.sums, noises, gross)


def names_of(features: Features) -> list[list[str]]:
    """The pooled features: kind and factor, and the word where it has words."""
    found: list[list[str]] = []
    axes = [*features.factors, *features.context]
    for axis in axes:
        words = [["word", axis.name, str(word)] for word in axis.grid] if axis.is_category else []
        found += words or [["straight", axis.name]]
    found += [["bend", axis.name] for axis in axes if not axis.is_category]
    return found


def _frozen(found: Pooled) -> dict[str, Any]:
    """As JSON; of roots the lower triangle, row by row."""
    lower = np.tril_indices(found.means.shape[1])
    return {
        "scales": [
            {"weight": _short(w), "mean": _short(mean), "root": _short(root[lower])}
            for w, mean, root in zip(found.weights, found.means, found.roots, strict=True)
        ],
        "sizes": _short(found.sizes),
    }


def _short(numbers: Any) -> Any:
    """Numbers with the digits that are kept."""
    array = np.asarray(numbers, dtype=float)
    short = [float(f"{number:.{DIGITS}g}") + 0.0 for number in array.ravel()]
    return short if array.ndim else short[0]


def parts_of_frozen(
    plan: Plan,
    features: Features,
    prior: Prior,
    frozen: Mapping[str, Any],
    expected: Sequence[Variants | None],
) -> tuple[Part, ...]:
    """The parts of the prior that were frozen; what is expected counts for a stranger."""
    columns = pooled_columns(features)
    place = {tuple(name): number for number, name in enumerate(names_of(features))}
    order = [place[tuple(name)] for name in frozen["features"]]
    straight = not any(prior.bends.values)
    found = []
    for outcome in plan.outcomes:
        kept = frozen["outcomes"][outcome.name]
        means, roots = [], []
        for scale in kept["scales"]:
            mean, root = _again(scale, order)
            if straight:  # where every effect is a straight line, nothing bends
                bends = features.kinds[columns] == Kind.BEND
                mean[bends], root[bends] = 0.0, 0.0
            means.append(mean)
            roots.append(root)
        weights = np.array([scale["weight"] for scale in kept["scales"]])
        sizes = np.array(kept["sizes"])
        found.append(Pooled(weights / weights.sum(), np.array(means), np.array(roots), sizes))
    return parts_of_pooled(features, prior, found, expected)


def _again(scale: Mapping[str, Any], order: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Mean and root as they were frozen, in the order of the features."""
    count = len(order)
    root, mean = np.zeros((count, count)), np.zeros(count)
    root[np.tril_indices(count)] = scale["root"]
    mean[list(order)] = scale["mean"]
    placed = np.zeros_like(root)
    placed[list(order)] = root
    return mean, placed
