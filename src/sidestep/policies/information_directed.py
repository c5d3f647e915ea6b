"""Information-directed sampling for the protected bandit (ours; no regret bound is known).

Every round weighs expected regret against information, over pairs of an action and a vector to measure.
Of all mixtures of two pairs, the one with the least (expected regret)^2 / information is played (Russo
and Van Roy 2014; Kirschner, Lattimore and Krause 2020 for linear partial monitoring). Both quantities are
computed from posterior draws (core/information.py). Information is counted about the comparisons of
likely winners only, not about all vectors: between the winners of draws that disagree, and between the
leader and its most promising rival. The comparison with the rival keeps the policy exploring, more and
more rarely, where all draws agree on a wrong action. A measurement that pays for itself within as many
further rounds as have been played (with `memory`, as many as are remembered) is made at once.

M may be too large: the prior is the widest that the evidence does not contradict (core/width.py).

Where the rank is not known, every second draw uses the assumed rank, and the others use the largest rank
that is still possible (core/pooled.py). So an undecided direction leads to a comparison like any other.

Levels, where they are learned, are not part of the reward: draws and comparisons are of the effects. The
information of a measurement takes into account that it depends on the level too.

Within tolerances it plays as information_within.py says.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from sidestep.core.actions import Actions, Arms
from sidestep.core.arm_forms import Forms, Menu, arm_of, scores
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.geometry import apply, copy_into, dot, scaled
from sidestep.core.information import contests, standing
from sidestep.core.kernels import kernel
from sidestep.core.levels import padded_vector
from sidestep.core.pooled import REAL
from sidestep.core.posterior import Posterior, Prior, draw, effects_alone, row_weights
from sidestep.core.problem import Problem
from sidestep.core.sensitivity import Frame, gradient, pooled_frame
from sidestep.core.solids import Body, farthest
from sidestep.core.width import doubting_posterior_of
from sidestep.policies import sampling
from sidestep.policies.base import PHASES, PLAY
from sidestep.policies.compiled_policy import CompiledPolicy
from sidestep.policies.dispatch import Choice, ChoiceOnBall, Draws, register
from sidestep.policies.information_within import InformationWithinKnobs, KnownLevelsKnobs
from sidestep.policies.weighing import CONTESTS, DRAWS, menu_of, rounds_to_pay, settle
from sidestep.policies.within import CHALLENGERS, caution_for


class InformationKnobs(NamedTuple):
    """InformationDirected as its kernels read it."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # s, or -1: the rank is in core_set (core/pooled.py)
    costs: FloatArray  # of one measurement of each vector, relative; (L+1,)
    has_levels: bool  # whether the last learned coordinate is the level (core/levels.py)
    horizon: float  # rounds that will be played; 0: not known


@kernel(small=True)
def _views(
    knobs: InformationKnobs, effects: Posterior, core_set: IntArray, normals: FloatArray
) -> list[Frame]:
    """The frame of every draw: its protected subspace and projected target."""
    drawn, weights = draw(effects, normals, DRAWS), row_weights(effects)
    real, reaching = knobs.rank, knobs.rank
    if knobs.rank < 0:
        real, reaching = 0, 0
        for v in range(1, core_set.size):
            real += core_set[v] == REAL
            reaching += core_set[v] != 0
    return [pooled_frame(drawn[n], weights, real if n % 2 == 0 else reaching) for n in range(DRAWS)]


@kernel(small=True)
def _decide(
    knobs: InformationKnobs,
    posterior: Posterior,
    views: list[Frame],
    menu: Menu,
    rounds: float,
    coin: float,
) -> Choice:
    """The arm and the vector to measure."""
    n, width = posterior.mean.shape
    values = np.empty((DRAWS, menu.squared.size))
    for time in range(DRAWS):
        scores(menu.columns, padded_vector(views[time].rest, width), values[time])
    stand = standing(values)
    found = contests(stand, CONTESTS)
    slopes = np.zeros((found.shape[0], n, width))
    for c in range(found.shape[0]):
        first, second = arm_of(menu, found[c, 0]), arm_of(menu, found[c, 1])
        _contest(views[found[c, 2]], first, second, slopes[c])
    choice = settle(knobs.costs, posterior, stand, slopes, menu, rounds, coin)
    return Choice(choice.arm, choice.vector, choice.phase, values[0, choice.arm])


@kernel(small=True)
def _contest(view: Frame, first: FloatArray, second: FloatArray, out: FloatArray) -> None:
    """Gradient of the difference of two rewards in every vector, under one draw, into `out` (L+1, d)."""
    between = np.empty(view.rest.size)
    for j in range(between.size):
        between[j] = first[j] - second[j]
    if dot(between, between) == 0.0:
        copy_into(first[: between.size], between)  # equal actions: the action's own reward
    slopes = gradient(view, between)
    for v in range(slopes.shape[0]):
        copy_into(slopes[v], out[v])


