"""What a study believes: units, order, odd results, limits of detection, knowledge, bends, the rule."""

import itertools
import json

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sidestep import Factor
from sidestep.studies.learning import belief as module
from sidestep.studies.learning import posterior as posterior_module
from sidestep.studies.learning.bends import bends_of
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.knowledge import Knowledge, Part, nothing_known
from sidestep.studies.learning.learner import Learner, told_of
from sidestep.studies.learning.observations import Observation, Sums
from sidestep.studies.learning.places import Places
from sidestep.studies.learning.prior import prior_of
from sidestep.studies.learning.recommendation import choice_of

DOSES = (0.0, 10.0, 20.0, 30.0, 40.0)
FACTORS = (Factor("dose", levels=DOSES, baseline=0.0), Factor("heat", 0, 1, step=0.5))
SETTINGS = [{"dose": d, "heat": h} for d, h in itertools.product(DOSES, (0.0, 0.5, 1.0))]
NOISE = 0.05
NEAR = 1e-9


def start(shape=None, factors=FACTORS, outcomes=2, noise=NOISE, **more):
    features = Features(factors)
    learner = Learner(features, [told_of(noise)] * outcomes, prior_of(shape), **more)
    return features, learner


def straight(setting, slope=0.3):
    return slope * setting["dose"] / 40 - 0.1 * setting["heat"]


def filled(learner, features, count=24, seed=0, truth=straight, odd=None):
    """Results at random settings; the number `odd` is off by one half-range."""
    rng = np.random.default_rng(seed)
    results = []
    for number in range(count):
        setting = SETTINGS[rng.integers(len(SETTINGS))]
        value = 0.2 + truth(setting) + NOISE * rng.standard_normal() + (number == odd)
        results.append((number % 2, Observation(features.place(setting), value, round=number)))
    for outcome, each in results:
        learner.add(outcome, each)
    return results


def numbers(effects, outcome=0):
    return np.concatenate(
        [
            effects.mean(outcome),
            effects.spread(outcome),
            effects.quantile(outcome, 0.9),
            effects.all_within([None, (-0.2, 0.25)]),
        ]
    )


def test_units_cancel():
    found = []
    for unit in (1.0, 1000.0):
        factors = (
            Factor("dose", levels=[d * unit for d in DOSES], baseline=0.0),
            Factor("heat", 0, unit, step=0.5 * unit),
        )
        features, learner = start(factors=factors)
        rng = np.random.default_rng(1)
        settings = [{name: v * unit for name, v in s.items()} for s in SETTINGS]
        for number in range(20):
            which = rng.integers(len(SETTINGS))
            value = straight(SETTINGS[which]) + NOISE * rng.standard_normal()
            learner.add(number % 2, Observation(features.place(settings[which]), value))
        found.append(numbers(learner.belief().at(features.points(settings))))
    np.testing.assert_allclose(found[0], found[1], atol=NEAR)


def test_the_order_of_results_does_not_matter():
    found = []
    for turned in (False, True):
        features, learner = start()
        points = features.points(SETTINGS)
        _, other = start()
        results = filled(other, features)
        for outcome, each in reversed(results) if turned else results:
            learner.add(outcome, each)
        found.append(numbers(learner.belief().at(points)))
    np.testing.assert_allclose(found[0], found[1], atol=NEAR)


def test_sums_are_stored_and_read_without_the_results():
    features, learner = start()
    filled(learner, features)
    stored = json.loads(json.dumps([sums.to_json() for sums in learner.sums]))
    places = json.loads(json.dumps(features.places.to_json()))
    again = Places(FACTORS)
    again.take(places)
    _, empty = start()
    other = Learner(Features(FACTORS, places=again), empty.told, empty.prior)
    other.take([Sums.from_json(each) for each in stored])
    np.testing.assert_array_equal(
        numbers(learner.belief().at(features.points(SETTINGS))),
        numbers(other.belief().at(other.features.points(SETTINGS))),
    )


def test_components_that_are_left_out_could_not_matter(monkeypatch):
    features, learner = start(noise=None)
    filled(learner, features, 12)
    few = learner.belief().at(features.points(SETTINGS))
    monkeypatch.setattr(module, "DROPPED", 0.0)
    features, learner = start(noise=None)
    filled(learner, features, 12)
    every = learner.belief().at(features.points(SETTINGS))
    for outcome in (0, 1):
        assert len(few.belief.mixtures[outcome]) < len(every.belief.mixtures[outcome])
        for value in (-0.1, 0.1):
            gap = few.below(outcome, value) - every.below(outcome, value)
            assert np.abs(gap).max() <= module_dropped() + NEAR


def module_dropped():
    return 1e-4


