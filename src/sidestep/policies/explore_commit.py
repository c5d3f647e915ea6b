"""Explore, then commit: play random actions for some rounds, then always the estimated best."""

from dataclasses import dataclass, field
from typing import NamedTuple

from sidestep.core.arm_forms import PRECISION
from sidestep.core.best_action import any_in, best_along
from sidestep.core.confidence import Confidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import plug_in, total
from sidestep.core.problem import TARGET, Problem
from sidestep.core.validation import check_integer
from sidestep.policies.base import EXPLORE, PLAY
from sidestep.policies.builtin import BuiltinPolicy, Choice, Offer, chosen, register
from sidestep.policies.shared_knobs import check_equal_costs, confidence_for, known_rank
from sidestep.policies.state import Learned


class ExploreThenCommitKnobs(NamedTuple):
    """Explore-then-commit as compiled code reads it."""

    metric: int
    confidence: Confidence
    rank: int
    rounds: int


@kernel
def _choose(
    knobs: ExploreThenCommitKnobs,
    learned: Learned,
    offer: Offer,
) -> Choice:
    counts, place, draws = learned.evidence.counts, offer.place, offer.draws
    seen = total(counts, 0)
    if seen < knobs.rounds:
        found = any_in(place, draws.uniforms[0], draws.normals)
        return chosen(found, seen % counts.size, EXPLORE, offer.action)
    estimated = plug_in(learned.evidence.centre, knobs.rank)
    return chosen(best_along(place, estimated, draws.normals), TARGET, PLAY, offer.action)


register(ExploreThenCommitKnobs, _choose)


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
