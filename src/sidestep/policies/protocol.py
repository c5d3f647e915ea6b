"""Checks that an object has the interface of a policy (base.py); for policies of other packages too."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from sidestep.core.actions import PLAYABLE
from sidestep.core.checks import shown
from sidestep.errors import InputError
from sidestep.policies.base import PHASES, Decision, Policy

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
