"""Factors and outcomes on a logarithmic scale: coordinates, tolerances in percent, cards, the record."""

import math

import pytest

from sidestep import Factor, Outcome, Study
from sidestep.errors import InputError
from sidestep.studies.plan import plan_from_config
from sidestep.studies.setup import read_setup


def dose(**given):
    return Factor("dose", **{"low": 0, "high": 100, "scale": "log", "offset": 1, **given})


def size(**given):
    told = {"range": (50, 200), "scale": "log", "tolerance": "2%", **given}
    return Outcome("size", "nm", **told)


def test_what_counts_of_a_dose_on_a_log_scale_is_by_how_many_times_it_is_larger():
    factor = Factor("rate", 1, 100, scale="log")
    low, middle, high = (factor.coordinates(value)[0] for value in (1, 10, 100))
    assert (low, middle, high) == (0.0, 1.0, 2.0)


def test_a_log_scale_has_the_same_coordinates_in_every_unit():
    grams = Factor("dose", 0, 0.04, step=0.01, scale="log", offset=0.005)
    milligrams = Factor("dose", 0, 40, step=10, scale="log", offset=5)
    for place in range(5):
        assert grams.coordinates(grams.grid[place]) == milligrams.coordinates(
            milligrams.grid[place]
        )


def test_the_value_of_a_coordinate_comes_back_on_a_log_scale():
    factor = dose(baseline=10)
    for value in (0, 0.5, 10, 73, 100):
        assert factor.nearest(factor.coordinates(value)[0]) == pytest.approx(
            value, rel=2e-3, abs=2e-3
        )


def test_a_log_scale_needs_values_above_zero_or_an_offset():
    with pytest.raises(InputError, match="must lie above 0 .* offset"):
        Factor("dose", 0, 40, scale="log")
    with pytest.raises(InputError, match="offset of dose belongs to scale"):
        Factor("dose", 0, 40, offset=1)
    with pytest.raises(InputError, match="is for numbers"):
        Factor("salt", levels=["a", "b"], scale="log")
    with pytest.raises(InputError, match="scale of dose must be one of 'log'"):
        Factor("dose", 1, 40, scale="ln")


def test_changes_of_a_log_outcome_are_percentages():
    outcome = size()
    assert outcome.limits == (-2.0, 2.0)
    assert outcome.change_unit == "%"
    assert outcome.level == pytest.approx(100)
    assert outcome.change(outcome.change_scaled(25.0)) == pytest.approx(25.0)
    assert outcome.value(outcome.scaled(125.0)) == pytest.approx(125.0)
    assert outcome.scaled(125.0) == pytest.approx(outcome.change_scaled(25.0))
    assert outcome.scaled(200.0) == pytest.approx(1.0)
    assert outcome.error_scaled(1.25, 125.0) == pytest.approx(0.01 / math.log(2))


def test_a_target_that_should_fall_keeps_its_sign_on_a_log_scale():
    target = Outcome("crp", "mg/L", goal="lower", range=(1, 100), scale="log", matters="10%")
    assert target.change(target.scaled(1.0)) == pytest.approx(-90.0)
    assert target.change_scaled(-50.0) == pytest.approx(math.log(0.5) / math.log(10))


@pytest.mark.parametrize("tolerance", ["2%", ("-2%", None), (None, "+5%"), ("−2 %", "3%")])
def test_a_tolerance_in_percent_is_stored_and_read_again(tolerance):
    outcome = size(tolerance=tolerance, noise=("1%", "3%"))
    assert Outcome(**outcome.to_config()) == outcome


def test_percent_belongs_to_a_log_scale_and_a_log_scale_to_percent():
    with pytest.raises(InputError, match='in percent, such as "2%"'):
        size(tolerance=2.0)
    with pytest.raises(InputError, match='in percent only on scale="log"'):
        Outcome("size", "nm", range=(50, 200), tolerance="2%")
    with pytest.raises(InputError, match="above -100%"):
        size(tolerance=("-100%", None))
    with pytest.raises(InputError, match="must lie above 0"):
        size(range=(0, 200))


def test_the_noise_may_be_told_roughly():
    outcome = Outcome("bp", range=(100, 200), noise=(3, 8))
    assert outcome.noise_scaled == (0.06, 0.16)
    with pytest.raises(InputError, match="low < high"):
        Outcome("bp", range=(100, 200), noise=(8, 3))


def test_absolute_limits_leave_some_of_the_range():
    assert Outcome("k", range=(3, 6), tolerance=0.3, never=(None, 5.5)).never == (None, 5.5)
    with pytest.raises(InputError, match="must leave some of its range"):
        Outcome("k", range=(3, 6), tolerance=0.3, never=(None, 2.0))
    with pytest.raises(InputError, match="low < high"):
        Outcome("k", range=(3, 6), tolerance=0.3, never=(None, None))


def a_study(**given):
    return Study.create(
        "particles",
        "memory:",
        factors=[dose(levels=[0, 1, 3, 10, 30, 100], low=None, high=None)],
        target=Outcome("yield", "%", goal="raise", range=(0, 100)),
        protected=[size()],
        **given,
    )


def test_cards_state_percentages_of_a_log_outcome():
    study = a_study()
    for value, yielded, large in ((0, 20, 100), (10, 30, 101), (100, 40, 103), (30, 35, 102)):
        study.tell(None, {"yield": yielded, "size": large}, given={"dose": value})
    best = study.best()
    assert "%" in str(study.explain()) or best.effects["size"].low < best.effects["size"].high
    ticket = study.ask()
    assert "limit ±2.0" in str(ticket.card) or ticket.action == {"dose": 0.0}


def test_a_result_on_a_log_scale_must_be_above_zero():
    with pytest.raises(InputError, match="must be above 0"):
        a_study().tell(None, {"size": 0}, given={"dose": 1})


def test_a_plan_with_logarithms_has_a_version_that_older_programs_refuse():
    plan = a_study().plan
    assert plan.to_config()["version"] == 2
    assert plan_from_config(plan.to_config(), None) == plan
    with pytest.raises(InputError, match="newer sidestep"):
        plan_from_config(plan.to_config() | {"version": 3}, None)


def test_a_file_may_state_logarithms(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        """
[[factors]]
name = "dose"
low = 0
high = 40
scale = "log"
offset = 1

[target]
name = "crp"
goal = "lower"
range = [1, 100]
scale = "log"
matters = "5%"

[[protected]]
name = "size"
range = [50, 200]
scale = "log"
tolerance = ["-2%", inf]
noise = ["1%", "3%"]
never = [-inf, 150]
""",
        encoding="utf-8",
    )
    setup = read_setup(path)
    assert setup["factors"][0].offset == 1
    assert setup["protected"][0].limits == (-2.0, None)
    assert setup["protected"][0].never == (None, 150)
