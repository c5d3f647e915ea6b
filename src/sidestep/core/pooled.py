"""The rank that a Thompson policy assumes where the rank of the protected subspace is not known.

The policy assumes the smallest rank that the measurements do not contradict (core/rank.py). The rank is
reviewed whenever the number of measurements has grown by a tenth. In every SCEPTIC-th round the rival
action and the measurement are chosen with the largest rank that is still possible: every direction counts
whose singular value could still reach the resolution. So no direction that matters stays undecided for
good, and no separate phase is needed.

Row 0 of a state's `core_set` is the target. Rows 1, 2, ... are the directions from the strongest to the
weakest, each REAL (part of the assumed rank), OPEN (undecided) or 0 (neither).
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
    """The rank that is assumed in this round for the action, and that for rival and measurement."""
    if known_rank >= 0:
        return known_rank, known_rank
    real, reaching = 0, 0
    for v in range(1, core_set.size):
        real += core_set[v] == REAL
        reaching += core_set[v] != 0
    return real, reaching if total(counts, 0) % SCEPTIC == SCEPTIC - 1 else real


def first_directions(problem: Problem) -> IntArray:
    """`core_set` before the first round; where the rank is unknown, one direction is REAL; (L+1,)."""
    core_set = np.ones(problem.n_vectors, dtype=np.int64)
    if problem.subspace_dim is None and problem.tolerance is None:
        core_set[1:] = OPEN
        core_set[1 : 1 + min(1, problem.n_protected)] = REAL
        core_set[1 + problem.dim :] = 0
    return core_set


def review_directions(
    problem: Problem, posterior: Posterior, prior: float, delta: float, core_set: IntArray
) -> None:
    """Write which directions are REAL and which are OPEN into `core_set` (L+1,)."""
    real = rank.consistent_rank(posterior, delta)
    real = max(real, min(1, problem.n_protected))
    seen = spectrum_of(problem, posterior, prior, delta)
    reaching = max(seen.separated + seen.undecided, real)
    core_set[1:] = 0
    core_set[1 : 1 + reaching] = OPEN
    core_set[1 : 1 + real] = REAL


def spectrum_of(problem: Problem, posterior: Posterior, prior: float, delta: float) -> Spectrum:
    """Singular values of the protected estimates; `prior` is the prior variance of a coordinate."""
    return rank.spectrum(posterior, problem.norm_bound, prior, delta, resolution_of(problem))


def resolution_of(problem: Problem) -> float:
    """The smallest singular value that matters: the problem's resolution, or sqrt(lambda_min)."""
    if problem.resolution is not None:
        return problem.resolution
    if problem.eigenvalue is not None:
        return float(np.sqrt(problem.eigenvalue))
    raise InputError(
        "a Thompson player needs one of the problem's subspace_dim, eigenvalue or resolution "
        "(the rank cannot be certified from data alone), or a tolerance, got none"
    )
