"""Rounds over arms that are given: choose and absorb, by the kernels that `ask` and `tell` call.

`simulate` draws fresh arms within the round and keeps forms of fixed arms; here neither happens, so a
round is what a recomputing decision costs in compiled code. It is what rivals and peers are held to
on fresh arms, and what the latency of `ask` and `tell` is compared with.
"""

from typing import Any

import numpy as np

from sidestep.core.compiled import kernel
from sidestep.core.estimator import absorb
from sidestep.core.forms import Menu, arm_of, empty_forms
from sidestep.core.problem import FloatArray, IntArray
from sidestep.environments.instance import Instance, feedback_of
from sidestep.policies.base import CompiledPolicy
from sidestep.policies.dispatch import choose


@kernel
def play_given(
    knobs: Any,
    evidence: Any,
    core_set: Any,
    truth: Any,
    columns: Any,
    squared: Any,
    room: Any,
    draws: Any,
    played: Any,
) -> None:
    """Rounds over arm sets (n, d, K), gone through again and again; arm and index of each."""
    rho, luck = knobs.confidence.rho, (np.empty(0), np.empty(0))
    for t in range(played.shape[0]):
        given = t % columns.shape[0]
        menu = Menu(columns[given], squared[given])
        for i in range(room.filled.size):
            room.filled[i] = 0
        arm, index, _, _ = choose(knobs, evidence, core_set, menu, room, luck)
        action = arm_of(menu, arm)
        feedback = feedback_of(truth, action, index, draws[t % draws.size])
        absorb(evidence, rho, action, index, feedback)
        played[t, 0], played[t, 1] = arm, index


class Given:
    """A policy that takes no chance, over given arms."""

    def __init__(
        self, policy: CompiledPolicy, instance: Instance, menus: FloatArray, draws: FloatArray
    ) -> None:
        self.policy, self.truth, self.draws = policy, instance.truth, draws
        self.columns = np.ascontiguousarray(np.transpose(menus, (0, 2, 1)))
        self.squared = np.einsum("njk,njk->nk", self.columns, self.columns)
        n = instance.problem.n_vectors
        self.room = empty_forms(policy.knobs.metric, n, menus.shape[1])

    def play(self, rounds: int) -> IntArray:
        """Arm and index of every round of a new run; (rounds, 2)."""
        state, played = self.policy.init(), np.empty((rounds, 2), np.int64)
        play_given(
            *(self.policy.knobs, state.evidence, state.core_set, self.truth),
            *(self.columns, self.squared, self.room, self.draws, played),
        )
        return played
