"""The paper's synthetic worlds: random vectors, random arms."""

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Arms, UnitBall
from sidestep.core.arrays import FloatArray
from sidestep.core.validation import check_integer
from sidestep.environments.action_sources import ActionSource, FreshArms
from sidestep.environments.instance import Instance
from sidestep.errors import InputError

BALL, FIXED = "ball", "fixed:"


def synthetic(
    dim: int = 6,
    n_protected: int = 4,
    subspace_dim: int = 2,
    arms: int | str | ActionSource = 100,
    *,
    noise_scale: float = 0.001,
    seed: int = 0,
    noise: str = "gaussian",
) -> Instance:
    """Unit vectors: the target anywhere, the protected ones in a random subspace.

    The paper says only that vectors are drawn from N(0, I) and normalised, not how L of them span
    s dimensions. Here they are L Gaussian vectors in a random s-dimensional subspace (E2).

    dim            d, the length of an action
    n_protected    L, number of protected outcomes
    subspace_dim   s, the dimension of what they span
    arms           a number of fresh unit vectors every round, "fixed:1000" (so many unit vectors, drawn
                   once from the seed), "ball" (the unit ball), or any action source
    noise_scale    R
    seed           of the vectors, which do not depend on `arms`
    noise          "gaussian", "rademacher" or "uniform"

    >>> import sidestep as ss
    >>> world = ss.environments.synthetic(dim=3, n_protected=2, subspace_dim=1, seed=0)
    >>> world.theta.shape
    (3, 3)
    """
    check_integer("dim", dim, low=1)
    check_integer("n_protected", n_protected, low=0)
    check_integer("subspace_dim", subspace_dim, low=min(n_protected, 1), high=min(n_protected, dim))
    check_integer("seed", seed, low=0)
    rng = np.random.default_rng(seed)
    theta = random_vectors(rng, dim, n_protected, subspace_dim)
    actions = _source(arms, dim, rng)
    return Instance(theta, actions, noise_scale=noise_scale, subspace_dim=subspace_dim, noise=noise)


def random_vectors(rng: Generator, dim: int, n_protected: int, subspace_dim: int) -> FloatArray:
    """A target anywhere and protected vectors in a random subspace, all of length one; (L+1, d)."""
    target = rng.standard_normal((1, dim))
    span = np.linalg.qr(rng.standard_normal((dim, subspace_dim)))[0].T
    return unit_rows(np.vstack([target, rng.standard_normal((n_protected, subspace_dim)) @ span]))


def unit_rows(rows: FloatArray) -> FloatArray:
    """The same directions with length one."""
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


def _source(arms: int | str | ActionSource, dim: int, rng: Generator) -> ActionSource:
    """The source of actions from the argument `arms`, as a spec may write it."""
    if isinstance(arms, int):
        return FreshArms(arms, dim)
    if not isinstance(arms, str):
        return arms
    if arms == BALL:
        return UnitBall(dim)
    count = arms.removeprefix(FIXED)
    if count == arms or not count.isdecimal() or int(count) < 1:
        raise InputError(
            'arms must be a number of fresh arms, "fixed:" and a number, "ball" or an action '
            f"source, got {arms!r}"
        )
    return Arms(unit_rows(rng.standard_normal((int(count), dim))))
