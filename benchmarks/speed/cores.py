"""What a second core gives: the same 100 runs on one core and on two, by the clock on the wall."""

import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

from benchmarks.speed.worlds import PAPER, policy_of
from sidestep.experiments.simulate import Executor, simulate_many

RUNS = 100
HORIZON = 10_000
TURNS = 3


def scaling(workers: int = 2) -> list[dict[str, Any]]:
    """Seconds of 100 runs of Protected LinUCB: here, in threads, in processes; the best of turns."""
    instance = PAPER.instance()
    policy = policy_of("protected-linucb", instance)

    def seconds(executor: Executor | None, runs: int = RUNS) -> float:
        start = time.perf_counter()
        simulate_many(policy, instance, HORIZON, runs, every=HORIZON, executor=executor)
        return time.perf_counter() - start

    seconds(None, 1)  # loads the code
    context = multiprocessing.get_context("spawn")
    took: dict[str, list[float]] = {}
    with ThreadPoolExecutor(workers) as threads:
        for _ in range(TURNS):
            took.setdefault("one core", []).append(seconds(None))
            took.setdefault(f"{workers} threads", []).append(seconds(threads))
            start = time.perf_counter()
            with ProcessPoolExecutor(workers, mp_context=context) as pool:
                seconds(pool)
                first = time.perf_counter() - start
                took.setdefault(f"{workers} processes, with their start", []).append(first)
                took.setdefault(f"{workers} processes, running", []).append(seconds(pool))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    one = min(took["one core"])
    return [
        {"how": how, "cores": cores, "seconds": min(times), "times": one / min(times)}
        for how, times in took.items()
    ]
