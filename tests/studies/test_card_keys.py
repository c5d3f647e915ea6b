"""The keys of a card's JSON are the ones that docs/reference/cards.md lists."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from clinic import PROTECTED, TARGET, clinic, play
from sidestep.studies.cards.list_card import list_card
from sidestep.studies.cards.record_card import history_card, verify_card
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.replay import Difference, Replay
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.record import Flaw, verify

PAGE = (Path(__file__).parents[2] / "docs/reference/cards.md").read_text(encoding="utf-8")
OUTCOMES = {"pain", *(outcome.name for outcome in (TARGET, *PROTECTED))}
WHOLE = (
    "action",
    "change",
    "body",
    "config",
    "context",
    "last",
    "request",
)  # documented elsewhere, or by factor
ALWAYS = {"card", "title", "text"}


def documented(kind):
    """The keys in the table under a heading."""
    part = re.search(rf"^### {kind}\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)[1]
    return re.findall(r"^\| `([^`]+)` \|", part, re.MULTILINE)


def paths(value, at=""):
    """The keys of an object, nested ones with a dot."""
    if at.rpartition(".")[2] in WHOLE:
        return {at}
    if isinstance(value, dict) and value and set(value) <= OUTCOMES:
        inner = set().union(*(paths(each, f"{at}.NAME") for each in value.values()))
        return inner if any(isinstance(each, dict) for each in value.values()) else {at}
    if isinstance(value, dict):
        return set().union(*(paths(each, f"{at}.{key}".strip(".")) for key, each in value.items()))
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], dict):
        return set().union(*(paths(each, f"{at}[]") for each in value))
    return {at}


@pytest.fixture(scope="module")
def studies():
    """A study with everything that can happen, one with a clean aim, one with a context."""
    full = clinic(MemoryStore())
    play(full, 12)
    full.tell(full.ask(panel=2, allowed={"lisinopril": (0, 40)}).id, {"sodium": 139.0})
    full.tell(None, 139.0, measured="sodium", given=full.plan.baseline)
    full.correct(3, 140.0, reason="misread")
    full.withdraw(full.ask(actor="Ada", new=True).id, reason="missed visit")
    low = {**full.plan.baseline, "amlodipine": 5}
    mean = full.tell(
        full.ask(measure_only=["sodium"], new=True).id, 138.0, se=0.5, block="A", on="2026-11-18"
    )
    full.tell(None, 139.0, repeats=3, measured="sodium", given=low)
    full.tell(None, below=3.1, measured="potassium", given=low)
    change = full.tell(None, change=-0.1, se=0.2, against=low, measured="potassium", given=low)
    full.correct(mean.ticket, 137.0, se=0.4, block="B", reason="misread")
    full.correct(change.entries[0], below=3.9, reason="no change")
    full.correct(change.entries[0], 4.0, repeats=2, reason="a mean")
    full.correct(change.entries[0], change=-0.2, against=low, reason="a change")
    row = {**full.plan.baseline, "sodium": 139.0, "note": "x"}
    full.import_results([row])
    clean = clinic(MemoryStore(), aim="clean", rank=2)
    play(clean, 12)
    clean.close(accept=True)
    aged = clinic(
        MemoryStore(),
        factors=[Factor("dose", 0, 40, step=10)],
        target=Outcome("pain", goal="lower", range=(0, 10)),
        protected=[],
        model="0 + dose + dose:age",
        context=[Factor("age", 20, 80)],
    )
    aged.tell(aged.ask(context={"age": 63}).id, 4.0)
    aged.correct(2, 5.0, reason="misread")
    aged.close(overrule={"dose": 10}, reason="side effects", context={"age": 63})
    shared = MemoryStore()
    early = clinic(shared, "early")
    play(early, 12)  # potassium is not settled
    expect = {"potassium": {"lisinopril": (1.0, 1.2)}}  # it falls
    wrong = clinic(shared, "wrong", expect=expect, learn_from=["early"])
    play(wrong, 16)
    named = clinic(MemoryStore(), policy="directed-thompson")
    play(named, 2)
    return full, clean, aged, early, named, bent(), wrong, together()


def bent():
    """A study that shows a bend and a surprise."""
    study = clinic(
        MemoryStore(),
        factors=[Factor("dose", 0, 40, step=5)],
        target=Outcome("pain", goal="lower", range=(0, 10), noise=0.1),
        protected=[],
    )
    for number in range(27):
        dose = 5.0 * (number % 9)
        value = 6 - 0.3 * dose + 0.0075 * dose**2 + 3 * (number == 12)
        study.tell(None, value, measured="pain", given={"dose": dose})
    return study


def together():
    """A study whose candidates always change two factors together."""
    doses = [Factor("a", 0, 2, step=1), Factor("b", 0, 2, step=1)]
    rows = {"a": [0, 1, 2], "b": [0, 1, 2]}
    study = clinic(MemoryStore(), factors=doses, candidates=rows)
    study.tell(None, 148.0, measured=TARGET.name, given={"a": 1, "b": 1})
    return study


@pytest.fixture(scope="module")
def keys(studies):
    """The keys of all cards, by kind."""
    found = defaultdict(set)
    for study in studies:
        here = {"context": {"age": 63}} if study.plan.context else {}
        history = history_card(study.plan, study.name, study.history())
        for card in (study.best(**here).card, study.explain(**here).card, study.show(), history):
            found[card.kind] |= paths(card.to_json()) - ALWAYS
        if study.plan.aim == "within":
            card = study.tradeoff(**here).card
            found[card.kind] |= paths(card.to_json()) - ALWAYS
    ahead = studies[0].outlook(results=(1,), studies=1)
    found["outlook"] |= paths(ahead.card.to_json()) - ALWAYS
    aged = {"context"}  # which the study has that is closed here: see the entries
    asked = [event.body for event in studies[0].history() if event.kind == "asked"]
    assert any(body["changes"] for body in asked)
    found["ask"].add("news")  # in the first question after an upgrade: test_written_by.py
    for body in asked:
        found["ask"] |= paths(body)
    for ticket in (studies[0].ask(actor="Bob", new=True), studies[4].ask()):
        found["ask"] |= (paths(ticket.to_json()) - ALWAYS) | aged
    return found


@pytest.mark.parametrize(
    "kind", ["ask", "best", "explain", "tradeoff", "outlook", "show", "history"]
)
def test_the_page_lists_the_keys_of_a_card(keys, kind):
    listed = set(documented(kind))
    empty = {path.partition(".")[0].removesuffix("[]") for path in listed if "." in path}
    empty |= {"leader.effects.NAME.estimate", "leader.effects.NAME.low", "leader.effects.NAME.high"}
    empty |= {"leader.effects.NAME.verdict"}
    listed -= {"leader.effects"}  # which are those of `effects`
    assert keys[kind] - empty == listed  # an object that is null, or a list without elements


def test_the_page_lists_the_keys_of_a_check(studies):
    study = studies[0]
    verdict = verify(study._store, study.name)
    flawed = verdict._replace(flaws=[Flaw(3, "entry 3 was changed")])
    card = verify_card(flawed, Replay(1, (Difference(2, "candidate", 3, 4),), (), ()))
    assert paths(card.to_json()) - ALWAYS == set(documented("verify"))


def test_the_page_lists_the_keys_of_a_receipt_and_of_every_entry(studies):
    study = studies[0]
    told = study.tell(None, 139.5, measured="sodium", given=study.plan.baseline).to_json()
    answered = {f"entries[].{key}" for key in ("outcome", "value", "action", "given")}
    assert paths(told) - ALWAYS - answered == set(documented("tell"))
    kept = defaultdict(set)
    for each in studies:
        for event in each.history():
            kept[event.kind] |= set(event.body)
    rows = re.findall(
        r"^\| `(\w+)` \| (.*) \|$", PAGE.partition("### Entries of the record")[2], re.M
    )
    listed = {kind: set(re.findall(r"`(\w+)`", keys)) for kind, keys in rows}
    listed["asked"] = {re.split(r"\.|\[", path)[0] for path in documented("ask")}
    listed["asked"] -= {"study", "ticket", "news"}
    assert dict(kept) == listed


def test_a_list_has_the_keys_of_every_study_but_its_set_up(studies):
    shown = studies[0].show()
    kept = {key: it for key, it in shown.data.items() if key != "config"}
    (one,) = list_card([], [kept]).to_json()["studies"]
    assert set(one) == set(shown.data) - {"config"}
