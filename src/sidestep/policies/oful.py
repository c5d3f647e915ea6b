"""OFUL: optimism for the target alone, blind to protection (Abbasi-Yadkori et al. 2011).

With L = 0 this is the standard linear bandit; with L > 0 it shows what ignoring protection costs.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import ON_A_SOLID
from sidestep.core.arm_forms import COVARIANCE
from sidestep.core.arrays import FloatArray
from sidestep.core.confidence import Confidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import copy_into, dot, scaled
from sidestep.core.optimism import most_plausible_in
from sidestep.core.optimism_arms import Estimates
from sidestep.core.problem import TARGET, Problem
from sidestep.policies.base import PLAY
from sidestep.policies.builtin import BuiltinPolicy, Choice, Offer, register
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for
from sidestep.policies.state import Learned


class OFULKnobs(NamedTuple):
    """OFUL as compiled code reads it."""

    metric: int
    confidence: Confidence


@kernel
def _write_direction(normals: FloatArray, action: FloatArray) -> None:
    copy_into(scaled(1.0 / np.sqrt(dot(normals, normals)), normals), action)


@kernel(refcounts=False)
def _choose(knobs: OFULKnobs, learned: Learned, offer: Offer) -> Choice:
    evidence, normals = learned.evidence, offer.draws.normals
    estimates = Estimates(knobs.confidence, evidence, offer.forms)
    best = most_plausible_in(offer.place, estimates, TARGET, normals, offer.action)
    if (
        best.arm == ON_A_SOLID and evidence.counts[TARGET] == 0
    ):  # all directions are equally good (A14)
        _write_direction(normals, offer.action)
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
