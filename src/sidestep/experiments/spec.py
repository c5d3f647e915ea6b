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

All unknown names and knobs of a spec are reported at once, before anything is built. A user's own policy
can be named in a spec but is not in the catalog: naming it imports its file, which a spec may do and a
request to a service may not.
"""

import hashlib
import inspect
import itertools
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sidestep.core.problem import Problem
from sidestep.core.validation import check_knobs, imported
from sidestep.environments.catalog import world_maker
from sidestep.environments.warfarin import describe
from sidestep.errors import InputError, NotFoundError, UnknownNameError
from sidestep.policies.base import check_can_play
from sidestep.policies.catalog import from_config, policy_maker

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
        raise InputError(f"{name}: {'; '.join(map(_in_words, error.errors()))}") from error


def _in_words(found: Any) -> str:
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
    wrong = list(_wrong_names(spec))
    if wrong:
        refusal = type(wrong[0][1]) if len(wrong) == 1 else UnknownNameError
        raise refusal(f"{where}: {'; '.join(f'{table}: {error}' for table, error in wrong)}")


def _wrong_names(spec: Spec) -> Iterator[tuple[str, InputError]]:
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
