"""What a policy is. Read this first.

A policy is frozen knobs and three pure functions:

    state = policy.init()
    decision = policy.ask(state, actions, rng, pending=())   # what to play, which vector to measure
    state = policy.tell(state, decision.query, x)     # a new state; the old one is left as it was

`ask` changes nothing but the random generator. Called twice with a generator in the same state, it gives
the same answer. Everything that was learned is in the state: sums and counters, which can be written to
JSON and read back.

The policies of this package write their arithmetic as kernels. What they have in common apart from
the kernels, and how the kernels are found, is in builtin.py. Your own policy needs neither: `simulate`
plays any object with `problem`, `init`, `ask` and `tell`, step by step. These parts are optional:

    def ask(self, state, actions, rng, pending=()): ...   # queries that are not answered yet
    def ask(..., pending=(), restrictions=None): ...      # restrictions of this ask: restrictions.py
    plays = (Arms,)      # class attribute: the action sets it plays; without it, all

To store a state as text, and for `ss.testing.check_policy`, a policy also needs `state.to_json()` and
`policy.state_from_json(text)`.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

from sidestep.core.actions import PLAYABLE
from sidestep.core.arrays import FloatArray
from sidestep.core.display import brief, notebook_table
from sidestep.core.problem import Problem, Query
from sidestep.core.rank import Spectrum
from sidestep.core.validation import shown
from sidestep.errors import InputError
from sidestep.policies.state import State as State  # noqa: PLC0414  (people expect it here)

PLAY, EXPLORE, CORE_SET, LOCKED, CAUTIOUS, HELD = 0, 1, 2, 3, 4, 5
PHASES = ("play", "explore", "core-set", "locked-in", "cautious", "held", "confirm")


class Interval(NamedTuple):
    """An estimate, and an interval that contains the truth with the required probability.

    estimate    the estimated value
    low, high   the ends of the interval
    """

    estimate: float
    low: float
    high: float


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
    expected: Interval | None = None
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


NEEDED = ("problem", "init", "ask", "tell")


def check_can_play(policy: object) -> None:
    """Raise unless this object has the methods and attributes of a policy."""
    if isinstance(policy, type):
        name = policy.__name__
        raise InputError(
            f"policy must be an object such as {name}(instance.problem), got the class {name}"
        )
    missing = [part for part in NEEDED if not hasattr(policy, part)]
    if missing:
        raise InputError(
            f"policy must have {', '.join(NEEDED)}, got {type(policy).__name__} without {missing[0]}"
        )


def check_plays(policy: object, kind: type) -> None:
    """Raise unless the policy plays action sets of this kind: its `plays`, by default every kind."""
    plays = plays_of(policy)
    if not issubclass(kind, plays):
        words = " and ".join(played.__name__ for played in plays)
        raise InputError(
            f"actions must be what {type(policy).__name__} plays, {words}, got {kind.__name__}"
        )


def plays_of(policy: object) -> tuple[type, ...]:
    """The action sets that a policy or its class declares in `plays`."""
    plays = getattr(policy, "plays", PLAYABLE)
    if not isinstance(plays, tuple) or not all(isinstance(kind, type) for kind in plays):
        raise InputError(
            f"plays must be a tuple of action sets such as (Arms,), got {shown(plays)}"
        )
    return plays


def takes_pending(policy: Policy[Any]) -> bool:
    """Whether `ask` accepts `pending`."""
    return _takes(policy, "pending")


def takes_restrictions(policy: Policy[Any]) -> bool:
    """Whether `ask` accepts `restrictions`."""
    return _takes(policy, "restrictions")


def _takes(policy: Policy[Any], name: str) -> bool:
    method = getattr(policy.ask, "__func__", None)
    return _binds(policy.ask, 3, name) if method is None else _method_binds(method, 4, name)


def _binds(ask: Callable[..., Any], count: int, name: str) -> bool:
    """Whether `ask` can be called with `count` positional arguments and one keyword of this name."""
    try:
        inspect.signature(ask).bind(*[None] * count, **{name: None})
    except TypeError:
        return False
    return True


_method_binds = lru_cache(_binds)  # reading a signature takes a tenth of the time of an ask


def check_decision(decision: object) -> Decision:
    """The Decision that `ask` returned; raises one sentence if it is something else."""
    if not isinstance(decision, Decision):
        raise InputError(f"ask must return a Decision, got {shown(decision)}")
    if decision.phase not in PHASES:
        words = ", ".join(map(repr, PHASES))
        raise InputError(f"phase of a Decision must be one of {words}, got {decision.phase!r}")
    return decision
