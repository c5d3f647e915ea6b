"""The lock-in monitor: the same arm again and again while it cannot show what is still in question.

Over fixed arms an optimist or a greedy player can settle on an arm for good although another could be
better (Example 5.1): what separates the two lies along directions that the settled arm does not show.
The monitor looks after `patience` rounds of one arm in a row, then after twice as many, and so on. With
a that arm, r_v the radius of vector v and g(.) the gradient of the reward at the estimates, another arm
b contends while

    sum_v r_v |g_v(b) - g_v(a)|_{V_v^-1}  >  <a - b, theta_perp estimated>,

and a is locked in if its worst contender stays so: another `patience` measurements along a would take
off less than all of the variance of the comparison.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.belief import Belief, most_telling, most_telling_arm, variance
from sidestep.core.compiled import kernel
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Menu, arm_of
from sidestep.core.geometry import dot, quadratic
from sidestep.core.problem import FloatArray
from sidestep.core.sensitivity import frame, gradient


class Watch(NamedTuple):
    """How the monitor is set."""

    patience: int  # rounds of one arm before the first look; the next ones come after twice as many
    explores: bool  # play what would settle it, instead of only saying so


@kernel
def is_due(watch: Watch, evidence: Evidence, action: FloatArray) -> bool:
    """Whether this action was just played `patience` times in a row, or 2, 4, 8, ... times that."""
    looks = evidence.streak[0] // watch.patience
    due = looks > 0 and looks & (looks - 1) == 0 and evidence.streak[0] % watch.patience == 0
    for j in range(action.size):
        due = due and action[j] == evidence.last[j]
    return due


@kernel
def locked_in(
    watch: Watch, confidence: Confidence, evidence: Evidence, menu: Menu, rank: int, arm: int
) -> tuple[bool, int, int]:
    """Whether the arm is locked in, and the arm and the vector that would tell most about it."""
    action = arm_of(menu, arm)
    if not is_due(watch, evidence, action):
        return False, arm, 0
    held = Belief(evidence.centre, evidence.inverse, confidence.noise)
    n = evidence.counts.size
    reach = np.empty(n)
    for v in range(n):
        reach[v] = radius(confidence, evidence, v)
    view = frame(evidence.centre, rank)
    here = gradient(view, action)
    worst, widest = np.zeros_like(here), 0.0
    for k in range(menu.squared.size):
        other = arm_of(menu, k)
        apart = gradient(view, other)
        room = dot(other, view.rest) - dot(action, view.rest)
        for v in range(n):
            for j in range(action.size):
                apart[v, j] -= here[v, j]
            room += reach[v] * np.sqrt(max(quadratic(held.inverse[v], apart[v]), 0.0))
        if room > widest * (1.0 + 1e-10):
            worst, widest = apart, room
    costs = np.ones(n)
    _, told = most_telling(held, costs, worst, action)
    if widest <= 0.0 or watch.patience * told >= variance(held, worst):
        return False, arm, 0
    telling, v, _ = most_telling_arm(held, costs, worst, menu)
    return True, telling, v
