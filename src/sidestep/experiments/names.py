"""Checks of names and knobs in a spec: all mistakes are reported at once, before anything is built.

A user's own policy, "package.module:Class", can be named in a spec but is not in the catalog: naming it
imports its file, which a spec may do and a request to a service may not.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sidestep.core.problem import Problem
from sidestep.core.validation import check_knobs, imported
from sidestep.environments.catalog import world_maker
from sidestep.errors import InputError, UnknownNameError
from sidestep.experiments.spec import Spec
from sidestep.policies.base import check_can_play
from sidestep.policies.catalog import from_config, policy_maker


def build_policy(name: str, problem: Problem, knobs: Mapping[str, Any]) -> Any:
    """The policy that a spec names, from the catalog or the user's own."""
    if ":" not in name:
        return from_config(name, problem, knobs)
    maker = _own_maker(name, knobs)
    try:
        inspect.signature(maker).bind(problem, **knobs)
    except TypeError as error:
        raise InputError(f"knobs of {name} must fit it ({error}), got {dict(knobs)}") from error
    policy = maker(problem, **knobs)
    check_can_play(policy)
    return policy


def _own_maker(name: str, knobs: Mapping[str, Any]) -> Callable[..., Any]:
    """The user's own class, after checking that it has these knobs."""
    maker = imported("policy", name)
    if not callable(maker):
        raise InputError(f"policy {name!r} must be a class, got {type(maker).__name__}")
    check_knobs(name, maker, knobs, "problem")
    return maker


def _policy_maker(name: str, knobs: Mapping[str, Any]) -> Callable[..., Any]:
    return _own_maker(name, knobs) if ":" in name else policy_maker(name, knobs)


def check_names(spec: Spec, where: str) -> None:
    """Raise one sentence with every unknown world, policy and knob; `where` is the file's name."""
    wrong = list(_wrong(spec))
    if wrong:
        refusal = type(wrong[0][1]) if len(wrong) == 1 else UnknownNameError
        raise refusal(f"{where}: {'; '.join(f'{table}: {error}' for table, error in wrong)}")


def _wrong(spec: Spec) -> Iterator[tuple[str, InputError]]:
    """Every table of the spec with an unknown name, and the error."""
    tables: list[tuple[str, Callable[..., Any], str, dict[str, Any]]] = [
        *((f"worlds.{each.id}", world_maker, each.world, each.knobs) for each in spec.worlds),
        *(
            (f"policies.{each.id}", _policy_maker, each.policy, each.knobs | each.grid)
            for each in spec.policies
        ),
    ]
    for table, maker_of, name, knobs in tables:
        try:
            maker_of(name, knobs)
        except InputError as error:
            yield table, error
