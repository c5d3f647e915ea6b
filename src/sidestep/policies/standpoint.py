"""Effects, expected values and gradients of actions under the posterior at the time of an ask.

All are in closed form, without draws. g_v(a) is the gradient of the value of action a in vector v: that
of the projected reward at the estimates (core/sensitivity.py), or the steepness within tolerances
(core/aims.py).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from sidestep.core.arrays import FloatArray
from sidestep.core.posterior import Posterior, effects_alone, row_weights
from sidestep.core.problem import Problem
from sidestep.core.programs import best_within
from sidestep.core.sensitivity import Frame, gradient, pooled_frame
from sidestep.core.solids import Solid, farthest

ROOT_TWO_PI = float(np.sqrt(2.0 * np.pi))


class Standpoint(NamedTuple):
    """The posterior at the time of asking, and the aim."""

    problem: Problem
    posterior: Posterior  # levels included
    effects: Posterior  # levels integrated out
    view: Frame | None  # for the projected reward; None within tolerances


def standpoint_of(problem: Problem, posterior: Posterior, rank: int) -> Standpoint:
    """The standpoint of a posterior, with protected vectors of the assumed rank."""
    effects = effects_alone(posterior, problem.intercept)
    view = None
    if problem.tolerance is None:
        view = pooled_frame(effects.mean, row_weights(effects), rank)
    return Standpoint(problem, posterior, effects, view)


def effects_at(here: Standpoint, actions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of <a, theta_v> of actions (K, d); (L+1, K) each."""
    effects = here.effects
    squares = ((actions @ effects.inverse) * actions).sum(axis=2)
    spread = effects.noise[:, None] * np.sqrt(np.maximum(squares, 0.0))
    return effects.mean @ actions.T, np.maximum(spread, 1e-300)


def values_at(here: Standpoint, actions: FloatArray) -> FloatArray:
    """Expected values of actions (K, d); (K,)."""
    if here.view is not None:
        return np.asarray(actions @ here.view.rest)
    limits = here.problem.limits
    assert limits is not None
    mean, spread = effects_at(here, actions)
    fines = np.zeros(len(actions))
    for i, price in enumerate(limits.penalty):
        if price > 0.0:
            for over in (mean[i + 1] - limits.high[i], limits.low[i] - mean[i + 1]):
                z = np.maximum(over / spread[i + 1], -40.0)
                density = np.exp(-0.5 * z * z) / ROOT_TWO_PI
                fines += price * spread[i + 1] * np.maximum(density + z * ndtr(z), 0.0)
    return np.asarray(mean[0] - fines)


def slopes_at(here: Standpoint, action: FloatArray, *, averaged: bool = False) -> FloatArray:
    """Gradient of the value of an action in every vector; (L+1, d)."""
    if here.view is not None:
        return gradient(here.view, np.array(action))
    return np.asarray(steepness_at(here, action[None], averaged=averaged) * action)


def steepness_at(here: Standpoint, actions: FloatArray, *, averaged: bool = False) -> FloatArray:
    """1, and the slope in every protected effect, as `steepness_within` of core/aims.py; (L+1, K)."""
    limits = here.problem.limits
    assert limits is not None
    mean, spread = effects_at(here, actions)
    above = ndtr((mean[1:] - limits.high[:, None]) / spread[1:])
    below = ndtr((limits.low[:, None] - mean[1:]) / spread[1:])
    beyond = above + below
    steep = limits.penalty[:, None] * (beyond if averaged else np.sqrt(beyond))
    return np.vstack([np.ones((1, len(actions))), steep])


def best_in_solid(here: Standpoint, solid: Solid) -> FloatArray:
    """The best action of a solid at the estimates."""
    limits, body = here.problem.limits, solid.body
    if limits is not None:
        return best_within(body, limits, here.effects.mean)[0]
    assert here.view is not None
    rest = here.view.rest
    return farthest(body, rest if rest.any() else np.ones(rest.size))
