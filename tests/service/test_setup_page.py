"""The form of a new study: what its fields may hold, what is advanced, and a study like another."""

import re
from pathlib import Path

import pytest
from houses import text_of

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
        title="Brew",
        **{"vocabulary": "lab", **changes},
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shape": "straight", "questions": "earn"},
        {"shape": "smooth", "panel": "all", "largest_step": {"heat": 5, "size": 3.5}},
        {"panel": 3, "caution": 0.9},
        {"panel": ["sour", "taste"]},
        {"vocabulary": "clinic"},  # where the form asks for a largest change: any
        {"vocabulary": "clinic", "largest_step": {"heat": 10}},
        {
            "expect": {"taste": {"heat": (-5, 0.5)}, "sour": {"size": (None, 0)}},
            "monotone": {"salty": {"heat": "rises"}, "sour": {"size": "falls"}},
        },
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
    brewed = Outcome("taste", range=(0, 10), digits=2, cost=3)
    heat = Factor("heat", 60, 100, step=5)
    Study.create("brew", running.store, factors=[heat], target=brewed, policy="directed-thompson")
    page = browser.get("/new?like=brew").text
    assert "The form has no field for cost of taste, digits of taste and policy" in page
    assert browser.get("/new?like=nobody").status_code == 404


DOSE = Factor("dose", 0, 64, "mg", scale="log", offset=0.5)
RATE = Factor("rate", levels=[1, 2, 4, 8], scale="log", baseline=2)
LOGGED = {"range": (1, 100), "scale": "log"}
SIGNAL = Outcome(
    "signal", "nM", "raise", baseline=20, matters="10%", noise=("5%", "12.5%"), **LOGGED
)


@pytest.mark.parametrize(
    ("tolerance", "typed", "harm"),
    [
        ("2%", "2%", "both"),
        ((None, "2.5%"), "2.5%", "rise"),
        (("-3%", None), "3%", "fall"),
        (("-2%", "5%"), "-2% to 5%", "both"),
        (("-2%", "2%"), "-2% to 2%", "both"),
    ],
)
def test_logarithms_and_percentages_come_back_from_the_form(tolerance, typed, harm):
    settings = {
        "factors": [DOSE, RATE],
        "target": SIGNAL,
        "protected": [Outcome("toxin", tolerance=tolerance, noise="8%", **LOGGED)],
        "expect": {"toxin": {"dose": ("-10%", "40%")}, "signal": {"rate": ("5%", None)}},
        "candidates": {"dose": [0, 0.5, 64], "rate": [2, 2, 8]},
    }
    plan = Study.create("logs", MemoryStore(), **settings).plan
    form = form_like(plan)
    assert (form["p.tolerance"], form["p.harm"]) == ([typed], [harm])
    again, mistakes = read_setup(Form(form | {"name": ["next"]}))
    assert mistakes == {}
    assert Study.create("next", MemoryStore(), **again).plan == plan
    assert not_in_form(plan) == []


@pytest.mark.parametrize("never", [(None, 5.5), (3.5, None), (3.5, 5.5)])
@pytest.mark.parametrize("noise", [None, 0.2, (0.1, 0.3)])
def test_noise_and_what_is_never_allowed_come_back_from_the_form(never, noise):
    outcome = Outcome("potassium", range=(3, 6), tolerance=(None, 0.0), penalty=9, never=never)
    goal = Outcome("pressure", goal="lower", range=(100, 190), noise=noise, never=(None, 180))
    heat = Factor("heat", -10, 100, step=5)
    plan = Study.create("k", MemoryStore(), factors=[heat], target=goal, protected=[outcome]).plan
    assert not_in_form(plan) == ["penalty of potassium"]
    again, mistakes = read_setup(Form(form_like(plan) | {"name": ["next"]}))
    assert mistakes == {}
    assert again["target"] == goal
    assert again["protected"][0].never == never
    assert again["protected"][0].tolerance == (None, 0.0)


FILLED = {
    "name": "bp",
    "f__name": "dose",
    "f__low": "0",
    "f__high": "40",
    "f__step": "10",
    "t__name": "pressure",
    "t__goal": "lower",
    "t__low": "100",
    "t__high": "190",
    "p__name": "potassium",
    "p__low": "3",
    "p__high": "6",
    "p__tolerance": "0.3",
}


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        (
            {"vocabulary": "clinic"},
            "f.largest.1",
            "“largest change a visit” of dose must be given in the words of a clinic, or a caution",
        ),
        (
            {"f__largest": "5"},
            "f.largest.1",
            "must be at least its smallest step 10, got &#39;5&#39;",
        ),
        ({"f__largest": "-5"}, "f.largest.1", "must be positive, got -5"),
        ({"f__scale": "log"}, "f.scale.1", "must lie above 0 on a logarithmic scale, got 0"),
        ({"f__offset": "1"}, "f.offset.1", "needs a logarithmic scale, got 1 without"),
        ({"t__noise": "to 8"}, "t.noise", "must go from where to where, such as 3 to 8"),
        (
            {"t__noise": "8 to 3"},
            "t.noise",
            "“noise of a result, roughly” of pressure must have low",
        ),
        (
            {"t__noise": "3%"},
            "t.noise",
            "may be in percent only where changes are, got &#39;3%&#39;",
        ),
        ({"p__tolerance": "3%"}, "p.tolerance.1", "may be in percent only where changes are"),
        ({"p__never": "5.5"}, "p.never.1", "must go from where to where, such as 3.5 to 5.5"),
        ({"p__never": "7 to 8"}, "p.never.1", "must leave some of its range 3 to 6"),
        ({"panel": "some"}, "some", "“Which, or how many” must be given for some of the outcomes"),
        ({"panel": "some", "some": "3"}, "some", "must lie in 1 to 2, the outcomes, got 3"),
        ({"panel": "all", "some": "2"}, "some", "is for some of the outcomes, got &#39;2&#39;"),
        (
            {"aim": "clean", "rank": "1", "shape": "smooth"},
            "shape",
            "must be left as it is for this aim",
        ),
        ({"aim": "clean", "rank": "1", "questions": "earn"}, "questions", "must be left as it is"),
    ],
)
def test_what_is_wrong_is_said_in_the_words_of_the_form(running, browser, change, field, said):
    page = browser.post("/new", do="create", **{**FILLED, **change})
    assert page.status_code == 422
    assert re.search(f'<li id="{re.escape(field)}.m">.*{re.escape(said)}', page.text), said
    assert f'id="{field}" aria-invalid="true"' in page.text
    assert running.store.names() == []


