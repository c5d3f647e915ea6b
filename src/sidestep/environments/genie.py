"""The genie: it sees the truth and plays the best action. The yardstick at the top."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions, Arms
from sidestep.core.problem import TARGET, Problem, Query
from sidestep.core.solids import farthest
from sidestep.environments.instance import Instance
from sidestep.policies.base import Decision


@dataclass(frozen=True, slots=True)
class Genie:
    """Play the best action of every round. It learns nothing, so its state is None."""

    instance: Instance

    @property
    def problem(self) -> Problem:
        """What a player would be told."""
        return self.instance.problem

    def init(self) -> None:
        """Nothing to know."""

    def ask(
        self, state: None, actions: Actions, rng: Generator, pending: Sequence[Query] = ()
    ) -> Decision:
        """The action with the largest reward; of several, the lowest row."""
        best = self.instance.best_reward(actions)
        if not isinstance(actions, Arms):
            rest = self.instance.truth.theta_perp
            axis = np.eye(actions.dim)[0]
            action = farthest(actions.body, rest if rest.any() else axis)
            return Decision(Query(action, TARGET), "play", best)
        arm = int(np.argmax(actions.vectors @ self.instance.theta_perp >= best - 1e-10 * abs(best)))
        return Decision(Query(actions.vectors[arm], TARGET), "play", best, actions.row(arm))

    def tell(self, state: None, query: Query, feedback: float) -> None:
        """Nothing to learn."""

    def state_from_json(self, text: str) -> None:
        """Nothing to read."""
