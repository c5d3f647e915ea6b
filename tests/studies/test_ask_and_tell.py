"""What a study promises to the person who asks and tells."""

import json
import subprocess
import sys
import threading

import numpy as np
import pytest

from clinic import FACTORS, PROTECTED, TARGET, WORLD, clinic, play, same
from running import Running
from sidestep.errors import (
    AlreadyAnswered,
    ConflictError,
    KeyReused,
    RecordError,
    StudyClosed,
    StudyExists,
    StudyNotFound,
    TicketNotFound,
)
from sidestep.service.client import Client
from sidestep.studies.cards.record_card import history_card
from sidestep.studies.cards.words import set_text
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.sql import SqlLog
from sidestep.studies.study import Study


@pytest.fixture(params=["memory", "sqlite", "http"])
def storage(request, tmp_path):
    if request.param == "http":
        with Running(tmp_path / "served.db") as running, Client(running.url) as client:
            yield client
    else:
        yield MemoryStore() if request.param == "memory" else tmp_path / "clinic.db"


@pytest.fixture(params=["memory", "http"])
def study(request, tmp_path):
    if request.param == "http":
        with Running(tmp_path / "served.db") as running, Client(running.url) as client:
            yield clinic(client)
    else:
        yield clinic(MemoryStore())


def asks(study):
    return [
        (event.body["action"], event.body["measure"])
        for event in study.history()
        if event.kind == "asked"
    ]


def test_five_lines_lead_to_the_first_ticket():
    from sidestep import Factor, Outcome, Study  # noqa: PLC0415

    factors = [Factor("dose", 0, 40, unit="mg", step=10)]
    target = Outcome("pain", goal="lower", range=(0, 10))
    ticket = Study.create("first", "memory:", factors=factors, target=target).ask()
    assert ticket.measure == "pain"


def test_a_ticket_is_a_candidate_in_its_units_and_one_outcome(storage):
    study = clinic(storage)
    ticket = study.ask()
    assert ticket.id == 2
    assert ticket.round == 1
    assert ticket.action == study.plan.candidates.setting(ticket.candidate)
    assert ticket.measure in {"systolic pressure", "potassium", "sodium", "heart rate"}
    assert [event.kind for event in study.history()] == ["created", "asked"]


def test_the_same_person_asking_again_gets_the_open_question(storage):
    study = clinic(storage)
    first = study.ask(actor="Ann")
    assert study.ask(actor="Ann").id == first.id
    assert study.ask(actor="Bo").id != first.id
    assert study.ask(actor="Ann", new=True).id not in (first.id,)
    assert study.ask(actor="Ann").id == first.id
    study.tell(first.id, 1.0)


def test_another_request_than_the_open_one_is_a_conflict(study):
    study.ask()
    with pytest.raises(ConflictError, match="question 2 is open"):
        study.ask(allowed={"lisinopril": (0, 10)})


def test_an_open_question_is_there_after_reopening(tmp_path):
    path = tmp_path / "clinic.db"
    first = clinic(path).ask()
    again = Study.open("bp", path).ask()
    assert again.id == first.id
    assert str(again) == str(first)


def test_the_same_result_again_changes_nothing(storage):
    study = clinic(storage)
    ticket = study.ask()
    first = study.tell(ticket.id, 138)
    again = study.tell(ticket, 138.0)
    assert not first.repeated
    assert again.repeated
    assert again.entries == first.entries
    assert len(study.history()) == 3


def test_another_result_is_a_conflict_that_names_both(storage):
    study = clinic(storage, factors=FACTORS)
    ticket = study.ask()
    study.tell(ticket.id, 138.25, actor="Lab, Ward 4")
    with pytest.raises(AlreadyAnswered, match=r"138\.25.*Lab, Ward 4.*136.*correct"):
        study.tell(ticket.id, 136)
    assert len(study.history()) == 3


def test_a_correction_needs_a_reason_and_keeps_both_values(storage, refusal):
    study = clinic(storage)
    ticket = study.ask()
    study.tell(ticket.id, 138)
    assert "reason" in refusal(study.correct, ticket.id, 136, reason="")
    study.correct(ticket.id, 136, reason="misread")
    event = study.history()[-1]
    assert (event.kind, event.ticket, event.reason) == ("corrected", ticket.id, "misread")
    assert (event.body["was"], event.body["is"]) == (138, 136)
    assert study.tell(ticket.id, 136).repeated
    assert study.tell(ticket.id, 138).repeated  # what was told then, told again