@pytest.mark.parametrize(
    ("more", "steps", "caution"),
    [
        ({"f__largest": "10"}, {"dose": 10.0}, None),
        ({"f__largest": "any"}, {}, None),
        ({"caution": "90"}, {}, 0.9),
    ],
)
def test_a_clinic_starts_near_or_says_that_it_need_not(running, browser, more, steps, caution):
    fields = {**FILLED, "vocabulary": "clinic", **more}
    assert browser.post("/new", do="create", **fields).url.path == "/studies/bp"
    plan = Study.open("bp", running.store).plan
    assert (plan.largest_step, plan.caution) == (steps, caution)
    ticket = Study.open("bp", running.store).ask()
    if steps:
        assert ticket.action["dose"] <= 10


def test_a_study_set_up_by_form_asks_as_it_was_told(running, browser):
    told = {"panel": "all", "shape": "smooth", "questions": "earn", "t__noise": "3 to 8"}
    assert browser.post("/new", do="create", **{**FILLED, **told}).url.path == "/studies/bp"
    plan = Study.open("bp", running.store).plan
    assert plan.panel == ("pressure", "potassium")
    assert (plan.shape, plan.questions, plan.target.noise) == ("smooth", "earn", (3.0, 8.0))
    asked = browser.post("/studies/bp/ask").text
    assert "Then measure <em>pressure and potassium</em>" in asked


def test_a_study_set_up_by_form_learns_from_the_studies_that_it_names(running, browser):
    made = {**FILLED, "panel": "all"}
    browser.post("/new", do="create", **{**made, "name": "bp-1"})
    first = Study.open("bp-1", running.store)
    for dose in (0, 20, 40, 0, 20, 40):
        for name, value in (("pressure", 150 - dose / 2), ("potassium", 4.2 + dose / 200)):
            first.tell(None, value, measured=name, given={"dose": dose})
    page = browser.get("/new?like=bp-1").text
    assert "Write bp-1 here to learn from its results" in page
    fields = {**made, "name": "bp-2", "earlier": "bp-1"}
    preview = browser.post("/new", do="preview", **fields)
    assert "The first question would be" in preview.text
    assert 'name="earlier" value="bp-1"' in preview.text
    assert browser.post("/new", do="create", **fields).url.path == "/studies/bp-2"
    plan = Study.open("bp-2", running.store).plan
    assert plan.earlier
    assert not_in_form(plan) == ["earlier studies"]


def test_only_studies_of_the_storage_can_be_named_and_no_files(running, browser, tmp_path):
    browser.post("/new", do="create", **{**FILLED, "name": "bp-1"})
    export = tmp_path / "export.jsonl"
    study = Study.open("bp-1", running.store)
    study.tell(None, 140, measured="pressure", given={"dose": 0})
    study.export(export)
    for named, said in ((str(export), "a study&#39;s name must"), ("bp-9", "bp-9")):
        page = browser.post("/new", do="create", **{**FILLED, "name": "bp-2", "earlier": named})
        assert page.status_code == 422
        assert said in page.text.lower() or said in page.text
    assert running.store.names() == ["bp-1"]
    unlike = {**FILLED, "name": "bp-2", "earlier": "bp-1", "f__unit": "mg"}
    page = browser.post("/new", do="create", **unlike)
    assert "bp-1 must not teach this study" in page.text.lower()


BELIEFS = Path(__file__).parents[2] / "docs" / "explanation" / "beliefs.md"


def first(pattern):
    """The numbers of a sentence or a row of the page that says what was measured."""
    return [int(each) for each in re.search(pattern, BELIEFS.read_text("utf-8")).groups()]


def test_what_the_form_says_of_results_is_what_was_measured(browser):
    page = text_of(browser.get("/new"))
    usual, straight = first(
        r"the default gives up (\d+) and \d+%; told that effects are straight, (\d+) and"
    )
    said = f"30 results reached {100 - straight}% of what was possible, not {100 - usual}%."
    assert said in page
    worth = [
        first(rf"\| {told} \| default \| -(\d+) \(")[0]
        for told in ("noise", "level", "noise and level")
    ]
    noise, level, both = worth
    assert (
        f"of 15 results, stating the noise reached {noise} points more of what was possible, "
        f"today’s levels {level}, and both {both}."
    ) in page
    nothing, expected = (
        first(rf"\| {told} \| (\d+)% \(")[0]
        for told in ("noise and level", "and intervals that hold 19 of 20 patients")
    )
    assert nothing == 100
    assert f"8 results reached {100 - expected}% of what was possible with it" in page
    alone, taught = (
        first(rf"\| {told} \| (\d+)% \(")[0] for told in ("noise", "noise, 5 earlier, cv 0.5")
    )
    assert alone == 100
    assert f"8 results reached {100 - taught}% of what was possible, and nothing" in page
