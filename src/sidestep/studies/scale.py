"""The arrays of a study: coordinates of its candidates, the policy's problem, and the way back to units.

The range of an outcome means that no candidate is expected to have an effect larger than half of it. So
norm_bound * action_bound is 1 on the common scale, for every outcome and in every unit.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from sidestep.core.actions import Actions, Arms, Box
from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Problem, width_of
from sidestep.errors import InputError
from sidestep.studies.factors import Setting, Value
from sidestep.studies.formula import Features
from sidestep.studies.plan import CLEAN, Plan
from sidestep.studies.request import PLAIN, Request
from sidestep.studies.values import standard

VALUES = 1024  # largest number of values of a factor whose coordinates are cached


class Scale:
    """From units to arrays, and back."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._features = None if plan.model is None else Features(plan)
        # thousands of candidates share the few values of a factor, and Decimal arithmetic is slow
        self._placed = {
            factor.name: lru_cache(VALUES)(factor.coordinates) for factor in plan.factors
        }
        self._actions = self._menu({}) if not plan.context else None
        self.longest = self._features.longest if self._features else self._reach()

    def _reach(self) -> float:
        """Length of the longest possible setting: results may be beyond every candidate."""
        longest = 0.0
        for factor in self.plan.factors:
            ends = (*factor.grid, factor.low, factor.high)
            parts = [factor.coordinates(end) for end in ends if end is not None]
            longest += max(sum(part * part for part in each) for each in parts)
        return max(math.sqrt(longest), self.actions({}).longest)

    def vector(self, setting: Mapping[str, Value], context: Mapping[str, Value]) -> FloatArray:
        """A setting on the common scale; the baseline is the origin; (d,)."""
        if self._features is not None:
            return np.asarray(self._features.rows([setting], context)[0])
        return np.array(
            [part for name, placed in self._placed.items() for part in placed(setting[name])]
        )

    def actions(self, context: Mapping[str, Value]) -> Actions:
        """The candidates on the common scale: arms in the order of their numbers, or a box."""
        return self._menu(context) if self._actions is None else self._actions

    def _menu(self, context: Mapping[str, Value]) -> Actions:
        menu = self.plan.candidates
        if menu.is_box:
            return Box(*_corners(self.plan, PLAIN, {}))
        if self._features is not None:
            return Arms(self._features.of(menu, context))
        settings = (menu.setting(number) for number in range(len(menu)))
        return Arms(np.array([self.vector(setting, {}) for setting in settings]))

    def setting(
        self, action: FloatArray, request: Request = PLAIN, last: Setting | None = None
    ) -> Setting:
        """The setting nearest to a point of the box, in digits that a person can set."""
        return {
            factor.name: factor.nearest(float(part), request.bounds(factor, last or {}))
            for factor, part in zip(self.plan.factors, action, strict=True)
        }

    def problem(self, dim: int) -> Problem:
        """The policy's problem, on the common scale."""
        plan = self.plan
        noise = [_middle(outcome.noise_scaled) for outcome in plan.outcomes]
        return Problem(
            dim=dim,
            n_protected=len(plan.protected),
            noise_scale=None if all(each is None for each in noise) else noise,
            norm_bound=1.0 / self.longest,
            action_bound=self.longest,
            costs=[outcome.cost for outcome in plan.outcomes],
            intercept=learns_levels(plan),
            **(self._rank(dim) if plan.aim == CLEAN else self._limits()),
        )

    def _rank(self, dim: int) -> dict[str, Any]:
        """What is known about the rank of the side effects, under the aim "clean"."""
        plan, most = self.plan, min(len(self.plan.protected), dim)
        if plan.rank is not None and not 1 <= plan.rank <= most:
            raise InputError(f"rank must lie in 1..{most} for this study, got {plan.rank!r}")
        return {"subspace_dim": plan.rank, "resolution": plan.resolution}

    def _limits(self) -> dict[str, Any]:
        """Tolerances and penalties, under the aim "within"."""
        limits, penalties = [], []
        for outcome in self.plan.protected:
            pair = tuple(
                None if end is None else outcome.change_scaled(end) for end in outcome.limits
            )
            sides = [abs(end) for end in pair if end is not None]
            # unless a penalty is told, its width costs half the target's range
            penalty = 1.0 / (width_of(sides) or 1.0)
            if outcome.penalty is not None:
                penalty = standard(outcome.penalty * outcome.size(1.0) / self.plan.target.size(1.0))
            limits.append(pair)
            penalties.append(penalty)
        return {"tolerance": limits, "penalty": penalties}


def _middle(noise: float | tuple[float, float] | None) -> float | None:
    """One number for a noise that is told roughly: the middle in ratios."""
    return math.sqrt(noise[0] * noise[1]) if isinstance(noise, tuple) else noise


def learns_levels(plan: Plan) -> bool:
    """Whether the level of any outcome at the baseline is to be learned."""
    return any(outcome.baseline is None for outcome in plan.outcomes)


def allowed_of(plan: Plan, actions: Actions, request: Request, last: Setting) -> Actions:
    """The candidates that may be asked in this round."""
    if not request.restricts:
        return actions
    if isinstance(actions, Arms):
        numbers = range(len(actions)) if request.candidates is None else request.candidates
        mask = np.zeros(len(actions), dtype=bool)
        for number in numbers:
            setting = plan.candidates.setting(number)
            mask[number] = request.admits(plan.factors, setting, last)
        if not mask.any():
            raise InputError(
                "allowed and largest_step must leave a candidate, got none that fits both"
            )
        return actions.only(mask)
    return Box(*_corners(plan, request, last))


def _corners(plan: Plan, request: Request, last: Setting) -> tuple[FloatArray, FloatArray]:
    ends = []
    for factor in plan.factors:
        low, high = request.bounds(factor, last)
        low, high = max(low, float(factor.low or 0)), min(high, float(factor.high or 0))
        if low > high:
            raise InputError(
                f"allowed and largest_step must leave a value for {factor.name}, "
                f"got {low:g} to {high:g}"
            )
        ends.append([factor.coordinates(end)[0] for end in (low, high)])
    low, high = np.array(ends).T
    return low, high
