"""Every policy by name, and how to build one from a name and a dict."""

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from sidestep.core.problem import Problem
from sidestep.core.validation import check_knobs, look_up
from sidestep.policies.directed_thompson import DirectedThompson
from sidestep.policies.epsilon_greedy import EpsilonGreedy
from sidestep.policies.explore_commit import ExploreThenCommit
from sidestep.policies.information_directed import InformationDirected
from sidestep.policies.oful import OFUL
from sidestep.policies.protected_linucb import ProtectedLinUCB
from sidestep.policies.protected_thompson import ProtectedThompson
from sidestep.policies.round_robin import RoundRobinLinUCB
from sidestep.policies.uniform import Uniform

POLICIES: dict[str, type] = {
    "protected-linucb": ProtectedLinUCB,
    "round-robin-linucb": RoundRobinLinUCB,
    "epsilon-greedy": EpsilonGreedy,
    "oful": OFUL,
    "protected-thompson": ProtectedThompson,
    "directed-thompson": DirectedThompson,
    "information-directed": InformationDirected,
    "explore-then-commit": ExploreThenCommit,
    "uniform": Uniform,
}

PRESETS = ("as_intended", "as_printed")
RENAMED = {("directed-thompson", "price"): "kappa"}  # old names of knobs


def from_config(name: str, problem: Problem, knobs: Mapping[str, Any] | None = None) -> Any:
    """The policy of that name with those knobs.

    name      a word of `POLICIES`: "directed-thompson"
    problem   the problem to play
    knobs     its knobs by name; `preset` picks a named constructor: {"preset": "as_intended"}

    >>> import sidestep as ss
    >>> problem = ss.Problem(dim=2, n_protected=1, subspace_dim=1)
    >>> ss.policies.from_config("epsilon-greedy", problem, {"epsilon": 2.0}).epsilon
    2.0
    """
    given = {_current(name, knob): value for knob, value in (knobs or {}).items()}
    maker = policy_maker(name, given)
    given.pop("preset", None)
    return maker(problem, **given)


def policy_maker(name: str, knobs: Mapping[str, Any]) -> Callable[..., Any]:
    """The class or constructor of the policy of that name, after checking the names of the knobs."""
    maker = policy = look_up("policy", name, POLICIES)
    given = {_current(name, knob): value for knob, value in knobs.items()}
    preset = given.pop("preset", None)
    if preset is not None:
        presets = {word: word for word in PRESETS if hasattr(policy, word)}
        maker = getattr(policy, look_up("preset", str(preset).replace("-", "_"), presets))
    check_knobs(name, maker, given, "problem")
    return maker


def _current(policy: str, knob: str) -> str:
    """The current name of a knob; an old name is accepted with a warning."""
    renamed = RENAMED.get((policy, knob))
    if renamed is None:
        return knob
    warnings.warn(
        f"knob {knob!r} of {policy} is now called {renamed!r}", FutureWarning, stacklevel=3
    )
    return renamed


def knobs_of(policy: type) -> dict[str, Any]:
    """Name and default of every knob."""
    return {
        knob.name: knob.default
        for knob in dataclasses.fields(policy)
        if knob.init and knob.name != "problem"
    }
