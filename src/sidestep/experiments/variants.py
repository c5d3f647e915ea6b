"""An experiment otherwise than its file says: other runs, a shorter horizon, a table of one's own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sidestep.environments.warfarin import describe
from sidestep.experiments.spec import PolicySpec, Spec, WorldSpec

KEPT = 20  # rounds of a run that was cut short, at least
HORIZON = "horizon"  # the knob of a world whose vectors depend on the number of rounds
PATIENTS = "warfarin"  # the world that is made from a table


def shortened(spec: Spec, settings: Mapping[str, Any]) -> Spec:
    """The experiment with other runs, seed or horizon, which hold on every world.

    A world with a horizon of its own is cut to the one asked for. Where the horizon is a knob, as in
    the lower-bound pair, it cannot be cut: such worlds go, unless they are the shortest there are.
    A shorter run keeps its rounds more closely, so that halves and exponents can still be read off.
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
    return spec.model_copy(update=change | {"worlds": worlds, "policies": policies})


def _cut(world: WorldSpec, most: int) -> WorldSpec:
    """The world with at most so many rounds, where it can be cut."""
    if world.horizon is None or HORIZON in world.knobs:
        return world
    return world.model_copy(update={"horizon": min(world.horizon, most)})


def _among(entry: PolicySpec, kept: set[str]) -> PolicySpec:
    """The policy on those of its worlds that are kept."""
    if entry.worlds is None:
        return entry
    return entry.model_copy(update={"worlds": [name for name in entry.worlds if name in kept]})


def with_table(spec: Spec, data: Path | None) -> Spec:
    """An experiment with its Warfarin worlds on the user's table, or on the look-alike without one."""
    if data is None:
        return spec
    path = {"path": str(data.resolve())}
    worlds = [
        world.model_copy(update={"knobs": world.knobs | path}) if world.world == PATIENTS else world
        for world in spec.worlds
    ]
    return spec.model_copy(update={"worlds": worlds})


def has_patients(spec: Spec) -> bool:
    """Whether a table of the user's would change anything."""
    return any(world.world == PATIENTS for world in spec.worlds)


def patients_of(spec: Spec) -> list[str]:
    """Which patients the Warfarin worlds of an experiment are made of, a text for each kind."""
    found = [world.knobs for world in spec.worlds if world.world == PATIENTS]
    texts = [describe(knobs.get("path"), knobs["preset"], knobs["scale"]) for knobs in found]
    return list(dict.fromkeys(description.summary() for description in texts))
