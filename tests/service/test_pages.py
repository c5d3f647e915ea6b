"""The pages without a browser: every state of the card, every form, and nothing inline."""

import re
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from houses import PLAUSIBLE, text_of

from clinic import PROTECTED, TARGET, clinic, play
from sidestep.errors import StorageFull
from sidestep.service.pages import shell, svg
from sidestep.service.pages.views import capital
from sidestep.studies.cards.words import named
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.study import Study

INLINE = re.compile(r"<style|<script(?! src=)| style=|\son\w+=|javascript:|http://(?!127|www\.w3)")


def measured(running, ticket, name="bp"):
    return running.store.events(name, ticket - 1, 1)[0].body["measure"][0]


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """However busy the machine is, a page waits for its arithmetic."""
    monkeypatch.setattr("sidestep.service.pages.study_view.PATIENCE", 60.0)


@pytest.fixture
def clinic_page(running, browser):
    """A study with five results and an open question, question 12."""
    study = clinic(running.store)
    play(study, 5)
    study.ask(actor="a colleague")
    return browser


def test_a_new_study_says_that_it_is_your_turn(running, browser):
    clinic(running.store)
    page = text_of(browser.get("/studies/bp"))
    assert "Ask the first question" in page
    assert "There are no results yet. A first recommendation needs about" in page
    asked = text_of(browser.post("/studies/bp/ask"))
    assert "Give this. Then measure" in asked
    assert "Nothing is known yet. The first questions look in every direction" in asked
    assert "Nothing to recommend yet" in asked


def test_the_page_has_the_order_of_the_card(running, browser):
    study = clinic(running.store)
    play(study, 12)
    study.ask(actor="a colleague")
    page = text_of(browser.get("/studies/bp?wait=1"))
    order = [
        "Next question",
        "Record result",
        "What this visit may move",
        "If you stopped today",
        "What was measured, and when",
        "How this recommendation came about",
        "The candidates",
        "The record",
        "What this page does not promise",
    ]
    places = [page.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.parametrize("policy", [None, "directed-thompson"])
def test_a_price_that_matters_is_noted_with_a_way_around_it(running, browser, policy):
    study = clinic(running.store, policy=policy)
    play(study, 5 if policy else 16)
    few = None
    if policy is None:  # the setting that is expected to do worst
        pressure = study.plan.target.name
        rows = [row for row in study.explain().rows if row.action != study.plan.baseline]
        few = [max(rows, key=lambda row: row.effects[pressure].estimate).candidate]
    ticket = study.ask(actor="a colleague", allowed=few)
    price = study.questions()[0].body["price"]
    assert price > study.plan.target.matters
    page = browser.get("/studies/bp")
    assert f"Price: {price:.1f} mmHg worse this visit" in text_of(page).replace(" </b>", " ")
    assert "Asking has a price" not in text_of(page)
    assert f"/studies/bp/questions/{ticket.id}/instead" in page.text
    assert "Go ahead" not in page.text
    main = re.findall(r'class="btn main"[^>]*>([^<]+)', page.text.partition("<main")[2])
    assert main == []  # beside the button that records a result
    share = "the doubt one result of each would remove"
    if policy is None:
        share = "what is open one result of each would settle"
        assert "likely to be within all limits." in text_of(page)
    assert f"How much of {share}:" in text_of(page)


def test_a_result_is_saved_and_said_to_be_from_the_record(running, clinic_page):
    page = clinic_page.post("/studies/bp/questions/12/answer", **PLAUSIBLE[measured(running, 12)])
    assert page.url.params["saved"] == "13"
    assert "Saved as entry 13" in text_of(page)
    assert "Next question" in text_of(page)
    assert running.store.events("bp")[-1].seq == 13
    assert "Saved as entry" not in text_of(clinic_page.get("/studies/bp?saved=99"))


def test_the_same_form_sent_twice_is_saved_once(running, clinic_page):
    fields = {**PLAUSIBLE[measured(running, 12)], "key": "k"}
    for _ in range(2):
        assert "Saved as entry 13" in text_of(
            clinic_page.post("/studies/bp/questions/12/answer", **fields)
        )
    assert running.store.head("bp").seq == 13


def test_a_surprising_value_must_be_confirmed_before_it_is_saved(running, clinic_page):
    name = next(iter(PLAUSIBLE[measured(running, 12)]))
    page = clinic_page.post("/studies/bp/questions/12/answer", **{name: "5000"})
    assert "is far from what was expected" in text_of(page)
    assert "Nothing has been saved" in text_of(page)
    assert running.store.head("bp").seq == 12
    without = clinic_page.post("/studies/bp/questions/12/answer", sure="1", **{name: "5000"})
    assert "Nothing has been saved" in text_of(without)
    sure = {"sure": "1", "reason": "measured twice", name: "5000"}
    assert "Saved as entry 13" in text_of(
        clinic_page.post("/studies/bp/questions/12/answer", **sure)
    )
    assert running.store.events("bp")[-1].reason == "measured twice"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("1,380", "may be 1.380 or 1380"),
        ("", "a result must be typed"),
        (">5", "above a limit"),
        ("x", "must be a number"),
        ("1e9", "half its range"),
    ],
)
def test_what_is_no_number_is_refused_with_what_was_typed(running, clinic_page, typed, said):
    name = next(iter(PLAUSIBLE[measured(running, 12)]))
    page = clinic_page.post(
        "/studies/bp/questions/12/answer", **{name: typed, "sure": "1", "reason": "x"}
    )
    assert page.status_code == 422
    assert "Nothing was saved" in text_of(page)
    assert said.lower() in text_of(page).lower()
    assert running.store.head("bp").seq == 12


def test_withdrawing_says_from_where_the_next_change_is_counted(clinic_page):
    page = text_of(clinic_page.get("/studies/bp/entries/12/withdraw"))
    assert "It counts as not given: the next change is counted from the visit before it." in page


