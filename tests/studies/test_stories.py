"""Whole stories: what is on record, that it can be replayed, and the result of sixty rounds."""

import pytest
from stories import ROUNDS, STORIES, Story

from clinic import same
from sidestep.studies.study import Study


@pytest.fixture(scope="module", params=STORIES)
def story(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("story") / "study.db"
    told = Story(request.param, path, seed=1)
    told.play()
    return told, path


@pytest.mark.full
def test_the_record_tells_the_whole_story(story):
    study = story[0].study
    kinds = [event.kind for event in study.history()]
    assert kinds.count("asked") == ROUNDS
    assert kinds.count("answered") == ROUNDS - 1
    assert kinds.count("withdrawn") == 1
    assert kinds.count("corrected") == 1
    assert study.show().data["open"] == []
    assert sum(study.best().counts.values()) == ROUNDS - 1
    slipped = next(event for event in study.history() if event.kind == "corrected")
    assert slipped.body["was"] == pytest.approx(10 * slipped.body["is"])


@pytest.mark.full
def test_every_question_of_the_story_would_be_put_again(story):
    assert story[0].study.verify(asks=True).data["holds"]


@pytest.mark.full
def test_another_process_would_say_the_same(story):
    study, path = story[0].study, story[1]
    again = Study.open(study.name, path)
    assert same(again.best().to_json(), study.best().to_json())
    assert again.ask(actor="x").to_json()["action"] == study.ask(actor="x").to_json()["action"]


@pytest.mark.full
def test_what_was_really_given_is_on_record_beside_what_was_asked(story):
    study = story[0].study
    given = [event for event in study.history() if event.body.get("given")]
    assert len(given) == 1
    asked = study.history()[given[0].ticket - 1]
    assert given[0].body["action"] != asked.body["action"]


@pytest.mark.full
def test_the_whole_of_it_can_be_read_at_80_columns(story):
    study = story[0].study
    for card in (study.best().card, study.explain().card, study.show(), study.ask().card):
        assert max(len(line) for line in str(card).splitlines()) <= 80, card
