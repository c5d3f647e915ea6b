"""How the Thompson policies choose when the problem has tolerances.

Over finitely many arms this is a linear bandit with L+1 outcomes. The value of an action depends only on
its own effects, and measuring the action shows them. So there are no blind spots, and the rule is short:

- Draw every vector from its posterior.
- ProtectedThompson plays the best action of the draw.
- DirectedThompson plays the action with the largest expected value, the leader, unless the best action of
  one of a few draws, a challenger, is worth its price. The price of a challenger is its expected loss per
  round against the leader, so n results cost n prices. After them the better of the two is played: the
  gain per round times the number of rounds ahead must exceed the cost. Of several challengers the one
  with the largest net gain per result is played. Over arms InformationDirected uses this rule too.
- Measure the outcome that reduces the variance of the action's value most: the target, or a protected
  outcome that may exceed its limit, weighted by its penalty. DirectedThompson weighs an outcome by the
  mean slope of the value in it, which leaves more measurements for the target than the root mean square.

The number of rounds ahead is that of the rounds left where `horizon` is told, until it is over. Otherwise
it is first the number of results that learning takes. It falls quickly, so that exploration comes first,
when most rounds are left in which it can pay. Later it is proportional to the number of rounds played
(`rounds_ahead`). With the rounds played alone, exploration would start late.

With `caution`, an action is played only if it is within every tolerance with at least that posterior
probability, or if it is known to be safe (core/caution.py). No price is compared then: at first the
baseline has the largest expected value and would be played forever. If the policy wanted another action,
the phase is "cautious"; the measurement then is the one most informative about the wanted action. If only
the safe action qualifies, the phase is "held", and Decision.rival is the action to ask permission for.
With caution, DirectedThompson draws with reduced spread, so that the wanted action is not far from safe.

Where levels are learned, a measurement shows the sum of level and effect. This is a blind spot: an action
that separates the two, such as the baseline, may be played for information, as in DirectedThompson. There
DirectedThompson plays the best action of one draw with reduced spread, unless it is too expensive: a
price up to kappa standard deviations of its value under that draw is always paid, a price k times as high
in one round out of k^2. Comparing challengers by net gain has less regret but learns less: after 60
rounds simulated clinics gave up 73% of the best reachable effect instead of 42% (with an earlier estimate
of the noise; it is 36% now, see docs/studies.md).
"""

from typing import Any, NamedTuple

import numpy as np

from sidestep.core.actions import Actions, Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.best_action import (
    Found,
    Place,
    Telling,
    best_expected_in,
    best_in,
    most_telling_in,
)
from sidestep.core.caution import Caution, Wanted, cautious_in, chance_within
from sidestep.core.confidence import Confidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import scaled
from sidestep.core.objective import expected_gain, expected_within, steepness_within, value_within
from sidestep.core.posterior import Posterior, Posteriors, Prior, draw, measured, padded
from sidestep.core.problem import Limits, Problem, Query, checked_parts
from sidestep.core.validation import is_finite, shown
from sidestep.core.variance_reduction import least_known, most_telling, variance
from sidestep.errors import InputError
from sidestep.policies.base import CAUTIOUS, EXPLORE, HELD, PLAY
from sidestep.policies.builtin import (
    BuiltinPolicy,
    Choice,
    Offer,
    chosen,
    register_given,
    rounds_left,
)
from sidestep.policies.state import Learned

CHALLENGERS = 4  # number of challengers; with 2 or 8 regret is the same
# The rounds ahead (`rounds_ahead`), chosen on 50 to 200 worlds of each of three kinds
# (docs/guardrails.md).
LEARNING = 120.0  # results that learning takes if noise, penalty and the largest effect are 1
FADING = 5.0  # rounds ahead fewer per round played, at first
EACH = 4.0  # rounds ahead, at least, for each coordinate of every vector
PLAYED = 0.6  # rounds ahead per round played, later
# An action is informative if one result removes this share of the variance of its value,
FAIR = 0.05
INFORMATIVE = 0.5  # or this share of what the most informative action would remove.


# How the played action is chosen (`WithinKnobs.rule`):
SAMPLE = 0  # the best action of one draw
PRICED_SAMPLE = 1  # the same, unless it costs too much against the leader
INVEST = 2  # the leader, or one of CHALLENGERS draws' best actions that is worth its price


class WithinKnobs(NamedTuple):
    """Knobs of a Thompson policy within tolerances, as its kernels read them."""

    metric: int
    confidence: Confidence
    prior: Prior
    costs: FloatArray  # (L+1,)
    limits: Limits
    rule: int  # SAMPLE, PRICED_SAMPLE or INVEST
    spread: float  # factor of the posterior spread in draws
    kappa: float  # price limit in standard deviations, with PRICED_SAMPLE
    is_directed: bool  # False: the least known outcome is measured
    has_levels: bool  # the last coordinate of every vector is its level, not part of the value
    caution: Caution
    horizon: float  # rounds that will be played; 0: not known


