"""Worlds on which nothing was tuned: the kinds of worlds of an independent audit of this package.

They are built from their descriptions. All vectors have length one unless stated otherwise, and all are
drawn from the seed.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.linalg import orthonormal, project_off
from sidestep.core.validation import check_integer, look_up
from sidestep.environments.action_sources import FreshArms
from sidestep.environments.guardrails import dose_rows
from sidestep.environments.instance import Instance
from sidestep.environments.synthetic import random_vectors, unit_rows

NEARLY = math.radians(8)  # the angle of two protected vectors that are nearly parallel
REST = 0.1  # length of theta_perp in "tiny-rest"
WIDE = 10.0  # M in "wide-prior", ten times the truth
SHORT = 0.05  # length of the arms with nearly equal rewards in "dear-oracle"
DEAR = 0.35  # smallest distance of the informative arm's reward from theirs
APART = 0.05, 0.4  # smallest and largest difference of the two best rewards of a blind spot
UNEVEN = (0.5, 10.0, 10.0, 3.0, 3.0)  # noise of every outcome, in units of `noise_scale`


class Kind(NamedTuple):
    """How the vectors and the arms of one kind are drawn, and the M that its policy knows."""

    draw: Callable[[Generator], tuple[FloatArray, Any]]
    norm_bound: float = 1.0


def held_out(kind: str, noise_scale: float = 0.1, *, seed: int = 0) -> Instance:
    """One world of a kind that no policy was tuned on.

    kind          "low-rank": 100 arms in R^10 that three factors explain up to a tenth;
                  "interactions": four drugs at three doses with products, 80 arms of different lengths;
                  "many-outcomes": thirty protected vectors of rank 2 in R^12, 100 arms;
                  "near-parallel": two protected vectors eight degrees apart in R^6, 50 arms;
                  "uneven-noise": noise of 0.5 to 10 times `noise_scale`, 50 fresh arms per round;
                  "tiny-rest": 99% of the target's squared length is protected;
                  "one-hot": the arms are the twelve axes;
                  "all-but-one": five independent protected vectors in R^6;
                  "wide-prior": M is ten times the length of the vectors;
                  "dear-oracle": ten short arms nearly tie, and the one informative arm is far worse;
                  "blind-six": a blind spot in R^6 with 17 arms;
                  "rank-deficient": arms in four of six dimensions, which do not determine the best arm
    noise_scale   R
    seed          of everything that is drawn

    >>> import sidestep as ss
    >>> ss.environments.held_out("one-hot").actions.vectors.shape
    (12, 12)
    """
    check_integer("seed", seed, low=0)
    chosen = look_up("kind", kind, KINDS)
    theta, arms = chosen.draw(np.random.default_rng(seed))
    noise = [noise_scale * part for part in UNEVEN] if kind == "uneven-noise" else noise_scale
    return Instance(theta, arms, noise_scale=noise, norm_bound=chosen.norm_bound)


def _arms(rng: Generator, count: int, dim: int) -> Arms:
    return Arms(unit_rows(rng.standard_normal((count, dim))))


def _low_rank(rng: Generator) -> tuple[FloatArray, Any]:
    arms = unit_rows(rng.standard_normal((100, 3)) @ rng.standard_normal((3, 10)))
    arms = unit_rows(arms + 0.1 * rng.standard_normal(arms.shape) / math.sqrt(10))
    return random_vectors(rng, 10, 4, 2), Arms(arms)


def _near_parallel(rng: Generator) -> tuple[FloatArray, Any]:
    theta = random_vectors(rng, 6, 2, 2)
    across = unit_rows(theta[2] - (theta[2] @ theta[1]) * theta[1])
    theta[2] = math.cos(NEARLY) * theta[1] + math.sin(NEARLY) * across
    return theta, _arms(rng, 50, 6)


def _tiny_rest(rng: Generator) -> tuple[FloatArray, Any]:
    theta = random_vectors(rng, 6, 4, 2)
    rest = unit_rows(project_off(orthonormal(theta[1:]), theta[0]))
    along = unit_rows(theta[0] - (theta[0] @ rest) * rest)
    theta[0] = REST * rest + math.sqrt(1 - REST**2) * along
    return theta, _arms(rng, 100, 6)


def _dear_oracle(rng: Generator) -> tuple[FloatArray, Any]:
    """Drawn again until the reward of the long arm is at least DEAR below that of every short one."""
    while True:
        theta, turns = random_vectors(rng, 3, 1, 1), rng.uniform(0.0, 2 * math.pi, 10)
        short = SHORT * np.column_stack([np.cos(turns), np.sin(turns), np.zeros(10)])
        arms = np.vstack([short, [[0.0, 0.0, 1.0]]])
        worth = arms @ project_off(orthonormal(theta[1:]), theta[0])
        if worth[-1] <= worth[:-1].min() - DEAR:
            return theta, Arms(arms)


def _blind_six(rng: Generator) -> tuple[FloatArray, Any]:
    """Drawn again until the best arm seems worse than another if the unmeasured part is taken as zero."""
    while True:
        theta = random_vectors(rng, 6, 1, 1)
        good = np.column_stack([unit_rows(rng.standard_normal((16, 5))), np.zeros(16)])
        arms = np.vstack([good, np.eye(6)[5:]])
        flat = theta.copy()
        flat[1, 5] = 0.0
        truth, looks = (arms @ project_off(orthonormal(v[1:]), v[0]) for v in (theta, flat))
        gap = truth.max() - truth[looks.argmax()]
        if APART[0] <= gap <= APART[1] and truth[-1] <= truth.min():
            return theta, Arms(arms)


def _rank_deficient(rng: Generator) -> tuple[FloatArray, Any]:
    arms = np.zeros((100, 6))
    arms[:, :4] = rng.standard_normal((100, 4))
    return random_vectors(rng, 6, 4, 2), Arms(unit_rows(arms))


KINDS = {
    "low-rank": Kind(_low_rank),
    "interactions": Kind(lambda rng: (random_vectors(rng, 10, 3, 2), Arms(dose_rows()[1:]))),
    "many-outcomes": Kind(lambda rng: (random_vectors(rng, 12, 30, 2), _arms(rng, 100, 12))),
    "near-parallel": Kind(_near_parallel),
    "uneven-noise": Kind(lambda rng: (random_vectors(rng, 6, 4, 2), FreshArms(50, 6))),
    "tiny-rest": Kind(_tiny_rest),
    "one-hot": Kind(lambda rng: (random_vectors(rng, 12, 4, 2), Arms(np.eye(12)))),
    "all-but-one": Kind(lambda rng: (random_vectors(rng, 6, 5, 5), _arms(rng, 100, 6))),
    "wide-prior": Kind(lambda rng: (random_vectors(rng, 6, 4, 2), _arms(rng, 100, 6)), WIDE),
    "dear-oracle": Kind(_dear_oracle),
    "blind-six": Kind(_blind_six),
    "rank-deficient": Kind(_rank_deficient),
}
