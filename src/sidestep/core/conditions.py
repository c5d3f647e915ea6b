"""Conditions of the bounds in theory.py; each check raises one sentence that says what is wrong."""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.checks import SLACK, check_integer, check_positive
from sidestep.core.problem import Problem
from sidestep.errors import InputError

FLOOR = 1e-6  # smallest noise scale that a posterior assumes, in units of M A (core/posterior.py)


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


def check_for_posterior_sampling(problem: Problem) -> None:
    """Raise if the proof of `thompson_bound` does not cover this problem."""
    d, s = problem.dim, problem.n_protected
    if problem.subspace_dim != s or s > d - 2:
        raise InputError(
            "this bound needs subspace_dim = n_protected <= dim - 2, got "
            f"subspace_dim={problem.subspace_dim}, n_protected={s}, dim={d}"
        )
    if problem.tolerance is not None or problem.intercept:
        raise InputError(
            "this bound is for the projected reward without levels, got a tolerance or an intercept"
        )
    least = FLOOR * problem.norm_bound * problem.action_bound
    if not problem.noise.min() >= least:  # `noise` raises where a noise scale is learned
        raise InputError(
            f"noise_scale must be at least {least:g} here, as the player never believes less, "
            f"got {problem.noise.min():g}"
        )
