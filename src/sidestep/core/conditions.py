"""Conditions of the bounds in theory.py; each check raises one sentence that says what is wrong."""

import math

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Problem
from sidestep.core.validation import SLACK, check_integer, check_positive, is_finite, shown
from sidestep.errors import InputError

FLOOR = 1e-6  # smallest noise scale that a posterior assumes, in units of M A (core/posterior.py)
PRINTED_TAIL = 5.0  # least d log 6 + log(L / delta) for a union over all sweeps (docs/theory.md)


def known_subspace_dim(problem: Problem, eigenvalue: float, *, unknown: bool = False) -> int:
    """The rank s, after checking s and lambda_min: the least of s eigenvalues is at most M^2."""
    check_integer("n_protected", problem.n_protected, low=1)
    check_positive("eigenvalue", eigenvalue)
    if eigenvalue > problem.norm_bound**2 * (1 + SLACK):
        raise InputError(
            f"eigenvalue must be at most norm_bound^2 = {problem.norm_bound**2:g}, "
            f"got {eigenvalue!r}"
        )
    if problem.subspace_dim is None and not unknown:
        raise InputError("subspace_dim must be known for this bound, got None")
    largest = min(problem.n_protected, problem.dim)
    return largest if problem.subspace_dim is None else problem.subspace_dim


def check_for_ball(problem: Problem) -> None:
    """Raise if the unit ball contains actions that the problem does not allow."""
    if problem.action_bound < 1:
        raise InputError(
            "action_bound must be at least 1, as the bound is for the unit ball, "
            f"got {problem.action_bound!r}"
        )


def check_for_projected_reward(problem: Problem) -> None:
    """Raise where a reward has tolerances or outcomes have levels: the proof is for <a, theta_perp>."""
    if problem.tolerance is not None or problem.intercept:
        raise InputError(
            "this bound is for the projected reward without levels, got a tolerance or an intercept"
        )


def check_for_plain_policy(problem: Problem) -> None:
    """Raise where policies that know neither levels nor costs refuse the problem."""
    check_for_projected_reward(problem)
    if np.ptp(np.asarray(problem.costs, dtype=float)) > 0:
        raise InputError(
            "costs must be the same for every vector for this bound, as its policy does not weigh them, "
            f"got {shown(problem.costs)}"
        )


def largest_noise(problem: Problem, first: int = 0) -> float:
    """R, the largest noise scale of the vectors from `first` on."""
    if problem.noise_scale is None:
        raise InputError("noise_scale must be a number for a bound, got None")
    return float(problem.noise[first:].max())


def amounts_of(name: str, value: object, *, allow_zero: bool = False) -> FloatArray:
    """A number or numbers as an array of floats; raises one sentence if something is wrong with them."""
    try:
        given = np.asarray(value)
    except ValueError:  # rows of different lengths
        given = np.asarray(None)
    if given.dtype.kind not in "iuf":
        raise InputError(f"{name} must be a number or an array of numbers, got {value!r}")
    amounts = given.astype(float)
    sound = np.isfinite(amounts) & (amounts >= 0 if allow_zero else amounts > 0)
    if not sound.all():
        sign = "zero or positive" if allow_zero else "positive"
        raise InputError(f"{name} must be {sign} and finite, got {amounts[~sound].flat[0]:g}")
    return amounts


def check_gamma(gamma: float) -> None:
    """Raise unless gamma is the share of an eigenvalue."""
    if not is_finite(gamma) or not 0 < gamma < 1:
        raise InputError(f"gamma must lie strictly between 0 and 1, got {shown(gamma)}")


def check_for_all_constraints(problem: Problem) -> None:
    """Raise where the policy that keeps every protected vector cannot play: nothing may be left."""
    if problem.n_protected >= problem.dim:
        raise InputError(
            "this bound needs fewer protected vectors than dimensions, as its policy does, got "
            f"n_protected={problem.n_protected}, dim={problem.dim}"
        )


def check_for_printed_core_set(problem: Problem, tail: float) -> None:
    """Raise where the printed threshold of CORE-SET has no room for a union over the sweeps (B2).

    tail: d log 6 + log(L / delta)
    """
    if largest_noise(problem, 1) > problem.norm_bound:
        raise InputError(
            "noise_scale of the protected vectors must be at most norm_bound for coreset='printed', "
            f"got {largest_noise(problem, 1):g} and {problem.norm_bound:g}"
        )
    if tail < PRINTED_TAIL:
        raise InputError(
            f"d log 6 + log(2 L / delta) must be at least {PRINTED_TAIL:g} for coreset='printed', "
            f"got {tail:.2f}"
        )


def known_eigenvalue(problem: Problem, eigenvalue: float) -> None:
    """Raise unless the problem knows this lambda_min, and not s: Algorithm 3 is for nothing else."""
    if problem.subspace_dim is not None or problem.eigenvalue != eigenvalue:
        raise InputError(
            "'eigenvalue' is for a problem with this eigenvalue and without subspace_dim, got "
            f"eigenvalue={problem.eigenvalue}, subspace_dim={problem.subspace_dim}"
        )


def check_for_levels_known(problem: Problem, rho: float) -> FloatArray:
    """The penalties, (L,); raises if the proof of `tolerance_bound` does not cover this problem."""
    check_positive("rho", rho)
    if problem.limits is None:
        raise InputError("tolerance must be told for this bound, got None")
    if problem.intercept:
        raise InputError("intercept must be False, as this bound is for known levels, got True")
    if rho < problem.action_bound**2:
        raise InputError(
            f"rho must be at least action_bound^2 = {problem.action_bound**2:g}, got {rho!r}"
        )
    return problem.limits.penalty


def check_for_exploration(
    problem: Problem, horizon: float, singular_value: float, kappa: float, rounds: int | None
) -> float:
    """The horizon; raises if the proof of `explore_commit_bound` does not cover this problem."""
    check_positive("horizon", horizon)
    check_positive("singular_value", singular_value)
    check_positive("kappa", kappa)
    A, M, L = problem.action_bound, problem.norm_bound, problem.n_protected
    if problem.subspace_dim is None:
        raise InputError("subspace_dim must be known for this bound, got None")
    check_for_plain_policy(problem)
    if kappa > A * A / problem.dim * (1 + SLACK):
        raise InputError(
            f"kappa must be at most action_bound^2 / dim = {A * A / problem.dim:g}, got {kappa!r}"
        )
    most = M * math.sqrt(L / max(problem.subspace_dim, 1))
    if L > 0 and singular_value > most * (1 + SLACK):
        raise InputError(
            f"singular_value must be at most norm_bound sqrt(n_protected / subspace_dim) = {most:g}, "
            f"got {singular_value!r}"
        )
    if rounds is not None:
        check_integer("rounds", rounds, low=1)
    return horizon


def check_for_posterior_sampling(problem: Problem, *, most: int) -> None:
    """Raise if the proof of `thompson_bound` does not cover this problem; most: largest s."""
    d, s = problem.dim, problem.n_protected
    if problem.subspace_dim != s or s > most:
        raise InputError(
            f"this bound needs subspace_dim = n_protected <= dim - {d - most}, got "
            f"subspace_dim={problem.subspace_dim}, n_protected={s}, dim={d}"
        )
    check_for_projected_reward(problem)
    least = FLOOR * problem.norm_bound * problem.action_bound
    if not problem.noise.min() >= least:  # `noise` raises where a noise scale is learned
        raise InputError(
            f"noise_scale must be at least {least:g} here, as the posterior assumes at least this noise, "
            f"got {problem.noise.min():g}"
        )
