"""Normal variables: the probability of exceeding zero, and the mean of the positive part."""

import math

import numpy as np
from scipy.special import ndtr

from sidestep.core.arrays import FloatArray
from sidestep.core.kernels import kernel

ROOT_TWO = math.sqrt(2.0)
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)


@kernel
def chance_above(behind: float, spread: float) -> float:
    """Probability that a normal variable is above zero; mean -behind, standard deviation spread."""
    if spread <= 0.0 or math.isinf(behind):
        return 1.0 if behind < 0.0 else 0.0
    return 0.5 * math.erfc(behind / (spread * ROOT_TWO))


@kernel
def expected_gain(behind: float, spread: float) -> float:
    """Mean of the positive part of a normal variable; mean -behind, standard deviation spread."""
    if spread <= 0.0 or math.isinf(behind):
        return max(-behind, 0.0)
    z = behind / spread
    density = math.exp(-0.5 * z * z) / ROOT_TWO_PI
    return max(spread * (density - z * 0.5 * math.erfc(z / ROOT_TWO)), 0.0)


def expected_gains(behind: FloatArray, spread: FloatArray) -> FloatArray:
    """`expected_gain` of many variables at once, in numpy: not a kernel."""
    certain = (spread <= 0.0) | np.isinf(behind)
    z = behind / np.where(certain, 1.0, spread)
    gain = spread * (np.exp(-0.5 * z * z) / ROOT_TWO_PI - z * ndtr(-z))
    return np.maximum(np.where(certain, -behind, gain), 0.0)


def chances_above(behind: FloatArray, spread: FloatArray) -> FloatArray:
    """`chance_above` of many variables at once, in numpy: not a kernel."""
    certain = (spread <= 0.0) | np.isinf(behind)
    return np.where(certain, behind < 0.0, ndtr(-behind / np.where(certain, 1.0, spread)))