def test_an_answer_that_is_there_already_is_shown_beside_the_new_one(running, clinic_page):
    name = next(iter(PLAUSIBLE[measured(running, 12)]))
    value = PLAUSIBLE[measured(running, 12)][name]
    clinic_page.post("/studies/bp/questions/12/answer", **{name: value})
    page = clinic_page.post(
        "/studies/bp/questions/12/answer", **{name: value + "1", "sure": "1", "reason": "x"}
    )
    assert page.status_code == 409
    assert "This question has an answer already" in text_of(page)
    assert f"You entered {value}1" in text_of(page)
    assert "Nothing was changed" in text_of(page)
    assert running.store.head("bp").seq == 13


def test_what_was_really_given_is_kept_beside_what_was_asked(running, clinic_page):
    given = {"given__0": "10", "given__1": "2.5", "given__2": "25"}
    page = clinic_page.post(
        "/studies/bp/questions/12/answer", **PLAUSIBLE[measured(running, 12)], **given
    )
    assert "Given: lisinopril 10, amlodipine 2.5, chlortalidone 25 mg/day." in text_of(page)
    assert running.store.events("bp")[-1].body["action"]["amlodipine"] == 2.5


def test_a_full_disk_is_said_and_tried_again(running, clinic_page, monkeypatch):
    fields = {**PLAUSIBLE[measured(running, 12)], "key": "k"}
    desk = running.app.state.desk
    write = desk.groups.write

    def full(*_):
        raise StorageFull("disk full: there is no room left; nothing was saved")

    monkeypatch.setattr(desk.study("bp").verbs, "_save", full)
    page = clinic_page.post("/studies/bp/questions/12/answer", **fields)
    assert page.status_code == 507
    assert "Not saved: the disk is full" in text_of(page)
    assert "we try again every 10 seconds while this page is open" in text_of(page)
    assert 'data-hx-trigger="every 10s, submit"' in page.text
    assert 'name="key" value="k"' in page.text
    monkeypatch.setattr(desk.study("bp").verbs, "_save", write)
    assert "Saved as entry 13" in text_of(
        clinic_page.post("/studies/bp/questions/12/answer", **fields)
    )


def test_open_questions_are_listed_with_their_age(running, clinic_page):
    clinic_page.post("/studies/bp/ask", new="1")
    page = text_of(clinic_page.get("/studies/bp"))
    assert "One more answer is awaited" in page
    assert "asked just now by a colleague" in page
    assert "Ask another meanwhile" in page
    chosen = text_of(clinic_page.get("/studies/bp?question=12"))
    assert "Question 12, asked just now by a colleague" in chosen


def test_a_correction_needs_a_reason_and_keeps_both_values(running, clinic_page):
    page = clinic_page.get("/studies/bp/entries/3/correct")
    assert "Both values stay on record" in text_of(page)
    name = running.store.events("bp")[2].body["outcome"]
    value = PLAUSIBLE[name][next(iter(PLAUSIBLE[name]))]
    refused = clinic_page.post("/studies/bp/entries/3/correct", value=value, reason="")
    assert refused.status_code == 422
    assert "Nothing was saved" in text_of(refused)
    saved = clinic_page.post("/studies/bp/entries/3/correct", value=value, reason="lab sheet 2211")
    assert "Corrected to" in text_of(saved)
    record = text_of(clinic_page.get("/studies/bp/record"))
    assert "“lab sheet 2211”" in record
    assert "Corrected by entry 13" in record


def test_questions_that_wait_longer_than_usual_say_so(running, browser, monkeypatch):
    def ago(days):
        then = datetime.now(UTC) - timedelta(days=days)
        monkeypatch.setattr(running.store, "_clock", lambda: then)

    ago(40)
    study = clinic(running.store)
    for _ in range(3):
        ago(30)
        ticket = study.ask(actor="Ada")
        ago(29)
        study.tell(ticket.id, 140.0, measured="systolic pressure")
    for days in (21, 7, 0):
        ago(days)
        study.ask(new=True, actor="Grace")
    page = text_of(browser.get("/studies/bp?question=10"))
    assert "asked 7 days ago by Grace. Results usually come in one day." in page
    assert "3 questions open" in page
    assert "asked 21 days ago by Grace. A late answer is welcome; or withdraw it." in page


@pytest.mark.parametrize(("high", "step"), [(0.03, 0.02), (1.2, 0.8), (16, 10), (150, 100)])
def test_a_picture_is_marked_at_a_round_number_that_it_shows(high, step):
    assert svg._round_steps(svg.Ends(-high, high)) == pytest.approx((-step, step))


def test_a_question_is_withdrawn_with_a_reason(running, clinic_page):
    assert "Withdraw this question" in text_of(clinic_page.get("/studies/bp/entries/12/withdraw"))
    page = clinic_page.post("/studies/bp/entries/12/withdraw", reason="missed visit")
    assert "withdrawn" in text_of(page)
    assert running.store.events("bp")[-1].reason == "missed visit"
    taken = clinic_page.post("/studies/bp/entries/3/withdraw", reason="haemolysed")
    assert "is taken back" in text_of(taken)


def test_a_question_that_was_answered_meanwhile_is_not_withdrawn(running, clinic_page):
    assert 'name="question"' in clinic_page.get("/studies/bp/entries/12/withdraw").text
    Study.open("bp", running.store).tell(12, 140.0, measured="systolic pressure", actor="Grace")
    for path, typed in (
        ("entries/12/withdraw", {"reason": "missed visit", "question": "1"}),
        ("questions/12/instead", {"price_cap": "1"}),
    ):
        page = clinic_page.post(f"/studies/bp/{path}", **typed)
        assert page.status_code == 409
        assert "answered by Grace meanwhile" in text_of(page)
    assert running.store.events("bp")[-1].kind == "answered"


def test_one_that_costs_less_is_asked_with_the_same_restrictions(running, clinic_page):
    study = Study.open("bp", running.store)
    ticket = study.ask(new=True, measure_only="sodium", allowed={"lisinopril": (0, 10)})
    clinic_page.post(f"/studies/bp/questions/{ticket.id}/instead", price_cap="1", key="k")
    again = running.store.events("bp")[-1]
    assert again.body["request"] == {
        "measure_only": ["sodium"],
        "price_cap": 1.0,
        "ranges": {"lisinopril": [0.0, 10.0]},
    }
    assert again.body["measure"] == ["sodium"]


