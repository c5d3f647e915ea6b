"""What a policy is. Read this first.

A policy is frozen knobs and three pure functions:

    state = policy.init()
    decision = policy.ask(state, actions, rng, pending=())   # what to play, which vector to measure
    state = policy.tell(state, decision.query, x)     # a new state; the old one is left as it was

`ask` changes nothing but the random generator. Called twice with a generator in the same state, it gives
the same answer. Everything that was learned is in the state: sums and counters, which can be written to
JSON and read back.

The policies of this package write their arithmetic as kernels (see dispatch.py). What they have in common
apart from the kernels is `CompiledPolicy` (compiled_policy.py). Your own policy needs neither: `simulate`
plays any object with `problem`, `init`, `ask` and `tell`, step by step. These parts are optional:

    def ask(self, state, actions, rng, pending=()): ...   # queries that are not answered yet
    def ask(..., pending=(), restrictions=None): ...      # restrictions of this ask: restrictions.py
    plays = (Arms,)      # class attribute: the action sets it plays; without it, all

To store a state as text, and for `ss.testing.check_policy`, a policy also needs `state.to_json()` and
`policy.state_from_json(text)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Problem, Query
from sidestep.core.rank import Spectrum
from sidestep.core.showing import brief, notebook_table
from sidestep.policies.reasons import Expected
from sidestep.policies.state import State as State  # noqa: PLC0414  (people expect it here)

PLAY, EXPLORE, CORE_SET, LOCKED, CAUTIOUS, HELD = 0, 1, 2, 3, 4, 5
PHASES = ("play", "explore", "core-set", "locked-in", "cautious", "held", "confirm")


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What to do in a round, and why.

    query      the action to play and the index to measure
    phase      why: one of PHASES
    value      value of the action by which the policy chose it
    arm        row of the action among the arms; None on a solid and off the menu
    bound      certificate: upper bound on the optimistic value of any action of the ball
    spectrum   evidence about the rank, if the policy does not know it
    exact      whether the core set is proved to be the best; None without a core set
    rival      the competing action: row of an arm, or an action of a solid
    shares     share of the uncertainty that one result of each outcome would remove; (L+1,)
    price      expected loss against today's best action
    expected   predicted feedback: estimate, low, high
    within     probability of being within every tolerance; None without tolerances

    >>> import numpy as np, sidestep as ss
    >>> policy = ss.DirectedThompson(ss.Problem(2, 1, subspace_dim=1, noise_scale=0.1))
    >>> rng = np.random.default_rng(0)
    >>> policy.ask(policy.init(), ss.Arms([[1.0, 0.0], [0.0, 1.0]]), rng).phase
    'play'
    """

    query: Query
    phase: str  # one of PHASES
    value: float | None = None
    arm: int | None = None
    bound: float | None = None
    spectrum: Spectrum | None = None
    exact: bool | None = None
    rival: int | FloatArray | None = None
    shares: FloatArray | None = None
    price: float | None = None
    expected: Expected | None = None
    within: float | None = None

    def __repr__(self) -> str:
        arm = "" if self.arm is None else f", arm={self.arm}"
        value = "" if self.value is None else f", value={brief(self.value)}"
        return f"Decision({self.query!r}, {self.phase!r}{arm}{value})"

    def _repr_html_(self) -> str:
        rows = {"play": self.query.action, "measure": self._measured, "phase": self.phase}
        known = {
            "arm": self.arm,
            "hoped for": self.value,
            "price": self.price,
            "expected feedback": self.expected,
            "against": self.rival,
            "share of the doubt each outcome removes": self.shares,
        }
        known = {name: value for name, value in known.items() if value is not None}
        return notebook_table("Decision", rows | known)

    @property
    def _measured(self) -> str:
        index = self.query.index
        return f"outcome {index}" + (" (the target)" if index == 0 else "")

    @property
    def gap(self) -> float | None:
        """Relative distance from the value to its upper bound."""
        if self.bound is None or self.value is None:
            return None
        slack = self.bound - self.value
        return slack / max(abs(self.value), 1e-300) if slack > 0 else 0.0


StateT = TypeVar("StateT")


class Policy(Protocol[StateT]):
    """What `simulate` needs of a policy; a policy of yours need not inherit from it."""

    @property
    def problem(self) -> Problem:
        """What the policy knows about the problem."""

    def init(self) -> StateT:
        """State before the first round."""

    @property
    def ask(self) -> Callable[..., Decision]:
        """`ask(state, actions, rng)`; it may also take `pending` and `restrictions`, see above."""

    def tell(self, state: StateT, query: Query, feedback: float) -> StateT:
        """The state after one more measurement."""
