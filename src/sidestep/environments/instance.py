"""A world: hidden vectors, a source of actions, noise, and the regret, which no policy sees."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from sidestep.core.actions import SOLIDS, Actions, Arms, Body, farthest
from sidestep.core.arrays import FloatArray
from sidestep.core.jit import kernel
from sidestep.core.linalg import dot, orthonormal, project_off
from sidestep.core.objective import fined, value_within
from sidestep.core.problem import Limits, Problem, Query, Tolerance, checked_query, limits_of
from sidestep.core.tolerance_program import best_within
from sidestep.core.validation import SLACK, as_numbers, check_rng, shown
from sidestep.environments.action_sources import ActionSource, FreshArms, Menus, arm_sets
from sidestep.errors import InputError

GAUSSIAN, RADEMACHER, UNIFORM, BERNOULLI = 0, 1, 2, 3
NOISES = ("gaussian", "rademacher", "uniform", "bernoulli")
BERNOULLI_SCALE = 0.5  # a coin is 1/2-sub-Gaussian whatever its mean


class Truth(NamedTuple):
    """The hidden side of a world as compiled code reads it."""

    theta: FloatArray  # (L+1, d)
    theta_perp: FloatArray  # (d,)
    level: FloatArray  # (L+1,): mean feedback of the zero action
    noise: int
    scale: FloatArray  # (L+1,)
    has_limits: bool  # the aim is `within`; else the projected reward
    limits: Limits


@dataclass(frozen=True, slots=True, eq=False)
class Instance:
    """A protected linear bandit, including what is hidden from the policy.

    theta         the hidden vectors, row 0 the target; (L+1, d)
    actions       what may be played: `Arms`, a solid, `FreshArms` or `Menus`
    noise_scale   R, one for all or one per outcome
    norm_bound    M, at least the length of the longest vector
    subspace_dim  the rank that the policy knows; None: the true rank of the protected vectors
    noise   "gaussian" with standard deviation R; "rademacher", +-R; "uniform" on +-sqrt(3) R, whose
            standard deviation is R; "bernoulli": the feedback is a coin whose mean is <a, theta_i>,
            which must lie in [0, 1] for every arm, and the policy knows R = 1/2, not `noise_scale`
    tolerance     as in Problem: regret and genie then follow that aim
    penalty       as in Problem
    intercept     level of every outcome: added to the feedback, not part of the reward; the policy knows
                  only that there is one; (L+1,)

    >>> import numpy as np, sidestep as ss
    >>> theta = np.array([[0.6, 0.8], [1.0, 0.0]])  # the target, and what is protected
    >>> world = ss.environments.Instance(theta, ss.UnitBall(2), noise_scale=0.1)
    >>> world.theta_perp.tolist()
    [0.0, 0.8]
    """

    theta: FloatArray  # (L+1, d), row 0 the target
    actions: ActionSource
    noise_scale: float | Sequence[float] = 0.1
    norm_bound: float = 1.0
    subspace_dim: int | None = None
    noise: str = "gaussian"
    tolerance: Tolerance = None
    penalty: float | Sequence[float] | None = None
    intercept: Sequence[float] | FloatArray | None = None  # (L+1,)
    theta_perp: FloatArray = field(init=False)
    problem: Problem = field(init=False)
    truth: Truth = field(init=False)

    if TYPE_CHECKING:  # the constructor also accepts lists

        def __init__(
            self,
            theta: ArrayLike,
            actions: ActionSource,
            noise_scale: float | Sequence[float] = 0.1,
            norm_bound: float = 1.0,
            subspace_dim: int | None = None,
            noise: str = "gaussian",
            tolerance: Tolerance = None,
            penalty: float | Sequence[float] | None = None,
            intercept: Sequence[float] | FloatArray | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        theta = np.array(self.theta, dtype=float)
        _check_vectors(theta, self.norm_bound)
        if not isinstance(self.actions, (*SOLIDS, Arms, FreshArms, Menus)):
            words = ", ".join(kind.__name__ for kind in SOLIDS)
            raise InputError(
                f"actions must be {words}, Arms, FreshArms or Menus, "
                f"got {type(self.actions).__name__}"
            )
        if self.actions.dim != theta.shape[1]:
            raise InputError(
                f"actions must have the dimension of theta, {theta.shape[1]}, "
                f"got {self.actions.dim}"
            )
        if self.noise not in NOISES:
            raise InputError(f"noise must be one of {', '.join(NOISES)}, got {self.noise!r}")
        level = _checked_level(self.intercept, len(theta))
        if self.noise == "bernoulli":
            _check_means(theta, level, self.actions)
        rank = self.subspace_dim
        problem = Problem(
            dim=theta.shape[1],
            n_protected=len(theta) - 1,
            subspace_dim=protected_rank(theta) if rank is None else rank,
            noise_scale=BERNOULLI_SCALE if self.noise == "bernoulli" else self.noise_scale,
            norm_bound=self.norm_bound,
            action_bound=max(self.actions.longest, 1.0),
            tolerance=self.tolerance,
            penalty=self.penalty,
            intercept=self.intercept is not None,
        )
        theta_perp = project_off(orthonormal(theta[1:]), theta[0])
        hidden = (theta.copy(), theta_perp.copy(), level)
        limits = problem.limits
        aim = (limits is not None, limits or limits_of((), ()))
        truth = Truth(*hidden, NOISES.index(self.noise), problem.noise, *aim)
        for array in (theta, theta_perp):
            array.setflags(write=False)
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "theta_perp", theta_perp)
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "truth", truth)

    def __repr__(self) -> str:
        aim = "" if self.tolerance is None else f", tolerance={self.tolerance}"
        return (
            f"Instance(dim={self.problem.dim}, n_protected={self.problem.n_protected}, "
            f"actions={type(self.actions).__name__}, noise_scale={self.noise_scale}{aim})"
        )

    def observe(self, query: Query, rng: Generator) -> float:
        """Feedback of a query: <a, theta_i> plus noise. Every call draws one random number."""
        query = checked_query(self.problem, query)
        check_rng(rng)
        draw = rng.standard_normal() if self.truth.noise == GAUSSIAN else rng.random()
        value = float(feedback_of(self.truth, query.action, query.index, draw))
        if np.isnan(value):
            mean = self.theta[query.index] @ query.action + self.truth.level[query.index]
            raise InputError(not_a_coin(f"{mean:.6g}"))
        return value

    def reward(self, action: FloatArray) -> float:
        """Reward of an action: <a, theta_perp>, or its value within tolerances. No policy sees it."""
        return float(worth(self.truth, np.array(action, dtype=float)))

    def best_reward(self, actions: Actions) -> float:
        """Reward of the genie in a round with these actions."""
        if isinstance(actions, Arms):
            return float(rewards_of(self.truth, actions.columns).max())
        if self.truth.has_limits:
            return best_within(actions.body, self.truth.limits, self.truth.theta)[1]
        return float(best_in(actions.body, self.truth.theta_perp))

    def regret(self, query: Query, actions: Actions) -> float:
        """Pseudo-regret of a round; negative if an action off the menu is better than the menu."""
        return self.best_reward(actions) - self.reward(query.action)


@kernel(refcounts=False)
def feedback_of(truth: Truth, action: FloatArray, index: int, draw: float) -> float:
    """The feedback, given the random number of the round: a normal, or a uniform in [0, 1)."""
    mean = dot(truth.theta[index], action) + truth.level[index]
    if truth.noise == GAUSSIAN:
        return mean + truth.scale[index] * draw
    if truth.noise == RADEMACHER:
        return mean + (truth.scale[index] if draw < 0.5 else -truth.scale[index])
    if truth.noise == UNIFORM:
        return mean + truth.scale[index] * np.sqrt(3.0) * (2.0 * draw - 1.0)
    if mean < -SLACK or mean > 1.0 + SLACK:
        return np.nan  # not a mean of a coin; the caller raises
    return 1.0 if draw < mean else 0.0


@kernel
def worth(truth: Truth, action: FloatArray) -> float:
    """Reward of an action under the aim of the world."""
    if truth.has_limits:
        return value_within(truth.limits, truth.theta, action)
    return dot(truth.theta_perp, action)


def rewards_of(truth: Truth, columns: FloatArray) -> FloatArray:
    """Rewards of all arms of one menu or of many; columns (..., d, K); (..., K)."""
    if truth.has_limits:
        return fined(np.einsum("vj,...jk->...vk", truth.theta, columns), truth.limits)
    return np.asarray(np.einsum("j,...jk->...k", truth.theta_perp, columns))


def best_in(body: Body, theta_perp: FloatArray) -> float:
    """Largest projected reward in a solid."""
    if dot(theta_perp, theta_perp) == 0.0:
        return 0.0
    return dot(farthest(body, theta_perp), theta_perp)


def not_a_coin(came: str) -> str:
    """Error text: why an action off the menu cannot have Bernoulli feedback."""
    return f"bernoulli noise needs <a, theta_i> in [0, 1] for every action played, got {came}"


def protected_rank(theta: FloatArray) -> int:
    """Dimension of the span of the protected vectors."""
    return len(orthonormal(np.array(theta[1:], dtype=float)))


def _check_vectors(theta: FloatArray, norm_bound: float) -> None:
    if theta.ndim != 2 or theta.size == 0:
        hint = ": a single vector is a row as well, [[...]]" if theta.ndim == 1 else ""
        raise InputError(f"theta must have shape (L+1, d), got {theta.shape}{hint}")
    if not np.isfinite(theta).all():
        raise InputError("theta must be finite numbers, got NaN or infinity")
    lengths = np.linalg.norm(theta, axis=1)
    if lengths.max() > norm_bound * (1 + SLACK):
        raise InputError(
            f"every vector of theta must have length at most norm_bound = {norm_bound:g}, got "
            f"{lengths.max():.6g} in row {int(lengths.argmax())}"
        )


def _checked_level(intercept: object, count: int) -> FloatArray:
    """The level of every outcome; zeros where the world has none."""
    if intercept is None:
        return np.zeros(count)
    level = as_numbers("intercept", intercept)
    if level.shape != (count,) or not np.isfinite(level).all():
        raise InputError(
            f"intercept must be {count} finite numbers, one per vector, got {shown(intercept)}"
        )
    return level


def _check_means(theta: FloatArray, level: FloatArray, actions: ActionSource) -> None:
    """Bernoulli feedback needs every mean in [0, 1], so the arms must be known beforehand."""
    menus = arm_sets(actions)
    if not menus:
        raise InputError(
            "bernoulli noise needs arms that are known beforehand, with <a, theta_i> in [0, 1], "
            f"got {type(actions).__name__}"
        )
    for menu in menus:
        means = menu.vectors @ theta.T + level
        if means.min() < 0 or means.max() > 1:
            arm, index = np.argwhere((means < 0) | (means > 1))[0]
            raise InputError(
                "bernoulli noise needs <a, theta_i> in [0, 1] for every arm, got "
                f"{means[arm, index]:.6g} for arm {arm} and vector {index}"
            )
