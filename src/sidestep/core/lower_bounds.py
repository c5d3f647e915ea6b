"""What every policy must pay, as numbers; the proofs are in docs/theory.md.

function               what no policy beats
lower_bound            Theorem 6.1 of the paper: of order T^(3/4), over arms that change (Theorem 11)
unspanned_bound        of order T, over fixed arms that do not span (Theorem 9)
spanning_bound         of order T^(2/3), over fixed arms that span (Theorem 10)
ball_bound             of order T^(1/2), on the unit ball near one instance (Theorem 12)
price_of_protection    its leading term, p G sqrt(T)
expected_price         the mean of p G under the prior of `thompson_bound` (corollary of Theorem 12)

Plain numpy. `spanning_bound` and `lower_bound` are about pairs of problems, which
`environments.hard` builds.
"""

import math
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from sidestep.core.actions import UnitBall
from sidestep.core.arrays import FloatArray
from sidestep.core.conditions import amounts_of, check_for_ball, check_for_posterior_sampling
from sidestep.core.problem import Problem
from sidestep.core.upper_bounds import expected_coefficients
from sidestep.core.validation import check_choice, check_positive
from sidestep.errors import InputError

Amount = TypeVar("Amount", float, FloatArray)  # a number gives a number, an array an array

KAPPA_MOST = 1 / 6  # up to here the informative arm is the worst of Theorem 10 for every angle
DEPENDENT = (
    1e-9  # protected vectors with a smaller share of the largest singular value are dependent
)


class World(Protocol):
    """What is read of an instance (environments/instance.py)."""

    @property
    def actions(self) -> object:
        """What may be played."""

    @property
    def theta(self) -> FloatArray:
        """The hidden vectors, (L+1, d); row 0 is the target."""

    @property
    def problem(self) -> Problem:
        """What a policy is told."""


class Price(NamedTuple):
    """What protection costs on the ball: every policy pays about directions * noise * sqrt(T).

    directions     p = d - s - 1: directions that may raise the reward and are not seen while exploiting
    noise          G = R_0 + sum_i |x_i| R_i: noise of the reward as the outcomes show it
    coefficients   x, of the protected part of the target in the protected vectors; (s,)
    """

    directions: int
    noise: float
    coefficients: FloatArray

    def regret(self, horizon: Amount) -> Amount:
        """The leading term of what every policy pays, p G sqrt(T)."""
        return plain(self.directions * self.noise * np.sqrt(amounts_of("horizon", horizon)))


def price_of_protection(instance: World) -> Price:
    """What protection costs on the ball: every policy pays about p G sqrt(T), and one pays that.

    Theorems 12 and 13 of docs/theory.md. Every protected vector must count: n_protected is the rank.
    Where p = 0, which is s = d - 1, the regret grows like log T.

    instance   its hidden vectors are read; its actions are the unit ball

    >>> import sidestep as ss
    >>> world = ss.environments.synthetic(4, 1, 1, "ball", noise_scale=0.1, seed=0)
    >>> price = ss.theory.price_of_protection(world)
    >>> price.directions, round(price.noise, 3), round(price.regret(10_000), 1)
    (2, 0.17, 34.0)
    """
    protected, x = protected_part(instance)
    noise = instance.problem.noise
    weight = float(noise[0] + np.abs(x) @ noise[1:])
    target = instance.theta[0]
    if np.linalg.norm(target - x @ protected) <= DEPENDENT * np.linalg.norm(target):
        raise InputError("some of the target must be left unprotected for this price, got none")
    return Price(protected.shape[1] - protected.shape[0] - 1, weight, x)


def expected_price(problem: Problem) -> float:
    """Mean of p G under the prior of `thompson_bound`; in the limit no policy pays less sqrt(T).

    That is the limit of Bayes regret / sqrt(T), at least (docs/theory.md, corollary of Theorem 12). Every
    protected vector must count, and s <= d - 2. Costs and norm_bound do not matter.

    problem   sizes and noise; its actions are the unit ball

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=6, n_protected=2, subspace_dim=2, noise_scale=0.1)
    >>> round(ss.theory.expected_price(problem), 3)
    0.555
    """
    check_for_ball(problem)
    d, s = problem.dim, problem.n_protected
    check_for_posterior_sampling(problem, most=d - 2)
    each = expected_coefficients(d, s) / max(s, 1)  # E|x_i|
    return (d - s - 1) * float(problem.noise[0] + each * problem.noise[1:].sum())


