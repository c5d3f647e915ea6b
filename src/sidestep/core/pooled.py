"""How many directions a Thompson player takes for real, where the rank of the subspace is not told.

Play takes for real the smallest number of directions that the measurements do not contradict
(core/rank.py), looked at again whenever a tenth more has been measured. Every SCEPTIC-th round belongs to
a sceptic, who takes every direction for real that could still reach the resolution: what he would play is
the rival, and what he doubts is measured. So no direction that matters is left open for good, and there
is no separate phase.

Of a state's `core_set` row 0 is the target; rows 1.. say of the first, second, ... strongest direction
whether it is REAL, OPEN, or neither (0).
"""

import numpy as np

from sidestep.core import rank
from sidestep.core.arrays import IntArray
from sidestep.core.geometry import total
from sidestep.core.kernels import kernel
from sidestep.core.posterior import Posterior
from sidestep.core.problem import Problem
from sidestep.core.rank import Spectrum
from sidestep.errors import InputError

SCEPTIC = 8
REAL, OPEN = 1, 2


@kernel
def ranks(known_rank: int, core_set: IntArray, counts: IntArray) -> tuple[int, int]:
    """How many directions are taken for real in this round: by the player, and by his rival."""
    if known_rank >= 0:
        return known_rank, known_rank
    real, reaching = 0, 0
    for v in range(1, core_set.size):
        real += core_set[v] == REAL
        reaching += core_set[v] != 0
    return real, reaching if total(counts, 0) % SCEPTIC == SCEPTIC - 1 else real


def first_directions(problem: Problem) -> IntArray:
    """What is taken for real before the first round: one direction, of an unknown rank; (L+1,)."""
    core_set = np.ones(problem.n_vectors, dtype=np.int64)
    if problem.subspace_dim is None and problem.tolerance is None:
        core_set[1:] = OPEN
        core_set[1 : 1 + min(1, problem.n_protected)] = REAL
        core_set[1 + problem.dim :] = 0
    return core_set


def review_directions(
    problem: Problem, posterior: Posterior, prior: float, delta: float, core_set: IntArray
) -> None:
    """Which directions are taken for real, and which are open, into `core_set`."""
    real = rank.consistent_rank(posterior, delta)
    real = max(real, min(1, problem.n_protected))
    seen = spectrum_of(problem, posterior, prior, delta)
    reaching = max(seen.separated + seen.undecided, real)
    core_set[1:] = 0
    core_set[1 : 1 + reaching] = OPEN
    core_set[1 : 1 + real] = REAL


def spectrum_of(problem: Problem, posterior: Posterior, prior: float, delta: float) -> Spectrum:
    """What the evidence says of the rank; `prior` is the variance of a coordinate."""
    return rank.spectrum(posterior, problem.norm_bound, prior, delta, resolution_of(problem))


def resolution_of(problem: Problem) -> float:
    """The smallest singular value that matters: told, or that of the spanning set with lambda_min."""
    if problem.resolution is not None:
        return problem.resolution
    if problem.eigenvalue is not None:
        return float(np.sqrt(problem.eigenvalue))
    raise InputError(
        "a Thompson player needs one of the problem's subspace_dim, eigenvalue or resolution "
        "(the rank cannot be certified from data alone), or a tolerance, got none"
    )