def test_a_conflict_is_about_its_own_outcome_and_names_what_counts_now(study):
    ticket = study.ask(panel=["sodium", "potassium"])
    study.tell(ticket.id, {"sodium": 138, "potassium": 4.1})
    study.correct(ticket.id, 140, measured="sodium", reason="misread")
    study.correct(ticket.id, 4.3, measured="potassium", reason="misread", actor="Lab")
    assert study.tell(ticket.id, {"sodium": 140, "potassium": 4.1}).repeated
    with pytest.raises(AlreadyAnswered, match=r"holds 4\.3 mmol/L for potassium, corrected by Lab"):
        study.tell(ticket.id, {"potassium": 140})


def test_the_same_result_of_something_else_that_was_given_is_a_conflict(study):
    ticket, other = study.ask(), study.plan.baseline
    study.tell(ticket.id, 138, measured="sodium", given=other, key="k")
    assert study.tell(ticket.id, 138, measured="sodium").repeated
    assert study.tell(ticket.id, 138, measured="sodium", given=other).repeated
    with pytest.raises(
        AlreadyAnswered, match=r"138 mmol/L at lisinopril 20.*138 .* at lisinopril 40"
    ):
        study.tell(ticket.id, 138, measured="sodium", given={**other, "lisinopril": 40})
    with pytest.raises(KeyReused):
        study.tell(ticket.id, 138, measured="sodium", given={**other, "lisinopril": 40}, key="k")


def test_a_result_that_was_taken_back_is_not_on_record_already(study):
    ticket = study.ask()
    study.tell(ticket.id, 138, measured="sodium", key="k")
    study.withdraw(ticket.id, reason="haemolysed sample")
    assert study.tell(ticket.id, 138, measured="sodium", key="k").repeated  # the request of then
    with pytest.raises(AlreadyAnswered, match="holds nothing for sodium, taken back .* correct it"):
        study.tell(ticket.id, 138, measured="sodium", key="another")


def test_after_a_correction_everything_is_as_if_it_had_been_told_right():
    right, wrong = clinic(MemoryStore()), clinic(MemoryStore())
    for study in (right, wrong):
        rng = np.random.default_rng(3)
        for number in range(12):
            ticket = study.ask()
            value = WORLD.result(study, ticket.measure, ticket.action, rng)
            if number == 11:
                study.tell(ticket.id, value if study is right else value * 10)
            else:
                study.tell(ticket.id, value)
    wrong.correct(ticket.id, value, reason="a lost decimal point")
    assert wrong.best().to_json() == right.best().to_json()
    state = [study._live.mind().state.to_json() for study in (right, wrong)]
    assert state[0] == state[1]


def test_a_withdrawn_question_teaches_nothing_and_makes_room_for_the_next(storage):
    study = clinic(storage)
    ticket = study.ask()
    study.withdraw(ticket.id, reason="missed visit")
    assert study.withdraw(ticket.id, reason="missed visit").repeated
    assert study.best().results == 0
    assert study.ask().id == ticket.id + 2
    with pytest.raises(AlreadyAnswered, match="withdrawn.*missed visit"):
        study.tell(ticket.id, 138)


def test_a_result_can_be_taken_back_and_restored(study):
    ticket = study.ask()
    study.tell(ticket.id, 138)
    study.withdraw(ticket.id, reason="haemolysed sample")
    assert study.best().results == 0
    assert study.history()[-1].body["is"] is None
    study.correct(ticket.id, 138, reason="it was another sample")
    assert study.best().results == 1


def test_what_was_really_given_is_what_is_learned_from(study):
    other = clinic(MemoryStore())
    ticket = study.ask()
    given = {"lisinopril": 0, "amlodipine": 2.5, "chlortalidone": 25}
    study.tell(ticket.id, 138, given=given)
    other.tell(None, 138, measured=ticket.measure, given=given)
    following = study.ask().card.data
    assert following["results"] == 1
    assert same(study.best().effects, other.best().effects)
    assert following["last"] == given


