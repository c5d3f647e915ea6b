"""The action with the best optimistic value, among arms or on the ball, with one function for both.

Over arms it is the arm with the largest value under a surrogate (core/optimism_arms.py). On the ball it
is found by a search with a certificate (core/optimism_ball.py).
"""

from typing import Any, NamedTuple

import numpy as np

from sidestep.core.actions import ON_A_SOLID, Body
from sidestep.core.arm_forms import COVARIANCE, Menu, fill, upper_means, write_upper
from sidestep.core.arrays import FloatArray
from sidestep.core.best_action import Place
from sidestep.core.confidence import ellipsoids, radius
from sidestep.core.jit import FAMILIES, by_type, kernel
from sidestep.core.linalg import copy_into, dot, lowest_argmax, scaled, total
from sidestep.core.optimism_arms import Estimates, optimistic_values
from sidestep.core.optimism_ball import optimistic_action

TOLERANCE = 1e-2  # relative gap at which the search for the optimistic action on the ball stops


class Optimum(NamedTuple):
    """The optimistic action; on the ball the action itself is written into a buffer."""

    arm: int  # row among the arms; ON_A_SOLID on the ball
    value: float
    bound: float  # upper bound on the optimistic value of any action of the ball; NaN over arms


@by_type
def optimistic_in(
    place: Place,
    surrogate: Any,
    estimates: Estimates,
    n: int,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    """The optimum over the vectors in the first n entries of `workspace.rows`: 0 and the core set.

    On the ball it is written into `action` (d,); before anything is measured all directions are equally
    good, and that of `normals` is taken (A14). surrogate: for arms.
    """
    raise NotImplementedError


@by_type
def most_plausible_in(
    place: Place, estimates: Estimates, index: int, normals: FloatArray, action: FloatArray
) -> Optimum:
    """The action with the largest plausible <a, theta_index>; otherwise as `optimistic_in`."""
    raise NotImplementedError


@kernel(refcounts=False)
def _optimistic_arm(
    menu: Menu,
    surrogate: Any,
    estimates: Estimates,
    n: int,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    optimistic_values(surrogate, estimates, menu, n)
    return _largest(estimates.forms.workspace.values[: menu.squared.size])


@kernel(refcounts=False)
def _most_plausible_arm(
    menu: Menu, estimates: Estimates, index: int, normals: FloatArray, action: FloatArray
) -> Optimum:
    confidence, evidence, forms = estimates.confidence, estimates.evidence, estimates.forms
    reach, K = radius(confidence, evidence, index), menu.squared.size
    values = forms.workspace.values[:K]
    if forms.metric == COVARIANCE:  # the forms of this metric are kept from round to round
        fill(forms, evidence, confidence.rho, menu, index)
        write_upper(forms.linear[index, :K], forms.unit_width[index, :K], reach, values)
    else:
        upper_means(menu.columns, evidence.centre[index], evidence.inverse[index], reach, values)
    return _largest(values)


@kernel(refcounts=False)
def _largest(values: FloatArray) -> Optimum:
    arm = lowest_argmax(values)
    return Optimum(arm, values[arm], np.nan)


@kernel
def _on_ball(estimates: Estimates, n: int, normals: FloatArray, action: FloatArray) -> Optimum:
    copy_into(scaled(1.0 / np.sqrt(dot(normals, normals)), normals), action)
    if n > action.size:  # the projected target is zero, and so is every reward
        return Optimum(ON_A_SOLID, 0.0, 0.0)
    evidence, rows = estimates.evidence, estimates.forms.workspace.rows[:n]
    sets = ellipsoids(estimates.confidence, evidence, rows)
    best, value, bound = optimistic_action(sets.centre, sets.inverse, sets.radius, TOLERANCE)
    if total(evidence.counts, 0) > 0:
        copy_into(best, action)
    return Optimum(ON_A_SOLID, value, bound)


@kernel(refcounts=False)
def _optimistic_on_ball(
    body: Body,
    surrogate: Any,
    estimates: Estimates,
    n: int,
    normals: FloatArray,
    action: FloatArray,
) -> Optimum:
    return _on_ball(estimates, n, normals, action)


@kernel(refcounts=False)
def _most_plausible_on_ball(
    body: Body, estimates: Estimates, index: int, normals: FloatArray, action: FloatArray
) -> Optimum:
    estimates.forms.workspace.rows[0] = index
    return _on_ball(estimates, 1, normals, action)


FAMILIES[optimistic_in].update({Menu: _optimistic_arm, Body: _optimistic_on_ball})
FAMILIES[most_plausible_in].update({Menu: _most_plausible_arm, Body: _most_plausible_on_ball})


@by_type
def write_chosen(place: Place, arm: int, action: FloatArray) -> None:
    """Write a chosen arm into `action` (d,); that of the ball is there already."""
    raise NotImplementedError


@kernel(refcounts=False)
def _write_arm(menu: Menu, arm: int, action: FloatArray) -> None:
    copy_into(menu.columns[:, arm], action)


@kernel(refcounts=False)
def _leave(body: Body, arm: int, action: FloatArray) -> None:
    pass


FAMILIES[write_chosen].update({Menu: _write_arm, Body: _leave})
