"""How InformationDirected chooses when the problem has tolerances.

The rule is that of information_directed.py with another value of an action: under a posterior draw its
effect on the target minus its penalties, and the expectation of this in closed form (core/aims.py). The
gradient of a value is the action itself in the target, and penalty_i sqrt(p_i) times the action in a
protected outcome that exceeds its limit with probability p_i. The rank is not used. Where levels are
learned, the information of a measurement takes into account that it depends on the level too.

Over arms with known levels InformationDirected uses the rule of DirectedThompson (within.py): the rule
above had 1.2 to 1.4 times its regret there at R = 0.1, and five times the linear runs at R = 0.5. In a
solid the rule above has two thirds of the regret of DirectedThompson and is used (docs/guardrails.md).
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.aims import expected_values, steepness_within, values_within
from sidestep.core.arm_forms import Forms, Menu, arm_of
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
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
    """Knobs within tolerances where levels are learned, as the kernels read them."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # not used
    costs: FloatArray  # (L+1,)
    limits: Limits
    has_levels: (
        bool  # the last coordinate of every vector is its level, which is not part of the value
    )


class KnownLevelsKnobs(WithinKnobs):
    """Knobs within tolerances where levels are known: over arms the rule of DirectedThompson."""


@kernel
def _values(limits: Limits, effects: Posterior, drawn: FloatArray, menu: Menu) -> FloatArray:
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
def _decide(
    knobs: InformationWithinKnobs | KnownLevelsKnobs,
    known: tuple[Posterior, Posterior],
    drawn: FloatArray,
    menu: Menu,
    coin: float,
) -> Choice:
    """The arm and the vector to measure; known: the posterior with levels, and without."""
    posterior, effects = known
    values = _values(knobs.limits, effects, drawn, menu)
    stand = standing(values)
    found = contests(stand, CONTESTS)
    slopes = np.zeros((found.shape[0], *posterior.mean.shape))
    for c in range(found.shape[0]):
        first, second = arm_of(menu, found[c, 0]), arm_of(menu, found[c, 1])
        _contest(knobs.limits, effects, first, second, slopes[c])
    # 0 rounds: no measurement is made at once; that had a tenth more regret at R = 0.5 (docs/panel.md)
    choice = settle(knobs.costs, posterior, stand, slopes, menu, 0.0, coin)
    return Choice(choice.arm, choice.vector, choice.phase, values[0, choice.arm])


@kernel
def _contest(
    limits: Limits, effects: Posterior, first: FloatArray, second: FloatArray, out: FloatArray
) -> None:
    """Write the gradient of the difference of two values in every effect into `out` (L+1, d)."""
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
    """Slope of an action's value in every effect, with the sign of the likelier side; (L+1,)."""
    steepness = steepness_within(limits, effects, action, False)
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


register(InformationWithinKnobs, _on_arms, _on_ball)
register(KnownLevelsKnobs, on_arms_within, _on_ball)
