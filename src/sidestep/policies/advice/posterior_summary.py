"""The posterior of every vector, and of the effects of an action, from the evidence of a policy.

The prior is N(0, M^2/d), whatever rho the policy uses. The actions of interest were chosen from the same
data, which a posterior interval does not take into account: uncorrected intervals cover the truth in 91
to 96 of 100 cases instead of 95. So intervals of effects are made a tenth wider. The probability of being
within every tolerance needs no such correction: it agreed with the measured frequency
(docs/guardrails.md). Coverage is measured, not proved (docs/theory.md).

Where noise is learned, the interval of an outcome uses the degrees of freedom of its own noise estimate:
its own, and those borrowed from the pooled estimate. With the pooled degrees of freedom the intervals of
studies with 10 to 14 results covered the truth in 76 to 92 of 100 cases (docs/studies.md).

A standpoint is the posterior at the time of an ask with the policy's own prior. g_v(a) is the gradient of
the value of action a in vector v: that of the projected reward at the estimates (core/projection.py), or
the steepness within tolerances (core/objective.py). All is in closed form, without draws.

Two formulas stand here and in core, on purpose. A policy decides with those of core; what a person reads
comes from those here:

formula                    in core                              here, and why
posterior from the sums    `posterior_from_sums`, by Cholesky   `posterior_under`, by eigenvalues: with
                                                                almost no noise Cholesky fails
chance of being within     `chances_within`, normal             `within_odds`, Student where the noise
                                                                is learned
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from sidestep.core.actions import Solid, farthest
from sidestep.core.arrays import FloatArray
from sidestep.core.objective import expected_values, steepnesses_within
from sidestep.core.posterior import (
    BORROWED,
    LEARNED,
    Posterior,
    Posteriors,
    all_spreads_of,
    degrees_of_freedom,
    effects_alone,
    noise_levels,
    prior_of,
    row_weights,
)
from sidestep.core.problem import Limits, Problem
from sidestep.core.projection import Frame, gradient, pooled_frame
from sidestep.core.rank import rank_odds, spectrum_of
from sidestep.core.tolerance_program import best_within
from sidestep.policies.base import State

if TYPE_CHECKING:
    from sidestep.policies.builtin import BuiltinPolicy

WIDER = 1.1
EXCLUDED_AT = 0.05  # a rank that the spectrum excludes at this level gets probability 0


class Belief(NamedTuple):
    """A Gaussian posterior of every vector, and the degrees of freedom of its noise estimate."""

    posterior: Posterior
    information: FloatArray  # precision from the data: sum of a a' / R^2; (L+1, d, d)
    pull: FloatArray  # information times least-squares estimate: sum of a x / R^2; (L+1, d)
    variance: float  # prior variance of a coordinate: M^2 / d
    freedom: FloatArray  # of every noise estimate; infinite where the noise is known; (L+1,)
    pooled: float  # degrees of freedom of all noise estimates together
    measured: Posterior  # the posterior of effects and levels; without levels, of the effects


class Effects(NamedTuple):
    """<a, theta_v> of every vector and action."""

    estimate: FloatArray  # (L+1, K)
    half: FloatArray  # (L+1, K): half the length of its interval


def belief_of(policy: "BuiltinPolicy", state: State) -> Belief:
    """The posterior under the prior N(0, M^2/d)."""
    problem, evidence = policy.problem, state.evidence
    prior = prior_of(problem, None)._replace(rho=policy.knobs.confidence.rho)
    noise, learned = prior.noise, np.isnan(prior.noise)
    freedom, pooled = np.full(noise.size, np.inf), np.inf
    if learned.any():
        noise, own = noise_levels(prior, evidence), degrees_of_freedom(prior, evidence)
        free = float(own[learned].sum())
        if free > LEARNED:  # before, noise is taken for the largest
            freedom[learned] = np.maximum(own[learned] + min(BORROWED, free - LEARNED), 1.0)
            pooled = free + BORROWED
    gram, moment = evidence.gram + evidence.gram_low, evidence.moment + evidence.moment_low
    measured = posterior_under(gram, moment, noise, prior.variance)
    posterior = effects_alone(measured, problem.intercept)
    scale = noise[:, None] ** -2.0
    information, pull = gram * scale[:, :, None], moment * scale
    if problem.intercept:
        information, pull = _of_effects(information, pull, prior.variance)
    return Belief(posterior, information, pull, prior.variance, freedom, pooled, measured)


def _of_effects(
    information: FloatArray, pull: FloatArray, variance: float
) -> tuple[FloatArray, FloatArray]:
    """Information and pull of the effects with the levels integrated out (a Schur complement)."""
    level = information[:, -1, -1] + 1.0 / variance  # the last term is the prior of the level
    shared = information[:, :-1, -1]
    share = shared / level[:, None]
    inner = information[:, :-1, :-1] - shared[:, :, None] * share[:, None, :]
    return inner, pull[:, :-1] - share * pull[:, -1:]


def posterior_under(
    gram: FloatArray, moment: FloatArray, noise: FloatArray, variance: float
) -> Posterior:
    """The posterior for the prior N(0, variance), for all vectors at once.

    Computed from eigenvalues: with almost no noise and directions that were never measured, the smallest
    eigenvalues are those of the prior, and rounding must not push them below.
    """
    values, axes = np.linalg.eigh(gram)
    ridge = (noise**2 / variance)[:, None]
    shrunk = axes / (np.maximum(values, 0.0) + ridge)[:, None, :]
    inverse = shrunk @ axes.transpose(0, 2, 1)
    return Posterior((inverse @ moment[:, :, None])[:, :, 0], inverse, noise)


def odds_of(problem: Problem, belief: Belief) -> FloatArray:
    """Probability of every rank 0..min(L, d) of the protected vectors; (min(L, d) + 1,).

    Where a resolution or an eigenvalue is known, the rank is at least the number of certain directions,
    and directions that certainly do not matter are not counted. The probability of a rank outside this
    range is added to the nearest rank inside it. Rank d has none unless it is told: all actions would be
    equally good, and whichever is recommended would be the best.
    """
    odds = np.zeros(min(problem.n_protected, problem.dim) + 1)
    if problem.subspace_dim is not None:
        odds[problem.subspace_dim] = 1.0
        return odds
    found = rank_odds(belief.posterior)
    odds[1 : len(found) + 1] = found
    if problem.resolution is not None or problem.eigenvalue is not None:
        seen = spectrum_of(problem, belief.posterior, belief.variance, EXCLUDED_AT)
        reach = np.clip((seen.separated, seen.separated + seen.undecided), 1, len(found))
        kept = np.clip(np.arange(len(odds)), *reach)
        return np.bincount(kept, odds, minlength=len(odds)).astype(float)
    return odds


def effects_of(belief: Belief, actions: FloatArray, level: float) -> Effects:
    """Effects of the rows of `actions` (K, d) on every outcome, with intervals.

    With few degrees of freedom a Student interval is longer than that of the prior: then that is taken.
    """
    before = np.sqrt(belief.variance) * np.linalg.norm(actions, axis=1)
    reach = quantile(belief, level)[:, None] * (WIDER * all_spreads_of(belief.posterior, actions.T))
    half = np.minimum(reach, WIDER * ndtri(0.5 + level / 2) * before)
    return Effects(belief.posterior.mean @ actions.T, half)


def quantile(belief: Belief, level: float) -> FloatArray:
    """How many standard deviations an interval reaches to either side, for every vector; (L+1,)."""
    return np.asarray(stdtrit(belief.freedom, 0.5 + level / 2))


def within_odds(belief: Belief, limits: Limits, actions: FloatArray) -> FloatArray:
    """Probability that every protected effect of the rows of `actions` (K, d) is within; (K,).

    The vectors are independent under the posterior, so the joint probability is a product. An effect
    without uncertainty, such as that of the zero action, counts as within if it lies on a limit.
    """
    estimate = belief.posterior.mean[1:] @ actions.T
    spread = all_spreads_of(belief.posterior, actions.T)[1:]
    low, high = limits.low[:, None], limits.high[:, None]
    wide = np.maximum(spread, 1e-300)
    below = stdtr(belief.pooled, (high - estimate) / wide)
    under = stdtr(belief.pooled, (low - estimate) / wide)
    certain = (low <= estimate) & (estimate <= high)
    odds = np.where(spread > 0, np.maximum(below - under, 0.0), certain)
    return np.asarray(np.prod(odds, axis=0))


class Standpoint(NamedTuple):
    """The posterior at the time of asking, and the aim."""

    problem: Problem
    posterior: Posterior  # levels included
    effects: Posterior  # levels integrated out
    view: Frame | None  # for the projected reward; None within tolerances


def standpoint_of(problem: Problem, posteriors: Posteriors, rank: int) -> Standpoint:
    """The standpoint of a posterior, with protected vectors of the assumed rank."""
    effects, view = posteriors.effects, None
    if problem.tolerance is None:
        view = pooled_frame(effects.mean, row_weights(effects), rank)
    return Standpoint(problem, posteriors.full, effects, view)


def values_at(here: Standpoint, actions: FloatArray) -> FloatArray:
    """Expected values of actions (K, d); (K,)."""
    if here.view is not None:
        return np.asarray(actions @ here.view.rest)
    limits = here.problem.limits
    assert limits is not None
    return expected_values(limits, here.effects, actions.T, len(actions))


def slopes_at(here: Standpoint, action: FloatArray, *, averaged: bool = False) -> FloatArray:
    """Gradient of the value of an action in every vector; (L+1, d)."""
    if here.view is not None:
        return gradient(here.view, np.array(action))
    return np.asarray(steepness_at(here, action[None], averaged=averaged) * action)


def steepness_at(here: Standpoint, actions: FloatArray, *, averaged: bool = False) -> FloatArray:
    """1, and the slope in every protected effect, as `steepness_within` computes it; (L+1, K)."""
    limits = here.problem.limits
    assert limits is not None
    return steepnesses_within(limits, here.effects, actions.T, averaged=averaged)


def best_in_solid(here: Standpoint, solid: Solid) -> FloatArray:
    """The best action of a solid at the estimates."""
    limits, body = here.problem.limits, solid.body
    if limits is not None:
        return best_within(body, limits, here.effects.mean)[0]
    assert here.view is not None
    rest = here.view.rest
    return farthest(body, rest if rest.any() else np.ones(rest.size))
