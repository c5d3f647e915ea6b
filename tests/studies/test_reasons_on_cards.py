"""The reasons of a question, and the loss of stopping: numbers in the record, words on cards."""

from dataclasses import replace

import numpy as np
import pytest

from clinic import PROTECTED, TARGET, clinic, play, same
from sidestep.errors import InputError
from sidestep.studies.advice import MOST_ROUNDS, Leader, Loss, Narrowing
from sidestep.studies.cards.best_card import best_card
from sidestep.studies.cards.tradeoff_card import trade_lines
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.study import Study

NAMES = [TARGET.name, *(outcome.name for outcome in PROTECTED)]


@pytest.fixture(scope="module")
def study():
    study = clinic(MemoryStore())
    play(study, 14)
    study.ask()
    return study


@pytest.fixture(scope="module")
def named():
    """A study whose policy is named by its name."""
    study = clinic(MemoryStore(), policy="directed-thompson")
    play(study, 14)
    study.ask()
    return study


def body_of(study, ticket):
    """What the record holds of a question."""
    return study.history()[ticket.id - 1].body


def test_the_record_holds_the_reasons_of_the_decision_in_units(named):
    named._live.follow()
    mind, question = named._live.mind(), named.questions()[0]
    rng = np.random.default_rng([named.plan.seed, question.id])
    decision = mind.policy.ask(mind.state, mind.scale.actions({}), rng)
    body = question.body
    assert body["candidate"] == decision.arm
    assert body["rival"]["candidate"] == decision.rival
    assert body["rival"]["action"] == named.plan.candidates.setting(decision.rival)
    assert [body["shares"][name] for name in NAMES] == pytest.approx(decision.shares)
    assert body["price"] == pytest.approx(45 * decision.price)  # half of 100 to 190 mmHg
    outcome = named.plan.outcome(body["measure"][0])
    ends = np.clip(sorted(map(outcome.value, decision.expected)), outcome.low, outcome.high)
    assert sorted(body["expected"][outcome.name]) == pytest.approx(ends)


def test_the_card_of_a_policy_says_why_what_to_expect_and_what_may_move(named):
    text = " ".join(str(named.ask().card).split())
    assert "Two regimens contend: this one and" in text
    assert "of that doubt (" in text
    assert "today's best" in text
    assert "19 times in 20 between" in text
    assert text.count("limit ±") == len(PROTECTED)
    assert "the goal" in text


def test_a_study_of_its_own_questions_says_what_they_could_change(study):
    body = study.questions()[0].body
    text = " ".join(str(study.ask().card).split())
    assert ("instead of" in text) == bool(body["changes"])
    assert "Of what is open the answer settles about: " in text
    assert "19 times in 20 between" in text
    assert text.count("limit ±") == len(PROTECTED)
    assert f"This regimen is {round(100 * body['chance'])}% likely to be within all limits." in text


def test_the_price_is_what_is_expected_to_be_lost_against_today_s_best(study):
    best = study.best()
    effects = {row.candidate: row.effects[TARGET.name].estimate for row in study.explain().rows}
    body = study.questions()[0].body
    assert body["best"]["action"] == best.action
    lost = effects[body["candidate"]] - effects[body["best"]["candidate"]]
    assert body["price"] == pytest.approx(max(lost, 0.0), rel=1e-5, abs=1e-5)
    assert body["best"]["effect"] == pytest.approx(
        effects[body["best"]["candidate"]], rel=1e-5, abs=1e-6
    )


def test_today_s_best_is_the_rival_where_asking_has_a_price_and_else_the_one_asked(named):
    for event in named.history():
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
    words = " ".join(str(ticket.card).split())
    assert "recommended today; you asked to confirm what it does to sodium." in words


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


def test_best_gives_the_loss_in_the_target_s_unit_and_says_whether_it_is_enough(study):
    best = study.best()
    assert 0 < best.loss.mean < best.loss.high
    assert best.enough is (best.loss.mean < 1.0)
    text = " ".join(str(best).split())
    assert "the best regimen within limits is expected to do" in text
    assert "19 times in 20 less than" in text
    assert "You said 1.0 matters" in text


def apart(study, **changes):
    """Today's recommendation with something else in it, as words."""
    best = replace(study.best(), **changes)
    return " ".join(str(best_card(study.plan, "bp", best)).split())


