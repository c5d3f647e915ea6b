"""Results from before: the same table twice, which row is meant, and what a receipt says."""

import pytest

from clinic import clinic
from sidestep.errors import ConflictError
from sidestep.studies.storage.memory import MemoryStore

TABLE = {
    "lisinopril": [0, 10],
    "amlodipine": [0, 2.5],
    "chlortalidone": [0, 0],
    "date": ["Monday", "Tuesday"],
    "sodium": [138.0, 140.0],
    "potassium": [4.1, None],
    "Impurity": [1, 2],
}


@pytest.fixture
def study():
    return clinic(MemoryStore())


def test_the_same_table_twice_is_a_conflict_that_names_the_entry(study):
    study.import_results(TABLE)
    with pytest.raises(ConflictError, match=r"entry 2 .* 3 results.* again=True \(--again\)"):
        study.import_results(TABLE)
    assert study.n_results == 3
    study.import_results(TABLE, again=True)
    assert study.n_results == 6


def test_the_same_import_under_its_key_changes_nothing(study):
    first = study.import_results(TABLE, key="once")
    again = study.import_results(TABLE, key="once")
    assert again.repeated
    assert again.entries == first.entries


def test_one_of_several_results_must_be_named(study, refusal):
    study.import_results(TABLE)
    for verb in (
        lambda: study.correct(2, 137.0, reason="x"),
        lambda: study.withdraw(2, reason="x"),
    ):
        sentence = refusal(verb)
        for words in ("entry 2 has 3 results", "--row", "row=N", "from 0", "history"):
            assert words in sentence
    assert len(study.history()) == 2
    assert study.correct(2, 4.3, row=0, reason="x").entries == (3,)
    assert study.history()[-1].body["outcome"] == "potassium"
    study.withdraw(2, row=2, reason="x", key="k")
    assert study.history()[-1].body["was"] == 140.0
    assert study.withdraw(2, row=2, reason="x", key="k").repeated


def test_an_import_of_one_result_needs_no_row(study):
    study.import_results({name: column[:1] for name, column in TABLE.items() if name != "sodium"})
    assert study.correct(2, 4.3, reason="x").entries == (3,)


def test_which_result_of_a_panel_must_be_said(study, refusal):
    ticket = study.ask(panel=["sodium", "potassium"])
    study.tell(ticket, {"sodium": 138.0, "potassium": 4.1})
    for verb in (study.withdraw, lambda ticket, reason: study.correct(ticket, 1.0, reason=reason)):
        assert "2 results" in refusal(lambda verb=verb: verb(ticket, reason="x"))
    study.withdraw(4, reason="x")
    assert study.history()[-1].outcome == "potassium"


def test_a_correction_is_of_the_outcome_it_names(study, refusal):
    study.import_results(TABLE)
    assert "must be of 'sodium'" in refusal(
        study.correct, 2, 137.0, row=0, measured="sodium", reason="x"
    )
    study.correct(2, 4.0, row=0, measured="potassium", reason="x")


def test_the_receipt_counts_every_outcome_and_names_columns_that_were_not_used(study):
    text = " ".join(str(study.import_results(TABLE)).split())
    assert "3 results (potassium 1, sodium 2)" in text
    assert "not used: date, Impurity." in text


def test_a_row_of_what_is_no_import_is_refused_and_the_study_goes_on(study, refusal):
    ticket = study.ask()
    study.tell(ticket.id, 140.0, measured="systolic pressure")
    for verb in (
        lambda: study.correct(ticket.id, 141.0, reason="x", row=3),
        lambda: study.withdraw(ticket.id, reason="x", row=3),
    ):
        assert "row must be left out for entry 3" in refusal(verb)
    assert study.n_results == 1
    assert study.ask().id == 4


def test_a_cell_that_a_frame_calls_missing_is_empty(study):
    pandas = pytest.importorskip("pandas")
    done = {"lisinopril": [0, 10], "amlodipine": [0, 0], "chlortalidone": [0, 0]}
    sodium = pandas.array([138, None], dtype="Int64")
    study.import_results(pandas.DataFrame({**done, "sodium": sodium, "when": [pandas.NaT] * 2}))
    assert study.best().counts == {"sodium": 1}
    with pytest.raises(ConflictError, match="entry 2 holds exactly this one result"):
        study.import_results({**done, "sodium": [138.0, None]})


def test_rows_may_each_name_what_was_measured(study):
    done = {"lisinopril": 0, "amlodipine": 0, "chlortalidone": 0}
    study.import_results([{**done, "sodium": 138.0}, {**done, "potassium": 4.1}])
    assert study.best().counts == {"sodium": 1, "potassium": 1}


def test_a_table_may_name_candidates_by_their_numbers(study, refusal):
    by_number = {"candidate": ["3", "17"], "outcome": ["sodium", "potassium"], "value": [139, 4.2]}
    receipt = study.import_results(by_number)
    assert "not used" not in str(receipt)
    rows = study.history()[-1].body["rows"]
    assert [row["action"] for row in rows] == [
        study.plan.candidates.setting(number) for number in (3, 17)
    ]
    for wrong in ("171", "-1", "2.5", "no. 3", None):
        sentence = refusal(study.import_results, by_number | {"candidate": ["3", wrong]})
        assert "no result was recorded" in sentence
        assert "row 1: candidate must be a number" in sentence
    assert study.n_results == 2


def test_a_table_without_factors_or_candidates_is_told_of_both(study, refusal):
    sentence = refusal(study.import_results, {"outcome": ["sodium"], "value": [139]})
    assert "a column for every factor, or 'candidate' with numbers" in sentence
