"""What many actions do to every outcome at once, with intervals: closed form, no draws."""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from sidestep.core.arrays import FloatArray
from sidestep.policies.base import CompiledPolicy
from sidestep.policies.recommend import WIDER, _belief
from sidestep.policies.state import State


class Effects(NamedTuple):
    """<a, theta_v> of every action and vector."""

    estimate: FloatArray  # (L+1, K)
    half: FloatArray  # (L+1, K): half the length of its interval


def effects_of(
    policy: CompiledPolicy, state: State, vectors: FloatArray, level: float = 0.95
) -> Effects:
    """Effects of the rows of `vectors` (K, d)."""
    posterior, freedom = _belief(policy, state)
    quantile = WIDER * float(stdtrit(freedom, 0.5 + level / 2))
    forms = np.einsum("kj,vji,ki->vk", vectors, posterior.inverse, vectors)
    spread = posterior.noise[:, None] * np.sqrt(np.maximum(forms, 0.0))
    return Effects(posterior.mean @ vectors.T, quantile * spread)
