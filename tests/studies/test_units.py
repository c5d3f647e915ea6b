"""Factors and outcomes: what is accepted, and the scale on which units no longer matter."""

import json
import math

import numpy as np
import pytest

from sidestep.errors import InputError
from sidestep.studies.candidates import MOST, candidates_of
from sidestep.studies.factors import Factor, setting_of
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan
from sidestep.studies.scale import Scale
from sidestep.studies.values import checked_number, read_number


def test_a_grid_is_written_as_a_person_writes_it():
    factor = Factor("dose", 0, 1, step=0.1)
    assert factor.grid == (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def test_a_grid_ends_at_the_last_step_inside_the_range():
    assert Factor("dose", 0, 40, step=15).grid == (0.0, 15.0, 30.0)


def test_the_baseline_of_a_factor_is_its_low_end_or_its_first_level():
    assert Factor("dose", 5, 40).baseline == 5
    assert Factor("dose", levels=[10, 5]).baseline == 10
    assert Factor("salt", levels=["calcium", "none"]).baseline == "calcium"


@pytest.mark.parametrize(
    ("one", "other", "times"),
    [
        (Factor("f", 0, 40, step=6.25), Factor("f", 0, 0.04, step=0.00625), 0.001),
        (
            Factor("f", 0, 40, step=10, baseline=20),
            Factor("f", 0, 0.04, step=0.01, baseline=0.02),
            0.001,
        ),
        (Factor("f", 0, 30, step=0.1), Factor("f", 0, 0.3, step=0.001), 0.01),
        (Factor("f", levels=[1, 3, 7.5]), Factor("f", levels=[0.01, 0.03, 0.075]), 0.01),
    ],
)
def test_positions_are_the_same_bits_in_every_unit(one, other, times):
    for mine, theirs in zip(one.grid, other.grid, strict=True):
        assert one.coordinates(mine) == other.coordinates(theirs)
        assert other.checked(mine * times) == theirs


def test_positions_of_a_range_without_steps_are_the_same_bits_in_every_unit():
    percent, fraction = Factor("f", 0, 30), Factor("f", 0, 0.3)
    rng = np.random.default_rng(0)
    for value in np.round(rng.uniform(0, 30, 2000), 3):
        assert percent.coordinates(value) == fraction.coordinates(float(value) / 100)


def test_results_are_the_same_bits_in_mmhg_and_kpa():
    mmhg = Outcome("p", range=(100, 190), baseline=150, goal="lower")
    kpa = Outcome(
        "p", range=(100 * 0.133322, 190 * 0.133322), baseline=150 * 0.133322, goal="lower"
    )
    for value in np.arange(90, 200, 0.5).tolist():
        assert mmhg.scaled(value) == kpa.scaled(value * 0.133322)


def test_the_baseline_is_zero_and_the_range_two_wide():
    factor = Factor("dose", 0, 40, step=10, baseline=20)
    assert [factor.coordinates(value) for value in factor.grid] == [
        (-1.0,),
        (-0.5,),
        (0.0,),
        (0.5,),
        (1.0,),
    ]


def test_a_word_has_a_coordinate_of_its_own_and_the_baseline_none():
    factor = Factor("salt", levels=["none", "calcium", "sodium"])
    assert factor.width == 2
    assert [factor.coordinates(word) for word in factor.grid] == [
        (0.0, 0.0),
        (1.0, 0.0),
        (0.0, 1.0),
    ]


def test_a_target_that_should_fall_counts_a_fall_as_good():
    target = Outcome("systolic", range=(100, 190), baseline=150, goal="lower")
    assert target.scaled(105) == 1.0
    assert target.change(1.0) == -45
    assert target.value(1.0) == 105


def test_values_come_back_in_their_unit():
    outcome = Outcome("potassium", range=(3, 6), baseline=4.2)
    for value in (3.0, 4.2, 5.55):
        assert outcome.value(outcome.scaled(value)) == pytest.approx(value, abs=1e-11)


def test_a_box_is_asked_in_as_many_digits_as_a_person_can_set():
    factor = Factor("dose", 0, 40)
    assert factor.nearest(1.54255501) == 30.9
    assert Factor("dose", 0, 0.04).nearest(1.54255501) == 0.0309
    assert factor.nearest(2.1) == 40


def test_one_sided_tolerances_have_one_limit():
    assert Outcome("x", range=(0, 1), tolerance=(None, 0.1)).limits == (None, 0.1)
    assert Outcome("x", range=(0, 1), tolerance=0.1).limits == (-0.1, 0.1)


def test_an_endless_side_is_no_limit_because_toml_has_no_none():
    told = [Outcome("x", range=(0, 1), tolerance=pair) for pair in ([-math.inf, 0.1], (None, 0.1))]
    assert told[0].limits == (None, 0.1)
    assert told[0].to_config() == told[1].to_config()
    assert Outcome("x", range=(0, 1), tolerance=(-0.1, math.inf)).limits == (-0.1, None)


def test_a_wide_side_does_not_make_the_narrow_one_cheap():
    def penalty(tolerance):
        target = Outcome("taste", goal="raise", range=(0, 10))
        kept = Outcome("k", range=(0, 2), tolerance=tolerance)
        factors = (Factor("dose", 0, 1, step=1),)
        plan = Plan(factors, target, (kept,), candidates_of(factors, None))
        return Scale(plan).problem(1).limits.penalty.tolist()

    assert penalty((-1000, 0.4)) == penalty(0.4) == penalty((None, 0.4)) == [2.5]
    assert penalty((0, 0.4)) == [5.0]


@pytest.mark.parametrize(
    "thing",
    [
        Factor("dose", 0, 40, unit="mg", step=10, baseline=20),
        Factor("salt", levels=["none", "calcium"]),
        Factor("n", levels=[1, 2, 4], baseline=2),
        Outcome("k", "mmol/L", range=(3, 6), tolerance=(None, 0.3), noise=0.1, digits=2),
        Outcome("k", "mmol/L", "lower", 4.2, (3, 6), matters=1),
    ],
)
def test_factors_and_outcomes_survive_json(thing):
    config = json.loads(json.dumps(thing.to_config()))
    assert type(thing)(**config).to_config() == thing.to_config()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Factor("", 0, 1), ["name of a factor"]),
        (lambda: Factor("dose"), ["low of dose", "None"]),
        (lambda: Factor("dose", 2, 1), ["low < high"]),
        (lambda: Factor("dose", 0, float("nan")), ["high of dose", "finite"]),
        (lambda: Factor("dose", 0, 40, step=0), ["step of dose", "positive"]),
        (lambda: Factor("dose", 0, 40, step=50), ["step of dose"]),
        (lambda: Factor("dose", 0, 40, step=1e-9), ["step of dose", "10000"]),
        (lambda: Factor("dose", 0, 40, step=10, levels=[0, 40]), ["step or levels", "both"]),
        (lambda: Factor("dose", levels=[1]), ["two levels"]),
        (lambda: Factor("dose", levels="ab"), ["two levels"]),
        (lambda: Factor("dose", levels=[1, 1]), ["differ"]),
        (lambda: Factor("dose", levels=[1, "two"]), ["level of dose", "'two'"]),
        (lambda: Factor("dose", 0, 40, baseline=50), ["baseline of dose", "0 to 40"]),
        (lambda: Factor("dose", 0, 40, step=10).checked(35), ["dose", "steps of 10", "35"]),
        (lambda: Factor("dose", 0, 40, step=10).checked("4,2"), ["4.2", "point"]),
        (lambda: Factor("salt", levels=["a", "b"]).checked("c"), ["'a', 'b'", "'c'"]),
        (lambda: Factor("n", levels=[1, 2]).checked(3), ["1, 2", "3"]),
        (lambda: Outcome("k"), ["range", "None"]),
        (lambda: Outcome("k", range=(1, 1)), ["low < high"]),
        (lambda: Outcome("k", range=(0, 1), goal="up"), ["'raise', 'lower'", "'up'"]),
        (lambda: Outcome("k", range=(0, 1), tolerance=0), ["tolerance of k"]),
        (lambda: Outcome("k", range=(0, 1), tolerance=(0.1, 0.2)), ["low <= 0 <= high"]),
        (lambda: Outcome("k", range=(0, 1), tolerance=(math.inf, 0.2)), ["finite"]),
        (
            lambda: Outcome("k", range=(0, 1), tolerance=(None, math.inf)),
            ["-inf or inf", "no limit"],
        ),
        (lambda: Outcome("k", range=(0, 1), tolerance=(0.1,)), ["-inf or inf", "no limit"]),
        (lambda: Outcome("k", range=(0, 1), baseline=2), ["baseline of k", "0 to 1"]),
        (lambda: Outcome("k", range=(0, 1), noise=-1), ["noise of k"]),
        (lambda: Outcome("k", range=(0, 1), digits=12), ["digits of k"]),
        (lambda: Factor("a", levels=3), ["two levels", "3"]),
        (lambda: Outcome("k", range=(0, 1), digits=2.0), ["digits of k", "2.0"]),
        (lambda: Outcome("k", range=(0, 1), digits=True), ["digits of k", "True"]),
        (lambda: setting_of([Factor("a", 0, 1)], {"b": 1}, "given"), ["given", "'b'"]),
        (lambda: setting_of([Factor("a", 0, 1)], {}, "given"), ["given", "'a'"]),
        (
            lambda: candidates_of([Factor("a", 0, 1, step=1), Factor("b", 0, 1)], None),
            ["'a'", "'b'"],
        ),
        (lambda: candidates_of([Factor(f"f{k}", 0, 99, step=1) for k in "abc"], None), [str(MOST)]),
        (lambda: candidates_of([Factor("a", 0, 1)], {"b": [1]}), ["column", "'a'"]),
        (lambda: candidates_of([Factor("a", 0, 1)], {"a": [1, 2]}), ["row 1", "0 to 1"]),
        (lambda: candidates_of([Factor("a", 0, 1)], {"a": [0, float("nan")]}), ["row 1", "nan"]),
        (lambda: candidates_of([Factor("a", 0, 1)], 17), ["candidates", "int"]),
        (lambda: checked_number("value", 10**400), ["finite"]),
        (lambda: checked_number("value", True), ["True"]),
        (lambda: checked_number("value", 1e200), ["1e+15"]),
        (lambda: checked_number("value", "4,2"), ["4.2 with a point"]),
        (lambda: read_number("value", "1.234,5"), ["thousands without separators"]),
        (lambda: read_number("value", "<0.5"), ["below=0.3", "withdraw"]),
        (lambda: read_number("value", "1,380"), ["may be 1.380 or 1380"]),
        (lambda: read_number("value", "nan"), ["'nan'"]),
        (lambda: read_number("value", "0x10"), ["'0x10'"]),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(refusal, call, words):
    message = refusal(call)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("text", ["4.2", " 4.20", "+4.2", "42e-1"])