def test_a_result_without_a_question_shows_its_correction(running, clinic_page):
    study = Study.open("bp", running.store)
    entry = study.tell(None, 139.0, measured="sodium", given=study.plan.baseline).entries[0]
    study.correct(entry, 137.5, reason="misread")
    assert "Corrected by entry 14" in text_of(clinic_page.get("/studies/bp"))
    assert 'value="137.5"' in clinic_page.get(f"/studies/bp/entries/{entry}/correct").text


def test_a_surprising_value_must_be_confirmed_in_every_form(running, clinic_page):
    given = {"given__0": "20", "given__1": "0", "given__2": "0"}
    one = {"do": "one", "measured": "sodium", "value": "1395", **given}
    table = "lisinopril\tamlodipine\tchlortalidone\tsodium\n10\t0\t0\t1380\n"
    outcome, value = measured(running, 2), running.store.events("bp", 2, 1)[0].body["value"]
    again = {"measured": outcome, "value": f"{100 * value:.2f}", "reason": "misread"}
    for path, typed in (
        ("results", one),
        ("results", {"do": "many", "table": table}),
        ("entries/3/correct", again),
    ):
        before = running.store.head("bp").seq
        page = clinic_page.post(f"/studies/bp/{path}", **typed)
        assert "Nothing has been saved" in text_of(page)
        assert "lost decimal point" in text_of(page)
        assert 'name="sure"' in page.text
        assert running.store.head("bp").seq == before
        clinic_page.post(f"/studies/bp/{path}", sure="1", **typed)
        assert running.store.head("bp").seq == before + 1


def test_results_that_nobody_asked_for_are_recorded_one_by_one_or_all_at_once(running, clinic_page):
    given = {"given__0": "20", "given__1": "0", "given__2": "0"}
    one = {"do": "one", "measured": "sodium", "value": "139.5", **given}
    page = clinic_page.post("/studies/bp/results", **one)
    assert "A result that nobody asked for" in text_of(page)
    table = (
        "lisinopril\tamlodipine\tchlortalidone\tsodium\tpotassium\n10\t0\t0\t\t4.1\n0\t0\t0\t138\t"
    )
    page = clinic_page.post("/studies/bp/results", do="many", table=table)
    assert "2 results from before" in text_of(page)
    wrong = clinic_page.post("/studies/bp/results", do="many", table=table.replace("10", "41"))
    assert "Nothing was saved" in text_of(wrong)
    assert "row 0" in text_of(wrong).lower()
    assert running.store.head("bp").seq == 14


@pytest.mark.full
@pytest.mark.parametrize("path", ["entries/1/correct", "entries/99/withdraw", "entries/3/forget"])
def test_the_page_to_change_a_missing_entry_is_not_found(clinic_page, path):
    assert clinic_page.get(f"/studies/bp/{path}").status_code == 404


def test_a_study_is_closed_with_its_recommendation_or_against_it(running, clinic_page):
    assert "Go on asking" in text_of(clinic_page.get("/studies/bp/close"))
    wrong = clinic_page.post(
        "/studies/bp/close", how="overrule", given__0="20", given__1="0", given__2="0"
    )
    assert "Nothing was saved" in text_of(wrong)
    page = clinic_page.post("/studies/bp/close", how="accept", reason="enough")
    assert "This study asks nothing more" in text_of(page)
    kinds = [event.kind for event in running.store.events("bp")][-2:]
    assert kinds == ["accepted", "closed"]


def test_a_closed_study_takes_no_other_decision(running, browser):
    study = clinic(running.store)
    play(study, 12)
    study.ask(actor="a colleague")
    assert "/studies/bp/close" in browser.get("/studies/bp?wait=1").text
    first = {"given__0": "30", "given__1": "7.5", "given__2": "0", "reason": "well tolerated"}
    for _ in range(2):
        page = browser.post("/studies/bp/close", how="overrule", **first)
        assert page.url.params["saved"] == "28"
    refused = browser.post("/studies/bp/close", how="overrule", **first | {"given__1": "5"})
    assert refused.status_code == 409
    assert "Nothing was saved. 'bp' was closed already, with lisinopril 30" in text_of(refused)
    assert "this decision was not recorded" in text_of(refused)
    assert running.store.head("bp").seq == 28
    for page in (refused, browser.get("/studies/bp/close")):
        assert "This study is closed already" in text_of(page)
        assert "<form" not in page.text.partition("<main")[2]
    assert "/studies/bp/close" not in browser.get("/studies/bp?wait=1").text


@pytest.mark.parametrize("wait", ["?wait=1", ""])
def test_a_closed_study_shows_its_decision_and_orders_nothing(running, browser, wait):
    study = clinic(running.store)
    play(study, 12)
    study.ask(actor="a colleague")
    form = text_of(browser.get("/studies/bp/close"))
    assert re.search(r"Question 26 \([a-z ]+\) is still open. A late answer is accepted", form)
    named = {"lisinopril": 30, "amlodipine": 7.5, "chlortalidone": 0}
    study.close(overrule=named, reason="well tolerated")
    decided = "lisinopril 30, amlodipine 7.5, chlortalidone 0 mg/day"
    page = text_of(browser.get(f"/studies/bp{wait}"))
    place = page.index(f"Decided: {decided} (recommendation overruled)")
    assert place < page.index("“well tolerated”") < page.index("A late answer is still accepted")
    for words in ("Next question", "Give this", "If you stopped today", "Is it settled", "Price:"):
        assert words not in page
    assert "Being worked out" in page or "What the results say" in page
    field = next(iter(PLAUSIBLE[measured(running, 26)].items()))
    late = browser.post("/studies/bp/questions/26/answer", **dict([field]))
    assert "Saved as entry 29" in text_of(late)
    assert f"Decided: {decided} (recommendation overruled)" in text_of(late)
    listed = text_of(browser.get("/"))
    assert f"closed Decided: {decided}" in listed
    assert listed.count("13 results") == 1


