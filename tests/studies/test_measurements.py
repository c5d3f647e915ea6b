"""Results as people have them: errors, repeats, below detection, changes; told, kept, corrected."""

import json

import pytest

from sidestep import Factor, Outcome, Study
from sidestep.errors import AlreadyAnswered, InputError, KeyReused
from sidestep.studies.book import Book
from sidestep.studies.measurement import Measurement, is_report, read_report
from sidestep.studies.storage.exchange import import_study
from sidestep.studies.storage.memory import MemoryStore


def a_study(storage="memory:", **given):
    settings = {
        "factors": [Factor("dose", 0, 40, step=10), Factor("salt", levels=["low", "high"])],
        "target": Outcome("pressure", "mmHg", goal="lower", range=(100, 190)),
        "protected": [
            Outcome("potassium", "mmol/L", range=(3, 6), tolerance=0.3),
            Outcome("size", "nm", range=(50, 200), scale="log", tolerance="5%"),
        ],
    }
    return Study.create("trial", storage, **(settings | given))


def results_of(study):
    book = Book()
    book.take(study.history())
    return [result.measured for result in book.results.values()]


AT = {"dose": 20, "salt": "low"}
TOLD = {
    "a value": ({"value": 4.1}, Measurement(4.1), "4.1 mmol/L"),
    "an estimate": (
        {"value": 4.1, "se": 0.12},
        Measurement(4.1, se=0.12),
        "4.1 ± 0.12 mmol/L",
    ),
    "a mean": (
        {"value": 4.1, "repeats": 3},
        Measurement(4.1, repeats=3),
        "4.1 mmol/L, the mean of 3",
    ),
    "below detection": ({"below": 3.3}, Measurement(3.3, "below"), "below 3.3 mmol/L"),
    "a change": (
        {"change": -0.4, "se": 0.2},
        Measurement(-0.4, "change", se=0.2),
        "a change of −0.4 ± 0.2 mmol/L against the baseline",
    ),
    "a change against another setting": (
        {"change": -0.4, "against": {"dose": 10}},
        Measurement(-0.4, "change", against={"dose": 10.0, "salt": "low"}),
        "against dose 10, salt low",
    ),
    "a block": (
        {"value": 4.1, "block": "lab B"},
        Measurement(4.1, block="lab B"),
        "4.1 mmol/L (lab B)",
    ),
}


@pytest.mark.parametrize(("told", "kept", "text"), TOLD.values(), ids=TOLD)
def test_a_result_is_saved_and_counts_as_it_was_told(told, kept, text):
    study = a_study()
    receipt = study.tell(None, measured="potassium", given=AT, **told)
    assert text in " ".join(str(receipt.card).split())
    assert results_of(study) == [kept]
    again = MemoryStore()
    import_study(again, study.export())
    assert results_of(Study.open("trial", again)) == [kept]


def test_an_outcome_of_a_panel_may_have_its_own_error():
    study = a_study()
    panel = {
        "pressure": {"value": 141.0, "se": 2.0},
        "potassium": {"below": 3.3},
        "size": {"change": "-4%", "se": "2%"},
    }
    study.tell(None, panel, given=AT, block="lab B")
    assert results_of(study) == [
        Measurement(141.0, se=2.0, block="lab B"),
        Measurement(3.3, "below", block="lab B"),
        Measurement(-4.0, "change", se=2.0, block="lab B"),
    ]


def test_the_same_value_with_another_error_is_a_conflict():
    study = a_study()
    ticket = study.ask(panel=["potassium"])
    study.tell(ticket, 4.1, se=0.1)
    assert study.tell(ticket, 4.1, se=0.1).repeated
    with pytest.raises(AlreadyAnswered, match=r"4.1 ± 0.1 mmol/L .* 4.1 ± 0.2 mmol/L was not"):
        study.tell(ticket, 4.1, se=0.2)
    with pytest.raises(AlreadyAnswered):
        study.tell(ticket, 4.1)
    with pytest.raises(AlreadyAnswered):
        study.tell(ticket, below=4.1)
    with pytest.raises(AlreadyAnswered):
        study.tell(ticket, 4.1, se=0.1, block="lab B")


def test_a_key_repeats_only_the_same_result():
    study = a_study()
    told = {"measured": "potassium", "given": AT, "key": "k1"}
    entries = study.tell(None, 4.1, se=0.1, **told).entries
    assert study.tell(None, 4.1, se=0.1, **told).entries == entries
    with pytest.raises(KeyReused, match="another request"):
        study.tell(None, 4.1, se=0.2, **told)


def test_a_correction_takes_what_tell_takes_and_keeps_what_it_does_not_name():
    study = a_study()
    number = study.tell(None, 4.1, se=0.1, measured="potassium", given=AT, block="lab B").entries[0]
    study.correct(number, 4.3, reason="misread")
    assert results_of(study) == [Measurement(4.3, se=0.1, block="lab B")]
    study.correct(number, 4.3, se=0.2, reason="two devices")
    assert results_of(study) == [Measurement(4.3, se=0.2, block="lab B")]
    study.correct(number, below=3.3, reason="below detection")
    assert results_of(study) == [Measurement(3.3, "below", block="lab B")]
    assert "is now below 3.3 mmol/L" in str(study.correct(number, below=3.3, reason="x").card)
    study.withdraw(number, reason="spilled")
    assert results_of(study) == []
    study.correct(number, 4.2, reason="found again")
    assert results_of(study) == [Measurement(4.2)]


