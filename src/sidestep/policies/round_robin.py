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
from sidestep.core.arrays import IntArray
from sidestep.core.confidence import Confidence, ellipsoids, radius
from sidestep.core.core_set import best_rows, write_best_rows
from sidestep.core.estimator import Evidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import lowest_argmax, total
from sidestep.core.optimism_arms import SURROGATES, Surrogate, optimistic_values
from sidestep.core.optimism_ball import optimistic_action
from sidestep.core.problem import TARGET, Problem
from sidestep.core.validation import check_choice, check_positive, check_probability
from sidestep.policies.base import EXPLORE, PLAY, State
from sidestep.policies.builtin import (
    BuiltinPolicy,
    Choice,
    ChoiceOnBall,
    Draws,
    Watch,
    monitor_for,
    random_direction,
    register,
)
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for, known_rank

TOLERANCE = 1e-2


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


@kernel(refcounts=False)
def _on_arms(
    knobs: RoundRobinKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    index = _turn(knobs.exponent, evidence.counts, draws.uniforms[0])
    confidence, values = knobs.confidence, forms.workspace.values[: menu.squared.size]
    if index != TARGET:
        set_radius = radius(confidence, evidence, index)
        upper_means(
            menu.columns, evidence.centre[index], evidence.inverse[index], set_radius, values
        )
        return Choice(lowest_argmax(values), index, EXPLORE, np.nan)
    n = write_best_rows(evidence.centre, knobs.size, forms.workspace.rows)
    optimistic_values(knobs.surrogate, confidence, evidence, menu, forms, n)
    arm = lowest_argmax(values)
    return Choice(arm, TARGET, PLAY, values[arm])


@kernel
def _on_ball(
    knobs: RoundRobinKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    index = _turn(knobs.exponent, evidence.counts, draws.uniforms[0])
    d = evidence.centre.shape[1]
    rows = best_rows(evidence.centre, knobs.size if index == TARGET else 0)
    if index != TARGET:
        rows[0] = index
    phase = PLAY if index == TARGET else EXPLORE
    action, value, bound = random_direction(draws.normals), 0.0, 0.0
    if rows.size <= d:
        sets = ellipsoids(knobs.confidence, evidence, rows)
        best, value, bound = optimistic_action(sets.centre, sets.inverse, sets.radius, TOLERANCE)
        if total(evidence.counts, 0) > 0:
            action = best
    return ChoiceOnBall(action, index, phase, value, bound)


register(RoundRobinKnobs, _on_arms, _on_ball)


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
            SURROGATES[self.surrogate].metric,
            confidence,
            SURROGATES[self.surrogate],
            size,
            float(self.exponent),
        )
        monitor_for(self.lock_in, self.patience)
        object.__setattr__(self, "knobs", knobs)

    def watch(self, state: State) -> Watch | None:
        """The lock-in monitor."""
        monitor = monitor_for(self.lock_in, self.patience)
        return Watch(monitor, self.knobs.confidence, state.evidence, self.knobs.size)

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """A coin; on the ball also a direction, for the first round."""
        return 1, self.problem.dim if on_ball else 0
