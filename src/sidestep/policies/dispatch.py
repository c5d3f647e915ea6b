"""Which kernels belong to which policy, by the type of its knobs.

A policy hands its knobs to its kernels as a NamedTuple of its own. `ask` and the loop of `experiments`
call `choose` and `choose_on_ball`; the type of the knobs decides which policy's kernel stands behind
them. So there is one loop, and every policy's arithmetic is written once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sidestep.core import kernels
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Forms, Menu, empty_forms
from sidestep.core.geometry import dot, scaled
from sidestep.core.kernels import by_type, kernel
from sidestep.core.solids import Body

Kernel = Callable[..., Any]


class Draws(NamedTuple):
    """The chance of one round, drawn before it: a policy says how many of each it takes."""

    uniforms: FloatArray
    normals: FloatArray


@kernel
def random_direction(normals: FloatArray) -> FloatArray:
    """A direction drawn evenly from the sphere; (d,)."""
    return scaled(1.0 / np.sqrt(dot(normals, normals)), normals)


@kernel
def draw_one(uniform: float, count: int) -> int:
    """One of 0..count-1, evenly."""
    return min(int(uniform * count), count - 1)


class Choice(NamedTuple):
    """What a policy does in a round, over arms."""

    arm: int  # row among the arms, or `off_menu(axis)` of core/actions.py
    vector: int  # which is measured
    phase: int
    value: float  # what the policy hopes the action is worth; NaN where it does not say


class ChoiceOnBall(NamedTuple):
    """The same on a solid."""

    action: FloatArray  # (d,)
    vector: int
    phase: int
    value: float
    bound: float  # no action is worth more, optimistically; NaN where no bound is known


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
    """What `ask` calls: one decision over arms, of which nothing is kept."""
    forms = empty_forms(knobs.metric, core_set.size, menu.squared.size)
    return choose(knobs, evidence, core_set, menu, forms, draws)


@kernel
def decide_on_ball(
    knobs: Any, evidence: Evidence, core_set: IntArray, body: Body, draws: Draws
) -> ChoiceOnBall:
    """The same on a solid."""
    return choose_on_ball(knobs, evidence, core_set, body, draws)


def register(kind: type, on_arms: Kernel, on_ball: Kernel) -> None:
    """Let knobs of this NamedTuple type mean these kernels."""
    kernels.register(choose, kind, on_arms)
    kernels.register(choose_on_ball, kind, on_ball)
