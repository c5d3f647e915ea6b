"""Estimate of the number of rounds until the expected loss of stopping is below a threshold.

Worlds are drawn from the posterior, and the policy continues in each of them: it asks, the feedback is
drawn with the estimated noise, and it learns. After some of the rounds the expected loss of stopping
(`Recommendation.loss.mean`) is computed. The result for a world is the first round at which this loss is
below `matters`. No environment is used, only the posterior.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions
from sidestep.core.arrays import FloatArray
from sidestep.core.jit import ieee_arithmetic
from sidestep.core.validation import check_integer, check_positive
from sidestep.policies.advice.rank_draws import draw_vectors
from sidestep.policies.advice.recommend import checked_belief, recommend
from sidestep.policies.builtin import BuiltinPolicy
from sidestep.policies.state import State

Progress = Callable[[int, int], None]

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class RoundsLeft:
    """Rounds until stopping gives up less than what matters, over worlds drawn from the posterior.

    Another world like these lies between low and high with probability (n - 1) / (n + 1), n the number of
    worlds: 7 times in 9 for eight of them.

    estimate   the median
    low        the fewest
    high       the most
    rounds     of every world, ascending
    at_most    where a world was given up: numbers that reach it may be larger

    >>> import sidestep as ss
    >>> ss.RoundsLeft(estimate=7, low=2, high=20, rounds=(2, 7, 20), at_most=20).open
    1
    """

    estimate: int
    low: int
    high: int
    rounds: tuple[int, ...]
    at_most: int

    @property
    def open(self) -> int:
        """In how many worlds the loss was still too large after `at_most` rounds."""
        return sum(rounds >= self.at_most for rounds in self.rounds)


class _World:
    """A world drawn from the posterior; it produces feedback."""

    def __init__(self, vectors: FloatArray, noise: FloatArray, rng: Generator) -> None:
        self.vectors, self.noise, self.rng = vectors, noise, rng

    def next_state(self, policy: BuiltinPolicy, state: State, actions: Actions) -> State:
        """The state after one more round here."""
        with ieee_arithmetic():
            posteriors = policy.posteriors(state.evidence)
            query = policy.decide(state.learned, posteriors, actions, self.rng).query
        seen = self.vectors[query.index] @ policy.problem.lifted(np.array(query.action))
        feedback = seen + self.noise[query.index] * self.rng.standard_normal()
        bound = policy.problem.feedback_bound
        return policy.tell(state, query, float(np.clip(feedback, -bound, bound)))


def rounds_left(
    policy: BuiltinPolicy,
    state: State,
    actions: Actions,
    *,
    matters: float,
    seed: int = 0,
    worlds: int = 8,
    at_most: int = 200,
    progress: Progress | None = None,
) -> RoundsLeft:
    """Estimate the number of rounds until stopping gives up less than `matters` on average.

    policy     the policy
    state      its state
    actions    the set of actions
    matters    smallest loss that is worth another round
    seed       seed of the simulated worlds
    worlds     number of worlds to draw from the posterior and simulate
    at_most    rounds after which a simulation stops
    progress   called with (worlds done, worlds)

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> policy = ss.DirectedThompson(world.problem)
    >>> left = ss.rounds_left(
    ...     policy, policy.init(), world.actions, matters=0.1, worlds=2, at_most=16
    ... )
    >>> 0 < left.low <= left.high <= 16
    True
    """
    check_positive("matters", matters)
    check_integer("worlds", worlds, low=2)
    check_integer("at_most", at_most, low=1)
    belief = checked_belief(policy, state, LEVEL)
    actions = policy.admitted(actions)
    if _gives_up(policy, state, actions) < matters:
        return RoundsLeft(0, 0, 0, (0,) * worlds, at_most)
    rng = np.random.default_rng([seed, state.round])
    found = []
    drawn = draw_vectors(belief.measured, rng, 2 * worlds)[:worlds]  # the others mirror these
    for vectors in drawn:
        world = _World(vectors, belief.measured.noise, rng.spawn(1)[0])
        found.append(_rounds_in(world, policy, state, actions, matters, at_most))
        if progress is not None:
            progress(len(found), worlds)
    found.sort()
    return RoundsLeft(int(np.median(found)), found[0], found[-1], tuple(found), at_most)


def _rounds_in(
    world: _World,
    policy: BuiltinPolicy,
    state: State,
    actions: Actions,
    matters: float,
    at_most: int,
) -> int:
    """Rounds needed in one world: the loss is checked after 1, 2, 4, ... rounds, then by bisection."""
    states, looked_at = [state], 0
    while looked_at < at_most:
        due = min(max(2 * looked_at, 1), at_most)
        while len(states) <= due:
            states.append(world.next_state(policy, states[-1], actions))
        if _gives_up(policy, states[due], actions) < matters:
            return _first(lambda n: _gives_up(policy, states[n], actions) < matters, looked_at, due)
        looked_at = due
    return at_most


def _first(is_enough: Callable[[int], bool], low: int, high: int) -> int:
    """Bisection for the first number in (low, high] that is enough; `high` is known to be enough."""
    while high - low > max(1, high // 16):  # to one part in sixteen: worlds differ by more
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _gives_up(policy: BuiltinPolicy, state: State, actions: Actions) -> float:
    """Expected loss of stopping in this state."""
    return recommend(policy, state, actions, LEVEL).loss.mean
