"""The response of an outcome along one factor: the same belief as everywhere, drawn along a line."""

import itertools

import numpy as np
import pytest

from sidestep.errors import InputError
from sidestep.studies.factors import Factor
from sidestep.studies.learning.response import tried_of
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.study import Study

FACTORS = (
    Factor("dose", 0, 40, unit="mg", step=2, baseline=10),
    Factor("rate", 1, 64, scale="log", baseline=4),
    Factor("salt", levels=["none", "some"]),
)


def told(shape, goal="lower"):
    """Sixteen settings, two results each: the goal has an optimum, the harm is straight."""
    levels = ((0.0, 10.0, 26.0, 40.0), (1.0, 8.0), ("none", "some"))
    rows = list(itertools.product(*levels))
    allowed = zip(*rows, (10.0, 4.0, "none"), strict=True)
    study = Study.create(
        "s",
        MemoryStore(),
        factors=FACTORS,
        target=Outcome("pain", goal=goal, range=(0, 100), baseline=60, noise=1.0),
        protected=[Outcome("sleep", range=(0, 12), tolerance=2, noise=0.2)],
        candidates=dict(zip(("dose", "rate", "salt"), map(list, allowed), strict=True)),
        shape=shape,
    )
    rng = np.random.default_rng(4)
    for dose, rate, salt in rows:
        setting = {"dose": dose, "rate": rate, "salt": salt}
        pain = 60 + 0.05 * (dose - 26) ** 2 - 12.8 - 3 * np.log(rate / 4) + rng.standard_normal()
        study.tell(None, float(pain), measured="pain", given=setting)
        if dose < 40:
            sleep = 7 - 0.05 * (dose - 10) + 0.2 * rng.standard_normal()
            study.tell(None, float(sleep), measured="sleep", given=setting)
    return study


@pytest.mark.parametrize("goal", ["lower", "raise"])
@pytest.mark.parametrize("outcome", ["pain", "sleep"])
@pytest.mark.parametrize("factor", ["dose", "rate"])
def test_a_response_is_what_is_believed_of_settings_on_the_line(outcome, factor, goal):
    study = told("smooth", goal)  # where no setting does anything of its own
    along = study.response(outcome, factor, certainty=0.8)
    effects = {
        tuple(r.action.values()): r.effects[outcome] for r in study.explain(certainty=0.8).rows
    }
    assert (along.outcome, along.factor) == (outcome, factor)
    assert list(along.values) == sorted(along.values)
    ends = next((each.low, each.high) for each in FACTORS if each.name == factor)
    assert (along.values[0], along.values[-1]) == ends
    home = {"dose": 10.0, "rate": 4.0, "salt": "none"}
    expected = effects[10.0, 4.0, "none"] if factor == "rate" else None
    for value, effect in zip(along.values, along.effects, strict=True):
        if value == home[factor]:
            assert np.allclose(effect[:3], 0, atol=1e-9)
        setting = tuple((home | {factor: value}).values())
        if setting in effects:
            expected = effects[setting]
            # what the products of smooth features leave out belongs to a setting, and is not drawn
            near = 0.03 * (effect.high - effect.low)
            assert effect.estimate == pytest.approx(expected.estimate, abs=near)
    assert expected is not None
    assert all(each.low <= each.estimate <= each.high for each in along.effects)


def test_an_interval_is_wider_with_more_certainty_and_farther_from_results():
    study = told(None)
    sure, less = study.response("sleep", "dose"), study.response("sleep", "dose", certainty=0.5)
    for one, other in zip(sure.effects, less.effects, strict=True):
        assert np.isclose(one.estimate, other.estimate)
        assert one.high - one.low >= other.high - other.low
    width = [each.high - each.low for each in sure.effects]
    assert width[-1] > 1.5 * width[13]  # at 40 mg it was never measured, at 26 mg four times


def test_a_response_counts_where_its_outcome_was_measured():
    study = told(None)
    assert study.response("sleep", "dose").measured == {0.0: 4, 10.0: 4, 26.0: 4}
    assert study.response("pain", "rate").measured == {1.0: 8, 8.0: 8}
    columns = study.response("pain", "dose").to_columns()
    assert list(columns) == ["dose", "estimate", "low", "high"]
    assert len(columns["low"]) == len(columns["dose"]) == 21


def test_what_was_measured_where_is_known_behind_a_snapshot(monkeypatch):
    monkeypatch.setattr("sidestep.studies.live.EVERY", 10)
    study = told(None)
    study.show()  # from here on snapshots are kept
    tried = {"dose": 26.0, "rate": 8.0, "salt": "some"}
    for _ in range(2):
        study.tell(None, 45.0, measured="pain", given=tried)
        study.tell(None, 6.2, measured="sleep", given=tried)
    again = Study.open("s", study._store)
    assert again.response("sleep", "dose").measured == {0.0: 4, 10.0: 4, 26.0: 6}
    assert len(again._live.book.results) < study.n_results == 32  # the rest are in its sums
    evidence = again._live.learner().evidence
    assert tried_of(evidence, tried) == 3
    assert tried_of(evidence, tried | {"salt": "none"}) == 1
    assert tried_of(evidence, tried | {"dose": 40.0}) == 0  # where sleep was never measured
    assert tried_of(evidence, None) == 0
    best = again.best()
    assert best.tried == tried_of(evidence, best.action)


@pytest.mark.parametrize(
    ("outcome", "factor", "said"),
    [
        ("pain", "salt", "factor must be one of dose, rate, got 'salt'"),
        ("pain", "nothing", "factor must be one of dose, rate, got 'nothing'"),
        ("nothing", "dose", "an outcome must be one of pain, sleep, got 'nothing'"),
    ],
)
def test_a_response_needs_an_outcome_and_a_factor_of_numbers(outcome, factor, said):
    with pytest.raises(InputError, match=said):
        told(None).response(outcome, factor)
