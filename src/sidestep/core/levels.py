"""Levels: what an outcome reads where nothing is done, learned beside the effects and seen by no aim.

Where levels are learned, a vector has d + 1 coordinates and the last is its level. An action is measured
with a last coordinate too (Problem.lifted), but what it is worth depends on the first d alone.
"""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.geometry import copy_into
from sidestep.core.kernels import kernel


@kernel
def measured(action: FloatArray, width: int, action_bound: float) -> FloatArray:
    """The action with as many coordinates as are learned: where it is missing, that of the level."""
    d = action.size
    if d == width:
        return action
    out = np.empty(width)
    copy_into(action, out)
    out[d] = 2.0 * action_bound * np.sqrt(d)  # as Problem.lifted has it
    return out


@kernel
def padded(slopes: FloatArray, width: int) -> FloatArray:
    """Slopes in the effects, (n, d), as slopes in all that is learned: none in a level; (n, width)."""
    if slopes.shape[1] == width:
        return slopes
    out = np.zeros((slopes.shape[0], width))
    for v in range(slopes.shape[0]):
        copy_into(slopes[v], out[v])
    return out


@kernel
def padded_vector(direction: FloatArray, width: int) -> FloatArray:
    """The same of one direction; (width,)."""
    if direction.size == width:
        return direction
    out = np.zeros(width)
    copy_into(direction, out)
    return out
