"""Regret of DirectedThompson compared with that of the paper's policy, with the same seeds.

Means over 50 runs. For each claim the paired 95% interval of ours minus the factor times theirs must lie
below zero.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import sidestep as ss
from sidestep.environments import blind_spot_family, synthetic, warfarin

pytestmark = pytest.mark.slow

RUNS = 50


def finals(policy, world, horizon, runs=RUNS):
    """Final regret of every run, and whether its last half cost more than 0.9 of its first."""
    regret, straight = [], []
    for seed in range(runs):
        instance = world(seed)
        trace = ss.simulate(policy(instance.problem), instance, horizon, seed, every=horizon // 2)
        half, full = trace.cumulative_regret[0], trace.cumulative_regret[-1]
        regret.append(full)
        straight.append(full - half > 0.9 * half)
    return np.array(regret), np.array(straight)


def surely_at_most(factor, ours, theirs):
    """Whether the paired 95% interval of ours - factor theirs ends below zero."""
    gap = ours - factor * theirs
    error = gap.std(ddof=1) / np.sqrt(len(gap))
    return gap.mean() + stats.t.isf(0.025, len(gap) - 1) * error <= 0


@pytest.mark.parametrize(("R", "horizon", "factor"), [(0.001, 1000, 0.2), (0.1, 3000, 0.05)])
def test_on_fresh_arms_regret_is_a_fraction_of_the_papers(R, horizon, factor):
    def world(seed):
        return synthetic(noise_scale=R, seed=seed)

    ours, _ = finals(ss.DirectedThompson, world, horizon)
    theirs, _ = finals(ss.ProtectedLinUCB.as_intended, world, horizon)
    assert surely_at_most(factor, ours, theirs)


def test_at_noise_one_regret_is_a_quarter_of_the_better_core_set():
    def world(seed):
        return synthetic(noise_scale=1.0, seed=seed)

    ours, _ = finals(ss.DirectedThompson, world, 10_000)
    for rival in (ss.ProtectedLinUCB.as_intended, ss.ProtectedLinUCB):
        assert surely_at_most(0.25, ours, finals(rival, world, 10_000)[0])


@pytest.mark.parametrize(("R", "factor"), [(0.001, 0.1), (0.1, 0.3)])
def test_on_the_warfarin_records_regret_is_a_fraction_of_the_papers(iwpc, R, factor):
    table = warfarin(iwpc, preset="full-rank", scale="max", noise_scale=R)
    ours, _ = finals(ss.DirectedThompson, lambda seed: table, 1000)
    theirs, _ = finals(ss.ProtectedLinUCB.as_intended, lambda seed: table, 1000)
    assert surely_at_most(factor, ours, theirs)


def test_in_two_hundred_blind_spots_one_run_at_most_is_linear_and_regret_is_a_fraction():
    ours, straight = finals(ss.DirectedThompson, blind_spot_family, 3000, 200)
    uniform, _ = finals(ss.Uniform, blind_spot_family, 3000, 200)
    assert (straight & (ours > 0.1 * uniform)).sum() <= 1
    plain, _ = finals(ss.ProtectedThompson, blind_spot_family, 3000, 200)

    def optimist(problem):
        return ss.ProtectedLinUCB(problem, surrogate="ellipsoid")

    exact, _ = finals(optimist, blind_spot_family, 3000, 200)
    assert ours.mean() <= 0.1 * plain.mean()
    assert surely_at_most(0.3, ours, exact)


@pytest.mark.parametrize(("R", "horizon"), [(0.001, 1000), (0.01, 1000), (0.1, 3000)])
def test_a_resolution_instead_of_the_rank_costs_less_than_a_third_more(R, horizon):
    def world(seed):
        return synthetic(noise_scale=R, seed=seed)

    def untold(problem):
        return ss.DirectedThompson(replace(problem, subspace_dim=None, resolution=0.1))

    told, _ = finals(ss.DirectedThompson, world, horizon)
    assert surely_at_most(1.3, finals(untold, world, horizon)[0], told)
