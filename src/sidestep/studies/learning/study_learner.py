"""The belief of a study after its results, and the settings that it may choose from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sidestep.core.arrays import IntArray
from sidestep.errors import InputError
from sidestep.studies.book import Book
from sidestep.studies.factors import Setting, Value
from sidestep.studies.learning.belief import Belief
from sidestep.studies.learning.effects import Effects
from sidestep.studies.learning.evidence import Evidence, Limits, limits_of, never_of, reach_of
from sidestep.studies.learning.features import Features, Points
from sidestep.studies.learning.formula_features import FormulaFeatures
from sidestep.studies.learning.learner import Learner, told_of
from sidestep.studies.learning.next_question import Inquiry
from sidestep.studies.learning.posterior import Told
from sidestep.studies.learning.prior import prior_of
from sidestep.studies.learning.prior_parts import parts_of
from sidestep.studies.learning.search import searched
from sidestep.studies.plan import STRAIGHT, Plan
from sidestep.studies.request import PLAIN, Request

Context = Mapping[str, Value]


@dataclass(frozen=True, eq=False)
class Menu:
    """Settings in one context.

    settings   every setting
    points     the same as rows of features
    numbers    of the candidates; None in a box
    context    in which they would be given
    """

    settings: Sequence[Setting]
    points: Points
    numbers: Sequence[int] | None
    context: Context

    def __len__(self) -> int:
        return len(self.settings)

    def candidate(self, row: int) -> int | None:
        """The number of the candidate in a row."""
        return None if self.numbers is None else self.numbers[row]

    @cached_property
    def home(self) -> int | None:
        """The row of the baseline, if it is one of the settings."""
        rows = np.flatnonzero(self.points.place == self.points.home)
        return int(rows[0]) if len(rows) else None


class StudyLearner:
    """Follows the evidence of a study."""

    def __init__(self, plan: Plan, evidence: Evidence) -> None:
        formula = None if plan.model is None else FormulaFeatures(plan)
        self.plan, self.evidence = plan, evidence
        self.features = Features(plan.factors, plan.context, formula, evidence.places)
        self.limits: list[Limits | None] = limits_of(plan)
        self.never = never_of(plan)
        prior = prior_of(plan.shape)
        parts = parts_of(plan, self.features, prior)
        self._learner = Learner(self.features, tolds_of(plan), prior, parts)
        self._versions = [-1] * len(plan.outcomes)
        self._straight: StudyLearner | None = None
        self._menus: dict[tuple[tuple[str, Value], ...], Menu] = {}

    def learner(self) -> Learner:
        """Taught with all results so far."""
        now = self.evidence.versions
        changed = [o for o, each in enumerate(now) if each != self._versions[o]]
        if changed:
            self._learner.take(self.evidence.sums, changed)
            self._versions = list(now)
        return self._learner

    def belief(self) -> Belief:
        """What is believed after all results so far."""
        return self.learner().belief()

    def straight(self) -> "StudyLearner":
        """The same results seen by a belief in straight lines."""
        if self._straight is None:
            other = object.__new__(StudyLearner)
            other.plan, other.evidence, other.features = self.plan, self.evidence, self.features
            other.limits, other.never = self.limits, self.never
            prior = prior_of(STRAIGHT)
            parts = parts_of(self.plan, self.features, prior)
            other._learner = Learner(self.features, tolds_of(self.plan), prior, parts)
            other._versions = [-1] * len(self._versions)
            other._straight, other._menus = other, self._menus
            self._straight = other
        return self._straight

    def points(self, settings: Sequence[Setting], context: Context) -> Points:
        """Settings as rows of features."""
        return self.features.points(settings, context)

    def menu(
        self,
        context: Context,
        request: Request = PLAIN,
        last: Setting | None = None,
        belief: Belief | None = None,
    ) -> Menu:
        """The settings that may be chosen: all candidates, or the best that were found in a box."""
        if self.plan.candidates.is_box:
            return self._found(context, request, last, belief or self.belief())
        key = tuple(sorted(context.items()))
        if key not in self._menus:
            menu = self.plan.candidates
            settings = [menu.setting(number) for number in range(len(menu))]
            points = self.features.points(settings, context)
            self._menus[key] = Menu(settings, points, range(len(settings)), context)
        return self._menus[key]

    def _found(
        self, context: Context, request: Request, last: Setting | None, belief: Belief
    ) -> Menu:
        """The settings of a box that are worth a thought, with the baseline and what was measured."""
        names = [factor.name for factor in self.plan.factors]
        known = [dict(zip(names, place, strict=False)) for place in self.evidence.measured()]
        settings = searched(
            lambda some: self._hope(belief, some, context), self.plan, request, last, known
        )
        return Menu(settings, self.features.points(settings, context, lasting=False), None, context)

    def _hope(self, belief: Belief, settings: Sequence[Setting], context: Context) -> list[float]:
        effects = belief.at(self.features.points(settings, context, lasting=False))
        counts = [0] * len(self.limits)
        inquiry = Inquiry(effects, effects, self.limits, counts, never=self.never)
        hope: list[float] = inquiry.hope.tolist()
        return hope

    def lasting(self, menu: Menu) -> Menu:
        """The same settings as places that may have results."""
        return replace(menu, points=self.features.points(menu.settings, menu.context))

    def rows(self, menu: Menu, request: Request, last: Setting) -> IntArray | None:
        """The rows that may be asked in this round; None: all."""
        if not request.restricts:
            return None
        some = None if request.candidates is None else set(request.candidates)
        found = [
            row
            for row, setting in enumerate(menu.settings)
            if (some is None or menu.candidate(row) in some)
            and request.admits(self.plan.factors, setting, last)
        ]
        if not found:
            raise InputError(
                "allowed and largest_step must leave a candidate, got none that fits both"
            )
        return np.array(found)

    def effects(self, menu: Menu, belief: Belief | None = None) -> Effects:
        """Effects of the settings of a menu."""
        return (belief or self.belief()).at(menu.points)

    def inquiry(
        self,
        menu: Menu,
        book: Book,
        rows: IntArray | None = None,
        outcomes: Sequence[int] | None = None,
    ) -> Inquiry:
        """What the next question is chosen from; answers that are awaited come as they are expected."""
        awaited = [
            (
                self.plan.index(name),
                self.features.place(question.body["action"], question.body.get("context")),
            )
            for question in book.open.values()
            for name in question.waiting
        ]
        belief = self.learner().expecting(awaited).belief()
        counts = [book.counts.get(outcome.name, 0) for outcome in self.plan.outcomes]
        for outcome, _ in awaited:
            counts[outcome] += 1
        return Inquiry(
            belief.at(menu.points),
            belief.values(menu.points),
            self.limits,
            counts,
            rows,
            outcomes,
            [outcome.cost for outcome in self.plan.outcomes],
            self.never,
        )


def tolds_of(plan: Plan) -> list[Told]:
    """What the plan tells of the noise and the level of every outcome."""
    return [
        told_of(
            outcome.noise_scaled,
            level_told=outcome.baseline is not None,
            reach=reach_of(outcome),
        )
        for outcome in plan.outcomes
    ]
