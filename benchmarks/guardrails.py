"""How players keep tolerances: regret beside tuned epsilon-greedy, and what recommendations are worth.

    python benchmarks/guardrails.py regret --seeds 50      # paired seeds, at R = .03, .1, .5
    python benchmarks/guardrails.py advice --seeds 200     # noise and levels learned

Tables go to the terminal, a row as soon as it is known. The box is played step by step and takes most of
the time: `--worlds arms,grid,trial,diabetes,warfarin` leaves it out. On the grid regret is measured with
levels that are told.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import sidestep as ss
from sidestep.environments import Instance
from sidestep.experiments.sweep import within_all

NOISES = (0.03, 0.1, 0.5)
EPSILONS = (0.3, 1.0, 3.0)
TOLD = {"tolerance": 0.15, "penalty": 5.0}
RESAMPLED = 4000
LEVEL = 0.95
TABLE = [""]  # where the therapy records are


class World(NamedTuple):
    """A world by seed and noise, and for how many rounds it is played."""

    make: Callable[[int, float], Instance]
    horizon: int  # where regret is measured
    advised: int  # rounds before a recommendation


def arms(seed: int, noise: float) -> Instance:
    return ss.environments.guarded_arms(seed=seed, noise_scale=noise)


def grid(seed: int, noise: float) -> Instance:
    return ss.environments.dose_grid(seed=seed, noise_scale=noise, levels=False)


def box(seed: int, noise: float) -> Instance:
    return ss.environments.dose_box(seed=seed, noise_scale=noise)


def warfarin(seed: int, noise: float) -> Instance:
    return ss.environments.warfarin_lookalike(seed, "max", "full-rank", noise_scale=noise, **TOLD)


def real_warfarin(seed: int, noise: float) -> Instance:
    """The therapy records of `--data`; a seed is one of noise and choices alone."""
    return ss.environments.warfarin(TABLE[0], "full-rank", "max", noise_scale=noise, **TOLD)


def diabetes(seed: int, noise: float) -> Instance:
    return ss.environments.diabetes(noise_scale=noise, **TOLD)


def trial(seed: int, noise: float) -> Instance:
    return ss.environments.actg_like(seed=seed, noise_scale=noise)


WORLDS = {
    "arms": World(arms, 1000, 300),
    "grid": World(grid, 1000, 300),
    "trial": World(trial, 1000, 300),
    "diabetes": World(diabetes, 1000, 300),
    "warfarin": World(warfarin, 1000, 300),
    "records": World(real_warfarin, 1000, 300),
    "box": World(box, 200, 100),
}


def players(problem: ss.Problem) -> dict[str, Any]:
    """Everyone who plays within tolerances; epsilon-greedy at every point of its grid."""
    tuned = {f"epsilon {e:g}": ss.EpsilonGreedy(problem, epsilon=e) for e in EPSILONS}
    ours = {
        "directed": ss.DirectedThompson(problem),
        "information": ss.InformationDirected(problem),
        "protected": ss.ProtectedThompson(problem),
    }
    return ours | tuned


def is_linear(trace: ss.experiments.record.Trace, uniform: float) -> bool:
    """As the report counts it: no cheaper in the last half, and a tenth of what chance pays."""
    total = float(trace.cumulative_regret[-1])
    half = float(np.interp(trace.horizon / 2, trace.round, trace.cumulative_regret))
    return total - half > 0.9 * half and total / trace.horizon > 0.1 * uniform


def chance_cost(world: Instance) -> float:
    """What a round costs a player of chance."""
    if isinstance(world.actions, ss.Arms):
        worths = [world.reward(arm) for arm in world.actions.vectors]
        return float(np.max(worths) - np.mean(worths))
    trace = ss.simulate(ss.Uniform(world.problem), world, 30, compiled=False)
    return float(trace.regret.mean())


def ratio(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float, float]:
    """Mean over mean of the same seeds, and its 95% interval by resampling seeds."""
    rows = np.random.default_rng(0).integers(0, len(ours), (RESAMPLED, len(ours)))
    drawn = ours[rows].mean(axis=1) / theirs[rows].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(ours.mean() / theirs.mean()), float(low), float(high)


def regret_row(name: str, noise: float, seeds: range) -> str:
    world = WORLDS[name]
    finals: dict[str, list[float]] = {}
    stuck: dict[str, int] = {}
    for seed in seeds:
        instance = world.make(seed, noise)
        uniform = chance_cost(instance)
        for who, policy in players(instance.problem).items():
            trace = ss.simulate(policy, instance, world.horizon, seed, every=10)
            finals.setdefault(who, []).append(float(trace.cumulative_regret[-1]))
            stuck[who] = stuck.get(who, 0) + is_linear(trace, uniform)
    found = {who: np.array(values) for who, values in finals.items()}
    tuned = min((who for who in found if who.startswith("eps")), key=lambda w: found[w].mean())
    best = min(found, key=lambda w: found[w].mean())
    means = " | ".join(
        f"{found[who].mean():.1f} +- {found[who].std(ddof=1) / len(seeds) ** 0.5:.1f}, {stuck[who]}"
        for who in ("directed", "information", "protected", tuned)
    )
    beside = [ratio(found[who], found[tuned]) for who in ("directed", "information")]
    words = " | ".join(f"{x:.2f} [{low:.2f}, {high:.2f}]" for x, low, high in beside)
    return f"| {name} | {noise:g} | {means} ({tuned}) | {words} | {best} |"


class Advice(NamedTuple):
    """What one recommendation said, and what was true."""

    said: bool
    within: bool
    is_clear: bool  # an action clear of every tolerance by half its width exists
    effects: tuple[int, int]  # intervals that cover, of how many
    verdicts: tuple[int, int]  # verdicts that are right, of those that are settled
    loss_held: bool  # what was given up is no more than it said


def advice_of(world: World, noise: float, seed: int) -> Advice:
    """A recommendation after a run of a player who learns noise and levels while it plays.

    There is no compiled loop for levels: it is played step by step.
    """
    made = world.make(seed, noise)
    level = np.random.default_rng(10_000 + seed).standard_normal(len(made.theta))
    instance = replace(made, intercept=level)
    policy = ss.DirectedThompson(replace(instance.problem, noise_scale=None))
    trace = ss.simulate(policy, instance, world.advised, seed)
    advice = ss.recommend(policy, trace.state, instance.actions, LEVEL)
    truth = instance.theta @ advice.action
    covered = [one.low <= true <= one.high for one, true in zip(advice.effects, truth, strict=True)]
    lost = instance.best_reward(instance.actions) - instance.reward(advice.action)
    return Advice(
        bool(advice.assured),
        bool(within_all(instance, advice.action[None])[0]),
        _is_clear(instance),
        (sum(covered), len(covered)),
        _right(instance, truth[1:], advice.verdicts),
        lost <= advice.loss.high + 1e-9,
    )


def _is_clear(instance: Instance) -> bool:
    """Whether some action keeps half the width of every tolerance, and is worth something."""
    limits = instance.truth.limits
    halved = replace(
        instance, tolerance=[_halved(*pair) for pair in zip(limits.low, limits.high, strict=True)],
        penalty=limits.penalty,
    )  # fmt: skip
    if not isinstance(instance.actions, ss.Arms):
        return True  # nothing done is in the box
    inside = within_all(halved, instance.actions.vectors)
    return bool(inside.any())


def _halved(low: float, high: float) -> tuple[float | None, float | None]:
    return (low / 2 if np.isfinite(low) else None, high / 2 if np.isfinite(high) else None)


def _right(instance: Instance, truth: np.ndarray, verdicts: tuple[str, ...]) -> tuple[int, int]:
    limits = instance.truth.limits
    inside = (truth <= limits.high) & (truth >= limits.low)
    settled = [(said == "within") == true for said, true in zip(verdicts, inside, strict=True)
               if said != "not settled"]  # fmt: skip
    return sum(settled), len(settled)


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({part / whole:.1%})" if whole else "")


def advice_row(name: str, noise: float, found: list[Advice]) -> str:
    said = [one for one in found if one.said]
    clear = [one for one in found if one.is_clear]
    cells = [
        share(sum(one.within for one in said), len(said)),
        share(sum(one.said for one in clear), len(clear)),
        share(*np.sum([one.effects for one in found], axis=0)),
        share(*np.sum([one.verdicts for one in found], axis=0)),
        share(sum(one.loss_held for one in found), len(found)),
    ]
    return f"| {name} | {noise:g} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("regret", "advice"))
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--worlds", default=",".join(name for name in WORLDS if name != "records"))
    parser.add_argument("--noise", default="")
    parser.add_argument("--data", default="", help="table of therapy records, for world `records`")
    asked = parser.parse_args()
    TABLE[0] = asked.data
    noises = [float(word) for word in asked.noise.split(",") if word]
    seeds = range(asked.first, asked.first + asked.seeds)
    warnings.simplefilter("ignore")
    everything = []
    if asked.what == "regret":
        print(
            "| world | R | directed, linear | information | protected | tuned | directed to tuned "
            "| information to tuned | best |",
            flush=True,
        )
    else:
        print("| world | R | said within: is | says so where clear | effects | verdicts | loss |")
    for name in asked.worlds.split(","):
        for noise in noises or (NOISES if asked.what == "regret" else (0.1,)):
            if asked.what == "regret":
                print(regret_row(name, noise, seeds), flush=True)
                continue
            found = [advice_of(WORLDS[name], noise, seed) for seed in seeds]
            print(advice_row(name, noise, found), flush=True)
            everything += found
    if everything:
        print(advice_row("pooled", 0.0, everything))


if __name__ == "__main__":
    main()
