"""What one `ask` costs a person who waits: `python -m benchmarks.ask [--before FOLDER] [--arms 100 ...]`.

Milliseconds, and how many numpy passes over the same arms that is; a pass computes mean and variance of
every arm and vector. Passes are timed in the same process, in turns with the asks. With --before, the
sources of another commit are timed too, in a second process, in turns with this one.
"""

# ruff: noqa: E402  (the number of threads must be set before numpy is imported)
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

for threads in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{threads}_NUM_THREADS"] = "1"

import numpy as np

DIM, PROTECTED, TOLD = 6, 4, 60
SIZES = (100, 1000, 5000, 20_000)
POLICIES = ("OFUL", "DirectedThompson", "InformationDirected")
TURNS = 2


def cases(sizes):
    """Name, policy, kind of problem, number of arms."""
    for name in POLICIES:
        for kind in ("plain", "study-like"):
            if (name, kind) != ("OFUL", "study-like"):
                for size in sizes:
                    yield name, kind, size


def problem_of(kind):
    """The paper's projected reward with rank and noise told, or what a study plays."""
    import sidestep as ss  # noqa: PLC0415

    if kind == "plain":
        return ss.Problem(DIM, PROTECTED, subspace_dim=2, noise_scale=0.1)
    return ss.Problem(DIM, PROTECTED, noise_scale=None, tolerance=0.2, intercept=True)


def prepared(name, kind, size):
    """A call that asks, with a state after some measurements, and one that makes a numpy pass."""
    import sidestep as ss  # noqa: PLC0415

    rng = np.random.default_rng(0)
    problem = problem_of(kind)
    policy = getattr(ss, name)(problem)
    arms = rng.standard_normal((size, DIM))
    arms = ss.Arms(arms / np.linalg.norm(arms, axis=1, keepdims=True))
    theta, state = rng.standard_normal((PROTECTED + 1, DIM)) / np.sqrt(DIM), policy.init()
    for turn in range(TOLD):
        query = ss.Query(arms.vectors[rng.integers(size)], turn % (PROTECTED + 1))
        feedback = theta[query.index] @ query.action + 0.1 * rng.standard_normal()
        state = policy.tell(state, query, float(feedback))
    columns = np.ascontiguousarray(problem.lifted(np.array(arms.vectors)).T)

    def one_pass():
        mean = state.evidence.centre @ columns
        return mean, ((state.evidence.inverse @ columns) * columns).sum(axis=1)

    return lambda: policy.ask(state, arms, np.random.default_rng(1)), one_pass


def least_time(call, seconds):
    """The least CPU time of a call, in milliseconds, over at least three calls."""
    least, end, calls = np.inf, time.process_time() + seconds, 0
    while calls < 3 or time.process_time() < end:
        start = time.process_time()
        call()
        least, calls = min(least, time.process_time() - start), calls + 1
    return 1e3 * least


def serve():
    """Time the cases that come in, one in a line, until there are no more."""
    for line in sys.stdin:
        ask, one_pass = prepared(*json.loads(line))
        ask()
        times = [(least_time(ask, 0.1), least_time(one_pass, 0.02)) for _ in range(2)]
        print(json.dumps(np.min(times, axis=0).tolist()), flush=True)


def started(sources):
    """A process that times the sources in a folder."""
    there = os.environ | {"PYTHONPATH": str(sources)}
    command = [sys.executable, str(Path(__file__).resolve()), "--serve"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, env=there, text=True, **pipes)


def timed(process, case):
    """Milliseconds of an ask and of a pass."""
    process.stdin.write(json.dumps(case) + "\n")
    process.stdin.flush()
    return np.array(json.loads(process.stdout.readline()))


def main():
    """Print a line for every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--before", help="folder with the sources (src) of another commit")
    parser.add_argument("--arms", type=int, nargs="+", default=SIZES)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    here = Path(__file__).resolve().parents[1] / "src"
    processes = [started(here)] + ([started(given.before)] if given.before else [])
    for case in cases(given.arms):
        turns = [[timed(process, case) for process in processes] for _ in range(TURNS)]
        (ask, one_pass), *before = np.min(turns, axis=0)
        words = "{:20} {:10} {:6} arms {:9.2f} ms {:7.1f} passes".format(*case, ask, ask / one_pass)
        for was, _ in before:
            words += f", before {was:9.2f} ms: {was / ask:6.1f} times faster"
        print(words, flush=True)
    for process in processes:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
