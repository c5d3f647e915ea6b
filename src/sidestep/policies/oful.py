"""OFUL: optimism for the target alone, blind to protection (Abbasi-Yadkori et al. 2011).

With L = 0 this is the standard linear bandit; with L > 0 it shows what ignoring protection costs.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Body, farthest
from sidestep.core.arm_forms import COVARIANCE, Forms, Menu, fill
from sidestep.core.arrays import FloatArray
from sidestep.core.best_action import Place
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.jit import FAMILIES, by_type, kernel
from sidestep.core.linalg import copy_into, lowest_argmax
from sidestep.core.optimism import Optimum, optimistic_on_ball
from sidestep.core.problem import TARGET, Problem
from sidestep.policies.base import PLAY
from sidestep.policies.builtin import (
    BuiltinPolicy,
    Choice,
    Draws,
    register,
)
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for
from sidestep.policies.state import Learned


class OFULKnobs(NamedTuple):
    """OFUL as compiled code reads it."""

    metric: int
    confidence: Confidence


@by_type
def _most_plausible(
    place: Place,
    confidence: Confidence,
    evidence: Evidence,
    forms: Forms,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    """The action with the largest plausible <a, theta_0>; on the ball it is written into `action`."""
    raise NotImplementedError


@kernel(refcounts=False)
def _most_plausible_arm(
    menu: Menu,
    confidence: Confidence,
    evidence: Evidence,
    forms: Forms,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    fill(forms, evidence, confidence.rho, menu, TARGET)
    set_radius = radius(confidence, evidence, TARGET)
    values = forms.workspace.values[: menu.squared.size]
    for k in range(values.size):
        values[k] = forms.linear[TARGET, k] + set_radius * forms.unit_width[TARGET, k]
    arm = lowest_argmax(values)
    return Optimum(arm, values[arm], np.nan)


@kernel
def _most_plausible_on_ball(
    body: Body,
    confidence: Confidence,
    evidence: Evidence,
    forms: Forms,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    forms.workspace.rows[0] = TARGET
    found = optimistic_on_ball(body, confidence, evidence, forms, 1, normals, action)
    if evidence.counts[TARGET] == 0:  # nothing is known: all directions are equally good (A14)
        copy_into(farthest(body, normals), action)
    return found


FAMILIES[_most_plausible].update({Menu: _most_plausible_arm, Body: _most_plausible_on_ball})


@kernel(refcounts=False)
def _choose(
    knobs: OFULKnobs,
    learned: Learned,
    place: Place,
    forms: Forms,
    draws: Draws,
    action: FloatArray,
) -> Choice:
    evidence = learned.evidence
    best = _most_plausible(place, knobs.confidence, evidence, forms, draws.normals, action)
    return Choice(best.arm, TARGET, PLAY, best.value, best.bound)


register(OFULKnobs, _choose)


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
