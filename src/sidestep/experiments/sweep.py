"""Run an experiment: jobs to an executor, results to disk as they come."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from sidestep.core.problem import Problem
from sidestep.environments.catalog import from_config as world_from_config
from sidestep.environments.sources import compiled_source
from sidestep.errors import InputError, UnreachedDirectionsWarning
from sidestep.experiments.executors import Runner, Serial
from sidestep.experiments.ownership import claim
from sidestep.experiments.results import to_parquet, trace_path, write_whole
from sidestep.experiments.simulate import simulate
from sidestep.experiments.spec import Job, Spec, jobs_of
from sidestep.policies.base import CompiledPolicy
from sidestep.policies.catalog import from_config as policy_from_config
from sidestep.policies.catalog import look_up

SHORT = 2  # rounds of a run that only compiles


class Finished(NamedTuple):
    """A run that is done."""

    job: Job
    content: bytes
    regret: float
    seconds: float


class Progress(NamedTuple):
    """How far a sweep is."""

    done: int
    jobs: int
    rounds: int  # played in this sweep
    seconds: float
    last: str  # what was finished last


Watcher = Callable[[Progress], None]


def players_of(job: Job) -> tuple[Any, Any]:
    """The policy and the world of a job."""
    instance = world_from_config(job.world, job.world_knobs, job.seed)
    problem = retold(instance.problem, job.told)
    if ":" in job.policy:
        module, _, name = job.policy.partition(":")
        try:
            maker = getattr(import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise InputError(f"policy {job.policy!r} cannot be imported: {error}") from error
        return maker(problem, **job.policy_knobs), instance
    return policy_from_config(job.policy, problem, job.policy_knobs), instance


def retold(problem: Problem, told: Mapping[str, Any]) -> Problem:
    """The problem as a player is told it.

    An eigenvalue or a resolution stands for the rank, "unknown" for what is not told at all.
    """
    known = {name: name for name in ("eigenvalue", "resolution", "noise_scale", "costs")}
    change: dict[str, Any] = {
        look_up("told", name, known): None if value == "unknown" else value
        for name, value in told.items()
    }
    if {"eigenvalue", "resolution"} & set(change):
        change["subspace_dim"] = None
    return replace(problem, **change)


def run_job(job: Job) -> Finished:
    """Play one run; the same bytes of data wherever it is played."""
    with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
        policy, instance = players_of(job)  # check_jobs has said so already, once
        start = time.perf_counter()
        trace = simulate(policy, instance, job.horizon, job.seed, job.every)
    seconds = time.perf_counter() - start
    content = to_parquet(job, trace, seconds)
    return Finished(job, content, float(trace.cumulative_regret[-1]), seconds)


def check_jobs(spec: Spec, *, compile_first: bool) -> None:
    """Build every policy and world once before anything runs, so that a wrong knob shows at once.

    With `compile_first` each kind of policy plays two rounds on each kind of action source: processes
    that start later then find its code in the cache.
    """
    seen = set()
    for job in (job for job in jobs_of(spec) if job.run == 0):
        try:
            policy, instance = players_of(job)
        except InputError as error:
            raise type(error)(f"{spec.name}: {job.world_id}/{job.policy_id}: {error}") from error
        kind = (_shape(policy), compiled_source(instance.actions).kind)
        if compile_first and kind not in seen and isinstance(policy, CompiledPolicy):
            seen.add(kind)
            simulate(policy, instance, SHORT, job.seed)


def _shape(policy: Any) -> str:
    """What numba compiles anew for: the types of the knobs."""
    from numba import typeof  # noqa: PLC0415  (heavy, and only needed here)

    return str(typeof(policy.knobs)) if isinstance(policy, CompiledPolicy) else repr(type(policy))


def sweep(
    spec: Spec,
    folder: Path,
    runner: Runner | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    watch: Watcher | None = None,
) -> int:
    """Run what is not done yet, and keep every result as it comes; returns the number of runs played.

    What `resume` keeps and `overwrite` removes: see `claim`.
    """
    todo = claim(folder, spec, resume=resume, overwrite=overwrite)
    jobs = len(jobs_of(spec))
    start, rounds, done = time.perf_counter(), 0, jobs - len(todo)
    for finished in (runner or Serial()).run(run_job, todo):
        write_whole(trace_path(folder, finished.job), finished.content)
        done += 1
        rounds += finished.job.horizon
        if watch:
            seconds = time.perf_counter() - start
            watch(Progress(done, jobs, rounds, seconds, finished.job.id))
    return len(todo)
