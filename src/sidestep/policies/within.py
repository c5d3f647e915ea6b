"""How the Thompson players choose where tolerances are told.

Over finitely many arms this is a linear bandit with L+1 outcomes: the value of an action depends on its
own effects alone, which measuring it shows. So there is no blind spot to pay for, and the rule is short:

- draw every vector from its posterior
- ProtectedThompson plays the best action of the draw
- DirectedThompson (over arms InformationDirected too) plays the best expected action, the leader,
  unless the winner of one of a few draws earns its price: what it is expected to lose in a round against
  the leader. n results of the winner cost n times that. Then the better of the two is played: what this
  gains in a round, times the rounds ahead, must be more. Of several winners the one with the largest net
  gain for a result is played
- measure the outcome that takes most off the variance of its value: the target, or a protected outcome
  that may yet be beyond its limit, by its penalty

Nobody says how many rounds are ahead. They are taken for as many as were played, and for no fewer than
it takes to learn what matters (`rounds_ahead`): a player that waited until the rounds played repay a
question would ask it late, when fewer rounds are left to profit.

With `caution` only what is within every tolerance with at least that posterior probability is played,
or the action that is known to be safe (core/caution.py). No price is asked for then: at first the
baseline has the largest expected value, and would be played for ever. Where something else was wanted
the phase says "cautious": what qualifies is played, and measured there is what tells most of what was
wanted. Where nothing but the safe action qualifies it says "held": it asks for leave, for Decision.rival.
Then DirectedThompson draws with less than the whole spread: what is wanted should not be far from safe.

Where levels are learned, measuring an action shows its level and its effect together: then there is a
blind spot, and an arm that tells the two apart, such as the baseline, is bought as in DirectedThompson.
There DirectedThompson plays the winner of one draw with part of the spread, unless it costs too much:
what costs up to kappa drawn standard deviations of its value is always played, what costs k times that in
one round of k^2. Weighing draws by what they gain earns more in a round and teaches less: after 60 rounds
simulated clinics would give up 73% of the best reachable effect instead of 42%.
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
from sidestep.core.gaussian import expected_gain
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

CHALLENGERS = 4  # draws whose winners are weighed; with 2 or 8 regret is the same
SURE = 1.96  # standard deviations to which an effect should be known: 95%
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
    spread: float  # of a draw, in standard deviations
    challengers: int  # draws whose winners must earn their price; 0: the winner of one is played
    kappa: (
        float  # where levels are learned, of a draw and of what tells the two apart; infinite: any
    )
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
def rounds_ahead(knobs: WithinKnobs, posterior: Posterior, played: float) -> float:
    """Rounds within which a question must earn its price: as many as were played, or it takes to learn.

    An error of M A / penalty_i in effect i costs as much as the target can move. To know an effect so
    well, with 95%, takes (1.96 penalty_i R_i / (M A))^2 results along each of d directions.
    """
    needed = (posterior.noise[0] / knobs.prior.largest) ** 2
    for i in range(knobs.limits.penalty.size):
        needed += (knobs.limits.penalty[i] * posterior.noise[i + 1] / knobs.prior.largest) ** 2
    return max(played, SURE**2 * knobs.prior.dim * needed)


@kernel
def _best_investment(
    knobs: WithinKnobs,
    known: tuple[Posterior, Posterior],
    place: Place,
    drawn: FloatArray,
    ahead: float,
) -> Found:
    """The best expected action, or the winner of a draw that earns most beyond its price."""
    leader = best_expected_in(place, knobs.limits, known[1])
    best, most = leader, 0.0
    for n in range(drawn.shape[0]):
        challenger = best_in(place, knobs.limits, drawn[n])
        if challenger.arm == leader.arm and leader.arm >= 0:
            continue
        net = net_gain(knobs, known, leader, challenger, ahead)
        if net > most * (1.0 + 1e-10):
            best, most = challenger, net
    return best


@kernel
def net_gain(
    knobs: WithinKnobs,
    known: tuple[Posterior, Posterior],
    leader: Found,
    challenger: Found,
    ahead: float,
) -> float:
    """What a result of the challenger gains over the rounds ahead, less its price; at least 0.

    Of n = 1, 2, 4, ... results the number that gains most for each. They take n q / (1 - q + n q) off the
    variance of the contest, where one takes the share q; the mean of the contest is the price. Both
    actions are taken to go beyond a tolerance on the same side, if they do.
    """
    posterior, effects = known
    d, width = effects.mean.shape[1], posterior.mean.shape[1]
    slopes = slopes_within(knobs.limits, effects, challenger.action[:d])
    slopes -= slopes_within(knobs.limits, effects, leader.action[:d])
    contested = variance(effects, slopes)
    if not contested > 0.0:
        return 0.0
    a = measured(challenger.action, width, knobs.confidence.action_bound)
    told = most_telling(posterior, knobs.costs, padded(slopes, width), a)[1]
    share = min(told / contested, 1.0)
    price = leader.value - expected_within(knobs.limits, effects, challenger.action[:d])
    most, results = 0.0, 1.0
    while results <= max(ahead, 1.0):
        taken = results * share / (1.0 + (results - 1.0) * share)
        gain = ahead * expected_gain(price, np.sqrt(contested * taken))
        most = max(most, gain / results - price)
        results *= 2.0
    return most


@kernel
def _choose(
    knobs: WithinKnobs, evidence: Evidence, place: Place, draws: Draws
) -> tuple[Found, int, int]:
    """What is played, among arms or in a solid, which vector is measured, and the phase."""
    posterior, effects = posteriors_of(knobs.prior, evidence, knobs.has_levels)
    limits = knobs.limits
    d = effects.mean.shape[1]
    drawn = draw(effects, scaled(knobs.spread, draws.normals), max(knobs.challengers, 1))
    if knobs.challengers > 0:
        ahead = rounds_ahead(knobs, posterior, float(np.sum(evidence.weight)))
        played = _best_investment(knobs, (posterior, effects), place, drawn, ahead)
    else:
        played = best_in(place, limits, drawn[0])
    slopes = slopes_within(limits, effects, played.action[:d])
    if knobs.challengers == 0 and knobs.kappa < np.inf and knobs.caution.level == 0.0:
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
            value = value_within(limits, drawn[0], played.action[:d])
            wanted = Wanted(drawn[0], padded(slopes, posterior.mean.shape[1]), value, knobs.costs)
            played, others = cautious_in(place, limits, (effects, posterior), wanted, knobs.caution)
            phase = CAUTIOUS if others else HELD
    return played, _most_telling(knobs, posterior, slopes, played.action), phase


@kernel
def on_arms_within(
    knobs: WithinKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    """The arm and the vector to measure; DirectedThompson and InformationDirected share this rule."""
    played, index, phase = _choose(knobs, evidence, menu, draws)
    return Choice(played.arm, index, phase, played.value)


@kernel
def _on_ball(
    knobs: WithinKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    played, index, phase = _choose(knobs, evidence, body, draws)
    return ChoiceOnBall(played.action, index, phase, played.value, np.nan)


register(WithinKnobs, on_arms_within, _on_ball)
