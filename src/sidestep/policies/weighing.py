"""How InformationDirected settles a round, whatever the aim: regret weighed against information.

An aim says what every action is worth under every posterior draw, and how the contest of two actions
answers to every vector (information_directed.py, information_within.py). The rest is the same.
"""

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.forms import Menu
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
from sidestep.policies.dispatch import Choice

DRAWS = 16  # with 32 regret is the same, with 8 larger: benchmarks/information.py
CONTESTS = 4  # between draws that disagree


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
    """The arm and the vector to measure; slopes (C, L+1, width) of every contest; no value is told.

    rounds: within which a question must earn its price to be asked at once
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
    """A shortlist of actions of a solid, (K, d), as arms with as many coordinates as are learned."""
    K = actions.shape[0]
    columns, squared = np.empty((width, K)), np.zeros(K)
    for k in range(K):
        action = measured(actions[k], width, action_bound)
        for j in range(width):
            columns[j, k] = action[j]
            squared[k] += action[j] * action[j]
    return Menu(columns, squared)