def averages_slopes(policy: BuiltinPolicy) -> bool:
    """Whether it weighs an outcome by the mean slope of the value, as INVEST does."""
    return isinstance(policy.knobs, WithinKnobs) and policy.knobs.rule == INVEST


def caution_for(problem: Problem, level: float, safe: Any) -> Caution:
    """The caution of a policy, after checking its knobs."""
    if not is_finite(level) or not 0 <= level < 1:
        raise InputError(f"caution must lie in 0..1, and below 1, got {shown(level)}")
    if level > 0 and problem.tolerance is None:
        raise InputError(f"caution needs the problem's tolerance, got None and caution={level}")
    start: FloatArray = np.zeros(problem.dim)
    if safe is not None:
        start, _ = checked_parts(problem, Query(safe, 0))
    return Caution(float(level), start)


def check_start(knobs: object, actions: Actions) -> None:
    """Raise if the safe action is not in the solid; arms are not checked, since they may change."""
    if not isinstance(knobs, WithinKnobs) or knobs.caution.level == 0.0:
        return
    if not isinstance(actions, Arms) and not actions.contains(knobs.caution.safe):
        raise InputError(
            f"safe must be an action of the {type(actions).__name__}, got "
            f"{shown(knobs.caution.safe.tolist())}"
        )


@kernel
def slopes_within(
    limits: Limits,
    posterior: Posterior,
    action: FloatArray,
    averaged: bool,  # noqa: FBT001  (kernels take every argument by position)
) -> FloatArray:
    """Gradient of the value of an action in every vector, by `steepness_within`; (L+1, d)."""
    steepness = steepness_within(limits, posterior, action, averaged)
    slopes = np.empty((steepness.size, action.size))
    for v in range(steepness.size):
        for j in range(action.size):
            slopes[v, j] = steepness[v] * action[j]
    return slopes


@kernel
def _most_telling(
    knobs: WithinKnobs, posterior: Posterior, slopes: FloatArray, action: FloatArray
) -> int:
    """The vector to measure along an action; slopes is the gradient of its value, (L+1, d)."""
    width = posterior.mean.shape[1]
    a = measured(action, width, knobs.confidence.action_bound)
    if not knobs.is_directed:
        return least_known(posterior, knobs.costs, a)
    index, gain = most_telling(posterior, knobs.costs, padded(slopes, width), a)
    if gain <= 0.0 and knobs.caution.level > 0.0:  # the baseline shows only the level
        return least_known(posterior, knobs.costs, a)
    return index


@kernel
def _purchase(
    knobs: WithinKnobs,
    posteriors: Posteriors,
    place: Place,
    slopes: FloatArray,
    played: Found,
    coin: float,
) -> tuple[bool, Telling]:
    """Whether to play an action that separates a level from an effect, and which one.

    Only if the chosen action is uninformative: one result of it removes less than FAIR of the variance of
    its value and less than INFORMATIVE of what the other action would remove. With PRICED_SAMPLE a
    price above kappa standard deviations is paid less often.
    """
    posterior, effects = posteriors.full, posteriors.effects
    d, contested = slopes.shape[1], variance(effects, slopes)
    seen = padded(slopes, posterior.mean.shape[1])
    here = most_telling(posterior, knobs.costs, seen, played.action)[1]
    most = most_telling_in(place, posterior, knobs.costs, slopes, played.action[:d])
    if here >= FAIR * contested or here >= INFORMATIVE * most.gain:
        return False, most
    if knobs.rule != PRICED_SAMPLE:
        return True, most
    price = expected_within(knobs.limits, effects, played.action[:d])
    price -= expected_within(knobs.limits, effects, most.action[:d])
    return price * np.sqrt(coin) <= knobs.kappa * np.sqrt(contested), most


@kernel
def rounds_ahead(knobs: WithinKnobs, posterior: Posterior, played: float) -> float:
    """Number of rounds in which exploration must pay, after so many rounds.

    An error of M A / penalty_i in effect i costs as much as the target can change. To know an effect this
    precisely takes a number of results proportional to (penalty_i R_i / (M A))^2, and half as many if the
    outcome is limited on one side only. With little noise learning takes some results for each coordinate
    of every vector.
    """
    limits = knobs.limits
    needed = (posterior.noise[0] / knobs.prior.largest) ** 2
    for i in range(limits.penalty.size):
        sides = 0.5 if np.isinf(limits.low[i]) or np.isinf(limits.high[i]) else 1.0
        needed += sides * (limits.penalty[i] * posterior.noise[i + 1] / knobs.prior.largest) ** 2
    unknowns = float((limits.penalty.size + 1) * knobs.prior.dim)
    return max(EACH * unknowns, PLAYED * played, LEARNING * needed - FADING * played)


