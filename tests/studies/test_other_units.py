"""The same study in other units asks the same questions to the last candidate."""

from dataclasses import replace

import numpy as np
import pytest

from clinic import FACTORS, PROTECTED, TARGET, WORLD, clinic
from sidestep.studies.factors import Factor
from sidestep.studies.storage.memory import MemoryStore

KPA = 0.133322  # a mmHg


def scaled_factor(factor, times):
    values = {
        name: getattr(factor, name) * times
        for name in ("low", "high", "step")
        if getattr(factor, name) is not None and factor.levels is None
    }
    if factor.levels is not None:
        values = {"levels": [level * times for level in factor.levels]}
    return Factor(factor.name, unit="other", baseline=factor.baseline * times, **values)


def scaled_outcome(outcome, times):
    values = {
        name: getattr(outcome, name) * times
        for name in ("baseline", "tolerance", "matters", "noise")
        if getattr(outcome, name) is not None
    }
    ends = tuple(end * times for end in outcome.range)
    return replace(outcome, unit="other", range=ends, **values)


UNITS = {
    "mg and g": ({"lisinopril": 1e-3, "amlodipine": 1e-3, "chlortalidone": 1e-3}, {}),
    "mmHg and kPa": ({}, {"systolic pressure": KPA}),
    "percent and fractions": ({"amlodipine": 0.01}, {"sodium": 0.01, "heart rate": 100.0}),
    "all of them": (
        {"lisinopril": 1e3, "amlodipine": 1 / 60, "chlortalidone": 0.25},
        {"systolic pressure": KPA, "potassium": 39.0983, "sodium": 22.98977, "heart rate": 1 / 60},
    ),
}


def questions(rounds, factor_units, outcome_units, **changes):
    """Candidates and outcomes of so many rounds, with results converted as a laboratory would."""
    study = clinic(
        MemoryStore(),
        factors=[scaled_factor(each, factor_units.get(each.name, 1.0)) for each in FACTORS],
        target=scaled_outcome(TARGET, outcome_units.get(TARGET.name, 1.0)),
        protected=[scaled_outcome(each, outcome_units.get(each.name, 1.0)) for each in PROTECTED],
        **changes,
    )
    usual = clinic(MemoryStore(), **changes)
    asked = []
    for number in range(rounds):
        ticket = study.ask()
        action = usual.plan.candidates.setting(ticket.candidate)
        rng = np.random.default_rng([3, number])
        value = WORLD.result(usual, ticket.measure, action, rng)
        study.tell(ticket.id, value * outcome_units.get(ticket.measure, 1.0))
        asked.append((ticket.candidate, ticket.measure))
    best = study.best()
    return asked, (best.candidate, best.probability, best.contenders[0].candidate)


@pytest.fixture(scope="module")
def usual():
    return questions(40, {}, {})


@pytest.mark.full
@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
def test_forty_questions_are_the_same_in_other_units(usual, units):
    assert questions(40, *units) == usual


@pytest.mark.full
def test_noise_that_is_told_is_told_in_its_unit():
    told = [replace(each, noise=each.half / 20) for each in (TARGET, *PROTECTED)]
    changes = {"target": told[0], "protected": told[1:]}
    usual = clinic(MemoryStore(), **changes)
    other = clinic(
        MemoryStore(),
        target=scaled_outcome(told[0], KPA),
        protected=[scaled_outcome(each, 7.0) for each in told[1:]],
    )
    for study in (usual, other):
        for _ in range(5):
            ticket = study.ask()
            outcome = study.plan.outcome(ticket.measure)
            study.tell(ticket.id, outcome.level + 0.1 * outcome.half)
    candidates = [
        [event.body["candidate"] for event in study.history() if event.kind == "asked"]
        for study in (usual, other)
    ]
    assert candidates[0] == candidates[1]
