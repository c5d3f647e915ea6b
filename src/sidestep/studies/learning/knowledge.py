"""What is known of effects before the first result: expectations, earlier studies, and the doubt in them.

Without knowledge the weights of an outcome's features are  w ~ N(0, c^2 S0^2 diag(v)).  With it they are

    w ~ N(mean + c S0 scaled,  c^2 S0^2 diag(share v) + root root')

so that a share of 0 and a root replace the prior of a feature. A part of the prior says something of
every outcome, and parts are averaged like everything else: a stranger is a part without knowledge. An
outcome may have several variants within a part (as expected; not as expected), averaged for it alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sidestep.core.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known of the weights of one outcome.

    share    of every prior variance that is left; (P,)
    mean     (P,)
    scaled   mean in c S0; (P,)
    root     of the covariance that does not grow with c; (P, k)
    sizes    logarithms of what this says of every c, beside the prior; None: nothing; (sizes,)
    """

    share: FloatArray
    mean: FloatArray
    scaled: FloatArray
    root: FloatArray
    sizes: FloatArray | None = None


def nothing_known(features: int) -> Knowledge:
    """No knowledge of so many features."""
    zero = np.zeros(features)
    return Knowledge(np.ones(features), zero, zero, np.zeros((features, 0)))


Variants = Sequence[tuple[float, Knowledge | None]]  # weights that sum to 1, None: nothing known


@dataclass(frozen=True, eq=False)
class Part:
    """One part of the prior: name, weight, the variants of every outcome (None: nothing known)."""

    name: str
    weight: float
    outcomes: Sequence[Variants] | None = None

    def variants(self, outcome: int) -> Variants:
        """What this part says of an outcome."""
        return [(1.0, None)] if self.outcomes is None else self.outcomes[outcome]


EARLIER, STRANGER = "earlier", "stranger"  # names of the parts where there were earlier studies
UNKNOWN = (Part("nothing", 1.0),)
