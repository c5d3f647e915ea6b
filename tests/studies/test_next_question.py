"""What a study asks next: questions that decide, within their restrictions, the same every time."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sidestep import Factor
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.learner import Learner, told_of
from sidestep.studies.learning.next_question import Inquiry, drawn_question, next_question
from sidestep.studies.learning.observations import Observation
from sidestep.studies.learning.prior import Grid, prior_of

FACTORS = (Factor("dose", 0, 4, step=1), Factor("heat", 0, 4, step=1))
SETTINGS = [{"dose": float(a), "heat": float(b)} for a, b in itertools.product(range(5), range(5))]
SLOPES = ((0.2, 0.1), (0.05, 0.0), (0.0, 0.04), (-0.03, 0.03))
LIMITS = [None, (-0.12, 0.12), (-0.12, 0.12), (None, 0.1)]
LEVELS = (0.1, -0.2, 0.3, 0.0)
NOISE = 0.05
PRIOR = replace(prior_of("straight"), drift=Grid((0.0,), (1.0,)))


def learner_of(prior=PRIOR, noise=NOISE):
    features = Features(FACTORS)
    return Learner(features, [told_of(noise) for _ in SLOPES], prior)


def truth(outcome, setting):
    slopes = SLOPES[outcome]
    return LEVELS[outcome] + slopes[0] * setting["dose"] + slopes[1] * setting["heat"]


def inquiry_of(learner, counts, **more):
    points = learner.features.points(SETTINGS)
    belief = learner.belief()
    return Inquiry(belief.at(points), belief.values(points), LIMITS, counts, **more)


def played(learner, questions, rng, panel=1, ask=next_question, **more):
    """The questions of a study that asks and learns."""
    counts, found = np.zeros(len(SLOPES), dtype=int), []
    for number in range(questions):
        asked = ask(inquiry_of(learner, counts, **more), panel=panel)
        found.append(asked)
        for outcome in asked.outcomes:
            counts[outcome] += 1
            setting = SETTINGS[asked.number]
            value = truth(outcome, setting) + NOISE * rng.standard_normal()
            learner.add(outcome, Observation(learner.features.place(setting), value, round=number))
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [None, "straight"])
def test_no_outcome_is_asked_a_third_time_before_every_outcome_was_asked_once(seed, shape):
    asked = played(learner_of(prior_of(shape)), 9, np.random.default_rng(seed))
    outcomes = [each.outcomes[0] for each in asked]
    for outcome in set(outcomes):
        places = [number for number, each in enumerate(outcomes) if each == outcome]
        if len(places) > 2:
            assert set(outcomes[: places[2]]) == set(range(len(SLOPES)))
    assert set(outcomes) == set(range(len(SLOPES)))


def test_the_target_has_its_share_of_the_questions():
    asked = played(learner_of(), 30, np.random.default_rng(0))
    assert sum(each.outcomes == (0,) for each in asked) == 6


def test_the_same_results_in_another_order_give_the_same_question():
    rng = np.random.default_rng(1)
    results = [
        (int(rng.integers(4)), SETTINGS[rng.integers(25)], rng.normal() * NOISE) for _ in range(12)
    ]
    found = set()
    for order in (results, results[::-1], [results[i] for i in rng.permutation(12)]):
        learner = learner_of()
        for outcome, setting, error in order:
            place = learner.features.place(setting)
            learner.add(outcome, Observation(place, truth(outcome, setting) + error))
        counts = [learner.belief().results(outcome) for outcome in range(4)]
        found.add(next_question(inquiry_of(learner, counts)))
    assert len(found) == 1


def test_settings_that_are_told_twice_tie_and_the_first_is_asked():
    learner = learner_of()
    played(learner, 10, np.random.default_rng(2))
    points = learner.features.points([*SETTINGS, *SETTINGS])
    belief = learner.belief()
    both = Inquiry(belief.at(points), belief.values(points), LIMITS, [2, 3, 3, 2])
    assert next_question(both).number < len(SETTINGS)
    assert next_question(both, panel=4).number < len(SETTINGS)


def test_questions_keep_to_the_settings_and_outcomes_that_are_allowed():
    learner = learner_of()
    played(learner, 10, np.random.default_rng(3))
    rows = np.array([3, 8])
    for panel in (1, 2):
        asked = next_question(inquiry_of(learner, [2, 3, 3, 2], rows=rows, outcomes=(1, 3)), panel)
        assert asked.number in rows
        assert set(asked.outcomes) <= {1, 3}
        assert len(asked.outcomes) == panel
    assert next_question(inquiry_of(learner, [9, 3, 3, 2], outcomes=(0,))).outcomes == (0,)


def test_a_dear_outcome_is_asked_less():
    shares = {}
    for cost in (1.0, 8.0):
        rng = np.random.default_rng(4)
        asked = played(learner_of(), 30, rng, costs=(1.0, cost, 1.0, 1.0))
        shares[cost] = sum(each.outcomes == (1,) for each in asked)
    assert shares[8.0] < shares[1.0]


def test_a_visit_measures_all_outcomes_where_their_results_decide_most_together():
    learner = learner_of()
    played(learner, 6, np.random.default_rng(5), panel=4)
    inquiry = inquiry_of(learner, [6] * 4)
    asked = next_question(inquiry, panel=4)
    assert sorted(asked.outcomes) == [0, 1, 2, 3]
    assert asked.number == int(np.argmax(inquiry.gains.sum(axis=0).round(9)))


def test_a_part_of_a_panel_is_what_can_change_most():
    learner = learner_of()
    played(learner, 6, np.random.default_rng(6), panel=4)
    inquiry = inquiry_of(learner, [6] * 4)
    asked = next_question(inquiry, panel=2)
    gains = inquiry.gains.round(9)
    best = max(
        (gains[list(pair), number].sum(), pair, number)
        for pair in itertools.combinations(range(4), 2)
        for number in range(len(SETTINGS))
    )
    assert set(asked.outcomes) == set(best[1])
    assert gains[list(asked.outcomes), asked.number].sum() == pytest.approx(best[0])


def test_a_part_of_a_panel_measures_every_outcome_before_one_a_third_time():
    asked = played(learner_of(), 4, np.random.default_rng(7), panel=2)
    assert {each for asks in asked[:4] for each in asks.outcomes} == {0, 1, 2, 3}


def test_awaited_results_count_as_they_are_expected():
    learner = learner_of()
    played(learner, 12, np.random.default_rng(8))
    belief, points = learner.belief(), learner.features.points(SETTINGS)
    place = learner.features.place(SETTINGS[24])
    waiting = learner.expecting([(1, place)] * 3)
    after = waiting.belief()
    assert after.results(1) == belief.results(1) + 3
    assert learner.belief() is belief
    assert (after.at(points).spread(1)[1:] <= belief.at(points).spread(1)[1:] + 1e-9).all()
    moved = np.abs(after.at(points).mean(1) - belief.at(points).mean(1))
    assert moved.max() < 0.3 * belief.at(points).spread(1).max()
    assert learner.expecting([]) is learner


def test_with_answers_awaited_the_next_questions_are_others():
    learner = learner_of()
    played(learner, 12, np.random.default_rng(9))
    counts = np.array([learner.belief().results(outcome) for outcome in range(4)])
    awaited, found = [], []
    for _ in range(4):
        waiting = learner.expecting(awaited)
        asked = next_question(inquiry_of(waiting, counts))
        found.append(asked)
        counts[asked.outcomes[0]] += 1
        awaited.append((asked.outcomes[0], learner.features.place(SETTINGS[asked.number])))
    assert len({(each.number, each.outcomes) for each in found}) >= 3


def worth(setting):
    """The effect on the target where all limits hold; else nothing."""
    effects = [truth(outcome, setting) - LEVELS[outcome] for outcome in range(4)]
    pairs = zip(effects[1:], LIMITS[1:], strict=True)
    good = all(
        (low is None or e >= low) and (high is None or e <= high) for e, (low, high) in pairs
    )
    return effects[0] if good else 0.0


def test_where_today_comes_first_the_settings_that_are_given_are_better():
    gaps = []
    for seed in range(8):
        results = {}
        for name in ("decide", "earn"):
            stream = itertools.count()

            def drawn(inquiry, panel=1, seed=seed, stream=stream):
                return drawn_question(inquiry, np.random.default_rng([seed, next(stream)]), panel)

            ask = next_question if name == "decide" else drawn
            asked = played(learner_of(), 18, np.random.default_rng(seed), ask=ask)
            results[name] = np.mean([worth(SETTINGS[each.number]) for each in asked[8:]])
        gaps.append(results["earn"] - results["decide"])
    assert np.mean(gaps) > 2 * np.std(gaps, ddof=1) / np.sqrt(len(gaps)), gaps


def test_a_draw_is_repeated_by_its_seed():
    learner = learner_of()
    played(learner, 12, np.random.default_rng(10))
    inquiry = inquiry_of(learner, [3, 3, 3, 3])
    draws = [drawn_question(inquiry, np.random.default_rng([5, n // 2])) for n in range(20)]
    assert draws[::2] == draws[1::2]
    assert len(set(draws)) > 1
