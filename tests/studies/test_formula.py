"""Features from a formula, with a context for every ask."""

import time
import tracemalloc

import numpy as np
import pytest

from clinic import clinic
from sidestep.errors import InputError
from sidestep.studies.factors import Factor
from sidestep.studies.formula import Features
from sidestep.studies.plan import plan_from_config
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
        ("0 + log(dose)", ["finite", "not at dose 0.0, salt"]),
        ("0 + sqrt(dose - 15)", ["finite", "not at dose 0.0, salt"]),
        ("0 + dose)", ["')' where it cannot be"]),
        ("0 + log dose", ["without a bracket"]),
        ("0 + log(dose:age)", ["not closed"]),
        ("0 + dose + open(salt)", ["open"]),
    ],
)
def test_a_formula_that_cannot_be_used_is_refused(refusal, model, words):
    message = refusal(features, model)
    assert all(word in message for word in words), message
    assert message.isprintable()


def test_a_formula_that_overflows_is_refused_without_a_warning(refusal):
    with np.errstate(all="warn"):  # as for a user; here a warning is an error
        assert "finite" in refusal(features, "0 + exp(exp(exp(dose)))")


def test_a_context_that_is_missing_or_unknown_is_refused(refusal):
    study = clinic(MemoryStore(), factors=[DOSE], context=[AGE], model="0 + dose + dose:age")
    assert "'age'" in refusal(study.ask)
    assert "weight" in refusal(study.ask, context={"age": 30, "weight": 70})
    assert "20 to 80" in refusal(study.ask, context={"age": 99})


def test_without_the_extra_a_formula_names_it(refusal, monkeypatch):
    import sys  # noqa: PLC0415

    monkeypatch.setitem(sys.modules, "formulaic", None)
    assert "sidestep[formula]" in refusal(features, "0 + dose")


MANY = [Factor(f"x{number}", 0, 1, step=1) for number in range(9)]
CONTEXTS = [Factor(f"c{number}", 0, 1) for number in range(1, 21)]
ENDLESS = {
    "0 + dose + log(9**9**9)": "power",
    "(dose)**9999999": "power",
    "0 + dose + log(9**9999999)": "power",
    "0 + dose**7": "1 to 6",
    "0 + dose**2.5": "1 to 6",
    "0 + dose**-1": "1 to 6",
    "0 + dose**2**2": "power of a power",
    "0 + dose^2^2": "power of a power",
    "0 + sqrt(dose)**2": "brackets",
    "0 + salt**2": "word",
    "0 + dose + log(9999999999999999 * dose)": "15 digits",
    "0 + " + " + ".join(["dose"] * 200): "characters",
    "0 + " + "+".join(["dose"] * 150): "100 terms",
    "0 + " + "(" * 40 + "dose" + ")" * 40: "20 brackets",
    "0 + log(" + "exp(" * 40 + "dose" + ")" * 41: "20 brackets",
    "0 + (dose": "not closed",
}


def cpu(act, *arguments, **named):
    """What was raised, and the seconds of processor until then."""
    began = time.process_time()
    with pytest.raises(InputError, match=", got ") as caught:
        act(*arguments, **named)
    return str(caught.value), time.process_time() - began


@pytest.mark.parametrize(("model", "words"), ENDLESS.items(), ids=range(len(ENDLESS)))
def test_a_formula_that_would_never_end_is_refused_at_once(model, words):
    message, seconds = cpu(features, model + (" " * 1000 if words == "characters" else ""))
    assert words in message
    assert seconds < 0.1


def test_an_expansion_is_counted_and_not_made():
    names = [factor.name for factor in MANY]
    for model in (f"({' + '.join(names)})**9", "*".join(names)):
        message, seconds = cpu(features, f"0 + {model}", factors=MANY)
        assert "power" in message or "100 terms, got 127 or more" in message
        assert seconds < 0.1


def test_rows_are_counted_before_they_are_built():
    model = "0 + dose + " + " + ".join(f"dose:c{number}" for number in range(1, 21))
    tracemalloc.start()
    message, seconds = cpu(features, model, context=CONTEXTS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert f"got {10 * 2**20:,}" in message
    assert peak < 10 * 2**20
    assert seconds < 0.1


def test_only_contexts_that_the_formula_names_are_opened():
    one = features("0 + dose + dose:c1", factors=[DOSE], context=CONTEXTS[:1])
    many = features("0 + dose + dose:c1", factors=[DOSE], context=CONTEXTS)
    here = {factor.name: 0.5 for factor in CONTEXTS}
    rows = [{"dose": dose} for dose in DOSE.grid]
    assert np.array_equal(one.rows(rows, {"c1": 0.5}), many.rows(rows, here))


@pytest.mark.parametrize(
    "model", ["0 + dose + dose**2", "0 + dose + dose^2", "0 + dose + `dose`**2"]
)
def test_a_square_is_a_square(model):
    found = features(model, factors=[DOSE], context=())
    rows = found.rows([{"dose": dose} for dose in DOSE.grid], {})
    doses = np.array(DOSE.grid)
    assert rows[:, 0] == pytest.approx((doses - 20) / 20)
    assert rows[:, 1] == pytest.approx((doses**2 - 400) / 800)


def test_powers_join_and_go_into_functions():
    found = features("0 + dose**2:age + log(1 + dose^3)", factors=[DOSE])
    rows = found.rows([{"dose": dose} for dose in DOSE.grid], {"age": 50.0})
    doses = np.array(DOSE.grid)
    for column, raw in enumerate((np.log(1 + doses**3), doses**2)):  # the parser's order
        moved = raw - raw[2]
        assert rows[:, column] / rows[-1, column] == pytest.approx(moved / moved[-1])


def test_a_power_in_a_study_of_an_earlier_version_keeps_its_meaning():
    model = "0 + salt + dose**2"
    named = {"policy": "directed-thompson"}
    plan = clinic(MemoryStore(), factors=[DOSE, SALT], context=(), model=model, **named).plan
    assert plan.to_config()["version"] == 2  # which version 0.2 refuses with a sentence
    assert plan_from_config(plan.to_config(), None) == plan
    old = plan_from_config({**plan.to_config(), "version": 1}, None)
    assert old.to_config()["version"] == 1
    rows = [{"dose": 40.0, "salt": "none"}, {"dose": 30.0, "salt": "none"}]
    assert Features(old).rows(rows, {})[:, -1] == pytest.approx([1, 0.5])
    assert Features(plan).rows(rows, {})[:, -1] == pytest.approx([1.5, 0.625])
    model = "0 + dose"
    without = clinic(MemoryStore(), factors=[DOSE, SALT], context=(), model=model, **named).plan
    assert without.to_config()["version"] == 1
