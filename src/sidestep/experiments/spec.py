"""An experiment is data: worlds, policies with their knobs, horizon, runs, seed, in a TOML file.

name = "mine"
horizon = 1000
runs = 10
tune_seeds = [1000, 1009]      # points of grids are chosen on these seeds, which are not shown

[[worlds]]
id = "small"                    # a world of the catalog, or "package.module:function"
world = "synthetic"
knobs = { dim = 3, n_protected = 2, subspace_dim = 1, noise_scale = 0.1 }

[[policies]]
id = "greedy"                   # a policy of the catalog, or "package.module:Class"
policy = "epsilon-greedy"
grid = { epsilon = [0.5, 1, 2] }   # one policy for every value; the report shows the chosen one

[[policies]]
id = "doubtful"
policy = "directed-thompson"
told = { resolution = 0.1, noise_scale = "unknown" }   # instead of the rank and of R
"""

import hashlib
import itertools
import json
import tomllib
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sidestep.errors import InputError, NotFoundError

Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._=,+-]*$", max_length=80)]
Count = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, strict=True)]
NOT_PLAYED = ("rounds", "code", "tuning")  # fields of a job that do not change its trace
REASONS = {"missing": "is required", "extra_forbidden": "is no key of a spec"}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WorldSpec(_Table):
    """One world, with settings that differ from those of the experiment."""

    id: Word
    world: str
    knobs: dict[str, Any] = {}
    title: str = ""
    note: str = ""
    horizon: Count | None = None
    runs: Count | None = None
    group: str = ""  # worlds of one group share a figure, and a policy may name them together
    judged: bool = True  # whether it counts where policies are compared over all worlds


class PolicySpec(_Table):
    """One policy with its knobs, on all worlds or on some, named by their ids or groups."""

    id: Word
    policy: str
    knobs: dict[str, Any] = {}
    grid: dict[str, list[Any]] = {}
    label: str = ""
    worlds: list[str] | None = None
    # what the policy knows, if it differs from the world; see sweep.overridden
    told: dict[str, Any] = {}

    def plays(self, world: WorldSpec) -> bool:
        """Whether the policy plays on that world."""
        return self.worlds is None or world.id in self.worlds or world.group in self.worlds

    def expanded(self) -> "list[PolicySpec]":
        """One policy for every point of the grid."""
        if not self.grid:
            return [self]
        points = itertools.product(*self.grid.values())
        return [self._at(dict(zip(self.grid, point, strict=True))) for point in points]

    def _at(self, point: dict[str, Any]) -> "PolicySpec":
        words = ",".join(f"{knob}={value:g}" for knob, value in point.items())
        change = {"id": f"{self.id}+{words}", "knobs": self.knobs | point, "grid": {}}
        label = f"{self.label or self.id} ({words})"
        return self.model_copy(update={**change, "label": label})


