"""Variants of a shipped experiment: other runs, a shorter horizon, the user's table."""

import pytest

from sidestep.errors import InputError
from sidestep.experiments.spec import Spec, jobs_of, parse_spec, shipped_specs
from sidestep.experiments.variants import patients_of, shortened, with_table


def shipped(name):
    return parse_spec(shipped_specs()[name], name)


def horizons(spec):
    return {world.id: world.horizon or spec.horizon for world in spec.worlds}


def test_without_changes_a_variant_equals_the_spec():
    spec = shipped("panel")
    assert shortened(spec, {"runs": None, "horizon": None, "seed": None}) == spec


def test_runs_that_are_asked_for_hold_on_every_world():
    spec = shortened(shipped("panel"), {"runs": 2})
    assert {job.run for job in jobs_of(spec)} == {0, 1}
    assert any(job.world_id == "blind-spot-family" for job in jobs_of(spec))


def test_worlds_with_a_horizon_of_their_own_are_cut_and_never_stretched():
    spec = shipped("panel")
    for most in (200, 2500, 10**6):
        own = {w.id: w.horizon for w in shortened(spec, {"horizon": most}).worlds if w.horizon}
        before = {w.id: w.horizon for w in spec.worlds if w.id in own}
        assert own == {
            name: horizon if "lower-bound" in name else min(horizon, most)
            for name, horizon in before.items()
        }


def test_a_world_whose_vectors_depend_on_the_horizon_is_not_cut_but_left_out():
    assert not any(
        "lower-bound" in name for name in horizons(shortened(shipped("panel"), {"horizon": 200}))
    )
    assert horizons(shortened(shipped("lower-bound"), {"horizon": 200})) == {
        "lower-bound-1-T300": 300,
        "lower-bound-2-T300": 300,
    }


def test_tuning_seeds_follow_the_first_seed_and_are_not_more_than_the_runs():
    spec = shipped("synthetic")
    assert spec.tune_seeds == (1000, 1009)
    assert shortened(spec, {"runs": 3}).tune_seeds == (1000, 1002)
    assert shortened(spec, {"runs": 30, "seed": 1000}).tune_seeds == (2000, 2009)
    with pytest.raises(InputError, match=r"synthetic: tune_seeds must be .*shown are 0 to 1000"):
        shortened(spec, {"runs": 1001})


@pytest.mark.parametrize(("most", "every"), [(4, 1), (200, 10), (10**6, 50)])
def test_a_shorter_run_keeps_its_rounds_more_closely(most, every):
    assert shipped("panel").every == 50
    assert shortened(shipped("panel"), {"horizon": most}).every == every


def test_a_policy_of_some_worlds_loses_those_that_are_left_out():
    spec = shipped("panel")
    first = spec.policies[0].model_copy(update={"worlds": ["lower-bound-1", "failure-r1"]})
    change = {"policies": [first, *spec.policies[1:]]}
    cut = shortened(spec.model_copy(update=change), {"horizon": 200})
    assert cut.policies[0].worlds == ["failure-r1"]
    assert Spec.model_validate_json(cut.model_dump_json()) == cut


@pytest.mark.parametrize("name", ["warfarin", "panel"])
def test_the_table_goes_to_the_warfarin_worlds_and_to_no_other(name, iwpc, tmp_path):
    spec = with_table(shipped(name), iwpc)
    for world in spec.worlds:
        assert ("path" in world.knobs) == (world.world == "warfarin")
    assert patients_of(spec)
    assert all("distinct arms" in text for text in patients_of(spec))


def test_an_experiment_without_patients_needs_no_table():
    spec = shipped("failure")
    assert with_table(spec, None) == spec
    assert patients_of(spec) == []
