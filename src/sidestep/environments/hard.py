"""Worlds that are hard on purpose: optimism locks in, arms do not span, good arms are uninformative."""

import math

import numpy as np

from sidestep.core.actions import Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.linalg import orthonormal, project_off
from sidestep.core.lower_bounds import check_spanning, spanning_angle
from sidestep.core.validation import check_integer, check_positive
from sidestep.environments.action_sources import Menus
from sidestep.environments.instance import Instance
from sidestep.environments.synthetic import unit_rows
from sidestep.errors import InputError

WIDEST = math.pi / 5  # beyond this angle sin(3 alpha) falls below sin(2 alpha)
# smallest and largest difference of the rewards of the two good arms of a blind spot
CONTEST = (0.05, 0.4)
BAD = 0.2  # smallest distance of its third arm's reward from the best


def failure(noise_scale: float = 0.1) -> Instance:
    """The paper's failure of optimism: two arms, of which the worse says nothing about the better.

    d = 2, L = 1, theta_0 = u(pi/4), theta_1 = u(0), arms u(pi/4) and u(pi/2), rewards 1/2 and
    sqrt(1/2). Playing the first arm never measures theta_1 along u(-pi/4), the direction that an
    optimistic policy needs. In the example theta_0 is known; here it is learned as well, without earlier
    data. Whether a run locks in depends on noise and regularisation: at R = 0.001 it does not
    (docs/deviations.md, D).

    noise_scale   R

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> [round(world.reward(arm), 3) for arm in world.actions.vectors]
    [0.5, 0.707]
    """
    theta = _unit(math.pi / 4, 0.0)
    return Instance(theta, Arms(_unit(math.pi / 4, math.pi / 2)), noise_scale=noise_scale)


def lower_bound(
    horizon: int,
    which: int,
    noise_scale: float = 1.0,
    alpha: float | None = None,
    *,
    corrected: bool = False,
) -> Instance:
    """One of the pair behind the T^(3/4) lower bound (Theorem "hardness").

    d = 2, s = L = 1, theta_0 = u(pi/2 - alpha); theta_1 = u(0) in instance 1 and u(-alpha) in
    instance 2. A round offers u(pi - alpha) and u(2 alpha), and with even odds also u(pi - 3 alpha),
    which is best in instance 1 and not in instance 2.

    alpha is T^(-1/4) as printed. The paper's constants are for R = 1; with `corrected` alpha is
    sqrt(R) T^(-1/4), with which the two instances are equally hard to distinguish at any noise
    (docs/deviations.md, C4). The paper's constants need alpha <= 1/4; the order of the arms needs only
    alpha < pi/5.

    horizon       T, which alpha depends on
    which         1 or 2
    noise_scale   R
    alpha         the angle, if it should not depend on T
    corrected     whether alpha depends on R

    >>> import sidestep as ss
    >>> ss.environments.lower_bound(10_000, which=1).problem.n_protected
    1
    """
    check_integer("horizon", horizon, low=1)
    check_integer("which", which, low=1, high=2)
    if alpha is None:
        check_positive("noise_scale", noise_scale)
        alpha = (math.sqrt(noise_scale) if corrected else 1.0) * horizon**-0.25
    check_positive("alpha", alpha)
    if alpha >= WIDEST:
        raise InputError(
            f"alpha must lie below pi/5 = {WIDEST:.4f}, where u(pi - 3 alpha) stops being the best "
            f"arm, got {alpha:.4f} (a longer horizon makes it smaller)"
        )
    theta = _unit(math.pi / 2 - alpha, 0.0 if which == 1 else -alpha)
    arms = _unit(math.pi - alpha, 2 * alpha, math.pi - 3 * alpha)
    return Instance(theta, Menus([arms[:2], arms]), noise_scale=noise_scale)


def unspanned(which: int, noise_scale: float = 0.1) -> Instance:
    """One of a pair of problems with two fixed arms that no feedback distinguishes.

    d = 2, L = s = 1, arms e_1 and -e_1, theta_0 = e_2, theta_1 = (1, 1) / sqrt 2 in problem 1 and
    (1, -1) / sqrt 2 in problem 2. The arms show only the first coordinates of the vectors, which agree;
    the reward of e_1 is -1/2 in one and 1/2 in the other. So the regrets of any policy on the two add up
    to T (docs/theory.md, Theorem 9; `theory.unspanned_bound`).

    which         1 or 2
    noise_scale   R

    >>> import sidestep as ss
    >>> [round(ss.environments.unspanned(k).reward([1.0, 0.0]), 2) for k in (1, 2)]
    [-0.5, 0.5]
    """
    check_integer("which", which, low=1, high=2)
    protected = np.array([1.0, 1.0 if which == 1 else -1.0]) / math.sqrt(2)
    theta = np.array([[0.0, 1.0], protected])
    return Instance(theta, Arms(np.array([[1.0, 0.0], [-1.0, 0.0]])), noise_scale=noise_scale)