@pytest.mark.parametrize("odd", [7, 12])
def test_a_grossly_wrong_result_is_named_and_moves_little(odd):
    features, learner = start()
    filled(learner, features, odd=odd)
    belief = learner.belief()
    (_, value, _), chance = belief.surprises(odd % 2)[0]
    assert chance > 0.9
    assert value > 0.7
    points = features.points(SETTINGS)
    features, clean = start()
    filled(clean, features)
    gap = belief.at(points).mean(odd % 2) - clean.belief().at(features.points(SETTINGS)).mean(
        odd % 2
    )
    assert np.abs(gap).max() < 0.1


def test_clean_results_are_no_surprise():
    for seed in range(5):
        features, learner = start()
        filled(learner, features, seed=seed)
        for outcome in (0, 1):
            assert all(chance < 0.5 for _, chance in learner.belief().surprises(outcome))


def test_a_result_below_detection_says_what_it_says():
    """As the average over what the result may have been, by brute force."""
    limit, place = 0.37, SETTINGS[-1]
    features, learner = start("straight")
    filled(learner, features, 16)
    before = learner.belief()
    points = features.points(SETTINGS)
    value = before.values(features.points([place]))
    grid = np.linspace(limit - 0.3, limit, 400)
    density = np.gradient([value.result_below(0, y)[0] for y in grid], grid)
    means = []
    for y in grid[::20]:
        features_y, again = start("straight")
        filled(again, features_y, 16)
        again.add(0, Observation(features_y.place(place), float(y), round=16))
        means.append(again.belief().at(features_y.points(SETTINGS)).mean(0))
    expected = np.average(means, axis=0, weights=density[::20])
    learner.add(0, Observation(features.place(place), limit, below=True, round=16))
    found = learner.belief().at(points).mean(0)
    moved = np.abs(expected - before.at(points).mean(0)).max()
    assert moved > 0.01
    assert np.abs(found - expected).max() < 0.3 * moved


def test_above_mirrors_below():
    found = []
    for sign in (1, -1):
        features, learner = start()
        rng = np.random.default_rng(2)
        for number in range(10):
            setting = SETTINGS[rng.integers(len(SETTINGS))]
            value = sign * (straight(setting) + NOISE * rng.standard_normal())
            learner.add(0, Observation(features.place(setting), value, round=number))
        side = {"below": sign > 0, "above": sign < 0}
        learner.add(0, Observation(features.place(SETTINGS[-1]), 0.1 * sign, **side))
        found.append(sign * learner.belief().at(features.points(SETTINGS)).mean(0))
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_a_change_against_a_control_knows_no_level_and_no_drift():
    found = []
    for level in (0.0, 5.0):
        features, learner = start()
        rng = np.random.default_rng(4)
        for number in range(8):
            setting = SETTINGS[rng.integers(1, len(SETTINGS))]
            change = (straight(setting) + level) - level + NOISE * rng.standard_normal()
            learner.add(
                0,
                Observation(
                    features.place(setting), change, se=0.05, against=0, round=number * 100
                ),
            )
        found.append(learner.belief().at(features.points(SETTINGS)).mean(0))
    np.testing.assert_allclose(found[0], found[1], atol=1e-7)
    truth = [straight(each) for each in SETTINGS]
    assert np.abs(found[0] - truth).max() < 0.15


def test_errors_that_are_told_too_small_are_doubted():
    """Results that scatter three times as much as they say widen what is believed."""
    spreads = []
    for scatter in (1.0, 3.0):
        features, learner = start("straight")
        rng = np.random.default_rng(5)
        for number in range(30):
            setting = SETTINGS[rng.integers(len(SETTINGS))]
            value = straight(setting) + scatter * NOISE * rng.standard_normal()
            learner.add(0, Observation(features.place(setting), value, se=NOISE, round=number))
        spreads.append(learner.belief().at(features.points(SETTINGS)).spread(0).mean())
    assert spreads[1] > 1.6 * spreads[0]


def test_a_known_size_replaces_the_prior_and_gives_way_to_results():
    features, _ = start()
    column = features.straight("dose")[0]
    share, root = np.ones(features.count), np.zeros((features.count, 1))
    share[column], root[column, 0] = 0.0, 0.05
    known = Knowledge(share, np.zeros(features.count), np.zeros(features.count), root)
    expected = Part("expected", 0.8, [[(1.0, known)], [(1.0, None)]])
    parts = [expected, Part("nothing", 0.2)]
    features, learner = start("straight", parts=parts)
    points = features.points(SETTINGS)
    _, plain = start("straight")
    first = learner.belief().at(points).spread(0)
    assert first[-3] < 0.7 * plain.belief().at(plain.features.points(SETTINGS)).spread(0)[-3]
    filled(learner, features, 30, truth=lambda s: straight(s, slope=1.2))
    belief = learner.belief()
    assert belief.parts()["nothing"] > 0.9
    assert abs(belief.at(points).mean(0)[-3] - 1.2) < 0.15


