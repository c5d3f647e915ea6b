"""Upper bounds of ours as numbers; the proofs are in docs/theory.md.

function               what it bounds
thompson_bound         Bayes regret of ProtectedThompson on the ball, L = s (Theorems 4 and 5)
expected_coefficients  E|x|_1 under its prior
explore_commit_bound   ExploreThenCommit over fixed arms that span (Theorems 6 and 7)
explore_commit_rounds  how long it should explore

Each raises an error outside its conditions. Plain numpy.
"""

import math
from typing import Any, TypeVar

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.conditions import (
    amounts_of,
    check_for_ball,
    check_for_exploration,
    check_for_posterior_sampling,
    largest_noise,
)
from sidestep.core.problem import Problem, per_vector
from sidestep.core.validation import check_choice, check_integer, check_positive, check_probability
from sidestep.errors import InputError

Amount = TypeVar("Amount", float, FloatArray)  # a number gives a number, an array an array


def expected_coefficients(dim: int, size: int) -> float:
    """E|x|_1 of the coefficients x of P theta_0 in `size` protected vectors, all N(0, tau^2 I).

    Every x_i is Student's t with d - s + 1 degrees of freedom, divided by their root; so the sum is
    s Gamma((d-s)/2) / (sqrt(pi) Gamma((d-s+1)/2)), finite for s <= d - 1. tau does not matter.

    dim    d
    size   s, from 0 to d - 1

    >>> import sidestep as ss
    >>> round(ss.theory.expected_coefficients(6, 2), 3)
    0.849
    """
    check_integer("dim", dim, low=1)
    check_integer("size", size, low=0, high=dim - 1)
    ratio = math.lgamma((dim - size) / 2) - math.lgamma((dim - size + 1) / 2)
    return size * math.exp(ratio) / math.sqrt(math.pi)


def thompson_bound(problem: Problem, horizon: Amount, *, query: str = "widest") -> Amount:
    """Regret of posterior sampling on the unit ball, at most, in expectation over the prior as well.

    The prior is N(0, M^2/d) for every vector, the noise Gaussian. Every protected vector must count
    (L = s), and s <= d - 1, for the query "proportional" s <= d - 2. Outcomes may differ in noise and
    cost, and no tolerance or level is part of it. Proofs: docs/theory.md, Theorems 4 and 5, whose names
    the lines have.

    problem   sizes, noise and bounds; its actions are the unit ball
    horizon   T, a number or an array
    query     of ProtectedThompson: "widest" or "proportional"

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=6, n_protected=2, subspace_dim=2, noise_scale=0.1)
    >>> round(ss.theory.thompson_bound(problem, 1000))
    1878
    """
    check_choice("query", query, ("widest", "proportional"))
    T = np.maximum(amounts_of("horizon", horizon), 1.0)  # at least one round
    check_for_ball(problem)
    d, s, R, M = problem.dim, problem.n_protected, largest_noise(problem), problem.norm_bound
    check_for_posterior_sampling(problem, most=d - 1 if query == "widest" else d - 2)
    costs = per_vector(problem.costs, s + 1)
    rho = (float(problem.noise.min()) / M) ** 2 * d  # the smallest rho of the prior
    potential = (s + 1) * d * np.log1p(T / ((s + 1) * d * rho))
    tail = math.sqrt(d) + np.sqrt(2 * np.log(2 * (s + 1) * T * T))  # z
    if query == "proportional":
        weights = problem.noise / np.sqrt(costs)
        root = weights[0] + weights[1:].sum() / math.sqrt(max(d - s - 1, 1))
        widths = potential / (rho * math.log1p(1 / rho))  # Lambda'
        return _plain(2 * math.sqrt(costs.max()) * tail * root * np.sqrt(widths * T) + 2 * M)
    potential = potential / math.log(2)  # Lambda
    slope = 1 + expected_coefficients(d, s)  # E[1 + |x|_1]
    dear = math.sqrt(costs.max() / costs.min())
    play = 2 * dear * R * tail * slope * np.sqrt(potential * T)
    start = potential * M * (2 + np.sqrt(2 * np.log(T) / d))
    return _plain(play + start + 2 * M)