def test_candidates_are_sorted_here_and_saved_as_csv(clinic_page):
    page = clinic_page.get("/studies/bp/candidates?sort=potassium&order=down")
    assert 'aria-sort="descending"' in page.text
    first = clinic_page.get("/studies/bp/candidates?sort=no&order=up").text
    assert re.search(r'<td class="r no" data-label="number">0<', first)
    assert clinic_page.get("/studies/bp/candidates?sort=iron").status_code == 422
    table = clinic_page.get("/studies/bp/candidates.csv")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    lines = table.text.splitlines()
    assert lines[0].startswith(
        "candidate,lisinopril,amlodipine,chlortalidone,systolic pressure est"
    )
    assert len(lines) == 101


@pytest.mark.parametrize("path", ["/studies/bp?wait=1", "/studies/bp/candidates"])
def test_no_candidate_is_called_recommended_before_there_is_enough_data(running, browser, path):
    study = clinic(running.store, aim="clean", rank=2)
    play(study, 5)
    noted = re.compile(r'<th scope="row" class="setting">([^<]+)<small>([a-z, ]+)</small>')
    assert noted.findall(browser.get(path).text) == []
    assert '<th scope="row" class="setting">' in browser.get(path).text
    play(study, 7, seed=1)
    best = capital(named(study.plan, study.best().action))
    assert noted.findall(browser.get(path).text) == [(best, "recommended")]


def test_a_spreadsheet_runs_nothing(running, browser):
    clinic(
        running.store,
        factors=[Factor("=1+1", levels=["@a", "b"])],
        protected=[],
        rank=None,
        aim="within",
    )
    browser.post("/studies/bp/ask")
    browser.post("/studies/bp/questions/2/answer", value__0="140")
    text = browser.get("/studies/bp/candidates.csv").text
    assert "'=1+1" in text
    assert "'@a" in text


def test_the_record_is_verified_and_exported(clinic_page):
    page = text_of(clinic_page.post("/studies/bp/verify"))
    assert "The record is whole" in page
    assert "12 entries" in page
    wrong = text_of(clinic_page.post("/studies/bp/verify", known="f" * 64))
    assert "The record is not as it was written" in wrong
    export = clinic_page.get("/studies/bp/export")
    named = export.headers["content-disposition"]
    assert named == "attachment; filename=\"bp.jsonl\"; filename*=UTF-8''bp.jsonl"
    assert len(export.text.splitlines()) == 13


def test_what_colleagues_write_is_news_and_what_oneself_writes_is_not(running, clinic_page):
    assert clinic_page.get("/studies/bp/news?after=12").status_code == 204
    running.app.state.desk.study("bp").verbs.tell(
        12, 140, measured="systolic pressure", actor="Lab"
    )
    news = text_of(clinic_page.get("/studies/bp/news?after=12"))
    assert "Visit 6 answered. Systolic pressure 140 mmHg. Lab" in news


def test_the_list_answers_whose_turn_it_is(running, browser):
    assert "There is no study here yet" in text_of(browser.get("/"))
    clinic(running.store, "a")
    clinic(running.store, "b", title="Second one").ask(actor="Ada")
    clinic(running.store, "c").close()
    page = text_of(browser.get("/"))
    assert "ready to ask" in page
    assert "awaits an answer" in page
    assert "asked just now by Ada" in page
    assert "closed" in page


def test_a_study_is_set_up_by_form_with_its_first_question_in_view(running, browser):
    form = {
        match[1]: match[2]
        for match in re.finditer(
            r'<input name="([^"]+)" value="([^"]*)"', browser.get("/new?example=1").text
        )
    }
    assert form["name"] == "bp-pilot-08"
    fields = example_fields()
    preview = browser.post("/new", do="preview", **fields)
    assert "The first question would be" in text_of(preview)
    assert "Nothing has been saved yet" in text_of(preview)
    assert running.store.names() == []
    made = browser.post("/new", do="create", **fields)
    assert made.url.path == "/studies/tea"
    first = browser.post("/studies/tea/ask")
    shown = re.search(r"Then measure <em>([^<]+)", preview.text)[1]
    assert f"Then measure <em>{shown}" in first.text
    again = browser.post("/new", do="create", **fields)
    assert "there is a study 'tea' already" in text_of(again).lower()


def example_fields():
    return {
        "name": "tea",
        "vocabulary": "lab",
        "aim": "clean",
        "rank": "1",
        "f__name": ["heat", "time", ""],
        "f__unit": ["C", "min", ""],
        "f__low": ["60", "1", ""],
        "f__high": ["100", "5", ""],
        "f__step": ["10", "1", ""],
        "f__levels": ["", "", ""],
        "f__baseline": ["80", "3", ""],
        "t__name": "taste",
        "t__goal": "raise",
        "t__low": "0",
        "t__high": "10",
        "p__name": ["bitterness"],
        "p__unit": [""],
        "p__low": ["0"],
        "p__high": ["10"],
        "p__tolerance": ["1"],
        "p__harm": ["both"],
        "p__baseline": [""],
    }


@pytest.mark.parametrize(
    ("harm", "kept"), [("both", 1.0), ("rise", (None, 1.0)), ("fall", (-1.0, None))]
)
def test_a_tolerance_may_have_one_side_where_only_a_rise_or_a_fall_harms(
    running, browser, harm, kept
):
    fields = {**example_fields(), "aim": "within", "rank": "", "p__harm": [harm]}
    shown = browser.post("/new", do="preview", **fields).text
    assert re.findall(r'<option value="(\w+)" selected>', shown.partition("p.harm")[2])[0] == harm
    assert browser.post("/new", do="create", **fields).url.path == "/studies/tea"
    assert Study.open("tea", running.store).plan.protected[0].tolerance == kept


