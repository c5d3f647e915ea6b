"""The paper's bounds as numbers: what is printed, and what its proofs give once they are repaired.

function         form          what it is
regret_bound     "main"        Theorem "known_subspace_dim"; its proof gives it at M = R = rho = 1 (B5)
                 "appendix"    the same for any M, R and rho; proved where lambda_min <= 3 (B8)
                 "corrected"   sqrt(lambda_min) for lambda_min, and no L inside the logarithm (B6, B8)
                 "all"         no CORE-SET phase: every protected vector is kept (`coreset="all"`)
coreset_rounds   "printed"     Theorem "CORE-SET", times d L rounds a sweep
                 "certified"   the same for the stopping rule of ours, `coreset="certified"`
oful_bound       "printed"     Remark "Comparison with OFUL"
                 "corrected"   the proof of the appendix without protected vectors
thompson_bound                 ours: Bayes regret of ProtectedThompson(query="widest"), L = s <= d - 2
lower_bound      "printed"     Theorem "hardness"
                 "corrected"   with the constants of its proof put right (C1 to C5)

Upper bounds are for the unit ball and an exact optimistic action, and hold with probability 1 - delta;
for finitely many arms none is known. They are not capped at 2 M T, which no policy can exceed. Numbers
such as B8 refer to docs/deviations.md. Plain numpy: this file is cheap to import.
"""

import math
from typing import Any, TypeVar

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.checks import check_choice, check_positive, check_probability
from sidestep.core.conditions import (
    amounts_of,
    check_for_ball,
    check_for_posterior_sampling,
    known_subspace_dim,
    largest_noise,
)
from sidestep.core.coreset import after_check, certified_factor, error_bound
from sidestep.core.problem import Problem, per_vector

Amount = TypeVar("Amount", float, FloatArray)  # a number gives a number, an array an array

GAMMA = 1 / 3  # share of the best lambda_min that either core set keeps
FACTOR = certified_factor(GAMMA)  # c of the certified rule, 2 + sqrt(3)
ENDLESS = 1e300  # sweeps; a bound beyond is infinite


def radius(
    problem: Problem, count: Amount, rho: float, delta: float, *, form: str = "printed"
) -> Amount:
    """sqrt(beta) after `count` measurements of a vector (Eq. 2), of the noisiest where R differs.

    Print writes M for the bound on actions as well; here it is the problem's own (B7). In dimension
    1 the cited theorem asks for 2 log(1/delta) where print has d of them: "corrected" has it.

    problem   sizes, noise and bounds
    count     measurements of the vector; a number or an array
    rho       regulariser
    delta     probability with which the set may miss
    form      "printed" or "corrected"

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=6, n_protected=4, subspace_dim=2, noise_scale=0.1)
    >>> round(ss.theory.radius(problem, 100, rho=0.1, delta=0.001), 2)
    1.23
    """
    check_positive("rho", rho)
    check_probability("delta", delta)
    check_choice("form", form, ("printed", "corrected"))
    samples = amounts_of("count", count, allow_zero=True)
    d, R, M = problem.dim, largest_noise(problem), problem.norm_bound
    weight = d if form == "printed" else max(d, 2)
    growth = np.log1p(samples * problem.action_bound**2 / rho)
    root = R * np.sqrt(d * growth + weight * -math.log(delta)) + math.sqrt(rho) * M
    return _plain(root)


