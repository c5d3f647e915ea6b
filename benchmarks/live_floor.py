"""What the results of a study could lead to at best, if someone who knows the truth put the questions.

Such a person aims at one candidate. The results are spread over the outcomes so that "all within limits"
is the likeliest, and over the candidates as tells most of its effect (Elfving's design, a
linear program). The goal is never measured: of what the study's own rule vouches for, with noise and
levels learned, the truly best is taken. What the best of these designs gives up in the median is an
estimate, not a proof, of what a policy that must learn all this cannot beat.

python benchmarks/live_floor.py                      three minutes on one core
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.special import log_ndtr

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "studies")]

from stories import STORIES  # noqa: E402

import sidestep as ss  # noqa: E402
from sidestep.cli.world import is_within  # noqa: E402
from sidestep.policies.advice.posterior_summary import belief_of, within_odds  # noqa: E402
from sidestep.studies.mind import Mind  # noqa: E402
from sidestep.studies.storage.memory import MemoryStore  # noqa: E402

RESULTS = (60, 90, 120, 150, 180, 210, 240, 300)
LEVEL = 0.95  # of a recommendation
ENOUGH = 0.1  # share of the best reachable effect that may be given up


class Candidate(NamedTuple):
    """A candidate that is truly within limits, and the design that tells most of its side effects."""

    number: int
    lost: float  # share of the best reachable effect that it gives up
    weights: np.ndarray  # share of the results at every candidate; (K,)
    margins: np.ndarray  # deviations from the limits, per root of the results of an outcome; (L,)

    def counts(self, results: int) -> np.ndarray:
        """How many results of every protected outcome make "all within" the likeliest; (L,)."""
        counts = np.ones(len(self.margins), dtype=int)
        for _ in range(results - len(counts)):
            gains = log_ndtr(self.margins * np.sqrt([counts, counts + 1]))
            counts[np.argmax(gains[1] - gains[0])] += 1
        return counts


class Floor:
    """One world, the policy of its study, and its candidates from the best to the worst."""

    def __init__(self, kind: str) -> None:
        self.world, setup = STORIES[kind]
        study = ss.Study.create(kind, MemoryStore(), **setup())
        self.plan, self.mind = study.plan, Mind(study.plan)
        self.arms = self.mind.actions({})
        self.settings = [self.plan.candidates.setting(k) for k in range(len(self.arms))]
        target = self.plan.target
        self.effect = target.sign * np.array(
            [self.world.effect(target.name, setting) for setting in self.settings]
        )
        self.inside = np.array([is_within(study, self.world, each) for each in self.settings])
        self.most = self.effect[self.inside].max()

    def candidates(self) -> Iterator[Candidate]:
        """Those that are truly within limits and better than the baseline, the best first."""
        for number in np.argsort(-self.effect, kind="stable"):
            slack = self.slack(number)
            if self.inside[number] and self.effect[number] > 0 and slack.min() > 1e-9:
                weights = self.design(number)
                lost = 1 - self.effect[number] / self.most
                yield Candidate(int(number), lost, weights / weights.sum(), slack / weights.sum())

    def slack(self, number: int) -> np.ndarray:
        """How far every side effect is from its nearer limit, in standard deviations of a result."""
        setting, found = self.settings[number], []
        for outcome in self.plan.protected:
            change = self.world.effect(outcome.name, setting)
            sides = [
                sign * (end - change) for sign, end in zip((-1, 1), outcome.limits, strict=True)
            ]
            found.append(min(sides) / self.world.noise[outcome.name])
        return np.array(found)

    def design(self, number: int) -> np.ndarray:
        """Weights of results whose sum is the candidate's effect, the level apart, with the least total.

        That total is the effect's standard deviation after one result, in those of a result; (K,).
        """
        rows = np.column_stack([self.arms.vectors, np.ones(len(self.arms))]).T
        wanted = np.append(self.arms.vectors[number], 0.0)
        found = linprog(np.ones(2 * rows.shape[1]), A_eq=np.hstack([rows, -rows]), b_eq=wanted).x
        return np.asarray(found[: rows.shape[1]] + found[rows.shape[1] :])

    def given_up(self, aim: Candidate, results: int, seed: int) -> float:
        """Share of the best reachable effect that one repetition gives up."""
        rng, told = np.random.default_rng([seed, results]), []
        for index, count in enumerate(aim.counts(results), start=1):
            outcome = self.plan.outcomes[index]
            for number in np.repeat(np.arange(len(self.arms)), _counts(aim.weights, count)):
                value = self.world.result(outcome.name, self.settings[number], rng)
                told.append((self.arms.vectors[number], index, outcome.scaled(value)))
        policy = self.mind.policy
        belief = belief_of(policy, ss.tell_all(policy, policy.init(), told))
        odds = within_odds(belief, policy.problem.limits, np.asarray(self.arms.vectors))
        return 1 - float(self.effect[odds >= LEVEL].max() / self.most)

    def least(self, results: int, runs: int) -> tuple[float, str]:
        """What is given up in the median under the best design, and which candidate that aims at."""
        least, aimed = 1.0, "nothing but the baseline"
        for aim in self.candidates():
            if aim.lost >= least:
                break
            lost = median(self.given_up(aim, results, seed) for seed in range(runs))
            if lost < least:
                least, aimed = lost, f"no. {aim.number}"
        return least, aimed


def _counts(shares: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers that add up to the total, nearest to the shares."""
    counts = np.floor(shares * total).astype(int)
    left = np.argsort(counts - shares * total, kind="stable")[: total - counts.sum()]
    counts[left] += 1
    return counts


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--runs", type=int, default=100)
    words.add_argument("--world", choices=sorted(STORIES), action="append")
    options = words.parse_args()
    print("| world | results | gives up | aimed at |\n|---|---|---|---|")
    for kind in options.world or STORIES:
        floor = Floor(kind)
        for results in RESULTS:
            lost, aimed = floor.least(results, options.runs)
            print(f"| {kind} | {results} | {lost:.0%} | {aimed} |", flush=True)
            if lost <= ENOUGH:
                break


if __name__ == "__main__":
    main()