def explore_commit_bound(
    problem: Problem,
    horizon: float,
    singular_value: float,
    kappa: float,
    rounds: int | None = None,
    *,
    delta: float = 0.001,
    rho: float = 0.1,
    gap: float = 0.0,
) -> float:
    """Regret of ExploreThenCommit over fixed arms that span, at most, w.p. 1 - delta; of order T^(2/3).

    Docs/theory.md, Theorem 6, and Theorem 7 for a known gap, where it is of order log(1 / delta). The
    rank must be known.

    problem          sizes, noise and bounds
    horizon          T
    singular_value   sigma_s, the smallest of the protected vectors that is not zero
    kappa            smallest eigenvalue of the mean of a a' over the arms
    rounds           how long it explores; None: as long as the bound is smallest
    delta            probability with which the bound may fail
    rho              regulariser
    gap              how much better the best arm is than every other, if that is known

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=3, n_protected=1, subspace_dim=1, noise_scale=0.1)
    >>> round(ss.theory.explore_commit_bound(problem, 10**6, 0.9, 0.1))
    122817
    """
    amounts_of("gap", gap, allow_zero=True)
    if gap > 2 * problem.action_bound * problem.norm_bound:
        most = 2 * problem.action_bound * problem.norm_bound
        raise InputError(f"gap must be at most 2 A M = {most:g}, got {gap!r}")
    _, found = _explored(problem, horizon, singular_value, kappa, rounds, (delta, rho, gap))
    return float(found.min())


def explore_commit_rounds(
    problem: Problem,
    horizon: float,
    singular_value: float,
    kappa: float,
    *,
    delta: float = 0.001,
    rho: float = 0.1,
) -> int:
    """How long to explore, so that `explore_commit_bound` is smallest (up to a share of 1%).

    problem, horizon, singular_value, kappa, delta, rho   as in `explore_commit_bound`

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=3, n_protected=1, subspace_dim=1, noise_scale=0.1)
    >>> ss.theory.explore_commit_rounds(problem, 10**6, 0.9, 0.1)
    22212
    """
    N, found = _explored(problem, horizon, singular_value, kappa, None, (delta, rho, 0.0))
    return int(N[found.argmin()])


def _explored(
    problem: Problem,
    horizon: float,
    singular_value: float,
    kappa: float,
    rounds: int | None,
    told: tuple[float, float, float],
) -> tuple[FloatArray, FloatArray]:
    """Numbers of rounds of exploration, and the bound for each; told: delta, rho and the gap."""
    delta, rho, gap = told
    T = float(check_for_exploration(problem, horizon, singular_value, kappa, rounds))
    check_probability("delta", delta)
    check_positive("rho", rho)
    d, L, n = problem.dim, problem.n_protected, problem.n_vectors
    R, M, A = largest_noise(problem), problem.norm_bound, problem.action_bound
    N = (
        np.unique(np.geomspace(1, max(T, 1), 4000).round())
        if rounds is None
        else np.array([rounds])
    )
    each = np.floor(N / n)  # measurements of every vector, at least
    lost = np.sqrt(2 * A * A * math.log(2 * n * d / delta) / np.maximum(each * kappa, 1e-300))
    strength = rho + np.maximum(1 - lost, 0.0) * each * kappa
    tail = math.sqrt(d) + math.sqrt(2 * math.log(2 * n / delta))
    e = np.minimum((rho * M / np.sqrt(strength) + R * tail) / np.sqrt(strength), 1e300)
    whole = math.sqrt(L) * e
    turned = np.where(
        whole < singular_value / 2, whole / np.maximum(singular_value - whole, 1e-300), 1.0
    )
    wrong = np.minimum(2 * A * (e + M * turned), 2 * A * M)
    wrong = np.where(wrong < gap, 0.0, wrong)  # then it is the best arm
    return N, 2 * A * M * np.minimum(N, T) + wrong * np.maximum(T - N, 0.0)


def _plain(values: FloatArray) -> Any:
    """An array as it is, a single number as a float."""
    return float(values) if np.ndim(values) == 0 else values
