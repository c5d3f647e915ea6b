"""Uniform: any action, any vector, by chance. The yardstick at the bottom."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from sidestep.core.compiled import kernel
from sidestep.core.confidence import Confidence
from sidestep.core.forms import PRECISION
from sidestep.core.problem import Problem
from sidestep.core.solids import farthest
from sidestep.policies.base import EXPLORE, CompiledPolicy, confidence_for, draw_one
from sidestep.policies.dispatch import register


class UniformKnobs(NamedTuple):
    """Uniform as compiled code reads it."""

    metric: int
    confidence: Confidence


@kernel
def _on_arms(
    knobs: UniformKnobs, evidence: Any, core_set: Any, menu: Any, forms: Any, luck: Any
) -> tuple[int, int, int, float]:
    arm = draw_one(luck[0][0], menu.squared.size)
    return arm, draw_one(luck[0][1], evidence.counts.size), EXPLORE, np.nan


@kernel
def _on_ball(knobs: UniformKnobs, evidence: Any, core_set: Any, body: Any, luck: Any) -> Any:
    index = draw_one(luck[0][1], evidence.counts.size)
    return farthest(body, luck[1]), index, EXPLORE, np.nan, np.nan


register(UniformKnobs, _on_arms, _on_ball)


@dataclass(frozen=True, slots=True)
class Uniform(CompiledPolicy):
    """Play an arm drawn evenly, or the point of a solid farthest along a direction drawn evenly."""

    problem: Problem
    knobs: UniformKnobs = field(init=False, repr=False, compare=False)

    plays_solids = True
    draws_arms = True

    def __post_init__(self) -> None:
        confidence = confidence_for(self.problem, rho=1.0, delta=0.5, needs_noise=False)
        object.__setattr__(self, "knobs", UniformKnobs(PRECISION, confidence))

    def luck(self, *, on_ball: bool) -> tuple[int, int]:
        """An arm and an index; a direction on the ball."""
        return 2, self.problem.dim if on_ball else 0
