"""Information-directed sampling for the protected bandit (ours; no regret bound is known).

Every round weighs expected regret against information, over pairs of an action and a vector to measure.
Of all mixtures of two pairs, the one with the least (expected regret)^2 / information is played (Russo
and Van Roy 2014; Kirschner, Lattimore and Krause 2020 for linear partial monitoring). Both quantities are
computed from posterior draws (core/information_ratio.py). Information is counted about the comparisons of
likely winners only, not about all vectors: between the winners of draws that disagree, and between the
leader and its most promising rival. The comparison with the rival keeps the policy exploring, more and
more rarely, where all draws agree on a wrong action. A measurement that pays for itself within as many
further rounds as have been played (with `memory`, as many as are remembered) is made at once.

M may be too large: the prior is the widest that the evidence does not contradict (core/posterior.py).

Where the rank is not known, every second draw uses the assumed rank, and the others use the largest rank
that is still possible (core/rank.py). So an undecided direction leads to a comparison like any other.

Levels, where they are learned, are not part of the reward: draws and comparisons are of the effects. The
information of a measurement takes into account that it depends on the level too.

An aim gives the value of every action under every posterior draw, and the gradient of the difference of
two values in every vector. The rest, `settle`, is common to both aims.

Within tolerances the value of an action is its effect on the target minus its penalties under a draw, and
its expectation is known in closed form (core/objective.py). Its gradient is the action itself in the
target, and penalty_i sqrt(p_i) times the action in a protected outcome that exceeds its limit with
probability p_i. The rank is not used. Over arms with known levels the rule of DirectedThompson is used
(thompson_tolerances.py): the rule above had 1.2 to 1.4 times its regret there at R = 0.1, and five times
the linear runs at R = 0.5. In a solid the rule above has two thirds of the regret of DirectedThompson and
is used (docs/guardrails.md).
"""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np

from sidestep.core.actions import ON_A_SOLID, Actions, Arms, Body, farthest
from sidestep.core.arm_forms import Menu, arm_of, scores
from sidestep.core.arrays import FloatArray
from sidestep.core.best_action import Place, best_expected_in, best_in
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.information_ratio import (
    Standing,
    best_measurement,
    best_mixture,
    contests,
    dearer,
    information,
    pays_back,
    picked,
    standing,
)
from sidestep.core.jit import FAMILIES, by_type, kernel
from sidestep.core.linalg import apply, copy_into, dot, scaled
from sidestep.core.objective import expected_values, steepness_within, values_within
from sidestep.core.posterior import (
    Posterior,
    Posteriors,
    Prior,
    draw,
    measured,
    padded_vector,
    row_weights,
)
from sidestep.core.problem import Limits, Problem
from sidestep.core.projection import Frame, gradient, pooled_frame
from sidestep.core.rank import Ranks
from sidestep.policies import shared_knobs
from sidestep.policies.base import EXPLORE, PHASES, PLAY
from sidestep.policies.builtin import (
    Choice,
    Offer,
    PosteriorPolicy,
    register_given,
    rounds_left,
)
from sidestep.policies.state import Learned
from sidestep.policies.thompson_tolerances import (
    CHALLENGERS,
    INVEST,
    WithinKnobs,
    averages_slopes,
    caution_for,
    choose_within,
)

DRAWS = 16  # with 32 regret is the same, with 8 larger: benchmarks/information.py
CONTESTS = 4  # largest number of contests between the winners of draws that disagree


@kernel
def rounds_to_pay(horizon: float, evidence: Evidence) -> float:
    """Number of rounds within which a measurement must pay for itself to be made at once.

    Where the horizon is known, the rounds that are left; else as many as are remembered.
    """
    left = rounds_left(horizon, evidence)
    return left if left > 0.0 else float(np.sum(evidence.weight))


@kernel(small=True)
def settle(
    costs: FloatArray,
    posterior: Posterior,
    stand: Standing,
    slopes: FloatArray,
    menu: Menu,
    rounds: float,
    coin: float,
) -> Choice:
    """The arm to play and the vector to measure; the value of the choice is NaN.

    slopes: gradient of every contest; (C, L+1, width)
    rounds: number of rounds within which a measurement must pay for itself to be made at once
    """
    gained, vectors = best_measurement(information(posterior, slopes, menu), costs)
    mixture = best_mixture(stand.regret, gained)
    arm, asked = picked(mixture, coin), dearer(stand.regret, mixture)
    least = stand.regret[stand.leader]
    if pays_back(least, stand.regret[asked] - least, gained[asked] / slopes.shape[0], rounds):
        arm = asked
    phase = PLAY if _wins(stand, arm) else EXPLORE
    return Choice(arm, vectors[arm], phase, np.nan, np.nan)