def test_what_stopping_gives_up_is_one_sentence_that_names_what_it_is_compared_with(study):
    loss = Loss(9.34, 29.02)
    text = apart(study, loss=loss, enough=False, rounds_left=None)
    better = "the best regimen within limits is expected to do 9.3 mmHg better than"
    assert f"Not yet for the goal: {better} " in text
    assert ", 19 times in 20 less than 29.0. You said 1.0 matters." in text
    assert better + " the baseline," in stayed(study, loss=loss, enough=False)
    text = apart(study, loss=loss, enough=False, rounds_left=(2, 10))
    assert "You said 1.0 matters: roughly 2 to 10 more visits." in text
    free = clinic(MemoryStore(), protected=())
    play(free, 3)
    assert "The best regimen is expected" not in apart(free)
    assert "the best regimen is expected to do" in apart(free)


def test_that_no_further_question_is_expected_to_move_it_is_a_reason_to_stop(study):
    text = apart(study, loss=Loss(0.3, 1.04), enough=True)
    assert "Enough for the goal: the best regimen within limits is expected to do 0.3 mmHg" in text
    moved = "No further question is expected to change that by 1.0 mmHg, which you said matters."
    assert moved in text
    assert "No further question" not in apart(study, loss=Loss(1.3, 2.0), enough=False)


def test_three_whole_visits_at_a_setting_are_a_reason_to_stop(study):
    setting = study.plan.candidates.setting(3)
    said = "A reason to stop: systolic pressure and every protected marker were measured 3 times"
    moved = {"action": setting, "candidate": 3, "better": 0.9}
    assert f"{said} or more at this regimen." in apart(study, tried=3, **moved)
    assert "A reason to stop" not in apart(study, tried=2, **moved)
    assert "A reason to stop" not in stayed(study, tried=7)  # at the baseline nothing is shown


def stayed(study, **changes):
    """The same with the baseline recommended."""
    effects = dict.fromkeys(NAMES, (0.0, 0.0, 0.0))
    found = {name: type(study.best().effects[name])(*ends) for name, ends in effects.items()}
    told = {"action": study.plan.baseline, "effects": found, "better": None, "unfirm": ()}
    return apart(study, **(told | changes))


def test_to_stay_is_an_answer_and_says_why(study):
    setting = study.plan.candidates.setting(3)
    leader = Leader(3, setting, study.best().effects, 0.71)
    text = stayed(study, leader=leader)
    assert "No regimen can be recommended yet. The leading contender is lisinopril 0" in text
    assert "71% likely within all limits; 95% are asked for." in text
    assert (
        "It is the baseline, from which every change is counted: systolic pressure and every "
        "protected marker stay as they are."
    ) in text
    assert "0.00" not in text
    assert "Every marker within limits" not in text
    assert "Too few results of sodium vouch for it." in stayed(
        study, leader=leader, unfirm=("sodium",)
    )
    text = stayed(study, leader=None)
    assert "Stay: No regimen is more likely than not to be better than the baseline." in text


def test_what_is_not_settled_is_what_the_intervals_of_the_subject_say(study):
    best = study.best()
    effects = best.effects if best.better is not None else best.leader.effects
    open_ = {name for name, effect in effects.items() if effect.verdict == "not settled"}
    assert {each.outcome for each in best.unsettled} == open_
    for each in best.unsettled:
        effect, outcome = effects[each.outcome], study.plan.outcome(each.outcome)
        assert 0 <= each.width <= (effect.high - effect.low) / 2 + 1e-6
        if each.results is not None:
            low, high = outcome.limits
            assert low <= effect.estimate - each.width
            assert effect.estimate + each.width <= high


def test_what_would_settle_it_can_be_asked_as_the_card_says(study):
    settles = study.best().settles
    options = {"allowed": [settles.candidate], "measure_only": [settles.outcome]}
    ticket = study.ask(new=True, actor="settler", **options)
    assert (ticket.candidate, ticket.measure) == (settles.candidate, settles.outcome)


