"""Choosing an action among arms or in a solid, with one function for both.

A policy that calls `best_along` and `most_telling_in` is written once for both. The type of the place
selects the kernel: in Python at every call, in compiled code once, at compile time.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from sidestep.core.actions import ON_A_SOLID, Body, farthest
from sidestep.core.arm_forms import Menu, arm_of, winner
from sidestep.core.arrays import FloatArray
from sidestep.core.jit import FAMILIES, by_type, kernel
from sidestep.core.linalg import dot, lowest_argmax
from sidestep.core.objective import expected_values, expected_within, values_within
from sidestep.core.posterior import Posterior, effects_alone, padded, padded_vector
from sidestep.core.problem import Limits
from sidestep.core.variance_reduction import most_telling_action, most_telling_arm

Place: TypeAlias = Menu | Body  # where an action is chosen


class Found(NamedTuple):
    """An action, its row among the arms (ON_A_SOLID in a solid), and its value."""

    action: FloatArray  # (d,)
    arm: int
    value: float


class Telling(NamedTuple):
    """The most informative measurement: action, vector, and the variance it removes per unit of cost."""

    action: FloatArray  # (d,)
    arm: int
    vector: int
    gain: float


@by_type
def best_along(place: Place, direction: FloatArray, otherwise: FloatArray) -> Found:
    """The action farthest along a direction; in a solid, if `direction` is zero, along `otherwise`."""
    raise NotImplementedError


@by_type
def most_telling_in(
    place: Place, posterior: Posterior, costs: FloatArray, slopes: FloatArray, towards: FloatArray
) -> Telling:
    """The measurement that most reduces the variance of a quantity with these gradients, per cost.

    slopes (L+1, width). In a solid, of two equally informative actions, the one farther along `towards`.
    """
    raise NotImplementedError


@kernel
def _best_arm(menu: Menu, direction: FloatArray, otherwise: FloatArray) -> Found:
    arm, value = winner(menu, padded_vector(direction, menu.columns.shape[0]))
    return Found(arm_of(menu, arm), arm, value)


@kernel
def _best_in_solid(body: Body, direction: FloatArray, otherwise: FloatArray) -> Found:
    if dot(direction, direction) > 0.0:
        action = farthest(body, direction)
        return Found(action, ON_A_SOLID, dot(action, direction))
    return Found(farthest(body, otherwise), ON_A_SOLID, 0.0)


@kernel
def _telling_arm(
    menu: Menu, posterior: Posterior, costs: FloatArray, slopes: FloatArray, towards: FloatArray
) -> Telling:
    arm, v, gain = most_telling_arm(posterior, costs, padded(slopes, menu.columns.shape[0]), menu)
    return Telling(arm_of(menu, arm), arm, v, gain)


@kernel
def _telling_in_solid(
    body: Body, posterior: Posterior, costs: FloatArray, slopes: FloatArray, towards: FloatArray
) -> Telling:
    """Where levels are learned, the action is chosen as if the levels were known."""
    effects = effects_alone(posterior, posterior.mean.shape[1] > slopes.shape[1])
    action, v, gain = most_telling_action(effects, costs, slopes, body, towards)
    return Telling(action, ON_A_SOLID, v, gain)


@by_type
def any_in(place: Place, uniform: float, normals: FloatArray) -> Found:
    """An arm drawn by `uniform`, in [0, 1), or the action of a solid farthest along `normals`."""
    raise NotImplementedError


@kernel
def _any_arm(menu: Menu, uniform: float, normals: FloatArray) -> Found:
    arm = draw_one(uniform, menu.squared.size)
    return Found(arm_of(menu, arm), arm, np.nan)


@kernel
def _any_in_solid(body: Body, uniform: float, normals: FloatArray) -> Found:
    return Found(farthest(body, normals), ON_A_SOLID, np.nan)


@kernel
def draw_one(uniform: float, count: int) -> int:
    """One of 0..count-1 with equal probability; `uniform` is in [0, 1)."""
    return min(int(uniform * count), count - 1)


@by_type
def best_in(place: Place, limits: Limits, vectors: FloatArray) -> Found:
    """The best action within tolerances under given vectors (L+1, d)."""
    raise NotImplementedError


@by_type
def best_expected_in(place: Place, limits: Limits, posterior: Posterior) -> Found:
    """The action with the largest expected value within tolerances; in a solid, the best at the means.

    In a solid too the returned value is the expected one, which is at most the value at the means.
    """
    raise NotImplementedError


@kernel
def _best_arm_within(menu: Menu, limits: Limits, vectors: FloatArray) -> Found:
    values = values_within(limits, vectors, menu.columns, menu.squared.size)
    arm = lowest_argmax(values)
    return Found(arm_of(menu, arm), arm, values[arm])


@kernel
def _best_within_solid(body: Body, limits: Limits, vectors: FloatArray) -> Found:
    from sidestep.core.tolerance_program import best_within  # noqa: PLC0415  (scipy, never compiled)

    action, value = best_within(body, limits, vectors)
    return Found(action, ON_A_SOLID, value)


@kernel
def _best_expected_arm(menu: Menu, limits: Limits, posterior: Posterior) -> Found:
    values = expected_values(limits, posterior, menu.columns, menu.squared.size)
    arm = lowest_argmax(values)
    return Found(arm_of(menu, arm), arm, values[arm])


@kernel
def _best_expected_in_solid(body: Body, limits: Limits, posterior: Posterior) -> Found:
    action = _best_within_solid(body, limits, posterior.mean).action
    return Found(action, ON_A_SOLID, expected_within(limits, posterior, action))


FAMILIES[best_in].update({Menu: _best_arm_within, Body: _best_within_solid})
FAMILIES[best_expected_in].update({Menu: _best_expected_arm, Body: _best_expected_in_solid})
FAMILIES[best_along].update({Menu: _best_arm, Body: _best_in_solid})
FAMILIES[any_in].update({Menu: _any_arm, Body: _any_in_solid})
FAMILIES[most_telling_in].update({Menu: _telling_arm, Body: _telling_in_solid})
