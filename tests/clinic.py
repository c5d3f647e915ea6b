"""A small simulated clinic for tests: three drugs, four outcomes, and hidden effects in natural units."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sidestep.service.client import Client
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.study import Study

SEED = 7
AIM: dict[str, Any] = {"aim": "within"}

FACTORS = (
    Factor("lisinopril", 0, 40, unit="mg/day", step=10, baseline=20),
    Factor("amlodipine", 0, 10, unit="mg/day", step=2.5),
    Factor("chlortalidone", levels=[0, 6.25, 12.5, 25], unit="mg/day"),
)
TARGET = Outcome(
    "systolic pressure", "mmHg", goal="lower", baseline=150, range=(100, 190), matters=1.0
)
PROTECTED = (
    Outcome("potassium", "mmol/L", baseline=4.2, range=(3, 6), tolerance=0.3),
    Outcome("sodium", "mmol/L", baseline=139, range=(125, 150), tolerance=2.5),
    Outcome("heart rate", "beats/min", baseline=72, range=(40, 120), tolerance=6),
)


def same(one: Any, other: Any, share: float = 1e-6) -> bool:
    """Whether two answers are the same but for the last digits of their numbers."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k], share) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return bool(np.isclose(one, other, rtol=share, atol=share))
    return bool(one == other)


def clinic(storage: Any, name: str = "bp", **changes: Any) -> Any:
    """A study of the clinic, as most tests need it; through a client if the storage is a service."""
    settings: dict[str, Any] = {
        "factors": FACTORS,
        "target": TARGET,
        "protected": PROTECTED,
        "vocabulary": "clinic",
        "seed": SEED,
        **AIM,
    }
    if isinstance(storage, Client):
        return storage.create(name, **settings | changes)
    return Study.create(name, storage, **settings | changes)


@dataclass(frozen=True)
class World:
    """Hidden effects: a change of every outcome for every unit of every factor, and noise."""

    slopes: dict[str, dict[str, float]]  # by outcome, then by factor
    noise: dict[str, float]
    levels: dict[str, float]

    def result(self, study: Study, outcome: str, action: Any, rng: np.random.Generator) -> float:
        """One result, as a laboratory reports it."""
        truth = self.levels[outcome] + self.effect(study, outcome, action)
        return round(float(truth + self.noise[outcome] * rng.standard_normal()), 2)

    def effect(self, study: Study, outcome: str, action: Any) -> float:
        """The true change from the baseline."""
        return sum(
            slope * (action[name] - study.plan.baseline[name])
            for name, slope in self.slopes[outcome].items()
        )


WORLD = World(
    slopes={
        "systolic pressure": {"lisinopril": -0.20, "amlodipine": -0.9, "chlortalidone": -0.25},
        "potassium": {"lisinopril": 0.010, "amlodipine": 0.0, "chlortalidone": -0.016},
        "sodium": {"lisinopril": 0.0, "amlodipine": 0.05, "chlortalidone": -0.06},
        "heart rate": {"lisinopril": 0.02, "amlodipine": 0.5, "chlortalidone": 0.05},
    },
    noise={"systolic pressure": 3.0, "potassium": 0.1, "sodium": 1.0, "heart rate": 2.0},
    levels={"systolic pressure": 150, "potassium": 4.2, "sodium": 139, "heart rate": 72},
)


def play(study: Study, rounds: int, *, world: World = WORLD, seed: int = 0) -> list[Any]:
    """Play this many rounds, answering every question at once; returns the tickets."""
    tickets = []
    for number in range(rounds):
        ticket = study.ask()
        rng = np.random.default_rng([seed, number])
        study.tell(ticket.id, world.result(study, str(ticket.measure), ticket.action, rng))
        tickets.append(ticket)
    return tickets
