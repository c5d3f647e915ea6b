"""What is not settled about a recommendation, and how many more results there would narrow it."""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.policies.belief import WIDER, Belief, belief_of, quantile
from sidestep.studies.advice import Effect, Narrowing
from sidestep.studies.card import OPEN
from sidestep.studies.mind import Mind
from sidestep.studies.outcomes import Outcome

LEVEL = 0.95
ENOUGH = 0.5  # of a tolerance: an interval that reaches so far to either side says something
MOST = 12  # results that a person is asked to think of


def doubt_of(outcome: Outcome, effect: Effect) -> float:
    """How unsettled an effect is: the width of its interval in tolerances, what is settled last."""
    width = (effect.high - effect.low) / _tolerance(outcome)
    return width if effect.verdict in (OPEN, None) else width / 1e6


def narrowings(
    mind: Mind, action: FloatArray, effects: dict[str, Effect], *, assured: bool | None
) -> tuple[Narrowing, ...]:
    """Every protected outcome that is not settled at an action, the least settled first.

    Where each alone is within limits, and all of them together are not yet, it is the widest one.
    """
    protected = sorted(
        mind.plan.protected, key=lambda outcome: -doubt_of(outcome, effects[outcome.name])
    )
    unsettled = [each for each in protected if effects[each.name].verdict == OPEN]
    if assured is False and not unsettled:
        unsettled = protected[:1]
    belief = belief_of(mind.policy, mind.state)
    return tuple(_narrowing(mind, belief, action, outcome) for outcome in unsettled)


def _narrowing(mind: Mind, belief: Belief, action: FloatArray, outcome: Outcome) -> Narrowing:
    """The fewest results that narrow an effect to half its tolerance; or what the most would do."""
    widths = [outcome.half * half for half in _halves(mind, belief, action, outcome.name)]
    wanted = ENOUGH * _tolerance(outcome)
    count = next((n for n, width in enumerate(widths, start=1) if width <= wanted), MOST)
    return Narrowing(outcome.name, count, widths[count - 1])


def _halves(mind: Mind, belief: Belief, action: FloatArray, name: str) -> list[float]:
    """Half the interval of an effect after 1..MOST more results there; in half-ranges.

    With C the covariance of a vector, g the action without and m with the coordinate of the level, n
    results take  n (g' C m)^2 / (R^2 + n m' C m)  off the variance g' C g.
    """
    v = mind.plan.index(name)
    measured = mind.policy.problem.lifted(action)
    slope = np.zeros(measured.size)
    slope[: action.size] = action
    precision = belief.information[v] + np.eye(measured.size) / belief.variance
    along = np.linalg.solve(precision, measured)
    now, shared = float(slope @ np.linalg.solve(precision, slope)), float(slope @ along)
    noise = float(belief.posterior.noise[v]) ** 2
    halves = []
    for n in range(1, MOST + 1):
        left = now - n * shared**2 / (noise + n * float(measured @ along))
        reach = quantile(belief._replace(freedom=belief.freedom + n), LEVEL)
        halves.append(WIDER * reach * float(np.sqrt(max(left, 0.0))))
    return halves


def _tolerance(outcome: Outcome) -> float:
    """The nearer limit; the outcome's scale where there is none."""
    limits = [abs(limit) for limit in outcome.limits if limit]
    return min(limits) if limits else outcome.half
