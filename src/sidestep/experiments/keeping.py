"""How a run kept the tolerances of its world, judged by the hidden vectors."""

from typing import Any

import numpy as np

from sidestep.core.actions import SOLIDS, Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.validation import SLACK
from sidestep.environments.instance import Instance
from sidestep.experiments.record import Trace
from sidestep.policies.advice.recommend import recommend
from sidestep.policies.builtin import BuiltinPolicy


def kept(policy: Any, instance: Instance, trace: Trace) -> dict[str, Any]:
    """The facts about tolerances in one run; empty if the world has none.

    beyond    share of the recorded rounds that moved a protected outcome beyond its tolerance
    within    whether the action recommended after the last round is truly within all tolerances
    said      whether the recommendation said so; None for a policy that knows no tolerance
    worth     true value of the recommended action; `best` is the largest possible value
    """
    if instance.problem.limits is None:
        return {}
    found: dict[str, Any] = {"beyond": float((~within_all(instance, trace.action)).mean())}
    if isinstance(policy, BuiltinPolicy) and isinstance(instance.actions, (Arms, *SOLIDS)):
        advice = recommend(policy, trace.state, instance.actions)
        found["within"] = bool(within_all(instance, advice.action[None])[0])
        found["said"] = advice.assured
        found["worth"] = instance.reward(advice.action)
        found["best"] = instance.best_reward(instance.actions)
    return {"tolerances": found}


def within_all(instance: Instance, actions: FloatArray) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Whether every protected effect of each action (n, d) is truly within its tolerance; (n,)."""
    limits = instance.truth.limits
    effects = actions @ instance.truth.theta[1:].T
    slack = SLACK * instance.problem.norm_bound * instance.problem.action_bound  # rounding
    inside = (effects <= limits.high + slack) & (effects >= limits.low - slack)
    return np.asarray(inside.all(axis=1))
