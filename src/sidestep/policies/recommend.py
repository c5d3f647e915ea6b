"""What a policy would now stand by: an action, its reward and effects with intervals, and its rivals.

Intervals are those of the posterior (core/posterior.py), with the prior N(0, M^2/d) whatever rho the
policy plays with. An effect <a, theta_v> is Gaussian. The reward is not linear in the
vectors: its spread is the larger of the first-order one (core/sensitivity.py) and that of draws, which
is what counts near the start, and no reward leaves +-|a| M. The actions were chosen by looking at the
data, which such intervals do not know of: as they are they cover 91 to 96 times in 100 instead of 95, so
they are drawn a tenth wider. Coverage is measured, not proved (docs/theory.md).

Protection is in the reward. The best of finitely many arms may well move a protected outcome: that is why
every effect is shown beside the reward.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from sidestep.core.actions import Actions, Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.checks import check_probability
from sidestep.core.kernels import kernel
from sidestep.core.posterior import (
    Posterior,
    Prior,
    draw,
    noise_levels,
    posterior_from_sums,
    row_weights,
    variance,
)
from sidestep.core.problem import Query, checked_query
from sidestep.core.rank import Spectrum, consistent_rank
from sidestep.core.sensitivity import Frame, gradient, pooled_frame
from sidestep.core.solids import farthest
from sidestep.errors import InputError
from sidestep.policies.base import CompiledPolicy, State

DRAWS = 1000
WIDER = (
    1.1  # intervals are drawn a tenth wider than the belief: actions were chosen by looking at it
)
NEAR = (
    0.95  # on a solid no action is best for sure: one is counted good with this share of the best
)
CONTENDS = 0.01  # an arm that is best in fewer draws is no rival
RIVALS = 5


class Interval(NamedTuple):
    """An estimate, and where the truth lies with the level asked for."""

    estimate: float
    low: float
    high: float


class Rival(NamedTuple):
    """Another arm that may be the best."""

    arm: int
    probability: float
    ahead: Interval  # reward of the recommended arm over this one's


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation:
    """What a policy would now stand by."""

    action: FloatArray  # (d,)
    arm: int | None  # row among the arms; None on a solid
    reward: Interval
    effects: tuple[Interval, ...]  # <a, theta_v>: the target, then every protected outcome
    probability: float  # that it is the best arm; on a solid: that it has 95% of the best reward
    rivals: tuple[Rival, ...]  # arms that are still contending, likeliest first
    spectrum: Spectrum | None  # evidence on the rank, where the player is not told it

    @property
    def settled(self) -> bool:
        """Whether nothing contends any more."""
        return not self.rivals and self.probability >= 1 - CONTENDS


class _Outlook(NamedTuple):
    """The belief, seen from one state."""

    posterior: Posterior
    view: Frame  # at the estimates
    rests: FloatArray  # theta_perp in every draw; (DRAWS, d)
    quantile: float


def recommend(
    policy: CompiledPolicy, state: State, actions: Actions, level: float = 0.95
) -> Recommendation:
    """The action that the evidence stands by, and how firmly. The same state gives the same answer."""
    outlook = _outlook(policy, state, level)
    actions = policy.admitted(actions)
    rest, rests = outlook.view.rest, outlook.rests
    if isinstance(actions, Arms):
        row = int(np.argmax(actions.vectors @ rest))
        action, arm = actions.vectors[row], actions.row(row)
        wins = _wins(actions.vectors @ rests.T)
        same = (actions.vectors == action).all(axis=1)
        likely = float(wins[same].sum())
        rivals = _rivals(outlook, actions, action, np.where(same, 0.0, wins))
    else:
        arm, rivals = None, ()
        body = actions.body
        action = farthest(body, rest if rest.any() else np.ones(actions.dim))
        best = np.array([farthest(body, drawn) @ drawn for drawn in rests])
        likely = float((rests @ action >= NEAR * best).mean())
    reward, effects = _intervals(outlook, policy, np.array(action))
    seen = policy.spectrum(state)
    return Recommendation(action, arm, reward, effects, likely, rivals, seen)


def intervals(
    policy: CompiledPolicy, state: State, action: FloatArray, level: float = 0.95
) -> tuple[Interval, tuple[Interval, ...]]:
    """Reward of any action, and its effect on every outcome (target first), with intervals."""
    outlook = _outlook(policy, state, level)
    return _intervals(outlook, policy, checked_query(policy.problem, Query(action, 0)).action)


def _outlook(policy: Any, state: State, level: float) -> _Outlook:
    check_probability("level", level)
    if not isinstance(policy, CompiledPolicy):
        raise InputError(f"recommend needs a policy of this package, got {type(policy).__name__}")
    posterior, freedom = _belief(policy, state)
    rank = _rank(policy, state, posterior)
    weights = row_weights(posterior)
    normals = np.random.default_rng(0).standard_normal(DRAWS * posterior.mean.size)
    rests = drawn_rests(posterior, weights, rank, normals, DRAWS)
    quantile = WIDER * float(stdtrit(freedom, 0.5 + level / 2))
    return _Outlook(posterior, pooled_frame(posterior.mean, weights, rank), rests, quantile)


def _belief(policy: CompiledPolicy, state: State) -> tuple[Posterior, float]:
    """The belief under the honest prior, and the degrees of freedom of its noise."""
    problem, evidence = policy.problem, state.evidence
    largest = problem.norm_bound * problem.action_bound
    prior = problem.norm_bound**2 / problem.dim
    noise = np.maximum(problem.known_noise, 1e-6 * largest)
    if not np.isnan(noise).any():
        return posterior_from_sums(evidence, noise, prior), np.inf
    unknown = Prior(policy.knobs.confidence.rho, noise, prior, largest)
    freedom = max(float(evidence.weight.sum()) - problem.dim * problem.n_vectors, 1.0)
    return posterior_from_sums(evidence, noise_levels(unknown, evidence), prior), freedom


def _rank(policy: CompiledPolicy, state: State, posterior: Posterior) -> int:
    """S where it is told; else as many directions as the evidence does not contradict."""
    if policy.problem.subspace_dim is not None:
        return policy.problem.subspace_dim
    return consistent_rank(posterior, delta=0.05)


@kernel
def drawn_rests(
    posterior: Posterior, weights: FloatArray, rank: int, normals: FloatArray, times: int
) -> FloatArray:
    """theta_perp of so many draws; (times, d)."""
    drawn = draw(posterior, normals, times)
    rests = np.empty((times, drawn.shape[2]))
    for time in range(times):
        view = pooled_frame(drawn[time], weights, rank)
        for j in range(rests.shape[1]):
            rests[time, j] = view.rest[j]
    return rests


def _wins(rewards: FloatArray) -> FloatArray:
    """Share of the draws in which every arm is the best; of equal arms the lowest; (K,)."""
    best = rewards.argmax(axis=0)
    return np.bincount(best, minlength=len(rewards)) / rewards.shape[1]


def _rivals(
    outlook: _Outlook, arms: Arms, action: FloatArray, wins: FloatArray
) -> tuple[Rival, ...]:
    order = np.argsort(-wins, kind="stable")[:RIVALS]
    return tuple(
        Rival(arms.row(int(k)), float(wins[k]), _ahead(outlook, action, arms.vectors[k]))
        for k in order
        if wins[k] >= CONTENDS
    )


def _ahead(outlook: _Outlook, action: FloatArray, other: FloatArray) -> Interval:
    """Reward of one action over another's."""
    slopes = gradient(outlook.view, np.array(action)) - gradient(outlook.view, np.array(other))
    return _reward(outlook, action - other, slopes)


def _intervals(
    outlook: _Outlook, policy: CompiledPolicy, action: FloatArray
) -> tuple[Interval, tuple[Interval, ...]]:
    reward = _reward(outlook, action, gradient(outlook.view, action))
    limit = float(np.linalg.norm(action)) * policy.problem.norm_bound
    posterior = outlook.posterior
    effects = []
    for v in range(len(posterior.noise)):
        spread = posterior.noise[v] * np.sqrt(action @ posterior.inverse[v] @ action)
        effects.append(_around(float(action @ posterior.mean[v]), outlook.quantile * spread))
    clipped = (float(np.clip(end, -limit, limit)) for end in reward)
    return Interval(*clipped), tuple(effects)


def _reward(outlook: _Outlook, action: FloatArray, slopes: FloatArray) -> Interval:
    first_order = np.sqrt(variance(outlook.posterior, slopes))
    drawn = float((outlook.rests @ action).std())
    estimate = float(outlook.view.rest @ action)
    return _around(estimate, outlook.quantile * max(first_order, drawn))


def _around(estimate: float, half: float) -> Interval:
    return Interval(float(estimate), float(estimate - half), float(estimate + half))
