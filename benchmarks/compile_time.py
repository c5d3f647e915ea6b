"""What compiling costs, policy by policy, from an empty cache: `python -m benchmarks.compile_time`.

CPU seconds of this process, from the first call of `simulate` to its answer after two rounds, in the
paper's world of 100 fresh arms. The first policy pays for what all of them share. A timer of numba
(numba.core.event) says how much of it was spent inside the compiler, and a listener how many functions
numba typed and lowered. Exit code 1 where a promise is broken.
"""

import os
import sys
import tempfile
import time

FIRST, FURTHER = 20.0, 6.0  # CPU seconds that the first policy may take, and each further one


def main():
    """Compile every policy in order and print a line for each; 1 where one took too long."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        took = [report(*player) for player in players()]
    within = took[0] <= FIRST and max(took[1:]) <= FURTHER
    print(
        f"first {took[0]:.1f} s (promised {FIRST:g}), further at most {max(took[1:]):.1f} s ({FURTHER:g})"
    )
    return 0 if within else 1


def players():
    """Name and policy and world, in the order in which they are compiled."""
    import sidestep as ss  # noqa: PLC0415  (after the cache folder was chosen)

    world = ss.environments.synthetic(6, 4, 2, 100, noise_scale=0.001, seed=0)
    names = "DirectedThompson ProtectedThompson ProtectedLinUCB RoundRobinLinUCB EpsilonGreedy OFUL"
    for name in [*names.split(), "ExploreThenCommit", "Uniform", "InformationDirected"]:
        yield name, getattr(ss, name)(world.problem), world


def report(name, policy, world):
    """CPU seconds until a policy has played two rounds compiled."""
    import sidestep as ss  # noqa: PLC0415

    before = time.process_time()
    from numba.core import event  # noqa: PLC0415  (half a second, which the first policy pays)

    timer = event.TimingListener()
    with (
        event.install_listener("numba:compile", timer),
        event.install_recorder("numba:compile") as recorded,
    ):
        ss.simulate(policy, world, 2, compiled=True)
    cpu, functions = time.process_time() - before, len(recorded.buffer) // 2
    print(
        f"{name:20s} {cpu:6.1f} CPU s  {timer.duration:6.1f} s in numba  {functions:4d} functions",
        flush=True,
    )
    return cpu


if __name__ == "__main__":
    sys.exit(main())
