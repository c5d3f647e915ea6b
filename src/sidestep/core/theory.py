"""The bounds of docs/theory.md as numbers: those of the paper, repaired, and ours.

function              form          what it is
regret_bound          "main"        Theorem "known_subspace_dim"; proved at M = R = rho = 1 (B5)
                      "appendix"    the same for any M, R and rho; proved where lambda_min <= 3 (B8)
                      "corrected"   sqrt(lambda_min) for lambda_min, no L inside the logarithm (B6, B8)
                      "all"         no CORE-SET phase: every protected vector is kept (`coreset="all"`)
                      "lazy"        the same until a core set is certified, then that core set
coreset_rounds        "printed"     Theorem "CORE-SET", times d L rounds a sweep
                      "certified"   the same for the stopping rule of ours, `coreset="certified"`
                      "eigenvalue"  Algorithm 3: lambda_min is known, s is not
oful_bound            "printed"     Remark "Comparison with OFUL"
                      "corrected"   the proof of the appendix without protected vectors
tolerance_bound                     ours: an optimist within tolerances, over arms
lower_bound           "printed"     Theorem "hardness"
                      "corrected"   with the constants of its proof put right (C1 to C5)
thompson_bound, explore_commit_bound                               ours: core/upper_bounds.py
unspanned_bound, spanning_bound, ball_bound,                       ours: core/lower_bounds.py
    price_of_protection, expected_price
last_direction_bound                                               ours: core/last_direction.py

Upper bounds of optimistic policies are for the unit ball and an exact optimistic action, and hold with
probability 1 - delta. They are not capped at 2 M T, which no policy can exceed. The forms "printed",
"main" and "appendix" are what is printed, also where it is not proved; every other function raises an
error outside its conditions. Numbers such as B8 refer to docs/deviations.md. Plain numpy.
"""

import math
from typing import Any, TypeVar

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.conditions import (
    amounts_of,
    check_for_all_constraints,
    check_for_ball,
    check_for_levels_known,
    check_for_plain_policy,
    check_for_printed_core_set,
    check_gamma,
    known_eigenvalue,
    known_subspace_dim,
    largest_noise,
)
from sidestep.core.core_set import (
    EIGENVALUE_SHARE,
    after_check,
    certified_factor,
    error_bound,
    whole_error,
)
from sidestep.core.last_direction import last_direction_bound
from sidestep.core.lower_bounds import (
    Price,
    ball_bound,
    expected_price,
    lower_bound,
    price_of_protection,
    spanning_bound,
    unspanned_bound,
)
from sidestep.core.problem import Problem
from sidestep.core.upper_bounds import (
    expected_coefficients,
    explore_commit_bound,
    explore_commit_rounds,
    thompson_bound,
)
from sidestep.core.validation import check_choice, check_positive, check_probability
from sidestep.errors import InputError

__all__ = [
    "Price",
    "ball_bound",
    "coreset_rounds",
    "expected_coefficients",
    "expected_price",
    "explore_commit_bound",
    "explore_commit_rounds",
    "last_direction_bound",
    "lower_bound",
    "oful_bound",
    "price_of_protection",
    "radius",
    "regret_bound",
    "spanning_bound",
    "thompson_bound",
    "tolerance_bound",
    "unspanned_bound",
]

Amount = TypeVar("Amount", float, FloatArray)  # a number gives a number, an array an array

