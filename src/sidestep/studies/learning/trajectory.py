"""The estimated effects of one setting after each result: how a recommendation came about."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from sidestep.studies.advice import Effect
from sidestep.studies.book import Book, Result
from sidestep.studies.factors import Setting, Value
from sidestep.studies.learning.assessment import standing_of
from sidestep.studies.learning.evidence import Evidence
from sidestep.studies.learning.recommendation import CERTAINTY
from sidestep.studies.learning.study_learner import StudyLearner
from sidestep.studies.mind import Mind
from sidestep.studies.plan import CLEAN, Plan
from sidestep.studies.storage.events import Event


class Step(NamedTuple):
    """The estimated effects of a setting after the first `results` results."""

    results: int
    effects: Mapping[str, Effect]


def trajectory_of(
    plan: Plan,
    events: Iterable[Event],
    action: Setting,
    *,
    context: Mapping[str, Value] | None = None,
    most: int = 48,
) -> list[Step]:
    """The estimates before the first result and after each; at most `most` of them.

    Every result counts with its current value: values that were corrected since do not explain the
    recommendation.
    """
    book, here = Book(), dict(context or {})
    book.take(events)
    add, look = _clean(plan, action, here) if plan.aim == CLEAN else _believed(plan, action, here)
    total = len(book.results)
    told = set(np.unique(np.linspace(0, total, min(most, total + 1)).round().astype(int)).tolist())
    steps = [Step(0, look())]
    for count, result in enumerate(book.results.values(), start=1):
        add(result)
        if count in told:
            steps.append(Step(count, look()))
    return steps


Learned = tuple[Callable[[Result], None], Callable[[], Mapping[str, Effect]]]


def _believed(plan: Plan, action: Setting, context: Setting) -> Learned:
    evidence = Evidence(plan)
    study = StudyLearner(plan, evidence)
    return evidence.add, lambda: standing_of(study, action, context, CERTAINTY)


def _clean(plan: Plan, action: Setting, context: Setting) -> Learned:
    """For the aim "clean" what is believed is the belief of the policy."""
    mind = Mind(plan)
    vector = mind.scale.vector(action, context)[None]
    return mind.take, lambda: {name: each[0] for name, each in mind.effects(vector).items()}