def test_a_first_question_may_be_kept_near_the_baseline(running, browser):
    browser.post("/new", do="create", **example_fields())
    assert "Stay near the baseline" in text_of(browser.get("/studies/tea"))
    browser.post("/studies/tea/ask", step__0="10", step__1="1")
    (question,) = Study.open("tea", running.store).questions()
    assert question.body["request"]["largest_step"] == {"heat": 10.0, "time": 1.0}
    assert abs(question.body["action"]["heat"] - 80) <= 10


@pytest.mark.parametrize(
    ("typed", "said"),
    [("1,250", "may be 1.250 or 1250"), ("-1", "must be positive"), ("x", "must be a number")],
)
def test_a_largest_step_that_cannot_be_used_is_shown_again(running, browser, typed, said):
    clinic(running.store)
    page = browser.post("/studies/bp/ask", step__0="10", step__1=typed)
    assert page.status_code == 422
    assert re.search(f"Nothing was asked. The largest step of amlodipine .*{said}", text_of(page))
    assert "Stay near the baseline" in text_of(page)
    assert 'name="step.0" value="10"' in page.text
    wrong = r'name="step.1" value="([^"]+)"[^>]* aria-invalid="true" aria-describedby="ask-error"'
    assert re.findall(wrong, page.text) == [typed]
    assert page.text.count("aria-invalid") == 1
    assert "<details open>" in page.text
    assert running.store.head("bp").seq == 1


def test_a_context_that_cannot_be_used_is_shown_again(running, browser):
    age = Factor("age", 20, 90, baseline=50)
    model = "0 + lisinopril + amlodipine + chlortalidone + lisinopril:age"
    clinic(running.store, model=model, context=[age])
    page = browser.post("/studies/bp/ask", context__0="1,250")
    assert page.status_code == 422
    assert "may be 1.250 or 1250" in text_of(page)
    assert 'name="context.0" value="1,250"' in page.text


def test_the_largest_steps_of_a_question_are_offered_for_the_next(running, browser):
    study = clinic(running.store)
    browser.post("/studies/bp/ask", step__0="10", step__2="6.25")
    field = PLAUSIBLE[measured(running, 2)]
    saved = browser.post("/studies/bp/questions/2/answer", **field)
    for page in (saved, browser.get("/studies/bp")):
        assert "These are the largest steps of the question before." in text_of(page)
        found = re.findall(r'name="(step.\d)" value="([^"]*)"', page.text)
        assert found == [("step.0", "10"), ("step.1", ""), ("step.2", "6.25")]
    browser.post("/studies/bp/ask", **{name.replace(".", "__"): text for name, text in found})
    page = browser.get("/studies/bp")
    assert study.questions()[0].body["request"] == {"largest_step": steps_of(study, 2)}
    study.ask(new=True, actor="Ada", largest_step={"lisinopril": 10})
    page = browser.get("/studies/bp")
    assert "Ask another meanwhile, with the largest steps of the question before" in text_of(page)
    assert re.findall(r'"hidden" name="(step.\d)" value="([^"]*)"', page.text) == [("step.0", "10")]


def steps_of(study, number):
    return study.history(number - 1, 1)[0].body["request"]["largest_step"]


def test_at_the_baseline_the_page_says_that_nothing_changes(running, browser):
    study = clinic(running.store)
    study.tell(None, 139.0, measured="sodium", given=study.plan.baseline)
    browser.post("/studies/bp/ask", **{f"step__{place}": "0.01" for place in range(3)})
    page = text_of(browser.get("/studies/bp?wait=1"))
    said = "It is the baseline, from which every change is counted: systolic pressure and every"
    assert f"Nothing. {said}" in page
    assert "0.00 to 0.00" not in page


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"t__low": "ten"}, "“plausible from” of taste must be a number, got 'ten'"),
        ({"f__low": ["200", "1", ""]}, "“from” of heat must be less than “to”, got 200 and 100"),
        ({"f__high": ["", "5", ""]}, "“to” of heat must be a number, or levels must be given"),
        ({"f__step": ["-1", "1", ""]}, "“step” of heat must be positive, got -1"),
        ({"f__step": ["10", "", ""]}, "either every factor must have a step or levels, or none"),
        ({"f__baseline": ["50", "3", ""]}, "“now” of heat must lie in 60 to 100 C, got 50"),
        ({"f__levels": ["7", "", ""]}, "heat must have two levels or more"),
        (
            {"f__name": ["", "time", ""]},
            "“factor” in row 1 must be one line of 1 to 100 characters",
        ),
        ({"f__name": []}, "“factor” in row 1 must be one line"),
        ({"t__name": ""}, "“outcome” of the goal must be one line"),
        ({"t__matters": "-1"}, "“a difference that matters” of taste must be positive, got -1"),
        ({"t__baseline": "11"}, "“now, if known” of taste must lie in its range 0 to 10, got 11"),
        ({"t__unit": "C" * 101}, "“unit” of taste must be one line of at most 100 characters"),
        ({"seed": "1.5"}, "“Seed” must be a whole number, 0 or more, got '1.5'"),
        ({"rank": ""}, "“Directions of side effects” must be given for this aim"),
        (
            {"rank": "2"},
            "“Directions of side effects” must lie in 1 to 1, the protected outcomes, got 2",
        ),
        ({"aim": "within", "caution": "100"}, "“Caution” must be at least 0% and less than 100%"),
        ({"aim": "within", "p__tolerance": [""]}, "“tolerance” of bitterness must be given"),
        ({"p__name": ["taste"]}, "different names"),
        ({"name": "a/b"}, "a study's name must"),
        ({"name": ""}, "“Name” must be given, got nothing"),
        (
            {"p__tolerance": ["-1"], "p__harm": ["rise"]},
            "“tolerance” of bitterness must be positive",
        ),
        ({"p__tolerance": ["1 to 2"]}, "must go from a fall to a rise, such as -0.2 to 0.5"),
        ({"f__levels": ["", "6,250; 12,5", ""]}, "may be 6.250 or 6250"),
        ({"candidates": "heat\n60\n"}, "column for every factor"),
        ({"candidates": "heat,time\n60\n"}, "must have 2 cells"),
    ],
)
def test_a_form_with_mistakes_is_shown_again_with_the_reason(running, browser, change, said):
    page = browser.post("/new", do="create", **{**example_fields(), **change})
    assert page.status_code == 422
    assert said.lower() in text_of(page).lower()
    assert "Nothing was saved" in text_of(page)
    assert running.store.names() == []