def ball_bound(instance: World, horizon: Amount, *, reach: float | None = None) -> Amount:
    """Largest regret near an instance on the unit ball, at least, for every policy (Theorem 12).

    At most p G sqrt(T), and this in the limit. The proof has a free radius; the largest value over
    a grid is returned, and 0 where none is positive. Near: every vector is within `reach`.

    instance   its hidden vectors are read; Gaussian noise, and every protected vector must count
    horizon    T, a number or an array
    reach      how far the vectors of the other problems are, at most; None: as far as the proof allows

    >>> import sidestep as ss
    >>> world = ss.environments.synthetic(4, 1, 1, "ball", noise_scale=0.1, seed=0)
    >>> price, T = ss.theory.price_of_protection(world), 1e20
    >>> round(float(ss.theory.ball_bound(world, T) / price.regret(T)), 2)
    0.99
    """
    T = amounts_of("horizon", horizon)
    protected_part(instance)
    if reach is not None:
        check_positive("reach", reach)
    if not instance.problem.noise.min() > 0:
        raise InputError("noise_scale must be positive for this bound, got 0")
    best, d = np.zeros(T.shape), instance.theta.shape[1]
    longest = float(np.linalg.norm(instance.theta, axis=1).max())
    for spread in np.geomspace(1e-8, 1.0, 97) * longest:
        for tail in (4.0, 8.0, 12.0, 18.0, 26.0, 36.0):
            if reach is None or _reach(float(spread), tail, d) <= reach:
                best = np.maximum(best, near_bound(instance, T, float(spread), tail))
    return plain(best)


def near_bound(instance: World, T: FloatArray, spread: float, tail: float) -> FloatArray:
    """The bound of Theorem 12 for one prior around the instance; may be negative.

    spread   tau, standard deviation of the prior N(theta_v, tau^2 I)
    tail     u: the vectors near the instance are those within tau (sqrt(d) + sqrt(2 u))
    """
    theta, noise = instance.theta, instance.problem.noise
    price, (protected, x) = price_of_protection(instance), protected_part(instance)
    p, s, d = price.directions, protected.shape[0], protected.shape[1]
    G, rest = price.noise, theta[0] - protected.T @ x
    reach = _reach(spread, tail, d)
    least = float(np.linalg.svd(protected, compute_uv=False)[-1]) if s else math.inf
    slack = least - math.sqrt(s) * reach
    length = float(np.linalg.norm(rest))  # b
    if p < 1 or slack <= 0:
        return np.zeros(T.shape)
    moved = reach * (1 + float(np.abs(x).sum())) + length * math.sqrt(s) * reach / slack
    low, high = length - moved, length + moved
    if low <= 0:
        return np.zeros(T.shape)
    miss = 1 - math.sqrt(3 * (s + 1) * math.exp(-tail))
    curved = T * (moved / slack) ** 2 * s * p * spread**2 / (2 * high) if s else 0.0 * T
    best = np.full(T.shape, -math.inf)
    for share in (1e-6, 1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4):  # epsilon
        square = (1 - share) * (p * G) ** 2 / high
        main = np.sqrt(low * T * square) - low * p * (noise @ noise) / (2 * spread**2) - square
        best = np.maximum(best, np.maximum(main, 0.0) * max(miss, 0.0) - (1 / share - 1) * curved)
    return best


def _reach(spread: float, tail: float, d: int) -> float:
    """The radius r around the instance that a Gaussian in R^d leaves with probability exp(-tail)."""
    return spread * (math.sqrt(d) + math.sqrt(2 * tail))


def unspanned_bound(horizon: Amount, norm_bound: float = 1.0, action_bound: float = 1.0) -> Amount:
    """Larger regret of the pair `environments.hard.unspanned`, at least, for every policy: A M T / 2.

    No feedback distinguishes the two problems, and what is good in one is bad in the other
    (docs/theory.md, Theorem 9). A policy that plays at random reaches it.

    horizon        T, a number or an array
    norm_bound     M
    action_bound   A

    >>> import sidestep as ss
    >>> ss.theory.unspanned_bound(1000)
    500.0
    """
    check_positive("norm_bound", norm_bound)
    check_positive("action_bound", action_bound)
    return plain(0.5 * action_bound * norm_bound * amounts_of("horizon", horizon))


def spanning_bound(
    horizon: Amount,
    kappa: float = 0.1,
    noise_scale: float = 1.0,
    *,
    strength: float = 1.0,
    norm_bound: float = 1.0,
) -> Amount:
    """Larger expected regret of the pair `environments.hard.spanning`, at least, for every policy.

    Of order M (R T / (sigma sqrt(kappa)))^(2/3), and of order M T where kappa T is small
    (docs/theory.md, Theorem 10).

    horizon       T, a number or an array
    kappa         how well the arms span, at most 1/6; that of uniform exploration is kappa/8 to kappa/4
    noise_scale   R
    strength      sigma, length of the protected vector
    norm_bound    M, length of the target

    >>> import sidestep as ss
    >>> round(ss.theory.spanning_bound(100_000, 0.1, 0.1, strength=0.9), 1)
    116.6
    """
    T = amounts_of("horizon", horizon)
    check_spanning(kappa, noise_scale, strength, norm_bound)
    loss = _informative_loss(kappa)
    return plain(norm_bound * loss * _informative_rounds(T, kappa, noise_scale, strength))


def spanning_angle(
    horizon: Amount, kappa: float, noise_scale: float, strength: float = 1.0
) -> Amount:
    """Angle epsilon of the pair of Theorem 10, at most pi/4."""
    n = _informative_rounds(amounts_of("horizon", horizon), kappa, noise_scale, strength)
    return plain(_angle(n, kappa, noise_scale, strength))


