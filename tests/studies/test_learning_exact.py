"""The belief of a study is exact: the same numbers as dense algebra over every result."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from sidestep import Factor
from sidestep.studies.learning import effects as module
from sidestep.studies.learning.features import Features, Points
from sidestep.studies.learning.learner import Learner, told_of
from sidestep.studies.learning.observations import Observation
from sidestep.studies.learning.prior import BLOCK, LEVEL, S0, Grid, Prior

FACTORS = (
    Factor("dose", 0, 40, step=10, baseline=10),
    Factor("heat", 0, 1, step=0.5),
    Factor("lipid", levels=["a", "b", "c"], baseline="b"),
)
CONTEXT = (Factor("age", 20, 80, baseline=50),)
SETTINGS = [
    {"dose": float(dose), "heat": heat, "lipid": word}
    for dose, heat, word in itertools.product((0, 10, 20, 30, 40), (0.0, 0.5, 1.0), "abc")
]
NOISE = 0.2
PRIOR = Prior(
    bends=Grid((0.3, 0.6), (0.6, 0.4)),
    owns=Grid((0.1, 0.8), (0.7, 0.3)),
    centres=Grid((0.8, 1.6), (0.5, 0.5)),
    drift=Grid((0.0, 0.3), (0.6, 0.4)),
    words=Grid((2.0,), (1.0,)),
    gross=0.0,
)


def results_of(rng, features, count):
    """Results of two outcomes: plain, repeated, with errors, changes; several rounds, two blocks."""
    found = []
    for number in range(count):
        setting = SETTINGS[rng.integers(len(SETTINGS))]
        other = SETTINGS[rng.integers(len(SETTINGS))]
        age = {"age": float(rng.choice([20, 50, 65]))}
        kind = number % 4
        result = {"place": features.place(setting, age), "value": rng.normal(), "round": number % 7}
        if kind == 1:
            result |= {"repeats": 3.0, "block": int(number % 8 == 1)}
        if kind == 2:
            result |= {"se": 0.1}
        if kind == 3:
            result |= {"against": features.place(other, age), "se": 0.3 * (number % 8 == 3) or None}
        found.append((number % 2, result))
    return found


def kernel(
    features: Features, first: Points, second: Points, bend: float, own: float
) -> np.ndarray:
    """Prior covariance of the outcome at places, in c^2, relative to nothing."""
    smooth = (first.features * PRIOR.variances(features, bend, 2.0)) @ second.features.T
    same = first.place[:, None] == second.place
    return S0**2 * (smooth + same * (own**2 + PRIOR.joint**2 * first.missing[:, None]))


def dense(features, results, points, bend, own, c, excess, drift):
    """Mean, s.d. and log likelihood of one component, from every single result of one outcome."""
    place = np.array([each["place"] for each in results])
    against = np.array([each.get("against", features.usual.place[0]) for each in results])
    plain = np.array([each.get("against") is None for each in results])
    here, there = features.at(place), features.at(against)
    new = features.at(points.place), features.at(points.home)

    def cov(a, b):
        return c**2 * sum(sign * kernel(features, a[i], b[j], bend, own) for i, j, sign in SIGNS)

    k = cov((here, there), (here, there))
    rounds = np.array([each["round"] for each in results])
    first = rounds[plain].min()
    blocks = np.array([-1 if each.get("block") is None else each["block"] for each in results])
    both = np.outer(plain, plain)
    k += both * LEVEL**2
    k += both * (drift * NOISE) ** 2 * (np.minimum(rounds[:, None], rounds) - first)
    k += both * (blocks[:, None] == blocks) * (blocks >= 0) * BLOCK**2
    for i, each in enumerate(results):
        if each.get("se"):
            k[i, i] += each["se"] ** 2 + excess**2
        else:
            k[i, i] += NOISE**2 * (1 if plain[i] else 2) / each.get("repeats", 1.0)
    y = np.array([each["value"] for each in results])
    cross = cov(new, (here, there))
    mean = cross @ np.linalg.solve(k, y)
    variance = np.diag(cov(new, new)) - np.einsum("ij,ji->i", cross, np.linalg.solve(k, cross.T))
    log = -0.5 * (np.linalg.slogdet(k)[1] + y @ np.linalg.solve(k, y))
    return mean, variance, log


SIGNS = ((0, 0, 1), (0, 1, -1), (1, 0, -1), (1, 1, 1))


@pytest.fixture(scope="module")
def study():
    features = Features(FACTORS, CONTEXT)
    results = results_of(np.random.default_rng(3), features, 42)
    learner = Learner(features, [told_of(NOISE), told_of(NOISE)], PRIOR)
    for outcome, each in results:
        learner.add(outcome, Observation(**each))
    return features, results, learner


def test_the_averaged_belief_is_that_of_dense_algebra(study):
    features, results, learner = study
    points = features.points(SETTINGS, {"age": 65.0})
    effects = learner.belief().at(points)
    cells = list(itertools.product((0.3, 0.6), (0.1, 0.8)))
    weights = [np.log(a * b) for a, b in itertools.product((0.6, 0.4), (0.7, 0.3))]
    sizes = (0.8, 1.6)
    found = {}
    for outcome in (0, 1):
        mine = [each for which, each in results if which == outcome]
        told = [each["se"] ** 2 for each in mine if each.get("se")]
        unit = np.sqrt(np.median(list(set(told)))) if told else 0.0
        excesses = learner.told[outcome].excess * unit if told else [0.0]
        logs = learner.told[outcome].excess_log if told else [0.0]
        for h, (bend, own) in enumerate(cells):
            for s, c in enumerate(sizes):
                found[outcome, h, s] = [
                    (*dense(features, mine, points, bend, own, c, excess, drift), lx + np.log(ld))
                    for (excess, lx), (drift, ld) in itertools.product(
                        zip(excesses, logs, strict=True), ((0.0, 0.6), (0.3, 0.4))
                    )
                ]
    away = np.log(PRIOR.sizes_given_centre)
    table = {
        key: logsumexp([log + prior for _, _, log, prior in parts]) for key, parts in found.items()
    }
    joint = np.array(
        [
            [
                weights[h]
                + np.log(0.5)
                + sum(logsumexp([away[z, s] + table[o, h, s] for s in (0, 1)]) for o in (0, 1))
                for z in (0, 1)
            ]
            for h in range(4)
        ]
    )
    joint = np.exp(joint - logsumexp(joint))
    np.testing.assert_allclose(learner.belief().joint, joint, atol=1e-9)
    for outcome in (0, 1):
        mean = square = 0.0
        for h, z, s in itertools.product(range(4), (0, 1), (0, 1)):
            norm = logsumexp([away[z, t] + table[outcome, h, t] for t in (0, 1)])
            chance = joint[h, z] * np.exp(away[z, s] + table[outcome, h, s] - norm)
            for m, v, log, prior in found[outcome, h, s]:
                share = chance * np.exp(log + prior - table[outcome, h, s])
                mean, square = mean + share * m, square + share * (v + m**2)
        # components are left out whose weights sum to 1e-4
        np.testing.assert_allclose(effects.mean(outcome), mean, atol=3e-4)
        spread = np.sqrt(np.maximum(square - mean**2, 0))
        np.testing.assert_allclose(effects.spread(outcome), spread, atol=2e-3)


def test_covariances_are_those_of_the_averaged_belief(study, monkeypatch):
    """Of a setting with itself: its variance, for effects and for values; and both ways the same."""
    monkeypatch.setattr(module, "MINOR", 0.0)
    features, _, learner = study
    points = features.points(SETTINGS, {"age": 65.0})
    belief = learner.belief()
    effects, values = belief.at(points), belief.values(points)
    every = np.arange(len(points))
    for outcome in (0, 1):
        for each in (effects, values):
            covariance = each.covariance(outcome, every, each)
            np.testing.assert_allclose(
                np.diag(covariance), each.spread(outcome) ** 2, rtol=1e-8, atol=1e-12
            )
            np.testing.assert_allclose(covariance, covariance.T, atol=1e-12)
        both = effects.covariance(outcome, every, values)
        np.testing.assert_allclose(both, values.covariance(outcome, every, effects).T, atol=1e-12)


def test_a_belief_that_follows_its_results_is_that_of_all_results_at_once(study):
    """What was worked out before is used again only where it holds."""
    features, results, learner = study
    points = features.points(SETTINGS, {"age": 65.0})
    following = Learner(features, learner.told, PRIOR)
    limits = [None, (-0.5, 0.5)]
    for outcome, each in results:
        following.add(outcome, Observation(**each))
        effects = following.belief().at(points)
        effects.mean(0), effects.all_within(limits)
    fresh = Learner(Features(FACTORS, CONTEXT), learner.told, PRIOR)
    for outcome, each in results:
        moved = {"place": fresh.features.places.number(features.places.known[each["place"]])}
        if each.get("against") is not None:
            moved["against"] = fresh.features.places.number(features.places.known[each["against"]])
        fresh.add(outcome, Observation(**(each | moved)))
    once = fresh.belief().at(fresh.features.points(SETTINGS, {"age": 65.0}))
    for outcome in (0, 1):
        np.testing.assert_allclose(effects.mean(outcome), once.mean(outcome), atol=1e-9)
        np.testing.assert_allclose(effects.spread(outcome), once.spread(outcome), atol=1e-9)
    np.testing.assert_allclose(effects.all_within(limits), once.all_within(limits), atol=1e-9)
