"""`verify --asks`: which questions are computed again, and what a difference means."""

import pytest

from clinic import clinic, play
from sidestep.studies import deciding
from sidestep.studies.learning import decision
from sidestep.studies.storage.events import canonical, digest
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.study import Study

DECIDED = {
    None: (1, "ac84e7001a30ef97"),
    "directed-thompson": (1, "53c5e44a3ccdbe97"),
}
DECIDERS = {None: decision, "directed-thompson": deciding}


@pytest.fixture(params=DECIDED)
def policy(request):
    return request.param


@pytest.fixture
def decider(policy):
    """What decides the questions."""
    return DECIDERS[policy]


@pytest.fixture
def study(policy):
    made = clinic(MemoryStore(), policy=policy)
    play(made, 6)
    return made


def check(study):
    """A check by a process that has nothing in memory."""
    return Study.open(study.name, study._store).verify(asks=True)


def otherwise(monkeypatch, decider):
    """Decide another action than before, as another version may."""
    plain = decider.decide

    def decide(*given):
        return plain(*given) | {"candidate": 0}

    monkeypatch.setattr(decider, "decide", decide)


def test_a_question_says_what_it_was_computed_with(study, decider):
    asked = [event for event in study.history() if event.kind == "asked"]
    assert {event.body["computed"] for event in asked} == {decider.DECISIONS}


def test_questions_of_this_version_must_come_out_the_same(study, monkeypatch, decider):
    assert check(study).data["holds"]
    otherwise(monkeypatch, decider)
    card = check(study)
    assert not card.data["holds"]
    assert card.data["differences"]


def test_questions_of_another_version_are_not_computed_again(study, monkeypatch, decider):
    monkeypatch.setattr(decider, "DECISIONS", decider.DECISIONS + 1)
    otherwise(monkeypatch, decider)
    card = check(study)
    assert card.data["holds"]
    assert len(card.data["skipped"]) == 6
    assert "6 questions asked by another version: not computed again." in str(card)
    assert "is whole" in str(card)


def test_questions_without_a_number_are_compared_and_a_difference_is_no_damage(
    monkeypatch, policy, decider
):
    plain = decider.decide
    with monkeypatch.context() as patch:

        def decide(*given):
            return {key: it for key, it in plain(*given).items() if key != "computed"}

        patch.setattr(decider, "decide", decide)
        study = clinic(MemoryStore(), policy=policy)
        play(study, 6)
    assert check(study).data["changed"] == []
    otherwise(monkeypatch, decider)
    card = check(study)
    assert card.data["holds"]
    assert card.data["differences"] == []
    assert card.data["changed"]
    assert "would be another one today" in str(card)


def test_a_change_of_decisions_raises_their_number(study, policy, decider):
    """Questions are decided otherwise? Then raise DECISIONS, and note number and digest here."""
    asked = [event.body for event in study.history() if event.kind == "asked"]
    decided = [[body["candidate"], body["measure"]] for body in asked]
    assert (decider.DECISIONS, digest(canonical(decided))[:16]) == DECIDED[policy]
