"""Explore, then commit: play random actions for some rounds, then always the estimated best."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Body, farthest
from sidestep.core.arm_forms import PRECISION, Forms, Menu, winner
from sidestep.core.arrays import IntArray
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import dot, plug_in, total
from sidestep.core.problem import TARGET, Problem
from sidestep.core.validation import check_integer
from sidestep.policies.base import EXPLORE, PLAY
from sidestep.policies.builtin import BuiltinPolicy, Choice, ChoiceOnBall, Draws, draw_one, register
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for, known_rank


class ExploreThenCommitKnobs(NamedTuple):
    """Explore-then-commit as compiled code reads it."""

    metric: int
    confidence: Confidence
    rank: int
    rounds: int


@kernel
def _on_arms(
    knobs: ExploreThenCommitKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    seen = total(evidence.counts, 0)
    K = menu.squared.size
    if seen < knobs.rounds:
        return Choice(draw_one(draws.uniforms[0], K), seen % evidence.counts.size, EXPLORE, np.nan)
    arm, value = winner(menu, plug_in(evidence.centre, knobs.rank))
    return Choice(arm, TARGET, PLAY, value)


@kernel
def _on_ball(
    knobs: ExploreThenCommitKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    seen = total(evidence.counts, 0)
    chance = farthest(body, draws.normals)
    if seen < knobs.rounds:
        return ChoiceOnBall(chance, seen % evidence.counts.size, EXPLORE, np.nan, np.nan)
    best = plug_in(evidence.centre, knobs.rank)
    action = farthest(body, best) if dot(best, best) > 0.0 else chance
    return ChoiceOnBall(action, TARGET, PLAY, dot(action, best), np.nan)


register(ExploreThenCommitKnobs, _on_arms, _on_ball)


@dataclass(frozen=True, slots=True, repr=False)
class ExploreThenCommit(BuiltinPolicy):
    """Measure in turn along random actions for some rounds, then play the plug-in action.

    problem   the problem to play
    rounds    how long it explores
    rho       regulariser of the estimates

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.ExploreThenCommit(world.problem, rounds=10), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    rounds: int = 100
    rho: float = 0.1
    knobs: ExploreThenCommitKnobs = field(init=False, repr=False, compare=False)

    plays_solids = True
    draws_arms = True

    def __post_init__(self) -> None:
        check_equal_costs(self.problem, "ExploreThenCommit")
        check_integer("rounds", self.rounds, low=1)
        rank = known_rank(self.problem, "ExploreThenCommit")
        confidence = confidence_for(self.problem, rho=self.rho, delta=0.5, needs_noise=False)
        object.__setattr__(
            self, "knobs", ExploreThenCommitKnobs(PRECISION, confidence, rank, int(self.rounds))
        )

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """An arm; a direction on the ball."""
        return 1, self.problem.dim if on_ball else 0

    def learns_for(self) -> int:
        """Once committed, nothing is learned."""
        return self.rounds
