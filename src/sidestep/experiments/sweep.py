"""Run an experiment: give jobs to an executor, save results as they come."""

import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sidestep.core.actions import SOLIDS, Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Problem
from sidestep.core.validation import SLACK, look_up
from sidestep.environments.catalog import from_config as world_from_config
from sidestep.environments.instance import Instance
from sidestep.errors import InputError, SidestepError, UnreachedDirectionsWarning
from sidestep.experiments.executors import Runner, Serial
from sidestep.experiments.record import Trace
from sidestep.experiments.results import notes_of, to_parquet, trace_path, write_whole
from sidestep.experiments.results_folder import claim
from sidestep.experiments.simulate import should_compile, simulate
from sidestep.experiments.spec import Job, Spec, build_policy, jobs_of
from sidestep.experiments.when_to_compile import shape_of
from sidestep.policies.advice.recommend import recommend
from sidestep.policies.builtin import BuiltinPolicy

SHORT = 2  # rounds of a run that is played only to compile


class Finished(NamedTuple):
    """A run that is done."""

    job: Job
    content: bytes
    regret: float
    seconds: float


class Failed(NamedTuple):
    """A run that failed, and the reason in one sentence."""

    job: Job
    reason: str


class Swept(NamedTuple):
    """The outcome of a sweep."""

    played: int  # runs, including those that failed
    failed: list[Failed]


class Progress(NamedTuple):
    """How far a sweep is."""

    done: int
    jobs: int
    rounds: int  # played in this sweep
    seconds: float
    last: str  # what was finished last


OnProgress = Callable[[Progress], None]


def policy_and_world(job: Job) -> tuple[Any, Any]:
    """The policy and the world of a job."""
    instance = world_from_config(job.world, job.world_knobs, job.seed)
    problem = overridden(instance.problem, job.told)
    return build_policy(job.policy, problem, job.policy_knobs), instance


def overridden(problem: Problem, overrides: Mapping[str, Any]) -> Problem:
    """The problem with the changes that a spec makes to it.

    An eigenvalue or a resolution replaces the rank; "unknown" hides a value. A policy without the
    tolerance has the paper's aim, but its regret is measured by the aim of the world.
    """
    known = {n: n for n in ("eigenvalue", "resolution", "noise_scale", "costs", "tolerance")}
    change: dict[str, Any] = {
        look_up("told", name, known): None if value == "unknown" else value
        for name, value in overrides.items()
    }
    if {"eigenvalue", "resolution"} & set(change):
        change["subspace_dim"] = None
    if "tolerance" in change and change["tolerance"] is None:
        change["penalty"] = None
    return replace(problem, **change)


def run_job(job: Job) -> Finished | Failed:
    """Play one run; the data are the same wherever it is played."""
    try:
        with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
            policy, instance = policy_and_world(
                job
            )  # warnings are silenced: check_jobs has shown them
            start = time.perf_counter()
            fast = should_compile(policy, instance, job.rounds)
            trace = simulate(policy, instance, job.horizon, job.seed, job.every, compiled=fast)
        seconds = time.perf_counter() - start
        notes = notes_of(policy) | kept(policy, instance, trace)
        content = to_parquet(job, trace, notes, seconds)
    except Exception as error:  # a user's policy may raise anything; the other runs continue
        where = (
            f"world {job.world_id}, policy {job.policy_id}, {'tuning ' * job.tuning}run {job.run}"
        )
        return Failed(job, f"{job.experiment}: {where}: {_in_words(error)}")
    return Finished(job, content, float(trace.cumulative_regret[-1]), seconds)


def _in_words(error: Exception) -> str:
    """An error in one line; a foreign error with its type and the line that raised it."""
    words = " ".join(str(error).split())
    if isinstance(error, SidestepError):
        return words
    last = traceback.extract_tb(error.__traceback__)[-1]
    what = ": ".join(filter(None, [type(error).__name__, words]))
    return f"{what} ({Path(last.filename).name}, line {last.lineno}, in {last.name})"


