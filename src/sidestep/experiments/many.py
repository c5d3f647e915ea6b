"""Many runs of one policy, with any executor."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

from sidestep.core.validation import check_integer
from sidestep.environments.instance import Instance
from sidestep.experiments.record import Trace
from sidestep.experiments.simulate import should_compile, simulate
from sidestep.experiments.tiers import note_interpreted
from sidestep.policies.base import Policy
from sidestep.policies.builtin import BuiltinPolicy


class Executor(Protocol):
    """Anything with the `map` of concurrent.futures."""

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any], /) -> Iterable[Any]:
        """Results in the order of the jobs."""


def simulate_many(
    policy: Policy[Any],
    instance_maker: Instance | Callable[[int], Instance],
    horizon: int,
    runs: int = 10,
    seed: int = 0,
    *,
    every: int = 1,
    executor: Executor | None = None,
) -> list[Trace]:
    """Several runs, a list of `Trace`; run r is simulate(policy, world, horizon, seed + r).

    policy           as in `simulate`
    instance_maker   the world of all runs, or a function that makes one of the seed
    horizon          rounds of a run
    runs             how many
    seed             of the first run; run r has seed + r
    every            record every n-th round, and the last
    executor         anything with `map`: threads, processes, a cluster, the traces are the same on each;
                     None: one after another

    >>> import sidestep as ss
    >>> world = ss.environments.failure()
    >>> traces = ss.simulate_many(ss.Uniform(world.problem), world, horizon=20, runs=3)
    >>> [trace.seed for trace in traces]
    [0, 1, 2]
    """
    check_integer("runs", runs, low=1)
    rounds = horizon * runs
    if isinstance(policy, BuiltinPolicy):
        note_interpreted(rounds)
    jobs = [_Job(policy, instance_maker, horizon, seed + run, every, rounds) for run in range(runs)]
    return list((executor.map if executor else map)(_run_job, jobs))


class _Job(NamedTuple):
    policy: Any
    instance_maker: Any
    horizon: int
    seed: int
    every: int
    rounds: int  # of all runs


def _run_job(job: _Job) -> Trace:
    world = job.instance_maker
    instance = world if isinstance(world, Instance) else world(job.seed)
    fast = should_compile(job.policy, instance, job.rounds)
    return simulate(job.policy, instance, job.horizon, job.seed, job.every, compiled=fast)
