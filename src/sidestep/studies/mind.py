"""The policy of a study and its state after the results so far.

Only this file, scale.py and the files that import them need numpy; everything else reads the record. A
decision is a function of the plan, the results and (seed, seq). So a study that was stopped and resumed
continues as if it had not been stopped.
"""

from itertools import islice
from typing import Any

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Query
from sidestep.policies.advice.posterior_summary import belief_of, effects_of
from sidestep.policies.catalog import from_config
from sidestep.studies.advice import Effect
from sidestep.studies.book import Book, Result
from sidestep.studies.cards.card import verdict_of
from sidestep.studies.measurement import CHANGE
from sidestep.studies.plan import NAMED, Plan
from sidestep.studies.scale import Scale, learns_levels

LEVEL = 0.95  # of the intervals of effects


class Mind:
    """The policy of a study and its state after the results so far."""

    def __init__(self, plan: Plan, state: str | None = None) -> None:
        self.plan = plan
        self.scale = Scale(plan)
        self.dim = len(self.scale.vector(plan.baseline, plan.usual_context))
        self.policy = from_config(plan.policy or NAMED, self.scale.problem(self.dim), plan.knobs)
        self._start = self._begun() if state is None else self.policy.state_from_json(state)
        self._learned = (0, 0)  # revision of the book, and number of its results that were learned
        self.state = self._start

    def _begun(self) -> Any:
        """The state before the first result; a given level counts as one result at the baseline."""
        state = self.policy.init()
        if learns_levels(self.plan):
            for index, outcome in enumerate(self.plan.outcomes):
                if outcome.baseline is not None:
                    state = self.policy.tell(state, Query(np.zeros(self.dim), index), 0.0)
        return state

    def learn(self, book: Book) -> None:
        """Update the state to the book; from the beginning if a result was changed."""
        revision, count = self._learned
        if revision != book.revision:
            self.state, count = self._start, 0
        for result in islice(book.results.values(), count, None):
            self.take(result)
        self._learned = (book.revision, len(book.results))

    def take(self, result: Result) -> None:
        """Learn from one more result."""
        action = self.scale.vector(result.setting, result.context or {})
        query = Query(action, self.plan.index(result.outcome))
        outcome, told = self.plan.outcome(result.outcome), result.measured
        if (
            told.kind == CHANGE
        ):  # a policy knows only values: as if the level were where it is assumed
            feedback = outcome.sign * outcome.change_scaled(told.value)
        else:
            feedback = outcome.scaled(told.value)
        self.state = self.policy.tell(self.state, query, feedback)

    def knows(self, book: Book) -> bool:
        """Whether the state contains all results of the book."""
        return self._learned == (book.revision, len(book.results))

    def effects(self, vectors: FloatArray) -> dict[str, list[Effect]]:
        """Effects of many actions on every outcome, in units."""
        found = effects_of(belief_of(self.policy, self.state), vectors, LEVEL)
        low, high = found.estimate - found.half, found.estimate + found.half
        return {
            outcome.name: [
                self.effect(index, ends)
                for ends in zip(found.estimate[index], low[index], high[index], strict=True)
            ]
            for index, outcome in enumerate(self.plan.outcomes)
        }

    def effect(self, index: int, ends: Any) -> Effect:
        """A change in its unit, with a verdict if the outcome has limits."""
        outcome = self.plan.outcomes[index]
        estimate, *sides = (outcome.change(float(end)) for end in ends)
        low, high = min(sides), max(sides)
        if outcome.tolerance is None:
            return Effect(estimate, low, high)
        return Effect(estimate, low, high, verdict_of(low, high, outcome.limits).word)