@kernel
def _wins(stand: Standing, arm: int) -> bool:
    """Whether the arm leads, or is the best of some draw."""
    wins = arm == stand.leader
    for n in range(stand.winners.size):
        wins = wins or stand.winners[n] == arm
    return wins


@kernel
def menu_of(actions: FloatArray, width: int, action_bound: float) -> Menu:
    """Candidate actions of a solid, (K, d), as arms, with the level's coordinate where it is learned."""
    K = actions.shape[0]
    columns, squared = np.empty((width, K)), np.zeros(K)
    for k in range(K):
        action = measured(actions[k], width, action_bound)
        for j in range(width):
            columns[j, k] = action[j]
            squared[k] += action[j] * action[j]
    return Menu(columns, squared)


class InformationWithinKnobs(NamedTuple):
    """Knobs within tolerances where levels are learned, as the kernels read them."""

    metric: int
    confidence: Confidence
    prior: Prior
    costs: FloatArray  # (L+1,)
    limits: Limits
    has_levels: bool  # the last coordinate of every vector is its level, not part of the value


class KnownLevelsKnobs(WithinKnobs):
    """Knobs within tolerances where levels are known: over arms the rule of DirectedThompson."""


Within: TypeAlias = InformationWithinKnobs | KnownLevelsKnobs


@kernel
def _values_within(limits: Limits, effects: Posterior, drawn: FloatArray, menu: Menu) -> FloatArray:
    """Value of every arm under every draw, shifted so that the mean is the expected value; (DRAWS, K).

    A few draws contain few of the penalties that are unlikely and large: their mean would be far off.
    """
    K = menu.squared.size
    values, shift = np.empty((DRAWS, K)), expected_values(limits, effects, menu.columns, K)
    for n in range(DRAWS):
        values[n] = values_within(limits, drawn[n], menu.columns, K)
        shift -= values[n] / DRAWS
    return values + shift


@kernel
def _decide_within(
    knobs: Within,
    posteriors: Posteriors,
    drawn: FloatArray,
    menu: Menu,
    coin: float,
) -> Choice:
    """The arm and the vector to measure."""
    posterior, effects = posteriors.full, posteriors.effects
    values = _values_within(knobs.limits, effects, drawn, menu)
    stand = standing(values)
    found = contests(stand, CONTESTS)
    slopes = np.zeros((found.shape[0], *posterior.mean.shape))
    for c in range(found.shape[0]):
        first, second = arm_of(menu, found[c, 0]), arm_of(menu, found[c, 1])
        _contest_within(knobs.limits, effects, first, second, slopes[c])
    # 0 rounds: no measurement is made at once; that had a tenth more regret at R = 0.5 (docs/panel.md)
    choice = settle(knobs.costs, posterior, stand, slopes, menu, 0.0, coin)
    return Choice(choice.arm, choice.vector, choice.phase, values[0, choice.arm], np.nan)


@kernel
def _contest_within(
    limits: Limits, effects: Posterior, first: FloatArray, second: FloatArray, out: FloatArray
) -> None:
    """Write the gradient of the difference of two values in every effect into `out` (L+1, d)."""
    n, d = effects.mean.shape
    at_first = _slopes_within(limits, effects, first[:d])
    at_second = _slopes_within(limits, effects, second[:d])
    same = True
    for j in range(d):
        same = same and first[j] == second[j]
    for v in range(n):
        for j in range(d):
            out[v, j] = at_first[v] * first[j] - (0.0 if same else at_second[v] * second[j])


@kernel
def _slopes_within(limits: Limits, effects: Posterior, action: FloatArray) -> FloatArray:
    """Slope of an action's value in every effect, with the sign of the likelier side; (L+1,)."""
    steepness = steepness_within(limits, effects, action, False)
    for i in range(limits.penalty.size):
        effect = dot(effects.mean[i + 1], action)
        if effect - limits.low[i] > limits.high[i] - effect:
            steepness[i + 1] = -steepness[i + 1]
    return steepness