def regret_bound(
    problem: Problem,
    horizon: Amount,
    eigenvalue: float,
    delta: float = 0.001,
    rho: float = 0.1,
    *,
    form: str = "appendix",
    coreset: str = "certified",
) -> Amount:
    """Regret of Protected LinUCB on the unit ball, at most, w.p. 1 - delta; `eigenvalue` is lambda_min.

    `coreset` names the rule whose rounds "corrected" pays for: "certified" or "printed"; the other
    forms have no choice. Where no subspace_dim is told, "all" takes the largest s there can be.
    Without protected vectors there is `oful_bound`.

    problem      sizes, noise and bounds; its actions are the unit ball
    horizon      T, a number or an array
    eigenvalue   lambda_min, smallest eigenvalue of the Gram matrix of the best s protected vectors
    delta        probability with which the bound may fail
    rho          regulariser
    form         "main", "appendix", "corrected" or "all"; docs/theory.md says which is proved when
    coreset      "certified" or "printed"

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=6, n_protected=4, subspace_dim=2, noise_scale=0.001)
    >>> round(ss.theory.regret_bound(problem, 1000, 0.85, form="corrected"))
    1187
    """
    check_choice("form", form, ("main", "appendix", "corrected", "all"))
    check_choice("coreset", coreset, ("certified", "printed"))
    check_probability("delta", delta)
    T, s = (
        amounts_of("horizon", horizon),
        known_subspace_dim(problem, eigenvalue, unknown=form == "all"),
    )
    check_for_ball(problem)
    d, L, M = problem.dim, problem.n_protected, problem.norm_bound
    share, which = delta / (2 * (L + 1)), "printed" if form in ("main", "appendix") else "corrected"
    beta = radius(problem, T, rho, share, form=which) ** 2
    if form == "main":
        play = np.sqrt(T * d * np.log1p(T * L / d) * beta)
        ratio = _printed_log(d, L, delta / 2) / eigenvalue
        core_set = 4608 * L**3 * d * ratio * ratio
        return _plain(12 * math.sqrt(2) * (s + 1) / eigenvalue * play + core_set)
    if form == "appendix":
        slope, vectors, growth = 1 + 3 * math.sqrt(s) / eigenvalue * M, s + 1, T * L / rho
        rounds = coreset_rounds(problem, eigenvalue, delta / 2)
    elif form == "corrected":
        slope, vectors, growth = 1 + M * math.sqrt(s / GAMMA / eigenvalue), s + 1, T / rho
        rounds = _whole_rounds(problem, eigenvalue, delta / 2, coreset)
    else:
        slope, vectors, growth = 1 + M * math.sqrt(s / eigenvalue), L + 1, T / rho
        rounds = 0.0
    return _plain(_play(slope * slope * beta + M * M, vectors * T, d, growth) + 2 * M * rounds)


def coreset_rounds(
    problem: Problem, eigenvalue: float, delta: float = 0.001, *, form: str = "printed"
) -> float:
    """Rounds of CORE-SET at most, d L times the sweeps; `delta` is the phase's own, half a policy's.

    "printed" is the theorem to the letter: not rounded to whole sweeps, and not skipped at L = s.
    "certified" is the first check n with sqrt(lambda_min) >= (c+1) e_n: wherever all estimates are
    within e_n of the truth, the best set reads at least sqrt(lambda_min) - e_n >= c e_n and is taken.

    problem      sizes, noise and bounds
    eigenvalue   lambda_min
    delta        probability with which the phase may fail
    form         "printed" or "certified"

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=6, n_protected=4, subspace_dim=2, noise_scale=0.001)
    >>> ss.theory.coreset_rounds(problem, 0.85, delta=0.0005, form="certified")
    24.0
    """
    check_probability("delta", delta)
    check_choice("form", form, ("printed", "certified"))
    s = known_subspace_dim(problem, eigenvalue)
    d, L, R, M = problem.dim, problem.n_protected, largest_noise(problem, 1), problem.norm_bound
    if form == "certified":
        return 0.0 if s == L else d * L * _certified_sweeps(d, L, s, R, eigenvalue, delta)
    ratio = 24 * L * R * (M + R) * _printed_log(d, L, delta) / eigenvalue  # 24^2 = 576
    return d * L * ratio * ratio


def oful_bound(
    problem: Problem,
    horizon: Amount,
    delta: float = 0.001,
    rho: float = 0.1,
    *,
    form: str = "printed",
) -> Amount:
    """Regret of OFUL for the target alone, as if nothing were protected, at most, w.p. 1 - delta.

    The L that the remark prints inside the logarithm is the cited paper's bound on actions (B6); we
    print it as it stands, and 1 where L = 0. "corrected" is the proof of the appendix with s = 0.

    problem   sizes, noise and bounds
    horizon   T, a number or an array
    delta     probability with which the bound may fail
    rho       regulariser
    form      "printed" or "corrected"

    >>> import sidestep as ss
    >>> round(ss.theory.oful_bound(ss.Problem(6, 0, noise_scale=0.1), 1000, form="corrected"))
    692
    """
    check_choice("form", form, ("printed", "corrected"))
    T = amounts_of("horizon", horizon)
    beta = radius(problem, T, rho, delta, form=form) ** 2
    d, L = problem.dim, max(problem.n_protected, 1)
    if form == "printed":
        return _plain(4 * np.sqrt(T * d * np.log1p(T * L / d) * beta))
    A, M = problem.action_bound, problem.norm_bound
    return _plain(_play(beta + (M * A) ** 2, T, d, T * A**2 / rho))