def test_all_mistakes_of_a_form_are_reported_at_once_beside_their_fields(running, browser):
    wrong = {
        "name": "a/b",
        "f__low": ["sixty", "1", ""],
        "f__high": ["100", "five", ""],
        "f__baseline": ["80", "now", ""],
        "t__low": "",
        "p__tolerance": ["little"],
        "rank": "one",
        "seed": "-1",
        "candidates": "heat\n60\n",
    }
    page = browser.post("/new", do="preview", **{**example_fields(), **wrong})
    assert page.status_code == 422
    alert = re.search(r'role="alert">(.*?)</div>', page.text, re.DOTALL)[1]
    assert re.findall(r'href="#([^"]+)"', alert) == re.findall(r'<li id="([^"]+)\.m"', alert)
    blamed = [
        "name",
        "f.low.1",
        "f.high.2",
        "f.baseline.2",
        "t.low",
        "p.tolerance.1",
        "seed",
        "rank",
    ]
    assert re.findall(r'href="#([^"]+)"', alert) == blamed
    for field in blamed:
        tag = re.search(rf'<input [^>]*id="{re.escape(field)}"[^>]*>', page.text)[0]
        assert f'aria-invalid="true" aria-describedby="{field}.m"' in tag
    assert page.text.count("aria-invalid") == len(blamed)
    for typed in ("a/b", "sixty", "five", "little", "one", "-1"):
        assert f'value="{typed}"' in page.text
    assert "novalidate" in page.text  # a browser would stop at the first
    assert running.store.names() == []


def test_a_study_set_up_by_form_may_be_cautious(running, browser):
    fields = {**example_fields(), "aim": "within", "rank": "", "caution": "95"}
    assert "the first questions stay near the baseline" in text_of(
        browser.post("/new", do="preview", **fields)
    )
    assert browser.post("/new", do="create", **fields).url.path == "/studies/tea"
    assert Study.open("tea", running.store).plan.caution == 0.95


def test_an_example_is_offered_only_for_an_empty_form_and_names_nobody(browser):
    offer = "Fill in an example (clears this form)"
    assert offer in text_of(browser.get("/new"))
    example = browser.get("/new?example=1")
    assert "patient" not in re.search(r'name="title" value="([^"]*)"', example.text).group(1)
    for page in (example, browser.post("/new", do="more-factors", name="tea")):
        assert offer not in text_of(page)


def test_a_young_study_counts_in_words_that_agree(running, browser):
    clinic(running.store)
    page = text_of(browser.get("/studies/bp?wait=1"))
    assert "0 results, set up today" in page
    assert "Chain of one entry intact" in page
    assert "The whole record: one entry, verify" in page
    assert "Verify the one entry" in text_of(browser.get("/studies/bp/record"))
    browser.post("/studies/bp/ask")
    browser.post("/studies/bp/questions/2/answer", **PLAUSIBLE[measured(running, 2)])
    page = text_of(browser.post("/studies/bp/ask"))
    assert "1 result, set up today" in page


def test_a_visit_for_learning_is_marked_without_a_word_twice(running, browser):
    clinic(running.store, policy="explore-then-commit", aim="clean", rank=2).ask(
        actor="a colleague"
    )
    assert "Next question learning visit 1" in text_of(browser.get("/studies/bp"))


def test_more_rows_come_without_script(browser):
    fields = example_fields()
    before = browser.post("/new", do="preview", **fields).text.count('name="f.name"')
    assert (
        browser.post("/new", do="more-factors", **fields).text.count('name="f.name"') == before + 2
    )


def test_candidates_may_be_pasted_from_a_sheet(running, browser):
    fields = {**example_fields(), "candidates": "heat\ttime\n60\t1\n70\t2\n100\t5\n"}
    assert browser.post("/new", do="create", **fields).url.path == "/studies/tea"
    assert "3 recipes allowed" in text_of(browser.get("/studies/tea"))


def test_a_panel_and_words_and_a_box_have_their_pages(running, browser):
    clinic(running.store, "panel").ask(panel=2, actor="Ada")
    assert (
        browser.get("/studies/panel").text.count('name="value.') == 4
    )  # with what else was measured
    words = [Factor("salt", levels=["none", "some"]), Factor("heat", levels=[1, 2, 3])]
    clinic(running.store, "words", factors=words).ask(actor="Ada")
    assert "salt" in browser.get("/studies/words").text
    box = [Factor("x", 0, 1), Factor("y", 0, 1)]
    study = clinic(running.store, "box", factors=box)
    study.tell(study.ask(actor="Ada").id, 140.0, measured="systolic pressure")
    assert browser.get("/studies/box?wait=1").status_code == 200


def test_whatever_people_write_is_shown_as_they_wrote_it(running, browser):
    nasty = '<img src=x onerror="alert(1)">&'
    study = clinic(
        running.store,
        factors=[Factor(nasty, 0, 1, unit=nasty, step=1), Factor("b", levels=[nasty, "y"])],
        target=Outcome(nasty + "t", nasty, range=(0, 1)),
        protected=[],
        aim="within",
        rank=None,
        title=nasty,
    )
    study.tell(study.ask(actor=nasty).id, 0.5, actor=nasty, reason=nasty)
    study.ask(actor=nasty)
    for path in (
        "/",
        "/studies/bp?wait=1",
        "/studies/bp/record",
        "/studies/bp/candidates",
        "/studies/bp/erase",
        "/studies/bp/entries/3/correct",
        "/studies/bp/close",
        "/studies/bp/people",
    ):
        page = browser.get(path)
        assert page.status_code == 200, path
        assert "<img" not in page.text, path
        assert not INLINE.search(re.sub("onerror=&(#34|quot);", "", page.text)), path