@by_type
def _candidates_within(
    place: Place, knobs: Within, posteriors: Posteriors, drawn: FloatArray
) -> Menu:
    """The arms; in a solid some candidate actions, as arms."""
    raise NotImplementedError


@kernel
def _arms_within(menu: Menu, knobs: Within, posteriors: Posteriors, drawn: FloatArray) -> Menu:
    return menu


@kernel
def _in_solid_within(body: Body, knobs: Within, posteriors: Posteriors, drawn: FloatArray) -> Menu:
    actions = _shortlist_within(knobs.limits, posteriors.effects, drawn, body)
    return menu_of(actions, posteriors.full.mean.shape[1], knobs.confidence.action_bound)


FAMILIES[_candidates_within].update({Menu: _arms_within, Body: _in_solid_within})


@by_type
def _played(place: Place, choice: Choice, menu: Menu, action: FloatArray) -> Choice:
    """The choice among arms; in a solid that of a candidate, which is written into `action` (d,)."""
    raise NotImplementedError


@kernel
def _played_arm(place: Menu, choice: Choice, menu: Menu, action: FloatArray) -> Choice:
    return choice


@kernel
def _played_in_solid(place: Body, choice: Choice, menu: Menu, action: FloatArray) -> Choice:
    for j in range(action.size):
        action[j] = menu.columns[j, choice.arm]
    return Choice(ON_A_SOLID, choice.vector, choice.phase, choice.value, choice.bound)


FAMILIES[_played].update({Menu: _played_arm, Body: _played_in_solid})


@kernel
def _choose_within(knobs: Within, posteriors: Posteriors, learned: Learned, offer: Offer) -> Choice:
    drawn = draw(posteriors.effects, offer.draws.normals, DRAWS)
    menu = _candidates_within(offer.place, knobs, posteriors, drawn)
    choice = _decide_within(knobs, posteriors, drawn, menu, offer.draws.uniforms[0])
    return _played(offer.place, choice, menu, offer.action)


@kernel
def _shortlist_within(
    limits: Limits, effects: Posterior, drawn: FloatArray, body: Body
) -> FloatArray:
    """Candidate actions in a solid; (2 DRAWS + 1 + 2 (L+1), d).

    The best action of every draw, the best at the posterior means, the midpoints of the two, and both
    ends of the solid along the deviation of one draw of every vector from its mean.
    """
    n, d = effects.mean.shape
    actions = np.empty((2 * DRAWS + 1 + 2 * n, d))
    leader = best_expected_in(body, limits, effects).action
    copy_into(leader, actions[2 * DRAWS])
    for k in range(DRAWS):
        best = best_in(body, limits, drawn[k]).action
        for j in range(d):
            actions[k, j] = best[j]
            actions[DRAWS + k, j] = 0.5 * (best[j] + leader[j])
    for v in range(n):
        at = 2 * DRAWS + 1 + 2 * v
        telling: FloatArray = drawn[v % DRAWS, v] - effects.mean[v]
        copy_into(farthest(body, telling), actions[at])
        copy_into(farthest(body, scaled(-1.0, telling)), actions[at + 1])
    return actions


@by_type
def _choose_in(
    place: Place, knobs: KnownLevelsKnobs, posteriors: Posteriors, learned: Learned, offer: Offer
) -> Choice:
    """Where levels are known: over arms the rule of DirectedThompson, in a solid the rule above."""
    raise NotImplementedError


@kernel
def _choose_arm(
    menu: Menu, knobs: KnownLevelsKnobs, posteriors: Posteriors, learned: Learned, offer: Offer
) -> Choice:
    return choose_within(knobs, posteriors, learned, offer)


@kernel
def _choose_in_solid(
    body: Body, knobs: KnownLevelsKnobs, posteriors: Posteriors, learned: Learned, offer: Offer
) -> Choice:
    return _choose_within(knobs, posteriors, learned, offer)


FAMILIES[_choose_in].update({Menu: _choose_arm, Body: _choose_in_solid})


@kernel
def _choose_known_levels(
    knobs: KnownLevelsKnobs, posteriors: Posteriors, learned: Learned, offer: Offer
) -> Choice:
    return _choose_in(offer.place, knobs, posteriors, learned, offer)


