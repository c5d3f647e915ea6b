"""Move one outcome and leave the others alone, measuring one outcome at a time.

The names below are the front door. They are loaded on first use, so `import sidestep` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from sidestep import environments, errors, policies, testing
    from sidestep.core import theory
    from sidestep.core.actions import Arms, Box, Ellipsoid, Simplex, UnitBall
    from sidestep.core.problem import TARGET, Problem, Query
    from sidestep.experiments.record import Trace
    from sidestep.experiments.results import load_results, load_summary
    from sidestep.experiments.simulate import simulate, simulate_many
    from sidestep.policies.advice.recommend import Recommendation, intervals, recommend
    from sidestep.policies.advice.rounds_left import RoundsLeft, rounds_left
    from sidestep.policies.base import Decision
    from sidestep.policies.batches import ask_batch, ask_panel, tell_all
    from sidestep.policies.directed_thompson import DirectedThompson
    from sidestep.policies.epsilon_greedy import EpsilonGreedy
    from sidestep.policies.explore_commit import ExploreThenCommit
    from sidestep.policies.information_directed import InformationDirected
    from sidestep.policies.oful import OFUL
    from sidestep.policies.protected_linucb import ProtectedLinUCB
    from sidestep.policies.protected_thompson import ProtectedThompson
    from sidestep.policies.restrictions import Restrictions
    from sidestep.policies.round_robin import RoundRobinLinUCB
    from sidestep.policies.uniform import Uniform
    from sidestep.service.client import Client
    from sidestep.studies.factors import Factor
    from sidestep.studies.outcomes import Outcome
    from sidestep.studies.study import Study
    from sidestep.studies.ticket import Ticket

__all__ = [
    "OFUL",
    "TARGET",
    "Arms",
    "Box",
    "Client",
    "Decision",
    "DirectedThompson",
    "Ellipsoid",
    "EpsilonGreedy",
    "ExploreThenCommit",
    "Factor",
    "InformationDirected",
    "Outcome",
    "Problem",
    "ProtectedLinUCB",
    "ProtectedThompson",
    "Query",
    "Recommendation",
    "Restrictions",
    "RoundRobinLinUCB",
    "RoundsLeft",
    "Simplex",
    "Study",
    "Ticket",
    "Trace",
    "Uniform",
    "UnitBall",
    "__version__",
    "ask_batch",
    "ask_panel",
    "environments",
    "errors",
    "intervals",
    "load_results",
    "load_summary",
    "policies",
    "recommend",
    "rounds_left",
    "simulate",
    "simulate_many",
    "tell_all",
    "testing",
    "theory",
]

_HOME = {
    "Arms": "core.actions",
    "UnitBall": "core.actions",
    "TARGET": "core.problem",
    "Problem": "core.problem",
    "Query": "core.problem",
    "Box": "core.actions",
    "Ellipsoid": "core.actions",
    "Simplex": "core.actions",
    "Trace": "experiments.record",
    "load_results": "experiments.results",
    "load_summary": "experiments.results",
    "simulate": "experiments.simulate",
    "simulate_many": "experiments.simulate",
    "Decision": "policies.base",
    "ask_batch": "policies.batches",
    "ask_panel": "policies.batches",
    "tell_all": "policies.batches",
    "EpsilonGreedy": "policies.epsilon_greedy",
    "ExploreThenCommit": "policies.explore_commit",
    "OFUL": "policies.oful",
    "ProtectedLinUCB": "policies.protected_linucb",
    "Recommendation": "policies.advice.recommend",
    "intervals": "policies.advice.recommend",
    "recommend": "policies.advice.recommend",
    "RoundsLeft": "policies.advice.rounds_left",
    "rounds_left": "policies.advice.rounds_left",
    "Restrictions": "policies.restrictions",
    "DirectedThompson": "policies.directed_thompson",
    "InformationDirected": "policies.information_directed",
    "ProtectedThompson": "policies.protected_thompson",
    "RoundRobinLinUCB": "policies.round_robin",
    "Uniform": "policies.uniform",
    "Client": "service.client",
    "Factor": "studies.factors",
    "Outcome": "studies.outcomes",
    "Study": "studies.study",
    "Ticket": "studies.ticket",
}
_ROOMS = {
    "environments": "environments",
    "errors": "errors",
    "policies": "policies",
    "testing": "testing",
    "theory": "core.theory",
}


if not TYPE_CHECKING:  # a type checker sees the names above and no others

    def __getattr__(name: str) -> Any:
        if name in _ROOMS:
            return import_module(f"sidestep.{_ROOMS[name]}")
        if name in _HOME:
            return getattr(import_module(f"sidestep.{_HOME[name]}"), name)
        raise AttributeError(f"module 'sidestep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
