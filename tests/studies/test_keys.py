"""The same key is the same request: answered from the record, whatever happened since."""

import pytest

from clinic import clinic
from sidestep.errors import KeyReused
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.record import erase


@pytest.fixture(params=["memory", "sqlite"])
def study(request, tmp_path):
    return clinic(MemoryStore() if request.param == "memory" else tmp_path / "clinic.db")


@pytest.fixture
def answered(study):
    ticket = study.ask()
    study.tell(ticket.id, 140.0, measured="systolic pressure", key="tell")
    return ticket.id


def entries(study):
    return study.history()[-1].seq


def test_a_correction_is_not_repeated_after_a_later_one(study, answered):
    first = study.correct(answered, 141.0, reason="misread", key="k")
    study.correct(answered, 142.0, reason="misread twice")
    before = entries(study)
    again = study.correct(answered, 141.0, reason="misread", key="k")
    assert (again.entries, again.repeated) == (first.entries, True)
    assert entries(study) == before


def test_a_result_is_not_taken_back_twice(study, answered):
    first = study.withdraw(answered, reason="haemolysed", key="k")
    study.correct(answered, 142.0, reason="it was good after all")
    again = study.withdraw(answered, reason="haemolysed", key="k")
    assert (again.entries, again.repeated) == (first.entries, True)


def test_an_answer_is_the_same_answer_after_a_correction(study, answered):
    study.correct(answered, 142.0, reason="misread")
    again = study.tell(answered, 140.0, measured="systolic pressure", key="tell")
    assert again.repeated


@pytest.mark.parametrize(
    "other",
    [
        lambda study, ticket: study.tell(ticket, 139.0, measured="systolic pressure", key="tell"),
        lambda study, ticket: study.tell(ticket, 4.1, measured="potassium", key="tell"),
        lambda study, ticket: study.correct(ticket, 141.0, reason="misread", key="tell"),
        lambda study, ticket: study.withdraw(ticket, reason="lost", key="tell"),
        lambda study, ticket: study.ask(new=True, key="tell"),
        lambda study, ticket: study.import_results(
            {**{name: [value] for name, value in study.plan.baseline.items()}, "potassium": [4.1]},
            key="tell",
        ),
    ],
)
def test_another_request_under_the_same_key_is_refused(study, answered, other):
    before = entries(study)
    with pytest.raises(KeyReused, match="'tell' belongs to another request"):
        other(study, answered)
    assert entries(study) == before


def test_a_question_under_other_restrictions_is_another_request(study):
    study.ask(key="k", measure_only=["potassium"])
    assert study.ask(key="k", measure_only=["potassium"]).measure == "potassium"
    with pytest.raises(KeyReused):
        study.ask(key="k", measure_only=["sodium"])


def test_another_reason_is_another_request_unless_the_first_was_erased(study, answered):
    first = study.correct(answered, 141.0, reason="Mr B. said so", key="k")
    with pytest.raises(KeyReused):
        study.correct(answered, 141.0, reason="misread", key="k")
    erase(study._store, study.name, first.entries, actor="admin")
    assert study.correct(answered, 141.0, reason="Mr B. said so", key="k").repeated


def test_a_surprising_value_may_have_a_reason(study):
    ticket = study.ask()
    study.tell(ticket.id, 1000.0, measured="systolic pressure", reason="checked twice")
    assert study.history()[-1].reason == "checked twice"
