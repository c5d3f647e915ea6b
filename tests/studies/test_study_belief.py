"""What a study without a named policy believes, recommends and asks, in its own units."""

import json
import subprocess
import sys

import numpy as np
import pytest

from sidestep import Factor, Outcome, Study
from sidestep.errors import InputError
from sidestep.studies.book import Book
from sidestep.studies.learning.evidence import Evidence, limits_of, never_of
from sidestep.studies.learning.intervals import ends_of, tails_of
from sidestep.studies.learning.study_learner import StudyLearner
from sidestep.studies.live import EVERY
from sidestep.studies.storage.memory import MemoryStore

DOSES = Factor("dose", 0, 40, unit="mg", step=10)
HEAT = Factor("heat", 0, 1, step=0.25)
PRESSURE = Outcome(
    "pressure", "mmHg", goal="lower", range=(100, 180), baseline=140, noise=4, matters=2
)
SODIUM = Outcome("sodium", "mmol/L", range=(130, 150), baseline=140, tolerance=2.5, noise=0.8)
POTASSIUM = Outcome(
    "potassium", "mmol/L", range=(3, 6), tolerance=(None, 0.4), noise=0.1, never=(None, 5.4)
)


def begun(**more):
    settings = {
        "factors": [DOSES, HEAT],
        "target": PRESSURE,
        "protected": [SODIUM, POTASSIUM],
        "vocabulary": "clinic",
    }
    return Study.create("bp", MemoryStore(), **(settings | more))


def truth(setting, name):
    dose, heat = setting["dose"] / 40, setting["heat"]
    bent = 1.5 * dose / (0.5 + dose)
    return {
        "pressure": 140 - 18 * bent - 6 * heat,
        "sodium": 140 - 4 * heat + bent,
        "potassium": 4.4 + 0.5 * dose,
    }[name]


def played(study, rounds, seed=0, **ask):
    rng = np.random.default_rng(seed)
    noise = {"pressure": 4, "sodium": 0.8, "potassium": 0.1}
    tickets = []
    for _ in range(rounds):
        ticket = study.ask(**ask)
        names = (ticket.measure,) if isinstance(ticket.measure, str) else ticket.measure
        told = {
            name: truth(ticket.action, name) + noise[name] * rng.standard_normal() for name in names
        }
        study.tell(ticket.id, told)
        tickets.append(ticket)
    return tickets


@pytest.fixture(scope="module")
def told():
    study = begun()
    return study, played(study, 30)


def evidence_of(study):
    book, evidence = Book(), Evidence(study.plan)
    book.take(study.history())
    evidence.learn(book)
    return book, evidence


def test_the_recommendation_is_within_limits_with_the_stated_certainty_or_the_baseline(told):
    study, _ = told
    for certainty in (0.5, 0.8, 0.95, 0.99):
        best = study.best(certainty=certainty)
        assert best.certainty == certainty
        if best.action == study.plan.baseline:
            assert best.better is None
            continue
        assert best.chance >= certainty
        assert best.better > 0.5
        assert {effect.verdict for effect in best.effects.values()} <= {"within", None}


def test_a_lower_certainty_never_recommends_less(told):
    study, _ = told
    moved = [
        -study.best(certainty=certainty).effects["pressure"].estimate
        for certainty in (0.99, 0.95, 0.8, 0.5)
    ]
    assert moved == sorted(moved)
    assert moved[-1] > 0


@pytest.mark.parametrize("certainty", [0.6, 0.8, 0.95])
def test_intervals_lie_within_limits_exactly_where_the_chance_does(told, certainty):
    study, _ = told
    _, evidence = evidence_of(study)
    learner = StudyLearner(study.plan, evidence)
    effects = learner.effects(learner.menu({}))
    for outcome, limits in enumerate(learner.limits):
        if limits is None:
            continue
        low, high = ends_of(effects, outcome, limits, certainty)
        inside = effects.within(outcome, limits)
        floor, ceiling = (
            sign * np.inf if end is None else end for sign, end in zip((-1, 1), limits, strict=True)
        )
        apart = np.abs(inside - certainty) > 1e-6
        shown = (low >= floor) & (high <= ceiling)
        assert (shown == (inside >= certainty))[apart].all()
        tails = tails_of(effects, outcome, limits, 1 - certainty)
        below, above = effects.below(outcome, low), 1 - effects.below(outcome, high)
        moved = effects.moved
        assert below[moved] == pytest.approx(tails[moved], abs=1e-5)
        assert (below + above)[moved] == pytest.approx(1 - certainty, abs=1e-5)


def test_nothing_is_recommended_before_every_outcome_was_measured():
    study = begun()
    played(study, 6, measure_only=("pressure", "sodium"))
    best = study.best()
    assert best.action == study.plan.baseline
    assert best.unmeasured == ("potassium",)
    assert best.loss is None
    assert best.enough is False
    assert "Potassium was never measured" in " ".join(best.card.text().split())


