"""How often the intervals of `recommend` hold, and whether its probabilities mean what they say.

    python benchmarks/recommended.py --runs 100 --first 5000 [--told rank|resolution] [--only NAME]
    python benchmarks/recommended.py --runs 400 --first 20000 --drawn "held back"

Every run plays `DirectedThompson` in a world of its own and stops to look three times. A row is printed
for every setting and time, then the pooled rows and the calibration of `probability`.

--drawn: every run has a size, a rank, a noise and a list of arms of its own, and neither rank nor noise
is told. Of the two families one is to choose by, the other to measure what was chosen.
"""

import argparse
import sys
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

import numpy as np

import sidestep as ss
from sidestep.environments import Instance, synthetic
from sidestep.environments.action_sources import draw_actions
from sidestep.experiments.simulate import play
from sidestep.policies.advice.recommend import Interval, Recommendation

STOPS = (20, 100, 500)
RESOLUTION = 0.1


class Setting(NamedTuple):
    """A kind of world, and whether its noise is told."""

    world: Callable[[int], Instance]
    noise_told: bool = True


def _synthetic(d: int, L: int, s: int, arms: int | str, R: float) -> Callable[[int], Instance]:
    return lambda seed: synthetic(d, L, s, arms, noise_scale=R, seed=seed)


SETTINGS = {
    "fresh d=4 s=1 R=.1": Setting(_synthetic(4, 2, 1, 50, 0.1)),
    "fixed d=8 s=3 R=.1": Setting(_synthetic(8, 6, 3, "fixed:60", 0.1)),
    "fixed d=8 s=3 R=1": Setting(_synthetic(8, 6, 3, "fixed:60", 1.0)),
    "fixed d=8 s=3 R=.3 learned": Setting(_synthetic(8, 6, 3, "fixed:60", 0.3), noise_told=False),
    "ball d=5 s=2 R=.3": Setting(_synthetic(5, 3, 2, "ball", 0.3)),
    "fixed d=5 s=2 R=.3": Setting(_synthetic(5, 4, 2, "fixed:30", 0.3)),
    "fresh d=6 s=3 R=.1 learned": Setting(_synthetic(6, 3, 3, 40, 0.1), noise_told=False),
}


class Family(NamedTuple):
    """Worlds that differ in everything; the rank is each of 1..min(L, d - 1) as often."""

    sizes: tuple[tuple[int, int], ...]  # (d, L)
    noises: tuple[float, ...]
    arms: tuple[int | str, ...]

    def world(self, seed: int) -> Instance:
        """One of them."""
        rng = np.random.default_rng(seed)
        d, L = self.sizes[rng.integers(len(self.sizes))]
        noise = self.noises[rng.integers(len(self.noises))]
        arms = self.arms[rng.integers(len(self.arms))]
        rank = int(rng.integers(1, min(L, d - 1) + 1))
        return synthetic(d, L, rank, arms, noise_scale=noise, seed=seed)


FAMILIES = {
    "choice": Family(
        ((4, 2), (5, 4), (6, 3), (8, 5), (3, 3), (4, 4), (3, 5)),
        (0.05, 0.2, 0.7),
        ("fixed:30", "fixed:80", 50),
    ),
    "held back": Family(
        ((5, 2), (6, 4), (7, 3), (8, 6), (4, 3), (3, 4), (4, 6), (5, 5)),
        (0.1, 0.3, 1.0),
        ("fixed:15", "fixed:60", "fixed:100", 40),
    ),
}
DRAWN_STOPS = (20, 60, 150, 500)


class Seen(NamedTuple):
    """What one recommendation said, and what was true."""

    reward: bool
    effects: list[bool]
    leads: list[bool]
    gives_up: bool  # the true loss is no more than what was said
    probability: float
    is_best: bool
    settled_too_early: bool
    settled: bool
    matters: bool  # every direction of the world reaches the resolution that is told
    full: bool  # the rank is min(L, d - 1), the largest that leaves something
    wide: bool  # L >= d


def _told(instance: Instance, setting: Setting, told: str) -> ss.Problem:
    problem = instance.problem
    noise = problem.noise_scale if setting.noise_told else None
    known = {"subspace_dim": problem.subspace_dim} if told == "rank" else {"resolution": RESOLUTION}
    return ss.Problem(problem.dim, problem.n_protected, noise_scale=noise, **known)


def _holds(interval: Interval, truth: float) -> bool:
    slack = 1e-9
    return bool(interval.low - slack <= truth <= interval.high + slack)


def _judge(instance: Instance, actions: ss.Arms | ss.UnitBall, advice: Recommendation) -> Seen:
    rest, theta, a = instance.theta_perp, instance.theta, advice.action
    on_arms = isinstance(actions, ss.Arms)
    best = float((actions.vectors @ rest).max()) if on_arms else float(np.linalg.norm(rest))
    worth = float(a @ rest)
    leads = [_holds(r.ahead, worth - float(actions.vectors[r.arm] @ rest)) for r in advice.rivals]
    is_best = worth >= best - 1e-9 if on_arms else worth >= 0.95 * best
    rank = instance.problem.subspace_dim or 0
    weakest = np.linalg.svd(theta[1:], compute_uv=False)[rank - 1] if rank else np.inf
    return Seen(
        _holds(advice.reward, worth),
        [_holds(e, float(a @ theta[i])) for i, e in enumerate(advice.effects)],
        leads,
        best - worth <= advice.loss.high + 1e-9,
        advice.probability,
        bool(is_best),
        advice.settled and advice.spectrum is not None and advice.spectrum.undecided > 0,
        advice.settled,
        bool(weakest >= RESOLUTION),
        rank == min(len(theta) - 1, instance.problem.dim - 1),
        len(theta) - 1 >= instance.problem.dim,
    )