def test_a_withdrawn_question_was_not_given(study):
    first = study.ask()
    assert first.card.data["last"] is None
    assert ", the baseline" in str(first.card)  # the change is counted from there
    study.withdraw(first.id, reason="missed visit")
    second = study.ask(largest_step={"lisinopril": 10})
    assert second.card.data["last"] is None
    assert abs(second.action["lisinopril"] - study.plan.baseline["lisinopril"]) <= 10
    study.tell(second.id, 138, measured="sodium")
    third = study.ask(new=True)
    assert third.card.data["last"] == second.action
    study.withdraw(third.id, reason="missed visit")
    assert study.ask().card.data["last"] == second.action


def test_part_of_what_was_given_leaves_the_rest_as_asked(study):
    ticket = study.ask()
    value = 10.0 if ticket.action["lisinopril"] != 10.0 else 20.0
    study.tell(ticket.id, 138, given={"lisinopril": value})
    assert study.history()[-1].body["action"] == ticket.action | {"lisinopril": value}


def test_answers_may_come_late_and_out_of_order(storage):
    study = clinic(storage)
    tickets = [study.ask(new=True) for _ in range(4)]
    for ticket in reversed(tickets):
        study.tell(ticket.id, 100.0)
    assert study.show().data["open"] == []
    assert study.best().results == 4


def test_open_questions_send_the_next_one_elsewhere(study):
    play(study, 8)
    tickets = [study.ask(new=True) for _ in range(6)]
    assert len({(ticket.candidate, ticket.measure) for ticket in tickets}) > 1


def test_another_outcome_than_asked_answers_the_question(study):
    ticket = study.ask()
    other = next(each.name for each in study.plan.outcomes if each.name != ticket.measure)
    study.tell(ticket.id, 4.1, measured=other)
    assert study.show().data["open"] == []
    study.tell(ticket.id, 138)  # and the one that was asked for may still come
    assert study.best().counts == {other: 1, ticket.measure: 1}


def test_a_panel_is_answered_one_at_a_time_or_all_at_once(storage):
    study = clinic(storage)
    ticket = study.ask(panel=3)
    assert len(set(ticket.measure)) == 3
    first, second, third = ticket.measure
    study.tell(ticket.id, {first: 100.0})
    further = study.ask()  # what is outstanding does not hold it up
    assert further.id != ticket.id
    study.tell(ticket.id, {first: 100.0, second: 70.0, third: 4.0})
    assert [question["id"] for question in study.show().data["open"]] == [further.id]
    told = [event.outcome for event in study.history() if event.kind == "answered"]
    assert told == [first, second, third]


def test_a_panel_may_be_of_one_and_names_an_outcome_once(study):
    assert study.ask(panel="sodium").measure == "sodium"
    assert study.ask(new=True, panel=["sodium", "sodium"]).measure == "sodium"


def test_a_panel_may_be_named(study):
    ticket = study.ask(panel=["sodium", "potassium"])
    assert set(ticket.measure) == {"sodium", "potassium"}


@pytest.mark.parametrize("policy", ["directed-thompson", "uniform"])
def test_only_what_can_be_measured_is_asked_for(policy):
    study = clinic(MemoryStore(), policy=policy)
    for _ in range(12):
        ticket = study.ask(measure_only=["sodium", "heart rate"])
        assert ticket.measure in ("sodium", "heart rate")
        study.tell(ticket.id, 100.0)


def test_only_what_is_allowed_is_asked(study):
    for number in range(10):
        restriction = [{"lisinopril": (0, 10), "amlodipine": 5}, [3, 17, 40]][number % 2]
        ticket = study.ask(allowed=restriction)
        if number % 2:
            assert ticket.candidate in (3, 17, 40)
        else:
            assert ticket.action["lisinopril"] <= 10
            assert ticket.action["amlodipine"] == 5
        study.tell(ticket.id, 100.0)


def test_no_step_is_larger_than_the_largest(study):
    last = study.plan.baseline
    for _ in range(10):
        ticket = study.ask(largest_step={"lisinopril": 10, "amlodipine": 2.5})
        assert abs(ticket.action["lisinopril"] - last["lisinopril"]) <= 10
        assert abs(ticket.action["amlodipine"] - last["amlodipine"]) <= 2.5
        last = ticket.action
        study.tell(ticket.id, 100.0)


