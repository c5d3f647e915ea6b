"""Common to the policies that draw from the posterior: knobs, the first state, the rank review."""

from typing import NamedTuple

import numpy as np

from sidestep.core.arm_forms import COVARIANCE
from sidestep.core.arrays import FloatArray
from sidestep.core.confidence import RADII, Confidence
from sidestep.core.posterior import Prior, prior_of, relative_costs
from sidestep.core.problem import Problem, per_vector
from sidestep.core.rank import (
    is_reviewed,
    resolution_of,
)
from sidestep.core.validation import (
    check_choice,
    check_integer,
    check_positive,
    check_probability,
    check_scale,
    shown,
)
from sidestep.errors import InputError


class CommonKnobs(NamedTuple):
    """The first fields of the knobs of these policies, in this order."""

    metric: int
    confidence: Confidence
    prior: Prior
    costs: FloatArray


def common_knobs(
    problem: Problem, rho: float | None, memory: float | None, delta: float, doubt: float = 0.0
) -> CommonKnobs:
    """The common knobs, checked here; doubt: level of the test whether M is too large."""
    check_probability("delta", delta)
    if is_reviewed(problem):
        resolution_of(problem)
    prior = prior_of(problem, rho, doubt)
    confidence = confidence_for(
        problem,
        rho=rho,
        delta=0.05,
        needs_noise=False,
        memory=memory,
        follows_tolerances=True,
        learns_levels=True,
    )
    confidence = confidence._replace(rho=prior.rho)
    return CommonKnobs(COVARIANCE, confidence, prior, relative_costs(problem))


def horizon_of(horizon: int | None, *, looks_ahead: bool) -> float:
    """The knob `horizon` as kernels read it, 0 for None; checked here."""
    if horizon is None:
        return 0.0
    check_integer("horizon", horizon, low=1)
    if not looks_ahead:
        raise InputError(
            "horizon must be None here: with caution, or with tolerances and learned levels, "
            f"this policy does not look ahead, got {horizon}"
        )
    return float(horizon)


# |a|^2 / rho of the longest action: past it, a million rounds along few directions lose rho to rounding
LARGEST_RATIO = 1e11


def known_rank(problem: Problem, policy: str) -> int:
    """The rank s; raises one sentence if the problem does not have it."""
    if problem.subspace_dim is None:
        raise InputError(f"{policy} needs the problem's subspace_dim, got None")
    return problem.subspace_dim


def check_equal_costs(problem: Problem, policy: str) -> None:
    """Raise if measurements differ in cost: this policy would ignore it."""
    if np.ptp(per_vector(problem.costs, problem.n_vectors)) > 0:
        raise InputError(
            f"costs must be the same for every vector, as {policy} does not weigh them "
            f"(the Thompson policies do), got {shown(problem.costs)}"
        )


def _check_aim(problem: Problem, *, follows_tolerances: bool, learns_levels: bool) -> None:
    """Raise if the policy would ignore the tolerances or the levels of the problem."""
    if problem.tolerance is not None and not follows_tolerances:
        raise InputError(
            "this policy plays the projected reward and does not support tolerances, got one "
            "(the Thompson policies, InformationDirected and EpsilonGreedy play within tolerances)"
        )
    if problem.intercept and problem.tolerance is None and not learns_levels:
        raise InputError(
            "intercept must be False, as this policy learns no levels for the projected reward "
            "(the Thompson policies do), got True"
        )


def check_rounding(problem: Problem, rho: float) -> None:
    """Raise if actions are so long that rho is lost to rounding: the inverse would become infinite."""
    longest = float(np.linalg.norm(problem.lifted(np.array([problem.action_bound]))))
    if longest**2 > LARGEST_RATIO * rho:
        allowed = problem.action_bound / longest * np.sqrt(LARGEST_RATIO * rho)
        raise InputError(
            f"action_bound must be at most {allowed:.3g} with rho={rho:g} (choose another unit, or a "
            f"larger rho), got {problem.action_bound:g}"
        )


def confidence_for(
    problem: Problem,
    *,
    rho: float | None,
    delta: float,
    radius: str = "logdet",
    needs_noise: bool = True,
    memory: float | None = None,
    follows_tolerances: bool = False,
    learns_levels: bool = False,
) -> Confidence:
    """The parameters of the confidence sets, from knobs that are checked here; delta is for one vector.

    For a policy that does not need the noise scale, an unknown noise scale is NaN, and so are the widths.
    rho None: it follows from the prior, and the caller fills it in.
    """
    _check_aim(problem, follows_tolerances=follows_tolerances, learns_levels=learns_levels)
    noise = problem.noise if needs_noise else problem.known_noise
    if rho is not None:
        check_scale("rho", rho)
        check_rounding(problem, rho)
    check_probability("delta", delta)
    check_choice("radius", radius, tuple(RADII))
    if memory is not None:
        check_positive("memory", memory)
        if memory <= 1:
            raise InputError(f"memory must be more than 1 round, got {memory}")
    return Confidence(
        np.full(problem.n_vectors, np.nan if rho is None else float(rho)),
        noise,
        float(problem.norm_bound),
        float(problem.action_bound),
        float(delta),
        RADII[radius],
        1.0 if memory is None else 1.0 - 1.0 / memory,
    )
