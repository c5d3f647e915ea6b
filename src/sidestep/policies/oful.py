"""OFUL: optimism for the target alone, blind to protection (Abbasi-Yadkori et al. 2011).

With L = 0 this is the standard linear bandit; with L > 0 it shows what ignoring protection costs.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Body
from sidestep.core.arm_forms import COVARIANCE, Forms, Menu, fill
from sidestep.core.arrays import IntArray
from sidestep.core.confidence import Confidence, ellipsoids, radius
from sidestep.core.estimator import Evidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import lowest_argmax
from sidestep.core.optimism_ball import optimistic_action
from sidestep.core.problem import TARGET, Problem
from sidestep.policies.base import PLAY
from sidestep.policies.builtin import (
    BuiltinPolicy,
    Choice,
    ChoiceOnBall,
    Draws,
    random_direction,
    register,
)
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for


class OFULKnobs(NamedTuple):
    """OFUL as compiled code reads it."""

    metric: int
    confidence: Confidence


@kernel(refcounts=False)
def _on_arms(
    knobs: OFULKnobs, evidence: Evidence, core_set: IntArray, menu: Menu, forms: Forms, draws: Draws
) -> Choice:
    fill(forms, evidence, knobs.confidence.rho, menu, TARGET)
    set_radius = radius(knobs.confidence, evidence, TARGET)
    values = forms.workspace.values[: menu.squared.size]
    for k in range(values.size):
        values[k] = forms.linear[TARGET, k] + set_radius * forms.unit_width[TARGET, k]
    arm = lowest_argmax(values)
    return Choice(arm, TARGET, PLAY, values[arm])


@kernel
def _on_ball(
    knobs: OFULKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    sets = ellipsoids(knobs.confidence, evidence, np.zeros(1, np.int64))
    action, value, bound = optimistic_action(sets.centre, sets.inverse, sets.radius, 1e-2)
    if evidence.counts[TARGET] == 0:  # nothing is known: all directions are equally good (A14)
        action = random_direction(draws.normals)
    return ChoiceOnBall(action, TARGET, PLAY, value, bound)


register(OFULKnobs, _on_arms, _on_ball)


@dataclass(frozen=True, slots=True, repr=False)
class OFUL(BuiltinPolicy):
    """Play the action with the largest plausible <a, theta_0>; always measure the target.

    It ignores protection and serves as a baseline. With n_protected=0 it is the standard linear bandit.

    problem   the problem to play
    rho       regulariser of the estimates
    delta     probability that a confidence set fails
    radius    of the sets: "logdet" or "printed"

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.OFUL(world.problem), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    rho: float = 0.1
    delta: float = 0.001
    radius: str = "logdet"
    knobs: OFULKnobs = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_equal_costs(self.problem, "OFUL")
        confidence = confidence_for(
            self.problem, rho=self.rho, delta=self.delta, radius=self.radius
        )
        object.__setattr__(self, "knobs", OFULKnobs(COVARIANCE, confidence))
