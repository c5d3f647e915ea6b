"""The lock-in monitor: the same arm again and again while it cannot show what is still in question.

Over fixed arms an optimist or a greedy player can settle on an arm for good although another could be
better (Example 5.1): what separates the two lies along directions that the settled arm does not show.
The monitor looks after `patience` rounds of one arm in a row, then after twice as many, and so on. With
a that arm, r_v the radius of vector v and g(.) the gradient of the reward at the estimates, another arm
b contends while

    sum_v r_v |g_v(b) - g_v(a)|_{V_v^-1}  >  <a - b, theta_perp estimated>,

and a is locked in if its worst contender stays so: another `patience` measurements along a would take
off less than all of the variance of the comparison. A noise scale that the player is not told is learned
from the residuals. It looks rarely: so this is plain numpy, which no compiled code calls.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.forms import Menu, arm_of
from sidestep.core.geometry import TIE
from sidestep.core.kernels import kernel
from sidestep.core.posterior import (
    Posterior,
    Prior,
    most_telling,
    noise_levels,
    variance,
)
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


def _advantages(
    view: Frame, posterior: Posterior, radii: FloatArray, apart: FloatArray
) -> FloatArray:
    """By how much every arm b may be better than a, given b - a in the columns of `apart`; (K,).

    The gradient is linear in the action, g_v(b) = G_v b, so that what a set allows is a quadratic form.
    """
    off = np.eye(len(apart)) - view.basis.T @ view.basis
    advantage = view.rest @ apart
    for v, radius_v in enumerate(radii):
        slope = off  # G_v', (d, d): sensitivity.gradient of every axis
        if v > 0:
            slope = -(view.coefficients[v - 1] * off + np.outer(view.dual[v - 1], view.rest))
        metric = slope @ posterior.inverse[v] @ slope.T
        advantage += radius_v * np.sqrt(np.maximum(_squares(metric, apart), 0.0))
    return advantage


def _squares(metric: FloatArray, columns: FloatArray) -> FloatArray:
    """|a|^2 in the metric for every column a; (K,)."""
    return np.einsum("jk,jk->k", columns, metric @ columns)


def _most_telling_arm(
    posterior: Posterior, slopes: FloatArray, columns: FloatArray
) -> tuple[int, int]:
    """The arm and the vector whose measurement takes most off what is contested; ties: lowest."""
    told = [
        noise**2 * (slope @ inverse @ columns) ** 2 / (1.0 + _squares(inverse, columns))
        for slope, inverse, noise in zip(slopes, posterior.inverse, posterior.noise, strict=True)
    ]
    v, arm = divmod(_lowest_argmax(np.concatenate(told)), columns.shape[1])
    return arm, v


def _lowest_argmax(values: FloatArray) -> int:
    """As geometry.lowest_argmax, in numpy."""
    top = values.max()
    return int(np.argmax(values >= top - TIE * abs(top)))


def _with_noise(confidence: Confidence, evidence: Evidence) -> Confidence:
    """The same with every noise scale that is not told, NaN, learned from the residuals so far."""
    M, A, d = confidence.norm_bound, confidence.action_bound, evidence.centre.shape[1]
    prior = Prior(confidence.rho, confidence.noise, M * M / d, M * A, d)
    return confidence._replace(noise=noise_levels(prior, evidence))


def locked_in(
    monitor: LockInMonitor,
    confidence: Confidence,
    evidence: Evidence,
    menu: Menu,
    rank: int,
    arm: int,
) -> tuple[bool, int, int]:
    """Whether the arm is locked in, and the arm and the vector to play instead where it explores."""
    action = arm_of(menu, arm)
    known = _with_noise(confidence, evidence)
    posterior = Posterior(evidence.centre, evidence.inverse, known.noise)
    radii = np.array([radius(known, evidence, v) for v in range(evidence.counts.size)])
    view = frame(evidence.centre, rank)
    apart = menu.columns - action[:, None]
    advantage = _advantages(view, posterior, radii, apart)
    contender = _lowest_argmax(advantage)
    worst = gradient(view, apart[:, contender].copy())
    _, reduction_here = most_telling(posterior, np.ones(radii.size), worst, action)
    lasting = monitor.patience * reduction_here < variance(posterior, worst)
    if advantage[contender] <= 0.0 or not lasting:
        return False, arm, 0
    if not monitor.explores:
        return True, arm, 0
    return True, *_most_telling_arm(posterior, worst, menu.columns)
