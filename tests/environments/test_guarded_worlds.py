"""Worlds with tolerances: what they are made of, and that there is something to win in each."""

import numpy as np
import pytest

from sidestep import environments
from sidestep.core.objective import within
from sidestep.environments.genie import Genie
from sidestep.experiments.sweep import within_all

LISTED = {
    "guarded_arms": {},
    "dose_grid": {},
    "actg_like": {},
    "warfarin_lookalike": {"preset": "full-rank", "tolerance": 0.15, "penalty": 5.0},
}


def worlds(count=5):
    for name, knobs in LISTED.items():
        for seed in range(count):
            yield getattr(environments, name)(seed=seed, **knobs)
    yield environments.diabetes(tolerance=0.15, penalty=5.0)


@pytest.mark.full
def test_the_genie_plays_the_arm_that_is_worth_most_within_tolerances():
    for world in worlds(3):
        values = within(world.theta[None], world.actions.vectors, world.problem.limits)[0]
        decision = Genie(world).ask(None, world.actions, np.random.default_rng(0))
        assert decision.value == pytest.approx(values.max())
        assert world.regret(decision.query, world.actions) == pytest.approx(0.0)


def test_there_is_something_to_win_and_ignoring_the_tolerances_loses_it():
    gains, greedy = [], []
    for world in worlds():
        arms = world.actions.vectors
        values = within(world.theta[None], arms, world.problem.limits)[0]
        gains.append(values.max())
        greedy.append(values[(arms @ world.theta[0]).argmax()])
    assert min(gains) > 0.03
    assert np.mean(np.array(greedy) < np.array(gains) - 0.1) > 0.9


def test_arms_have_lengths_from_a_tenth_to_one_and_the_vectors_of_synthetic():
    world = environments.guarded_arms(seed=3)
    lengths = np.linalg.norm(world.actions.vectors, axis=1)
    assert lengths.min() >= 0.1
    assert lengths.max() <= 1.0
    np.testing.assert_array_equal(world.theta, environments.synthetic(seed=3).theta)


def test_the_dose_grid_has_every_combination_and_levels_that_are_not_told():
    world = environments.dose_grid(seed=1)
    assert world.actions.vectors.shape == (81, 10)
    assert (world.actions.vectors == 0).all(axis=1).sum() == 1  # nothing is given
    assert world.problem.intercept
    assert np.abs(world.truth.level).min() > 0


def test_the_best_setting_of_the_box_is_within_its_tolerances():
    for seed in range(5):
        world = environments.dose_box(seed=seed)
        best = Genie(world).ask(None, world.actions, np.random.default_rng(0))
        assert within_all(world, best.query.action[None])[0]
        assert best.value > 0.1


def test_only_a_rise_of_two_outcomes_of_the_trial_harms():
    world = environments.actg_like(seed=2)
    limits = world.problem.limits
    assert world.actions.vectors.shape == (500, 15)
    np.testing.assert_array_equal(limits.low, [-0.1, -np.inf, -np.inf])
    np.testing.assert_array_equal(limits.high, [0.1, 0.1, 0.1])


def test_without_a_tolerance_the_patients_are_the_paper_s():
    plain, guarded = environments.diabetes(), environments.diabetes(tolerance=0.15, penalty=5.0)
    assert plain.problem.limits is None
    np.testing.assert_array_equal(plain.theta, guarded.theta)


@pytest.mark.parametrize("name", ["guarded_arms", "dose_grid", "dose_box", "actg_like"])
def test_a_wrong_tolerance_is_refused_in_a_sentence(name, refusal):
    assert "tolerance" in refusal(getattr(environments, name), tolerance=-0.1)