def test_no_page_has_anything_inline_or_from_elsewhere(running, clinic_page):
    for path in (
        "/",
        "/new",
        "/login",
        "/guide",
        "/people",
        "/studies/bp?wait=1",
        "/studies/bp/people",
        "/nothing",
    ):
        assert not INLINE.search(clinic_page.get(path).text), path


def test_files_of_a_page_never_change_under_their_address(browser, web):
    page = browser.get("/login").text
    for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', page):
        response = web.get(address)
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
    assert web.get("/static/shell.py").status_code == 404


def test_a_reader_sees_no_forms(own_house):
    with own_house.as_person("read") as reader:
        page = reader.get("/studies/bp").text
        assert "Record result" not in page
        assert "You may look at this study" in page
        assert "/people" not in page


def test_a_page_of_a_long_study_comes_before_its_arithmetic(running, browser, monkeypatch):
    monkeypatch.setattr("sidestep.service.pages.study_view.PATIENCE", 0.0)
    study = clinic(running.store, protected=PROTECTED, target=TARGET)
    play(study, 3)
    page = browser.get("/studies/bp")
    assert "Being worked out" in page.text
    assert 'data-hx-get="/studies/bp/parts/best"' in page.text
    part = browser.get("/studies/bp/parts/best")
    assert "If you stopped today" in part.text
    assert browser.get("/studies/bp/parts/nothing").status_code == 404
    assert "Being worked out" not in browser.get("/studies/bp?wait=1").text


def test_the_demo_has_a_laboratory(tmp_path):
    from houses import Browser  # noqa: PLC0415

    from running import Running  # noqa: PLC0415

    with (
        Running(tmp_path / "s.db", lambda study, question: 140.0) as running,
        Browser(running) as browser,
    ):
        clinic(running.store, "demo")
        browser.post("/studies/demo/ask")
        assert "simulated data" in browser.get("/studies/demo").text
        page = browser.post("/studies/demo/questions/2/simulate")
        assert "simulated laboratory" in text_of(page)


def test_every_template_compiles_before_the_first_page_is_asked_for():
    folder = Path(shell.__file__).parent / "templates"
    assert shell.read_templates() == len(list(folder.rglob("*.html")))


def test_every_part_of_a_page_is_for_the_question_that_it_shows(running, browser, monkeypatch):
    age = Factor("age", 20, 80, step=20, baseline=20)
    model = "0 + lisinopril + amlodipine + lisinopril:age"
    study = clinic(running.store, model=model, context=[age])
    for number in range(8):
        ticket = study.ask(context={"age": 20 if number % 2 else 80})
        study.tell(ticket.id, {"systolic pressure": 150}.get(str(ticket.measure), 4.2))
    asked = {old: study.ask(context={"age": old}, new=True).id for old in (20, 80)}
    monkeypatch.setattr("sidestep.service.pages.study_view.PATIENCE", 0.0)
    cold = browser.get(f"/studies/bp?question={asked[80]}").text
    later = re.findall(r'data-hx-get="(/studies/bp/parts/[^"]+)"', cold)
    assert later, "the recommendation was there at once"
    monkeypatch.setattr("sidestep.service.pages.study.PART_PATIENCE", 60.0)
    part = browser.get(later[0].replace("&amp;", "&"))
    assert "For age 80." in text_of(part)
    links = re.findall(r'href="(/studies/bp[^"]*wait=1[^"]*)#', cold)
    assert links
    for link in links:
        waited = browser.get(link.replace("&amp;", "&"))
        assert "For age 80." in text_of(waited).partition("If you stopped today")[2]
        assert f"/studies/bp/candidates?question={asked[80]}" in waited.text
    every = text_of(browser.get(f"/studies/bp/candidates?question={asked[80]}&sort=no&order=up"))
    assert "For age 80." in every
    assert "For age 20." in text_of(browser.get(f"/studies/bp?question={asked[20]}&wait=1"))


def test_the_rest_of_a_panel_is_withdrawn_as_its_page_says(running, browser):
    study = clinic(running.store)
    ticket = study.ask(panel=["potassium", "sodium"])
    study.tell(ticket.id, {"potassium": 4.1})
    page = text_of(browser.get(f"/studies/bp/entries/{ticket.id}/withdraw"))
    assert "Withdraw what is still awaited" in page
    assert "It waits for sodium, and will not get it. The result of potassium stays" in page
    assert "Take it back" not in page
    browser.post(
        f"/studies/bp/entries/{ticket.id}/withdraw", reason="haemolysed", question="1", key="k"
    )
    assert running.store.events("bp")[-1].kind == "withdrawn"
    assert study.n_results == 1
    study.tell(study.ask(panel=["potassium", "sodium"]).id, {"potassium": 4.1, "sodium": 139})
    several = browser.get("/studies/bp/entries/5/withdraw")
    assert several.status_code == 422
    assert "which one must be said (potassium, sodium)" in text_of(several)


def test_one_result_of_an_import_is_corrected_on_its_page(running, browser):
    study = clinic(running.store)
    table = {"candidate": [0, 1], "outcome": ["sodium", "potassium"], "value": [138, 4.1]}
    study.import_results(table)
    page = browser.get("/studies/bp/entries/2/correct?row=1")
    assert "Correct potassium" in text_of(page)
    assert "Potassium 4.1 mmol/L. " in text_of(page)
    assert 'action="/studies/bp/entries/2/correct?row=1"' in page.text
    saved = browser.post("/studies/bp/entries/2/correct?row=1", value="4.3", reason="misread")
    assert "Corrected to 4.3 mmol/L" in text_of(saved)
    body = running.store.events("bp")[-1].body
    assert (body["row"], body["was"], body["is"]) == (1, 4.1, 4.3)
    assert browser.get("/studies/bp/entries/2/correct").status_code == 422  # which of the two?


