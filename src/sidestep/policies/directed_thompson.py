"""Thompson sampling with a directed query (ours, the default; no regret bound is known).

Draw all vectors twice from the posterior. The best action of the first draw is played. It is compared
with the best action of the second draw, the rival: the measured vector is the one that most reduces the
variance of the difference of their rewards. Where measuring along either of the two would not be
informative, information is bought: a third, more informative action is played instead, if its expected
loss is not too large.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Actions
from sidestep.core.arrays import FloatArray
from sidestep.core.best_action import Found, Place, Telling, best_along, most_telling_in
from sidestep.core.confidence import Confidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import dot
from sidestep.core.posterior import (
    Posterior,
    Posteriors,
    Prior,
    draw,
    measured,
    padded,
    row_weights,
)
from sidestep.core.problem import Problem
from sidestep.core.projection import Frame, gradient, pooled_frame
from sidestep.core.rank import doubted_rank
from sidestep.core.validation import check_positive
from sidestep.core.variance_reduction import most_telling, variance
from sidestep.policies import shared_knobs
from sidestep.policies.base import EXPLORE, PLAY, State
from sidestep.policies.builtin import (
    Choice,
    Offer,
    PosteriorPolicy,
    chosen,
    register_given,
    rounds_left,
)
from sidestep.policies.state import Learned
from sidestep.policies.thompson_tolerances import (
    CHALLENGERS,
    INVEST,
    PRICED_SAMPLE,
    SAMPLE,
    WithinKnobs,
    averages_slopes,
    caution_for,
    check_start,
)

# factor of the posterior spread in draws, where levels are learned or caution is set
PART_DRAW = 0.4


class DirectedKnobs(NamedTuple):
    """DirectedThompson as compiled code reads it."""

    metric: int
    confidence: Confidence
    prior: Prior
    costs: FloatArray  # of one measurement of each vector, relative; (L+1,)
    informative: float  # eta
    share: float
    kappa: float
    has_levels: bool  # whether the last learned coordinate is the level (core/posterior.py)
    horizon: float  # rounds that will be played; 0: not known


@kernel
def _contest(view: Frame, action: FloatArray, other: FloatArray) -> tuple[FloatArray, bool]:
    """Gradient of the difference of the two rewards, (L+1, d), and whether the two actions differ.

    If they are equal, the gradient is that of the action's own reward. The actions are compared by value,
    since an arm may be listed twice.
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
    """The most informative vector along an action, and the variance it removes per unit of cost."""
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
    left: float,
) -> bool:
    """Whether another action is enough more informative, and its price is paid in this round.

    A price of up to kappa standard deviations of the contest is always paid. A price of k times that is
    paid in one round of k^2, so that no contest stays undecided for good because it is expensive. Where
    the horizon is known, a price that the rounds left cannot repay is not paid.
    """
    affordable = price * np.sqrt(coin) <= knobs.kappa * np.sqrt(contested)
    if left > 0.0:  # a standard deviation of the contest is what a round loses at most, about
        remaining = np.sqrt(max(contested - gain_elsewhere, 0.0))
        affordable = affordable and price <= left * (np.sqrt(contested) - remaining)
    return gain_here < knobs.informative * gain_elsewhere and affordable


class Contest(NamedTuple):
    """The comparison of the best actions of two draws, which a measurement is to decide."""

    slopes: FloatArray  # gradient of the difference of their rewards; (L+1, d)
    played: FloatArray  # the best action of the first draw; (d,)
    rival: FloatArray  # that of the second; (d,)


@kernel
def _purchase(
    knobs: DirectedKnobs,
    posterior: Posterior,
    contest: Contest,
    place: Place,
    view: Frame,
    coin: float,
    left: float,
) -> tuple[bool, Telling, float]:
    """Whether information is bought, the measurement, and its price.

    It is bought only if both contenders are uninformative: a measurement along either would remove less
    than `share` of the contested variance.
    """
    slopes = contest.slopes
    d, width = slopes.shape[1], posterior.mean.shape[1]
    contested = variance(posterior, padded(slopes, width))
    _, at_played = _telling(knobs, posterior, slopes, contest.played)
    _, at_rival = _telling(knobs, posterior, slopes, contest.rival)
    gain_here = max(at_played, at_rival)
    if gain_here >= knobs.share * contested:
        return False, Telling(contest.played, 0, 0, gain_here), 0.0
    most = most_telling_in(place, posterior, knobs.costs, slopes, view.rest)
    price = dot(contest.played[:d], view.rest) - dot(most.action[:d], view.rest)
    bought = _buys(knobs, contested, gain_here, most.gain, price, coin, left)
    return bought, most, price


