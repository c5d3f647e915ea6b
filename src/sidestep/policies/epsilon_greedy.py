"""Epsilon-greedy (Alg. "epsilon greedy"): the paper's simplest baseline."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from sidestep.core.arm_forms import PRECISION
from sidestep.core.best_action import Found, Place, any_in, best_along, best_in, draw_one
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.jit import FAMILIES, by_type, kernel
from sidestep.core.linalg import plug_in, total
from sidestep.core.problem import TARGET, Limits, Problem
from sidestep.core.validation import check_choice, check_positive
from sidestep.policies.base import EXPLORE, PLAY
from sidestep.policies.builtin import (
    BuiltinPolicy,
    Choice,
    Draws,
    Offer,
    Watch,
    chosen,
    monitor_for,
    register,
)
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for, known_rank
from sidestep.policies.state import Learned


class EpsilonGreedyKnobs(NamedTuple):
    """Epsilon-greedy as compiled code reads it."""

    metric: int
    confidence: Confidence
    rank: int
    epsilon: float
    protected_only: bool


class EpsilonGreedyWithinKnobs(NamedTuple):
    """Epsilon-greedy within tolerances: needs no rank, and has no lock-in monitor."""

    metric: int
    confidence: Confidence
    limits: Limits
    epsilon: float
    protected_only: bool
    has_levels: bool


Coin: TypeAlias = EpsilonGreedyKnobs | EpsilonGreedyWithinKnobs


@kernel
def _explores(knobs: Coin, evidence: Evidence, draws: Draws) -> bool:
    """Whether this round explores: with probability min(1, epsilon / sqrt(t)) (E5)."""
    t = total(evidence.counts, 0) + 1
    return draws.uniforms[0] < knobs.epsilon / np.sqrt(t)


@kernel
def _explored_index(knobs: Coin, evidence: Evidence, draws: Draws) -> int:
    L = evidence.counts.size - 1
    if knobs.protected_only and L > 0:
        return 1 + draw_one(draws.uniforms[2], L)
    return draw_one(draws.uniforms[2], L + 1)


@by_type
def _exploited(knobs: Coin, evidence: Evidence, place: Place, draws: Draws) -> tuple[Found, int]:
    """The action that the estimates say is best, and what is measured along it."""
    raise NotImplementedError


@kernel
def _best_projected(
    knobs: EpsilonGreedyKnobs, evidence: Evidence, place: Place, draws: Draws
) -> tuple[Found, int]:
    return best_along(place, plug_in(evidence.centre, knobs.rank), draws.normals), TARGET


@kernel
def _best_within(
    knobs: EpsilonGreedyWithinKnobs, evidence: Evidence, place: Place, draws: Draws
) -> tuple[Found, int]:
    """Every round measures a random vector: the target alone, as in the paper, shows no side effect."""
    d = evidence.centre.shape[1] - (1 if knobs.has_levels else 0)
    best = best_in(place, knobs.limits, evidence.centre[:, :d].copy())
    return best, draw_one(draws.uniforms[2], evidence.counts.size)


FAMILIES[_exploited].update(
    {EpsilonGreedyKnobs: _best_projected, EpsilonGreedyWithinKnobs: _best_within}
)


@kernel
def _choose(knobs: Coin, learned: Learned, offer: Offer) -> Choice:
    evidence, draws = learned.evidence, offer.draws
    if _explores(knobs, evidence, draws):
        found = any_in(offer.place, draws.uniforms[1], draws.normals)
        return chosen(found, _explored_index(knobs, evidence, draws), EXPLORE, offer.action)
    best, index = _exploited(knobs, evidence, offer.place, draws)
    return chosen(best, index, PLAY, offer.action)


register(EpsilonGreedyKnobs, _choose)
register(EpsilonGreedyWithinKnobs, _choose)


@dataclass(frozen=True, slots=True, repr=False)
class EpsilonGreedy(BuiltinPolicy):
    """Explore with probability min(1, epsilon / sqrt(t)); otherwise trust the estimates.

    Deviations from the paper: the text's epsilon / sqrt(t) and not the pseudocode's constant; by
    default exploration measures any vector, target included (the paper: a protected one, which
    `explore_index="protected"` gives), since otherwise the target is seen along exploited arms only.
    With tolerances it plays within them: no rank is needed, and every round measures a uniformly drawn
    vector.

    problem         the problem to play
    epsilon         how much it explores
    rho             regulariser of the estimates
    explore_index   what exploration measures: "all" or "protected"
    lock_in         action of the lock-in monitor, as in ProtectedLinUCB: "warn" or "explore"
    patience        rounds with one arm until the monitor looks

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.EpsilonGreedy(world.problem), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    epsilon: float = 1.0
    rho: float = 0.1
    explore_index: str = "all"
    lock_in: str = "warn"
    patience: int = 50
    knobs: EpsilonGreedyKnobs | EpsilonGreedyWithinKnobs = field(
        init=False, repr=False, compare=False
    )

    plays_solids = True
    draws_arms = True

    def __post_init__(self) -> None:
        check_equal_costs(self.problem, "EpsilonGreedy")
        check_positive("epsilon", self.epsilon)
        check_choice("explore_index", self.explore_index, ("all", "protected"))
        confidence = confidence_for(
            self.problem, rho=self.rho, delta=0.5, needs_noise=False, follows_tolerances=True
        )
        epsilon, protected_only = float(self.epsilon), self.explore_index == "protected"
        monitor_for(self.lock_in, self.patience)
        limits = self.problem.limits
        knobs: EpsilonGreedyKnobs | EpsilonGreedyWithinKnobs
        if limits is not None:
            knobs = EpsilonGreedyWithinKnobs(
                metric=PRECISION,
                confidence=confidence,
                limits=limits,
                epsilon=epsilon,
                protected_only=protected_only,
                has_levels=self.problem.intercept,
            )
        else:
            rank = known_rank(self.problem, "EpsilonGreedy")
            knobs = EpsilonGreedyKnobs(
                metric=PRECISION,
                confidence=confidence,
                rank=rank,
                epsilon=epsilon,
                protected_only=protected_only,
            )
        object.__setattr__(self, "knobs", knobs)

    def watch(self, learned: Learned) -> Watch | None:
        """The lock-in monitor; within tolerances there is none."""
        if isinstance(self.knobs, EpsilonGreedyWithinKnobs):
            return None
        monitor = monitor_for(self.lock_in, self.patience)
        return Watch(monitor, self.knobs.confidence, learned.evidence, self.knobs.rank)

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """A coin, an arm and an index; on the ball a direction."""
        return 3, self.problem.dim if on_ball else 0
