"""Features from a formula, with a context for every ask."""

import numpy as np
import pytest

from clinic import clinic
from sidestep.studies.factors import Factor
from sidestep.studies.formula import Features
from sidestep.studies.storage.memory import MemoryStore

DOSE = Factor("dose", 0, 40, unit="mg", step=10, baseline=20)
SALT = Factor("salt", levels=["none", "calcium"])
AGE = Factor("age", 20, 80, unit="years")


def features(model, factors=(DOSE, SALT), context=(AGE,)):
    return Features(clinic(MemoryStore(), factors=factors, context=context, model=model).plan)


def test_features_are_differences_from_the_baseline_in_the_same_context():
    found = features("0 + dose + salt + dose:age")
    for age in (20.0, 63.0):
        rows = found.rows([{"dose": 20.0, "salt": "none"}], {"age": age})
        assert not rows.any()


def test_an_interaction_grows_with_its_context():
    found = features("0 + dose + dose:age", factors=[DOSE])
    young, old = (found.rows([{"dose": 40.0}], {"age": age})[0] for age in (20.0, 80.0))
    assert young[0] == old[0]
    assert old[1] == pytest.approx(4 * young[1])


def test_what_depends_on_the_context_alone_is_no_effect():
    found = features("dose + salt + age")
    assert found.rows([{"dose": 40.0, "salt": "none"}], {"age": 63.0}).shape == (1, 2)


def test_the_unit_of_a_factor_does_not_change_its_features():
    grams = Factor("dose", 0, 0.04, unit="g", step=0.01, baseline=0.02)
    model = "0 + dose + dose:dose:age + log(age):dose"
    one = features(model, factors=[DOSE]).rows([{"dose": 30.0}], {"age": 50.0})
    other = features(model, factors=[grams]).rows([{"dose": 0.03}], {"age": 50.0})
    assert np.array_equal(one, other)


def test_a_study_with_a_context_asks_tells_and_advises():
    study = clinic(
        MemoryStore(), factors=[DOSE, SALT], context=[AGE], model="0 + dose + salt + dose:age"
    )
    for age in (30, 60, 45, 70, 25):
        ticket = study.ask(context={"age": age})
        assert ticket.card.data["context"] == {"age": age}
        study.tell(ticket.id, 100.0)
    assert study.best(context={"age": 50}).action is not None
    assert study.explain(context={"age": 50}).rows
    assert study.verify(asks=True).data["holds"]


def test_a_result_counts_in_the_context_it_was_told_with():
    study = clinic(MemoryStore(), factors=[DOSE], context=[AGE], model="0 + dose + dose:age")
    ticket = study.ask(context={"age": 30})
    study.tell(ticket.id, 100.0, context={"age": 31})
    assert study.history()[-1].body["context"] == {"age": 31.0}


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("0 + dose + weight", ["weight"]),
        ("0 + dose +", ["formula"]),
        ("0 + 3", ["formula"]),
        ("__import__('os').system('true')", ["__import__"]),
        ("0 + dose.real", ["names, numbers"]),
        ("0 + age", ["move"]),
        ("0 + log(dose)", ["finite"]),
        ("0 + dose + open(salt)", ["open"]),
    ],
)
def test_a_formula_that_cannot_be_used_is_refused(refusal, model, words):
    message = refusal(features, model)
    assert all(word in message for word in words), message
    assert message.isprintable()


def test_a_context_that_is_missing_or_unknown_is_refused(refusal):
    study = clinic(MemoryStore(), factors=[DOSE], context=[AGE], model="0 + dose + dose:age")
    assert "'age'" in refusal(study.ask)
    assert "weight" in refusal(study.ask, context={"age": 30, "weight": 70})
    assert "20 to 80" in refusal(study.ask, context={"age": 99})


def test_without_the_extra_a_formula_names_it(refusal, monkeypatch):
    import sys  # noqa: PLC0415

    monkeypatch.setitem(sys.modules, "formulaic", None)
    assert "sidestep[formula]" in refusal(features, "0 + dose")