def test_a_flaw_in_a_record_is_named_where_its_page_sends_the_reader(running, browser):
    study = clinic(running.store)
    play(study, 1)
    with sqlite3.connect(running.settings.storage) as file:
        for (trigger,) in file.execute(
            "SELECT name FROM sqlite_master WHERE type='trigger'"
        ).fetchall():
            file.execute(f"DROP TRIGGER {trigger}")
        file.execute("UPDATE events SET at = '1999-01-01T00:00:00+00:00' WHERE seq = 3")
    file.close()
    page = browser.get("/studies/bp")
    assert "One flaw was found" in text_of(page) or "flaws were found" in text_of(page)
    link = re.search(r'href="(/studies/bp/record#flaws)"', page.text)
    record = browser.get(link[1])
    assert "Event 3 was edited" in text_of(record)
    assert 'id="flaws"' in record.text


def test_a_yes_or_no_is_chosen_from_a_list(running, browser):
    form = {
        "name": "shop",
        "f__name": "banner",
        "f__levels": "no; yes",
        "f__baseline": "no",
        "t__name": "revenue",
        "t__goal": "raise",
        "t__low": "0",
        "t__high": "100",
    }
    made = browser.post("/new", do="create", **form)
    assert made.status_code == 200, text_of(made)
    study = Study.open("shop", running.store)
    assert study.plan.factors[0].is_yes_no
    browser.post("/studies/shop/ask")
    asked = browser.get("/studies/shop")
    assert re.search(r'<select name="given.0">.*<option value="yes"', asked.text)
    assert 'name="step.0"' not in asked.text  # a yes or no has no largest step
    browser.post("/studies/shop/questions/2/answer", value__0="50", given__0="yes")
    assert study.history()[-1].body["action"] == {"banner": True}


def test_past_results_between_the_steps_are_recorded_on_the_page(running, browser):
    study = clinic(running.store)
    table = "lisinopril,amlodipine,chlortalidone,sodium\n25,2.5,18,138\n"
    page = browser.post("/studies/bp/results", do="many", table=table)
    assert "Saved as entry 2" in text_of(page)
    assert study.history()[-1].body["rows"][0]["action"]["chlortalidone"] == 18
    one = {
        "given__0": "25",
        "given__1": "3",
        "given__2": "25",
        "measured": "sodium",
        "value": "139",
    }
    assert "Saved as entry 3" in text_of(browser.post("/studies/bp/results", do="one", **one))


def test_an_estimate_with_its_error_is_typed_saved_and_corrected_on_the_page(running, clinic_page):
    name = measured(running, 12)
    place = [outcome.name for outcome in (TARGET, *PROTECTED)].index(name)
    middle = PLAUSIBLE[name][f"value__{place}"]
    typed = {f"value__{place}": f"{middle} ± 0.5", "sure": "1", "reason": "a mean"}
    page = text_of(clinic_page.post("/studies/bp/questions/12/answer", **typed))
    assert f"{middle} ± 0.5" in page
    change = clinic_page.get("/studies/bp/entries/13/correct").text
    assert f'value="{middle} ± 0.5"' in change
    clinic_page.post(
        "/studies/bp/entries/13/correct",
        **{"value": f"{middle} x3", "measured": name, "reason": "three of them", "sure": "1"},
    )
    kept = Study.open("bp", running.store).history(13)[0].body
    assert (kept["is"], kept["repeats"]) == (float(middle), 3)


def offers(page):
    """Where a page offers to correct or withdraw an entry."""
    return re.findall(r'href="/studies/bp/entries/([^"]+)"', page.text)


def test_correct_is_offered_where_the_latest_value_of_a_result_stands(running, browser):
    study = clinic(running.store)
    play(study, 1)
    assert offers(browser.get("/studies/bp/record")) == ["3/correct"]
    study.correct(3, 120, reason="misread", measured=study.history()[-1].outcome)
    record = browser.get("/studies/bp/record")
    assert offers(record) == ["3/correct"]
    assert record.text.index("3/correct") < record.text.index('id="entry-3"')  # beside entry 4
    study.withdraw(3, reason="haemolysed")
    assert offers(browser.get("/studies/bp/record")) == []
    study.import_results({"candidate": [0, 1], "outcome": ["sodium"] * 2, "value": [138, 139]})
    study.correct(6, 137, row=1, reason="misread")
    assert offers(browser.get("/studies/bp/record")) == ["6/correct?row=1"]
    study.tell(None, 139, measured="sodium", given=study.plan.baseline)
    assert offers(browser.get("/studies/bp/record")) == ["8/correct", "6/correct?row=1"]


def test_a_receipt_says_nothing_of_effects_at_the_baseline(running, browser, monkeypatch):
    study = clinic(running.store)
    play(study, 6)
    opened = running.app.state.desk.study("bp")
    best = opened.best()
    number = study.plan.candidates.find(study.plan.baseline)
    stays = replace(best, action=study.plan.baseline, candidate=number, needed=1)
    monkeypatch.setattr(opened, "bests_around", lambda entry: (stays, stays))
    seq = study.history()[-1].seq
    page = text_of(browser.get(f"/studies/bp?saved={seq}"))
    assert "What it changed" in page
    changed = page.partition("What it changed")[2].partition("If you stopped")[0]
    assert "is now" not in changed
    moved = replace(stays, action=study.plan.candidates.setting(0), candidate=0)
    monkeypatch.setattr(opened, "bests_around", lambda entry: (moved, moved))
    page = text_of(browser.get(f"/studies/bp?saved={seq}"))
    assert "is now" in page.partition("What it changed")[2].partition("If you stopped")[0]


def test_a_file_is_named_by_its_study_in_any_script(running, browser):
    clinic(running.store, "血圧 7")
    for path, name in (("export", "血圧 7.jsonl"), ("candidates.csv", "血圧 7-candidates.csv")):
        header = browser.get(f"/studies/{quote('血圧 7')}/{path}").headers["content-disposition"]
        assert header.endswith(f"filename*=UTF-8''{quote(name)}")
        assert header.isascii()
