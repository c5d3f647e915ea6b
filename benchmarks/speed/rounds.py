"""Rounds over arms that are given: choose and absorb, by the kernels that `ask` and `tell` call.

`simulate` draws fresh arms within the round and keeps forms of fixed arms; here neither happens, so a
round is what a recomputing decision costs in compiled code. It is what rivals and peers are held to
on fresh arms, and what the latency of `ask` and `tell` is compared with.
"""

from typing import Any

import numpy as np

from sidestep.core.arm_forms import Menu, empty_forms
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.core.estimator import absorb_with
from sidestep.core.jit import kernel
from sidestep.core.linalg import copy_into
from sidestep.core.numba_backend import compiled
from sidestep.environments.instance import Instance, feedback_of
from sidestep.policies.builtin import BuiltinPolicy, Draws, Offer, choose


@kernel(refcounts=False)
def play_given(
    knobs: Any,
    learned: Any,
    truth: Any,
    columns: Any,
    squared: Any,
    forms: Any,
    workspace: Any,
    draws: Any,
    played: Any,
) -> None:
    """Rounds over arm sets (n, d, K), gone through again and again; arm and index of each."""
    evidence, rho, (action, gain, nothing) = learned.evidence, knobs.confidence.rho, workspace
    for t in range(played.shape[0]):
        given = t % columns.shape[0]
        menu = Menu(columns[given], squared[given])
        for i in range(forms.filled.size):
            forms.filled[i] = 0
        no_draws = Draws(nothing, nothing)
        choice = choose(knobs, learned, Offer(menu, forms, no_draws, action))
        arm, index = choice.arm, choice.vector
        copy_into(menu.columns[:, arm], action)
        feedback = feedback_of(truth, action, index, draws[t % draws.size])
        absorb_with(gain, evidence, rho, action, index, feedback)
        played[t, 0], played[t, 1] = arm, index


class Given:
    """A policy that takes no chance, over given arms."""

    def __init__(
        self, policy: BuiltinPolicy, instance: Instance, menus: FloatArray, draws: FloatArray
    ) -> None:
        self.policy, self.truth, self.draws = policy, instance.truth, draws
        self.columns = np.ascontiguousarray(np.transpose(menus, (0, 2, 1)))
        self.squared = np.einsum("njk,njk->nk", self.columns, self.columns)
        n = instance.problem.n_vectors
        self.forms = empty_forms(policy.knobs.metric, n, menus.shape[1])
        self.workspace = np.empty(menus.shape[2]), np.empty(menus.shape[2]), np.empty(0)

    def play(self, rounds: int) -> IntArray:
        """Arm and index of every round of a new run; (rounds, 2)."""
        state, played = self.policy.init(), np.empty((rounds, 2), np.int64)
        compiled(play_given)(
            *(self.policy.knobs, state.learned, self.truth),
            *(self.columns, self.squared, self.forms, self.workspace, self.draws, played),
        )
        return played