WRONG = {
    "nothing": ({}, "must be told a value, below or change"),
    "two kinds": ({"value": 4, "below": 3}, "value and below"),
    "an error of zero": ({"value": 4, "se": 0}, "se of potassium must be positive"),
    "an error and repeats": ({"value": 4, "se": 1, "repeats": 2}, "se or repeats, got both"),
    "half a repeat": ({"value": 4, "repeats": 1.5}, "whole number, 1 or more"),
    "an error of a limit": ({"below": 4, "se": 1}, "without se and repeats"),
    "a control of a value": ({"value": 4, "against": {"dose": 10}}, "belongs to a change"),
    "a control that is no setting": ({"change": 1, "against": {"dos": 10}}, "against must name"),
    "a percentage": ({"change": "4%"}, "must be a number"),
    "an unreadable block": ({"value": 4, "block": ""}, "block must be one line"),
}


@pytest.mark.parametrize(("told", "sentence"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_refused_with_a_sentence_and_nothing_is_saved(told, sentence):
    study = a_study()
    with pytest.raises(InputError, match=sentence):
        study.tell(None, measured="potassium", given=AT, **told)
    assert len(study.history()) == 1


def test_an_error_beside_a_panel_is_refused():
    with pytest.raises(InputError, match="for every outcome of a panel"):
        a_study().tell(None, {"potassium": 4.1}, se=0.1, given=AT)


def test_a_mapping_is_a_report_only_where_its_keys_are_no_outcomes():
    study = a_study(target=Outcome("change", goal="raise", range=(0, 10)))
    study.tell(None, {"change": 3}, given=AT)
    assert results_of(study) == [Measurement(3.0)]
    assert [is_report(each) for each in ({"value": 3}, {"sodium": 3}, {})] == [True, False, False]


TYPED = {
    "138": 138.0,
    "2.31 ± 0.12": {"value": 2.31, "se": 0.12},
    "2.31+-0.12": {"value": 2.31, "se": 0.12},
    "< 0.3": {"below": 0.3},
    "4.1 x3": {"value": 4.1, "repeats": 3},
    "change −0.4 ± 0.2": {"change": -0.4, "se": 0.2},
    "change -4% ± 2%": {"change": "-4%", "se": "2%"},
}


@pytest.mark.parametrize(("text", "report"), TYPED.items())
def test_a_result_is_read_as_people_type_it(text, report):
    assert read_report("potassium", text) == report


def test_an_export_with_such_results_says_a_version_that_older_programs_refuse():
    potassium = Outcome("potassium", range=(3, 6), tolerance=0.3)
    plain = a_study(protected=[potassium], policy="directed-thompson")
    plain.tell(None, 4.1, measured="potassium", given=AT)
    assert json.loads(next(iter(plain.export())))["version"] == 1
    plain.tell(None, 4.1, se=0.1, measured="potassium", given=AT)
    assert json.loads(next(iter(plain.export())))["version"] == 2


def test_a_table_of_past_results_has_columns_for_errors_repeats_and_blocks():
    study = a_study()
    receipt = study.import_results(
        {
            "dose": [0, 10, 20],
            "salt": ["low", "low", "high"],
            "potassium": [4.1, "< 3.3", "change -0.2"],
            "potassium se": [0.1, "", 0.05],
            "pressure": [150, "140 ± 2", None],
            "pressure repeats": [3, None, None],
            "block": ["lab A", "lab B", ""],
            "note": ["", "", ""],
        }
    )
    assert results_of(study) == [
        Measurement(150.0, repeats=3, block="lab A"),
        Measurement(4.1, se=0.1, block="lab A"),
        Measurement(140.0, se=2.0, block="lab B"),
        Measurement(3.3, "below", block="lab B"),
        Measurement(-0.2, "change", se=0.05),
    ]
    assert "Columns not used: note." in str(receipt.card)
    long = {
        "dose": [0],
        "salt": ["low"],
        "outcome": ["potassium"],
        "value": [4.0],
        "se": [0.2],
    }
    study.import_results(long)
    assert results_of(study)[-1] == Measurement(4.0, se=0.2)


def test_a_far_value_or_change_is_doubted_before_it_is_saved():
    study = a_study()
    assert "far from what is plausible" in study.doubt(None, 41, se=1, measured="potassium")
    assert study.doubt(None, measured="potassium", below=0.2) is not None
    assert study.doubt(None, measured="potassium", change=-0.4) is None
    assert "a large change" in study.doubt(None, measured="potassium", change=-4)
    assert study.doubt(None, measured="size", change="-10%") is None
