"""Round Robin LinUCB (Alg. "Round Robin, epsilon greedy linUCB"): protected vectors take turns.

With probability t^-exponent a round is for one protected vector, each in turn, and plays OFUL on it: note
that this **maximises** that side effect. The other rounds play Protected LinUCB's action and measure the
target. Exponent 1/2 is the paper's Round Robin LinUCB, 1/4 its LinUCB2.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from sidestep.core.arrays import IntArray
from sidestep.core.confidence import Confidence
from sidestep.core.core_set import write_best_rows
from sidestep.core.jit import kernel
from sidestep.core.linalg import total
from sidestep.core.optimism import most_plausible_in, optimistic_in
from sidestep.core.optimism_arms import SURROGATES, Estimates, Surrogate
from sidestep.core.problem import TARGET, Problem
from sidestep.core.validation import check_choice, check_positive, check_probability
from sidestep.policies.base import EXPLORE, PLAY
from sidestep.policies.builtin import BuiltinPolicy, Choice, Offer, Watch, monitor_for, register
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


@kernel(refcounts=False)
def _choose(knobs: RoundRobinKnobs, learned: Learned, offer: Offer) -> Choice:
    evidence, forms, normals = learned.evidence, offer.forms, offer.draws.normals
    estimates = Estimates(knobs.confidence, evidence, forms)
    index = _turn(knobs.exponent, evidence.counts, offer.draws.uniforms[0])
    if index != TARGET:
        found = most_plausible_in(offer.place, estimates, index, normals, offer.action)
        return Choice(found.arm, index, EXPLORE, found.value, found.bound)
    n = write_best_rows(evidence.centre, knobs.size, forms.workspace.rows)
    best = optimistic_in(offer.place, knobs.surrogate, estimates, n, normals, offer.action)
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
