"""The worlds: the only package with hidden vectors, noise and regret.

What a world is:

    instance         hidden vectors, actions, noise, regret
    action_sources   fixed arms, menus, or new arms every round
    genie            knows the vectors and plays the best action
    catalog          every world by name
    contract         small worlds on which a policy is checked

Worlds:

    synthetic        the paper's random worlds
    hard             worlds that are hard on purpose
    guardrails       worlds with a tolerance for every side effect
    held_out         worlds on which nothing was tuned
    warfarin         the paper's Warfarin experiment
    warfarin_table   reads the table of that experiment
    diabetes         real data that come with scikit-learn
"""

from sidestep.environments.action_sources import FreshArms, Menus
from sidestep.environments.catalog import WORLDS, from_config
from sidestep.environments.diabetes import diabetes
from sidestep.environments.genie import Genie
from sidestep.environments.guardrails import actg_like, dose_box, dose_grid, guarded_arms
from sidestep.environments.hard import (
    blind_spot,
    blind_spot_family,
    failure,
    lower_bound,
    spanning,
    unspanned,
)
from sidestep.environments.held_out import held_out
from sidestep.environments.instance import Instance
from sidestep.environments.synthetic import synthetic
from sidestep.environments.warfarin import warfarin, warfarin_lookalike

__all__ = [
    "WORLDS",
    "FreshArms",
    "Genie",
    "Instance",
    "Menus",
    "actg_like",
    "blind_spot",
    "blind_spot_family",
    "diabetes",
    "dose_box",
    "dose_grid",
    "failure",
    "from_config",
    "guarded_arms",
    "held_out",
    "lower_bound",
    "spanning",
    "synthetic",
    "unspanned",
    "warfarin",
    "warfarin_lookalike",
]
