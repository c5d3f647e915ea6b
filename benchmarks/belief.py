"""What a belief costs: a result, opening, effects of all candidates, a question.

python benchmarks/belief.py
python benchmarks/belief.py --candidates 20000 --told nothing --pooled

CPU time of one process in ms, and how many dense passes that is: the product of a (K, 100) and a
(100, 100) table of numbers, timed in the same process.
"""

# ruff: noqa: E402  (the number of threads must be set before numpy is imported)
import argparse
import os
import resource
import statistics
import time
from collections.abc import Callable

for threads in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{threads}_NUM_THREADS"] = "1"

import numpy as np

from sidestep import Factor
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.knowledge import UNKNOWN, Knowledge, Part
from sidestep.studies.learning.learner import Learner, told_of
from sidestep.studies.learning.next_question import Inquiry, next_question
from sidestep.studies.learning.observations import Observation, Sums
from sidestep.studies.learning.prior import S0, prior_of
from sidestep.studies.learning.recommendation import choice_of

FACTORS, OUTCOMES = 4, 5
SPREAD = 60  # settings that the results are spread over
LIMITS = [None] + [(-0.3, 0.3)] * (OUTCOMES - 1)


class Times(dict):
    """CPU seconds of every task."""

    def take(self, name: str, task: Callable, *arguments) -> object:
        start = time.process_time()
        found = task(*arguments)
        self.setdefault(name, []).append(time.process_time() - start)
        return found


def memory() -> float:
    """Most memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def settings_of(axes: list[Factor], count: int, rng: np.random.Generator) -> np.ndarray:
    """So many points of the grid, the baseline first."""
    grid = np.stack(np.meshgrid(*[axis.grid for axis in axes], indexing="ij"), -1)
    points = grid.reshape(-1, len(axes))
    rest = rng.permutation(np.arange(1, len(points)))[: count - 1]
    return points[np.concatenate([[0], np.sort(rest)])]


def pooled(features: Features, slopes: np.ndarray) -> list[Part]:
    """A prior that four earlier studies taught, at four scales between studies, and a stranger."""
    parts = [Part("stranger", 0.4)]
    columns = np.concatenate([features.straight(f.name) for f in features.factors])
    for scale in (0.1, 0.3, 0.6, 0.9):
        variants = []
        for slope in slopes:
            share, mean = np.ones(features.count), np.zeros(features.count)
            root = np.zeros((features.count, len(columns)))
            share[columns], mean[columns] = scale**2, slope / 2
            root[columns, np.arange(len(columns))] = 0.3 * S0
            variants.append([(1.0, Knowledge(share, mean, np.zeros(features.count), root))])
        parts.append(Part(f"scale {scale}", 0.15, variants))
    return parts


def every(effects) -> None:
    for outcome in range(OUTCOMES):
        effects.mean(outcome), effects.spread(outcome)


def told(learner: Learner, outcome: int, observation: Observation) -> object:
    learner.add(outcome, observation)
    return learner.belief()


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--candidates", type=int, default=2000)
    words.add_argument("--results", type=int, default=200)
    words.add_argument("--told", choices=["noise", "nothing"], default="noise")
    words.add_argument("--pooled", action="store_true", help="with a prior of earlier studies")
    words.add_argument("--repeats", type=int, default=15)
    options = words.parse_args()
    rng, before, times = np.random.default_rng(1), memory(), Times()
    steps = round(options.candidates ** (1 / FACTORS)) + 1
    axes = [Factor(f"x{i}", levels=[k / steps for k in range(steps)]) for i in range(FACTORS)]
    chosen = settings_of(axes, options.candidates, rng)
    settings = [dict(zip([a.name for a in axes], map(float, row), strict=True)) for row in chosen]
    slopes = rng.normal(size=(OUTCOMES, FACTORS)) * 0.3
    features = Features(axes)
    points = times.take("candidates as features, once", features.points, settings)
    parts = pooled(features, slopes) if options.pooled else UNKNOWN
    noise = 0.1 if options.told == "noise" else None
    learner = Learner(features, [told_of(noise)] * OUTCOMES, prior_of(None), parts)
    tried = rng.choice(len(settings), SPREAD, replace=False)

    def result(number: int) -> tuple[int, Observation]:
        at, outcome = int(tried[rng.integers(SPREAD)]), number % OUTCOMES
        value = float(slopes[outcome] @ np.sqrt(chosen[at])) + 0.1 * rng.standard_normal()
        return outcome, Observation(int(points.place[at]), value, round=number)

    for number in range(options.results):
        learner.add(*result(number))
    stored = [each.to_json() for each in learner.sums]
    for _ in range(3):
        cold = Learner(features, learner.told, learner.prior, parts)
        cold.take([Sums.from_json(each) for each in stored])
        belief = times.take("belief from all results", cold.belief)
        times.take("effects of all candidates, all new", every, belief.at(points))
    every(learner.belief().at(points))
    for number in range(options.repeats):
        belief = times.take("one more result: belief", told, learner, *result(1000 + number))
        effects = belief.at(points)
        times.take("one more result: effects of all candidates", every, effects)
        times.take("recommendation, effects known", choice_of, effects, LIMITS)
        inquiry = Inquiry(effects, belief.values(points), LIMITS, [40] * OUTCOMES)
        times.take("question, effects known", next_question, inquiry)
    table, square = rng.normal(size=(len(settings), 100)), rng.normal(size=(100, 100))
    for _ in range(20):
        times.take("a dense pass", np.matmul, table, square)
    one = statistics.median(times["a dense pass"])
    print(f"{len(settings)} candidates, {FACTORS} factors, {OUTCOMES} outcomes")
    print(f"{options.results} results, noise {'told' if noise else 'not told'}, {len(parts)} parts")
    print(f"{'CPU ms':45s}  median  largest  passes")
    for name, each in times.items():
        ms, most = 1000 * statistics.median(each), 1000 * max(each)
        print(f"  {name:43s} {ms:7.1f} {most:8.1f} {ms / one / 1000:7.0f}")
    print(f"  memory {memory():.0f} MB, {memory() - before:.0f} of it for this")
    print(f"  components {[len(each) for each in belief.mixtures]}")


if __name__ == "__main__":
    main()
