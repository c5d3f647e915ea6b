"""Choosing a point of a grid: what it costs in honesty to choose on the runs that are shown."""

import numpy as np
import polars
import pytest
from made_up import spec_of

from sidestep.experiments.analysis.run_facts import Run
from sidestep.experiments.analysis.tuning import HERE, choices
from sidestep.experiments.spec import jobs_of

POINTS, RUNS, WORLDS = 10, 4, 400
GRID = {"id": "greedy", "policy": "epsilon-greedy", "grid": {"epsilon": list(range(POINTS))}}


def mean_of_the_chosen(spec, rng):
    """Mean of the shown runs of the chosen point, in standard errors, if all points are equally good."""
    shown, tuning = {}, {}
    for job in jobs_of(spec):
        frame = polars.DataFrame({"cumulative_regret": [rng.normal()]})
        (tuning if job.tuning else shown).setdefault(job.policy_id, []).append(Run(job, {}, frame))
    choice = choices(spec, shown, tuning)["greedy"]
    assert (choice.on == HERE) == (not spec.tuning)
    return np.mean([run.final for run in shown[choice.policy]]) * np.sqrt(RUNS)


@pytest.mark.parametrize(
    ("seeds", "expected", "spread"),
    # the lowest of ten standard normal numbers has mean -1.539 and sd 0.587; one of them 0 and 1
    [(None, -1.539, 0.587), ((1000, 1003), 0.0, 1.0)],
)
def test_only_a_choice_on_other_seeds_leaves_the_mean_as_it_is(seeds, expected, spread):
    rng = np.random.default_rng(3)
    spec = spec_of(GRID, runs=RUNS, tune_seeds=seeds)
    found = np.mean([mean_of_the_chosen(spec, rng) for _ in range(WORLDS)])
    assert abs(found - expected) < 4 * spread / np.sqrt(WORLDS)
