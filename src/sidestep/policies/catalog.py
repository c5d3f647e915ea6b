"""Every policy by name, and how to build one from a name and a dict."""

import dataclasses
import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from sidestep.core.problem import Problem
from sidestep.errors import UnknownNameError
from sidestep.policies.epsilon_greedy import EpsilonGreedy
from sidestep.policies.explore_commit import ExploreThenCommit
from sidestep.policies.oful import OFUL
from sidestep.policies.protected_linucb import ProtectedLinUCB
from sidestep.policies.round_robin import RoundRobinLinUCB
from sidestep.policies.thompson import DirectedThompson, ProtectedThompson
from sidestep.policies.uniform import Uniform

POLICIES: dict[str, type] = {
    "protected-linucb": ProtectedLinUCB,
    "round-robin-linucb": RoundRobinLinUCB,
    "epsilon-greedy": EpsilonGreedy,
    "oful": OFUL,
    "protected-thompson": ProtectedThompson,
    "directed-thompson": DirectedThompson,
    "explore-then-commit": ExploreThenCommit,
    "uniform": Uniform,
}

PRESETS = ("as_intended", "as_printed")


def from_config(name: str, problem: Problem, knobs: Mapping[str, Any] | None = None) -> Any:
    """The policy of that name with those knobs.

    The knob `preset` picks a named constructor: {"preset": "as_intended", "rho": 1.0}.
    """
    policy = look_up("policy", name, POLICIES)
    given = dict(knobs or {})
    maker = policy
    preset = given.pop("preset", None)
    if preset is not None:
        presets = {word: word for word in PRESETS if hasattr(policy, word)}
        maker = getattr(policy, look_up("preset", str(preset).replace("-", "_"), presets))
    known = {knob: knob for knob in inspect.signature(maker).parameters if knob != "problem"}
    for knob in given:
        look_up(f"knob of {name}", knob, known)
    return maker(problem, **given)


def knobs_of(policy: type) -> dict[str, Any]:
    """Name and default of every knob."""
    return {
        knob.name: knob.default
        for knob in dataclasses.fields(policy)
        if knob.init and knob.name != "problem"
    }


def look_up(kind: str, name: str, table: Mapping[str, Any]) -> Any:
    """The entry of that name, or one sentence with the nearest name there is."""
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise UnknownNameError(f"{kind} must be one of {_words(table)}, got {name!r}{hint}")


def _words(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "(none)"