def test_the_study_checks_itself(told):
    study, _ = told
    inside, total = study.best().inside
    assert total == 30
    # 19 in 20 are expected inside; fewer than 24 of 30 have a chance below 1e-4
    assert 24 <= inside <= 30
    assert f"Of 30 results, {inside} fell inside" in " ".join(study.best().card.text().split())


def test_a_question_says_what_it_could_change_and_how_likely_it_is_within_limits(told):
    _, tickets = told
    bodies = [ticket.card.data for ticket in tickets]
    assert all(0 <= body["chance"] <= 1 for body in bodies)
    changed = [body for body in bodies if body["changes"]]
    assert changed
    for body in changed:
        for change in body["changes"]:
            assert set(change["results"]) == set(body["measure"])
            assert change["action"] != body["best"]["action"]
    text = " ".join(tickets[bodies.index(changed[-1])].card.text().split())
    assert "If " in text
    assert " instead of " in text


def test_results_in_another_order_give_the_same_recommendation(told):
    study, tickets = told
    results = [
        (event.body["action"], event.outcome, event.body["value"])
        for event in study.history()
        if event.kind == "answered"
    ]
    again = begun()
    for action, outcome, value in reversed(results):
        again.tell(None, value, measured=outcome, given=action)
    one, other = study.best(), again.best()
    assert one.action == other.action
    # rounds are those of questions: none were asked here, so that no drift is thought of
    assert other.chance == pytest.approx(one.chance, abs=0.05)
    assert len(tickets) == len(results)


def test_caution_asks_only_what_is_likely_within_limits():
    careful, bold = begun(caution=0.9), begun()
    first = [ticket.card.data["chance"] for ticket in played(careful, 20)]
    assert min(first[1:]) >= 0.9  # the level of potassium, which has a limit, is not known at first
    assert min(ticket.card.data["chance"] for ticket in played(bold, 20)) < 0.9


def test_a_price_cap_keeps_the_target_near_its_best(told):
    study, _ = told
    free = study.ask(new=True)
    capped = study.ask(new=True, price_cap=1.0)
    assert capped.card.data["price"] <= 1.0 + 1e-6
    study.withdraw(free.id, reason="a test")
    study.withdraw(capped.id, reason="a test")


def test_a_visit_measures_the_panel_of_the_study():
    study = begun(panel="all")
    assert study.ask().measure == ("pressure", "sodium", "potassium")
    pair = begun(panel=["potassium", "sodium"])
    assert pair.ask().measure == ("sodium", "potassium")
    assert pair.ask(panel=1, new=True).measure in ("pressure", "sodium", "potassium")
    assert len(begun(panel=2).ask().measure) == 2
    assert len(begun().ask(panel="all").measure) == 3
    with pytest.raises(InputError, match='panel must be "all", a number from 1 to 3'):
        begun(panel=["salt"])


def test_a_partly_answered_panel_does_not_hold_up_the_next_question():
    study = begun(panel="all")
    ticket = study.ask()
    assert study.ask().id == ticket.id
    study.tell(ticket.id, {"pressure": 138.0, "potassium": 4.4})
    further = study.ask()
    assert further.id != ticket.id
    study.tell(ticket.id, {"sodium": 139.0})
    assert [question.id for question in study.questions()] == [further.id]


def test_the_largest_step_of_the_study_is_remembered():
    study = begun(largest_step={"dose": 10, "heat": 0.25})
    last = study.plan.baseline
    for ticket in played(study, 10):
        assert abs(ticket.action["dose"] - last["dose"]) <= 10
        assert abs(ticket.action["heat"] - last["heat"]) <= 0.25
        last = ticket.action


def test_a_question_is_decided_again_where_the_record_has_moved(monkeypatch):
    study = begun()
    played(study, 3)
    other = Study.open("bp", study._store)
    prepared = study._live.prepared
    times = []

    def and_somebody_tells(request, author, *, new):
        found = prepared(request, author, new=new)
        times.append(found)
        if len(times) < 3:
            other.tell(None, 141.0 + len(times), measured="pressure", given=study.plan.baseline)
        return found

    monkeypatch.setattr(study._live, "prepared", and_somebody_tells)
    ticket = study.ask()
    assert len(times) == 2  # the third time it is decided under the lock
    assert ticket.card.data["results"] == 5
    assert study.verify(asks=True).data["differences"] == []


