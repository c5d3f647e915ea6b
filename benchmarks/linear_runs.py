"""Whether the linear runs of InformationDirected are locked in, or slow: played 16 times as long.

    python -m benchmarks.linear_runs --seeds 50 [--only low-rank,one-hot]

On worlds of the panel with at most 100 fixed arms. A run counts as linear as the report counts it. For
those runs the table says

    what is believed at the panel's horizon T: the arm that leads is the best one (right); or it is
    not, and the best one wins more, or less, than 1% of draws (undecided, wrong)
    how many of them count as linear at 4 T and 16 T, and how many are right at 16 T
    what a round costs in the last quarter before T, 4 T and 16 T
    how many rounds an oracle needs, in the median: one who is told the two arms that contend and
    every gradient, and by the best design (Elfving) tells them apart at two standard errors

The last column is another yardstick: linear runs, on all seeds, of posterior sampling that sees rewards
themselves, protection taken off, with noise R.
"""

import argparse
import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

import sidestep as ss
from benchmarks.guardrails import chance_cost, is_linear
from benchmarks.rivals import Game, games
from sidestep.core.linalg import orthonormal, project_off
from sidestep.core.objective import rests
from sidestep.core.posterior import doubting_posterior_of, draw, row_weights
from sidestep.core.projection import frame, gradient
from sidestep.environments import Instance
from sidestep.experiments.record import Trace

DRAWS = 4000
RARE = 0.01  # share of draws
TIMES = (1, 4, 16)


class Found(NamedTuple):
    """What became of one linear run."""

    linear: tuple[bool, bool, bool]  # at T, 4 T, 16 T
    cost: tuple[float, float, float]  # of a round in the last quarter before them
    first: str  # right, undecided or wrong, at T
    last: str  # the same at 16 T
    needed: float  # rounds of the oracle


def play(world: Instance, horizon: int, seed: int) -> Trace:
    policy = ss.InformationDirected(world.problem)
    return ss.simulate(policy, world, horizon, seed, every=5, compiled=True)


def until(trace: Trace, horizon: int) -> np.ndarray:
    """Regret after three quarters, a half and all of so many rounds."""
    rounds, total = np.append(0, trace.round), np.append(0.0, trace.cumulative_regret)
    return np.interp([0.75 * horizon, 0.5 * horizon, horizon], rounds, total)


def belief(world: Instance, trace: Trace) -> str:
    """Whether the arm that leads is the best, and if not whether the draws think of the best one."""
    prior = ss.InformationDirected(world.problem).knobs.prior
    posterior = doubting_posterior_of(prior, trace.state.evidence)
    normals = np.random.default_rng(0).standard_normal(DRAWS * posterior.mean.size)
    drawn = draw(posterior, normals, DRAWS)
    seen = rests(drawn, world.problem.subspace_dim, row_weights(posterior))
    values = seen @ world.actions.vectors.T
    best = int(np.argmax([world.reward(arm) for arm in world.actions.vectors]))
    if values.mean(axis=0).argmax() == best:
        return "right"
    return "wrong" if np.mean(values.argmax(axis=1) == best) < RARE else "undecided"


def oracle_rounds(world: Instance, played: int) -> float:
    """Rounds in which the best design tells the best arm from the one that was played, or the next."""
    arms = world.actions.vectors
    worth = np.array([world.reward(arm) for arm in arms])
    best, second = np.argsort(worth)[[-1, -2]]
    rival = second if played == best else played
    slopes = gradient(frame(world.theta, world.problem.subspace_dim or 0), arms[best] - arms[rival])
    reach = [least_weights(slope, arms) for slope in slopes]
    return float((2.0 * world.problem.noise @ reach / (worth[best] - worth[rival])) ** 2)


def least_weights(target: np.ndarray, arms: np.ndarray) -> float:
    """The least sum of absolute weights with which the arms add up to the target."""
    both = np.hstack([arms.T, -arms.T])
    return float(linprog(np.ones(both.shape[1]), A_eq=both, b_eq=target, method="highs").fun)


def look(world: Instance, horizon: int, seed: int) -> Found | None:
    """What became of a run; None if it is not linear."""
    short, chance = play(world, horizon, seed), chance_cost(world)
    if not is_linear(short, chance):
        return None
    longest = play(world, TIMES[-1] * horizon, seed)
    linear, costs = [], []
    for times in TIMES:
        before, half, total = until(longest, times * horizon)
        linear.append(total - half > 0.9 * half and total / (times * horizon) > 0.1 * chance)
        costs.append((total - before) / (0.25 * times * horizon))
    modal = int(np.bincount(short.arm[short.round > 0.75 * horizon]).argmax())
    beliefs = belief(world, short), belief(world, longest)
    return Found(tuple(linear), tuple(costs), *beliefs, oracle_rounds(world, modal))


def sees_rewards(world: Instance) -> Instance:
    """The same arms and rewards with nothing to protect: what is measured is the reward."""
    rest = project_off(orthonormal(world.theta[1:]), world.theta[0])
    noise, bound = float(world.problem.noise.max()), world.problem.norm_bound
    return Instance(rest[None], world.actions, noise_scale=noise, norm_bound=bound)


def yardstick(world: Instance, horizon: int, seed: int) -> bool:
    easier = sees_rewards(world)
    policy = ss.ProtectedThompson(easier.problem)
    trace = ss.simulate(policy, easier, horizon, seed, every=5, compiled=True)
    return is_linear(trace, chance_cost(world))


def row(game: Game, seeds: int) -> str:
    """A line of the table."""
    worlds = [game.make(seed) for seed in range(seeds)]
    looks = [look(world, game.horizon, seed) for seed, world in enumerate(worlds)]
    found = [one for one in looks if one is not None]
    if not found:
        return f"| {game.name} | 0 of {seeds} | | | | | | |"
    easy = sum(yardstick(world, game.horizon, seed) for seed, world in enumerate(worlds))
    later = [sum(one.linear[k] for one in found) for k in (1, 2)]
    first = [sum(one.first == what for one in found) for what in ("right", "undecided", "wrong")]
    right = sum(one.last == "right" for one in found)
    costs = " ".join(f"{cost:.3f}" for cost in np.mean([one.cost for one in found], axis=0))
    needed = np.median([one.needed for one in found])
    return (
        f"| {game.name} | {len(found)} of {seeds} | {first[0]}, {first[1]}, {first[2]} "
        f"| {later[0]}, {later[1]} | {right} | {costs} | {needed:.0f} | {easy} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--only", default="held-out", help="parts of ids or groups of worlds")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| world | linear at T | right, undecided, wrong | linear at 4 T, 16 T ", end="")
    print("| right at 16 T | a round costs | the oracle needs | seeing rewards |")
    print("|---|---|---|---|---|---|---|---|")
    for game in games(asked.only.split(",")):
        if isinstance(game.make(0).actions, ss.Arms):
            print(row(game, asked.seeds), flush=True)


if __name__ == "__main__":
    main()
