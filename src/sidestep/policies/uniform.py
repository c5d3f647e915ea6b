"""Uniform: a random action and a random vector in every round. The weakest baseline."""

from dataclasses import dataclass, field
from typing import NamedTuple

from sidestep.core.arm_forms import PRECISION
from sidestep.core.best_action import any_in, draw_one
from sidestep.core.confidence import Confidence
from sidestep.core.jit import kernel
from sidestep.core.problem import Problem
from sidestep.policies.base import EXPLORE
from sidestep.policies.builtin import BuiltinPolicy, Choice, Offer, chosen, register
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for
from sidestep.policies.state import Learned


class UniformKnobs(NamedTuple):
    """Uniform as compiled code reads it."""

    metric: int
    confidence: Confidence


@kernel
def _choose(
    knobs: UniformKnobs,
    learned: Learned,
    offer: Offer,
) -> Choice:
    index = draw_one(offer.draws.uniforms[1], learned.evidence.counts.size)
    found = any_in(offer.place, offer.draws.uniforms[0], offer.draws.normals)
    return chosen(found, index, EXPLORE, offer.action)


register(UniformKnobs, _choose)


@dataclass(frozen=True, slots=True, repr=False)
class Uniform(BuiltinPolicy):
    """Play a uniformly drawn arm, or the extreme point of a solid along a random direction.

    problem   the problem to play

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.Uniform(world.problem), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    knobs: UniformKnobs = field(init=False, repr=False, compare=False)

    plays_solids = True
    draws_arms = True

    def __post_init__(self) -> None:
        check_equal_costs(self.problem, "Uniform")
        confidence = confidence_for(
            self.problem, rho=1.0, delta=0.5, needs_noise=False, follows_tolerances=True
        )
        object.__setattr__(self, "knobs", UniformKnobs(PRECISION, confidence))

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """An arm and an index; a direction on the ball."""
        return 2, self.problem.dim if on_ball else 0
