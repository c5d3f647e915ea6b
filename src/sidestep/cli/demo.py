"""`sidestep demo`: a simulated clinic."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from sidestep.cli.terminal import card_json, print_card
from sidestep.cli.world import CLINIC, clinic_setup, is_within, truly_best
from sidestep.errors import InputError
from sidestep.studies.book import Question
from sidestep.studies.cards.words import digits_of_change, set_text, signed, with_unit
from sidestep.studies.storage.store import Store
from sidestep.studies.study import Study
from sidestep.studies.ticket import Ticket

NAME = "demo"
HELP = "Enter: the laboratory answers.  A number: your own result.  b: best.  e: explain.  q: quit."


def opened(storage: "str | Path | Store", seed: int = 7) -> Study:
    """The demo's study; created if it does not exist."""
    try:
        return Study.open(NAME, storage)
    except InputError:  # no such file, or no such study in it
        return Study.create(NAME, storage, seed=seed, **clinic_setup())


def answer(study: Study, ticket: Ticket) -> float:
    """The simulated result of a question; always the same for the same question."""
    rng = np.random.default_rng([study.plan.seed, ticket.id])
    return CLINIC.result(str(ticket.measure), ticket.action, rng)


def laboratory(study: Study, question: Question) -> float:
    """The simulated result of an open question on a page."""
    rng = np.random.default_rng([study.plan.seed, question.id])
    return CLINIC.result(question.waiting[0], dict(question.body["action"]), rng)


def play(study: Study, rounds: int) -> None:
    """Play this many rounds with simulated results."""
    for _ in range(rounds):
        ticket = study.ask()
        study.tell(ticket.id, answer(study, ticket), actor="laboratory")


def by_hand(study: Study, storage: str) -> None:
    """Play round after round, with results that a person types or has simulated."""
    print(HELP, file=sys.stderr)
    while True:
        ticket = study.ask()
        print_card(ticket.card, as_json=False, storage=storage)
        word = _typed(study, ticket, storage)
        if word is None:
            return
        receipt = study.tell(ticket.id, word)
        print(f"{receipt}\n")


def _typed(study: Study, ticket: Ticket, storage: str) -> float | None:
    """A result that was typed or simulated; None: enough."""
    from sidestep.studies.values import read_number

    while True:
        try:
            typed = input(f"{ticket.measure}> ").strip().lower()
        except EOFError:
            return None
        if typed in ("q", "quit"):
            return None
        if typed in ("b", "e"):
            shown = study.best() if typed == "b" else study.explain()
            print_card(shown.card, as_json=False, storage=storage)
            continue
        if not typed:
            return answer(study, ticket)
        try:
            return read_number(str(ticket.measure), typed)
        except ValueError as error:
            print(error, file=sys.stderr)


def conclude(study: Study, storage: str, *, as_json: bool) -> None:
    """Print the recommendation and the truly best regimen, which only the simulation knows."""
    best = study.best()
    number, _ = truly_best(study, CLINIC)
    truth = _truth(study, best.action) if best.action else {}
    if as_json:
        told = {**card_json(best.card, storage), "truth": truth, "truly_best": number}
        print(json.dumps(told, ensure_ascii=False))
        return
    print_card(best.card, as_json=False, storage=storage)
    if best.action:
        effects = ", ".join(truth["effects"])
        inside = "within" if truth["within"] else "not within"
        _say(f"\nWhat only the simulation knows: {effects}; truly {inside} limits.")
    setting = study.plan.candidates.setting(number)
    effect = _truth(study, setting)["effects"][0]
    named = set_text(study.plan.factors, setting)
    _say(f"Truly best within limits: {named}; {effect}.")
    print(
        f"The study is {NAME!r} in {storage}: sidestep study show {NAME} -s {storage}",
        file=sys.stderr,
    )


def _say(text: str) -> None:
    print(textwrap.fill(text, 80, replace_whitespace=False, break_long_words=False))


def _truth(study: Study, setting: dict[str, Any]) -> dict[str, Any]:
    effects = []
    for outcome in study.plan.outcomes:
        change = signed(CLINIC.effect(outcome.name, setting), digits_of_change(outcome))
        effects.append(f"{outcome.name} {with_unit(change, outcome.unit)}")
    return {"effects": effects, "within": is_within(study, CLINIC, setting)}
