"""Sixty realistic rounds: late answers, a corrected mistake, a missed visit, another dose given."""

from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from product import TEAM, product_setup

from sidestep.cli.world import CLINIC, clinic_setup, is_within, truly_best
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.study import Study

ROUNDS = 60
STORIES = {"clinic": (CLINIC, clinic_setup), "product": (TEAM, product_setup)}
SLIP, MISSED, OTHER = 11, 23, 31  # rounds in which something goes wrong
NOTICED = 15


class Story:
    """Sixty realistic rounds of a study; `noise` is a factor of the world's noise."""

    def __init__(
        self, kind: str, storage: Any, seed: int, noise: float = 1.0, **chosen: Any
    ) -> None:
        world, setup = STORIES[kind]
        quieter = {name: noise * scale for name, scale in world.noise.items()}
        self.world = replace(world, noise=quieter)
        self.study = Study.create(kind, storage, seed=seed, **setup(), **chosen)
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


class Outcome(NamedTuple):
    """What sixty rounds led to, beside the truth."""

    says: bool  # that what it names is within limits
    within: bool  # whether it truly is
    idle: bool  # whether it is the baseline
    lost: float  # share of the best reachable effect that it gives up
    covered: int  # effects whose interval holds the truth
    effects: int


def outcome_of(
    kind: str, seed: int, rounds: int = ROUNDS, noise: float = 1.0, **chosen: Any
) -> Outcome:
    """The end of one story, judged by what only the simulation knows; chosen: words of the study."""
    told = Story(kind, MemoryStore(), seed, noise, **chosen)
    study, world = told.play(rounds), told.world
    best = study.best()
    assert best.action is not None
    _, most = truly_best(study, world)
    held = [
        effect.low <= world.effect(name, best.action) <= effect.high
        for name, effect in best.effects.items()
    ]
    return Outcome(
        says=bool(best.within),
        within=is_within(study, world, best.action),
        idle=best.action == study.plan.baseline,
        lost=1 - world.effect(study.plan.target.name, best.action) / most,
        covered=sum(held),
        effects=len(held),
    )
