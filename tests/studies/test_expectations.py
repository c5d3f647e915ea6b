"""What people expect before the first result: it narrows what is believed, and gives way."""

import tomllib
from dataclasses import replace

import numpy as np
import pytest

from sidestep import Factor, Outcome, Study
from sidestep.errors import InputError
from sidestep.studies.learning import expectations
from sidestep.studies.learning.expectations import WIDER
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.prior import prior_of
from sidestep.studies.learning.prior_parts import expected_of, parts_of
from sidestep.studies.plan import plan_from_config
from sidestep.studies.setup import read_setup
from sidestep.studies.storage.memory import MemoryStore

FACTORS = [Factor("dose", 0, 40, unit="mg", step=10), Factor("heat", 0, 1, step=0.25)]
PRESSURE = Outcome("pressure", "mmHg", goal="lower", range=(100, 180), baseline=140, noise=4)
SODIUM = Outcome("sodium", "mmol/L", range=(130, 150), baseline=140, tolerance=2.5, noise=0.8)
EXPECT = {"pressure": {"dose": (-25, 0), "heat": (None, 0)}, "sodium": {"dose": (-1, 1)}}


def begun(**more):
    settings = {
        "factors": FACTORS,
        "target": PRESSURE,
        "protected": [SODIUM],
        "shape": "straight",
    }
    return Study.create("bp", MemoryStore(), **(settings | more))


def told(study, truth, rounds, seed=0):
    """Measure both outcomes at settings in turn, with their noise."""
    rng = np.random.default_rng(seed)
    for number in range(rounds):
        setting = {"dose": 10.0 * (number % 5), "heat": 0.25 * (number * 2 % 5)}
        for name, noise in (("pressure", 4), ("sodium", 0.8)):
            value = 140 + truth[name] * setting["dose"] / 40 + noise * rng.standard_normal()
            study.tell(None, value, measured=name, given=setting)
    return study


def width(study, name):
    top = next(row for row in study.explain().rows if row.action == {"dose": 40.0, "heat": 0.0})
    effect = top.effects[name]
    return effect.high - effect.low


def test_an_expectation_narrows_what_is_believed():
    truth = {"pressure": -12, "sodium": 0.3}
    plain, expecting = (told(begun(expect=expect), truth, 2) for expect in ({}, EXPECT))
    assert width(expecting, "pressure") < 0.9 * width(plain, "pressure")
    assert width(expecting, "sodium") < 0.9 * width(plain, "sodium")
    assert expecting.best().unexpected == ()


def test_what_is_expected_is_the_prior_of_the_straight_part():
    plan = begun(expect=EXPECT).plan
    features, prior = Features(plan.factors), prior_of("straight")
    (part,) = parts_of(plan, features, prior)
    weights, whole = zip(*part.outcomes[0], strict=True)
    assert sum(weights) == pytest.approx(1)
    assert tuple(weights[:-1]) == tuple(weight for _, weight in WIDER)
    known = whole[0]
    dose, heat = (int(features.straight(name)[0]) for name in ("dose", "heat"))
    # half-ranges are 40, the change is twice the weight, the target counts the other way round
    assert known.share[dose] == 0
    assert known.mean[dose] == pytest.approx(12.5 / 40 / 2)
    assert np.abs(known.root[dose]).sum() == pytest.approx(WIDER[0][0] * 12.5 / 40 / 2 / 1.96)
    assert known.scaled[heat] == pytest.approx(np.sqrt(2 / np.pi))
    assert known.share[heat] == pytest.approx(1 - 2 / np.pi)
    assert whole[-1] is None


def test_what_is_expected_of_sizes_weighs_them_and_no_more():
    plan = begun(expect=EXPECT).plan
    prior = prior_of("straight")
    (part,) = parts_of(plan, Features(plan.factors), prior)
    chance = np.array(prior.centres.weights) @ prior.sizes_given_centre
    for outcome in range(2):
        for _, known in part.outcomes[outcome]:
            if known is not None:
                assert chance / chance.sum() @ np.exp(known.sizes) == pytest.approx(1)


def test_an_expectation_that_results_contradict_is_named_and_gives_way():
    study = told(begun(expect=EXPECT), {"pressure": 30, "sodium": 0}, 20)
    (found,) = study.best().unexpected
    assert found[:4] == ("pressure", "dose", -25.0, 0.0)
    assert found.chance > 0.9
    text = " ".join(study.best().card.text().split())
    assert "Expected of dose on pressure: -25 to 0 mmHg; the results say otherwise (" in text
    top = next(row for row in study.explain().rows if row.action["dose"] == 40)
    assert abs(top.effects["pressure"].estimate - 30) < 6