def test_a_number_is_read_from_its_text(text):
    assert read_number("value", text) == 4.2


def test_candidates_may_be_anyones_table():
    import pandas  # noqa: PLC0415
    import polars  # noqa: PLC0415

    factors = [Factor("a", 0, 1), Factor("salt", levels=["none", "calcium"])]
    columns = {"a": [0.0, 0.5], "salt": ["none", "calcium"], "label": ["x", "y"]}
    wanted = ((0.0, "none"), (0.5, "calcium"))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for table in (columns, pandas.DataFrame(columns), polars.DataFrame(columns), rows):
        assert candidates_of(factors, table).rows == wanted


def test_candidates_may_be_a_csv_file(tmp_path):
    path = tmp_path / "regimens.csv"
    factors = [Factor("a", 0, 1), Factor("salt", levels=["none", "calcium"])]
    for text in ("a,salt\n0,none\n0.5,calcium\n", "a; salt\n0; none\n0.5; calcium\n;\n"):
        path.write_text(text)
        assert candidates_of(factors, path).rows == ((0.0, "none"), (0.5, "calcium"))


def test_the_grid_is_every_combination():
    grid = candidates_of([Factor("a", 0, 2, step=1), Factor("b", levels=["x", "y"])], None)
    assert len(grid) == 6
    assert grid.setting(1) == {"a": 0.0, "b": "y"}
    assert grid.find({"a": 0.0, "b": "y"}) == 1
    assert candidates_of([Factor("a", 0, 2)], None).is_box


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("4,2", 4.2),
        ("\u22120,125", -0.125),
        ("138,0", 138.0),
        ("12,3456", 12.3456),
        ("1234,567", 1234.567),
        ("0,250", 0.25),
        (",5", 0.5),
        ("1.380", 1.38),
    ],
)
def test_a_decimal_comma_is_understood_where_it_can_mean_nothing_else(typed, meant):
    assert read_number("value", typed) == meant


@pytest.mark.parametrize(
    "typed", ["1,380", "-12,500", "999,000", "1,2,3", "1.234,5", "1,234.5", ","]
)
def test_a_comma_that_may_separate_thousands_is_refused(typed):
    with pytest.raises(InputError, match="value must be a number"):
        read_number("value", typed)