def thompson_bound(problem: Problem, horizon: Amount) -> Amount:
    """Regret of posterior sampling with the widest query on the unit ball, at most, in expectation.

    The expectation is over vectors drawn from the prior N(0, M^2/d) as well, and over Gaussian noise.
    Every protected vector must count (L = s), and s <= d - 2. Outcomes may differ in noise and cost, and
    no tolerance or level is part of it. Proof: docs/theory.md, "posterior sampling on the ball", whose
    names the lines have.

    problem   sizes, noise and bounds; its actions are the unit ball
    horizon   T, a number or an array

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=6, n_protected=2, subspace_dim=2, noise_scale=0.1)
    >>> round(ss.theory.thompson_bound(problem, 1000))
    2085
    """
    T = np.maximum(amounts_of("horizon", horizon), 1.0)  # at least one round
    check_for_ball(problem)
    d, s, R, M = problem.dim, problem.n_protected, largest_noise(problem), problem.norm_bound
    check_for_posterior_sampling(problem)
    costs = per_vector(problem.costs, s + 1)
    rho = (float(problem.noise.min()) / M) ** 2 * d  # the smallest rho of the prior
    potential = (s + 1) * d * np.log1p(T / ((s + 1) * d * rho)) / math.log(2)  # K
    tail = math.sqrt(d) + np.sqrt(2 * np.log(2 * (s + 1) * T * T))  # Q
    slope = 1 + s / math.sqrt(d - s - 1)  # at least E[1 + |x|_1]
    dear = math.sqrt(costs.max() / costs.min())
    play = 2 * dear * R * tail * slope * np.sqrt(potential * T)
    start = potential * M * (2 + np.sqrt(2 * np.log(T) / d))
    return _plain(play + start + 2 * M)


def lower_bound(horizon: Amount, noise_scale: float = 1.0, *, form: str = "printed") -> Amount:
    """What the larger of two expected regrets is at least, for any player of the pair of the theorem.

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
        return _plain(np.where(T >= 256, math.exp(-21) / 16 * T**0.75, 0.0))
    alpha = math.sqrt(noise_scale) * T**-0.25
    told_apart = math.exp(-3.125) / 2 - 2 * np.exp(-T / 18)
    both = 0.78 * alpha * (T / 6) * told_apart
    return _plain(np.where(alpha <= 0.25, np.maximum(both / 2, 0.0), 0.0))


def _play(spread: FloatArray, plays: FloatArray, d: int, growth: FloatArray) -> FloatArray:
    """Regret of optimistic rounds: 2 sqrt(spread plays d log(1 + growth / d)) (end of the proof)."""
    return 2 * np.sqrt(spread * plays * d * np.log1p(growth / d))


def _printed_log(d: int, L: int, delta: float) -> float:
    return d * math.log(6) + math.log(L / delta)


def _whole_rounds(problem: Problem, eigenvalue: float, delta: float, form: str) -> float:
    """Rounds in whole sweeps, at least one; none where the core set is forced, L = s (A12)."""
    if problem.n_protected == problem.subspace_dim:
        return 0.0
    sweep = problem.dim * problem.n_protected
    sweeps = coreset_rounds(problem, eigenvalue, delta, form=form) / sweep
    return sweep * max(1.0, float(np.ceil(sweeps)))


def _certified_sweeps(d: int, L: int, k: int, R: float, eigenvalue: float, delta: float) -> float:
    """First check at which the certified rule must stop; checks and e_n as in core.coreset."""
    at, number = 1, 1
    while math.sqrt(eigenvalue) < (FACTOR + 1) * error_bound(
        d, L, k, R, float(at), delta / (number * (number + 1))
    ):
        at, number = after_check(at), number + 1
        if at > ENDLESS:
            return math.inf
    return float(at)


def _plain(values: FloatArray) -> Any:
    """An array as it is, a single number as a float."""
    return float(values) if np.ndim(values) == 0 else values