def spanning(
    horizon: int,
    which: int,
    kappa: float = 0.1,
    noise_scale: float = 0.1,
    strength: float = 0.9,
) -> Instance:
    """One of the pair behind the T^(2/3) lower bound: fixed arms that span, of which one informs.

    d = 3, L = s = 1, theta_0 = (0, 1, 1) / sqrt 2, theta_1 = sigma (cos eps, +-sin eps, 0), arms e_1,
    -e_1, (0, sqrt kappa, -sqrt(1 - kappa)) and -e_3. Only the third arm shows the sign, on which depends
    which of the first two is best, and every play of it costs at least c > 0. eps depends on T
    (docs/theory.md, Theorem 10; `theory.spanning_bound`).

    horizon       T, which eps depends on
    which         1 or 2: the sign
    kappa         how well the third arm informs, at most 1/6
    noise_scale   R
    strength      sigma, length of the protected vector, at most 1

    >>> import sidestep as ss
    >>> world = ss.environments.spanning(1000, which=1)
    >>> [round(world.reward(arm), 2) for arm in world.actions.vectors]
    [-0.04, 0.04, -0.45, -0.71]
    """
    check_integer("horizon", horizon, low=1)
    check_integer("which", which, low=1, high=2)
    check_spanning(kappa, noise_scale, strength, 1.0)
    angle = spanning_angle(horizon, kappa, noise_scale, strength)
    sign = 1.0 if which == 1 else -1.0
    target = np.array([0.0, 1.0, 1.0]) / math.sqrt(2)
    protected = strength * np.array([math.cos(angle), sign * math.sin(angle), 0.0])
    informative = [0.0, math.sqrt(kappa), -math.sqrt(1 - kappa)]
    arms = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], informative, [0.0, 0.0, -1.0]])
    return Instance(np.array([target, protected]), Arms(arms), noise_scale=noise_scale)


def blind_spot(noise_scale: float = 0.1) -> Instance:
    """Two good arms that cannot show what separates them, and a bad one that can.

    d = 3, L = 1, unit vectors given to three digits; rewards -0.019, 0.181, -0.334. Optimism with
    exact ellipsoids and plain Thompson sampling have linear regret on it: only measuring along the
    costly third arm separates the first two.

    noise_scale   R

    >>> import sidestep as ss
    >>> world = ss.environments.blind_spot()
    >>> [round(world.reward(arm), 2) for arm in world.actions.vectors]
    [-0.02, 0.18, -0.33]
    """
    theta = unit_rows(np.array([[0.248, -0.638, -0.729], [-0.787, 0.364, 0.499]]))
    return Instance(theta, Arms(_blind_arms(5.501, 2.684)), noise_scale=noise_scale)


def blind_spot_family(seed: int = 0, noise_scale: float = 0.1) -> Instance:
    """One of a random family of blind spots, by its seed; d = 3, L = 1.

    theta_0 and theta_1 are uniform on the sphere, the good arms u(phi), u(psi) uniform on the
    circle in the plane of e_1 and e_2; the bad arm is e_3. Draws are repeated until `is_blind_spot`:
    about one in thirty is accepted. `blind_spot` satisfies the condition too.

    seed          which of them
    noise_scale   R

    >>> import sidestep as ss
    >>> len(ss.environments.blind_spot_family(seed=3).actions)
    3
    """
    check_integer("seed", seed, low=0)
    rng = np.random.default_rng(seed)
    while True:
        theta = unit_rows(rng.standard_normal((2, 3)))
        arms = _blind_arms(*rng.uniform(0.0, 2 * math.pi, 2))
        if is_blind_spot(theta, arms):
            return Instance(theta, Arms(arms), noise_scale=noise_scale)


def is_blind_spot(theta: FloatArray, arms: FloatArray) -> bool:
    """Whether the good arms cannot show their own order, and the bad arm is never worth playing.

    The good arms never measure theta_1 along e_3. Compare the true rewards with the apparent ones, which
    take that component as zero:

    the true rewards of the good arms differ by 0.05 to 0.4, and the apparent ones have the other order;
    the bad arm has the lowest true reward, and is 0.2 below the best in true and apparent reward.
    """
    flat = theta.copy()
    flat[1, 2] = 0.0
    truth, looks = (arms @ project_off(orthonormal(v[1:]), v[0]) for v in (theta, flat))
    gap = truth[0] - truth[1]
    contested = CONTEST[0] <= abs(gap) <= CONTEST[1] and gap * (looks[0] - looks[1]) < 0
    bad = truth[2] <= truth.min() and all(r[2] <= r.max() - BAD for r in (truth, looks))
    return bool(contested and bad)


def _blind_arms(phi: float, psi: float) -> FloatArray:
    """Two arms in the plane of e_1 and e_2, and e_3; (3, 3)."""
    arms = np.zeros((3, 3))
    arms[:2, :2] = _unit(phi, psi)
    arms[2, 2] = 1.0
    return arms


def _unit(*angles: float) -> FloatArray:
    """u(angle) = (cos, sin), one per row."""
    return np.column_stack([np.cos(angles), np.sin(angles)])
