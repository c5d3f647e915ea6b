"""How a cost grows: the exponent of a power law, fitted on logarithmic axes."""

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The b of cost = c size^b by least squares over log cost; NaN where there are fewer than two."""
    if len(set(sizes)) < 2:
        return float("nan")
    slope, _ = np.polyfit(np.log(sizes), np.log(costs), 1)
    return float(slope)
