# The names of the front door, and the only list of them: for type checkers, and for lazy_loader.

from . import (
    environments as environments,
)
from . import (
    errors as errors,
)
from . import (
    policies as policies,
)
from . import (
    testing as testing,
)
from .core import theory as theory
from .core.actions import (
    Arms as Arms,
)
from .core.actions import (
    Box as Box,
)
from .core.actions import (
    Ellipsoid as Ellipsoid,
)
from .core.actions import (
    Simplex as Simplex,
)
from .core.actions import (
    UnitBall as UnitBall,
)
from .core.problem import TARGET as TARGET
from .core.problem import Problem as Problem
from .core.problem import Query as Query
from .experiments.record import Trace as Trace
from .experiments.results import load_results as load_results
from .experiments.results import load_summary as load_summary
from .experiments.simulate import simulate as simulate
from .experiments.simulate import simulate_many as simulate_many
from .policies.advice.recommend import (
    Recommendation as Recommendation,
)
from .policies.advice.recommend import (
    intervals as intervals,
)
from .policies.advice.recommend import (
    recommend as recommend,
)
from .policies.advice.rounds_left import RoundsLeft as RoundsLeft
from .policies.advice.rounds_left import rounds_left as rounds_left
from .policies.base import Decision as Decision
from .policies.batches import ask_batch as ask_batch
from .policies.batches import ask_panel as ask_panel
from .policies.batches import tell_all as tell_all
from .policies.directed_thompson import DirectedThompson as DirectedThompson
from .policies.epsilon_greedy import EpsilonGreedy as EpsilonGreedy
from .policies.explore_commit import ExploreThenCommit as ExploreThenCommit
from .policies.information_directed import InformationDirected as InformationDirected
from .policies.oful import OFUL as OFUL
from .policies.protected_linucb import ProtectedLinUCB as ProtectedLinUCB
from .policies.protected_thompson import ProtectedThompson as ProtectedThompson
from .policies.restrictions import Restrictions as Restrictions
from .policies.round_robin import RoundRobinLinUCB as RoundRobinLinUCB
from .policies.uniform import Uniform as Uniform
from .service.client import Client as Client
from .studies.factors import Factor as Factor
from .studies.outcomes import Outcome as Outcome
from .studies.study import Study as Study
from .studies.ticket import Ticket as Ticket

__version__: str
