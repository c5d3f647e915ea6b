"""Why a decision was made: the contender, what each result would settle, the price, what is expected.

All in closed form from the posterior, without draws, after the choice: so it is the same whether the
choice was compiled or not, and costs a fraction of a millisecond over a hundred arms.

The value of an action answers to the vectors by its slopes g_v(a): those of the projected reward at the
estimates (core/sensitivity.py), or the steepness within tolerances (core/aims.py). A contest between two
actions has the variance  sum_v R_v^2 |g_v(a) - g_v(b)|^2  in the metric V_v^-1.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from sidestep.core.actions import Actions, Arms
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.estimator import Evidence
from sidestep.core.pooled import ranks
from sidestep.core.posterior import (
    Posterior,
    Prior,
    posterior_of,
    reduction,
    row_weights,
    variance,
    without_levels,
)
from sidestep.core.problem import Problem, Query
from sidestep.core.programs import best_within
from sidestep.core.sensitivity import Frame, gradient, pooled_frame
from sidestep.core.solids import Solid, farthest

LEVEL = 0.95  # of what is expected of the feedback


class Expected(NamedTuple):
    """What the feedback should be, and between which two numbers it lies 19 times in 20."""

    estimate: float
    low: float
    high: float


class Reasons(NamedTuple):
    """What a person wants to see of why."""

    rival: int | FloatArray | None  # row of the contender among the arms; an action on a solid
    shares: (
        FloatArray  # of the contested variance that one result of each outcome takes off; (L+1,)
    )
    price: float  # what the action is expected to lose against today's best
    expected: Expected  # the feedback


class _Outlook(NamedTuple):
    """The posterior at the time of asking, and the aim."""

    problem: Problem
    posterior: Posterior  # levels included
    effects: Posterior  # levels summed over
    view: Frame | None  # of the projected reward


def reasons_for(
    problem: Problem,
    prior: Prior,
    known: tuple[Evidence, IntArray, int],
    actions: Actions,
    query: Query,
) -> Reasons:
    """The reasons for a query; known: the evidence, which directions are real, and the rank told."""
    outlook = _outlook(problem, prior, *known)
    best, rival = _contenders(outlook, actions, query.action)
    other = best if rival is None else rival
    slopes = _slopes(outlook, query.action)
    if not np.array_equal(other, query.action):
        slopes = slopes - _slopes(outlook, other)
    worth = _values(outlook, np.stack([best, query.action]))
    price = max(float(worth[0] - worth[1]), 0.0)
    named = None if rival is None else _named(actions, rival)
    expected = _expected(outlook, prior, known[0], query)
    return Reasons(named, _shares(outlook, slopes, query.action), price, expected)


def _outlook(
    problem: Problem, prior: Prior, evidence: Evidence, core_set: IntArray, rank: int
) -> _Outlook:
    posterior = posterior_of(prior, evidence)
    effects = without_levels(posterior) if problem.intercept else posterior
    view = None
    if problem.tolerance is None:
        real, _ = ranks(rank, core_set, evidence.counts)
        view = pooled_frame(effects.mean, row_weights(effects), real)
    return _Outlook(problem, posterior, effects, view)


def _effects(outlook: _Outlook, actions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of <a, theta_v> of actions (K, d); (L+1, K) each."""
    effects = outlook.effects
    squares = ((actions @ effects.inverse) * actions).sum(axis=2)
    spread = effects.noise[:, None] * np.sqrt(np.maximum(squares, 0.0))
    return effects.mean @ actions.T, np.maximum(spread, 1e-300)


def _values(outlook: _Outlook, actions: FloatArray) -> FloatArray:
    """What actions (K, d) are expected to be worth; (K,)."""
    if outlook.view is not None:
        return np.asarray(actions @ outlook.view.rest)
    limits = outlook.problem.limits
    assert limits is not None
    mean, spread = _effects(outlook, actions)
    fines = np.zeros(len(actions))
    for i, price in enumerate(limits.penalty):
        if price > 0.0:
            for over in (mean[i + 1] - limits.high[i], limits.low[i] - mean[i + 1]):
                z = np.maximum(over / spread[i + 1], -40.0)
                density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
                fines += price * spread[i + 1] * np.maximum(density + z * ndtr(z), 0.0)
    return np.asarray(mean[0] - fines)


def _slopes(outlook: _Outlook, action: FloatArray) -> FloatArray:
    """How the value of an action answers to every vector; (L+1, d)."""
    if outlook.view is not None:
        return gradient(outlook.view, np.array(action))
    return np.asarray(_steepness(outlook, action[None]) * action)