class Spec(_Table):
    """An experiment."""

    name: Word
    title: str = ""
    note: str = ""
    horizon: Count
    runs: Count = 10
    seed: Seed = 0
    tune_seeds: tuple[Seed, Seed] | None = None  # the first and the last that choose in a grid
    every: Count = 1  # record every n-th round, and the last
    reference: str = ""  # the policy that the others are compared with, run by run
    panel: bool = False  # whether the report compares all worlds in one table, relative to the best
    worlds: Annotated[list[WorldSpec], Field(min_length=1)]
    policies: Annotated[list[PolicySpec], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_fit(self) -> "Spec":
        worlds = [world.id for world in self.worlds]
        groups = {world.group for world in self.worlds if world.group}
        policies = [policy.id for policy in self.policies]
        wrong = [
            f"ids of {kind} must differ, got {name!r} {names.count(name)} times"
            for kind, names in (("worlds", worlds), ("policies", policies))
            for name in dict.fromkeys(names)
            if names.count(name) > 1
        ]
        wrong += [
            f"policies.{policy.id}.worlds must be ids or groups of worlds, got {name!r}"
            for policy in self.policies
            for name in policy.worlds or ()
            if name not in worlds and name not in groups
        ]
        if self.reference and self.reference not in policies:
            wrong.append(f"reference must be the id of a policy, got {self.reference!r}")
        wrong += self.wrong_tune_seeds()
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    @property
    def tuning(self) -> range:
        """The seeds on which points of grids are chosen; empty: on the runs that are shown."""
        first, last = self.tune_seeds or (0, -1)
        return range(first, last + 1)

    def seeds_of(self, world: WorldSpec) -> range:
        """The seeds of the runs on a world that are shown."""
        return range(self.seed, self.seed + (world.runs or self.runs))

    def wrong_tune_seeds(self) -> list[str]:
        """Why the tuning seeds cannot be used, in at most one sentence."""
        last = max(self.seeds_of(world)[-1] for world in self.worlds)
        if self.tune_seeds is None or (
            self.tuning and (self.tuning[0] > last or self.tuning[-1] < self.seed)
        ):
            return []
        return [
            "tune_seeds must be the first and the last of seeds that are not shown (shown are "
            f"{self.seed} to {last}), got {list(self.tune_seeds)}"
        ]


class Job(NamedTuple):
    """One run of one policy on one world, with all that is needed to repeat it."""

    experiment: str
    world_id: str
    policy_id: str
    run: int
    seed: int
    horizon: int
    every: int
    world: str
    world_knobs: dict[str, Any]
    policy: str
    policy_knobs: dict[str, Any]
    told: dict[str, Any]
    # of all runs on all worlds, of the longest entry with this policy: whether it is compiled
    rounds: int
    code: str = ""  # digest of the user's own files; see ownership.with_code
    tuning: bool = False  # whether the run only helps to choose a point of a grid

    @property
    def id(self) -> str:
        """Readable and unique within the experiment: synthetic/protected-linucb/7."""
        return f"{self.world_id}/{self.policy_id}/{'tuning-' * self.tuning}{self.run}"

    @property
    def fingerprint(self) -> str:
        """Equal for two jobs with the same trace: a hash of the setting and the user's own code."""
        return "-".join(filter(None, [self.setting, self.code]))

    @property
    def setting(self) -> str:
        """Equal for two jobs with the same settings in the spec."""
        told = {k: value for k, value in self._asdict().items() if k not in NOT_PLAYED}
        text = json.dumps(told, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def jobs_of(spec: Spec) -> list[Job]:
    """Every run of an experiment; runs with the same arms are next to each other.

    Points of grids also play the tuning seeds, where the spec has some.
    """
    rounds: Counter[str] = Counter()
    for entry in spec.policies:
        played = sum(
            (world.horizon or spec.horizon) * (world.runs or spec.runs)
            for world in spec.worlds
            if entry.plays(world)
        )
        rounds[entry.policy] = max(rounds[entry.policy], played)
    return [
        Job(
            spec.name, world.id, policy.id, run, seed, world.horizon or spec.horizon,
            spec.every, world.world, dict(world.knobs), policy.policy, dict(policy.knobs),
            dict(policy.told), rounds[policy.policy], tuning=tuning,
        )
        for world in spec.worlds
        for tuning, seeds in ((False, spec.seeds_of(world)), (True, spec.tuning))
        for run, seed in enumerate(seeds)
        for entry in spec.policies
        if entry.plays(world) and (not tuning or len(entry.expanded()) > 1)
        for policy in entry.expanded()
    ]  # fmt: skip


def read_spec(path: Path | str) -> Spec:
    """An experiment from its file; raises one sentence with file, key and what was expected."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFoundError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as text ({error})") from error
    return parse_spec(text, str(path))


def parse_spec(text: str, name: str) -> Spec:
    """An experiment from TOML text; `name` is its name in error messages."""
    try:
        return Spec.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}: must be TOML, {error}") from error
    except ValidationError as error:
        raise InputError(f"{name}: {'; '.join(map(_wrong, error.errors()))}") from error


def _wrong(found: Any) -> str:
    """One mistake of a spec: the key, what was expected, what was given."""
    reason = REASONS.get(found["type"], found["msg"])
    reason = reason.replace("Input should", "must").replace("String should", "must")
    if found["type"] == "value_error":  # one of ours, which names its key
        return str(found["ctx"]["error"])
    key = ".".join(str(part) for part in found["loc"])
    came = "nothing" if found["type"] == "missing" else repr(found["input"])
    return f"{key} {reason}, got {came}"


def shipped_specs() -> dict[str, str]:
    """Name and text of the experiments that come with the package."""
    folder = resources.files("sidestep.experiments") / "specs"
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    }
