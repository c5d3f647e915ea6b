"""The lock-in monitor: the same arm again and again while it cannot show what is still in question.

Over fixed arms an optimist or a greedy player can settle on an arm for good although another could be
better (Example 5.1): what separates the two lies along directions that the settled arm does not show.
The monitor looks after `patience` rounds of one arm in a row, then after twice as many, and so on. With
a that arm, r_v the radius of vector v and g(.) the gradient of the reward at the estimates, another arm
b contends while

    sum_v r_v |g_v(b) - g_v(a)|_{V_v^-1}  >  <a - b, theta_perp estimated>,

and a is locked in if its worst contender stays so: another `patience` measurements along a would take
off less than all of the variance of the comparison. A noise scale that the player is not told is learned
from the residuals.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Menu, arm_of
from sidestep.core.geometry import apply, copy_into, dot, lowest_argmax
from sidestep.core.kernels import kernel
from sidestep.core.passes import scores
from sidestep.core.posterior import (
    Posterior,
    Prior,
    most_telling,
    most_telling_arm,
    noise_levels,
    variance,
)
from sidestep.core.quadratics import both_forms
from sidestep.core.sensitivity import Frame, frame, gradient


class LockInMonitor(NamedTuple):
    """How the monitor is set."""

    patience: int  # rounds of one arm before the first look; the next ones come after twice as many
    explores: bool  # play what would settle it, instead of only saying so


@kernel(refcounts=False)
def is_due(patience: int, streak: int) -> bool:
    """Whether one action was just played `patience` times in a row, or 2, 4, 8, ... times that."""
    looks = streak // patience
    return looks > 0 and looks & (looks - 1) == 0 and streak % patience == 0


@kernel
def _advantages(
    view: Frame, posterior: Posterior, radii: FloatArray, apart: FloatArray
) -> FloatArray:
    """By how much every arm b may be better than a, given b - a in the columns of `apart`; (K,).

    The gradient is linear in the action, g_v(b) = G_v b, so that what a set allows is a quadratic form.
    """
    d, K = apart.shape
    advantage, linear, square = np.empty(K), np.empty(K), np.empty(K)
    scores(apart, view.rest, advantage)
    slopes, axis = np.empty((d, radii.size, d)), np.zeros(d)
    for j in range(d):
        axis[j] = 1.0
        here = gradient(view, axis)
        for v in range(radii.size):
            copy_into(here[v], slopes[j, v])
        axis[j] = 0.0
    metric = np.empty((d, d))
    for v in range(radii.size):
        for j in range(d):
            turned = apply(posterior.inverse[v], slopes[j, v])
            for m in range(d):
                metric[m, j] = dot(slopes[m, v], turned)
        both_forms(apart, axis, metric, 0.0, linear, square)
        for k in range(K):
            advantage[k] += radii[v] * np.sqrt(max(square[k], 0.0))
    return advantage


@kernel
def _with_noise(confidence: Confidence, evidence: Evidence) -> Confidence:
    """The same with every noise scale that is not told, NaN, learned from the residuals so far."""
    M, A, d = confidence.norm_bound, confidence.action_bound, evidence.centre.shape[1]
    prior = Prior(confidence.rho, confidence.noise, M * M / d, M * A)
    return Confidence(
        confidence.rho,
        noise_levels(prior, evidence),
        M,
        A,
        confidence.delta,
        confidence.form,
        confidence.discount,
    )


@kernel
def locked_in(
    monitor: LockInMonitor,
    confidence: Confidence,
    evidence: Evidence,
    menu: Menu,
    rank: int,
    arm: int,
) -> tuple[bool, int, int]:
    """Whether the arm is locked in, and the arm and the vector that would tell most about it."""
    action = arm_of(menu, arm)
    known = _with_noise(confidence, evidence)
    posterior = Posterior(evidence.centre, evidence.inverse, known.noise)
    n = evidence.counts.size
    radii = np.empty(n)
    for v in range(n):
        radii[v] = radius(known, evidence, v)
    view = frame(evidence.centre, rank)
    apart = np.empty(menu.columns.shape)
    for j in range(action.size):
        apart[j] = menu.columns[j] - action[j]
    advantage = _advantages(view, posterior, radii, apart)
    contender = lowest_argmax(advantage)
    worst = gradient(view, apart[:, contender].copy())
    costs = np.ones(n)
    _, reduction_here = most_telling(posterior, costs, worst, action)
    if advantage[contender] <= 0.0 or monitor.patience * reduction_here >= variance(
        posterior, worst
    ):
        return False, arm, 0
    telling, v, _ = most_telling_arm(posterior, costs, worst, menu)
    return True, telling, v
