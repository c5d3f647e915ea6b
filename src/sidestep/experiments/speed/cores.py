"""What a second core gives: the same 100 runs on one process and on two, by the clock on the wall."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from sidestep.experiments.simulate import Executor, simulate_many
from sidestep.experiments.speed.worlds import PAPER, policy_of

RUNS = 100
HORIZON = 10_000


def scaling(processes: int = 2) -> list[dict[str, Any]]:
    """Seconds of 100 runs of Protected LinUCB: here, in processes with their start, and without."""
    instance = PAPER.instance()
    policy = policy_of("protected-linucb", instance)

    def seconds(executor: Executor | None, runs: int = RUNS) -> float:
        start = time.perf_counter()
        simulate_many(policy, instance, HORIZON, runs, every=HORIZON, executor=executor)
        return time.perf_counter() - start

    seconds(None, 1)  # loads the code
    one = seconds(None)
    context = multiprocessing.get_context("spawn")
    start = time.perf_counter()
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        seconds(pool)
        first = time.perf_counter() - start
        again = seconds(pool)
    what = {
        "one process": one,
        f"{processes}, with their start": first,
        f"{processes}, running": again,
    }
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return [
        {"processes": name, "cores": cores, "seconds": took, "times": one / took}
        for name, took in what.items()
    ]
