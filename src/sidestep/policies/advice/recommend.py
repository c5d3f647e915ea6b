"""The current recommendation of a policy: an action, its reward and effects with intervals, its rivals.

An effect <a, theta_v> is Gaussian under the posterior (posterior_summary.py). The reward of an action is
not linear in the vectors, so it is computed from posterior draws (rank_draws.py): the action with the
largest mean over draws is recommended. Where the rank of the protected vectors is not known, every draw
has its own rank, with the probabilities of `rank_odds`. Intervals of the projected reward are cut at
+-|a| M. Coverage is measured, not proved (docs/theory.md).

The best of finitely many arms may well change a protected outcome, so every effect is shown beside the
reward. With tolerances, only actions are recommended that are within all of them together with at least
the required probability. If there is none, the best candidate is named and `assured` is False. A verdict
is about one outcome and uses its two-sided, widened interval, so an assured action may have an outcome
that is "not settled".
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from sidestep.core.actions import Actions, Arms, Solid, farthest
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.display import brief, notebook_table
from sidestep.core.objective import within
from sidestep.core.posterior import Posteriors
from sidestep.core.problem import Limits, Query, checked_query
from sidestep.core.rank import Spectrum, is_reviewed, resolution_of, spectrum
from sidestep.core.tolerance_program import best_within
from sidestep.core.validation import check_probability
from sidestep.errors import InputError
from sidestep.policies.advice.next_measurement import (
    Narrowing,
    Settling,
    settling,
    unsettled,
    verdicts_of,
)
from sidestep.policies.advice.posterior_summary import (
    EXCLUDED_AT,
    Belief,
    belief_of,
    effects_of,
    odds_of,
    quantile,
    standpoint_of,
    within_odds,
)
from sidestep.policies.advice.rank_draws import CHAINS, KEPT, Sample, draw_of_ranks, draw_vectors
from sidestep.policies.base import Interval, State
from sidestep.policies.builtin import BuiltinPolicy

__all__ = ["Interval", "Loss", "Recommendation", "Rival", "intervals", "recommend"]

WIDER_VALUES = 1.2  # factor of intervals of rewards: rank probabilities are estimates too
NEAR = 0.95  # on a solid an action counts as best in a draw if it has this share of the best value
CONTENDS = 0.01  # an arm that is best in a smaller share of the draws is not a rival
RIVALS = 5
CHUNK = 1 << 21  # numbers in memory at once while draws are compared
VALUE_TIE = 1e-12  # values closer than this times M A are equal
SHORTLIST = 24  # draws whose best action on a solid is a candidate, within tolerances


class Rival(NamedTuple):
    """Another arm that may be the best.

    arm           its row among the arms
    probability   that it is the best
    ahead         value of the recommended arm minus the value of this one, with an interval
    action        its vector; (d,)
    """

    arm: int
    probability: float
    ahead: Interval
    action: FloatArray


class Loss(NamedTuple):
    """Loss of stopping now: the largest value minus that of the recommended action, over draws.

    mean   its mean
    high   its upper bound at the required level
    """

    mean: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation:
    """The action that a policy recommends.

    action        the recommended action; (d,)
    arm           its row among the arms; None on a solid
    reward        its reward with an interval: projected, or within tolerances
    effects       on the target, then on every protected outcome, with intervals
    probability   that it is the best arm; on a solid: that it has 95% of the best reward
    rivals        arms that may still be the best, the most probable first
    spectrum      evidence about the rank, if the problem does not tell it
    loss          loss if you stop now: its mean, and an upper bound at the level
    verdicts      "within", "beyond" or "not settled" per protected outcome; () without tolerances
    assured       whether all are within together, with the level as probability; None without tolerances
    within        probability of being within every tolerance; None without tolerances
    settles       the one measurement that would settle most; None: nothing is open
    unsettled     for every outcome "not settled", the effect of further results

    >>> import sidestep as ss
    >>> policy = ss.DirectedThompson(ss.Problem(2, 1, tolerance=0.2, noise_scale=0.1))
    >>> advice = ss.recommend(policy, policy.init(), ss.Arms([[1.0, 0.0], [0.0, 1.0]]))
    >>> advice.verdicts
    ('not settled',)
    """

    action: FloatArray
    arm: int | None
    reward: Interval
    effects: tuple[Interval, ...]
    probability: float
    rivals: tuple[Rival, ...]
    spectrum: Spectrum | None
    loss: Loss
    verdicts: tuple[str, ...]
    assured: bool | None  # whether `within` is at least the level
    within: float | None
    settles: Settling | None
    unsettled: tuple[Narrowing, ...]

    def __repr__(self) -> str:
        which = brief(self.action) if self.arm is None else f"arm {self.arm}"
        return (
            f"Recommendation({which}, reward {brief(self.reward)}, best with probability "
            f"{brief(self.probability)})"
        )

    def _repr_html_(self) -> str:
        names = ["effect on the target"]
        names += [f"effect on outcome {i}" for i in range(1, len(self.effects))]
        said = [f": {word}" for word in ("", *self.verdicts)] if self.verdicts else []
        effects = {
            name: brief(effect) + (said[k] if said and k else "")
            for k, (name, effect) in enumerate(zip(names, self.effects, strict=True))
        }
        rows: dict[str, object] = {"action": self.action, "arm": self.arm, "worth": self.reward}
        rows |= effects
        rows |= {"best with probability": self.probability, "stopping now gives up": self.loss.mean}
        return notebook_table("Recommendation", {k: v for k, v in rows.items() if v is not None})

    @property
    def clean(self) -> Interval | None:
        """The part of the target's effect that no protected outcome shares; None within tolerances.

        This is the paper's reward.
        """
        return self.reward if self.assured is None else None

    @property
    def settled(self) -> bool:
        """Whether no rival has 1% of the draws any more, and no direction is undecided.

        Where the rank is told, or tolerances are, only the rivals count. Where it is not, every protected
        direction must be separated or dismissed as well (`spectrum`), and the error bound counts what was
        measured least. So a policy that plays for reward gets there only where all min(L, d) directions
        are strong. If there are fewer, the bound must fall below the resolution: some 400 times
        L d (R / resolution)^2 results of every protected outcome, spread over all directions.
        """
        undecided = self.spectrum is not None and self.spectrum.undecided > 0
        return not self.rivals and self.probability >= 1 - CONTENDS and not undecided


class _Outlook(NamedTuple):
    """The posterior at one state, with draws from it."""

    belief: Belief
    sample: Sample
    limits: Limits | None
    norm_bound: float
    level: float
    rank: int  # the most probable one


class _Found(NamedTuple):
    """The recommended action, and its results over the draws."""

    action: FloatArray  # (d,)
    arm: int | None
    best: FloatArray  # the largest value in every draw; (n,)
    probability: float
    rivals: tuple[Rival, ...] = ()
    assured: bool | None = None
    rival: FloatArray | None = None  # action of the most probable rival; (d,)


def checked_belief(policy: object, state: State, level: float) -> Belief:
    """`belief_of`, after checking policy, state and level; raises one sentence if one is unsuitable."""
    check_probability("level", level)
    if not isinstance(policy, BuiltinPolicy):
        raise InputError(f"recommend needs a policy of this package, got {type(policy).__name__}")
    return belief_of(policy, state)


def recommend(
    policy: BuiltinPolicy, state: State, actions: Actions, level: float = 0.95
) -> Recommendation:
    """Recommend an action, with intervals. The same state gives the same answer.

    policy    the policy
    state     its state
    actions   the set of actions
    level     posterior probability of an interval

    >>> import numpy as np, sidestep as ss
    >>> world = ss.environments.failure()
    >>> policy = ss.DirectedThompson(world.problem)
    >>> state, rng = policy.init(), np.random.default_rng(0)
    >>> for _ in range(60):
    ...     query = policy.ask(state, world.actions, rng).query
    ...     state = policy.tell(state, query, world.observe(query, rng))
    >>> ss.recommend(policy, state, world.actions).arm
    1
    """
    outlook = _outlook(policy, state, level)
    actions = policy.admitted(actions)
    found = (
        _among_arms(outlook, actions) if isinstance(actions, Arms) else _on_solid(outlook, actions)
    )
    worth, effects = _intervals(outlook, found.action)
    given_up = np.maximum(found.best - _values(outlook, found.action[None])[:, 0], 0.0)
    verdicts = verdicts_of(outlook.limits, effects)
    odds = _odds_within(outlook, found.action[None])
    posteriors = Posteriors(outlook.belief.measured, outlook.belief.posterior)
    here = standpoint_of(policy.problem, posteriors, outlook.rank)
    return Recommendation(
        *(found.action, found.arm, worth, effects, found.probability, found.rivals),
        spectrum=_spectrum(policy, state, outlook.belief),
        loss=Loss(float(given_up.mean()), WIDER_VALUES * float(np.quantile(given_up, level))),
        verdicts=verdicts,
        assured=found.assured,
        within=None if odds is None else float(odds[0]),
        settles=settling(here, actions, found.action, found.rival),
        unsettled=unsettled(here, found.action, verdicts, quantile(outlook.belief, level)),
    )


def intervals(
    policy: BuiltinPolicy, state: State, action: FloatArray, level: float = 0.95
) -> tuple[Interval, tuple[Interval, ...]]:
    """Reward of any action and its effects on every outcome (target first), with intervals.

    policy   the policy
    state    its state
    action   the action; (d,)
    level    posterior probability of an interval

    >>> import numpy as np, sidestep as ss
    >>> policy = ss.DirectedThompson(ss.Problem(2, 1, subspace_dim=1, noise_scale=0.1))
    >>> worth, effects = ss.intervals(policy, policy.init(), np.array([1.0, 0.0]))
    >>> worth.low < worth.estimate < worth.high, len(effects)
    (True, 2)
    """
    outlook = _outlook(policy, state, level)
    return _intervals(outlook, checked_query(policy.problem, Query(action, 0)).action)


def _spectrum(policy: BuiltinPolicy, state: State, belief: Belief) -> Spectrum | None:
    """Evidence about the rank, also for a policy that does not ask for it; None where it is told."""
    problem = policy.problem
    if not is_reviewed(problem) or problem.n_protected == 0:
        return None
    if (own := policy.spectrum(state)) is not None:
        return own
    told = problem.resolution is not None or problem.eigenvalue is not None
    least = resolution_of(problem) if told else 0.0
    return spectrum(belief.posterior, problem.norm_bound, belief.variance, EXCLUDED_AT, least)


def _outlook(policy: BuiltinPolicy, state: State, level: float) -> _Outlook:
    belief = checked_belief(policy, state, level)
    problem, rng = policy.problem, np.random.default_rng(0)
    limits, rank = problem.limits, 0
    if limits is None:
        odds = odds_of(problem, belief)
        sample, rank = draw_of_ranks(belief, odds, problem.norm_bound, rng), int(odds.argmax())
    else:
        vectors = draw_vectors(belief.posterior, rng, CHAINS * KEPT)
        sample = Sample(vectors, vectors[:, 0])
    return _Outlook(belief, sample, limits, problem.norm_bound, level, rank)


def _values(outlook: _Outlook, actions: FloatArray) -> FloatArray:
    """Value of every action (K, d) in every draw; (n, K)."""
    if outlook.limits is None:
        return np.asarray(outlook.sample.rests @ actions.T)
    return within(outlook.sample.vectors, actions, outlook.limits)


def _among_arms(outlook: _Outlook, arms: Arms) -> _Found:
    vectors = np.asarray(arms.vectors)
    mean, best, winner = _contest(outlook, vectors)
    row, assured = int(np.argmax(mean)), None
    if (odds := _odds_within(outlook, vectors)) is not None:
        kept = odds >= outlook.level
        assured = bool(kept.any())
        row = int(np.argmax(np.where(kept, mean, -np.inf))) if assured else row
    action = np.array(vectors[row])
    won = (
        _values(outlook, action[None])[:, 0] >= best - VALUE_TIE * outlook.norm_bound * arms.longest
    )
    wins = np.bincount(winner[~won], minlength=len(arms)) / len(won)
    rivals = _rivals(outlook, arms, action, wins)
    rival = rivals[0].action if rivals else None
    return _Found(action, arms.row(row), best, float(won.mean()), rivals, assured, rival)


def _contest(outlook: _Outlook, vectors: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:
    """Mean value of every arm (K,), then the best value of every draw and its arm, (n,) each."""
    sample, n = outlook.sample, len(outlook.sample.rests)
    total, best, winner = np.zeros(len(vectors)), np.empty(n), np.empty(n, dtype=np.int64)
    size = max(CHUNK // (len(vectors) * sample.vectors.shape[1]), 1)
    for start in range(0, n, size):
        part = slice(start, start + size)
        few = Sample(sample.vectors[part], sample.rests[part])
        values = _values(outlook._replace(sample=few), vectors)
        total += values.sum(axis=0)
        winner[part] = values.argmax(axis=1)
        best[part] = values.max(axis=1)
    return total / n, best, winner


def _on_solid(outlook: _Outlook, solid: Solid) -> _Found:
    if outlook.limits is not None:
        found = _among_arms(outlook, _shortlist(outlook, outlook.limits, solid))
        return found._replace(arm=None, rivals=())
    rests, body = outlook.sample.rests, solid.body
    mean = rests.mean(axis=0)
    action = farthest(body, mean if mean.any() else np.ones(solid.dim))
    best = np.array([farthest(body, rest) @ rest if rest.any() else 0.0 for rest in rests])
    return _Found(action, None, best, float((rests @ action >= NEAR * best).mean()))


def _shortlist(outlook: _Outlook, limits: Limits, solid: Solid) -> Arms:
    """Candidate actions of a solid, within tolerances: the best for the means and for some draws.

    Each is a candidate at full size and shortened towards zero, if the solid contains the shorter one: an
    action that is not certain to be within its tolerances may be so at half the size.
    """
    vectors = outlook.sample.vectors
    some = [vectors.mean(axis=0), *vectors[:: max(len(vectors) // SHORTLIST, 1)]]
    best = [best_within(solid.body, limits, np.ascontiguousarray(each))[0] for each in some]
    shorter = [share * action for action in best for share in (1.0, 0.75, 0.5, 0.25, 0.0)]
    return Arms(np.array([action for action in shorter if solid.contains(action)])).distinct()


def _odds_within(outlook: _Outlook, vectors: FloatArray) -> FloatArray | None:
    """Probability of every arm (K, d) of being within all tolerances; None without tolerances; (K,)."""
    return None if outlook.limits is None else within_odds(outlook.belief, outlook.limits, vectors)


def _rivals(
    outlook: _Outlook, arms: Arms, action: FloatArray, wins: FloatArray
) -> tuple[Rival, ...]:
    order = [int(k) for k in np.argsort(-wins, kind="stable")[:RIVALS] if wins[k] >= CONTENDS]
    mine = _values(outlook, action[None])
    leads = mine - _values(outlook, np.asarray(arms.vectors[order]).reshape(-1, arms.dim))
    return tuple(
        Rival(
            arms.row(k), float(wins[k]), _spread_of(outlook, leads[:, j]), np.array(arms.vectors[k])
        )
        for j, k in enumerate(order)
    )


def _intervals(outlook: _Outlook, action: FloatArray) -> tuple[Interval, tuple[Interval, ...]]:
    worth = _spread_of(outlook, _values(outlook, action[None])[:, 0])
    if outlook.limits is None:
        limit = float(np.linalg.norm(action)) * outlook.norm_bound
        worth = Interval(*(float(np.clip(end, -limit, limit)) for end in worth))
    effects = effects_of(outlook.belief, action[None], outlook.level)
    return worth, tuple(map(_around, effects.estimate[:, 0], effects.half[:, 0]))


def _spread_of(outlook: _Outlook, values: FloatArray) -> Interval:
    """Mean of the values over draws, with an interval of as many deviations as the level requires."""
    reach = WIDER_VALUES * float(stdtrit(outlook.belief.pooled, 0.5 + outlook.level / 2))
    return _around(values.mean(), reach * values.std())


def _around(estimate: float, half: float) -> Interval:
    return Interval(float(estimate), float(estimate - half), float(estimate + half))