def test_a_step_is_counted_from_what_was_really_done_last(study):
    high, low = {"lisinopril": 40}, {"lisinopril": 0}
    first = study.ask(allowed=high)
    study.tell(first.id, 150, measured="systolic pressure")
    study.correct(first.id, 150, given=low, reason="it was not given")
    second = study.ask(largest_step={"lisinopril": 10})
    assert second.action["lisinopril"] <= 10
    third = study.ask(new=True, allowed=high, actor="another")
    study.tell(second.id, 150, measured="systolic pressure", given=low)  # the one before
    fourth = study.ask(new=True, largest_step={"lisinopril": 10})
    assert fourth.action["lisinopril"] >= 30, third


def test_the_same_key_is_the_same_request(storage):
    study = clinic(storage)
    first = study.ask(key="a", new=True)
    assert study.ask(key="a", new=True).id == first.id
    receipt = study.tell(None, 4.1, measured="potassium", given=study.plan.baseline, key="b")
    again = study.tell(None, 4.1, measured="potassium", given=study.plan.baseline, key="b")
    assert again.repeated
    assert again.entries == receipt.entries
    with pytest.raises(KeyReused):
        study.ask(key="b", new=True)


def test_a_closed_study_asks_nothing_and_still_takes_results(storage):
    study = clinic(storage)
    tickets = play(study, 3)
    late = study.ask()
    study.close(accept=True, reason="good enough")
    assert [event.kind for event in study.history()[-2:]] == ["accepted", "closed"]
    named = set_text(FACTORS, study.history()[-2].body["action"])
    assert f"accepted: {named}." in str(history_card(study.plan, "bp", study.history()))
    with pytest.raises(StudyClosed, match="may still be told.*to go on, create another study"):
        study.ask(new=True)
    assert not study.tell(late.id, 138).repeated
    assert study.close().repeated
    assert tickets[0].id == 2


def test_a_closed_study_keeps_its_decision(storage):
    study = clinic(storage)
    play(study, 3)
    named = {"lisinopril": 30, "amlodipine": 7.5, "chlortalidone": 0}
    first = study.close(overrule=named, reason="well tolerated", key="k")
    assert study.close(overrule=named, reason="well tolerated").entries == first.entries
    said = "'bp' was closed already, with lisinopril 30, amlodipine 7.5, chlortalidone 0 mg/day; "
    for other in (
        {"accept": True},
        {"overrule": named | {"amlodipine": 5}, "reason": "well tolerated"},
        {"overrule": named, "reason": "another reason"},
        {"reason": "another reason"},
        {"accept": True, "key": "k"},
    ):
        with pytest.raises(StudyClosed, match=f"{said}this decision was not recorded"):
            study.close(**other)
    assert [event.kind for event in study.history()[-2:]] == ["overruled", "closed"]


def test_an_acceptance_that_is_sent_again_after_a_late_result_is_the_same(storage):
    study = clinic(storage, protected=[])
    play(study, 3)
    study.close(accept=True, reason="enough", key="k")
    for lisinopril in (0, 40) * 4:
        given = study.plan.baseline | {"lisinopril": lisinopril}
        study.tell(None, 120 + lisinopril, measured="systolic pressure", given=given)
    assert study.best().action != study.history()[-10].body["action"]
    assert study.close(accept=True, reason="enough", key="k").repeated
    with pytest.raises(StudyClosed):
        study.close(accept=True, reason="enough")


def test_nothing_can_be_accepted_before_there_are_results(study, refusal):
    assert "recommendation" in refusal(study.close, accept=True)
    assert [event.kind for event in study.history()] == ["created"]


def test_a_decision_against_the_recommendation_is_on_record_with_its_reason(study, refusal):
    play(study, 2)
    setting = dict(study.plan.baseline)
    assert "reason" in refusal(study.close, overrule=setting)
    study.close(overrule=setting, reason="the patient prefers it")
    event = study.history()[-2]
    assert (event.kind, event.reason) == ("overruled", "the patient prefers it")
    assert event.body["action"] == setting
    said = str(history_card(study.plan, "bp", study.history()))
    assert "overruled, with lisinopril 20, amlodipine 0, chlortalidone 0 mg/day." in said


