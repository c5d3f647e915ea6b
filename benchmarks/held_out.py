"""DirectedThompson on worlds that nobody tuned on, beside the whole catalog (the paper's aim).

    python benchmarks/held_out.py --seeds 30 [--only lowrank,dose]

Every player meets the same arms and noise. Prints mean regret, the ratio to the best mean of the
catalog, and how many runs turned linear, as the report counts them.
"""

import argparse
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import sidestep as ss
from benchmarks.guardrails import chance_cost, is_linear
from sidestep.core.arrays import FloatArray
from sidestep.environments import FreshArms, Instance

ANGLE = np.deg2rad(8.0)


class Family(NamedTuple):
    """Worlds of one kind, one for every seed."""

    make: Callable[[int], Instance]
    horizon: int


def vectors(rng: np.random.Generator, dim: int, count: int, rank: int) -> FloatArray:
    """A target and `count` protected vectors of that rank, all of length one."""
    span = np.linalg.qr(rng.standard_normal((dim, rank)))[0].T
    theta = np.vstack([rng.standard_normal((1, dim)), rng.standard_normal((count, rank)) @ span])
    return theta / np.linalg.norm(theta, axis=1, keepdims=True)


def lowrank(seed: int) -> Instance:
    """100 fixed arms in R^10 that three factors explain, up to a tenth."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((100, 3)) @ rng.standard_normal((3, 10))
    arms = factors / np.linalg.norm(factors, axis=1, keepdims=True)
    arms += 0.1 * rng.standard_normal(arms.shape) / np.sqrt(10)
    return Instance(vectors(rng, 10, 4, 2), ss.Arms(_unit(arms)), noise_scale=0.1)


def dose(seed: int) -> Instance:
    """Four drugs at three doses with interactions: 80 arms of different lengths in R^10."""
    rng = np.random.default_rng(seed)
    doses = np.array(list(product((0.0, 0.5, 1.0), repeat=4)))[1:]
    pairs = [doses[:, i] * doses[:, j] for i in range(4) for j in range(i)]
    arms = np.column_stack([doses, *pairs])
    arms /= np.linalg.norm(arms, axis=1).max()
    return Instance(vectors(rng, 10, 3, 2), ss.Arms(arms), noise_scale=0.1)


def many(seed: int) -> Instance:
    """Thirty protected outcomes of rank 2 in R^12, 100 fixed arms."""
    rng = np.random.default_rng(seed)
    arms = ss.Arms(_unit(rng.standard_normal((100, 12))))
    return Instance(vectors(rng, 12, 30, 2), arms, noise_scale=0.1)


def parallel(seed: int) -> Instance:
    """Two protected vectors eight degrees apart in R^6, 50 fixed arms."""
    rng = np.random.default_rng(seed)
    theta = vectors(rng, 6, 2, 2)
    across = theta[2] - (theta[2] @ theta[1]) * theta[1]
    theta[2] = np.cos(ANGLE) * theta[1] + np.sin(ANGLE) * across / np.linalg.norm(across)
    return Instance(theta, ss.Arms(_unit(rng.standard_normal((50, 6)))), noise_scale=0.1)


def uneven(seed: int) -> Instance:
    """Outcomes with noise from 0.05 to 1, 50 fresh arms a round in R^6."""
    rng = np.random.default_rng(seed)
    noise = (0.05, 1.0, 1.0, 0.3, 0.3)
    return Instance(vectors(rng, 6, 4, 2), FreshArms(50, 6), noise_scale=noise)


FAMILIES = {
    "lowrank": Family(lowrank, 1000),
    "dose": Family(dose, 1000),
    "many": Family(many, 1500),
    "parallel": Family(parallel, 1000),
    "uneven": Family(uneven, 1000),
}


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
    family, finals, linear = FAMILIES[name], {}, 0
    for seed in range(seeds):
        world = family.make(seed)
        uniform = chance_cost(world)
        for who, policy in players(world.problem).items():
            trace = ss.simulate(policy, world, family.horizon, seed, every=10)
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


def _unit(rows: FloatArray) -> FloatArray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--only", default=",".join(FAMILIES))
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| family | directed | best of the catalog | ratio | linear |\n|---|---|---|---|---|")
    for name in asked.only.split(","):
        print(row(name, asked.seeds), flush=True)


if __name__ == "__main__":
    main()