def beyond(studies, **more):
    """Studies that recommend what is beyond a limit, where sodium moves twice as far as was told."""
    truth = {"pressure": -20, "sodium": 3.0}
    expect = {"pressure": {"dose": (-20, 0)}, "sodium": {"dose": (0, 1.5)}}
    found = 0
    for seed in range(studies):
        best = told(begun(expect=expect), truth, 3, seed).best()
        found += truth["sodium"] * best.action["dose"] / 40 > 2.5
    return found


def test_sizes_told_at_half_of_the_truth_keep_the_promise(monkeypatch):
    # of 40 studies at 5% more than 6 are beyond a limit with a chance of 0.004
    assert beyond(40) <= 6
    monkeypatch.setattr(expectations, "WIDER", ((1.0, 1.0 - 1e-9),))
    assert beyond(40) > 6


def test_monotone_is_an_expectation_of_the_sign():
    plan = begun(
        expect={"pressure": {"dose": (-25, 5)}},
        monotone={"pressure": {"dose": "falls", "heat": "rises"}},
    ).plan
    # the target should fall, so what falls counts as a gain
    assert expected_of(plan)[0] == {"dose": (0.0, 25 / 40), "heat": (None, 0.0)}
    assert expected_of(plan)[1] == {}


def test_expectations_are_stored_and_read_again(tmp_path):
    monotone = {"sodium": {"heat": "rises"}}
    percent = Outcome("rate", range=(50, 200), scale="log", tolerance="10%")
    study = begun(
        expect=EXPECT | {"rate": {"dose": ("-5%", "8%")}},
        monotone=monotone,
        protected=[SODIUM, percent],
    )
    config = study.history()[0].body["config"]
    assert config["version"] == 2
    assert plan_from_config(config, None) == study.plan
    assert study.plan.expect["rate"]["dose"] == (-5.0, 8.0)
    assert replace(study.plan) == study.plan
    path = tmp_path / "study.toml"
    path.write_text(
        """
        expect = { pressure = { dose = [-inf, 0] } }
        monotone = { pressure = { heat = "falls" } }
        factors = [{ name = "dose", low = 0, high = 40 }, { name = "heat", low = 0, high = 1 }]
        target = { name = "pressure", goal = "lower", range = [100, 180] }
        """,
        encoding="utf-8",
    )
    assert tomllib.loads(path.read_text(encoding="utf-8"))
    read = Study.create("again", MemoryStore(), **read_setup(path)).plan
    assert read.expect == {"pressure": {"dose": (None, 0.0)}}
    assert read.monotone == {"pressure": {"heat": "falls"}}


def test_the_overview_shows_what_was_expected():
    text = " ".join(begun(expect=EXPECT).show().text().split())
    assert "Known before dose on pressure -25 to 0 mmHg heat on pressure at most 0 mmHg" in text
    assert "Known before" not in begun().show().text()


def test_a_study_that_was_told_nothing_is_stored_as_before():
    assert {"expect", "monotone", "earlier"}.isdisjoint(begun().history()[0].body["config"])


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"expect": {"salt": {"dose": (0, 1)}}}, "expect must name outcomes, pressure, sodium"),
        ({"expect": {"sodium": {"salt": (0, 1)}}}, "expect of sodium must name factors that are"),
        ({"expect": {"sodium": {"dose": 3}}}, "expect of sodium and dose must be a pair"),
        ({"expect": {"sodium": {"dose": (1, 0)}}}, "must have low < high"),
        ({"expect": {"sodium": {"dose": (None, None)}}}, "must have low < high"),
        ({"expect": {"sodium": {"dose": ("1%", "2%")}}}, 'may be in percent only on scale="log"'),
        ({"monotone": {"sodium": {"dose": "up"}}}, 'must be "rises" or "falls", got \'up\''),
        (
            {
                "expect": {"sodium": {"dose": (0, 2)}},
                "monotone": {"sodium": {"dose": "falls"}},
            },
            "monotone of sodium and dose must agree with what is expected",
        ),
        ({"expect": EXPECT, "policy": "oful", "shape": None}, "expect is for studies without a"),
        ({"expect": EXPECT, "model": "0 + dose + heat"}, "expect is for studies without a model"),
    ],
)
def test_a_wrong_expectation_is_refused_in_one_sentence(more, sentence):
    with pytest.raises(InputError, match=sentence):
        begun(**more)
