"""How the Thompson players choose where tolerances are told.

Over finitely many arms this is a linear bandit with L+1 outcomes: the value of an action depends on its
own effects alone, which measuring it shows. So there is no blind spot to pay for, and the rule is short:

- draw every vector from its posterior, with `spread` times its standard deviation
- play the best action of the draw, unless its price is too high: what it is expected to lose against the
  best expected action. What costs up to kappa drawn standard deviations of its value is always played,
  what costs k times that in one round of k^2
- measure the outcome that takes most off the variance of its value: the target, or a protected outcome
  that may yet be beyond its limit, by its penalty

With `caution` only what is within every tolerance with at least that posterior probability is played,
or the action that is known to be safe (core/caution.py). No price is asked for then: at first the
baseline has the largest expected value, and would be played for ever. Where something else was wanted
the phase says "cautious": what qualifies is played, and measured there is what tells most of what was
wanted. Where nothing but the safe action qualifies it says "held": it asks for leave, for Decision.rival.

Where levels are learned, measuring an action shows its level and its effect together: then there is a
blind spot, and an arm that tells the two apart, such as the baseline, is bought as in DirectedThompson.

ProtectedThompson draws with the whole spread and asks for no price. DirectedThompson draws with less: a
penalty of many tolerances is a steep price for every draw that goes beyond them.
"""

from typing import Any, NamedTuple

import numpy as np

from sidestep.core.actions import Actions, Arms
from sidestep.core.aims import expected_within, steepness_within, value_within
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.caution import Caution, Wanted, cautious_in, chance_within
from sidestep.core.checks import is_finite, shown
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Forms, Menu
from sidestep.core.geometry import scaled
from sidestep.core.kernels import kernel
from sidestep.core.levels import measured, padded
from sidestep.core.places import (
    Found,
    Place,
    Telling,
    best_expected_in,
    best_in,
    most_telling_in,
)
from sidestep.core.posterior import Posterior, Prior, draw, posteriors_of
from sidestep.core.problem import Problem, Query, checked_parts
from sidestep.core.solids import Body
from sidestep.core.telling import least_known, most_telling, variance
from sidestep.core.tolerances import Limits
from sidestep.errors import InputError
from sidestep.policies.base import CAUTIOUS, EXPLORE, HELD, PLAY
from sidestep.policies.dispatch import Choice, ChoiceOnBall, Draws, register

FAIR = 0.05  # share of the contested variance that one result should take off
INFORMATIVE = 0.5  # and of what the most telling one takes off


