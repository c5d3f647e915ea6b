"""Selects the kernels of a policy by the type of its knobs.

Every policy passes its knobs to its kernels as a NamedTuple of its own type. `ask` and the loop of
`experiments` call `choose` and `choose_on_ball`; the type of the knobs selects the policy's kernel. So
there is one loop, and the arithmetic of every policy is written once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sidestep.core import kernels
from sidestep.core.arm_forms import Forms, Menu, empty_forms
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.estimator import Evidence
from sidestep.core.geometry import dot, scaled, total
from sidestep.core.kernels import by_type, kernel
from sidestep.core.solids import Body

Kernel = Callable[..., Any]


class Draws(NamedTuple):
    """The random numbers of one round, drawn before it; a policy says how many of each it needs."""

    uniforms: FloatArray
    normals: FloatArray


@kernel
def random_direction(normals: FloatArray) -> FloatArray:
    """A direction with uniform distribution on the sphere; (d,)."""
    return scaled(1.0 / np.sqrt(dot(normals, normals)), normals)


@kernel
def draw_one(uniform: float, count: int) -> int:
    """One of 0..count-1 with equal probability; `uniform` is in [0, 1)."""
    return min(int(uniform * count), count - 1)


@kernel
def rounds_left(horizon: float, evidence: Evidence) -> float:
    """Rounds that are left of a known horizon; 0 if it is not known (0), or over."""
    return max(horizon - float(total(evidence.counts, 0)), 0.0)


class Choice(NamedTuple):
    """What a policy does in a round, over arms."""

    arm: int  # row among the arms, or `off_menu(axis)` of core/actions.py
    vector: int  # index of the measured vector
    phase: int
    value: float  # value of the action by which the policy chose it; NaN where it has none


class ChoiceOnBall(NamedTuple):
    """What a policy does in a round, on a solid."""

    action: FloatArray  # (d,)
    vector: int
    phase: int
    value: float
    bound: float  # upper bound on the optimistic value of any action; NaN where none is known


@by_type
def choose(
    knobs: Any, evidence: Evidence, core_set: IntArray, menu: Menu, forms: Forms, draws: Draws
) -> Choice:
    """What to do in a round, over arms."""
    raise NotImplementedError


@by_type
def choose_on_ball(
    knobs: Any, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    """What to do in a round, on a solid."""
    raise NotImplementedError


@kernel
def decide_on_arms(
    knobs: Any, evidence: Evidence, core_set: IntArray, menu: Menu, draws: Draws
) -> Choice:
    """What `ask` calls: one decision over arms, with forms that are not kept."""
    forms = empty_forms(knobs.metric, core_set.size, menu.squared.size)
    return choose(knobs, evidence, core_set, menu, forms, draws)


@kernel
def decide_on_ball(
    knobs: Any, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    """What `ask` calls: one decision on a solid."""
    return choose_on_ball(knobs, evidence, core_set, body, draws)


def register(kind: type, on_arms: Kernel, on_ball: Kernel) -> None:
    """Register the kernels that are used for knobs of this NamedTuple type."""
    kernels.register(choose, kind, on_arms)
    kernels.register(choose_on_ball, kind, on_ball)