@pytest.mark.full
def test_a_study_that_was_stopped_and_resumed_asks_the_same_questions(tmp_path):
    whole = clinic(MemoryStore())
    play(whole, 20)
    path = tmp_path / "clinic.db"
    clinic(path)
    for number in range(20):
        study = Study.open("bp", path)
        ticket = study.ask()
        rng = np.random.default_rng([0, number])
        study.tell(ticket.id, WORLD.result(study, ticket.measure, ticket.action, rng))
    bodies = [[event.body for event in each.history()[1:]] for each in (whole, study)]
    assert json.dumps(bodies[0]) == json.dumps(bodies[1])


@pytest.mark.full
def test_a_snapshot_changes_nothing_but_the_time_it_takes(tmp_path, monkeypatch):
    from sidestep.studies import live  # noqa: PLC0415

    plain = clinic(MemoryStore())
    play(plain, 15)
    monkeypatch.setattr(live, "EVERY", 4)
    path = tmp_path / "clinic.db"
    kept = clinic(path)
    play(kept, 7)
    reopened = Study.open("bp", path)
    assert reopened._live.book.since > 0
    for number in range(7, 15):
        ticket = reopened.ask()
        rng = np.random.default_rng([0, number])
        reopened.tell(ticket.id, WORLD.result(reopened, ticket.measure, ticket.action, rng))
    assert asks(reopened) == asks(plain)
    reopened.correct(4, 100.0, reason="an old one, before the snapshot")
    plain.correct(4, 100.0, reason="an old one, before the snapshot")
    assert asks_next(Study.open("bp", path)) == asks_next(reopened) == asks_next(plain)


def asks_next(study):
    ticket = study.ask(actor="someone else", key="the next one")
    return ticket.action, ticket.measure, ticket.card.data["state"]


def test_what_a_study_wrote_itself_is_not_read_again(tmp_path, monkeypatch):
    study = clinic(tmp_path / "clinic.db")
    study.tell(study.ask().id, 100.0)

    def read(*_):
        raise AssertionError("an entry was read")

    monkeypatch.setattr(SqlLog, "events", read)
    assert study.ask().card.data["results"] == 1


def test_a_result_is_saved_while_another_thread_computes(tmp_path):
    study = clinic(tmp_path / "clinic.db")
    ticket = study.ask()
    saved = threading.Thread(target=study.tell, args=(ticket.id, 100.0))
    with study._turn:
        saved.start()
        saved.join(10)
        assert not saved.is_alive()
    assert study.ask().card.data["results"] == 1


def test_two_open_objects_of_one_study_see_each_others_entries(tmp_path):
    path = tmp_path / "clinic.db"
    one = clinic(path)
    other = Study.open("bp", path)
    for number in range(6):
        asker, teller = (one, other) if number % 2 else (other, one)
        ticket = asker.ask()
        teller.tell(ticket.id, 100.0)
    assert same(one.best().to_json(), other.best().to_json())


