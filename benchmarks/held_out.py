"""DirectedThompson on worlds that nobody tuned on, beside the whole catalog (the paper's aim).

    python -m benchmarks.held_out --seeds 30 [--only low-rank,interactions]

Every player meets the same arms and noise. Prints mean regret, the ratio to the best mean of the
catalog, and how many runs turned linear, as the report counts them.
"""

import argparse
import warnings
from typing import Any

import numpy as np

import sidestep as ss
from benchmarks.guardrails import chance_cost, is_linear
from sidestep.environments.held_out import KINDS, held_out

HORIZON = 1000
LONGER = {"many-outcomes": 1500, "dear-oracle": 2000, "blind-six": 2000}  # rounds
OPEN = "rank-deficient"  # its arms do not show which one is best


def players(problem: ss.Problem) -> dict[str, Any]:
    """The catalog; epsilon-greedy at three points, explore-then-commit by T^(2/3)."""
    greedy = {f"epsilon {e:g}": ss.EpsilonGreedy(problem, epsilon=e) for e in (0.3, 1.0, 3.0)}
    return {
        "directed": ss.DirectedThompson(problem),
        "thompson": ss.ProtectedThompson(problem),
        "adaptive linucb": ss.ProtectedLinUCB(problem, coreset="adaptive"),
        "information": ss.InformationDirected(problem),
        "oful": ss.OFUL(problem),
        "commit": ss.ExploreThenCommit(problem, rounds=100),
    } | greedy


def row(name: str, seeds: int) -> str:
    """Mean regret of ours and of the best, their ratio, and linear runs of ours."""
    finals, linear = {}, 0
    for seed in range(seeds):
        world = held_out(name, seed=seed)
        uniform = chance_cost(world)
        for who, policy in players(world.problem).items():
            trace = ss.simulate(policy, world, LONGER.get(name, HORIZON), seed, every=10)
            finals.setdefault(who, []).append(float(trace.cumulative_regret[-1]))
            linear += who == "directed" and is_linear(trace, uniform)
    means = {who: float(np.mean(values)) for who, values in finals.items()}
    best = min(means, key=means.__getitem__)
    ours = means["directed"]
    spread = np.std(finals["directed"], ddof=1) / seeds**0.5
    return (
        f"| {name} | {ours:.1f} +- {spread:.1f} | {best} {means[best]:.1f} | {ours / means[best]:.2f} "
        f"| {linear} of {seeds} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--only", default=",".join(kind for kind in KINDS if kind != OPEN))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| family | directed | best of the catalog | ratio | linear |\n|---|---|---|---|---|")
    for name in asked.only.split(","):
        print(row(name, asked.seeds), flush=True)


if __name__ == "__main__":
    main()
