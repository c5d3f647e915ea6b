"""Small worlds of every kind, on which the contract of a policy is checked (testing.py)."""

import numpy as np

from sidestep.core.actions import Arms, UnitBall
from sidestep.environments.action_sources import FreshArms, Menus
from sidestep.environments.instance import Instance
from sidestep.environments.synthetic import synthetic, unit_rows


def contract_worlds() -> dict[str, Instance]:
    """Small worlds of every kind of action source."""
    rng = np.random.default_rng(20201102)
    arms = unit_rows(rng.standard_normal((12, 3)))
    sizes = (3, 2, 1)
    return {
        "fixed arms": synthetic(*sizes, Arms(arms), noise_scale=0.1, seed=1),
        "fresh arms": synthetic(*sizes, 7, noise_scale=0.1, seed=2),
        "changing arms": synthetic(*sizes, Menus([arms[:5], arms[5:]]), noise_scale=0.1, seed=3),
        "ball": synthetic(*sizes, UnitBall(3), noise_scale=0.1, seed=4),
    }


def edge_worlds() -> dict[str, Instance]:
    """Worlds at the edges: no protection, full rank, one dimension, one arm, doubled arms."""
    rng = np.random.default_rng(7)
    arms = unit_rows(rng.standard_normal((5, 3)))
    flat = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])
    return {
        "L = 0": synthetic(3, 0, 0, Arms(arms), noise_scale=0.1),
        "L = 0 on the ball": synthetic(3, 0, 0, UnitBall(3), noise_scale=0.1),
        "s = L": synthetic(3, 2, 2, FreshArms(6, 3), noise_scale=0.1),
        "s = L on the ball": synthetic(3, 2, 2, UnitBall(3), noise_scale=0.1),
        "s = d": synthetic(2, 2, 2, FreshArms(4, 2), noise_scale=0.1),
        "d = 1": synthetic(1, 1, 1, Arms(np.array([[1.0], [-0.5]])), noise_scale=0.1),
        "d = 1 on the ball": synthetic(1, 0, 0, UnitBall(1), noise_scale=0.1),
        "one arm": synthetic(3, 2, 1, Arms(arms[:1]), noise_scale=0.1),
        "doubled arms": synthetic(3, 2, 1, Arms(np.repeat(arms, 3, axis=0)), noise_scale=0.1),
        "arms that do not span": synthetic(3, 2, 1, Arms(flat), noise_scale=0.1),
        "no noise": synthetic(3, 2, 1, Arms(arms), noise_scale=0.0),
        "s = 2 over fixed arms": synthetic(5, 3, 2, "fixed:15", noise_scale=0.01, seed=4),
        "s = 3 over fixed arms": synthetic(5, 4, 3, "fixed:15", noise_scale=0.01, seed=0),
        "nearly dependent vectors": nearly_dependent(),
    }


def nearly_dependent() -> Instance:
    """Three protected vectors of rank 2, two of them half a degree apart, over fixed arms."""
    rng = np.random.default_rng(11)
    first, second, target = rng.standard_normal((3, 4)) / 4
    theta = np.array([target, first, first + 0.01 * second, first - 0.7 * second])
    arms = unit_rows(rng.standard_normal((10, 4)))
    bound = float(np.linalg.norm(theta, axis=1).max())
    return Instance(theta, Arms(arms), noise_scale=0.001, norm_bound=bound, subspace_dim=2)
