"""Epsilon-greedy (Alg. "epsilon greedy"): the paper's simplest baseline."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import IntArray
from sidestep.core.checks import check_choice, check_positive
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.forms import PRECISION, Forms, Menu, arm_of, winner
from sidestep.core.geometry import dot, plug_in, total
from sidestep.core.kernels import kernel
from sidestep.core.problem import TARGET, Problem
from sidestep.core.solids import Body, farthest
from sidestep.policies.base import (
    EXPLORE,
    PLAY,
    CompiledPolicy,
    State,
    confidence_for,
    draw_one,
    known_rank,
)
from sidestep.policies.dispatch import Choice, ChoiceOnBall, Draws, register
from sidestep.policies.monitoring import Watch, monitor_for


class EpsilonGreedyKnobs(NamedTuple):
    """Epsilon-greedy as compiled code reads it."""

    metric: int
    confidence: Confidence
    rank: int
    epsilon: float
    protected_only: bool


@kernel
def _explores(knobs: EpsilonGreedyKnobs, evidence: Evidence, draws: Draws) -> bool:
    """Whether this is a round of chance: probability min(1, epsilon / sqrt(t)) (E5)."""
    t = total(evidence.counts, 0) + 1
    return draws.uniforms[0] < knobs.epsilon / np.sqrt(t)


@kernel
def _explored_index(knobs: EpsilonGreedyKnobs, evidence: Evidence, draws: Draws) -> int:
    L = evidence.counts.size - 1
    if knobs.protected_only and L > 0:
        return 1 + draw_one(draws.uniforms[2], L)
    return draw_one(draws.uniforms[2], L + 1)


@kernel
def _on_arms(
    knobs: EpsilonGreedyKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    K = menu.squared.size
    if _explores(knobs, evidence, draws):
        return Choice(
            draw_one(draws.uniforms[1], K), _explored_index(knobs, evidence, draws), EXPLORE, np.nan
        )
    best = plug_in(evidence.centre, knobs.rank)
    arm, _ = winner(menu, best)
    return Choice(arm, TARGET, PLAY, dot(arm_of(menu, arm), best))


@kernel
def _on_ball(
    knobs: EpsilonGreedyKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    chance = farthest(body, draws.normals)
    if _explores(knobs, evidence, draws):
        return ChoiceOnBall(
            chance, _explored_index(knobs, evidence, draws), EXPLORE, np.nan, np.nan
        )
    best = plug_in(evidence.centre, knobs.rank)
    action = farthest(body, best) if dot(best, best) > 0.0 else chance
    return ChoiceOnBall(action, TARGET, PLAY, dot(action, best), np.nan)


register(EpsilonGreedyKnobs, _on_arms, _on_ball)


@dataclass(frozen=True, slots=True)
class EpsilonGreedy(CompiledPolicy):
    """Explore with probability min(1, epsilon / sqrt(t)); otherwise trust the estimates.

    Deviations from the paper: the text's epsilon / sqrt(t) and not the pseudocode's constant; by
    default exploration measures any vector, target included (the paper: a protected one, which
    `explore_index="protected"` gives), since otherwise the target is seen along exploited arms only.
    `lock_in` and `patience` set the lock-in monitor, as in ProtectedLinUCB.
    """

    problem: Problem
    epsilon: float = 1.0
    rho: float = 0.1
    explore_index: str = "all"
    lock_in: str = "warn"
    patience: int = 50
    knobs: EpsilonGreedyKnobs = field(init=False, repr=False, compare=False)

    plays_solids = True
    draws_arms = True

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_choice("explore_index", self.explore_index, ("all", "protected"))
        rank = known_rank(self.problem, "EpsilonGreedy")
        confidence = confidence_for(self.problem, rho=self.rho, delta=0.5, needs_noise=False)
        protected_only = self.explore_index == "protected"
        monitor_for(self.lock_in, self.patience)
        knobs = EpsilonGreedyKnobs(PRECISION, confidence, rank, float(self.epsilon), protected_only)
        object.__setattr__(self, "knobs", knobs)

    def watch(self, state: State) -> Watch | None:
        """The lock-in monitor."""
        monitor = monitor_for(self.lock_in, self.patience)
        return Watch(monitor, self.knobs.confidence, state.evidence, self.knobs.rank)

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """A coin, an arm and an index; a direction on the ball."""
        return 3, self.problem.dim if on_ball else 0
