"""Every world by name, and how to build one from a name and a dict."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sidestep.core.validation import check_knobs, imported, look_up
from sidestep.environments.diabetes import diabetes
from sidestep.environments.guardrails import actg_like, dose_box, dose_grid, guarded_arms
from sidestep.environments.hard import (
    blind_spot,
    blind_spot_family,
    failure,
    lower_bound,
    spanning,
    unspanned,
)
from sidestep.environments.held_out import held_out
from sidestep.environments.instance import Instance
from sidestep.environments.synthetic import synthetic
from sidestep.environments.warfarin import warfarin, warfarin_lookalike
from sidestep.errors import InputError, SidestepError

Maker = Callable[..., Instance]

WORLDS: dict[str, Maker] = {
    "synthetic": synthetic,
    "warfarin": warfarin,
    "warfarin-lookalike": warfarin_lookalike,
    "failure": failure,
    "lower-bound": lower_bound,
    "unspanned": unspanned,
    "spanning": spanning,
    "blind-spot": blind_spot,
    "blind-spot-family": blind_spot_family,
    "diabetes": diabetes,
    "held-out": held_out,
    "guarded-arms": guarded_arms,
    "dose-grid": dose_grid,
    "dose-box": dose_box,
    "actg-like": actg_like,
}

SEED = "seed"
NEEDED = "(needed)"  # stands for the default of a knob that has none


def from_config(
    name: str, knobs: Mapping[str, Any] | None = None, seed: int | None = None
) -> Instance:
    """The world of that name with those knobs; "package.module:function" is a world of your own.

    name    a word of `WORLDS`: "synthetic"
    knobs   its arguments by name
    seed    for worlds that take one, unless the knobs fix it: then every run has the same world

    >>> import sidestep as ss
    >>> ss.environments.from_config("failure", {"noise_scale": 0.5}).noise_scale
    0.5
    """
    given = dict(knobs or {})
    maker = world_maker(name, given)
    try:
        if seed is not None and SEED in knobs_of_world(maker):
            given.setdefault(SEED, seed)
        inspect.signature(maker).bind(**given)
        instance = maker(**given)
    except SidestepError:
        raise
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be built from {given}: {error}") from error
    if not isinstance(instance, Instance):
        raise InputError(f"{name} must return an Instance, got {type(instance).__name__}")
    return instance


def world_maker(name: str, knobs: Iterable[str] = ()) -> Maker:
    """The function that builds the world of that name, after checking the names of the knobs."""
    maker = _imported(name) if ":" in name else look_up("world", name, WORLDS)
    check_knobs(name, maker, knobs)
    return maker


def knobs_of_world(maker: Maker) -> dict[str, Any]:
    """Name and default of every knob."""
    return {
        knob.name: NEEDED if knob.default is knob.empty else knob.default
        for knob in inspect.signature(maker).parameters.values()
        if knob.kind in (knob.POSITIONAL_OR_KEYWORD, knob.KEYWORD_ONLY)
    }


def _imported(name: str) -> Maker:
    """A world of another package, given as "package.module:function"."""
    maker: Maker = imported("world", name)
    if not callable(maker):
        raise InputError(
            f"world {name!r} must be a function that returns an Instance, "
            f"got {type(maker).__name__}"
        )
    return maker
