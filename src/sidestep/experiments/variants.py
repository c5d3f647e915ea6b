"""Variants of an experiment: another number of runs, a shorter horizon, the user's own table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidestep.environments.warfarin import describe
from sidestep.errors import InputError
from sidestep.experiments.spec import PolicySpec, Spec, WorldSpec

KEPT = 20  # smallest number of recorded rounds of a shortened run
HORIZON = "horizon"  # the knob of a world whose vectors depend on the number of rounds
PATIENTS = "warfarin"  # the world that is made from a table


def shortened(spec: Spec, settings: Mapping[str, Any]) -> Spec:
    """The experiment with other runs, seed or horizon, on every world.

    A world with its own horizon is shortened to the given one. Where the horizon is a knob, as in
    the lower-bound pair, it cannot be shortened: such worlds are removed, unless they are the shortest
    ones. A shorter run records a larger share of its rounds, so that halves and exponents can still be
    computed. The tuning seeds keep their distance from the shown ones, and are not more than these.
    """
    change = {key: value for key, value in settings.items() if value is not None}
    most = change.get("horizon")
    worlds = spec.worlds
    if "runs" in change:
        worlds = [world.model_copy(update={"runs": None}) for world in worlds]
    if most is not None:
        change["every"] = min(spec.every, max(most // KEPT, 1))
        least = min(world.horizon or 0 for world in worlds)
        worlds = [
            _cut(world, most)
            for world in worlds
            if HORIZON not in world.knobs or (world.horizon or 0) <= max(most, least)
        ]
    kept = {name for world in worlds for name in (world.id, world.group)}
    policies = [_among(entry, kept) for entry in spec.policies]
    change["tune_seeds"] = _tune_seeds(spec, change)
    short = spec.model_copy(update=change | {"worlds": worlds, "policies": policies})
    if wrong := short.wrong_tune_seeds():
        raise InputError(f"{spec.name}: {wrong[0]}")
    return short


def _tune_seeds(spec: Spec, change: Mapping[str, Any]) -> tuple[int, int] | None:
    """The tuning seeds beside other runs or another first seed."""
    if not spec.tuning:
        return None
    count = min(len(spec.tuning), change.get("runs", len(spec.tuning)))
    first = spec.tuning[0] + change.get("seed", spec.seed) - spec.seed
    return first, first + count - 1


def _cut(world: WorldSpec, most: int) -> WorldSpec:
    """The world with at most `most` rounds, if it can be shortened."""
    if world.horizon is None or HORIZON in world.knobs:
        return world
    return world.model_copy(update={"horizon": min(world.horizon, most)})


def _among(entry: PolicySpec, kept: set[str]) -> PolicySpec:
    """The policy on those of its worlds that are kept."""
    if entry.worlds is None:
        return entry
    return entry.model_copy(update={"worlds": [name for name in entry.worlds if name in kept]})


def with_table(spec: Spec, data: Path | None) -> Spec:
    """An experiment with its Warfarin worlds from the user's table; None: from the look-alike."""
    if data is None:
        return spec
    path = {"path": str(data.resolve())}
    worlds = [
        world.model_copy(update={"knobs": world.knobs | path}) if world.world == PATIENTS else world
        for world in spec.worlds
    ]
    return spec.model_copy(update={"worlds": worlds})


def has_patients(spec: Spec) -> bool:
    """Whether the experiment has Warfarin worlds, which can use the user's table."""
    return any(world.world == PATIENTS for world in spec.worlds)


def patients_of(spec: Spec) -> list[str]:
    """A text for each kind of patients from which the Warfarin worlds of an experiment are built."""
    found = [world.knobs for world in spec.worlds if world.world == PATIENTS]
    texts = [describe(knobs.get("path"), knobs["preset"], knobs["scale"]) for knobs in found]
    return list(dict.fromkeys(description.summary() for description in texts))
