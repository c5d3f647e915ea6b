"""Information-directed sampling for the protected bandit (ours; no regret bound is known).

Every round weighs expected regret against information, over pairs of an action and a vector to measure:
of all mixtures of two pairs, play the one with the least (expected regret)^2 / information (Russo and
Van Roy 2014; Kirschner, Lattimore and Krause 2020 for linear partial monitoring). Both come from
posterior draws (core/information.py). Information is directed: not about all vectors, but about the
contests of the likely winners, between draws that disagree, and between the leader and its most promising
rival. The last one keeps the player asking, ever more rarely, where all draws agree and are all wrong.

Where the rank is not told, draws take turns: one goes by the directions that are taken for real, the
next by all that could still reach the resolution. So an open direction is a contest like any other.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Forms, Menu, arm_of
from sidestep.core.geometry import apply, copy_into, dot, scaled
from sidestep.core.information import (
    Standing,
    add_information,
    best_measurement,
    best_mixture,
    squares,
    standing,
)
from sidestep.core.kernels import kernel
from sidestep.core.passes import scores
from sidestep.core.pooled import REAL
from sidestep.core.posterior import Posterior, Prior, draw, posterior_of, row_weights
from sidestep.core.problem import Problem
from sidestep.core.rank import Spectrum
from sidestep.core.sensitivity import Frame, gradient, pooled_frame
from sidestep.core.solids import Body, farthest
from sidestep.errors import InputError
from sidestep.policies.base import EXPLORE, PLAY, CompiledPolicy, State
from sidestep.policies.dispatch import Choice, ChoiceOnBall, Draws, register
from sidestep.policies.sampling import (
    common_knobs,
    first_state,
    rank_spectrum,
    review_rank,
    rounds_until_rank_review,
)

DRAWS = 32
CONTESTS = 4  # between draws that disagree


class InformationKnobs(NamedTuple):
    """InformationDirected as its kernels read it."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # s, or -1: core_set says
    costs: FloatArray  # (L+1,)


@kernel
def _views(
    knobs: InformationKnobs, posterior: Posterior, core_set: IntArray, normals: FloatArray
) -> list[Frame]:
    """The protected subspace of every draw, and the target seen from it."""
    drawn, weights = draw(posterior, normals, DRAWS), row_weights(posterior)
    real, reaching = knobs.rank, knobs.rank
    if knobs.rank < 0:
        real, reaching = 0, 0
        for v in range(1, core_set.size):
            real += core_set[v] == REAL
            reaching += core_set[v] != 0
    return [pooled_frame(drawn[n], weights, real if n % 2 == 0 else reaching) for n in range(DRAWS)]


@kernel
def _decide(
    knobs: InformationKnobs, posterior: Posterior, views: list[Frame], menu: Menu, coin: float
) -> Choice:
    """The arm and the vector to measure."""
    K = menu.squared.size
    values = np.empty((DRAWS, K))
    for n in range(DRAWS):
        scores(menu.columns, views[n].rest, values[n])
    stand = standing(values)
    square, information = squares(posterior, menu), np.zeros((posterior.noise.size, K))
    _contest(posterior, views[0], menu, stand.leader, stand.rival, square, information)
    found = 0
    for n in range(DRAWS - 1):
        first, second = stand.winners[n], stand.winners[n + 1]
        if first != second and found < CONTESTS:
            found += 1
            _contest(posterior, views[n], menu, first, second, square, information)
    told, vectors = best_measurement(information, knobs.costs)
    arm = best_mixture(stand.regret, told, coin)
    phase = PLAY if _wins(stand, arm) else EXPLORE
    return Choice(arm, vectors[arm], phase, values[0, arm])


@kernel
def _wins(stand: Standing, arm: int) -> bool:
    """Whether the arm leads, or is the best of some draw."""
    wins = arm == stand.leader
    for n in range(stand.winners.size):
        wins = wins or stand.winners[n] == arm
    return wins


@kernel
def _contest(
    posterior: Posterior,
    view: Frame,
    menu: Menu,
    first: int,
    second: int,
    square: FloatArray,
    information: FloatArray,
) -> None:
    """Add what every measurement would tell of the contest of two arms, seen from one draw."""
    slopes = gradient(view, arm_of(menu, first))
    if first != second:
        other = gradient(view, arm_of(menu, second))
        for v in range(slopes.shape[0]):
            for j in range(slopes.shape[1]):
                slopes[v, j] -= other[v, j]
    add_information(posterior, slopes, menu, square, information)