@pytest.mark.full
def test_results_are_saved_where_arithmetic_cannot_be_imported(tmp_path):
    path = tmp_path / "clinic.db"
    ticket = clinic(path).ask()
    code = (
        "import sys\n"
        "for name in ('numpy', 'scipy', 'numba'): sys.modules[name] = None\n"
        "from sidestep import Study\n"
        f"study = Study.open('bp', {str(path)!r})\n"
        f"study.tell({ticket.id}, 138.0)\n"
        f"study.correct({ticket.id}, 136.0, reason='misread')\n"
        "study.tell(None, 4.1, measured='potassium', given=study.plan.baseline)\n"
        f"study.withdraw({ticket.id}, reason='haemolysed')\n"
        "print(len(study.history()), study.show().data['results'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "6 1\n", done.stderr


def test_a_table_of_candidates_is_kept_with_the_study(tmp_path):
    table = {"lisinopril": [0, 40, 20], "amlodipine": [0, 10, 0], "chlortalidone": [25, 0, 6.25]}
    clinic(tmp_path / "c.db", candidates=table)
    study = Study.open("bp", tmp_path / "c.db")
    assert study.plan.candidates.setting(1) == {
        "lisinopril": 40,
        "amlodipine": 10,
        "chlortalidone": 0,
    }
    assert study.ask().candidate in (0, 1, 2)


def test_a_table_of_candidates_that_is_missing_is_not_made_up():
    store = MemoryStore()
    table = {"lisinopril": [0, 40], "amlodipine": [0, 10], "chlortalidone": [25, 0]}
    clinic(store, candidates=table)
    store._blobs.clear()
    with pytest.raises(RecordError, match="table of candidates .* is missing"):
        Study.open("bp", store)


def test_in_a_box_values_have_digits_that_can_be_set(storage):
    factors = [Factor("dose", 0, 40, unit="mg"), Factor("rate", 0, 0.3)]
    study = clinic(storage, factors=factors)
    for _ in range(6):
        ticket = study.ask()
        assert ticket.candidate is None
        assert ticket.action["dose"] == round(ticket.action["dose"], 1)
        assert ticket.action["rate"] == round(ticket.action["rate"], 3)
        study.tell(ticket.id, 100.0)
    assert study.best().action is not None


def test_in_a_box_nothing_is_asked_beyond_what_is_allowed():
    study = clinic(MemoryStore(), factors=[Factor("x", 0, 100), Factor("y", 0, 1)])
    assert study.ask(allowed={"x": (12.3456, 12.3456)}).action["x"] == 12.3456
    for _ in range(6):
        ticket = study.ask(new=True, allowed={"x": (12.7, 13.8), "y": (0.501, 0.509)})
        assert ticket.action["x"] == 13
        assert 0.501 <= ticket.action["y"] <= 0.509
        last = ticket.action
        ticket = study.ask(new=True, largest_step={"x": 0.6})
        assert abs(ticket.action["x"] - last["x"]) <= 0.6


def test_words_that_are_allowed_are_words(refusal):
    study = clinic(MemoryStore(), factors=[Factor("salt", levels=["none", "calcium"])])
    assert study.ask(allowed={"salt": "calcium"}).action == {"salt": "calcium"}
    assert "salt must be one of" in refusal(study.ask, new=True, allowed={"salt": 5})


def test_words_may_be_factors(storage):
    factors = [Factor("salt", levels=["none", "calcium", "sodium"]), Factor("dose", 0, 2, step=1)]
    study = clinic(storage, factors=factors)
    play_words = [study.ask(allowed={"salt": ["calcium"]}).action["salt"] for _ in range(2)]
    assert play_words == ["calcium", "calcium"]


def test_results_from_before_are_learned_all_or_none(storage, refusal):
    study = clinic(storage)
    table = {
        "lisinopril": [0, 10, 40],
        "amlodipine": [0, 2.5, 10],
        "chlortalidone": [0, 0, 25],
        "sodium": [138.0, None, 140],
        "potassium": [4.1, 4.2, float("nan")],
    }
    study.import_results(table)
    assert study.best().counts == {"sodium": 2, "potassium": 2}
    wrong = table | {"lisinopril": [0, 41, 40], "potassium": [4.1, "4,2", None]}
    message = refusal(study.import_results, wrong)
    assert "row 1" in message
    assert study.best().results == 4
    long = {name: table[name] for name in ("lisinopril", "amlodipine", "chlortalidone")}
    study.import_results(long | {"outcome": ["sodium"] * 3, "value": [138, 139, 140]})
    assert study.best().counts == {"sodium": 5, "potassium": 2}
    study.correct(2, 137.0, row=0, reason="typed wrongly")
    assert study.history()[-1].body["is"] == 137.0


@pytest.mark.full
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), ["finite"]),
        (float("inf"), ["finite"]),
        (10**400, ["finite"]),
        ("4.2", ["number", "text"]),
        ("4,2", ["4.2", "point"]),
        ("<0.5", ["below=0.3"]),
        (True, ["True"]),
        (None, ["None"]),
        (1e12, ["half its range"]),
        ({}, ["outcome: value"]),
    ],
)
def test_what_is_no_result_is_refused_and_nothing_is_written(study, refusal, value, words):
    ticket = study.ask()
    message = refusal(study.tell, ticket.id, value)
    assert all(word in message for word in words), message
    assert len(study.history()) == 2
    assert not study.tell(ticket.id, 138.0).repeated