Loop = tuple[str, bool]  # identifies one compiled loop: types of the knobs; whether on a solid


def check_jobs(spec: Spec) -> dict[Loop, Job]:
    """Build every policy and world once before anything runs, to report all wrong knobs at once.

    Returns one job for every loop that is worth compiling before the sweep, because it plays many rounds.
    """
    loops: dict[Loop, Job] = {}
    wrong: dict[str, list[str]] = {}
    kinds = set()
    for job in jobs_of(spec):
        if job.run or job.tuning:
            continue
        try:
            policy, instance = policy_and_world(job)
            if should_compile(policy, instance, job.rounds):
                loop = shape_of(policy.knobs), isinstance(instance.actions, SOLIDS)
                loops.setdefault(loop, job)
        except Exception as error:
            wrong.setdefault(_in_words(error), []).append(f"{job.world_id}/{job.policy_id}")
            kinds.add(type(error) if isinstance(error, InputError) else InputError)
    if wrong:
        words = [f"{_first_of(names)}: {reason}" for reason, names in wrong.items()]
        refusal = kinds.pop() if len(kinds) == 1 else InputError
        raise refusal(f"{spec.name}: {'; '.join(words)}")
    return loops


def compile_loop(job: Job) -> str:
    """Compile the loop of a job by playing two rounds; processes that start later find it cached."""
    with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
        policy, instance = policy_and_world(job)
        simulate(policy, instance, SHORT, job.seed, compiled=True)
    return job.policy


def _first_of(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{names[0]}{more}"


def sweep(
    spec: Spec,
    folder: Path,
    runner: Runner | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> Swept:
    """Run what is not done yet, and save every result as it comes; a failed run does not stop the others.

    For `resume` and `overwrite` see `claim`.
    """
    todo = claim(folder, spec, resume=resume, overwrite=overwrite)
    jobs = len(jobs_of(spec))
    start, rounds, done = time.perf_counter(), 0, jobs - len(todo)
    failed = []
    for outcome in (runner or Serial()).run(run_job, todo):
        done += 1
        rounds += outcome.job.horizon
        if isinstance(outcome, Failed):
            failed.append(outcome)
        else:
            write_whole(trace_path(folder, outcome.job), outcome.content)
        if on_progress:
            seconds = time.perf_counter() - start
            on_progress(Progress(done, jobs, rounds, seconds, outcome.job.id))
    return Swept(len(todo), failed)


def kept(policy: Any, instance: Instance, trace: Trace) -> dict[str, Any]:
    """The facts about tolerances in one run; empty if the world has none.

    beyond    share of the recorded rounds that moved a protected outcome beyond its tolerance
    within    whether the action recommended after the last round is truly within all tolerances
    said      whether the recommendation said so; None for a policy that knows no tolerance
    worth     true value of the recommended action; `best` is the largest possible value
    """
    if instance.problem.limits is None:
        return {}
    found: dict[str, Any] = {"beyond": float((~within_all(instance, trace.action)).mean())}
    if isinstance(policy, BuiltinPolicy) and isinstance(instance.actions, (Arms, *SOLIDS)):
        advice = recommend(policy, trace.state, instance.actions)
        found["within"] = bool(within_all(instance, advice.action[None])[0])
        found["said"] = advice.assured
        found["worth"] = instance.reward(advice.action)
        found["best"] = instance.best_reward(instance.actions)
    return {"tolerances": found}


def within_all(instance: Instance, actions: FloatArray) -> "np.ndarray[Any, np.dtype[np.bool_]]":
    """Whether every protected effect of each action (n, d) is truly within its tolerance; (n,)."""
    limits = instance.truth.limits
    effects = actions @ instance.truth.theta[1:].T
    slack = SLACK * instance.problem.norm_bound * instance.problem.action_bound  # rounding
    inside = (effects <= limits.high + slack) & (effects >= limits.low - slack)
    return np.asarray(inside.all(axis=1))
