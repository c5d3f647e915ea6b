"""The worlds of the benchmark: how many arms, in which dimension, with how many protected vectors."""

from typing import Any, NamedTuple

import numpy as np

from sidestep.core.actions import Arms, UnitBall
from sidestep.core.arrays import FloatArray
from sidestep.environments.instance import Instance
from sidestep.environments.synthetic import synthetic
from sidestep.policies.catalog import POLICIES

FIXED, FRESH, GIVEN, BALL = "fixed", "fresh", "given", "ball"
NOISE = 0.1
QUIET = 1e-6  # where CORE-SET should end after its first sweep


class World(NamedTuple):
    """One size of problem. FRESH arms are drawn in the round, GIVEN arms were drawn before it."""

    kind: str
    arms: int  # K; 0 on the ball
    dim: int  # d
    n_protected: int = 2  # L
    subspace_dim: int = 2  # s
    noise: float = NOISE

    @property
    def title(self) -> str:
        """What a table calls it."""
        place = f"ball, d={self.dim}"
        if self.kind != BALL:
            words = {FIXED: "fixed", FRESH: "fresh", GIVEN: "fresh, given"}[self.kind]
            place = f"{self.arms:,} x {self.dim} {words}"
        return f"{place}, L={self.n_protected}, s={self.subspace_dim}"

    @property
    def rounds(self) -> int:
        """How many to play at least: over fixed arms the first rounds fill what later ones keep."""
        if self.kind != FIXED:
            return 1
        return 2000 if self.arms * self.dim <= 1_000_000 else 300

    def vectors(self) -> FloatArray:
        """The arms where they are fixed, else none; (K, d)."""
        return unit_vectors(1, self.arms if self.kind == FIXED else 0, self.dim)[0]

    def instance(self, vectors: FloatArray | None = None) -> Instance:
        """The world itself; GIVEN arms are played by rounds.py and need none of their own."""
        actions: Any = UnitBall(self.dim) if self.kind == BALL else self.arms
        if self.kind == FIXED:
            actions = Arms(self.vectors() if vectors is None else vectors)
        sizes = (self.dim, self.n_protected, self.subspace_dim)
        return synthetic(*sizes, actions, noise_scale=self.noise, seed=1)


def unit_vectors(sets: int, count: int, dim: int) -> FloatArray:
    """Directions drawn evenly; (sets, count, dim), the same ones every time."""
    vectors = np.random.default_rng(0).standard_normal((sets, count, dim))
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors


def vectors_in_play(policy: str, world: World) -> int:
    """How many vectors a decision must look at: none, the target, or the core set too."""
    return {"uniform": 0, "oful": 1}.get(policy, 1 + world.subspace_dim)


def policy_of(name: str, instance: Instance) -> Any:
    """The policy with its default knobs."""
    return POLICIES[name](instance.problem)


PAPER = World(FRESH, 100, 6)
PAPER_GIVEN = World(GIVEN, 100, 6)
WARFARIN = World(FIXED, 1832, 8)
LARGE = World(FIXED, 10_000, 50)
HUGE = World(FIXED, 100_000, 20, 20, 5, QUIET)
SPHERE = World(BALL, 0, 6)
GRID = (PAPER, WARFARIN, LARGE, HUGE, SPHERE)
LOOK = (PAPER, WARFARIN)  # what --quick looks at

AXES: dict[str, tuple[World, ...]] = {
    "K": tuple(World(FIXED, K, 8) for K in (316, 1000, 3162, 10_000, 31_623)),
    "d": tuple(World(FIXED, 1000, d) for d in (12, 25, 50, 100, 200)),
    "L": tuple(World(FIXED, 1000, 20, L, 2, QUIET) for L in (3, 6, 12, 25, 50)),
    "s": tuple(World(FIXED, 1000, 20, s, s) for s in (1, 2, 4, 7, 10)),
    "d on the ball": tuple(World(BALL, 0, d) for d in (6, 12, 25, 50, 100)),
    "s on the ball": tuple(World(BALL, 0, 25, s, s) for s in (1, 2, 4, 7, 10)),
}


def size_on(axis: str, world: World) -> int:
    """The number that the axis varies."""
    sizes = {"K": world.arms, "d": world.dim, "L": world.n_protected, "s": world.subspace_dim}
    return sizes[axis[0]]
