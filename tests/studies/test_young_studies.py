"""Studies of a dozen results: what they say is no surer than what they know."""

import random

import pytest

from sidestep import Factor, Outcome, Study

LEVELS = {"glucose": 9.5, "weight": 88.0, "eGFR": 75.0, "night glucose": 6.5}
SLOPES = {  # of 500 mg and of 5 units
    "glucose": (-1.0, -0.8),
    "weight": (-0.4, 0.7),
    "eGFR": (-1.5, 0.0),
    "night glucose": (-0.1, -0.35),
}
NOISE = {"glucose": 0.4, "weight": 0.4, "eGFR": 2.0, "night glucose": 0.3}


def effect(outcome, action):
    first, second = SLOPES[outcome]
    return first * (action["metformin"] - 1000) / 500 + second * (action["insulin"] - 20) / 5


def clinic(seed):
    return Study.create(
        "two drugs",
        "memory:",
        seed=seed,
        factors=[
            Factor("metformin", 0, 2000, unit="mg/day", step=500, baseline=1000),
            Factor("insulin", 10, 40, unit="units/day", step=5, baseline=20),
        ],
        target=Outcome("glucose", "mmol/L", goal="lower", range=(4, 14), baseline=9.5, matters=0.3),
        protected=[
            Outcome("weight", "kg", range=(70, 110), tolerance=(None, 2)),
            Outcome("eGFR", "mL/min", range=(30, 120), tolerance=(-8, None)),
            Outcome("night glucose", "mmol/L", range=(3, 12), tolerance=(-1, None)),
        ],
    )


def visits(study, rng, count):
    for _ in range(count):
        ticket = study.ask()
        truth = LEVELS[ticket.measure] + effect(ticket.measure, ticket.action)
        study.tell(ticket.id, round(rng.gauss(truth, NOISE[ticket.measure]), 1))


@pytest.mark.slow
def test_intervals_of_young_studies_cover_as_often_as_they_say(oracle):
    missed = {12: [], 14: [], 16: [], 20: []}
    for seed in range(60):
        study, rng, told = clinic(seed), random.Random(seed), 0
        for results, misses in missed.items():
            visits(study, rng, results - told)
            told, best = results, study.best()
            misses += [
                not interval.low <= effect(outcome, best.action) <= interval.high
                for outcome, interval in best.effects.items()
                if best.action != {"metformin": 1000.0, "insulin": 20.0}
            ]
    for misses in missed.values():
        assert len(misses) > 40
        assert oracle.at_most(sum(misses), len(misses), 0.05)


def test_three_results_an_outcome_say_nothing_of_its_noise():
    study = clinic(3)
    visits(study, random.Random(3), 10)
    best = study.best()
    assert not best.enough
    assert best.action == {"metformin": 1000.0, "insulin": 20.0}