@kernel
def _best_investment(
    knobs: WithinKnobs,
    posteriors: Posteriors,
    place: Place,
    drawn: FloatArray,
    ahead: float,
) -> Found:
    """The action with the best expected value, or the challenger with the largest net gain."""
    leader = best_expected_in(place, knobs.limits, posteriors.effects)
    best, most = leader, 0.0
    for n in range(drawn.shape[0]):
        challenger = best_in(place, knobs.limits, drawn[n])
        if challenger.arm == leader.arm and leader.arm >= 0:
            continue
        net = net_gain(knobs, posteriors, leader, challenger, ahead)
        if net > most * (1.0 + 1e-10):
            best, most = challenger, net
    return best


@kernel
def net_gain(
    knobs: WithinKnobs,
    posteriors: Posteriors,
    leader: Found,
    challenger: Found,
    ahead: float,
) -> float:
    """Net gain per result of the challenger: gain over the rounds ahead minus price; at least 0.

    It is maximised over the number of results n = 1, 2, 4, ... If one result removes the share q of the
    variance of the difference of the two values, n results remove n q / (1 - q + n q). The mean of the
    difference is the price. If both actions exceed a tolerance, it is assumed to be on the same side.
    """
    posterior, effects = posteriors.full, posteriors.effects
    d, width = effects.mean.shape[1], posterior.mean.shape[1]
    slopes = slopes_within(knobs.limits, effects, challenger.action[:d], False)
    slopes -= slopes_within(knobs.limits, effects, leader.action[:d], False)
    contested = variance(effects, slopes)
    if not contested > 0.0:
        return 0.0
    a = measured(challenger.action, width, knobs.confidence.action_bound)
    removed = most_telling(posterior, knobs.costs, padded(slopes, width), a)[1]
    share = min(removed / contested, 1.0)
    price = leader.value - expected_within(knobs.limits, effects, challenger.action[:d])
    most, results = 0.0, 1.0
    while results <= max(ahead, 1.0):
        taken = results * share / (1.0 + (results - 1.0) * share)
        gain = ahead * expected_gain(price, np.sqrt(contested * taken))
        most = max(most, gain / results - price)
        results *= 2.0
    return most


@kernel
def choose_within(
    knobs: WithinKnobs,
    posteriors: Posteriors,
    learned: Learned,
    offer: Offer,
) -> Choice:
    """What to do in a round, for both Thompson policies, and over arms for InformationDirected."""
    posterior, effects, evidence = posteriors.full, posteriors.effects, learned.evidence
    place, coin = offer.place, offer.draws.uniforms[0] if offer.draws.uniforms.size else 0.0
    limits, invests, is_cautious = knobs.limits, knobs.rule == INVEST, knobs.caution.level > 0.0
    d = effects.mean.shape[1]
    count = CHALLENGERS if invests else 1
    drawn = draw(effects, scaled(knobs.spread, offer.draws.normals), count)
    if invests:
        ahead = rounds_left(knobs.horizon, evidence)
        if ahead == 0.0:
            ahead = rounds_ahead(knobs, posterior, float(np.sum(evidence.weight)))
        played = _best_investment(knobs, posteriors, place, drawn, ahead)
    else:
        played = best_in(place, limits, drawn[0])
    slopes = slopes_within(limits, effects, played.action[:d], invests)
    if knobs.rule == PRICED_SAMPLE:
        leader = best_expected_in(place, limits, effects)
        price = leader.value - expected_within(limits, effects, played.action[:d])
        worth = knobs.kappa * knobs.spread * np.sqrt(variance(effects, slopes))
        if price * np.sqrt(coin) > worth:
            played = leader
            slopes = slopes_within(limits, effects, played.action[:d], False)
    phase = PLAY
    if knobs.has_levels and not is_cautious and played.arm >= 0:
        bought, most = _purchase(knobs, posteriors, place, slopes, played, coin)
        if bought:
            value = expected_within(limits, effects, most.action[:d])
            return chosen(Found(most.action, most.arm, value), most.vector, EXPLORE, offer.action)
    if is_cautious and chance_within(limits, effects, played.action[:d]) < knobs.caution.level:
        value = value_within(limits, drawn[0], played.action[:d])
        wanted = Wanted(drawn[0], padded(slopes, posterior.mean.shape[1]), value, knobs.costs)
        played, others = cautious_in(place, limits, posteriors, wanted, knobs.caution)
        phase = CAUTIOUS if others else HELD
    index = _most_telling(knobs, posterior, slopes, played.action)
    return chosen(played, index, phase, offer.action)


register_given(WithinKnobs, choose_within)
