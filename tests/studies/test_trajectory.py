"""How a recommendation came about: the estimates after every result."""

import pytest

from clinic import clinic, play
from sidestep.studies.storage.memory import MemoryStore


@pytest.fixture
def store():
    return MemoryStore()


def test_it_ends_with_what_is_believed_today(store):
    study = clinic(store)
    play(study, 12)
    today = study.explain().rows[3]
    told = study.trajectory(today.action)
    assert [step.results for step in told] == list(range(13))
    for name, effect in today.effects.items():
        assert told[-1].effects[name][:3] == pytest.approx(effect[:3])
        assert told[-1].effects[name].verdict == effect.verdict
    assert told[0].effects["potassium"].estimate == 0


def test_a_long_one_is_thinned_out_and_keeps_its_ends(store):
    study = clinic(store)
    play(study, 15)
    told = study.trajectory(study.plan.baseline, most=5)
    assert len(told) == 5
    assert (told[0].results, told[-1].results) == (0, 15)


def test_a_corrected_result_counts_as_it_does_now(store):
    study = clinic(store)
    ticket = play(study, 6)[0]
    setting = study.explain().rows[0].action
    before = study.trajectory(setting)
    study.correct(ticket.id, 175.0, reason="misread")
    after = study.trajectory(setting)
    assert after[1].effects != before[1].effects
    assert after[-1] != before[-1]
