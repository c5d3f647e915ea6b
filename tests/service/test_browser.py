"""Whole stories in a real browser: desktop and phone, light and dark, with script and without.

Screenshots are kept in SIDESTEP_SHOTS, where that is set. A violation of the content policy, an error in
the console or a finding of axe-core fails the story.
"""

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from houses import furnish
from playwright.sync_api import expect, sync_playwright

from clinic import TARGET, WORLD, clinic, play
from running import PASSWORD, Running
from sidestep.service.desk import OpenStudy
from sidestep.service.pages.shell import PACE

BROWSERS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
SHOTS = os.environ.get("SIDESTEP_SHOTS")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
LOOKS = {
    "desktop": {"viewport": DESKTOP, "color_scheme": "light"},
    "phone-dark": {"viewport": PHONE, "color_scheme": "dark"},
}
MORE_LOOKS = {
    "desktop-dark": {"viewport": DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light"},
}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def chromium():
    found = next((path for path in BROWSERS if Path(path).exists()), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    with sync_playwright() as play_it:
        browser = play_it.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A clinic with twelve results and an open question; nobody has to log in."""
    with Running(tmp_path_factory.mktemp("browser") / "served.db") as running:
        study = clinic(running.store, title="Blood pressure pilot, patient 07")
        play(study, 12)
        study.ask(actor="Physician")
        yield running


FINGER = 44  # pixels
TOO_SMALL = """least => [...document.querySelectorAll("a, button, input, select, summary, textarea")]
    .filter(each => each.offsetParent && getComputedStyle(each).position !== "absolute"
        && !each.closest("thead, .skip, .vh"))
    .map(each => {
        const whole = each.matches("input, select, textarea") && each.closest("label") || each;
        return [each.innerText || each.name, whole.getBoundingClientRect().height]; })
    .filter(([_, high]) => high && high < least)"""


class Story:
    """A browser page that fails on every error and accessibility finding."""

    def __init__(self, chromium, url, **look):
        self.context = chromium.new_context(base_url=url, **look)
        self.page = self.context.new_page()
        self.complaints = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, said):
        expected = "Failed to load resource" in said.text  # a refusal that the story is about
        if said.type in ("error", "warning") and not expected:
            self.complaints.append(said.text)

    def open(self, path):
        self.page.goto(path)
        return self.page

    def looked_at(self, name):
        """Nothing sticks out, axe-core has no finding, and there is a picture of it."""
        wide = self.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= self.page.viewport_size["width"], f"{name} is {wide} pixels wide"
        found = Axe().run(self.page, options=RULES)
        assert found.violations_count == 0, found.generate_report()
        if self.page.viewport_size["width"] < DESKTOP["width"]:
            assert self.page.evaluate(TOO_SMALL, FINGER) == [], f"{name} is too small for fingers"
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.context.close()
        if kind is None:
            assert self.complaints == []


@pytest.fixture
def story(chromium):
    return lambda url, **look: Story(chromium, url, **look)


MAIN = {"study": "/studies/bp?wait=1", "studies": "/", "new": "/new?example=1"}
OTHERS = {
    "record": "/studies/bp/record",
    "candidates": "/studies/bp/candidates",
    "correct": "/studies/bp/entries/3/correct",
    "withdraw": "/studies/bp/entries/26/withdraw",
    "close": "/studies/bp/close",
    "results": "/studies/bp/results",
    "roles": "/studies/bp/people",
    "people": "/people",
    "erase": "/studies/bp/erase",
    "login": "/login",
    "guide": "/guide",
    "nothing": "/nothing",
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_main_pages_are_accessible(story, served, look):
    with story(served.url, **LOOKS[look]) as it:
        for name, path in MAIN.items():
            it.open(path)
            it.looked_at(f"{name}-{look}")


def test_whatever_can_be_pressed_on_a_phone_is_large_enough_for_a_finger(story, served):
    with story(served.url, **LOOKS["phone-dark"]) as it:
        for name, path in {**MAIN, **OTHERS}.items():
            it.open(path)
            assert it.page.evaluate(TOO_SMALL, FINGER) == [], name


@pytest.mark.slow
@pytest.mark.parametrize("look", {**LOOKS, **MORE_LOOKS})
def test_every_page_is_accessible(story, served, look):
    with story(served.url, **{**LOOKS, **MORE_LOOKS}[look]) as it:
        for name, path in {**MAIN, **OTHERS}.items():
            it.open(path)
            it.looked_at(f"{name}-{look}")


VALUES = {"Systolic": "139", "Potassium": "4.15", "Sodium": "139.2", "Heart": "71"}


def value_for(label):
    return next(value for name, value in VALUES.items() if label.startswith(name))


@pytest.mark.parametrize(
    ("look", "script"),
    [
        pytest.param("desktop", True, id="desktop-script"),
        pytest.param("phone-dark", False, id="phone-dark-no-script"),
        pytest.param("desktop", False, id="desktop-no-script", marks=pytest.mark.slow),
        pytest.param("phone-dark", True, id="phone-dark-script", marks=pytest.mark.slow),
    ],
)
def test_a_visit_from_question_to_correction(story, tmp_path, look, script):
    with Running(tmp_path / "visit.db") as running:
        play(clinic(running.store, title="Blood pressure pilot"), 6)
        with story(running.url, java_script_enabled=script, **LOOKS[look]) as it:
            page = it.open("/")
            page.get_by_role("link", name="Blood pressure pilot").click()
            page.get_by_role("button", name="Next question").click()
            expect(page.locator("#question h2")).to_contain_text("Give this. Then measure")
            field = page.locator(".tell input[inputmode=decimal]").first
            label = page.locator(".tell > label").first.inner_text()
            field.fill("99999")
            page.get_by_role("button", name="Record result").click()
            expect(page.get_by_text("Nothing has been saved")).to_be_visible()
            if script:
                it.looked_at(f"asked-twice-{look}")
            page.get_by_role("link", name="Change it").click()
            field = page.locator(".tell input[inputmode=decimal]").first
            field.fill(value_for(label))
            field.press("Enter")
            expect(page.get_by_text("Saved as entry 15")).to_be_visible()
            if script:
                it.looked_at(f"saved-{look}")
            page.get_by_role("link", name="Correct it", exact=True).click()
            page.get_by_label("Why").fill("misread the sheet")
            value = page.locator("#value")
            value.fill(
                value_for(label) + "5" if "." in value_for(label) else value_for(label) + ".5"
            )
            page.get_by_role("button", name="Correct it").click()
            expect(page.get_by_text("Saved as entry 16")).to_be_visible()
            expect(page.get_by_text("“misread the sheet”").first).to_be_visible()
        assert [event.kind for event in running.store.events("bp")][-2:] == [
            "answered",
            "corrected",
        ]


def test_a_study_is_set_up_in_the_browser(story, tmp_path):
    with Running(tmp_path / "new.db") as running, story(running.url, **LOOKS["desktop"]) as it:
        page = it.open("/")
        page.get_by_role("link", name="Begin from an example").click()
        page.get_by_label("Aim").select_option("clean")
        page.get_by_text("Advanced").click()
        page.get_by_label("Directions of side effects").fill("2")
        high = page.get_by_label("to in row 1").first
        high.fill("fourty")
        page.get_by_label("Seed").fill("-1")
        page.get_by_role("button", name="Show the first question").click()
        it.looked_at("mistakes-desktop")
        expect(page.get_by_role("alert").get_by_role("listitem")).to_have_count(2)
        page.get_by_role("link", name="“to” of lisinopril must be a number").click()
        expect(high).to_be_focused()
        high.fill("40")
        page.get_by_label("Seed").fill("0")
        page.get_by_role("button", name="Show the first question").click()
        expect(page.get_by_text("The first question would be")).to_be_visible()
        it.looked_at("preview-desktop")
        page.get_by_role("button", name="Set up the study").click()
        expect(page.get_by_role("heading", name="Ask the first question")).to_be_visible()
        it.looked_at("first-desktop")


def test_the_keyboard_is_enough(story, served):
    with story(served.url, **LOOKS["desktop"]) as it:
        page = it.open("/studies/bp?wait=1")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the next question")).to_be_focused()
        page.keyboard.press("Enter")
        reached = []
        for _ in range(6):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate("document.activeElement.name || document.activeElement.tagName")
            )
        assert any(name.startswith("value.") for name in reached), reached


def test_what_a_colleague_answers_appears_without_a_reload(story, tmp_path, monkeypatch):
    monkeypatch.setitem(PACE, "news", 1)
    with Running(tmp_path / "live.db") as running:
        study = clinic(running.store)
        ticket = study.ask(actor="Physician")
        with story(running.url, **LOOKS["desktop"]) as it:
            page = it.open("/studies/bp")
            running.app.state.desk.study("bp").verbs.tell(
                ticket.id, 140.0, measured="systolic pressure", actor="Lab, Ward 4"
            )
            expect(page.locator("#news")).to_contain_text("Lab, Ward 4", timeout=12_000)
            it.looked_at("news-desktop")
            page.get_by_role("link", name="Show").click()
            expect(page.get_by_role("heading", name="Nothing is awaited")).to_be_visible()


def test_what_takes_a_while_comes_by_itself(story, tmp_path, monkeypatch):
    seen, best_within = threading.Event(), OpenStudy.best_within

    def wait_until_seen(study, patience, context):
        there = seen.wait(60 if patience is None else 0)
        return best_within(study, patience, context) if there else None

    monkeypatch.setattr(OpenStudy, "best_within", wait_until_seen)
    with Running(tmp_path / "slow.db") as running:
        play(clinic(running.store), 6)
        with story(running.url, **LOOKS["desktop"]) as it:
            page = it.open("/studies/bp")
            expect(page.get_by_role("heading", name="Being worked out")).to_be_visible()
            seen.set()
            expect(page.locator("#best .mini")).to_be_visible(timeout=20_000)
            expect(page.locator("#candidates table")).to_be_visible(timeout=20_000)


def change_in(page):
    cell = page.locator("tbody tr td.e").first.inner_text()
    return float(cell.split()[0].replace("−", "-"))


def test_candidates_are_sorted_in_place(story, served):
    with story(served.url, **LOOKS["desktop"]) as it:
        page = it.open("/studies/bp/candidates")
        page.get_by_role("link", name="potassium").click()
        expect(page.locator("th[aria-sort=descending]")).to_contain_text("potassium")
        first = change_in(page)
        page.get_by_role("link", name="potassium").click()
        expect(page.locator("th[aria-sort=ascending]")).to_contain_text("potassium")
        assert change_in(page) <= first


def test_a_team_logs_in_gives_a_link_and_the_laboratory_answers(story, tmp_path):
    with Running(tmp_path / "team.db") as running:
        furnish(running)
        with story(running.url, **LOOKS["desktop"]) as it:
            page = it.open("/studies/bp/people")
            page.get_by_label("Name").fill("admin")
            page.get_by_label("Password").fill(PASSWORD)
            it.looked_at("login-team")
            page.get_by_role("button", name="Log in").click()
            page.get_by_label("For whom").fill("Lab, Ward 4")
            it.looked_at("roles-team")
            page.get_by_role("button", name="Make a link").click()
            address = page.locator("code.long").inner_text()
            it.looked_at("link-made")
        with story(running.url, **LOOKS["phone-dark"]) as lab:
            page = lab.open(address)
            lab.looked_at("link-phone-dark")
            label = page.locator(".tell > label").inner_text()
            page.locator(".tell input[inputmode=decimal]").fill(value_for(label))
            page.get_by_role("button", name="Record result").click()
            expect(page.get_by_text("Saved as entry")).to_be_visible()
            lab.looked_at("link-answered-phone-dark")


def test_a_full_disk_is_tried_again_by_itself(story, tmp_path, monkeypatch):
    monkeypatch.setitem(PACE, "again", 2)
    from sidestep.errors import StorageFull  # noqa: PLC0415

    with Running(tmp_path / "full.db") as running:
        clinic(running.store).ask(actor="Physician")
        verbs = running.app.state.desk.study("bp").verbs
        write = verbs._save

        def full(*_):
            raise StorageFull("disk full: there is no room left; nothing was saved")

        monkeypatch.setattr(verbs, "_save", full)
        with story(running.url, **LOOKS["desktop"]) as it:
            page = it.open("/studies/bp")
            label = page.locator(".tell > label").first.inner_text()
            page.locator(".tell input[inputmode=decimal]").first.fill(value_for(label))
            page.get_by_role("button", name="Record result").click()
            expect(page.get_by_role("heading", name="Not saved: the disk is full")).to_be_visible()
            it.looked_at("full-desktop")
            monkeypatch.setattr(verbs, "_save", write)
            expect(page.get_by_text("Saved as entry 3")).to_be_visible(timeout=15_000)


def test_a_page_prints(story, served):
    with story(served.url, **LOOKS["desktop"]) as it:
        page = it.open("/studies/bp?wait=1")
        page.emulate_media(media="print")
        expect(page.locator(".tell")).to_be_hidden()
        expect(page.locator(".effects").first).to_be_visible()
        assert len(page.pdf()) > 20_000


def test_the_content_policy_forbids_what_is_inline(story, served):
    with story(served.url, **LOOKS["desktop"]) as it:
        page = it.open("/studies/bp")
        page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
            " document.body.append(s); }"
        )
        assert page.evaluate("window.ran === undefined")
        assert any("Content Security Policy" in said for said in it.complaints)
        it.complaints.clear()


def test_a_page_and_its_script_are_small(served):
    import gzip  # noqa: PLC0415

    import httpx  # noqa: PLC0415

    with httpx.Client(base_url=served.url) as web:
        page = web.get("/studies/bp?wait=1")
        assert page.headers["content-encoding"] == "gzip"
        assert len(gzip.compress(page.content)) < 60_000
        script = web.get("/static/htmx.min.js").content
        assert len(gzip.compress(script)) < 20_000


def bent(storage):
    """A clinic of whole visits whose pressure has an optimum, and the last visit partly told."""
    study = clinic(storage, "bent", panel="all", title="A dose with an optimum")
    for number in range(14):
        ticket, rng = study.ask(actor="root"), np.random.default_rng([6, number])
        results = {name: WORLD.result(study, name, ticket.action, rng) for name in WORLD.noise}
        results[TARGET.name] += 0.06 * (ticket.action["lisinopril"] - 20) ** 2
        study.tell(ticket.id, results)
    ticket = study.ask(actor="root")
    study.tell(ticket.id, {"potassium": 4.2, "heart rate": 71.0})
    return study


@pytest.fixture(scope="module")
def pictured(tmp_path_factory):
    with Running(tmp_path_factory.mktemp("pictures") / "served.db") as running:
        bent(running.store)
        yield running


@pytest.mark.parametrize("look", {**LOOKS, **MORE_LOOKS})
def test_pictures_of_trade_and_bends_fit_and_have_words_behind_them(story, pictured, look):
    with story(pictured.url, **{**LOOKS, **MORE_LOOKS}[look]) as it:
        page = it.open("/studies/bent?wait=1")
        trade, bends = page.locator("#trade"), page.locator("#bends")
        expect(trade.get_by_role("heading")).to_have_text("What more risk would buy")
        expect(trade.locator(".keyed li").last).to_contain_text(
            "At least 95% likely within limits:"
        )
        expect(bends).to_contain_text("Systolic pressure: the effect of lisinopril turns at")
        for part in (trade, bends):
            part.locator("summary").first.click()
            expect(part.locator("table").first).to_be_visible()
            for box in (each.bounding_box() for each in part.locator("svg.plot").all()):
                assert 150 < box["width"] <= page.viewport_size["width"] - 46
        inside = trade.locator("svg.plot text").evaluate_all(
            """all => { const card = document.querySelector("#trade").getBoundingClientRect();
                return all.every(each => { const box = each.getBoundingClientRect();
                    return box.left >= card.left && box.right <= card.right + 1; }); }"""
        )
        assert inside  # no figure of an axis is cut off
        expect(page.locator("#next h2")).to_have_text("Ask the next question")
        expect(page.locator(".waiting")).to_contain_text("systolic pressure and sodium outstanding")
        it.looked_at(f"pictures-{look}")


def test_what_an_answer_could_change_is_read_before_its_price_and_the_form(story, pictured):
    with story(pictured.url, **LOOKS["phone-dark"]) as it:
        page = it.open("/studies/bent")
        page.get_by_role("button", name="Next question").click()
        question = page.locator("#question")
        changes = question.get_by_role("heading", name="What the answer could change")
        said = question.locator("h3.first + p").inner_text()
        assert said.startswith(("If ", "No single answer changes the recommendation yet"))
        below = [changes, question.locator("h3.first + p"), question.locator("form.tell")]
        tops = [each.bounding_box()["y"] for each in below]
        assert tops == sorted(tops)
        likely = question.get_by_text("likely to be within all limits")
        if likely.count():
            assert tops[1] < likely.first.bounding_box()["y"] < tops[2]
        it.looked_at("changes-phone-dark")