def _steepness(outlook: _Outlook, actions: FloatArray) -> FloatArray:
    """1, and penalty_i sqrt(probability of being beyond), as in core/aims.py; (L+1, K)."""
    limits = outlook.problem.limits
    assert limits is not None
    mean, spread = _effects(outlook, actions)
    above = ndtr((mean[1:] - limits.high[:, None]) / spread[1:])
    below = ndtr((limits.low[:, None] - mean[1:]) / spread[1:])
    steep = limits.penalty[:, None] * np.sqrt(above + below)
    return np.vstack([np.ones((1, len(actions))), steep])


def _variances(outlook: _Outlook, arms: FloatArray, action: FloatArray) -> FloatArray:
    """Variance of the contest of every arm with one action; (K,)."""
    effects, scale = outlook.effects, outlook.effects.noise**2
    if outlook.view is not None:
        maps = np.stack([gradient(outlook.view, axis) for axis in np.eye(len(action))], axis=2)
        metric = (scale[:, None, None] * (maps.swapaxes(1, 2) @ effects.inverse @ maps)).sum(axis=0)
        return np.asarray((((arms - action) @ metric) * (arms - action)).sum(axis=1))
    own, steep = _steepness(outlook, action[None]), _steepness(outlook, arms)
    apart = steep[:, :, None] * arms - own[:, :, None] * action  # (L+1, K, d)
    return np.asarray(scale @ ((apart @ effects.inverse) * apart).sum(axis=2))


def _contenders(
    outlook: _Outlook, actions: Actions, action: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Today's best expected action, and who contends with the one that is played.

    Of a played action that is not the best it is the best; else the arm that is least certainly worse:
    its lag counted in standard deviations of the contest. On a solid every neighbour contends: None.
    """
    if not isinstance(actions, Arms):
        best = _best_in_solid(outlook, actions)
        return best, None if np.allclose(best, action) else best
    arms = np.asarray(actions.vectors)
    values = _values(outlook, arms)
    best = arms[int(np.argmax(values))]
    if not np.array_equal(best, action):
        return best, best
    spreads = _variances(outlook, arms, action)
    contends = (arms != action).any(axis=1) & (spreads > 0.0)
    if not contends.any():
        return best, None
    lags = (values.max() - values) / np.sqrt(np.where(contends, spreads, 1.0))
    return best, arms[int(np.argmin(np.where(contends, lags, np.inf)))]


def _best_in_solid(outlook: _Outlook, solid: Solid) -> FloatArray:
    """The best action of a solid at the estimates."""
    limits, body = outlook.problem.limits, solid.body
    if limits is not None:
        return best_within(body, limits, outlook.effects.mean)[0]
    assert outlook.view is not None
    rest = outlook.view.rest
    return farthest(body, rest if rest.any() else np.ones(rest.size))


def _named(actions: Actions, rival: FloatArray) -> int | FloatArray:
    """A contender as a caller knows it: the row of an arm, or the action itself."""
    if not isinstance(actions, Arms):
        return rival
    return actions.row(int(np.argmax((actions.vectors == rival).all(axis=1))))


def _shares(outlook: _Outlook, slopes: FloatArray, action: FloatArray) -> FloatArray:
    """Share of the contested variance that one result of each outcome, here, takes off; (L+1,)."""
    posterior, measured = outlook.posterior, outlook.problem.lifted(np.array(action))
    contested = variance(outlook.effects, slopes)
    if contested <= 0.0:
        return np.zeros(len(slopes))
    padded = np.zeros(posterior.mean.shape)
    padded[:, : slopes.shape[1]] = slopes
    taken = [reduction(posterior, v, padded[v], measured) for v in range(len(slopes))]
    return np.array(taken) / contested


def _expected(outlook: _Outlook, prior: Prior, evidence: Evidence, query: Query) -> Expected:
    """What the feedback should be: the effect, its level, and the noise."""
    posterior, v = outlook.posterior, query.index
    measured = outlook.problem.lifted(np.array(query.action))
    estimate = float(posterior.mean[v] @ measured)
    square = float(measured @ posterior.inverse[v] @ measured)
    reach = float(ndtri(0.5 + LEVEL / 2))
    if np.isnan(prior.noise[v]):
        learned = np.isnan(prior.noise)
        free = float(evidence.weight[learned].sum()) - outlook.problem.width * learned.sum()
        reach = float(stdtrit(max(free, 1.0), 0.5 + LEVEL / 2))
    half = reach * float(posterior.noise[v] * np.sqrt(1.0 + max(square, 0.0)))
    return Expected(estimate, estimate - half, estimate + half)
