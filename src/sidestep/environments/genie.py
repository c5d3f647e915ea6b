"""The genie: it knows the hidden vectors and plays the best action. The upper baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions, Arms, farthest
from sidestep.core.arrays import FloatArray
from sidestep.core.linalg import lowest_argmax
from sidestep.core.objective import values_within
from sidestep.core.problem import TARGET, Problem, Query
from sidestep.core.tolerance_program import best_within
from sidestep.environments.instance import Instance
from sidestep.policies.base import Decision


@dataclass(frozen=True, slots=True)
class Genie:
    """Play the best action of every round. It learns nothing, so its state is None.

    instance   the world, hidden vectors and all

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> float(ss.simulate(ss.environments.Genie(world), world, horizon=5).regret.sum())
    0.0
    """

    instance: Instance

    @property
    def problem(self) -> Problem:
        """What a policy would know."""
        return self.instance.problem

    def init(self) -> None:
        """Nothing to know."""

    def ask(
        self, state: None, actions: Actions, rng: Generator, pending: Sequence[Query] = ()
    ) -> Decision:
        """The action with the largest reward; of several, the lowest row."""
        truth = self.instance.truth
        if isinstance(actions, Arms):
            worths = self._worths(actions)
            arm = lowest_argmax(worths)
            query = Query(actions.vectors[arm], TARGET)
            return Decision(query, "play", float(worths.max()), actions.row(arm))
        if truth.has_limits:
            action, best = best_within(actions.body, truth.limits, truth.theta)
        else:
            best, rest = self.instance.best_reward(actions), truth.theta_perp
            action = farthest(actions.body, rest if rest.any() else np.eye(actions.dim)[0])
        return Decision(Query(action, TARGET), "play", best)

    def _worths(self, arms: Arms) -> FloatArray:
        truth = self.instance.truth
        if truth.has_limits:
            return values_within(truth.limits, truth.theta, arms.columns, len(arms))
        return np.asarray(arms.vectors @ truth.theta_perp)

    def tell(self, state: None, query: Query, feedback: float) -> None:
        """Nothing to learn."""

    def state_from_json(self, text: str) -> None:
        """Nothing to read."""