def _run(setting: Setting, told: str, seed: int, stops: tuple[int, ...] = STOPS) -> list[Seen]:
    instance = setting.world(seed)
    policy = ss.DirectedThompson(_told(instance, setting, told))
    rounds, done, seen = play(policy, instance, stops[-1], seed=seed), 0, []
    actions = draw_actions(instance.actions, np.random.default_rng(seed))
    for stop in stops:
        *_, last = islice(rounds, stop - done)
        done = stop
        seen.append(_judge(instance, actions, ss.recommend(policy, last.state, actions)))
    return seen


def _rate(flags: list[bool]) -> str:
    return f"{np.mean(flags):.3f} ({len(flags)})" if flags else "-"


def _row(name: str, seen: list[Seen]) -> str:
    columns = [
        [s.reward for s in seen],
        [e for s in seen for e in s.effects],
        [lead for s in seen for lead in s.leads],
        [s.gives_up for s in seen],
    ]
    said, was = np.mean([s.probability for s in seen]), np.mean([s.is_best for s in seen])
    return f"{name:36}" + "  ".join(f"{_rate(c):>14}" for c in columns) + f"  {said:.2f}->{was:.2f}"


def _calibration(seen: list[Seen]) -> None:
    said, was = np.array([s.probability for s in seen]), np.array([s.is_best for s in seen])
    print("probability, said -> was (n), allowed off by .07 and two standard errors")
    for low in np.arange(10) / 10:
        among = (said >= low) & ((said < low + 0.1) | (low > 0.85))
        if n := int(among.sum()):
            off, share = abs(said[among].mean() - was[among].mean()), was[among].mean()
            allowed = 0.07 + 2 * np.sqrt(max(share * (1 - share), 1 / n) / n)
            mark = "" if off <= allowed else "   OFF"
            print(f"  {said[among].mean():.2f} -> {share:.2f} ({n}){mark}")


def drawn(name: str, first: int, runs: int) -> list[list[Seen]]:
    """What was said and what was true in worlds of a family, run by run."""
    setting = Setting(FAMILIES[name].world, noise_told=False)
    return [_run(setting, "resolution", seed, DRAWN_STOPS) for seed in range(first, first + runs)]


def said_minus_was(runs: list[list[Seen]], *, least: float = 0.2) -> np.ndarray:
    """Mean of `probability` minus being the best, of every run that has said at least so much."""
    told = [[s.probability - s.is_best for s in run if s.probability >= least] for run in runs]
    return np.array([np.mean(each) for each in told if each])


def _show_drawn(name: str, first: int, runs: int) -> None:
    everything = drawn(name, first, runs)
    rows: dict[str, Callable[[Seen], bool]] = {
        "all": lambda _: True,
        "every direction reaches the resolution": lambda s: s.matters,
        "rank min(L, d - 1)": lambda s: s.full,
        "smaller rank": lambda s: not s.full,
        "L >= d": lambda s: s.wide,
    }
    print(
        f"{name}: said, was, said minus was over p >= 0.2 (two standard errors over recommendations)"
    )
    for row, counts in rows.items():
        seen = [s for run in everything for s in run if s.probability >= 0.2 and counts(s)]
        said, was = np.array([s.probability for s in seen]), np.array([s.is_best for s in seen])
        off = said - was
        error = 2 * off.std() / np.sqrt(len(off))
        print(
            f"  {row:40}{said.mean():.3f} {was.mean():.3f} {off.mean():+.3f} +-{error:.3f} ({len(off)})"
        )
    pooled = [s for run in everything for s in run]
    _calibration(pooled)
    print("settled:", sum(s.settled for s in pooled), "of", len(pooled))


def main() -> None:
    """Play, judge, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=5000, help="the first seed")
    parser.add_argument("--told", choices=("rank", "resolution"), default="resolution")
    parser.add_argument("--only", default="")
    parser.add_argument("--drawn", choices=tuple(FAMILIES), help="worlds that differ in everything")
    options = parser.parse_args()
    if options.drawn:
        _show_drawn(options.drawn, options.first, options.runs)
        return
    everything: dict[int, list[Seen]] = {stop: [] for stop in STOPS}
    print(
        f"{'setting':36}{'reward':>14}  {'effects':>14}  {'leads':>14}  {'gives up':>14}  said->was"
    )
    for name, setting in SETTINGS.items():
        if options.only not in name:
            continue
        runs = []
        for seed in range(options.first, options.first + options.runs):
            runs.append(_run(setting, options.told, seed))
            print(f"\r{name}: {len(runs)} of {options.runs}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        for k, stop in enumerate(STOPS):
            seen = [run[k] for run in runs]
            everything[stop] += seen
            print(_row(f"{name}, t={stop}", seen), flush=True)
    for stop, seen in everything.items():
        print(_row(f"pooled, t={stop}", seen))
    pooled = [s for seen in everything.values() for s in seen]
    _calibration(pooled)
    print("settled while a direction is undecided:", sum(s.settled_too_early for s in pooled))


if __name__ == "__main__":
    main()
