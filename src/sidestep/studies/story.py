"""The estimated effects of one setting after each result: how a recommendation came about."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.studies.advice import Effect
from sidestep.studies.book import Book
from sidestep.studies.factors import Setting, Value
from sidestep.studies.mind import Mind
from sidestep.studies.plan import Plan
from sidestep.studies.storage.store import Store

PAGE = 1000


class Belief(NamedTuple):
    """The estimated effects of a setting after the first `results` results."""

    results: int
    effects: Mapping[str, Effect]


def story(
    store: Store,
    name: str,
    plan: Plan,
    action: Setting,
    *,
    context: Mapping[str, Value] | None = None,
    most: int = 48,
) -> list[Belief]:
    """The estimates before the first result and after each; at most `most` of them.

    Every result counts with its current value: values that were corrected since do not explain the
    recommendation.
    """
    book, mind = Book(), Mind(plan)
    while events := store.events(name, book.seq, PAGE):
        book.take(events)
    vector = mind.scale.vector(action, context or {})[None]
    total = len(book.results)
    told = set(np.unique(np.linspace(0, total, min(most, total + 1)).round().astype(int)).tolist())
    beliefs = [_belief(mind, vector, 0)]
    for count, result in enumerate(book.results.values(), start=1):
        mind.take(result)
        if count in told:
            beliefs.append(_belief(mind, vector, count))
    return beliefs


def _belief(mind: Mind, vector: FloatArray, results: int) -> Belief:
    effects = {name: each[0] for name, each in mind.effects(vector).items()}
    return Belief(results, effects)
