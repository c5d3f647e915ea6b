"""Round Robin LinUCB (Alg. "Round Robin, epsilon greedy linUCB"): protected vectors take turns.

With probability t^-exponent a round is for one protected vector, each in turn, and plays OFUL on it: note
that this **maximises** that side effect. The other rounds play Protected LinUCB's action and measure the
target. Exponent 1/2 is the paper's Round Robin LinUCB, 1/4 its LinUCB2.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Body
from sidestep.core.arm_forms import Forms, Menu, upper_means
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.best_action import Place
from sidestep.core.confidence import Confidence, radius
from sidestep.core.core_set import write_best_rows
from sidestep.core.estimator import Evidence
from sidestep.core.jit import FAMILIES, by_type, kernel
from sidestep.core.linalg import lowest_argmax, total
from sidestep.core.optimism import Optimum, optimistic_in, optimistic_on_ball
from sidestep.core.optimism_arms import SURROGATES, Surrogate
from sidestep.core.problem import TARGET, Problem
from sidestep.core.validation import check_choice, check_positive, check_probability
from sidestep.policies.base import EXPLORE, PLAY
from sidestep.policies.builtin import (
    BuiltinPolicy,
    Choice,
    Draws,
    Watch,
    monitor_for,
    register,
)
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for, known_rank
from sidestep.policies.state import Learned


class RoundRobinKnobs(NamedTuple):
    """Round Robin LinUCB as compiled code reads it."""

    metric: int
    confidence: Confidence
    surrogate: Surrogate
    size: int
    exponent: float


@kernel
def _turn(exponent: float, counts: IntArray, uniform: float) -> int:
    """The protected vector whose turn it is, or 0 if this round is for the target."""
    L = counts.size - 1
    t = total(counts, 0) + 1
    if L == 0 or uniform >= t ** (-exponent):
        return TARGET
    turns = total(counts, 1)  # print starts its counter at 1 and adds before use (E7)
    return 1 + (turns + 2) % L


@by_type
def _explore(
    place: Place,
    confidence: Confidence,
    evidence: Evidence,
    forms: Forms,
    index: int,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    """The action with the largest plausible <a, theta_index>."""
    raise NotImplementedError


@kernel(refcounts=False)
def _explore_arms(
    menu: Menu,
    confidence: Confidence,
    evidence: Evidence,
    forms: Forms,
    index: int,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    values = forms.workspace.values[: menu.squared.size]
    centre, inverse = evidence.centre[index], evidence.inverse[index]
    upper_means(menu.columns, centre, inverse, radius(confidence, evidence, index), values)
    return Optimum(lowest_argmax(values), np.nan, np.nan)


@kernel(refcounts=False)
def _explore_ball(
    body: Body,
    confidence: Confidence,
    evidence: Evidence,
    forms: Forms,
    index: int,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    forms.workspace.rows[0] = index
    return optimistic_on_ball(body, confidence, evidence, forms, 1, normals, action)


FAMILIES[_explore].update({Menu: _explore_arms, Body: _explore_ball})


@kernel(refcounts=False)
def _choose(
    knobs: RoundRobinKnobs,
    learned: Learned,
    place: Place,
    forms: Forms,
    draws: Draws,
    action: FloatArray,
) -> Choice:
    evidence, confidence, normals = learned.evidence, knobs.confidence, draws.normals
    index = _turn(knobs.exponent, evidence.counts, draws.uniforms[0])
    if index != TARGET:
        found = _explore(place, confidence, evidence, forms, index, normals, action)
        return Choice(found.arm, index, EXPLORE, found.value, found.bound)
    n = write_best_rows(evidence.centre, knobs.size, forms.workspace.rows)
    best = optimistic_in(place, knobs.surrogate, confidence, evidence, forms, n, normals, action)
    return Choice(best.arm, TARGET, PLAY, best.value, best.bound)


register(RoundRobinKnobs, _choose)


@dataclass(frozen=True, slots=True, repr=False)
class RoundRobinLinUCB(BuiltinPolicy):
    """Dedicate round t to learning one protected vector with probability t^-exponent, in turn.

    problem     the problem to play
    exponent    0.5, or 0.25 for what the paper calls LinUCB2
    rho         regulariser of the estimates
    delta       probability that a confidence set fails
    surrogate   as in ProtectedLinUCB
    radius      of the sets: "logdet" or "printed"
    core_set    "best" projects out the best s vectors of the current estimates. The paper leaves the
                set open here; "all" L of them, where L > s, take out too much (E7)
    lock_in     action of the lock-in monitor, as in ProtectedLinUCB: "warn" or "explore"
    patience    rounds with one arm until the monitor looks

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.RoundRobinLinUCB(world.problem), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    exponent: float = 0.5
    rho: float = 0.1
    delta: float = 0.001
    surrogate: str = "corrected"
    radius: str = "logdet"
    core_set: str = "best"
    lock_in: str = "warn"
    patience: int = 50
    knobs: RoundRobinKnobs = field(init=False, repr=False, compare=False)

    solves_on_ball = True

    def __post_init__(self) -> None:
        check_equal_costs(self.problem, "RoundRobinLinUCB")
        check_positive("exponent", self.exponent)
        check_probability("delta", self.delta)
        check_choice("surrogate", self.surrogate, tuple(SURROGATES))
        check_choice("core_set", self.core_set, ("best", "all"))
        problem = self.problem
        size = problem.n_protected
        if self.core_set == "best":
            size = known_rank(problem, "RoundRobinLinUCB")
        confidence = confidence_for(
            problem, rho=self.rho, delta=self.delta / problem.n_vectors, radius=self.radius
        )
        knobs = RoundRobinKnobs(
            metric=SURROGATES[self.surrogate].metric,
            confidence=confidence,
            surrogate=SURROGATES[self.surrogate],
            size=size,
            exponent=float(self.exponent),
        )
        monitor_for(self.lock_in, self.patience)
        object.__setattr__(self, "knobs", knobs)

    def watch(self, learned: Learned) -> Watch | None:
        """The lock-in monitor."""
        monitor = monitor_for(self.lock_in, self.patience)
        return Watch(monitor, self.knobs.confidence, learned.evidence, self.knobs.size)

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """A coin; on the ball also a direction, for the first round."""
        return 1, self.problem.dim if on_ball else 0
