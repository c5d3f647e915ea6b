"""The form of a new study: what its fields may hold, what is advanced, and a study like another."""

import re

import pytest

from clinic import clinic, play
from sidestep.service.pages.forms import Form
from sidestep.service.pages.setup import form_like, not_in_form, read_setup
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.study import Study

FIELD = re.compile(r'<(?:input(?! type="(?:hidden|checkbox|radio)")|textarea)[^>]*>')
PAGES = (
    "/new",
    "/studies/bp",
    "/studies/bp/results",
    "/studies/bp/close",
    "/studies/bp/people",
    "/studies/bp/erase",
    "/studies/bp/entries/3/correct",
    "/studies/bp/entries/4/withdraw",
    "/people",
    "/login",
)


@pytest.mark.parametrize("path", PAGES)
def test_every_field_shows_what_it_may_hold(running, browser, path):
    study = clinic(running.store)
    play(study, 1)
    study.ask()
    fields = FIELD.findall(browser.get(path).text)
    assert fields
    assert [field for field in fields if not re.search(r'placeholder="[^"]+"', field)] == []


def test_seed_and_directions_of_side_effects_are_advanced(browser):
    page = browser.get("/new").text
    advanced = re.search(r'<details class="advanced">.*?</details>', page, re.DOTALL)[0]
    assert 'name="seed"' in advanced
    assert 'name="rank"' in advanced
    assert 'name="caution"' not in advanced
    wrong = browser.post("/new", do="create", seed="x").text
    assert '<details class="advanced" open>' in wrong  # what is wrong is seen


def kitchen(store, name="brew", **changes):
    return Study.create(
        name,
        store,
        factors=[
            Factor("heat", 60, 100, unit="C", step=5, baseline=80),
            Factor("stirred", levels=[False, True], baseline=True),
            Factor("salt", levels=["none", "some"], baseline="some"),
            Factor("size", levels=[-1, 2.5, 5]),
        ],
        target=Outcome("taste", goal="lower", range=(0, 10), matters=0.5, baseline=7),
        protected=[
            Outcome("bitter", range=(0, 10), tolerance=(None, 1.5)),
            Outcome("sour", "pH", range=(-2, 10), tolerance=(-0.5, None), baseline=3),
            Outcome("sweet", range=(0, 10), tolerance=(-0.25, 0.5)),
            Outcome("salty", range=(0, 10), tolerance=2),
        ],
        vocabulary="lab",
        title="Brew",
        **changes,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"knobs": {"caution": 0.95}},
        {"aim": "clean", "rank": 2},
        {
            "candidates": {
                "heat": [60, 80],
                "stirred": [True, True],
                "salt": ["none", "some"],
                "size": [-1, 5],
            }
        },
    ],
)
def test_a_study_like_this_one_is_set_up_alike(changes):
    plan = kitchen(MemoryStore(), **changes).plan
    settings, mistakes = read_setup(Form(form_like(plan) | {"name": ["next"]}))
    assert mistakes == {}
    again = Study.create("next", MemoryStore(), **settings).plan
    assert again == plan
    assert not_in_form(plan) == []


def test_new_study_like_this_one_is_offered_and_says_what_it_leaves_out(running, browser):
    clinic(running.store)
    assert 'href="/new?like=bp"' in browser.get("/studies/bp").text
    page = browser.get("/new?like=bp")
    assert 'name="t.name" value="systolic pressure"' in page.text
    assert 'name="name" value=""' in page.text
    assert "The form has no field" not in page.text
    dose = Factor("dose", 1, 64, scale="log")
    noisy = Outcome("taste", range=(0, 10), noise=0.5)
    Study.create("logs", running.store, factors=[dose], target=noisy)
    page = browser.get("/new?like=logs").text
    assert "The form has no field for noise of taste and scale of dose" in page
    assert browser.get("/new?like=nobody").status_code == 404