GAMMA = 1 / 3  # share of the best lambda_min that a core set keeps
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
    gamma: float = GAMMA,
) -> Amount:
    """Regret of Protected LinUCB on the unit ball, at most, w.p. 1 - delta; `eigenvalue` is lambda_min.

    `coreset` names the rule whose rounds "corrected" pays for: "certified", "printed", or "eigenvalue",
    Algorithm 3, for a problem that knows lambda_min and not s. The other forms have no choice. Where no
    subspace_dim is told, "all", "lazy" and Algorithm 3 take the largest s there can be. "lazy" counts
    both of its parts over all T rounds, and its core set keeps what that of the problem does: `gamma`
    where subspace_dim is told, a third where only lambda_min is. Without protected vectors there is
    `oful_bound`.

    problem      sizes, noise and bounds; its actions are the unit ball
    horizon      T, a number or an array
    eigenvalue   lambda_min, smallest eigenvalue of the Gram matrix of the best s protected vectors
    delta        probability with which the bound may fail
    rho          regulariser
    form         "main", "appendix", "corrected", "all" or "lazy"; docs/theory.md says when each is proved
    coreset      "certified", "printed" or "eigenvalue"
    gamma        share of lambda_min that the certified core set keeps, as told to the policy

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=6, n_protected=4, subspace_dim=2, noise_scale=0.001)
    >>> round(ss.theory.regret_bound(problem, 1000, 0.85, form="corrected"))
    1187
    """
    check_choice("form", form, ("main", "appendix", "corrected", "all", "lazy"))
    check_choice("coreset", coreset, ("certified", "printed", "eigenvalue"))
    check_probability("delta", delta)
    check_gamma(gamma)
    check_for_plain_policy(problem)
    kept_all = form in ("all", "lazy")
    unknown = kept_all or (form == "corrected" and coreset == "eigenvalue")
    T, s = amounts_of("horizon", horizon), known_subspace_dim(problem, eigenvalue, unknown=unknown)
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
        spread = (1 + 3 * math.sqrt(s) / eigenvalue * M) ** 2 * beta + M * M
        rounds = coreset_rounds(problem, eigenvalue, delta / 2)
        return _plain(_play(spread, (s + 1) * T, d, T * L / rho) + 2 * M * rounds)
    if kept_all:
        check_for_all_constraints(problem)
    keeps = 1.0 if problem.subspace_dim == L else (gamma if coreset == "certified" else GAMMA)
    if form == "lazy":
        keeps = _lazy_share(problem, eigenvalue, gamma)
    spread, every = (
        (1 + M * math.sqrt(s / of / eigenvalue)) ** 2 * beta + M * M for of in (keeps, 1.0)
    )
    on_core_set = _play(spread, (s + 1) * T, d, T / rho)
    on_all = _play(every, (L + 1) * T, d, T / rho)
    if form == "all":
        return _plain(on_all)
    if form == "lazy":
        return _plain(on_all + on_core_set)
    rounds = _whole_rounds(problem, eigenvalue, delta / 2, coreset, gamma)
    return _plain(on_core_set + 2 * M * rounds)


def _lazy_share(problem: Problem, eigenvalue: float, gamma: float) -> float:
    """Share of lambda_min that the core set of `coreset="lazy"` keeps; raises where none is proved."""
    if problem.resolution is not None:
        raise InputError(
            "resolution must be None for form='lazy', as the share of lambda_min is not proved, got "
            f"{problem.resolution!r}"
        )
    if problem.subspace_dim is not None:
        return 1.0 if problem.subspace_dim == problem.n_protected else gamma
    if problem.eigenvalue is not None:
        known_eigenvalue(problem, eigenvalue)
    return GAMMA


def coreset_rounds(
    problem: Problem,
    eigenvalue: float,
    delta: float = 0.001,
    *,
    form: str = "printed",
    gamma: float = GAMMA,
) -> float:
    """Rounds of CORE-SET at most, d L times the sweeps; `delta` is the phase's own, half a policy's.

    "printed" is the theorem to the letter: not rounded to whole sweeps, and not skipped at L = s.
    "certified" is the first check n with sqrt(lambda_min) >= (c+1) e_n: wherever all estimates are
    within e_n of the truth, the best set reads at least sqrt(lambda_min) - e_n >= c e_n and is taken.
    "eigenvalue" is Algorithm 3 for a problem that knows lambda_min and not s: the first n at which the
    error of all estimates is at most 0.2113 sqrt(lambda_min), a number that is fixed beforehand.

    problem      sizes, noise and bounds
    eigenvalue   lambda_min
    delta        probability with which the phase may fail
    form         "printed", "certified" or "eigenvalue"
    gamma        share of lambda_min that the certified core set keeps

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=6, n_protected=4, subspace_dim=2, noise_scale=0.001)
    >>> ss.theory.coreset_rounds(problem, 0.85, delta=0.0005, form="certified")
    24.0
    """
    check_probability("delta", delta)
    check_choice("form", form, ("printed", "certified", "eigenvalue"))
    check_gamma(gamma)
    check_for_plain_policy(problem)
    s = known_subspace_dim(problem, eigenvalue, unknown=form == "eigenvalue")
    d, L, R, M = problem.dim, problem.n_protected, largest_noise(problem, 1), problem.norm_bound
    if form == "eigenvalue":
        known_eigenvalue(problem, eigenvalue)
        root = whole_error(d, L, R, 1.0, delta) / (EIGENVALUE_SHARE * math.sqrt(eigenvalue))
        return d * L * max(1.0, float(np.ceil(root * root)))
    if form == "certified":
        if s == L:
            return 0.0
        factor = certified_factor(gamma)
        return d * L * _certified_sweeps((d, L, s), R, eigenvalue, delta, factor)
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
    check_for_plain_policy(problem)
    T = amounts_of("horizon", horizon)
    beta = radius(problem, T, rho, delta, form=form) ** 2
    d, L = problem.dim, max(problem.n_protected, 1)
    if form == "printed":
        return _plain(4 * np.sqrt(T * d * np.log1p(T * L / d) * beta))
    A, M = problem.action_bound, problem.norm_bound
    return _plain(_play(beta + (M * A) ** 2, T, d, T * A**2 / rho))


