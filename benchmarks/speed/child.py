"""What must be measured in a process of its own: memory, compilation, the time to the first round.

`in_child` starts `python -m benchmarks.speed.child TASK ARGUMENTS` and reads one JSON value.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
MEGABYTE = 1 << 20


def in_child(task: str, arguments: Sequence[Any] = (), **environment: str) -> Any:
    """The result of a task in a new process."""
    command = [sys.executable, "-m", __name__, task, json.dumps(arguments)]
    done = subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def memory(world: Sequence[Any], policy: str, rounds: int, every: int) -> dict[str, Any]:
    """Peak memory and CPU seconds of one run: the arms that a user brings, and what we add to them."""
    from benchmarks.speed.worlds import World, policy_of  # noqa: PLC0415
    from sidestep.experiments.simulate import simulate  # noqa: PLC0415  (the child loads late)

    size = World(*world)
    small = size._replace(arms=min(size.arms, 64)).instance()
    enough = 2 * size.dim * size.n_protected + 10
    simulate(policy_of(policy, small), small, enough, compiled=True)  # loads the code
    vectors = size.vectors()
    before = start_of_peak()
    instance = size.instance(vectors)
    start = time.process_time()
    simulate(policy_of(policy, instance), instance, rounds, every=every, compiled=True)
    seconds = time.process_time() - start
    peak = status_of("VmHWM")
    return {
        "world": size.title,
        "policy": policy,
        "rounds": rounds,
        "seconds": seconds,
        "matrix_mb": vectors.nbytes / MEGABYTE,
        "peak_mb": None if not peak or not before else (peak - before + vectors.nbytes) / MEGABYTE,
    }


def start_of_peak() -> int | None:
    """Forget the peak so far; bytes in use now, or None where the system does not tell."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return status_of("VmRSS")


def status_of(key: str) -> int | None:
    """A line of the system's account of this process, in bytes."""
    if not STATUS.exists():
        return None
    lines = [line for line in STATUS.read_text().splitlines() if line.startswith(key)]
    return int(lines[0].split()[1]) * 1024 if lines else None


def first_rounds(names: Sequence[str]) -> dict[str, float]:
    """CPU seconds from nothing to the end of the first round of each policy, one after another."""
    from benchmarks.speed.worlds import PAPER, policy_of  # noqa: PLC0415
    from sidestep.experiments.simulate import simulate  # noqa: PLC0415  (its import is measured)

    found, before = {}, 0.0  # the clock began with the process
    instance = PAPER.instance()
    for name in names:
        simulate(policy_of(name, instance), instance, 1, compiled=True)
        found[name] = time.process_time() - before
        before = time.process_time()
    return found


def memory_of(job: Sequence[Any]) -> list[dict[str, Any]]:
    """`memory` in a new process; the row of one run."""
    return [in_child("memory", job)]


def compiled_anew(names: Sequence[str]) -> list[dict[str, Any]]:
    """CPU seconds until the first round of each policy where nothing is compiled, one by one."""
    with tempfile.TemporaryDirectory() as folder:
        found = in_child("first_rounds", [list(names)], NUMBA_CACHE_DIR=folder)
    return [{"what": f"compile {name}", "seconds": found[name]} for name in names]


def first_rounds_cached(names: Sequence[str]) -> list[dict[str, Any]]:
    """CPU seconds of a new process that plays one round of a policy, compiled before."""
    return [
        {
            "what": f"first round of {name}, compiled before",
            "seconds": in_child("first_rounds", [[name]])[name],
        }
        for name in names
    ]


def commands() -> list[dict[str, Any]]:
    """CPU seconds of commands that do next to nothing, the second time."""
    rows = []
    for words in (["--help"], ["run", "--help"], ["policies"]):
        command = [sys.executable, "-m", "sidestep.cli.main", *words]
        for _ in range(2):
            before = os.times()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            after = os.times()
        user = after.children_user - before.children_user
        system = after.children_system - before.children_system
        rows.append({"what": f"sidestep {' '.join(words)}", "seconds": user + system})
    return rows


TASKS: dict[str, Callable[..., Any]] = {"memory": memory, "first_rounds": first_rounds}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*json.loads(sys.argv[2]))))
