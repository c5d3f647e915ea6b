"""Sixty rounds as life has them: late answers, a slip corrected, a missed visit, something else given."""

from collections import deque
from typing import Any

import numpy as np
import pytest
from product import TEAM, product_setup

from sidestep.cli.world import CLINIC, clinic_setup, is_within, truly_best
from sidestep.studies.memory import MemoryStore
from sidestep.studies.study import Study

ROUNDS = 60
STORIES = {"clinic": (CLINIC, clinic_setup), "product": (TEAM, product_setup)}
SLIP, MISSED, OTHER = 11, 23, 31  # rounds in which something goes wrong
NOTICED = 15


class Story:
    """Sixty rounds of a study, as life has them."""

    def __init__(self, kind: str, storage: Any, seed: int) -> None:
        self.world, setup = STORIES[kind]
        self.study = Study.create(kind, storage, seed=seed, **setup())
        self.rng = np.random.default_rng([seed, 99])
        self.waiting: deque[Any] = deque()
        self.slip: tuple[int, float] | None = None

    def play(self, rounds: int = ROUNDS) -> Study:
        for number in range(1, rounds + 1):
            self.round(number)
        while self.waiting:
            self.answer(self.waiting.popleft())
        return self.study

    def round(self, number: int) -> None:
        """One question; one answer in five comes a few rounds late."""
        ticket = self.study.ask(new=bool(self.waiting))
        if number == MISSED:
            self.study.withdraw(ticket.id, reason="missed visit")
        elif number == OTHER:
            self.answer(ticket, given=self.something_else(ticket))
        elif number == SLIP:
            value = self.value(ticket, ticket.action)
            self.study.tell(ticket.id, value * 10)
            self.slip = (ticket.id, value)
        elif self.rng.random() < 0.2:
            self.waiting.append(ticket)
        else:
            self.answer(ticket)
        if self.waiting and self.rng.random() < 0.4:
            self.answer(self.waiting.pop())  # not the oldest first
        if number == NOTICED and self.slip is not None:
            self.study.correct(*self.slip, reason="a lost decimal point")

    def answer(self, ticket: Any, given: dict[str, Any] | None = None) -> None:
        self.study.tell(ticket.id, self.value(ticket, given or ticket.action), given=given)

    def value(self, ticket: Any, action: dict[str, Any]) -> float:
        return self.world.result(ticket.measure, action, self.rng)

    def something_else(self, ticket: Any) -> dict[str, Any]:
        menu = self.study.plan.candidates
        return menu.setting((ticket.candidate + 7) % len(menu))


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
    assert again.best().to_json() == study.best().to_json()
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


def outcome_of(kind: str, seed: int) -> dict[str, Any]:
    """What sixty rounds led to, beside the truth."""
    told = Story(kind, MemoryStore(), seed)
    study, world = told.play(), told.world
    best = study.best()
    _, most = truly_best(study, world)
    target = study.plan.target
    covered = [
        effect.low <= world.effect(name, best.action) <= effect.high
        for name, effect in best.effects.items()
    ]
    return {
        "says": best.within,
        "within": is_within(study, world, best.action),
        "share": world.effect(target.name, best.action) / most,
        "covered": covered,
        "lost": 1 - world.effect(target.name, best.action) / most,
    }