@kernel
def _choose(
    knobs: DirectedKnobs,
    posteriors: Posteriors,
    learned: Learned,
    offer: Offer,
) -> Choice:
    posterior, effects = posteriors.full, posteriors.effects
    place, draws = offer.place, offer.draws
    drawn, weights = draw(effects, draws.normals, 2), row_weights(effects)
    d, assumed = drawn.shape[2], learned.ranks.assumed
    doubted = doubted_rank(learned.ranks, learned.evidence.counts)
    chance = draws.normals[:d]  # a direction for a solid, where a draw leaves nothing of the target
    view = pooled_frame(drawn[0], weights, assumed)  # view.rest: the drawn target, projected
    played = best_along(place, view.rest, chance)
    rival = best_along(place, pooled_frame(drawn[1], weights, doubted).rest, chance).action
    slopes, differ = _contest(view, played.action[:d], rival[:d])
    if differ:
        contest = Contest(slopes, played.action, rival)
        left = rounds_left(knobs.horizon, learned.evidence)
        bought, most, price = _purchase(
            knobs, posterior, contest, place, view, draws.uniforms[0], left
        )
        if bought:
            found = Found(most.action, most.arm, played.value - price)
            return chosen(found, most.vector, EXPLORE, offer.action)
    if doubted > assumed:
        doubtful = pooled_frame(drawn[0], weights, doubted)
        slopes, _ = _contest(doubtful, played.action[:d], rival[:d])
    index, _ = _telling(knobs, posterior, slopes, played.action)
    return chosen(played, index, PLAY, offer.action)


register_given(DirectedKnobs, _choose)


@dataclass(frozen=True, slots=True, repr=False)
class DirectedThompson(PosteriorPolicy):
    """Thompson sampling that measures what separates two draws, and buys information if needed.

    If the problem has tolerances, it plays the action with the best expected value. It plays the best
    action of a posterior draw instead only if what that teaches is worth what it costs. Where levels are
    learned, it plays the best action of a draw with reduced spread unless that costs too much. With
    tolerances `informative` and `share` are not used, and `kappa` only with learned levels.

    problem       the problem to play
    rho           regulariser of the estimates; None: that of the prior N(0, M^2/d)
    memory        rounds after which the weight of a measurement is 1/e; None: no forgetting
    delta         level of the tests for the rank, if a resolution is given instead of the rank
    informative   eta: play a third action only if measuring at the two contenders removes less than
                  this fraction of the variance that measuring at the third would remove,
    share         and less than this share of the variance of their difference
    kappa         price of the third action, in standard deviations of that difference, up to which it
                  is always paid; a price k times as high is paid in one round out of k^2
    caution, safe   within tolerances, as in ProtectedThompson
    horizon       number of rounds that will be played; None: not known. Then no price is paid that the
                  rounds left cannot repay; within tolerances these are the rounds ahead. Once they are
                  over it plays as if the number were not known

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
    horizon: int | None = None
    knobs: DirectedKnobs | WithinKnobs = field(init=False, repr=False, compare=False)

    plays_solids = True
    averages_slopes = averages_slopes

    def __post_init__(self) -> None:
        for knob in ("informative", "share", "kappa"):
            check_positive(knob, getattr(self, knob))
        common = shared_knobs.common_knobs(self.problem, self.rho, self.memory, self.delta)
        caution = caution_for(self.problem, self.caution, self.safe)
        has_levels = self.problem.intercept
        invests = caution.level == 0.0 and not has_levels
        looks_ahead = self.problem.limits is None or invests
        horizon = shared_knobs.horizon_of(self.horizon, looks_ahead=looks_ahead)
        knobs: DirectedKnobs | WithinKnobs
        if self.problem.limits is None:
            knobs = DirectedKnobs(
                **common._asdict(),
                informative=float(self.informative),
                share=float(self.share),
                kappa=float(self.kappa),
                has_levels=has_levels,
                horizon=horizon,
            )
        else:
            knobs = WithinKnobs(
                **common._asdict(),
                limits=self.problem.limits,
                rule=INVEST if invests else SAMPLE if caution.level > 0.0 else PRICED_SAMPLE,
                spread=1.0 if invests else PART_DRAW,
                kappa=float(self.kappa),
                is_directed=True,
                has_levels=has_levels,
                caution=caution,
                horizon=horizon,
            )
        object.__setattr__(self, "knobs", knobs)

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """The posterior draws, and a coin that decides whether an expensive action is played."""
        draws = CHALLENGERS if self.averages_slopes() else 2
        return 1, draws * self.problem.n_vectors * self.problem.width

    def check(self, state: State, actions: Actions) -> None:
        """Raise if caution is set and no safe action is available."""
        check_start(self.knobs, actions)