def test_no_knowledge_changes_nothing():
    features, learner = start()
    filled(learner, features)
    nothing = nothing_known(features.count)
    part = Part("empty", 1.0, [[(1.0, nothing)], [(0.3, nothing), (0.7, None)]])
    features_2, other = start(parts=[part])
    filled(other, features_2)
    np.testing.assert_allclose(
        numbers(learner.belief().at(features.points(SETTINGS)), 1),
        numbers(other.belief().at(features_2.points(SETTINGS)), 1),
        atol=2e-4,
    )


def test_absolute_limits_need_the_level():
    """P(effect within, result never beyond), against a bivariate Gaussian of one component."""
    features, learner = start("straight")
    filled(learner, features, 10)
    belief = learner.belief()
    points = features.points(SETTINGS)
    effects, values = belief.at(points), belief.values(points)
    never = (None, 0.42)
    chance = effects.all_within([None, (-0.2, 0.3)], [None, never])
    home = belief.values(features.usual)
    expected = np.zeros(len(points))
    for k, weight in enumerate(belief.mixtures[1].weight):
        m, s = (each[k] for each in effects.parts(1))
        level, wide = (each[k, 0] for each in home.parts(1))
        around = values.parts(1)[1][k]
        for i in range(len(points)):
            if s[i] < 1e-9:
                continue
            both = (around[i] ** 2 + s[i] ** 2 - wide**2) / 2  # of effect and value
            cov = [[s[i] ** 2, both], [both, around[i] ** 2]]
            box = multivariate_normal([m[i], m[i] + level], cov, allow_singular=True)
            inside = box.cdf([0.3, 0.42]) - box.cdf([-0.2, 0.42])
            expected[i] += weight * inside
    moved = points.place != points.home
    np.testing.assert_allclose(chance[moved], expected[moved], atol=0.02)


def test_a_bend_that_results_show_is_named():
    def flattening(setting):
        return 0.6 * (1 - np.exp(-setting["dose"] / 8))

    features, learner = start()
    filled(learner, features, 80, truth=flattening)
    first = bends_of(learner.belief(), 2)[0]
    assert first.factor == "dose"
    assert not first.up
    assert first.kind == "flattens"
    assert 8 <= first.value <= 26
    features, learner = start()
    filled(learner, features, 80)
    assert not bends_of(learner.belief(), 2)


def test_nothing_is_recommended_before_every_outcome_was_measured():
    features, learner = start()
    rng = np.random.default_rng(6)
    points = features.points(SETTINGS)
    for number in range(40):
        setting = SETTINGS[rng.integers(len(SETTINGS))]
        value = straight(setting) + NOISE * rng.standard_normal()
        learner.add(0, Observation(features.place(setting), value, round=number))
    choice = choice_of(learner.belief().at(points), [None, (-10.0, 10.0)])
    assert choice.number is None
    assert choice.unmeasured == (1,)


def test_few_results_do_not_vouch_although_the_prior_would():
    """One result of a protected outcome leaves its size open: the rule says which outcome is not firm."""
    features, learner = start()
    rng = np.random.default_rng(7)
    points = features.points(SETTINGS)
    for number in range(40):
        setting = SETTINGS[rng.integers(len(SETTINGS))]
        value = straight(setting) + NOISE * rng.standard_normal()
        learner.add(0, Observation(features.place(setting), value, round=number))
    learner.add(1, Observation(features.place(SETTINGS[3]), 0.0, round=41))
    effects = learner.belief().at(points)
    limits = [None, (-0.5, 0.5)]
    choice = choice_of(effects, limits, certainty=0.6)
    assert (choice.within[1:] > 0.6).any()
    assert choice.number is None
    assert choice.unfirm == (1,)


def test_what_is_worse_than_the_baseline_is_never_recommended():
    features, learner = start()
    filled(learner, features, 40, truth=lambda s: -straight(s, 0.5) - 0.2 * s["heat"])
    choice = choice_of(learner.belief().at(features.points(SETTINGS)), [None, (-2.0, 2.0)])
    assert choice.number is None


def test_rows_of_one_effect_are_worked_out_together(monkeypatch):
    """A level that drifts has rows in many epochs; their effects are those of a few settings."""

    def found():
        features, learner = start(noise=None)
        rng = np.random.default_rng(3)
        for number in range(90):
            setting = SETTINGS[rng.integers(4)]
            value = 0.2 + straight(setting) + 0.002 * number + NOISE * rng.standard_normal()
            learner.add(
                number % 2,
                Observation(features.place(setting), value, round=number, block=number % 3),
            )
        belief = learner.belief()
        rows = belief.readings[0][0].posterior
        return (
            numbers(belief.at(features.points(SETTINGS))),
            belief.evidence,
            belief.noise(0),
            (len(rows.rows), len(rows.design.place)),
        )

    together = found()
    assert together[3][0] > 3 * together[3][1]
    monkeypatch.setattr(
        posterior_module,
        "_groups",
        lambda place, against: (np.arange(len(place)), np.arange(len(against))),
    )
    apart = found()
    assert apart[3][0] == apart[3][1]
    for one, other in zip(together[:3], apart[:3], strict=True):
        assert one == pytest.approx(other, abs=1e-8)
