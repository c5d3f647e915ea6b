"""Protected LinUCB as it would be written without a compiler: yardsticks in the same process.

Both rivals decide by the rule of the default policy (corrected surrogate, log-det radius); contest.py
holds them to its arms and measured vectors before anything is timed.
"""

import numpy as np

from sidestep.core.arrays import FloatArray, IntArray
from sidestep.environments.instance import Instance
from sidestep.policies.protected_linucb import ProtectedLinUCB


def lowest_argmax(values: FloatArray) -> int:
    """Row of the largest value; of values that tie up to rounding, the lowest row."""
    largest = values.max()
    return int(np.argmax(values >= largest - 1e-10 * abs(largest)))


class Rival:
    """What both keep of the past: V and its inverse, estimate and log-determinant."""

    def __init__(self, policy: ProtectedLinUCB, instance: Instance) -> None:
        told = policy.problem
        n, d = told.n_vectors, told.dim
        self.rho, self.noise, self.bound = policy.rho, told.noise, told.norm_bound
        self.delta = policy.knobs.confidence.delta
        self.theta, self.scale = instance.theta, instance.truth.scale
        self.precision = np.tile(self.rho * np.eye(d), (n, 1, 1))
        self.inverse = np.tile(np.eye(d) / self.rho, (n, 1, 1))
        self.centre, self.logdet = np.zeros((n, d)), np.zeros(n)

    def choose(self, arms: FloatArray, radii: FloatArray) -> int:
        """Which arm to play; this is where the two differ."""
        raise NotImplementedError

    def play(self, menus: FloatArray, draws: FloatArray, rounds: int) -> IntArray:
        """Arm and index of every round; menus (n, K, d) are gone through again and again."""
        played = np.empty((rounds, 2), np.int64)
        for t in range(rounds):
            arms = menus[t % len(menus)]
            radii = self._radii()
            arm = self.choose(arms, radii)
            index = self._widest(arms[arm], radii)
            self._absorb(arms[arm], index, draws[t % len(draws)])
            played[t] = arm, index
        return played

    def _radii(self) -> FloatArray:
        spread = np.sqrt(self.logdet - 2 * np.log(self.delta))
        return self.noise * spread + np.sqrt(self.rho) * self.bound

    def _widest(self, action: FloatArray, radii: FloatArray) -> int:
        return lowest_argmax(radii * np.sqrt((self.inverse @ action) @ action))

    def _absorb(self, action: FloatArray, index: int, draw: float) -> None:
        feedback = self.theta[index] @ action + self.scale[index] * draw
        gain = self.inverse[index] @ action
        growth = 1.0 + action @ gain
        self.precision[index] += np.outer(action, action)
        self.inverse[index] -= np.outer(gain, gain) / growth
        self.centre[index] += gain * ((feedback - action @ self.centre[index]) / growth)
        self.logdet[index] += np.log(growth)


class Pinv(Rival):
    """As it would first be written: the appendix line by line for every arm, its sign repaired."""

    def choose(self, arms: FloatArray, radii: FloatArray) -> int:
        """The arm of largest optimistic value, one after another."""
        return lowest_argmax(np.array([self._value(arm, radii) for arm in arms]))

    def _value(self, a: FloatArray, radii: FloatArray) -> float:
        target = self.centre[0] + radii[0] * a / np.sqrt(a @ self.precision[0] @ a)
        protected = []
        for i in range(1, len(self.centre)):
            norm = np.sqrt(a @ self.precision[i] @ a)
            reach = radii[i] * np.linalg.norm(a) ** 2 / norm
            alpha = np.clip((reach - a @ self.centre[i]) / (2 * reach), 0, 1)
            protected.append(self.centre[i] + (2 * alpha - 1) * radii[i] * a / norm)
        span = np.array(protected).T
        projector = np.eye(len(a)) - span @ np.linalg.pinv(span)
        return float(a @ projector @ target)


class Vectorised(Rival):
    """All arms at once: value = <a, theta_0> - p' G^-1 q with the s x s Gram matrix G of every arm."""

    def choose(self, arms: FloatArray, radii: FloatArray) -> int:
        """The arm of largest optimistic value; everything is worked out anew."""
        squared = np.einsum("kd,kd->k", arms, arms)
        linear = self.centre @ arms.T  # (n, K)
        square = np.einsum("nkd,kd->nk", arms @ self.precision, arms)  # |a|_V^2
        shift = radii[:, None] / np.sqrt(square)
        np.clip(-linear[1:] / squared, -shift[1:], shift[1:], out=shift[1:])
        moved = linear + shift * squared  # <a, theta_i>
        products = self.centre @ self.centre.T
        # <c_i + s_i a, c_j + s_j a> for every pair and arm; (n, n, K)
        gram = products[:, :, None] + shift[:, None] * moved[None] + linear[:, None] * shift[None]
        return lowest_argmax(moved[0] - self._along(gram, moved))

    @staticmethod
    def _along(gram: FloatArray, moved: FloatArray) -> FloatArray:
        """Work out p' G^-1 q for all arms, by elimination in the s x s system (s is 1 or 2)."""
        one, p, q = gram[1, 1], moved[1], gram[1, 0]
        weight = np.divide(1.0, one, out=np.zeros_like(one), where=one > 0)
        along = weight * p * q
        if len(moved) == 3:
            both, two = gram[1, 2], gram[2, 2]
            share = weight * both
            left = two - share * both
            weight = np.divide(1.0, left, out=np.zeros_like(left), where=left > 1e-12 * two)
            along += weight * (moved[2] - share * p) * (gram[2, 0] - share * q)
        return np.asarray(along)
