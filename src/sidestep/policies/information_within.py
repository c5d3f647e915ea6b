"""How InformationDirected chooses where tolerances are told.

The rule is that of information_directed.py; only what an action is worth is another: under a posterior
draw its effect on the target less its fines, and in expectation that in closed form (core/aims.py). A
contest of two actions answers to the target by the action itself, and to a protected outcome that is
beyond its limit with probability p_i by penalty_i sqrt(p_i) times the action.

No rank plays a part. Where levels are learned, a measurement is read through the level that it shows as
well: what tells level and effect apart is what has the information.

Over arms with known levels InformationDirected plays as DirectedThompson does (within.py): the rule above
had 1.2 to 1.4 times the regret there at R = 0.1, and at R = 0.5 five times the linear runs. In a solid it
has two thirds of the regret of DirectedThompson and is kept (docs/guardrails.md).
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.aims import expected_values, steepness_within, values_within
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Forms, Menu, arm_of
from sidestep.core.geometry import copy_into, dot, scaled
from sidestep.core.information import contests, standing
from sidestep.core.kernels import kernel
from sidestep.core.places import best_expected_in, best_in
from sidestep.core.posterior import Posterior, Prior, draw, posteriors_of
from sidestep.core.solids import Body, farthest
from sidestep.core.tolerances import Limits
from sidestep.policies.dispatch import Choice, ChoiceOnBall, Draws, register
from sidestep.policies.weighing import CONTESTS, DRAWS, menu_of, settle
from sidestep.policies.within import WithinKnobs, on_arms_within


class InformationWithinKnobs(NamedTuple):
    """InformationDirected within tolerances with levels to learn, as compiled code reads it."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # plays no part
    costs: FloatArray  # (L+1,)
    limits: Limits
    has_levels: bool  # the last coordinate of what is learned is the level, which no aim sees


class KnownLevelsKnobs(WithinKnobs):
    """The same where levels are known: over arms those of DirectedThompson."""


@kernel
def _values(limits: Limits, effects: Posterior, drawn: FloatArray, menu: Menu) -> FloatArray:
    """Value of every arm under every draw, moved to its expected value; (DRAWS, K).

    A few draws see few of the fines that are unlikely and dear: their mean alone would be far off.
    """
    K = menu.squared.size
    values, shift = np.empty((DRAWS, K)), expected_values(limits, effects, menu.columns, K)
    for n in range(DRAWS):
        values[n] = values_within(limits, drawn[n], menu.columns, K)
        shift -= values[n] / DRAWS
    return values + shift


@kernel
def _decide(
    knobs: InformationWithinKnobs | KnownLevelsKnobs,
    known: tuple[Posterior, Posterior],
    drawn: FloatArray,
    menu: Menu,
    coin: float,
) -> Choice:
    """The arm and the vector to measure; known: with levels, and without."""
    posterior, effects = known
    values = _values(knobs.limits, effects, drawn, menu)
    stand = standing(values)
    found = contests(stand, CONTESTS)
    slopes = np.zeros((found.shape[0], *posterior.mean.shape))
    for c in range(found.shape[0]):
        first, second = arm_of(menu, found[c, 0]), arm_of(menu, found[c, 1])
        _contest(knobs.limits, effects, first, second, slopes[c])
    # no question is hurried here: at R = 0.5 that cost a tenth more (docs/panel.md)
    choice = settle(knobs.costs, posterior, stand, slopes, menu, 0.0, coin)
    return Choice(choice.arm, choice.vector, choice.phase, values[0, choice.arm])


@kernel
def _contest(
    limits: Limits, effects: Posterior, first: FloatArray, second: FloatArray, out: FloatArray
) -> None:
    """How the contest of two actions answers to every effect, into `out`."""
    n, d = effects.mean.shape
    mine = _slopes(limits, effects, first[:d])
    theirs = _slopes(limits, effects, second[:d])
    same = True
    for j in range(d):
        same = same and first[j] == second[j]
    for v in range(n):
        for j in range(d):
            out[v, j] = mine[v] * first[j] - (0.0 if same else theirs[v] * second[j])


@kernel
def _slopes(limits: Limits, effects: Posterior, action: FloatArray) -> FloatArray:
    """The steepness of an action's value in every effect, with the sign of the likelier side; (L+1,)."""
    steepness = steepness_within(limits, effects, action)
    for i in range(limits.penalty.size):
        effect = dot(effects.mean[i + 1], action)
        if effect - limits.low[i] > limits.high[i] - effect:
            steepness[i + 1] = -steepness[i + 1]
    return steepness


@kernel
def _on_arms(
    knobs: InformationWithinKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    posterior, effects = posteriors_of(knobs.prior, evidence, knobs.has_levels)
    drawn = draw(effects, draws.normals, DRAWS)
    return _decide(knobs, (posterior, effects), drawn, menu, draws.uniforms[0])


@kernel
def _on_ball(
    knobs: InformationWithinKnobs | KnownLevelsKnobs,
    evidence: Evidence,
    core_set: IntArray,
    body: Body,
    draws: Draws,
) -> ChoiceOnBall:
    posterior, effects = posteriors_of(knobs.prior, evidence, knobs.has_levels)
    drawn = draw(effects, draws.normals, DRAWS)
    actions = _shortlist(knobs.limits, effects, drawn, body)
    menu = menu_of(actions, posterior.mean.shape[1], knobs.confidence.action_bound)
    choice = _decide(knobs, (posterior, effects), drawn, menu, draws.uniforms[0])
    return ChoiceOnBall(actions[choice.arm], choice.vector, choice.phase, choice.value, np.nan)


@kernel
def _shortlist(limits: Limits, effects: Posterior, drawn: FloatArray, body: Body) -> FloatArray:
    """Actions worth a look in a solid; (2 DRAWS + 1 + 2 (L+1), d).

    The best of every draw, the best at the means, halfway between the two, and both ends of the solid
    along what is least known of every vector.
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


register(InformationWithinKnobs, _on_arms, _on_ball)
register(KnownLevelsKnobs, on_arms_within, _on_ball)
