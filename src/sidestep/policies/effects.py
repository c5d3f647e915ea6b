"""Effects of many actions on every outcome, with intervals: in closed form, without draws."""

from typing import NamedTuple

from sidestep.core.arrays import FloatArray
from sidestep.policies.belief import belief_of, halves, outcome_effects
from sidestep.policies.compiled_policy import CompiledPolicy
from sidestep.policies.state import State


class Effects(NamedTuple):
    """<a, theta_v> of every action and vector."""

    estimate: FloatArray  # (L+1, K)
    half: FloatArray  # (L+1, K): half the length of its interval


def effects_of(
    policy: CompiledPolicy, state: State, vectors: FloatArray, level: float = 0.95
) -> Effects:
    """Effects of the rows of `vectors` (K, d)."""
    belief = belief_of(policy, state)
    found = outcome_effects(belief, vectors)
    return Effects(found.estimate, halves(belief, found, vectors, level))
