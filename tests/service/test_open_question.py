"""The open question: what its answer could change, then what it costs; what is outstanding."""

import re

import numpy as np
import pytest
from houses import text_of

from clinic import TARGET, WORLD, clinic, play
from sidestep.studies.cards.ask_card import chance_text, changes_text, price_text
from sidestep.studies.study import Study

PANEL = {"value__0": "141", "value__1": "4.1", "value__3": "71", "sure": "1"}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """However busy the machine is, a page waits for its arithmetic."""
    monkeypatch.setattr("sidestep.service.pages.study_view.PATIENCE", 60.0)


def visits(study, count):
    """Whole visits, all their results told."""
    for number in range(count):
        ticket, rng = study.ask(actor="ada"), np.random.default_rng([3, number])
        results = {name: WORLD.result(study, name, ticket.action, rng) for name in WORLD.noise}
        study.tell(ticket.id, results)
    return study


@pytest.mark.parametrize("questions", ["decide", "earn"])
@pytest.mark.parametrize("count", [3, 6, 9])
def test_what_the_answer_could_change_comes_first_then_price_and_chance(
    running, browser, questions, count
):
    study = visits(clinic(running.store, panel="all", questions=questions), count)
    body = study.history(study.ask().id - 1, 1)[0].body
    page = text_of(browser.get("/studies/bp?wait=1"))
    changes = changes_text(study.plan, body)
    priced, likely = price_text(study.plan, body), chance_text(study.plan, body)
    assert f"What the answer could change {changes}" in page
    assert page.count(changes) == 1
    begin = page.index(changes)
    price = re.search(r"Price: [\d.]+ mmHg worse this visit than today's best\.", page)
    if price is not None:
        assert price[0].split()[1] in priced  # the figure of the card
    else:
        assert f"{changes} {priced}" in page
    assert begin < (page.index("Price:") if price else page.index(priced))
    if likely:
        assert f"{price[0] if price else ''} {likely}".strip() in page
        assert page.count(likely) == 1
    assert page.index("Record results") > page.index(likely or changes)
    assert ("best in one draw of what may be true" in page) == (questions == "earn")
    assert ("Why this This regimen is the best in one draw" in page) == (questions == "earn")


def test_a_question_that_cannot_change_anything_yet_says_why_it_is_asked(running, browser):
    study = clinic(running.store)
    study.ask()
    page = text_of(browser.get("/studies/bp?wait=1"))
    assert "What the answer could change" not in page  # nothing is known of anything
    assert "Why this Nothing is known yet." in page


def test_a_named_policy_says_its_reasons_in_one_place(running, browser):
    study = clinic(running.store, policy="directed-thompson")
    play(study, 6)
    study.ask()
    page = text_of(browser.get("/studies/bp?wait=1"))
    assert "What the answer could change" not in page
    assert "Why this" in page


def test_to_confirm_says_that_and_not_what_could_change(running, browser):
    study = visits(clinic(running.store, panel="all"), 6)
    study.ask(purpose="confirm")
    page = text_of(browser.get("/studies/bp?wait=1"))
    assert "What the answer could change" not in page
    assert "Why this This is what would be recommended today" in page


def test_a_partly_answered_panel_does_not_hold_up_the_next_question(running, browser):
    study = clinic(running.store, panel="all")
    ticket = study.ask(actor="ada")
    saved = browser.post(f"/studies/bp/questions/{ticket.id}/answer", **PANEL)
    assert "Saved as entry 3" in text_of(saved)
    page = browser.get("/studies/bp?wait=1")
    said = text_of(page)
    assert "An answer is outstanding Visit 1, sodium outstanding" in said
    assert "Ask the next question What is outstanding does not hold it up" in said
    assert "Give this." not in said  # the visit is over
    following = browser.post("/studies/bp/ask")
    assert "visit 2" in text_of(following)
    assert "One more answer is awaited Visit 1, sodium outstanding" in text_of(following)
    assert len(study.questions()) == 2


def test_what_is_outstanding_is_shown_and_told_when_it_comes(running, browser):
    study = clinic(running.store, panel="all")
    ticket = study.ask(actor="ada")
    browser.post(f"/studies/bp/questions/{ticket.id}/answer", **PANEL)
    link = re.search(
        r'href="(/studies/bp\?question=\d+)#question">Record', browser.get("/studies/bp").text
    )
    page = browser.get(link[1])
    said = text_of(page)
    assert "Still to come: sodium The rest of this visit is recorded." in said
    assert "Then measure" not in said
    assert "What the answer could change" not in said  # some of it is told
    form = re.search(r'<form class="tell".*?</form>', page.text, re.DOTALL)[0]
    assert 'id="value-2"' in form
    assert 'id="value-0"' not in form
    browser.post(f"/studies/bp/questions/{ticket.id}/answer", value__2="139", sure="1")
    assert study.questions() == []
    assert "Nothing is awaited" in text_of(browser.get("/studies/bp"))


def test_a_closed_study_still_takes_what_is_outstanding(running, browser):
    study = clinic(running.store, panel="all")
    ticket = study.ask(actor="ada")
    browser.post(f"/studies/bp/questions/{ticket.id}/answer", **PANEL)
    study.close(reason="enough")
    page = browser.get("/studies/bp")
    assert "A late answer is still accepted" in text_of(page)
    assert 'id="value-2"' in page.text
    assert isinstance(Study.open("bp", running.store), Study)


def test_reasons_to_stop_stand_on_the_page(running, browser):
    study = visits(clinic(running.store, panel="all"), 9)
    best = study.best()
    assert best.action != study.plan.baseline
    assert best.tried < 3
    assert "A reason to stop" not in text_of(browser.get("/studies/bp?wait=1"))
    for number in range(3):
        rng = np.random.default_rng([4, number])
        for name in WORLD.noise:
            value = WORLD.result(study, name, best.action, rng)
            study.tell(None, value, measured=name, given=best.action)
    best = study.best()
    page = text_of(browser.get("/studies/bp?wait=1"))
    assert "the best regimen within limits is expected to do" in page
    assert best.tried >= 3
    assert f"A reason to stop: {TARGET.name} and every protected marker were measured" in page