@pytest.mark.parametrize(
    ("results", "says"),
    [
        (4, "4 here would narrow it to ±0.8"),
        (None, "more here alone would narrow it to ±0.8 mmol/L at best"),
    ],
)
def test_more_results_are_said_to_do_what_they_would(study, results, says):
    text = apart(study, unsettled=(Narrowing("sodium", results, 0.8),), better=0.9)
    assert "Not settled for sodium:" in text
    assert says in text
    assert 'study.ask(purpose="confirm", measure="sodium")' in text


@pytest.fixture(scope="module")
def short():
    """A study that is over soon: one factor, and little noise."""
    study = clinic(
        MemoryStore(),
        factors=[Factor("dose", 0, 40, unit="mg", step=10)],
        target=Outcome("pressure", "mmHg", goal="lower", baseline=150, range=(100, 190), matters=2),
        protected=[Outcome("sodium", baseline=139, range=(125, 150), tolerance=9, noise=0.5)],
    )
    ticket = study.ask()
    study.tell(ticket.id, 148 if ticket.measure == "pressure" else 139, given={"dose": 20})
    return study


@pytest.mark.full
def test_rounds_left_are_said_where_asked_for_and_kept_until_a_result_comes(short):
    assert short.best().rounds_left is None
    low, high = short.best(rounds=True).rounds_left
    assert 0 <= low <= high <= MOST_ROUNDS
    assert short.best().rounds_left == (low, high)
    again = Study.create("other", MemoryStore(), factors=short.plan.factors, target=TARGET)
    assert again.best(rounds=True).rounds_left is None  # there are no results yet
    short.tell(short.ask().id, 139.0, measured="sodium")
    assert short.best().rounds_left is None


@pytest.mark.parametrize(
    ("left", "says"),
    [
        ((2, 10), "matters: roughly 2 to 10 more visits."),
        ((9, 60), "matters: roughly 9 to more than 60 more visits."),
        ((60, 60), "matters: more than 60 more visits."),
        ((4, 4), "matters: roughly 4 more visits."),
    ],
)
def test_rounds_left_are_said_in_a_sentence(study, left, says):
    assert says in apart(study, rounds_left=left, enough=False)


def test_rounds_left_need_to_know_what_matters():
    study = clinic(MemoryStore(), target=replace(TARGET, matters=None))
    play(study, 1)
    with pytest.raises(InputError, match="needs what matters of systolic pressure, got none"):
        study.best(rounds=True)


@pytest.mark.parametrize("cap", [0.5, 5.0])
def test_a_price_cap_is_kept(study, cap):
    for number in range(3):
        ticket = study.ask(new=True, price_cap=cap, actor=f"thrifty {cap} {number}")
        assert body_of(study, ticket)["price"] <= cap


def test_a_price_cap_needs_a_policy_that_knows_prices():
    study = clinic(MemoryStore(), policy="uniform")
    with pytest.raises(InputError, match="price_cap needs a policy that has a posterior"):
        study.ask(price_cap=1.0)


def test_a_panel_keeps_to_what_can_be_measured(study):
    wanted = ("sodium", "heart rate")
    ticket = study.ask(new=True, panel=wanted, actor="laboratory")
    assert set(ticket.measure) == set(wanted)
    confirmed = study.ask(new=True, purpose="confirm", measure_only=wanted, panel=2, actor="again")
    assert set(confirmed.measure) == set(wanted)
    with pytest.raises(InputError, match="measure must be one of measure_only, got 'potassium'"):
        study.ask(purpose="confirm", measure="potassium", measure_only=wanted)


def test_the_card_says_what_three_certainties_buy_as_the_tradeoff_does(study):
    best, tradeoff = study.best(), study.tradeoff()
    kept = []
    for certainty in (0.5, 0.8, 0.95):
        trade = tradeoff.at(certainty)
        kept += [trade] if trade is not None and trade not in kept else []
    assert same(list(best.trades), kept)  # but for the last digits
    text, printed = " ".join(str(best).split()), " ".join(str(tradeoff).split())
    lines = [f"{prose.lead} {prose.text}" for _, prose in trade_lines(study.plan, best.trades)]
    assert len(lines) > 1
    assert all(line in text and line in printed for line in lines)
    alone = apart(study, trades=best.trades[-1:]) if len(kept) == 3 else apart(study, trades=())
    assert "At least 50% likely within limits" not in alone
    assert clinic(MemoryStore(), protected=()).best().trades == ()