class WithinKnobs(NamedTuple):
    """A Thompson player within tolerances, as its kernels read it."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # plays no part
    costs: FloatArray  # (L+1,)
    limits: Limits
    spread: float
    kappa: float  # infinite: no price is too high
    is_directed: bool  # else what is least known is measured
    has_levels: bool  # of what is learned the last coordinate is the level, which no aim sees
    caution: Caution


def caution_for(problem: Problem, level: float, safe: Any) -> Caution:
    """How cautious a policy is, from knobs that are checked here."""
    if not is_finite(level) or not 0 <= level < 1:
        raise InputError(f"caution must lie in 0..1, and below 1, got {shown(level)}")
    if level > 0 and problem.tolerance is None:
        raise InputError(f"caution needs the problem's tolerance, got None and caution={level}")
    start: FloatArray = np.zeros(problem.dim)
    if safe is not None:
        start, _ = checked_parts(problem, Query(safe, 0))
    return Caution(float(level), start)


def check_start(knobs: object, actions: Actions) -> None:
    """Raise where caution has nowhere to start in a solid; arms may come and go."""
    if not isinstance(knobs, WithinKnobs) or knobs.caution.level == 0.0:
        return
    if not isinstance(actions, Arms) and not actions.contains(knobs.caution.safe):
        raise InputError(
            f"safe must be an action of the {type(actions).__name__}, got "
            f"{shown(knobs.caution.safe.tolist())}"
        )


@kernel
def slopes_within(limits: Limits, posterior: Posterior, action: FloatArray) -> FloatArray:
    """How the value of an action answers to every vector, by its steepness; (L+1, d)."""
    steepness = steepness_within(limits, posterior, action)
    slopes = np.empty((steepness.size, action.size))
    for v in range(steepness.size):
        for j in range(action.size):
            slopes[v, j] = steepness[v] * action[j]
    return slopes


@kernel
def _most_telling(
    knobs: WithinKnobs, posterior: Posterior, slopes: FloatArray, action: FloatArray
) -> int:
    """The vector to measure along an action whose value has these slopes in the effects, (L+1, d)."""
    width = posterior.mean.shape[1]
    a = measured(action, width, knobs.confidence.action_bound)
    if not knobs.is_directed:
        return least_known(posterior, knobs.costs, a)
    index, gain = most_telling(posterior, knobs.costs, padded(slopes, width), a)
    if gain <= 0.0 and knobs.caution.level > 0.0:  # the baseline shows its levels only
        return least_known(posterior, knobs.costs, a)
    return index


@kernel
def _purchase(
    knobs: WithinKnobs,
    known: tuple[Posterior, Posterior],
    place: Place,
    slopes: FloatArray,
    played: Found,
    draws: Draws,
) -> tuple[bool, Telling]:
    """Whether to play what tells a level from an effect, and what; known: with levels, and without.

    Only where the action itself is uninformative: one result there takes no fair share off the variance
    of its value, and another action takes far more. What costs more than kappa standard deviations is
    bought the more rarely.
    """
    posterior, effects = known
    d, contested = slopes.shape[1], variance(effects, slopes)
    seen = padded(slopes, posterior.mean.shape[1])
    here = most_telling(posterior, knobs.costs, seen, played.action)[1]
    told = most_telling_in(place, posterior, knobs.costs, slopes, played.action[:d])
    if here >= FAIR * contested or here >= INFORMATIVE * told.gain:
        return False, told
    if knobs.kappa == np.inf:
        return True, told
    price = expected_within(knobs.limits, effects, played.action[:d])
    price -= expected_within(knobs.limits, effects, told.action[:d])
    return price * np.sqrt(draws.uniforms[0]) <= knobs.kappa * np.sqrt(contested), told


@kernel
def _choose(
    knobs: WithinKnobs, evidence: Evidence, place: Place, draws: Draws
) -> tuple[Found, int, int]:
    """What is played, among arms or in a solid, which vector is measured, and the phase."""
    posterior, effects = posteriors_of(knobs.prior, evidence, knobs.has_levels)
    limits = knobs.limits
    d = effects.mean.shape[1]
    drawn = draw(effects, scaled(knobs.spread, draws.normals), 1)[0]
    played = best_in(place, limits, drawn)
    slopes = slopes_within(limits, effects, played.action[:d])
    if knobs.kappa < np.inf and knobs.caution.level == 0.0:
        leader = best_expected_in(place, limits, effects)
        price = leader.value - expected_within(limits, effects, played.action[:d])
        worth = knobs.kappa * knobs.spread * np.sqrt(variance(effects, slopes))
        if price * np.sqrt(draws.uniforms[0]) > worth:
            played = leader
            slopes = slopes_within(limits, effects, played.action[:d])
    phase = PLAY
    if knobs.has_levels and knobs.caution.level == 0.0 and played.arm >= 0:
        bought, told = _purchase(knobs, (posterior, effects), place, slopes, played, draws)
        if bought:
            value = expected_within(limits, effects, told.action[:d])
            return Found(told.action, told.arm, value), told.vector, EXPLORE
    if knobs.caution.level > 0.0:
        chance = chance_within(limits, effects, played.action[:d])
        if chance < knobs.caution.level:
            value = value_within(limits, drawn, played.action[:d])
            wanted = Wanted(drawn, padded(slopes, posterior.mean.shape[1]), value, knobs.costs)
            played, others = cautious_in(place, limits, (effects, posterior), wanted, knobs.caution)
            phase = CAUTIOUS if others else HELD
    return played, _most_telling(knobs, posterior, slopes, played.action), phase


@kernel
def _on_arms(
    knobs: WithinKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    played, index, phase = _choose(knobs, evidence, menu, draws)
    return Choice(played.arm, index, phase, played.value)


@kernel
def _on_ball(
    knobs: WithinKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    played, index, phase = _choose(knobs, evidence, body, draws)
    return ChoiceOnBall(played.action, index, phase, played.value, np.nan)


register(WithinKnobs, _on_arms, _on_ball)
