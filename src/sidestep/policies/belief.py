"""The posterior of every vector, and of the effects of an action, from the evidence of a policy.

The prior is N(0, M^2/d), whatever rho the policy uses. The actions of interest were chosen from the same
data, which a posterior interval does not take into account: uncorrected intervals cover the truth in 91
to 96 of 100 cases instead of 95. So intervals of effects are made a tenth wider. The probability of being
within every tolerance needs no such correction: it agreed with the measured frequency
(docs/guardrails.md). Coverage is measured, not proved (docs/theory.md).

Where noise is learned, the interval of an outcome uses the degrees of freedom of its own noise estimate:
its own, and those borrowed from the pooled estimate. With the pooled degrees of freedom the intervals of
studies with 10 to 14 results covered the truth in 76 to 92 of 100 cases (docs/studies.md).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri, stdtr, stdtrit

from sidestep.core.arrays import FloatArray
from sidestep.core.checks import check_probability
from sidestep.core.pooled import spectrum_of
from sidestep.core.posterior import (
    BORROWED,
    LEARNED,
    Posterior,
    degrees_of_freedom,
    effects_alone,
    noise_levels,
    prior_of,
)
from sidestep.core.problem import Problem
from sidestep.core.rank import rank_odds
from sidestep.core.tolerances import Limits
from sidestep.errors import InputError
from sidestep.policies.base import State
from sidestep.policies.compiled_policy import CompiledPolicy

WIDER = 1.1
CERTAIN = 0.05  # a rank that the spectrum excludes at this level gets probability 0


class Interval(NamedTuple):
    """An estimate, and an interval that contains the truth with the required probability.

    estimate    the estimated value
    low, high   the ends of the interval
    """

    estimate: float
    low: float
    high: float


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


def belief_of(policy: CompiledPolicy, state: State) -> Belief:
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


def checked_belief(policy: object, state: State, level: float) -> Belief:
    """`belief_of`, after checking policy, state and level; raises one sentence if one is unsuitable."""
    check_probability("level", level)
    if not isinstance(policy, CompiledPolicy):
        raise InputError(f"recommend needs a policy of this package, got {type(policy).__name__}")
    return belief_of(policy, state)


def odds_of(problem: Problem, belief: Belief) -> FloatArray:
    """Probability of every rank 0..min(L, d) of the protected vectors; (min(L, d) + 1,).

    Where a resolution or an eigenvalue is known, the rank is at least the number of certain directions,
    and directions that certainly do not matter are not counted. The probability of a rank outside this
    range is added to the nearest rank inside it.
    """
    odds = np.zeros(min(problem.n_protected, problem.dim) + 1)
    if problem.subspace_dim is not None:
        odds[problem.subspace_dim] = 1.0
        return odds
    odds[1:] = rank_odds(belief.posterior)
    if problem.resolution is not None or problem.eigenvalue is not None:
        seen = spectrum_of(problem, belief.posterior, belief.variance, CERTAIN)
        least, most = max(seen.separated, 1), max(seen.separated + seen.undecided, 1)
        kept = np.clip(np.arange(len(odds)), least, most)
        return np.bincount(kept, odds, minlength=len(odds)).astype(float)
    return odds


def effects_of(belief: Belief, actions: FloatArray, level: float) -> Effects:
    """Effects of the rows of `actions` (K, d) on every outcome, with intervals.

    With few degrees of freedom a Student interval is longer than that of the prior: then that is taken.
    """
    before = np.sqrt(belief.variance) * np.linalg.norm(actions, axis=1)
    reach = quantile(belief, level)[:, None] * (WIDER * _spreads(belief, actions))
    half = np.minimum(reach, WIDER * ndtri(0.5 + level / 2) * before)
    return Effects(belief.posterior.mean @ actions.T, half)


def _spreads(belief: Belief, actions: FloatArray) -> FloatArray:
    """Standard deviations of the effects of actions (K, d); (L+1, K)."""
    posterior = belief.posterior
    forms = ((actions @ posterior.inverse) * actions).sum(axis=2)
    return np.asarray(posterior.noise[:, None] * np.sqrt(np.maximum(forms, 0.0)))


def quantile(belief: Belief, level: float) -> FloatArray:
    """How many standard deviations an interval reaches to either side, for every vector; (L+1,)."""
    return np.asarray(stdtrit(belief.freedom, 0.5 + level / 2))


def within_odds(belief: Belief, limits: Limits, actions: FloatArray) -> FloatArray:
    """Probability that every protected effect of the rows of `actions` (K, d) is within; (K,).

    The vectors are independent under the posterior, so the joint probability is a product. An effect
    without uncertainty, such as that of the zero action, counts as within if it lies on a limit.
    """
    estimate, spread = belief.posterior.mean[1:] @ actions.T, _spreads(belief, actions)[1:]
    low, high = limits.low[:, None], limits.high[:, None]
    wide = np.maximum(spread, 1e-300)
    below = stdtr(belief.pooled, (high - estimate) / wide)
    under = stdtr(belief.pooled, (low - estimate) / wide)
    certain = (low <= estimate) & (estimate <= high)
    odds = np.where(spread > 0, np.maximum(below - under, 0.0), certain)
    return np.asarray(np.prod(odds, axis=0))