def check_spanning(kappa: float, noise_scale: float, strength: float, norm_bound: float) -> None:
    """Raise unless Theorem 10 covers this pair."""
    check_positive("kappa", kappa)
    check_positive("noise_scale", noise_scale)
    check_positive("strength", strength)
    check_positive("norm_bound", norm_bound)
    if kappa > KAPPA_MOST:
        raise InputError(f"kappa must be at most 1/6 for this bound, got {kappa!r}")
    if strength > norm_bound:
        raise InputError(f"strength must be at most norm_bound = {norm_bound:g}, got {strength!r}")


def _informative_loss(kappa: float) -> float:
    """c: what a play of the informative arm costs at least, for M = 1."""
    return (math.sqrt(1 - kappa) - math.sqrt(kappa)) / math.sqrt(2)


def _per_play(kappa: float, noise_scale: float, strength: float) -> float:
    """Divergence h sin^2(epsilon) of a play of the informative arm, without its sine: h."""
    return 2 * kappa * (strength / noise_scale) ** 2


def _angle(n: FloatArray, kappa: float, noise_scale: float, strength: float) -> FloatArray:
    """The angle at which n plays of the informative arm leave a divergence of 1/2, at most pi/4."""
    return np.arcsin(np.sqrt(np.minimum(0.5 / (_per_play(kappa, noise_scale, strength) * n), 0.5)))


def _informative_rounds(
    T: FloatArray, kappa: float, noise_scale: float, strength: float
) -> FloatArray:
    """Plays of the informative arm at which exploring costs as much as not exploring; by bisection."""
    c = _informative_loss(kappa)
    low, high = np.full(T.shape, 1e-300), np.maximum(T, 1e-300)
    for _ in range(200):
        n = np.sqrt(low) * np.sqrt(high)
        angle = _angle(n, kappa, noise_scale, strength)
        missed = np.exp(-_per_play(kappa, noise_scale, strength) * n * np.sin(angle) ** 2)
        cheap = c * n <= T * np.sin(2 * angle) * missed / (8 * math.sqrt(2))
        low, high = np.where(cheap, n, low), np.where(cheap, high, n)
    return low


def lower_bound(horizon: Amount, noise_scale: float = 1.0, *, form: str = "printed") -> Amount:
    """Lower bound on the larger of the two expected regrets, for every policy.

    "printed" knows no noise scale and starts at T = 256; its proof needs R >= 0.386 (C4). "corrected"
    is for Gaussian noise and the pair with alpha = sqrt(R) T^(-1/4), where alpha <= 1/4: gaps are at
    least 0.78 alpha, the divergence D is at most T (2.5 alpha^2)^2 / (2 R^2) = 3.125, and the third
    arm is on offer in a third of the rounds but for a chance of exp(-T/18). Elsewhere it is 0.

    horizon       T, a number or an array
    noise_scale   R
    form          "printed" or "corrected"

    >>> import sidestep as ss
    >>> round(ss.theory.lower_bound(10_000, form="corrected"), 2)
    1.43
    """
    check_choice("form", form, ("printed", "corrected"))
    if np.ndim(noise_scale) or noise_scale != 0:
        check_positive("noise_scale", noise_scale)
    T = amounts_of("horizon", horizon)
    if form == "printed":
        return plain(np.where(T >= 256, math.exp(-21) / 16 * T**0.75, 0.0))
    alpha = math.sqrt(noise_scale) * T**-0.25
    told_apart = math.exp(-3.125) / 2 - 2 * np.exp(-T / 18)
    both = 0.78 * alpha * (T / 6) * told_apart
    return plain(np.where(alpha <= 0.25, np.maximum(both / 2, 0.0), 0.0))


def protected_part(instance: World) -> tuple[FloatArray, FloatArray]:
    """The protected vectors (s, d), and the coefficients of the target's protected part; (s,).

    Raises one sentence where the theorems about the ball do not cover the instance.
    """
    theta, problem = instance.theta, instance.problem
    protected = theta[1:]
    if not isinstance(instance.actions, UnitBall):
        raise InputError(
            f"actions must be the unit ball for this price, got {type(instance.actions).__name__}"
        )
    if problem.tolerance is not None or problem.intercept:
        raise InputError(
            "this price is for the projected reward without levels, got a tolerance or an intercept"
        )
    sizes = np.linalg.svd(protected, compute_uv=False)
    if sizes.size < len(protected) or (sizes.size and sizes[-1] <= DEPENDENT * sizes[0]):
        raise InputError(
            "the protected vectors must be independent for this price, got "
            f"{len(protected)} of rank {int((sizes > DEPENDENT * sizes.max(initial=0.0)).sum())}"
        )
    if len(protected) >= theta.shape[1]:
        raise InputError("some direction must be left unprotected for this price, got none")
    return protected, np.linalg.lstsq(protected.T, theta[0], rcond=None)[0]


def plain(values: FloatArray) -> Any:
    """An array as it is, a single number as a float."""
    return float(values) if np.ndim(values) == 0 else values