register_given(InformationWithinKnobs, _choose_within)
register_given(KnownLevelsKnobs, _choose_known_levels)


class InformationKnobs(NamedTuple):
    """InformationDirected as its kernels read it."""

    metric: int
    confidence: Confidence
    prior: Prior
    costs: FloatArray  # of one measurement of each vector, relative; (L+1,)
    has_levels: bool  # whether the last learned coordinate is the level (core/posterior.py)
    horizon: float  # rounds that will be played; 0: not known


@kernel(small=True)
def _views(effects: Posterior, ranks: Ranks, normals: FloatArray) -> list[Frame]:
    """The frame of every draw: its protected subspace and projected target."""
    drawn, weights = draw(effects, normals, DRAWS), row_weights(effects)
    return [
        pooled_frame(drawn[n], weights, ranks.assumed if n % 2 == 0 else ranks.possible)
        for n in range(DRAWS)
    ]


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
    return Choice(choice.arm, choice.vector, choice.phase, values[0, choice.arm], np.nan)


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


@by_type
def _candidates(
    place: Place, posteriors: Posteriors, views: list[Frame], normals: FloatArray, bound: float
) -> Menu:
    """The arms; in a solid some candidate actions, as arms. bound: A, the length of the longest."""
    raise NotImplementedError


@kernel
def _arms(
    menu: Menu, posteriors: Posteriors, views: list[Frame], normals: FloatArray, bound: float
) -> Menu:
    return menu


@kernel
def _in_solid(
    body: Body, posteriors: Posteriors, views: list[Frame], normals: FloatArray, bound: float
) -> Menu:
    actions = _shortlist(posteriors.effects, views, body, normals)
    return menu_of(actions, posteriors.full.mean.shape[1], bound)


FAMILIES[_candidates].update({Menu: _arms, Body: _in_solid})


@kernel(small=True)
def _choose(
    knobs: InformationKnobs, posteriors: Posteriors, learned: Learned, offer: Offer
) -> Choice:
    place, draws, bound = offer.place, offer.draws, knobs.confidence.action_bound
    views = _views(posteriors.effects, learned.ranks, draws.normals)
    menu = _candidates(place, posteriors, views, draws.normals, bound)
    rounds = rounds_to_pay(knobs.horizon, learned.evidence)
    choice = _decide(knobs, posteriors.full, views, menu, rounds, draws.uniforms[0])
    return _played(place, choice, menu, offer.action)


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


register_given(InformationKnobs, _choose, doubts=True)


Knobs: TypeAlias = InformationKnobs | Within


@dataclass(frozen=True, slots=True, repr=False)
class InformationDirected(PosteriorPolicy):
    """Weigh expected regret against information, every round, over actions and vectors to measure.

    problem  the problem to play
    rho      regulariser of the estimates; None: that of the prior N(0, M^2/d)
    memory   rounds after which the weight of a measurement is 1/e; None: no forgetting
    delta    level of the tests for the rank, if a resolution is given instead of the rank, and of the
             test for M: the prior is the widest that the evidence does not contradict
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
    averages_slopes = averages_slopes

    def __post_init__(self) -> None:
        doubt = self.delta if self.problem.tolerance is None else 0.0
        common = shared_knobs.common_knobs(self.problem, self.rho, self.memory, self.delta, doubt)
        limits, has_levels = self.problem.limits, self.problem.intercept
        looks_ahead = limits is None or not has_levels
        horizon = shared_knobs.horizon_of(self.horizon, looks_ahead=looks_ahead)
        knobs: Knobs
        if limits is None:
            knobs = InformationKnobs(**common._asdict(), has_levels=has_levels, horizon=horizon)
        elif has_levels:
            knobs = InformationWithinKnobs(**common._asdict(), limits=limits, has_levels=has_levels)
        else:
            knobs = KnownLevelsKnobs(
                **common._asdict(),
                limits=limits,
                rule=INVEST,
                spread=1.0,
                kappa=0.0,  # not read: with INVEST a price must be worth what it teaches
                is_directed=True,
                has_levels=has_levels,
                caution=caution_for(self.problem, 0.0, None),
                horizon=horizon,
            )
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
