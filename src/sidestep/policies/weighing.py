"""The choice of InformationDirected in a round, for both aims: regret weighed against information.

An aim gives the value of every action under every posterior draw, and the gradient of the difference of
two values in every vector (information_directed.py, information_within.py). The rest is common.
"""

import numpy as np

from sidestep.core.arm_forms import Menu
from sidestep.core.arrays import FloatArray
from sidestep.core.estimator import Evidence
from sidestep.core.information import (
    Standing,
    best_measurement,
    best_mixture,
    dearer,
    information,
    pays_back,
    picked,
)
from sidestep.core.kernels import kernel
from sidestep.core.levels import measured
from sidestep.core.posterior import Posterior
from sidestep.policies.base import EXPLORE, PLAY
from sidestep.policies.dispatch import Choice, rounds_left

DRAWS = 16  # with 32 regret is the same, with 8 larger: benchmarks/information.py
CONTESTS = 4  # largest number of contests between the winners of draws that disagree


@kernel
def rounds_to_pay(horizon: float, evidence: Evidence) -> float:
    """Number of rounds within which a measurement must pay for itself to be made at once.

    Where the horizon is known, the rounds that are left; else as many as are remembered.
    """
    left = rounds_left(horizon, evidence)
    return left if left > 0.0 else float(np.sum(evidence.weight))


@kernel(small=True)
def settle(
    costs: FloatArray,
    posterior: Posterior,
    stand: Standing,
    slopes: FloatArray,
    menu: Menu,
    rounds: float,
    coin: float,
) -> Choice:
    """The arm to play and the vector to measure; the value of the choice is NaN.

    slopes: gradient of every contest; (C, L+1, width)
    rounds: number of rounds within which a measurement must pay for itself to be made at once
    """
    told, vectors = best_measurement(information(posterior, slopes, menu), costs)
    mixture = best_mixture(stand.regret, told)
    arm, asked = picked(mixture, coin), dearer(stand.regret, mixture)
    least = stand.regret[stand.leader]
    if pays_back(least, stand.regret[asked] - least, told[asked] / slopes.shape[0], rounds):
        arm = asked
    phase = PLAY if _wins(stand, arm) else EXPLORE
    return Choice(arm, vectors[arm], phase, np.nan)


@kernel
def _wins(stand: Standing, arm: int) -> bool:
    """Whether the arm leads, or is the best of some draw."""
    wins = arm == stand.leader
    for n in range(stand.winners.size):
        wins = wins or stand.winners[n] == arm
    return wins


@kernel
def menu_of(actions: FloatArray, width: int, action_bound: float) -> Menu:
    """Candidate actions of a solid, (K, d), as arms, with the level's coordinate where it is learned."""
    K = actions.shape[0]
    columns, squared = np.empty((width, K)), np.zeros(K)
    for k in range(K):
        action = measured(actions[k], width, action_bound)
        for j in range(width):
            columns[j, k] = action[j]
            squared[k] += action[j] * action[j]
    return Menu(columns, squared)
