"""Thompson sampling with a directed query (ours, the default; no regret bound is known).

Draw twice. The winner of the first draw is played, and what is measured is what separates it from the
winner of the second: the vector that takes most off the variance of their comparison. Where neither of
the two can show what separates them, information is bought: another action that can is played instead, if
it is worth its price.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Actions
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.checks import check_positive
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Forms, Menu
from sidestep.core.geometry import dot
from sidestep.core.kernels import kernel
from sidestep.core.levels import measured, padded
from sidestep.core.places import Found, Place, Telling, best_along, most_telling_in
from sidestep.core.pooled import ranks
from sidestep.core.posterior import Posterior, Prior, draw, posteriors_of, row_weights
from sidestep.core.problem import Problem
from sidestep.core.sensitivity import Frame, gradient, pooled_frame
from sidestep.core.solids import Body
from sidestep.core.telling import most_telling, variance
from sidestep.policies import sampling
from sidestep.policies.base import EXPLORE, PLAY, State
from sidestep.policies.compiled_policy import CompiledPolicy
from sidestep.policies.dispatch import Choice, ChoiceOnBall, Draws, register
from sidestep.policies.within import CHALLENGERS, WithinKnobs, caution_for, check_start

PART_DRAW = (
    0.4  # share of the spread that is drawn where levels are learned or caution is asked for
)


class DirectedKnobs(NamedTuple):
    """DirectedThompson as compiled code reads it."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # s, or -1: core_set says
    costs: FloatArray  # (L+1,)
    informative: float  # eta
    share: float
    kappa: float
    has_levels: bool  # of what is learned the last coordinate is the level (core/levels.py)


@kernel
def _contest(view: Frame, action: FloatArray, other: FloatArray) -> tuple[FloatArray, bool]:
    """Gradient of what is in question, (L+1, d), and whether the two actions differ.

    They are compared by value: an arm may be listed twice.
    """
    slopes = gradient(view, action)
    differ = False
    for j in range(action.size):
        differ = differ or action[j] != other[j]
    if differ:
        rival = gradient(view, other)
        for v in range(slopes.shape[0]):
            for j in range(action.size):
                slopes[v, j] -= rival[v, j]
    return slopes, differ


@kernel
def _telling(
    knobs: DirectedKnobs, posterior: Posterior, slopes: FloatArray, action: FloatArray
) -> tuple[int, float]:
    """The vector that is best measured along an action, and what a unit of cost takes off."""
    width = posterior.mean.shape[1]
    a = measured(action, width, knobs.confidence.action_bound)
    return most_telling(posterior, knobs.costs, padded(slopes, width), a)


@kernel
def _buys(
    knobs: DirectedKnobs,
    contested: float,
    gain_here: float,
    gain_elsewhere: float,
    price: float,
    coin: float,
) -> bool:
    """Whether another action shows so much more that it is worth its price.

    What costs up to kappa standard deviations of the contest always is; what costs k times that is
    bought in one round of k^2, so that no contest is left undecided for good because it is dear.
    """
    affordable = price * np.sqrt(coin) <= knobs.kappa * np.sqrt(contested)
    return gain_here < knobs.informative * gain_elsewhere and affordable


@kernel
def _purchase(
    knobs: DirectedKnobs,
    posterior: Posterior,
    contest: tuple[FloatArray, FloatArray, FloatArray],
    place: Place,
    view: Frame,
    coin: float,
) -> tuple[bool, Telling, float]:
    """Whether information is bought, where, and for what price; contest: slopes and two actions.

    Only where the contenders are uninformative: neither takes a fair share off what is contested.
    """
    slopes, action, other = contest
    d, width = slopes.shape[1], posterior.mean.shape[1]
    contested = variance(posterior, padded(slopes, width))
    _, mine = _telling(knobs, posterior, slopes, action)
    _, rivals = _telling(knobs, posterior, slopes, other)
    gain_here = max(mine, rivals)
    if gain_here >= knobs.share * contested:
        return False, Telling(action, 0, 0, gain_here), 0.0
    best_information = most_telling_in(place, posterior, knobs.costs, slopes, view.rest)
    price = dot(action[:d], view.rest) - dot(best_information.action[:d], view.rest)
    bought = _buys(knobs, contested, gain_here, best_information.gain, price, coin)
    return bought, best_information, price