@pytest.mark.full
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.tell(2, 4.1, measured="iron"), ["iron"]),
        (lambda s: s.tell(2, 4.1, given={"aspirin": 1}), ["aspirin"]),
        (lambda s: s.tell(2, 4.1, given={"lisinopril": -0.5}), ["0 to 40", "-0.5"]),
        (lambda s: s.tell(2, 4.1, given={"lisinopril": 50}), ["lisinopril", "50"]),
        (lambda s: s.tell(None, 4.1, measured="sodium"), ["given"]),
        (lambda s: s.tell(None, 4.1, given={}), ["given", "lisinopril"]),
        (lambda s: s.correct(2, 4.1, reason="none yet"), ["question 2", "answer"]),
        (lambda s: s.ask(purpose="play"), ["purpose"]),
        (lambda s: s.ask(measure="sodium"), ["confirm"]),
        (lambda s: s.ask(new=True, panel=9), ["panel", "1..4"]),
        (lambda s: s.ask(new=True, measure_only="iron"), ["iron"]),
        (lambda s: s.ask(new=True, panel=1.5), ["panel", "1.5"]),
        (lambda s: s.ask(new=True, panel=["sodium"], measure_only="potassium"), ["measure_only"]),
        (lambda s: s.ask(new=True, panel=2, measure_only=["sodium", "sodium"]), ["panel", "1..1"]),
        (lambda s: s.ask(new=True, allowed=[999]), ["0..99", "999"]),
        (lambda s: s.ask(new=True, allowed=[1.7]), ["allowed", "1.7"]),
        (lambda s: s.ask(new=True, allowed="12"), ["allowed", "12"]),
        (lambda s: s.ask(new=True, allowed={"aspirin": (0, 1)}), ["aspirin"]),
        (lambda s: s.ask(new=True, allowed={"lisinopril": (1, 2)}), ["leave a candidate"]),
        (lambda s: s.ask(new=True, largest_step={"aspirin": 1}), ["aspirin"]),
        (lambda s: s.ask(new=True, price_cap=-1), ["price_cap"]),
        (lambda s: s.ask(new=True, context={"age": 63}), ["context", "age"]),
    ],
)
def test_a_wrong_call_is_refused_in_one_sentence(study, refusal, call, words):
    study.ask()
    message = refusal(call, study)
    assert all(word in message for word in words), message
    assert len(study.history()) == 2


def test_a_missing_question_is_not_found(study):
    with pytest.raises(TicketNotFound, match="no question 99"):
        study.tell(99, 1.0)
    with pytest.raises(TicketNotFound, match="no question 1"):
        study.tell(1, 1.0)
    with pytest.raises(TicketNotFound):
        study.withdraw(99, reason="x")


def test_a_missing_study_cannot_be_opened_and_an_existing_one_not_created(storage):
    clinic(storage)
    opener = storage.open if isinstance(storage, Client) else lambda name: Study.open(name, storage)
    with pytest.raises(StudyNotFound, match="'bq'"):
        opener("bq")
    with pytest.raises(StudyExists):
        clinic(storage)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"aim": "within", "rank": None, "protected": [Outcome("iron", range=(0, 1))]},
            ["iron", "tolerance"],
        ),
        ({"aim": "clean", "rank": None}, ["rank", "resolution", "neither"]),
        ({"aim": "clean", "rank": 2, "resolution": 0.1}, ["both"]),
        ({"aim": "pure"}, ["within", "clean"]),
        ({"protected": [TARGET]}, ["systolic pressure"]),
        ({"protected": [*PROTECTED, PROTECTED[0]]}, ["potassium", "twice"]),
        ({"factors": []}, ["factors"]),
        ({"factors": ["dose"]}, ["dose"]),
        ({"seed": -1}, ["seed"]),
        ({"policy": "directed-thomson"}, ["did you mean"]),
        ({"policy": ["uniform"]}, ["policy", "uniform"]),
        ({"knobs": {"kapa": 1}}, ["kapa"]),
        ({"knobs": 3}, ["knobs", "3"]),
        ({"aim": "clean", "rank": "2"}, ["rank", "2"]),
        ({"aim": "clean", "resolution": "fine"}, ["resolution", "fine"]),
        ({"model": 3}, ["model", "3"]),
        ({"vocabulary": "zoo"}, ["clinic"]),
        (
            {
                "model": "0 + lisinopril",
                "factors": [Factor("lisinopril", 0, 40)],
                "policy": "directed-thompson",
            },
            ["model", "box"],
        ),
    ],
)
def test_an_impossible_study_is_refused_before_anything_is_written(refusal, changes, words):
    store = MemoryStore()
    message = refusal(clinic, store, **changes)
    assert all(word in message for word in words), message
    assert store.names() == []


