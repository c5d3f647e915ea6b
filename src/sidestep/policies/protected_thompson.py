"""Thompson sampling for the protected bandit (ours).

Draw every vector from its posterior (core/posterior.py), replace the drawn protected vectors by their
closest s-dimensional subspace, where better known vectors weigh more, and play the best action of that
draw. There is no CORE-SET phase and no optimistic problem. The measured vector is the one that most
reduces the variance of the reward of the played action. With query="widest" it is the vector with the
largest variance along that action. With query="proportional" it is drawn at random: vector v with a
probability proportional to |x_v| R_v / sqrt(cost_v), where x are the coefficients of a second draw. For
these two there are regret bounds on the ball (docs/theory.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import Actions
from sidestep.core.arrays import FloatArray
from sidestep.core.best_action import best_along
from sidestep.core.confidence import Confidence
from sidestep.core.jit import kernel
from sidestep.core.posterior import Posteriors, Prior, draw, measured, padded, row_weights
from sidestep.core.problem import Problem
from sidestep.core.projection import gradient, pooled_frame
from sidestep.core.rank import doubted_rank
from sidestep.core.validation import check_choice
from sidestep.core.variance_reduction import least_known, most_telling
from sidestep.errors import InputError
from sidestep.policies import shared_knobs
from sidestep.policies.base import PLAY, State
from sidestep.policies.builtin import Choice, Offer, PosteriorPolicy, chosen, register_given
from sidestep.policies.state import Learned
from sidestep.policies.thompson_tolerances import SAMPLE, WithinKnobs, caution_for, check_start

DIRECTED, WIDEST, PROPORTIONAL = 0, 1, 2
QUERIES = {"directed": DIRECTED, "widest": WIDEST, "proportional": PROPORTIONAL}


class ThompsonKnobs(NamedTuple):
    """ProtectedThompson as compiled code reads it."""

    metric: int
    confidence: Confidence
    prior: Prior
    costs: FloatArray  # of one measurement of each vector, relative; (L+1,)
    query: int  # DIRECTED, WIDEST or PROPORTIONAL
    has_levels: bool  # whether the last learned coordinate is the level (core/posterior.py)


@kernel
def _drawn_vector(
    knobs: ThompsonKnobs, noise: FloatArray, coefficients: FloatArray, coin: float
) -> int:
    """A vector drawn with probability proportional to |x_v| R_v / sqrt(cost_v), x_0 = 1."""
    shares = noise / np.sqrt(knobs.costs)
    for i in range(coefficients.size):
        shares[i + 1] *= abs(coefficients[i])
    left = coin * np.sum(shares)
    for v in range(shares.size - 1):
        left -= shares[v]
        if left < 0.0:
            return v
    return shares.size - 1


@kernel
def _choose(
    knobs: ThompsonKnobs,
    posteriors: Posteriors,
    learned: Learned,
    offer: Offer,
) -> Choice:
    posterior, effects = posteriors.full, posteriors.effects
    place, draws = offer.place, offer.draws
    count = 2 if knobs.query == PROPORTIONAL else 1
    drawings, weights = draw(effects, draws.normals, count), row_weights(effects)
    drawn, assumed = drawings[0], learned.ranks.assumed
    doubted = doubted_rank(learned.ranks, learned.evidence.counts)
    view = pooled_frame(drawn, weights, assumed)
    played = best_along(place, view.rest, draws.normals[: drawn.shape[1]])
    if doubted > assumed:
        view = pooled_frame(drawn, weights, doubted)
    d, width = drawn.shape[1], posterior.mean.shape[1]
    a = measured(played.action, width, knobs.confidence.action_bound)
    if knobs.query == PROPORTIONAL:
        second = pooled_frame(drawings[1], weights, max(assumed, doubted))
        index = _drawn_vector(knobs, posterior.noise, second.coefficients, draws.uniforms[0])
    elif knobs.query == DIRECTED:
        slopes = padded(gradient(view, played.action[:d]), width)
        index, _ = most_telling(posterior, knobs.costs, slopes, a)
    else:
        index = least_known(posterior, knobs.costs, a)
    return chosen(played, index, PLAY, offer.action)


register_given(ThompsonKnobs, _choose)


@dataclass(frozen=True, slots=True, repr=False)
class ProtectedThompson(PosteriorPolicy):
    """Play the best action of a posterior draw; measure what its reward depends on most.

    If the problem has tolerances, it plays as described in thompson_tolerances.py, with full draws.

    problem  the problem to play
    rho      regulariser of the estimates; None: that of the prior N(0, M^2/d)
    memory   rounds after which the weight of a measurement is 1/e; None: no forgetting
    delta    level of the tests for the rank, if a resolution is given instead of the rank
    query    "directed": measure what the reward depends on most; "widest": what is least known;
             "proportional": one drawn with a probability proportional to what the reward of a second
             draw depends on it, for the projected reward
    caution  within tolerances: only actions that are within all of them with at least this posterior
             probability are played; 0: all actions. No guarantee for a round: the posterior may be wrong
    safe     an action that is known to be within them, which caution always allows; None: zero

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.ProtectedThompson(world.problem), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    rho: float | None = None
    memory: float | None = None
    delta: float = 0.05
    query: str = "directed"
    caution: float = 0.0
    safe: Sequence[float] | None = None
    knobs: ThompsonKnobs | WithinKnobs = field(init=False, repr=False, compare=False)

    plays_solids = True

    def __post_init__(self) -> None:
        common = shared_knobs.common_knobs(self.problem, self.rho, self.memory, self.delta)
        caution = caution_for(self.problem, self.caution, self.safe)
        check_choice("query", self.query, tuple(QUERIES))
        query, has_levels = QUERIES[self.query], self.problem.intercept
        knobs: ThompsonKnobs | WithinKnobs
        if self.problem.limits is not None:
            if query == PROPORTIONAL:
                raise InputError(
                    "query must be 'directed' or 'widest' with tolerances, got 'proportional'"
                )
            knobs = WithinKnobs(
                **common._asdict(),
                limits=self.problem.limits,
                rule=SAMPLE,
                spread=1.0,
                kappa=0.0,  # not read: with SAMPLE every price is paid
                is_directed=query == DIRECTED,
                has_levels=has_levels,
                caution=caution,
                horizon=0.0,
            )
        else:
            knobs = ThompsonKnobs(**common._asdict(), query=query, has_levels=has_levels)
        object.__setattr__(self, "knobs", knobs)

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """One posterior draw; a second and a coin if the query is drawn."""
        drawn = int(self.query == "proportional")
        return drawn, (1 + drawn) * self.problem.n_vectors * self.problem.width

    def check(self, state: State, actions: Actions) -> None:
        """Raise if caution is set and no safe action is available."""
        check_start(self.knobs, actions)