@kernel
def _choose(
    knobs: DirectedKnobs, evidence: Evidence, core_set: IntArray, place: Place, draws: Draws
) -> tuple[Found, int, int]:
    """What is played, among arms or in a solid, which vector is measured, and the phase."""
    posterior, effects = posteriors_of(knobs.prior, evidence, knobs.has_levels)
    drawn, weights = draw(effects, draws.normals, 2), row_weights(effects)
    d = drawn.shape[2]
    real, doubted = ranks(knobs.rank, core_set, evidence.counts)
    chance = draws.normals[:d]
    view = pooled_frame(drawn[0], weights, real)
    played = best_along(place, view.rest, chance)
    other = best_along(place, pooled_frame(drawn[1], weights, doubted).rest, chance).action
    slopes, differ = _contest(view, played.action[:d], other[:d])
    if differ:
        contest = (slopes, played.action, other)
        bought, told, price = _purchase(knobs, posterior, contest, place, view, draws.uniforms[0])
        if bought:
            return Found(told.action, told.arm, played.value - price), told.vector, EXPLORE
    if doubted > real:
        doubtful = pooled_frame(drawn[0], weights, doubted)
        slopes, _ = _contest(doubtful, played.action[:d], other[:d])
    index, _ = _telling(knobs, posterior, slopes, played.action)
    return played, index, PLAY


@kernel
def _on_arms(
    knobs: DirectedKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    played, index, phase = _choose(knobs, evidence, core_set, menu, draws)
    return Choice(played.arm, index, phase, played.value)


@kernel
def _on_ball(
    knobs: DirectedKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    played, index, phase = _choose(knobs, evidence, core_set, body, draws)
    return ChoiceOnBall(played.action, index, phase, played.value, np.nan)


register(DirectedKnobs, _on_arms, _on_ball)


@dataclass(frozen=True, slots=True, repr=False)
class DirectedThompson(CompiledPolicy):
    """Thompson sampling that measures what separates two draws, and buys information if needed.

    Within tolerances, where the problem tells some, it plays as within.py says: the best expected action,
    or the winner of a draw that earns its price; where levels are learned, the winner of part of a draw
    unless it costs too much. There `informative` and `share` play no part, and `kappa` only with levels.

    problem       the problem to play
    rho           regulariser of the estimates; None: that of the prior N(0, M^2/d)
    memory        rounds after which the weight of a measurement is 1/e; None: no forgetting
    delta         level of the tests for the rank, if a resolution is given instead of the rank
    informative   eta: a third action is played only where measuring at either contender removes less
                  than this fraction of the variance that measuring there would remove
    share         and less than this share of the variance of their comparison
    kappa         price of the third action, in standard deviations of that comparison, up to which it
                  is always paid; k times that is paid in one round of k^2
    caution, safe   within tolerances, as in ProtectedThompson

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.DirectedThompson(world.problem), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    rho: float | None = None
    memory: float | None = None
    delta: float = 0.05
    informative: float = 0.1
    share: float = 0.05
    kappa: float = 2.0
    caution: float = 0.0
    safe: Sequence[float] | None = None
    knobs: DirectedKnobs | WithinKnobs = field(init=False, repr=False, compare=False)

    plays_solids = True
    init = sampling.first_state
    rounds_until_review = sampling.rounds_until_rank_review
    review = sampling.review_rank
    spectrum = sampling.rank_spectrum
    judges_alone = sampling.judges_alone_within

    def __post_init__(self) -> None:
        for knob in ("informative", "share", "kappa"):
            check_positive(knob, getattr(self, knob))
        common = sampling.common_knobs(self.problem, self.rho, self.memory, self.delta)
        caution = caution_for(self.problem, self.caution, self.safe)
        prices = (float(self.informative), float(self.share), float(self.kappa))
        knobs: DirectedKnobs | WithinKnobs = DirectedKnobs(*common, *prices, self.problem.intercept)
        if self.problem.limits is not None:
            weighs = caution.level == 0.0 and not self.problem.intercept
            draws = (1.0, CHALLENGERS) if weighs else (PART_DRAW, 0)
            rule = (*draws, float(self.kappa), True, self.problem.intercept)
            knobs = WithinKnobs(*common, self.problem.limits, *rule, caution)
        object.__setattr__(self, "knobs", knobs)

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """The posterior draws, and what decides about a dear action."""
        draws = 2
        if isinstance(self.knobs, WithinKnobs):
            draws = max(draws, self.knobs.challengers)
        return 1, draws * self.problem.n_vectors * self.problem.width

    def check(self, state: State, actions: Actions) -> None:
        """Raise where caution has nowhere to start."""
        check_start(self.knobs, actions)
