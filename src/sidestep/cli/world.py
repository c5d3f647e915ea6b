"""A simulated clinic: the one place on the live side where hidden effects are known.

Three drugs, four markers, 171 regimens. Responses bend as those of drugs do: they saturate (Emax), and
half of the largest is reached at a third of the largest dose. Noise is that of a cuff and a laboratory,
and the study is told it. Invented: no statement about any drug or treatment.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.random import Generator

from sidestep.studies.factors import Factor, Setting, Value
from sidestep.studies.outcomes import Outcome
from sidestep.studies.study import Study

LISINOPRIL = (0, 5, 10, 20, 25, 30, 40)
AMLODIPINE = (0, 2.5, 5, 7.5, 10)
CHLORTALIDONE = (0, 6.25, 12.5, 18.75, 25)


@dataclass(frozen=True)
class World:
    """The hidden truth: levels, effects of the largest dose of every factor, noise."""

    baseline: Mapping[str, float]  # by factor
    largest: Mapping[str, float]  # by factor
    levels: Mapping[str, float]  # by outcome
    effects: Mapping[str, Mapping[str, float]]  # by outcome, then by factor
    noise: Mapping[str, float]  # by outcome
    half: float = (
        np.inf
    )  # dose of half the largest response, in the largest dose; inf: a straight line

    def effect(self, outcome: str, setting: Mapping[str, Value]) -> float:
        """The true change of an outcome from its level at the baseline."""
        return sum(
            effect
            * (
                self._response(factor, float(setting[factor]))
                - self._response(factor, self.baseline[factor])
            )
            for factor, effect in self.effects[outcome].items()
        )

    def _response(self, factor: str, dose: float) -> float:
        """The response to a dose, in that to the largest."""
        share = dose / self.largest[factor]
        return share if np.isinf(self.half) else share * (1 + self.half) / (share + self.half)

    def result(self, outcome: str, setting: Mapping[str, Value], rng: Generator) -> float:
        """One result, rounded as a laboratory does."""
        noise = self.noise[outcome]
        value = self.levels[outcome] + self.effect(outcome, setting) + noise * rng.standard_normal()
        return round(float(value), max(0, 1 - int(np.floor(np.log10(noise)))))


CLINIC = World(
    baseline={"lisinopril": 20, "amlodipine": 0, "chlortalidone": 0},
    largest={"lisinopril": 40, "amlodipine": 10, "chlortalidone": 25},
    levels={
        "systolic pressure": 152,
        "potassium": 4.2,
        "creatinine": 84,
        "sodium": 140,
        "heart rate": 71,
    },
    effects={
        "systolic pressure": {"lisinopril": -8.8, "amlodipine": -11.0, "chlortalidone": -9.0},
        "potassium": {"lisinopril": 0.48, "amlodipine": 0.0, "chlortalidone": -0.4},
        "creatinine": {"lisinopril": 6.0, "amlodipine": -1.0, "chlortalidone": 4.5},
        "sodium": {"lisinopril": 0.0, "amlodipine": 0.0, "chlortalidone": -2.75},
        "heart rate": {"lisinopril": 0.8, "amlodipine": 6.5, "chlortalidone": 1.0},
    },
    half=1 / 3,
    noise={
        "systolic pressure": 5.0,
        "potassium": 0.12,
        "creatinine": 3.0,
        "sodium": 1.0,
        "heart rate": 2.5,
    },
)


def clinic_setup() -> dict[str, Any]:
    """The arguments of `Study.create` for the clinic; noise is told, levels are learned."""
    noise = CLINIC.noise
    return {
        "title": "Blood pressure pilot, a simulated patient whose responses bend",
        "vocabulary": "clinic",
        "factors": [
            Factor("lisinopril", levels=LISINOPRIL, unit="mg/day", baseline=20),
            Factor("amlodipine", 0, 10, unit="mg/day", step=2.5),
            Factor("chlortalidone", 0, 25, unit="mg/day", step=6.25),
        ],
        "target": Outcome(
            "systolic pressure",
            "mmHg",
            goal="lower",
            range=(100, 190),
            matters=1.0,
            noise=noise["systolic pressure"],
        ),
        "protected": [
            Outcome(name, unit, range=ends, tolerance=tolerance, noise=noise[name])
            for name, unit, ends, tolerance in (
                ("potassium", "mmol/L", (3.0, 6.0), 0.3),
                ("creatinine", "µmol/L", (40.0, 160.0), 9.0),
                ("sodium", "mmol/L", (125.0, 150.0), 2.5),
                ("heart rate", "beats/min", (40.0, 120.0), 6.0),
            )
        ],
        "candidates": regimens(),
    }


def regimens() -> list[Setting]:
    """Every combination, but not all of everything, and not nothing."""
    names = ("lisinopril", "amlodipine", "chlortalidone")
    return [
        dict(zip(names, map(float, doses), strict=True))
        for doses in product(LISINOPRIL, AMLODIPINE, CHLORTALIDONE)
        if any(doses) and not (doses[0] == 40 and doses[1] / 10 + doses[2] / 25 > 1.5)
    ]


def truly_best(study: Study, world: World) -> tuple[int, float]:
    """The candidate with the best effect on the goal among those truly within limits, and that effect."""
    plan = study.plan
    within = [
        (plan.target.sign * world.effect(plan.target.name, setting), number)
        for number in range(len(plan.candidates))
        if is_within(study, world, setting := plan.candidates.setting(number))
    ]
    effect, number = max(within)
    return number, plan.target.sign * effect


def is_within(study: Study, world: World, setting: Mapping[str, Value]) -> bool:
    """Whether every protected outcome truly stays within its limits."""
    for outcome in study.plan.protected:
        low, high = outcome.limits
        change = world.effect(outcome.name, setting)
        if (low is not None and change < low) or (high is not None and change > high):
            return False
    return True
