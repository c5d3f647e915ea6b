"""The reasons of a decision: the rival, what each measurement would settle, price, expected feedback.

The reasons are computed after the choice, in closed form from the posterior, without draws. So they are
the same whether the choice was compiled or not, and cost a fraction of a millisecond over a hundred arms.

The difference of the values of two actions a and b (a contest) has the variance
sum_v R_v^2 |g_v(a) - g_v(b)|^2  in the metric V_v^-1, where g_v is the gradient of the value
(policies/advice/posterior_summary.py).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtrit

from sidestep.core.actions import Actions, Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.caution import chance_within
from sidestep.core.estimator import Evidence
from sidestep.core.linalg import lowest_argmax
from sidestep.core.posterior import Posterior, Prior, doubting_posterior_of, padded
from sidestep.core.problem import Problem, Query
from sidestep.core.projection import gradient_matrices
from sidestep.core.variance_reduction import reductions, variance
from sidestep.policies.advice.posterior_summary import (
    Standpoint,
    best_in_solid,
    slopes_at,
    steepness_at,
    values_at,
)
from sidestep.policies.base import Interval

LEVEL = 0.95  # probability of the interval for the feedback


class Reasons(NamedTuple):
    """The reasons, as fields of a Decision."""

    rival: int | FloatArray | None  # the competing action: row of an arm, or an action of a solid
    shares: FloatArray  # share of the contested variance that one result of each outcome removes; (L+1,)
    price: float  # expected loss against today's best action
    expected: Interval  # predicted feedback
    within: float | None  # probability of being within every tolerance; None without tolerances


def reasons_for(
    here: Standpoint,
    prior: Prior,
    evidence: Evidence,
    actions: Actions,
    query: Query,
    *,
    alone: bool = False,
    averaged: bool = False,
) -> Reasons:
    """The reasons for a query, from the posterior and the aim at the time of asking.

    The shares are of the variance of the contest with the rival. Where the policy measures for the
    action's own value (`alone`), they are of the variance of that value. averaged: the slopes are mean
    slopes (core/objective.py).
    """
    best, rival = _contenders(here, actions, query.action)
    other = best if rival is None else rival
    slopes = slopes_at(here, query.action, averaged=averaged)
    if not alone and not np.array_equal(other, query.action):
        slopes = slopes - slopes_at(here, other)
    worth = values_at(here, np.stack([best, query.action]))
    price = max(float(worth[0] - worth[1]), 0.0)
    named = None if rival is None else _named(actions, rival)
    expected = _expected(here.problem, here.posterior, prior, evidence, query)
    limits = here.problem.limits
    inside = None if limits is None else float(chance_within(limits, here.effects, query.action))
    return Reasons(named, _shares(here, slopes, query.action), price, expected, inside)


def expected_feedback(
    problem: Problem, prior: Prior, evidence: Evidence, queries: Iterable[Query]
) -> list[Interval]:
    """The predicted feedback of every query, with its interval."""
    posterior = doubting_posterior_of(prior, evidence)
    return [_expected(problem, posterior, prior, evidence, query) for query in queries]


def _variances(here: Standpoint, arms: FloatArray, action: FloatArray) -> FloatArray:
    """Variance of the contest of every arm with one action; (K,)."""
    effects, scale = here.effects, here.effects.noise**2
    if here.view is not None:
        maps = gradient_matrices(here.view)
        metric = (scale[:, None, None] * (maps.swapaxes(1, 2) @ effects.inverse @ maps)).sum(axis=0)
        return np.asarray((((arms - action) @ metric) * (arms - action)).sum(axis=1))
    own, steep = steepness_at(here, action[None]), steepness_at(here, arms)
    apart = steep[:, :, None] * arms - own[:, :, None] * action  # (L+1, K, d)
    return np.asarray(scale @ ((apart @ effects.inverse) * apart).sum(axis=2))


def _contenders(
    here: Standpoint, actions: Actions, action: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Today's best expected action, and the rival of the played action.

    If the played action is not the best, the best one is the rival. Otherwise it is the arm whose
    expected lag, in standard deviations of the contest, is smallest. On a solid the rival of the best
    action is None, since every neighbour competes.
    """
    if not isinstance(actions, Arms):
        best = best_in_solid(here, actions)
        return best, None if np.allclose(best, action) else best
    arms = np.asarray(actions.vectors)
    values = values_at(here, arms)
    best = arms[int(np.argmax(values))]
    if not np.array_equal(best, action):
        return best, best
    spreads = _variances(here, arms, action)
    contends = (arms != action).any(axis=1) & (spreads > 0.0)
    if not contends.any():
        return best, None
    lags = (values.max() - values) / np.sqrt(np.where(contends, spreads, 1.0))
    return best, arms[lowest_argmax(np.where(contends, -lags, -np.inf))]


def _named(actions: Actions, rival: FloatArray) -> int | FloatArray:
    """The rival as the caller knows it: the row of an arm, or the action itself."""
    if not isinstance(actions, Arms):
        return rival
    return actions.row(int(np.argmax((actions.vectors == rival).all(axis=1))))


def _shares(here: Standpoint, slopes: FloatArray, action: FloatArray) -> FloatArray:
    """Share of the contested variance that one result of each outcome along `action` removes; (L+1,)."""
    posterior, measured = here.posterior, here.problem.lifted(np.array(action))
    contested = variance(here.effects, slopes)
    if contested <= 0.0:
        return np.zeros(len(slopes))
    gradients = padded(slopes, measured.size)
    directions = (posterior.inverse @ gradients[:, :, None])[:, :, 0]
    return reductions(posterior, directions, measured[:, None])[:, 0] / contested


def _expected(
    problem: Problem, posterior: Posterior, prior: Prior, evidence: Evidence, query: Query
) -> Interval:
    """The predicted feedback: effect plus level, with an interval that includes the noise."""
    v, measured = query.index, problem.lifted(np.array(query.action))
    estimate = float(posterior.mean[v] @ measured)
    square = float(measured @ posterior.inverse[v] @ measured)
    reach = float(ndtri(0.5 + LEVEL / 2))
    if np.isnan(prior.noise[v]):
        learned = np.isnan(prior.noise)
        free = float(evidence.weight[learned].sum()) - problem.width * learned.sum()
        reach = float(stdtrit(max(free, 1.0), 0.5 + LEVEL / 2))
    half = reach * float(posterior.noise[v] * np.sqrt(1.0 + max(square, 0.0)))
    return Interval(estimate, estimate - half, estimate + half)
