"""The lock-in monitor: detects an arm that is played forever although another could be better.

Over fixed arms an optimistic or greedy policy can settle on an arm for good although another could be
better (Example 5.1): the difference between the two lies along directions that measurements of the
settled arm do not determine. The monitor tests after `patience` rounds of one arm in a row, then after
2, 4, 8, ... times as many. Let a be that arm, r_v the radius of vector v and g(.) the gradient of the
reward at the estimates. Another arm b is a contender while

    sum_v r_v |g_v(b) - g_v(a)|_{V_v^-1}  >  <a - b, theta_perp estimated>.

The worst contender is the b with the largest difference of the two sides. The arm a is locked in if
another `patience` measurements along a could not remove the whole variance of its comparison with the
worst contender. A noise scale that is not known is learned from the residuals. The monitor runs rarely,
so it is plain numpy and no compiled code calls it.
"""

from typing import NamedTuple

import numpy as np

from sidestep.core.arm_forms import Menu
from sidestep.core.confidence import Confidence, radius
from sidestep.core.estimator import Evidence
from sidestep.core.jit import kernel
from sidestep.core.linalg import lowest_argmax
from sidestep.core.posterior import Posterior, Prior, noise_levels
from sidestep.core.projection import frame, gradient_matrices
from sidestep.core.variance_reduction import reductions


class LockInMonitor(NamedTuple):
    """Settings of the monitor."""

    patience: int  # rounds of one arm before the first test; then 2, 4, 8, ... times as many
    explores: bool  # play the most informative query instead of only reporting the lock-in


@kernel(refcounts=False)
def is_due(patience: int, streak: int) -> bool:
    """Whether one action was just played `patience` times in a row, or 2, 4, 8, ... times that."""
    looks = streak // patience
    return looks > 0 and looks & (looks - 1) == 0 and streak % patience == 0


def _with_noise(confidence: Confidence, evidence: Evidence) -> Confidence:
    """Replace unknown noise scales (NaN) by estimates from the residuals so far."""
    if not np.isnan(confidence.noise).any():
        return confidence
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
    """Whether the arm is locked in, then the arm and the vector to play instead.

    Unless the monitor explores, these are the arm itself and 0.
    """
    known = _with_noise(confidence, evidence)
    posterior = Posterior(evidence.centre, evidence.inverse, known.noise)
    radii = np.array([radius(known, evidence, v) for v in range(evidence.counts.size)])
    view = frame(evidence.centre, rank)
    if len(view.basis) == len(
        view.rest
    ):  # the protected vectors span everything: no reward is left
        return False, arm, 0
    slopes = gradient_matrices(view)
    action = menu.columns[:, arm : arm + 1]
    apart = menu.columns - action
    advantage = view.rest @ apart
    # the gradient is linear in the action, so |g_v(b) - g_v(a)|^2 is a quadratic form in b - a; one
    # vector at a time, to keep the buffers small
    for v, metric in enumerate(slopes.transpose(0, 2, 1) @ evidence.inverse @ slopes):
        square = np.einsum("jk,jk->k", apart, metric @ apart)
        advantage += radii[v] * np.sqrt(np.maximum(square, 0.0, out=square), out=square)
    contender = lowest_argmax(advantage)
    if advantage[contender] <= 0.0:
        return False, arm, 0
    worst = slopes @ apart[:, contender]
    moved = (worst[:, None, :] @ evidence.inverse)[:, 0, :]
    contested = known.noise**2 @ (worst * moved).sum(axis=1)
    lasting = monitor.patience * reductions(posterior, moved, action).max() < contested
    if not (lasting and monitor.explores):
        return bool(lasting), arm, 0
    removed = reductions(posterior, moved, menu.columns)
    vector, telling = divmod(lowest_argmax(removed.ravel()), removed.shape[1])
    return True, telling, vector
