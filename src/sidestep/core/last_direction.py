"""The unit ball where one direction is left, s = d - 1: regret of order log T (Theorem 14).

The policy of the theorem finds the direction to within a narrow cone, and then plays it in phases of
doubling length. What it sees of the protected vectors while playing shows how far the direction is off,
so that every phase costs the same. The proof, with these constants, is in docs/theory.md.

    CONE     sine of the angle of the cone around the first direction
    NOISY    A_1: what a phase's noise, over sigma, adds to the tangent of the next phase
    KEPT     A_2: the share of the tangent that is left after a phase
"""

import math
from typing import NamedTuple

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.conditions import amounts_of
from sidestep.core.lower_bounds import Amount, World, plain, protected_part
from sidestep.errors import InputError

CONE = 1 / 15
_APART = math.sqrt(1 - 4 * CONE**2)  # least cosine of an angle between two directions of the cone
_INVERTED = _APART - 1 / 16  # least singular value of the pilot's estimate, in units of sigma
NOISY = 2 / (_APART * _INVERTED)
KEPT = NOISY / 16
WIDEST = 2 * CONE / _APART  # largest tangent of an angle between two directions of the cone


class Remainder(NamedTuple):
    """What the theorem reads of an instance."""

    protected: FloatArray  # (d-1, d)
    target: FloatArray  # (d,)
    rest: FloatArray  # theta_perp, (d,)
    noise: FloatArray  # (d,): R_0, R_1, ...

    @property
    def sigma(self) -> float:
        """Smallest singular value of the protected vectors."""
        return float(np.linalg.svd(self.protected, compute_uv=False)[-1])

    @property
    def length(self) -> float:
        """b: the length of theta_perp, the largest reward."""
        return float(np.linalg.norm(self.rest))

    @property
    def blur(self) -> float:
        """Root of sum R_i^2 over the protected vectors."""
        return float(np.linalg.norm(self.noise[1:]))


def last_direction_bound(instance: World, horizon: Amount) -> Amount:
    """Expected regret of the policy of Theorem 14 on the unit ball, s = d - 1, at most; of order log T.

    The policy knows T; no policy of this package is that policy. Never more than 2 b T, which nobody
    exceeds.

    instance   its hidden vectors are read; d - 1 independent protected vectors, and some reward
    horizon    T, a number or an array

    >>> import sidestep as ss
    >>> world = ss.environments.synthetic(3, 2, 2, "ball", noise_scale=0.01, seed=0)
    >>> [round(ss.theory.last_direction_bound(world, T)) for T in (1e6, 1e9, 1e12)]
    [50, 70, 88]
    """
    T = amounts_of("horizon", horizon)
    here = remainder_of(instance)
    rows = [_bound(here, max(float(t), 1.0)) for t in T.ravel()]
    return plain(np.minimum(np.array(rows).reshape(T.shape), 2 * here.length * T))


def remainder_of(instance: World) -> Remainder:
    """What the theorem reads; raises one sentence outside its conditions."""
    protected, x = protected_part(instance)
    target = instance.theta[0]
    rest = target - protected.T @ x
    if len(protected) != target.size - 1 or len(protected) == 0:
        raise InputError(
            "this bound needs n_protected = dim - 1, at least 1, got "
            f"n_protected={len(protected)}, dim={target.size}"
        )
    if np.linalg.norm(rest) <= 1e-12 * np.linalg.norm(target):
        raise InputError("some reward must be left beside the protected vectors, got none")
    return Remainder(protected, target, rest, instance.problem.noise)


def most_sweeps(here: Remainder, horizon: float) -> float:
    """Sweeps of the pilot at most, n*; infinite beyond 1e300."""
    tail = tail_of(here, horizon)
    longest = float(np.linalg.norm(here.target))

    def is_over(n: float) -> bool:
        error, aim = tail * here.blur / math.sqrt(n), tail * here.noise[0] / math.sqrt(n)
        if 18 * error > here.sigma:
            return False
        turned = error / (here.sigma - 3 * error)
        least = here.length * math.sqrt(1 - CONE**2)
        return bool(least > 2 * aim + 2 * (longest + aim) * turned)

    high = 1.0
    while not is_over(high):
        high *= 2
        if high > 1e300:
            return math.inf
    low = high / 2  # not over, or no whole number
    while high - low > 1 and high > low * (1 + 1e-12):
        middle = math.floor((low + high) / 2)
        low, high = (low, middle) if is_over(middle) else (middle, high)
    return float(high)


def tail_of(here: Remainder, horizon: float) -> float:
    """z: errors after n sweeps are below z R_v / sqrt(n) for all v and n, but for a chance of 1 / T."""
    d = here.target.size
    return math.sqrt(d) + math.sqrt(2 * math.log(d * horizon**2))


def tangents(here: Remainder, phases: int) -> FloatArray:
    """Root of the mean square of the tangent of the angle to the best action, at most; (phases,)."""
    found, noise = np.empty(phases), here.blur / here.sigma
    found[0] = CONE / math.sqrt(1 - CONE**2)
    for k in range(phases - 1):
        found[k + 1] = min(NOISY * noise / math.sqrt(2.0**k) + KEPT * found[k], WIDEST)
    return found


def _bound(here: Remainder, T: float) -> float:
    d, s, b = here.target.size, len(here.protected), here.length
    sweep = d * (d * b - float(here.rest.sum()))  # e_1 .. e_d, for every vector
    phases = max(1, math.ceil(math.log2(T / s + 1)))
    rounds = s * 2.0 ** np.arange(phases)
    rounds[-1] = T - rounds[:-1].sum()
    played = 0.5 * b * float(rounds @ tangents(here, phases) ** 2)
    return sweep * most_sweeps(here, T) + 2 * b + played
