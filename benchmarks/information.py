"""InformationDirected beside DirectedThompson on the same seeds, and what a round of it costs.

    python -m benchmarks.information --seeds 50 [--only fresh,blind]
    python -m benchmarks.information --cost

Prints mean regret of both, the ratio with its 95% interval (seeds resampled in pairs), and how many runs
turned linear, as the report counts them. `--cost` prints CPU microseconds of a compiled round over 100
arms in six dimensions, both players in one process, and exits with 1 where the ratio exceeds MOST.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

import sidestep as ss
from benchmarks.guardrails import chance_cost, is_linear, ratio
from benchmarks.speed.clock import cpu
from sidestep.environments import Instance, held_out

PLAYERS = (ss.InformationDirected, ss.DirectedThompson)
MOST = 10.0  # times the CPU of DirectedThompson
ROUNDS, TURNS = 2000, 5


class Family(NamedTuple):
    """Worlds of one kind, one for every seed."""

    make: Callable[[int], Instance]
    horizon: int


def synthetic(noise: float, arms: int | str) -> Family:
    """The paper's worlds: d=6, L=4, s=2, T=1000."""

    def make(seed: int) -> Instance:
        return ss.environments.synthetic(6, 4, 2, arms, noise_scale=noise, seed=seed)

    return Family(make, 1000)


WORLDS = {
    "fresh arms, R=.1": synthetic(0.1, 100),
    "fresh arms, R=1": synthetic(1.0, 100),
    "fixed arms, R=.1": synthetic(0.1, "fixed:100"),
    "low-rank arms, R=.1": Family(lambda seed: held_out("low-rank", seed=seed), 1000),
    "failure example, R=1": Family(lambda _: ss.environments.failure(noise_scale=1.0), 3000),
    "blind spot, R=.1": Family(lambda _: ss.environments.blind_spot(noise_scale=0.1), 3000),
    "blind spot, R=.3": Family(lambda _: ss.environments.blind_spot(noise_scale=0.3), 3000),
}


def row(name: str, seeds: int) -> str:
    """A line of the table."""
    family = WORLDS[name]
    finals, linear = np.empty((2, seeds)), [0, 0]
    for seed in range(seeds):
        world = family.make(seed)
        uniform = chance_cost(world)
        for k, player in enumerate(PLAYERS):
            policy = player(world.problem)
            trace = ss.simulate(policy, world, family.horizon, seed, every=10, compiled=True)
            finals[k, seed] = trace.cumulative_regret[-1]
            linear[k] += is_linear(trace, uniform)
    times, low, high = ratio(*finals)
    ours, theirs = finals.mean(axis=1)
    return (
        f"| {name} | {ours:.1f} | {theirs:.1f} | {times:.2f} ({low:.2f} to {high:.2f}) "
        f"| {linear[0]} | {linear[1]} | {finals[0].max():.0f} | {finals[1].max():.0f} |"
    )


def cost(arms: int | str) -> tuple[float, float]:
    """CPU microseconds of a compiled round of both, the least of several turns."""
    world = ss.environments.synthetic(6, 4, 2, arms, noise_scale=0.1, seed=0)
    policies = [player(world.problem) for player in PLAYERS]
    for policy in policies:
        ss.simulate(policy, world, 2, compiled=True)

    def play(policy: ss.InformationDirected | ss.DirectedThompson, seed: int) -> None:
        ss.simulate(policy, world, ROUNDS, seed, every=100, compiled=True)

    took = [[cpu(play, policy, turn) for policy in policies] for turn in range(TURNS)]
    ours, theirs = 1e6 / ROUNDS * np.min(took, axis=0)
    return float(ours), float(theirs)


def costs() -> int:
    """Print what a round costs; 1 where it costs too much."""
    print("| 100 arms, d=6 | InformationDirected, us | DirectedThompson, us | ratio |")
    print("|---|---|---|---|")
    worst = 0.0
    kinds: Sequence[tuple[str, int | str]] = [("fixed", "fixed:100"), ("fresh", 100)]
    for name, arms in kinds:
        ours, theirs = cost(arms)
        worst = max(worst, ours / theirs)
        print(f"| {name} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.1f} |", flush=True)
    return int(worst > MOST)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--only", default="", help="worlds whose names contain one of these words")
    parser.add_argument("--cost", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.cost:
        return costs()
    print("| world | information | directed | ratio | linear | linear | worst | worst |")
    print("|---|---|---|---|---|---|---|---|")
    for name in WORLDS:
        if any(word in name for word in asked.only.split(",")):
            print(row(name, asked.seeds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
