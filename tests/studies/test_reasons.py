"""Why a question is put, and what today's recommendation is worth: numbers on record, words on cards."""

from dataclasses import replace

import numpy as np
import pytest

from clinic import PROTECTED, TARGET, clinic, play
from sidestep.core.problem import Query
from sidestep.policies.recommend import recommend
from sidestep.studies.advice import Contender
from sidestep.studies.best_card import best_card
from sidestep.studies.memory import MemoryStore
from sidestep.studies.narrowing import narrowings
from sidestep.studies.units import Factor, Outcome

NAMES = [TARGET.name, *(outcome.name for outcome in PROTECTED)]


@pytest.fixture(scope="module")
def study():
    study = clinic(MemoryStore())
    play(study, 14)
    study.ask()
    return study


@pytest.fixture(scope="module")
def mind(study):
    study._live.follow()
    return study._live.mind()


def body_of(study, ticket):
    """What the record holds of a question."""
    return study.history()[ticket.id - 1].body


def decision_of(study, mind):
    """The decision behind the open question, made again."""
    question = study.questions()[0]
    rng = np.random.default_rng([study.plan.seed, question.id])
    return mind.policy.ask(mind.state, mind.actions({}), rng), question.body


def test_the_record_holds_the_reasons_of_the_decision_in_units(study, mind):
    decision, body = decision_of(study, mind)
    assert body["candidate"] == decision.arm
    assert body["rival"]["candidate"] == decision.rival
    assert body["rival"]["action"] == study.plan.candidates.setting(decision.rival)
    assert [body["shares"][name] for name in NAMES] == pytest.approx(decision.shares)
    assert body["price"] == pytest.approx(45 * decision.price)  # half of 100 to 190 mmHg
    outcome = study.plan.outcome(body["measure"][0])
    ends = np.clip(sorted(map(outcome.value, decision.expected)), outcome.low, outcome.high)
    assert sorted(body["expected"][outcome.name]) == pytest.approx(ends)


def test_the_card_says_why_what_to_expect_and_what_may_move(study):
    text = " ".join(str(study.ask().card).split())
    assert "Two regimens contend: this one and" in text
    assert "of that doubt (" in text
    assert "today's best" in text
    assert "19 times in 20 between" in text
    assert text.count("limit ±") == len(PROTECTED)
    assert "the goal" in text


def test_today_s_best_is_the_rival_where_asking_has_a_price_and_else_the_one_asked(study):
    for event in study.history():
        if event.kind != "asked" or not event.body["results"]:
            continue
        best = event.body["best"]["action"]
        paid = event.body["price"] > 0
        assert best == (event.body["rival"]["action"] if paid else event.body["action"])


def test_every_outcome_of_a_panel_has_its_expected_result(study):
    body = body_of(study, study.ask(new=True, panel=3, actor="panel"))
    assert set(body["expected"]) == set(body["measure"])
    assert len(body["measure"]) == 3
    for name, (estimate, low, high) in body["expected"].items():
        outcome = study.plan.outcome(name)
        assert outcome.low <= low < estimate < high <= outcome.high


def test_a_question_to_confirm_says_what_it_expects(study):
    ticket = study.ask(new=True, purpose="confirm", measure="sodium", actor="confirm")
    body = body_of(study, ticket)
    assert body["measure"] == ["sodium"]
    assert list(body["expected"]) == ["sodium"]
    assert "This is what would be recommended today" in " ".join(str(ticket.card).split())


def test_a_policy_without_a_posterior_gives_no_reasons():
    study = clinic(MemoryStore(), policy="uniform")
    play(study, 3)
    text = str(study.ask().card)
    assert "Why" not in text
    assert "May move" in text


def test_a_rival_in_a_box_is_a_setting():
    study = clinic(MemoryStore(), factors=[Factor("a", 0, 9, unit="mg"), Factor("b", 0, 1)])
    for value in (140, 4.1, 139, 71, 142, 138):
        ticket = study.ask()
        study.tell(ticket.id, study.plan.outcome(ticket.measure).level + value / 100)
    body = body_of(study, study.ask())
    assert body["rival"] is None or (
        body["rival"]["candidate"] is None and set(body["rival"]["action"]) == {"a", "b"}
    )


def test_best_gives_the_loss_in_the_target_s_unit_and_says_whether_it_is_enough(study, mind):
    best = study.best()
    advice = recommend(mind.policy, mind.state, mind.actions({}))
    assert best.loss == pytest.approx((45 * advice.loss.mean, 45 * advice.loss.high))
    assert best.within is advice.assured
    assert best.enough is (best.loss.high <= 1.0)
    text = " ".join(str(best).split())
    assert "stopping now gives up" in text
    assert "19 times in 20 less than" in text
    assert "You said 1.0 matters" in text


def apart(study, **changes):
    """Today's recommendation with something else in it, as words."""
    best = replace(study.best(), **changes)
    return " ".join(str(best_card(study.plan, "bp", best)).split())


def test_nothing_within_limits_is_said_plainly_with_the_leading_contender(study):
    text = apart(study, within=False)
    assert "Nothing is yet known to be within limits. The leading contender is no." in text
    assert "If you stopped today: nothing is known to be within limits" in text
    assert "Every marker within limits" not in text


def test_the_baseline_is_no_finding(study):
    baseline = study.plan.baseline
    rival = Contender(3, study.plan.candidates.setting(3), 0.2)
    own = Contender(study.plan.candidates.find(baseline), baseline, 0.1)
    effects = dict.fromkeys(NAMES, (0.0, 0.0, 0.0))
    found = {name: type(study.best().effects[name])(*ends) for name, ends in effects.items()}
    text = apart(
        study,
        within=True,
        action=baseline,
        candidate=own.candidate,
        contenders=(own, rival),
        effects=found,
    )
    assert "Nothing but the baseline is yet known to be within limits." in text
    assert "The leading contender is no. 3" in text
    assert "Systolic pressure stays as it is." in text
    assert "Every marker within limits" not in text


def test_markers_that_are_within_limits_only_one_by_one_are_said_to_be(study):
    found = {
        name: effect._replace(verdict="within" if effect.verdict else None)
        for name, effect in study.best().effects.items()
    }
    text = apart(study, within=False, effects=found)
    assert "Each marker alone is within limits 19 times in 20; together they are not yet." in text


@pytest.mark.parametrize("baseline", [139, None], ids=["level told", "level learned"])
def test_more_results_narrow_an_effect_as_was_foretold(baseline):
    protected = [
        Outcome("sodium", baseline=baseline, range=(125, 150), tolerance=1.0, noise=1.0),
        Outcome("potassium", baseline=4.2, range=(3, 6), tolerance=0.3, noise=0.1),
    ]
    target = replace(TARGET, noise=3.0)
    study = clinic(MemoryStore(), target=target, protected=protected)
    play(study, 6)
    study._live.follow()
    mind = study._live.mind()
    action = np.asarray(mind.actions({}).vectors[-1])
    effects = {name: each[0] for name, each in mind.effects(action[None]).items()}
    effects["sodium"] = effects["sodium"]._replace(verdict="not settled")
    told = next(
        each for each in narrowings(mind, action, effects, assured=None) if each.outcome == "sodium"
    )
    for _ in range(told.results):
        mind.state = mind.policy.tell(mind.state, Query(action, 1), 0.0)
    after = mind.effects(action[None])["sodium"][0]
    assert told.width == pytest.approx((after.high - after.low) / 2)
    assert told.results == 12 or told.width <= 0.5