def test_a_snapshot_holds_the_sums_and_is_taken_without_numpy(tmp_path):
    path = tmp_path / "bp.db"
    factors = [Factor("dose", 0, 40, step=10)]
    target = Outcome("pressure", goal="lower", range=(100, 180))
    study = Study.create("bp", path, factors=factors, target=target)
    study.tell(None, 140.0, measured="pressure", given={"dose": 0})
    script = f"""
import sys
sys.modules["numpy"] = None
from sidestep.studies.study import Study
study = Study.open("bp", {str(path)!r})
study.questions()
for number in range({EVERY + 5}):
    study.tell(None, 130.0 + number % 7, measured="pressure", given={{"dose": 10 * (number % 5)}})
assert study._live.book.kept > 0
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    fresh = Study.open("bp", path)
    best = fresh.best()
    assert fresh._live.book.since > 0
    assert len(fresh._live.book.results) < EVERY
    whole = Study.open("bp", path)
    whole._live._forget()
    again = whole.best()
    assert again.action == best.action
    for name, effect in best.effects.items():
        assert again.effects[name][:3] == pytest.approx(effect[:3], abs=1e-9)
    assert fresh.ask().action == whole.ask().action
    assert fresh.verify(asks=True).data["holds"]


def test_evidence_survives_being_stored(told):
    study, _ = told
    book, evidence = evidence_of(study)
    again = Evidence(study.plan, json.loads(json.dumps(evidence.to_json())))
    assert again.digest == evidence.digest
    one, other = (StudyLearner(study.plan, each) for each in (evidence, again))
    menu = one.menu({})
    effects, same = one.effects(menu), other.effects(other.menu({}))
    for outcome in range(3):
        assert same.mean(outcome) == pytest.approx(effects.mean(outcome), abs=1e-9)
    assert book.n_results == sum(
        total.results for sums in again.sums for total in sums.rows.values()
    )


def test_limits_and_their_signs():
    plan = begun().plan
    assert limits_of(plan) == [None, (-0.25, 0.25), (None, pytest.approx(0.4 / 1.5))]
    assert never_of(plan) == [None, None, (None, pytest.approx((5.4 - 4.5) / 1.5))]
    pressure = Outcome("pressure", goal="lower", range=(100, 180), never=(110, None))
    lower = begun(target=pressure).plan
    assert never_of(lower)[0] == (None, pytest.approx(0.75))


def test_a_stored_study_is_the_one_that_was_created(tmp_path):
    made = {
        "shape": "smooth",
        "panel": ["sodium", "pressure"],
        "largest_step": {"dose": 10},
        "caution": 0.9,
    }
    study = Study.create(
        "bp", tmp_path / "s.db", factors=[DOSES], target=PRESSURE, protected=[SODIUM], **made
    )
    plan = Study.open("bp", tmp_path / "s.db").plan
    assert plan == study.plan
    assert plan.policy is None
    assert plan.panel == ("pressure", "sodium")
    assert study.history()[0].body["config"]["version"] == 2


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"shape": "round"}, "shape must be one of 'straight', 'smooth'"),
        ({"questions": "ask"}, "questions must be one of 'decide', 'earn'"),
        ({"caution": 0.3}, "caution must lie in 0.5 to below 1, got 0.3"),
        ({"policy": "oful", "caution": 0.9}, "caution is for studies without a named policy"),
        ({"policy": "oful", "questions": "earn"}, 'questions="earn" is for studies without'),
        ({"largest_step": {"salt": 1}}, "largest_step must name factors that are numbers"),
        ({"aim": "clean", "rank": 1, "shape": "straight"}, 'shape belongs to aim="within"'),
    ],
)
def test_a_wrong_set_up_is_refused_in_one_sentence(more, sentence):
    protected = [Outcome("sodium", range=(130, 150))] if "aim" in more else [SODIUM]
    with pytest.raises(InputError, match=sentence):
        begun(protected=protected, **more)


def test_the_knob_of_caution_is_still_read():
    plan = begun(knobs={"caution": 0.9}).plan
    assert (plan.policy, plan.caution, dict(plan.knobs)) == (None, 0.9, {})
    named = begun(knobs={"caution": 0.9}, policy="directed-thompson").plan
    assert (named.policy, named.caution, dict(named.knobs)) == (
        "directed-thompson",
        None,
        {"caution": 0.9},
    )


def test_a_wrong_certainty_is_refused():
    study = begun()
    with pytest.raises(InputError, match="certainty must lie in 0.5 to below 1, got 1"):
        study.best(certainty=1.0)


def test_a_bend_that_results_show_is_named_on_the_card():
    factors = [Factor("dose", 0, 40, unit="mg", step=5)]
    target = Outcome("yield", "%", goal="raise", range=(0, 100), noise=1)
    study = Study.create("peak", MemoryStore(), factors=factors, target=target)
    for number in range(27):
        dose = 5.0 * (number % 9)
        study.tell(None, 20 + 6 * dose - 0.15 * dose**2, measured="yield", given={"dose": dose})
    best = study.best()
    assert best.action == {"dose": 20.0}
    bend = best.bends[0]
    assert (bend.outcome, bend.factor, bend.kind) == ("yield", "dose", "turns")
    assert abs(bend.value - 20) <= 4
    assert "the effect of dose turns at" in " ".join(best.card.text().split())


def test_an_odd_result_is_named_and_not_dropped():
    study = begun(shape="straight")
    for number in range(24):
        setting = {"dose": 10.0 * (number % 4), "heat": 0.0}
        for name in ("pressure", "sodium", "potassium"):
            value = truth(setting, name) + (4.0 if (number, name) == (6, "potassium") else 0.0)
            study.tell(None, value, measured=name, given=setting)
    best = study.best()
    assert [(each.outcome, each.action["dose"]) for each in best.surprises] == [("potassium", 20.0)]
    assert best.counts["potassium"] == 24
    assert "A surprise: potassium" in " ".join(best.card.text().split())


def test_the_tradeoff_is_what_would_be_recommended_at_every_certainty(told):
    study, _ = told
    trades = study.tradeoff()
    chances = [each.chance for each in trades.trades]
    effects = [each.effect.estimate for each in trades.trades]
    assert chances == sorted(chances)
    assert effects == sorted(effects)  # the pressure should fall
    assert len(chances) >= 3
    for certainty in (0.5, 0.7, 0.8, 0.9, 0.95, 0.99):
        best, trade = study.best(certainty=certainty), trades.at(certainty)
        assert best.action == (study.plan.baseline if trade is None else trade.action)
    assert list(trades.to_columns())[:4] == ["chance", "candidate", "dose", "heat"]
    assert "What more risk would buy" in str(trades)
    assert begun().tradeoff().trades == ()


def test_the_outlook_says_what_results_should_buy_before_the_first():
    study, done = begun(), []
    found = study.outlook(results=(6, 20), studies=6, progress=lambda *at: done.append(at))
    assert done == [(number, 6) for number in range(1, 7)]
    few, more = found.prospects
    assert (few.results, more.results) == (6, 20)
    assert 0 <= few.moved <= more.moved <= 1
    assert more.mean <= few.mean <= 0  # the pressure should fall
    assert more.most >= more.mean >= more.least or more.most <= more.mean <= more.least
    assert more.moved > 0
    again = study.outlook(results=(6, 20), studies=6)
    assert again.prospects == found.prospects
    assert "What further results are expected to buy" in str(found)
    assert study.n_results == 0
    assert len(study.history()) == 1
    with pytest.raises(InputError, match="results must be whole numbers from 1 to 120"):
        study.outlook(results=())


def test_what_is_told_of_the_noise_and_the_level_buys_results():
    told = begun().outlook(results=(10,), studies=8).prospects[0]
    vague = begun(
        target=Outcome("pressure", "mmHg", goal="lower", range=(100, 180)),
        protected=[
            Outcome("sodium", range=(130, 150), tolerance=2.5),
            Outcome("potassium", range=(3, 6), tolerance=(None, 0.4)),
        ],
    ).outlook(results=(10,), studies=8)
    assert told.moved > vague.prospects[0].moved


def test_what_candidates_cannot_tell_apart_is_said():
    a, b = Factor("a", 0, 2, unit="mg", step=1), Factor("b", 0, 4, step=2)
    rows = {"a": [0, 1, 2], "b": [0, 2, 4]}  # always changed together
    target = Outcome("pain", goal="lower", range=(0, 10), noise=0.5)
    study = Study.create("one", MemoryStore(), factors=[a, b], target=target, candidates=rows)
    study.tell(None, 5.0, measured="pain", given={"a": 1, "b": 2})
    unseen = study.best().unseen
    assert [(each.outcome, set(each.change)) for each in unseen] == [(None, {"a", "b"})]
    assert unseen[0].change["a"] == pytest.approx(-unseen[0].change["b"] / 2)
    text = " ".join(str(study.best()).split())
    assert "Nobody can see what this does: raising a by 2 mg while lowering b by 4" in text


def test_what_many_results_do_not_show_is_said_until_they_do():
    factors = [Factor("a", 0, 4, step=1), Factor("b", 0, 4, step=1)]
    target = Outcome("pain", goal="lower", range=(0, 10), noise=0.5)
    study = Study.create("two", MemoryStore(), factors=factors, target=target)
    for dose in range(5):
        study.tell(None, 5.0 - dose / 2, measured="pain", given={"a": dose, "b": dose})
    assert [each.outcome for each in study.best().unseen] == ["pain"]
    assert "its results do not tell that apart" in " ".join(str(study.best()).split())
    study.tell(None, 5.0, measured="pain", given={"a": 4, "b": 0})
    assert study.best().unseen == ()
