"""Levels: the intercept of every outcome, learned together with the effects and not part of the reward.

Where levels are learned, a vector has d + 1 coordinates, and the last one is its level. An action then
also gets a last coordinate when it is measured (Problem.lifted). Its value depends only on the first d.
"""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.geometry import copy_into
from sidestep.core.kernels import kernel


@kernel
def measured(action: FloatArray, width: int, action_bound: float) -> FloatArray:
    """The action (d,) with the coordinate of the level added where levels are learned; (width,)."""
    d = action.size
    if d == width:
        return action
    out = np.empty(width)
    copy_into(action, out)
    out[d] = 2.0 * action_bound * np.sqrt(d)  # the same as in Problem.lifted
    return out


@kernel
def padded(slopes: FloatArray, width: int) -> FloatArray:
    """Gradients in the effects, (n, d), extended by a zero for the level; (n, width)."""
    if slopes.shape[1] == width:
        return slopes
    out = np.zeros((slopes.shape[0], width))
    for v in range(slopes.shape[0]):
        copy_into(slopes[v], out[v])
    return out


@kernel
def padded_vector(direction: FloatArray, width: int) -> FloatArray:
    """One direction (d,) extended by a zero for the level; (width,)."""
    if direction.size == width:
        return direction
    out = np.zeros(width)
    copy_into(direction, out)
    return out
