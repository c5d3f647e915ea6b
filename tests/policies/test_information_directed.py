"""InformationDirected: what it measures, and where it beats DirectedThompson."""

import numpy as np
import pytest

import sidestep as ss
from benchmarks.information import WORLDS
from sidestep.environments import held_out


def regrets(policy, make, horizon, runs):
    worlds = [make(seed) for seed in range(runs)]
    return np.array(
        [
            ss.simulate(policy(world.problem), world, horizon, seed=seed).cumulative_regret[-1]
            for seed, world in enumerate(worlds)
        ]
    )


def fresh(seed):
    return ss.environments.synthetic(6, 4, 2, arms=30, noise_scale=0.1, seed=seed)


def test_it_is_in_the_catalog_and_at_the_front_door():
    problem = ss.Problem(dim=3, n_protected=2, subspace_dim=1, noise_scale=0.1)
    assert ss.policies.from_config("information-directed", problem) == ss.InformationDirected(
        problem
    )


def test_where_the_rank_is_not_told_it_needs_a_resolution(refusal):
    problem = ss.Problem(dim=3, n_protected=2, noise_scale=0.1)
    assert "resolution" in refusal(ss.InformationDirected, problem)


@pytest.mark.full
def test_it_measures_every_vector_of_a_plane_with_two():
    world = fresh(0)
    trace = ss.simulate(ss.InformationDirected(world.problem), world, 60, seed=0, compiled=False)
    assert (trace.counts > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "most"),
    [("fresh arms, R=.1", 0.75), ("fresh arms, R=1", 0.75), ("low-rank arms, R=.1", 0.75)],
)
def test_where_every_direction_is_shown_it_has_three_quarters_of_its_siblings_regret(
    world, most, oracle
):
    family = WORLDS[world]
    ours = regrets(ss.InformationDirected, family.make, family.horizon, 50)
    sibling = regrets(ss.DirectedThompson, family.make, family.horizon, 50)
    assert oracle.mean_at_most(ours - most * sibling, 0.0)


@pytest.mark.slow
def test_told_vectors_ten_times_too_long_it_has_no_more_regret_than_its_sibling(oracle):
    ours, sibling = (
        regrets(policy, lambda seed: held_out("wide-prior", seed=seed), 1000, 15)
        for policy in (ss.InformationDirected, ss.DirectedThompson)
    )
    assert oracle.mean_at_most(ours - 0.75 * sibling, 0.0)


@pytest.mark.slow
def test_on_the_blind_spot_it_does_not_lock_in(oracle):
    world = ss.environments.blind_spot(noise_scale=0.1)
    ours = regrets(ss.InformationDirected, lambda _: world, 3000, 50)
    assert oracle.at_most(int((ours > 200).sum()), 50, 0.02)


def test_over_arms_with_known_levels_it_plays_within_tolerances_as_its_sibling_does():
    world = ss.environments.guarded_arms(seed=1, noise_scale=0.1)
    ours, sibling = (
        ss.simulate(policy(world.problem), world, 40, seed=3, compiled=False)
        for policy in (ss.InformationDirected, ss.DirectedThompson)
    )
    assert (ours.arm == sibling.arm).all()
    assert (ours.index == sibling.index).all()


def test_in_a_solid_within_tolerances_it_weighs_information_unlike_its_sibling():
    world = ss.environments.dose_box(seed=0, noise_scale=0.1)
    ours, sibling = (
        ss.simulate(policy(world.problem), world, 10, seed=3, compiled=False)
        for policy in (ss.InformationDirected, ss.DirectedThompson)
    )
    assert not np.array_equal(ours.regret, sibling.regret)
