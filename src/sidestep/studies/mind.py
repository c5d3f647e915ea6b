"""The policy of a study: what the results teach, what is asked next, what is advised.

The one place where the live side meets the arithmetic. Everything else reads the record; what is decided
here is a function of the plan, the results and (seed, seq), so that a study that was stopped and resumed
goes on as if it never had been.
"""

import warnings
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from sidestep.core.actions import Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Query
from sidestep.errors import InputError, UnreachedDirectionsWarning
from sidestep.policies.base import Decision
from sidestep.policies.batches import ask_panel
from sidestep.policies.catalog import from_config
from sidestep.policies.effects import effects_of
from sidestep.policies.recommend import recommend
from sidestep.studies.advice import Best, Contender, Effect, Row
from sidestep.studies.book import Book, Result
from sidestep.studies.card import verdict_of
from sidestep.studies.events import digest
from sidestep.studies.factors import Setting
from sidestep.studies.plan import CLEAN, Plan
from sidestep.studies.request import Request
from sidestep.studies.scale import actions_of, allowed_of, in_units, problem_of, setting_at, vector

Body = dict[str, Any]
BEYOND_PRICE = 1e12


class Mind:
    """What the results up to now have taught the policy of a study."""

    def __init__(self, plan: Plan, state: str | None = None) -> None:
        self.plan = plan
        self.actions = actions_of(plan)
        self.policy = from_config(plan.policy, problem_of(plan, self.actions), plan.knobs)
        self._start = self.policy.init() if state is None else self.policy.state_from_json(state)
        self._learned = (0, 0)  # revision of the book, and how many of its results
        self.state = self._start

    def learn(self, book: Book) -> None:
        """Bring the state up to the book: on from where it is, or anew where a result was changed."""
        revision, count = self._learned
        if revision != book.revision:
            self.state, count = self._start, 0
        for result in islice(book.results.values(), count, None):
            self.state = self.policy.tell(self.state, self._query(result), self._feedback(result))
        self._learned = (book.revision, len(book.results))

    def knows(self, book: Book) -> bool:
        """Whether the state is that of the book."""
        return self._learned == (book.revision, len(book.results))

    def decide(self, seq: int, book: Book, request: Request) -> Body:
        """What to ask as entry `seq`, and what a person needs to judge it, in the study's units."""
        last = book.last or self.plan.baseline
        rng = np.random.default_rng([self.plan.seed, seq])
        waiting = [
            Query(vector(self.plan, question.body["action"]), self.plan.index(name))
            for question in book.open.values()
            for name in question.waiting
        ]
        actions = allowed_of(self.plan, self.actions, request, last)
        with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
            policy = self._measuring(request.measure_only)
            panel = ask_panel(policy, self.state, actions, rng, request.panel, waiting)
        setting, candidate = self._setting(panel[0])
        action = vector(self.plan, setting)
        restricted = {"request": request.to_json()} if request != Request() else {}
        return {
            **restricted,
            "action": setting,
            "candidate": candidate,
            "measure": [self.plan.outcomes[each.query.index].name for each in panel],
            "purpose": request.purpose,
            "phase": panel[0].phase,
            "effects": {name: each[0][:3] for name, each in self._effects(action[None]).items()},
            "last": book.last,
            "round": book.rounds + 1,
            "results": book.n_results,
            "policy": self.plan.policy,
            "state": digest(self.state.to_json()),
        }

    def _measuring(self, names: tuple[str, ...]) -> Any:
        """The policy where only these outcomes can be measured: the others are beyond all price."""
        if not names:
            return self.policy
        costs = [
            outcome.cost * (1.0 if outcome.name in names else BEYOND_PRICE)
            for outcome in self.plan.outcomes
        ]
        problem = replace(self.policy.problem, costs=costs)
        return from_config(self.plan.policy, problem, self.plan.knobs)

    def advise(self, book: Book) -> Best:
        """What the results stand by today; the card is added by the study."""
        plan, counts = self.plan, {name: n for name, n in book.counts.items() if n}
        needed = self.actions.dim + len(plan.outcomes) + 1
        if not counts:
            return Best(counts=counts, needed=needed)
        advice = recommend(self.policy, self.state, self.actions)
        if advice.arm is not None:
            setting = plan.candidates.setting(advice.arm)
        else:
            setting = setting_at(plan, advice.action)
        effects = {
            outcome.name: self._effect(index, advice.effects[index])
            for index, outcome in enumerate(plan.outcomes)
        }
        contenders = [Contender(advice.arm, setting, advice.probability)]
        for rival in advice.rivals:
            setting_of_rival = plan.candidates.setting(rival.arm)
            contenders.append(Contender(rival.arm, setting_of_rival, rival.probability))
        return Best(
            action=setting,
            candidate=advice.arm,
            effects=effects,
            clean=self._effect(0, advice.reward) if plan.aim == CLEAN else None,
            probability=advice.probability,
            contenders=tuple(contenders),
            counts=counts,
            needed=needed,
        )

    def explain(self, book: Book) -> list[Row]:
        """Every candidate with its effects, and how likely it is the best; the likeliest first."""
        if not isinstance(self.actions, Arms):
            raise InputError("explain needs candidates to list, got the box of ranges")
        best = self.advise(book)
        likely = {each.candidate: each.probability for each in best.contenders}
        effects = self._effects(np.asarray(self.actions.vectors))
        rows = [
            Row(
                number,
                self.plan.candidates.setting(number),
                {name: each[number] for name, each in effects.items()},
                likely.get(number, 0.0),
            )
            for number in range(len(self.actions))
        ]
        sign, target = self.plan.target.sign, self.plan.target.name
        return sorted(
            rows, key=lambda row: (-row.probability, -sign * row.effects[target].estimate)
        )

    def _effects(self, vectors: FloatArray) -> dict[str, list[Effect]]:
        """Effects of many actions on every outcome, in units."""
        found = effects_of(self.policy, self.state, vectors)
        low, high = found.estimate - found.half, found.estimate + found.half
        return {
            outcome.name: [
                self._effect(index, ends)
                for ends in zip(found.estimate[index], low[index], high[index], strict=True)
            ]
            for index, outcome in enumerate(self.plan.outcomes)
        }

    def _effect(self, index: int, ends: Any) -> Effect:
        """A change in its unit, with its verdict where it has limits."""
        outcome = self.plan.outcomes[index]
        estimate, low, high = in_units(self.plan, index, ends)
        if outcome.tolerance is None:
            return Effect(estimate, low, high)
        return Effect(estimate, low, high, verdict_of(low, high, outcome.limits).word)

    def _query(self, result: Result) -> Query:
        return Query(vector(self.plan, result.setting), self.plan.index(result.outcome))

    def _feedback(self, result: Result) -> float:
        return self.plan.outcome(result.outcome).scaled(result.value)

    def _setting(self, decision: Decision) -> tuple[Setting, int | None]:
        """What was decided, in units: a candidate and its number, or a point of the box."""
        if decision.arm is not None:
            return self.plan.candidates.setting(decision.arm), decision.arm
        return setting_at(self.plan, decision.query.action), None