@kernel
def _on_arms(
    knobs: InformationKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    posterior = posterior_of(knobs.prior, evidence)
    views = _views(knobs, posterior, core_set, draws.normals)
    return _decide(knobs, posterior, views, menu, draws.uniforms[0])


@kernel
def _on_ball(
    knobs: InformationKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    posterior = posterior_of(knobs.prior, evidence)
    views = _views(knobs, posterior, core_set, draws.normals)
    menu = _shortlist(posterior, views, body, draws.normals)
    choice = _decide(knobs, posterior, views, menu, draws.uniforms[0])
    action = arm_of(menu, choice.arm)
    return ChoiceOnBall(action, choice.vector, choice.phase, choice.value, np.nan)


@kernel
def _shortlist(posterior: Posterior, views: list[Frame], body: Body, normals: FloatArray) -> Menu:
    """Actions worth a look in a solid: the best of every draw, and those that tell of two contests."""
    n, d = posterior.mean.shape
    columns = np.empty((d, DRAWS + 4 * n))
    for k in range(DRAWS):
        toward = views[k].rest
        if dot(toward, toward) == 0.0:
            toward = normals[:d]
        copy_into(farthest(body, toward), columns[:, k])
    for contest in range(2):
        view = views[2 * contest]
        slopes = gradient(view, columns[:, 2 * contest].copy())
        slopes -= gradient(view, columns[:, 2 * contest + 1].copy())
        for v in range(n):
            telling = apply(posterior.inverse[v], slopes[v])
            if dot(telling, telling) == 0.0:
                telling = normals[:d].copy()
            at = DRAWS + 2 * (contest * n + v)
            copy_into(farthest(body, telling), columns[:, at])
            copy_into(farthest(body, scaled(-1.0, telling)), columns[:, at + 1])
    squared = np.zeros(columns.shape[1])
    for j in range(d):
        for k in range(squared.size):
            squared[k] += columns[j, k] * columns[j, k]
    return Menu(columns, squared)


register(InformationKnobs, _on_arms, _on_ball)


@dataclass(frozen=True, slots=True, repr=False)
class InformationDirected(CompiledPolicy):
    """Weigh expected regret against information, every round, over actions and vectors to measure.

    problem  what the player is told
    rho      of the estimates; None: that of the prior N(0, M^2/d), the honest one
    memory   rounds after which a measurement has faded to 1/e; None: nothing is forgotten
    delta    at which the rank is decided, where a resolution is told instead of it

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> trace = ss.simulate(ss.InformationDirected(world.problem), world, horizon=20)
    >>> len(trace.regret)
    20
    """

    problem: Problem
    rho: float | None = None
    memory: float | None = None
    delta: float = 0.05
    knobs: InformationKnobs = field(init=False, repr=False, compare=False)

    plays_solids = True

    def __post_init__(self) -> None:
        if self.problem.tolerance is not None:
            raise InputError(
                "InformationDirected plays the projected reward and must be told no tolerance, got one "
                "(DirectedThompson and ProtectedThompson play within tolerances)"
            )
        if self.problem.intercept:
            raise InputError(
                "intercept must be False, as InformationDirected learns no levels "
                "(the Thompson players do), got True"
            )
        common = common_knobs(self.problem, self.rho, self.memory, self.delta)
        object.__setattr__(self, "knobs", InformationKnobs(*common))

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """The posterior draws, and a coin for the mixture."""
        return 1, DRAWS * self.problem.n_vectors * self.problem.dim

    def init(self) -> State:
        """State before the first round."""
        return first_state(self)

    def rounds_until_review(self, state: State) -> int:
        """Rounds until the rank is looked at again, where it is not told."""
        return rounds_until_rank_review(self, state)

    def review(self, state: State) -> None:
        """Look at the rank again, in place."""
        review_rank(self, state)

    def spectrum(self, state: State) -> Spectrum | None:
        """What the evidence says of the rank; None where the player is told it."""
        return rank_spectrum(self, state)
