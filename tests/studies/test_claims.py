"""What sixty rounds lead to, in simulated clinics and product teams (benchmarks/live_claims.py)."""

import pytest
from stories import STORIES, outcome_of

pytestmark = pytest.mark.slow

SEEDS = 50


@pytest.fixture(scope="module")
def ends():
    return {kind: [outcome_of(kind, seed) for seed in range(SEEDS)] for kind in STORIES}


def test_what_is_said_to_be_within_limits_is_so_19_times_in_20(ends, oracle):
    saying = [end for outcomes in ends.values() for end in outcomes if end.says]
    assert oracle.at_least(sum(end.within for end in saying), len(saying), 0.95)


def test_the_clinic_finds_more_than_its_baseline_within_limits_in_half_of_the_studies(ends, oracle):
    found = sum(end.says and not end.idle for end in ends["clinic"])
    assert oracle.at_least(found, SEEDS, 0.5)


def test_intervals_of_effects_cover_93_times_in_100(ends, oracle):
    covered = sum(end.covered for outcomes in ends.values() for end in outcomes)
    effects = sum(end.effects for outcomes in ends.values() for end in outcomes)
    assert oracle.at_least(covered, effects, 0.93)
