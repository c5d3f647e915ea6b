"""A picture of every bend that is named, and what it shows."""

import re

import numpy as np
import pytest
from houses import text_of

from clinic import clinic, play
from sidestep.service.pages.bends_view import bends_view
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.study import Study


def peaked(storage):
    """A study whose goal has its optimum in the middle of the range."""
    study = Study.create(
        "peak",
        storage,
        factors=[
            Factor("dose", 0, 40, unit="mg", step=5, baseline=10),
            Factor("heat", 0, 4, step=2),
        ],
        target=Outcome("yield", "%", goal="raise", range=(0, 100), baseline=65, noise=1),
        protected=[Outcome("stain", range=(0, 10), baseline=2, tolerance=(None, 3), noise=0.3)],
    )
    for number in range(27):
        dose, heat = 5.0 * (number % 9), 2.0 * (number // 9)
        given = {"dose": dose, "heat": heat}
        study.tell(None, 20 + 6 * dose - 0.15 * dose**2, measured="yield", given=given)
        study.tell(None, 2 + 0.02 * (dose - 10), measured="stain", given=given)
    return study


@pytest.fixture(scope="module")
def shown():
    study = peaked(MemoryStore())
    best = study.best()
    along = [study.response(bend.outcome, bend.factor) for bend in best.bends]
    return study, best, along, bends_view(study.plan, best, along)


def test_a_bend_is_drawn_as_it_is_believed(shown):
    _, best, (along, *_), (first, *_) = shown
    assert (first["outcome"], first["factor"]) == ("yield", "dose")
    line = re.search(r'class="line" d="M([^"]+)"', str(first["plot"]))[1]
    points = np.array([list(map(float, pair.split())) for pair in line.split("L")])
    assert np.allclose(points[:, 0], np.array(along.values) / 40 * 100, atol=0.01)
    told = np.array([each.estimate for each in along.effects])
    slope, level = np.polyfit(told, points[:, 1], 1)
    assert slope < 0  # upwards
    assert np.allclose(level + slope * told, points[:, 1], atol=0.02)
    bent = float(re.search(r'class="bent" x1="([\d.]+)%"', str(first["plot"]))[1])
    assert bent == pytest.approx(best.bends[0].value / 40 * 100, abs=0.01)


def test_a_picture_of_a_bend_has_dots_where_it_was_measured_and_a_table_behind_it(shown):
    _, _, _, (first, *_) = shown
    titles = re.findall(r"<title>([^<]+)</title></circle>", str(first["plot"]))
    assert titles == [f"{each}: 3 results" for each in range(0, 41, 5)]
    assert first["measured"].startswith("0 (3 results), 5 (3 results)")
    assert [value for value, _ in first["rows"]] == ["0", "10", "20", "30", "40"]
    assert first["rows"][1][1] == "0 (0 to 0)"  # the baseline


def test_the_page_shows_a_picture_of_every_bend_that_it_names(running, browser):
    study = peaked(running.store)
    page = browser.get("/studies/peak?wait=1")
    bends = study.best().bends
    assert bends
    assert page.text.count('class="plot response"') == len(bends)
    assert "Where effects bend" in text_of(page)
    assert 'class="plot response"' in browser.get("/studies/peak/parts/bends").text


def test_without_a_bend_there_is_no_picture_of_one(running, browser):
    play(clinic(running.store), 3)
    assert 'id="bends"' not in browser.get("/studies/bp?wait=1").text
