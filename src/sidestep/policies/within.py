"""Posterior sampling within tolerances (ours; no regret bound is known).

Draw every vector from its posterior, with a share `spread` of its standard deviation, and play the action
with the best value under that draw (core/aims.py). A full draw explores too much: a hinge of slope
`penalty` turns every doubt about a side effect into a large fear.

What is measured is the vector that takes most off the variance of the value of the action that is played.
The value has slope 1 in the effect on the target, and slope penalty_i in a protected effect where that is
beyond its tolerance: with probability p, so that sqrt(p) penalty_i is the slope's root mean square.
"""

import math
from typing import NamedTuple

import numpy as np

from sidestep.core.aims import values_within
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.confidence import Confidence
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Forms, Menu, arm_of
from sidestep.core.geometry import dot, lowest_argmax, quadratic
from sidestep.core.kernels import kernel
from sidestep.core.posterior import Posterior, Prior, draw, most_telling, posterior_of
from sidestep.core.programs import best_within
from sidestep.core.solids import Body
from sidestep.core.tolerances import Limits
from sidestep.policies.base import PLAY
from sidestep.policies.dispatch import Choice, ChoiceOnBall, Draws, register

ROOT_TWO = math.sqrt(2.0)


class WithinKnobs(NamedTuple):
    """A player within tolerances as its kernels read it."""

    metric: int
    confidence: Confidence
    prior: Prior
    rank: int  # plays no part
    costs: FloatArray  # (L+1,)
    limits: Limits
    spread: float  # share of the posterior's standard deviation that is drawn
    has_levels: bool  # the last coordinate of an action is that of the level, which no aim sees


@kernel
def _drawn(knobs: WithinKnobs, posterior: Posterior, normals: FloatArray) -> FloatArray:
    """All vectors, drawn with a share of their spread; (L+1, d)."""
    drawn = draw(posterior, normals, 1)[0]
    for v in range(drawn.shape[0]):
        for j in range(drawn.shape[1]):
            off = drawn[v, j] - posterior.mean[v, j]
            drawn[v, j] = posterior.mean[v, j] + knobs.spread * off
        if knobs.has_levels:
            drawn[v, drawn.shape[1] - 1] = 0.0
    return drawn


@kernel
def _without_level(knobs: WithinKnobs, action: FloatArray) -> FloatArray:
    """The action as an aim sees it."""
    seen = action.copy()
    if knobs.has_levels:
        seen[seen.size - 1] = 0.0
    return seen


@kernel
def slopes_within(limits: Limits, posterior: Posterior, action: FloatArray) -> FloatArray:
    """Root mean square of the gradient of an action's value in every vector; (L+1, d)."""
    n, d = posterior.mean.shape
    out = np.empty((n, d))
    for v in range(n):
        slope = 1.0
        if v > 0:
            effect = dot(posterior.mean[v], action)
            spread = posterior.noise[v] * np.sqrt(max(quadratic(posterior.inverse[v], action), 0.0))
            above = _above(effect - limits.high[v - 1], spread)
            below = _above(limits.low[v - 1] - effect, spread)
            slope = limits.penalty[v - 1] * np.sqrt(min(above + below, 1.0))
            slope = -slope if above >= below else slope
        for j in range(d):
            out[v, j] = slope * action[j]
    return out


@kernel
def _above(mean: float, spread: float) -> float:
    """Probability that a Gaussian is positive."""
    if spread <= 0.0:
        return 1.0 if mean > 0.0 else 0.0
    return 0.5 * math.erfc(-mean / (spread * ROOT_TWO))


@kernel
def _on_arms(
    knobs: WithinKnobs,
    evidence: Evidence,
    core_set: IntArray,
    menu: Menu,
    forms: Forms,
    draws: Draws,
) -> Choice:
    posterior = posterior_of(knobs.prior, evidence)
    drawn = _drawn(knobs, posterior, draws.normals)
    values = values_within(knobs.limits, drawn, menu.columns, menu.squared.size)
    arm = lowest_argmax(values)
    action = arm_of(menu, arm)
    slopes = slopes_within(knobs.limits, posterior, _without_level(knobs, action))
    vector, _ = most_telling(posterior, knobs.costs, slopes, action)
    return Choice(arm, vector, PLAY, values[arm])


@kernel
def _on_ball(
    knobs: WithinKnobs, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    """On a solid scipy finds the best action: never compiled, `simulate` plays it step by step."""
    posterior = posterior_of(knobs.prior, evidence)
    drawn = _drawn(knobs, posterior, draws.normals)
    d = body.centre.size
    action, value = best_within(body, knobs.limits, np.ascontiguousarray(drawn[:, :d]))
    measured = np.empty(drawn.shape[1])
    measured[:d] = action
    if knobs.has_levels:
        measured[d] = 2.0 * knobs.confidence.action_bound * np.sqrt(d)
    slopes = slopes_within(knobs.limits, posterior, _without_level(knobs, measured))
    vector, _ = most_telling(posterior, knobs.costs, slopes, measured)
    return ChoiceOnBall(action, vector, PLAY, value, np.nan)


register(WithinKnobs, _on_arms, _on_ball)