@kernel(small=True)
def _on_arms(
    knobs: InformationKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    posterior = doubting_posterior_of(knobs.prior, evidence)
    effects = effects_alone(posterior, knobs.has_levels)
    views = _views(knobs, effects, core_set, draws.normals)
    rounds = rounds_to_pay(knobs.horizon, evidence)
    return _decide(knobs, posterior, views, menu, rounds, draws.uniforms[0])


@kernel
def _on_ball(
    knobs: InformationKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    posterior = doubting_posterior_of(knobs.prior, evidence)
    effects = effects_alone(posterior, knobs.has_levels)
    views = _views(knobs, effects, core_set, draws.normals)
    actions = _shortlist(effects, views, body, draws.normals)
    menu = menu_of(actions, posterior.mean.shape[1], knobs.confidence.action_bound)
    rounds = rounds_to_pay(knobs.horizon, evidence)
    choice = _decide(knobs, posterior, views, menu, rounds, draws.uniforms[0])
    return ChoiceOnBall(actions[choice.arm], choice.vector, choice.phase, choice.value, np.nan)


@kernel
def _shortlist(
    effects: Posterior, views: list[Frame], body: Body, normals: FloatArray
) -> FloatArray:
    """Candidate actions of a solid: the best of every draw, and the most informative for two contests."""
    n, d = effects.mean.shape
    actions, slopes = np.empty((DRAWS + 4 * n, d)), np.empty((n, d))
    for k in range(DRAWS):
        toward = views[k].rest
        if dot(toward, toward) == 0.0:
            toward = normals[:d].copy()
        copy_into(farthest(body, toward), actions[k])
    for contest in range(2):
        _contest(views[2 * contest], actions[2 * contest], actions[2 * contest + 1], slopes)
        for v in range(n):
            telling = apply(effects.inverse[v], slopes[v])
            if dot(telling, telling) == 0.0:
                telling = normals[:d].copy()
            at = DRAWS + 2 * (contest * n + v)
            copy_into(farthest(body, telling), actions[at])
            copy_into(farthest(body, scaled(-1.0, telling)), actions[at + 1])
    return actions


register(InformationKnobs, _on_arms, _on_ball)

Knobs: TypeAlias = InformationKnobs | InformationWithinKnobs | KnownLevelsKnobs


@dataclass(frozen=True, slots=True, repr=False)
class InformationDirected(CompiledPolicy):
    """Weigh expected regret against information, every round, over actions and vectors to measure.

    problem  the problem to play
    rho      regulariser of the estimates; None: that of the prior N(0, M^2/d)
    memory   rounds after which the weight of a measurement is 1/e; None: no forgetting
    delta    level of the tests for the rank, if a resolution is given instead of the rank, and of the
             test for M: the prior is the widest that the evidence does not contradict (core/width.py)
    horizon  number of rounds that will be played; None: not known. Then a measurement is made at once
             if it pays for itself within the rounds that are left, instead of within as many as were
             played. After these rounds it plays as if the number were not known

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
    horizon: int | None = None
    knobs: Knobs = field(init=False, repr=False, compare=False)

    plays_solids = True
    init = sampling.first_state
    rounds_until_review = sampling.rounds_until_rank_review
    review = sampling.review_rank
    spectrum = sampling.rank_spectrum

    def __post_init__(self) -> None:
        doubt = self.delta if self.problem.tolerance is None else 0.0
        common = sampling.common_knobs(self.problem, self.rho, self.memory, self.delta, doubt)
        limits, has_levels = self.problem.limits, self.problem.intercept
        looks_ahead = limits is None or not has_levels
        horizon = sampling.horizon_of(self.horizon, looks_ahead=looks_ahead)
        knobs: Knobs = InformationKnobs(*common, has_levels, horizon)
        if limits is not None and has_levels:
            knobs = InformationWithinKnobs(*common, limits, has_levels)
        elif limits is not None:
            caution = caution_for(self.problem, 0.0, None)
            rule = (1.0, CHALLENGERS, np.inf, True, has_levels)
            knobs = KnownLevelsKnobs(*common, limits, *rule, caution, horizon)
        object.__setattr__(self, "knobs", knobs)

    def judges_alone(self, phase: str, actions: Actions) -> bool:
        """Where it plays as DirectedThompson does, its reasons are those of DirectedThompson."""
        as_directed = isinstance(self.knobs, KnownLevelsKnobs) and isinstance(actions, Arms)
        return as_directed and phase == PHASES[PLAY]

    def draws_per_round(self, *, on_ball: bool) -> tuple[int, int]:
        """The posterior draws, and a coin for the mixture."""
        as_directed = isinstance(self.knobs, KnownLevelsKnobs) and not on_ball
        draws = CHALLENGERS if as_directed else DRAWS
        return 1, draws * self.problem.n_vectors * self.problem.width
