"""docs/explanation/beliefs.md has the numbers of the prior, the belief and the rule."""

import re
from pathlib import Path

import pytest

from sidestep.studies.learning import belief, learner, observations, readings, recommendation
from sidestep.studies.learning.bases import CURVES, LENGTH
from sidestep.studies.learning.features import JOINT as PRODUCTS
from sidestep.studies.learning.prior import (
    BLOCK,
    CURVE,
    DRIFT,
    EXCESS,
    GROSS,
    JOINT,
    LEVEL,
    NOISE,
    S0,
    Grid,
    Prior,
)

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "beliefs.md"
PRIOR = Prior()


def both(grid: Grid) -> tuple[float, ...]:
    return (*grid.values, *grid.weights)


NUMBERS = {
    "c": both(PRIOR.centres),
    "c around its centre": tuple(round(each, 4) for each in PRIOR.away),
    "r": both(PRIOR.bends),
    "curve": (CURVE,),
    "joint": (JOINT, 1.0),
    "E": both(PRIOR.owns),
    "v": both(PRIOR.words),
    "level": (LEVEL,),
    "noise": (learner.ROUGHLY, len(NOISE.values), 0.1, round(NOISE.values[0], 3)),
    "noise beyond told errors": both(EXCESS),
    "drift of a level": (*both(DRIFT), observations.EPOCHS),
    "block": (BLOCK,),
    "gross results": (1 / GROSS, readings.MOST),
}


def numbers(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)", text)]


def row(name: str) -> str:
    text = PAGE.read_text(encoding="utf-8").partition("## Every number, and why")[2]
    (found,) = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", text.partition("\n## ")[0], re.M)
    return found


@pytest.mark.parametrize("name", NUMBERS)
def test_the_page_has_the_numbers_of_the_prior(name):
    shown = numbers(row(name))
    for number in NUMBERS[name]:
        assert number in [pytest.approx(each) for each in shown], number


def test_the_page_has_every_field_of_the_prior():
    known = {
        "centres": "c",
        "away": "c around its centre",
        "bends": "r",
        "curve": "curve",
        "joint": "joint",
        "owns": "E",
        "words": "v",
        "drift": "drift of a level",
        "gross": "gross results",
    }
    assert set(PRIOR.__dataclass_fields__) == set(known)
    assert all(row(name) for name in known.values())


def test_the_page_has_the_sizes_of_the_model_and_of_the_rule():
    text = PAGE.read_text(encoding="utf-8")
    assert pytest.approx(27**-0.5) == S0
    assert "1/√27" in row("S0")
    assert (LENGTH, CURVES, PRODUCTS) == (0.5, 9, 60)
    assert "ℓ = 0.5, as 9 functions" in text
    assert "the 60 largest products" in text
    assert pytest.approx(1 / 10_000) == belief.DROPPED
    assert "less than 1/10,000 together" in text
    assert (recommendation.CERTAINTY, recommendation.KEY, recommendation.PLAUSIBLE) == (
        0.95,
        0.5,
        0.1,
    )
    assert "a likelihood of at least a tenth of the largest" in text
    shapes = len(PRIOR.bends.values) * len(PRIOR.owns.values)
    counts = (shapes, len(PRIOR.centres.values), len(PRIOR.drift.values))
    assert counts == (8, 5, 3)
    assert "8 shapes (r, E), 5 sizes c and 3 drifts, times 9 noises" in text
