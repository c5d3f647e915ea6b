"""A simulated product team for tests: five knobs, four guardrail metrics, 160 settings."""

from itertools import product
from typing import Any

from sidestep.cli.world import World
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome

KNOBS = [
    Factor("digest e-mails", 0, 3, unit="per week", step=1, baseline=1),
    Factor("feed freshness", 0.2, 0.8, unit="weight", step=0.15, baseline=0.5),
    Factor("page size", 10, 40, unit="items", step=10, baseline=20),
    Factor("ad load", 6, 15, unit="% of slots", step=3, baseline=12),
    Factor("autoplay delay", 0, 4, unit="s", step=1, baseline=2),
]

LARGEST = {factor.name: float(factor.high) for factor in KNOBS}
SLOPES = {
    "7-day retention": {
        "digest e-mails": 0.35,
        "feed freshness": 1.6,
        "page size": 0.012,
        "ad load": -0.10,
        "autoplay delay": -0.12,
    },
    "p95 latency": {"feed freshness": 60, "page size": 2.6, "ad load": 1.5},
    "unsubscribes": {"digest e-mails": 0.42, "ad load": 0.03, "autoplay delay": -0.05},
    "ad revenue": {"ad load": 0.75, "page size": 0.05, "autoplay delay": -0.3},
    "support tickets": {"digest e-mails": 0.5, "ad load": 0.15, "autoplay delay": 0.35},
}

TEAM = World(
    baseline={factor.name: float(factor.baseline) for factor in KNOBS},
    levels={
        "7-day retention": 41.2,
        "p95 latency": 640,
        "unsubscribes": 2.8,
        "ad revenue": 100,
        "support tickets": 14,
    },
    largest=LARGEST,
    effects={
        outcome: {factor: slope * LARGEST[factor] for factor, slope in slopes.items()}
        for outcome, slopes in SLOPES.items()
    },
    noise={
        "7-day retention": 0.4,
        "p95 latency": 22,
        "unsubscribes": 0.25,
        "ad revenue": 1.6,
        "support tickets": 1.4,
    },
)


def product_setup() -> dict[str, Any]:
    """The arguments of `Study.create`: noise and levels are to be learned."""
    settings = list(product(*(factor.grid for factor in KNOBS)))[3::10]
    baseline = tuple(factor.baseline for factor in KNOBS)
    rows = [*settings[:159], baseline]
    return {
        "title": "Reader retention, mobile feed",
        "vocabulary": "experiment",
        "factors": KNOBS,
        "target": Outcome("7-day retention", "points", goal="raise", range=(37, 46), matters=0.2),
        "protected": [
            Outcome("p95 latency", "ms", range=(450, 850), tolerance=40),
            Outcome("unsubscribes", "per 1000", range=(0, 6), tolerance=0.5),
            Outcome("ad revenue", "% of plan", range=(85, 115), tolerance=2.5),
            Outcome("support tickets", "per 10000", range=(4, 24), tolerance=2.0),
        ],
        "candidates": {factor.name: [row[j] for row in rows] for j, factor in enumerate(KNOBS)},
    }