def test_names_are_listed(tmp_path):
    for name in ("b", "a"):
        clinic(tmp_path / "c.db", name)
    assert Study.list(tmp_path / "c.db") == ["a", "b"]


def test_best_says_plainly_when_there_is_nothing_to_say(study):
    best = study.best()
    assert best.action is None
    assert "no results yet" in str(best)


def test_the_baseline_is_within_a_limit_of_zero():
    potassium = Outcome("potassium", range=(3, 6), tolerance=(0, None), penalty=3)
    study = clinic(MemoryStore(), factors=FACTORS[:1], protected=[potassium])
    study.tell(None, 150, measured="systolic pressure", given={"lisinopril": 20})
    best = study.best()
    assert (best.action, best.within, best.chance) == ({"lisinopril": 20.0}, True, 1.0)


def test_the_clean_aim_is_never_taken_unless_it_is_chosen(refusal):
    told = {"factors": FACTORS, "target": TARGET}
    study = Study.create("bp", MemoryStore(), protected=PROTECTED, **told)
    assert study.plan.aim == "within"
    assert study.show().data["config"]["aim"] == "within"  # on record, whatever a later default is
    bare = Outcome("iron", range=(0, 1))
    message = refusal(Study.create, "bq", MemoryStore(), protected=[*PROTECTED, bare], **told)
    assert "iron is protected and must have a tolerance" in message
    assert 'or choose aim="clean"' in message


def test_a_confirmation_plays_the_recommendation_and_measures_what_is_least_settled(study):
    play(study, 15)
    best = study.best()
    ticket = study.ask(purpose="confirm")
    leader = best.action if best.better is not None else best.leader.action
    assert ticket.action == leader
    assert ticket.measure != study.plan.target.name
    effects = best.effects if best.better is not None else best.leader.effects
    widths = {
        outcome.name: (effects[outcome.name].high - effects[outcome.name].low) / outcome.tolerance
        for outcome in study.plan.protected
        if effects[outcome.name].verdict == "not settled"
    }
    if widths:
        assert ticket.measure == max(widths, key=widths.get)
    study.tell(ticket.id, 100.0)
    assert study.ask(purpose="confirm", measure="sodium").measure == "sodium"


def test_nothing_can_be_confirmed_before_there_are_results(study, refusal):
    assert "results" in refusal(study.ask, purpose="confirm")


def test_every_question_would_be_put_again(storage):
    study = clinic(storage)
    play(study, 6)
    study.ask(new=True, allowed={"lisinopril": (0, 10)}, measure_only=["sodium"])
    study.ask(new=True, allowed=[3, 4], largest_step={"amlodipine": 10})
    study.ask(new=True, purpose="confirm")
    study.correct(2, 111.0, reason="learned again from here on")
    study.ask(new=True, panel=2)
    verdict = study.verify(asks=True)
    assert verdict.data["holds"], verdict
    assert "10 questions decided again" in str(verdict)


def test_threads_may_share_one_study(tmp_path):
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    study = clinic(tmp_path / "clinic.db")

    def work(number):
        for _ in range(3):
            ticket = study.ask(actor=f"person {number}")
            study.tell(ticket.id, 100.0)
            study.show()
        return study.best().results

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, range(4))) <= 12
    assert study.best().results == 12
    assert study.verify(asks=True).data["holds"]


def test_a_result_may_lie_beyond_every_candidate():
    study = clinic(
        MemoryStore(),
        candidates={"lisinopril": [10, 30], "amlodipine": [0, 5], "chlortalidone": [0, 6.25]},
    )
    far = {"lisinopril": 40, "amlodipine": 10, "chlortalidone": 25}
    study.tell(None, 4.4, measured="potassium", given=far)
    study.import_results({name: [value] for name, value in far.items()} | {"sodium": [137]})
    assert study.ask().candidate in (0, 1)
    assert study.n_results == 2