def tolerance_bound(
    problem: Problem, horizon: Amount, delta: float = 0.001, rho: float = 1.0
) -> Amount:
    """Regret of the optimist within tolerances, over arms that may change, at most, w.p. 1 - delta.

    The optimist of docs/theory.md, Theorem 8; no policy of this package is that optimist. Levels must be
    known, and rho at least the square of action_bound.

    problem   sizes, noise, bounds, tolerances and penalties
    horizon   T, a number or an array
    delta     probability with which the bound may fail
    rho       regulariser

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=3, n_protected=1, noise_scale=0.1, tolerance=0.2, penalty=2.0)
    >>> round(ss.theory.tolerance_bound(problem, 10**6))
    178041
    """
    T = amounts_of("horizon", horizon)
    check_probability("delta", delta)
    penalty = check_for_levels_known(problem, rho)
    n, d, A = problem.n_vectors, problem.dim, problem.action_bound
    widest = radius(problem, T, rho, delta / n, form="corrected")
    largest = max(1.0, float(penalty.max(initial=0.0)))
    sums = 2 * n * d * T * np.log1p(T * A * A / (d * rho))
    return _plain(2 * n * largest * widest * np.sqrt(sums))


def _play(spread: FloatArray, plays: FloatArray, d: int, growth: FloatArray) -> FloatArray:
    """Regret of optimistic rounds: 2 sqrt(spread plays d log(1 + growth / d)) (end of the proof)."""
    return 2 * np.sqrt(spread * plays * d * np.log1p(growth / d))


def _printed_log(d: int, L: int, delta: float) -> float:
    return d * math.log(6) + math.log(L / delta)


def _whole_rounds(
    problem: Problem, eigenvalue: float, delta: float, form: str, gamma: float
) -> float:
    """Rounds in whole sweeps, at least one; none where the core set is forced, L = s (A12)."""
    if problem.n_protected == problem.subspace_dim:
        return 0.0
    if form == "printed":
        check_for_printed_core_set(problem, _printed_log(problem.dim, problem.n_protected, delta))
    sweep = problem.dim * problem.n_protected
    sweeps = coreset_rounds(problem, eigenvalue, delta, form=form, gamma=gamma) / sweep
    return sweep * max(1.0, float(np.ceil(sweeps)))


def _certified_sweeps(
    sizes: tuple[int, int, int], R: float, eigenvalue: float, delta: float, factor: float
) -> float:
    """First check at which the certified rule must stop; checks and e_n as in core.core_set."""
    d, L, k = sizes
    at, number = 1, 1
    while math.sqrt(eigenvalue) < (factor + 1) * error_bound(
        d, L, k, R, float(at), delta / (number * (number + 1))
    ):
        at, number = after_check(at), number + 1
        if at > ENDLESS:
            return math.inf
    return float(at)


def _plain(values: FloatArray) -> Any:
    """An array as it is, a single number as a float."""
    return float(values) if np.ndim(values) == 0 else values
