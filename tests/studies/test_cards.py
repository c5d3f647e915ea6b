"""Cards: the same words on a terminal, on a page, in a notebook and to a program."""

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from shlex import quote

import pytest

from clinic import FACTORS, clinic, play
from sidestep.studies.advice import Contender
from sidestep.studies.cards.ask_card import why_text
from sidestep.studies.cards.best_card import contest_text
from sidestep.studies.cards.card import (
    Card,
    Command,
    Gauge,
    Prose,
    Section,
    Table,
    Verdict,
    verdict_of,
)
from sidestep.studies.cards.card_json import card_from_json, card_to_json
from sidestep.studies.cards.doubt import asked_twice, doubt_text
from sidestep.studies.cards.list_card import age_text
from sidestep.studies.cards.markup import Markup, tag
from sidestep.studies.cards.record_card import history_card
from sidestep.studies.cards.text import gauge_text, harmless
from sidestep.studies.cards.words import (
    VOCABULARIES,
    digits_of,
    limit_text,
    named,
    number,
    percent,
    set_text,
    signed,
)
from sidestep.studies.factors import Factor
from sidestep.studies.measurement import Measurement
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.memory import MemoryStore

FORBIDDEN = ("posterior", "arm ", "acquisition", "index", "regret", "nan", "None")


@pytest.fixture(scope="module")
def study():
    study = clinic(MemoryStore())
    play(study, 12)
    return study


@pytest.fixture(scope="module")
def cards(study):
    return {
        "ask": study.ask().card,
        "best": study.best().card,
        "explain": study.explain().card,
        "show": study.show(),
        "verify": study.verify(),
        "tell": study.tell(study.ask().id, 100.0).card,
    }


@pytest.mark.parametrize("kind", ["ask", "best", "explain", "show", "verify", "tell"])
def test_a_card_fits_80_columns_and_says_no_jargon(cards, kind):
    text = str(cards[kind])
    assert max(len(line) for line in text.splitlines()) <= 80
    for word in FORBIDDEN:
        assert word not in text


@pytest.mark.parametrize("kind", ["ask", "best", "explain", "show", "verify", "tell"])
def test_a_card_is_json_without_nan_and_well_formed_html_without_inline_style(cards, kind):
    content = cards[kind].to_json()
    assert json.loads(json.dumps(content, allow_nan=False))["text"] == str(cards[kind])
    fragment = cards[kind].html()
    assert well_formed(fragment)
    assert "style=" not in fragment
    assert "<script" not in fragment
    assert cards[kind]._repr_html_().startswith("<style>")


@pytest.mark.parametrize("kind", ["ask", "best"])
def test_page_and_terminal_say_the_same_words(cards, kind):
    text = words_of(str(cards[kind]))
    page = words_of(unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", cards[kind].html())))
    assert page <= text


def words_of(text):
    return set(re.findall(r"[a-z]{3,}", text.lower()))


def well_formed(fragment):
    """Whether every element is closed in order."""
    open_tags = []

    class Checker(HTMLParser):
        def handle_starttag(self, name, attributes):
            open_tags.append(name)

        def handle_endtag(self, name):
            assert open_tags.pop() == name

    Checker().feed(fragment)
    return not open_tags


def test_text_is_escaped_wherever_it_stands():
    nasty = '<img src=x onerror="alert(1)">&'
    study = clinic(
        MemoryStore(),
        factors=[Factor(nasty, 0, 1, unit=nasty, step=1), Factor("b", levels=[nasty, "y"])],
        target=Outcome(nasty + "t", nasty, range=(0, 1)),
        title=nasty,
    )
    ticket = study.ask(actor=nasty)
    for card in (ticket.card, study.show(), study.best().card):
        assert "<img" not in card.html()
        assert well_formed(card.html())
    assert tag("p", Markup("<b>kept</b>"), "<i>", title='"') == (
        '<p title="&quot;"><b>kept</b>&lt;i&gt;</p>'
    )


def test_the_question_says_what_changed_since_the_last_time(study):
    text = str(study.ask(actor="another").card)
    assert re.search(r"(up|down) from \d|as last visit", text)


@pytest.mark.parametrize(("vocabulary", "words"), VOCABULARIES.items())
def test_every_vocabulary_has_its_own_words(vocabulary, words):
    study = clinic(MemoryStore(), vocabulary=vocabulary)
    text = " ".join(str(study.ask()).split())  # however the lines are broken
    assert words.verb.capitalize() in text
    assert f"{words.round.capitalize()} 1" in text
    assert f"protected {words.outcome}" in text
    assert words.candidates in str(study.show())


def body(**changes):
    return {
        "results": 20,
        "purpose": "learn",
        "phase": "play",
        "measure": ["sodium"],
        "action": setting(40),
        "rival": {"candidate": 17, "action": setting(30)},
        "shares": {
            "systolic pressure": 0.001,
            "potassium": 0.03,
            "sodium": 0.24,
            "heart rate": 0.04,
        },
        "best": {"candidate": 3, "action": setting(20)},
        "price": 0.1,
    } | changes


def setting(dose):
    return {"chlortalidone": 25.0, "amlodipine": 7.5, "lisinopril": float(dose)}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {},
            "contend: this one and lisinopril 30, amlodipine 7.5, chlortalidone 25 mg/day.",
        ),
        (
            {},
            "remove about 24% of that doubt (heart rate 4%, potassium 3%, systolic pressure <1%).",
        ),
        (
            {},
            "about as well as today's best (amlodipine 7.5, chlortalidone 25 mg/day): 0.1 mmHg less",
        ),
        (
            {"price": 2.1},
            "Asking has a price: about 2.1 mmHg worse this visit than today's best "
            "(amlodipine 7.5, chlortalidone 25 mg/day), with a penalty for limits that it may exceed.",
        ),
        (
            {"rival": {"candidate": 3, "action": setting(20)}, "price": 0.1},
            "Two regimens contend: this one and today's best, amlodipine 7.5, chlortalidone 25 mg/day.",
        ),
        (
            {"rival": {"candidate": 3, "action": setting(20)}, "price": 0.1},
            "It should do about as well as today's best: 0.1 mmHg less this visit.",
        ),
        (
            {"shares": {"sodium": 0.001, "potassium": 0.02}},
            "What is least certain about this regimen is what it does to sodium; the result "
            "should remove less than 1% of that doubt (potassium 2%).",
        ),
        ({"best": {"candidate": 1, "action": setting(40)}}, "It is today's best."),
        ({"phase": "explore"}, "This regimen is not expected to be the best."),
        (
            {"shares": {"sodium": 0.001}},
            "No single result of this regimen removes 1% of the doubt.",
        ),
        ({"phase": "held"}, "No other regimen is known well enough to stay within limits"),
        (
            {"phase": "held", "rival": {"candidate": 3, "action": setting(20)}},
            "on your own judgement, such as amlodipine 7.5, chlortalidone 25 mg/day.",
        ),
        ({"purpose": "confirm"}, "This is what would be recommended today."),
        ({"results": 0}, "Nothing is known yet."),
    ],
)
def test_why_is_said_in_a_sentence(study, changes, says):
    assert says in why_text(study.plan, body(**changes))


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (-0.2, 0.3, "within"),
        (0.31, 0.4, "beyond"),
        (0.2, 0.4, "not settled"),
        (-1, 1, "not settled"),
    ],
)
def test_a_verdict_is_about_the_whole_interval(low, high, word):
    assert verdict_of(low, high, (-0.3, 0.3)) == Verdict(word)


def test_a_limit_on_one_side_judges_that_side_alone():
    assert verdict_of(-9, 0.2, (None, 0.3)).text == "within limits"
    assert verdict_of(0.4, 0.5, (None, 0.3)).text == "beyond limits"


def test_a_gauge_shows_the_interval_between_its_limits():
    assert gauge_text(Gauge(0.0, -0.1, 0.1, -0.3, 0.3)) == "  ├  ──●──  ┤  "
    drawn = gauge_text(Gauge(0.15, 0.05, 0.25, -0.3, 0.3))
    assert len(drawn) == 15
    assert drawn.index("├") < drawn.index("●") < drawn.index("┤")
    assert gauge_text(Gauge(0.0, -9, 9, -0.3, 0.3))[0] == "<"
    assert gauge_text(Gauge(0.0, -9, 9, -0.3, 0.3))[-1] == ">"


def test_a_gauge_without_a_width_is_drawn_too():
    assert gauge_text(Gauge(0.0, 0.0, 0.0, 0.0, None)) == "       ●       "


def test_digits_are_those_a_person_can_act_on():
    cases = [(0.3, 2), (2.5, 1), (6, 0), (9, 0), (40, 0), (0.5, 2)]
    for tolerance, digits in cases:
        assert digits_of(Outcome("x", range=(0, 100), tolerance=tolerance)) == digits
    assert digits_of(Outcome("x", range=(0, 100), digits=3)) == 3
    assert digits_of(Outcome("systolic", range=(100, 190))) == 0


def test_numbers_have_a_point_no_grouping_and_a_real_minus():
    assert number(1380, 0) == "1380"
    assert number(-0.004, 2) == "0.00"
    assert signed(-1.5, 1) == "−1.5"
    assert signed(0.0, 1) == "0.0"
    assert signed(0.23, 2) == "+0.23"
    assert percent(0.004) == "<1%"
    assert [percent(share) for share in (0.994, 0.9951, 1.0)] == ["99%", ">99%", "100%"]
    assert percent(0.24) == "24%"
    assert limit_text(Outcome("x", range=(0, 1), tolerance=(None, 0.3))) == "at most +0.30"
    assert limit_text(Outcome("x", range=(0, 1), tolerance=(-0.5, 0.3))) == "−0.50 to +0.30"


def test_units_are_said_once_where_they_are_the_same():
    factors = (Factor("a", 0, 9, unit="mg"), Factor("b", 0, 9, unit="mg"), Factor("c", 0, 9))
    assert set_text(factors, {"a": 1.0, "b": 2.5, "c": 3.0}) == "a 1, b 2.5 mg, c 3"


def test_a_result_far_from_what_was_expected_is_doubted():
    sodium = Outcome("sodium", "mmol/L", range=(110, 170), tolerance=2.5)
    expected = (138.8, 133.4, 144.2)
    assert asked_twice(sodium, expected) == pytest.approx((128.0, 149.6))
    assert doubt_text(sodium, Measurement(138), expected) is None
    assert doubt_text(sodium, Measurement(145), expected) is None
    text = doubt_text(sodium, Measurement(1380), expected)
    assert "1380 mmol/L is far from what is expected" in text
    assert "(133.4 to 144.2)" in text
    assert "A lost decimal point?" in text
    assert "decimal" not in doubt_text(sodium, Measurement(160), expected)


def test_where_results_have_left_the_range_what_is_expected_decides():
    sodium = Outcome("sodium", "mmol/L", range=(110, 170), tolerance=2.5)
    assert asked_twice(sodium, (180.0, 178.0, 182.0)) == (176.0, 184.0)
    assert doubt_text(sodium, Measurement(181), (180.0, 178.0, 182.0)) is None
    assert doubt_text(sodium, Measurement(175), None) is not None


def test_an_age_is_said_as_a_person_says_it():
    from datetime import UTC, datetime, timedelta  # noqa: PLC0415

    now = datetime(2026, 8, 26, 10, 42, tzinfo=UTC)
    ages = [
        (10, "just now"),
        (3600 * 5, "5 hours ago"),
        (86400 * 7, "7 days ago"),
        (86400, "one day ago"),
    ]
    for seconds, words in ages:
        assert age_text((now - timedelta(seconds=seconds)).isoformat(), now) == words


def test_caution_is_said_where_it_is_taken():
    study = clinic(MemoryStore(), knobs={"caution": 0.95})
    text = " ".join(str(study.ask()).split())
    assert "Asked with caution: at least 95% likely to be within all limits" in text
    assert "the first questions stay near the baseline" in text
    assert "not a fence" not in text


def test_at_the_baseline_a_card_says_in_words_that_nothing_changes():
    study = clinic(MemoryStore())
    still = {factor.name: 0.01 for factor in FACTORS}  # less than a step of any
    ticket = study.ask(largest_step=still)
    study.tell(ticket.id, 139.0, measured="sodium")
    assert ticket.action == study.plan.baseline
    said = "It is the baseline, from which every change is counted: systolic pressure and every "
    said += "protected marker stay as they are."
    for card in (ticket.card, study.best().card):
        words = json.dumps(card_to_json(card), ensure_ascii=False)
        for text in (str(card), card.to_json()["text"], card._repr_html_(), words):
            assert said in " ".join(text.split())
            assert "0.00" not in text


def test_a_first_question_may_be_far_from_the_baseline_and_says_what_keeps_it_near():
    text = " ".join(str(clinic(MemoryStore()).ask()).split())
    assert "may be far from the baseline" in text
    assert "A largest step keeps them near it." in text
    near = clinic(MemoryStore()).ask(largest_step={"lisinopril": 10})
    assert "in every direction that is allowed" in " ".join(str(near).split())


def test_a_wide_head_goes_on_two_lines():
    head = ("no.", "systolic pressure", "resting heart rate")
    card = Card("x", "t", sections=(Section("", (Table((("1", "−13", "+4"),), head),)),))
    assert card.text(34).splitlines()[1:] == [
        "       systolic  resting heart",
        "  no.  pressure  rate",
        "  1    −13       +4",
    ]


def test_a_wide_table_is_broken_not_cut():
    rows = (("a" * 40, "b" * 40, "c" * 20),)
    card = Card(
        "x",
        "title",
        sections=(Section("Label", (Table(rows), Prose("p " * 60), Command("do", "do"))),),
    )
    text = card.text(80)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "c" * 20 in text


@pytest.fixture
def asked():
    """A study with its question, its recommendation and its overview, before the answer is told."""
    study = clinic(MemoryStore())
    play(study, 12)
    cards = [study.best().card, study.show()]
    ticket = study.ask(panel=2)
    return study, [*cards, study.show(), ticket.card]


def test_in_python_a_card_shows_calls_that_can_be_made_as_they_are(asked):
    study, cards = asked
    calls = [each for card in cards for each in steps(card)]
    assert {call.partition("(")[0] for call, _ in calls} == {"study.ask", "study.tell"}
    for call, note in calls:
        asks = "study.ask(new=True, " if call != "study.ask()" else "study.ask(new=True"
        done = call.replace("study.ask(", asks)
        assert eval(done, {"study": study, "value": 4.2})
        if note:
            assert note == '(given={"lisinopril": ...} if something else was given)'


def steps(card):
    """The calls of a card with their notes, which also stand in its text and in a notebook."""
    found = [each for part in card.sections for each in part.content if isinstance(each, Command)]
    for each in found:
        for shown in (str(card), card.to_json()["text"], unescape(card._repr_html_())):
            assert each.call in shown
            assert "sidestep study" not in shown
    return [(each.call, each.call_note) for each in found]


def test_on_a_terminal_a_card_shows_commands_with_the_options_that_they_need(asked):
    study, (_, ready, waiting, question) = asked
    assert ready.text(options="-s s.db").endswith("sidestep study ask bp -s s.db")
    panel = " ".join(f"{quote(name + '=VALUE')}" for name in study.questions()[0].waiting)
    command = f"sidestep study tell bp {study.questions()[0].id} {panel}"
    assert waiting.text(options="").endswith(command)
    assert command in question.text(options="")
    assert "(--given lisinopril=... if something else was given)" in question.text(options="")


def test_a_card_comes_back_from_json_and_one_of_version_0_2_with_its_commands(asked):
    for card in asked[1]:
        words = json.loads(json.dumps(card_to_json(card)))
        assert str(card_from_json(words, card.data)) == str(card)
        for part in words["sections"]:
            for content in part["content"]:
                content.pop("call", None), content.pop("call_note", None)
        assert str(card_from_json(words, card.data)) == card.text(options="")


def test_only_what_can_be_corrected_is_said_to_be():
    study = clinic(MemoryStore())
    hint = "you can correct it later"
    assert hint in str(study.tell(study.ask().id, 140.0))
    assert hint not in str(study.withdraw(study.ask().id, reason="missed visit"))
    assert hint not in str(study.close())


def test_a_baseline_that_is_no_candidate_is_said_to_be_none():
    between = [Factor("dose", 0, 40, unit="mg", step=10, baseline=25), FACTORS[1]]
    said = (
        "The baseline, dose 25 mg, amlodipine 0 mg/day, is not one of them: it is neither asked nor"
    )
    study = clinic(MemoryStore(), factors=between)
    assert said in " ".join(str(study.show()).split())
    rows = {"lisinopril": [0, 40], "amlodipine": [0, 5], "chlortalidone": [0, 25]}
    assert "is not one of them" in str(clinic(MemoryStore(), candidates=rows).show())
    box = [Factor("dose", 0, 40, baseline=25)]
    for other in (clinic(MemoryStore()), clinic(MemoryStore(), factors=box)):
        assert "is not one of them" not in str(other.show())


def test_where_nothing_is_protected_no_card_speaks_of_limits():
    study = clinic(MemoryStore(), protected=[])
    for _ in range(6):
        study.tell(study.ask().id, 140.0)
    cards = (study.ask(purpose="confirm"), study.best(), study.explain(), study.show())
    for card in cards:
        assert "limits" not in str(card)
        assert "rotect" not in str(card)


def test_not_enough_data_is_said_plainly(study):
    few = clinic(MemoryStore())
    play(few, 2)
    words = " ".join(str(few.best()).split())
    assert "No regimen can be recommended yet." in words
    assert "were never measured: nothing is recommended before every marker was." in words


def test_where_another_is_likelier_the_best_it_is_said_why_this_one_is_recommended():
    study = clinic(MemoryStore())
    play(study, 12)
    best = study.best()
    rivals = (Contender(18, best.action, 0.01), Contender(24, study.plan.baseline, 0.79))
    known = "What is recommended is the best that is known to be within limits."
    told = replace(best, candidate=18, within=True, probability=0.01, contenders=rivals)
    assert (
        f"79% the baseline; 1% {named(study.plan, best.action)}. {known}"
        in contest_text(study.plan, told).text
    )
    assert known in contest_text(study.plan, told, shares=False).text
    assert known not in contest_text(study.plan, replace(told, within=False)).text
    assert known not in contest_text(study.plan, replace(told, contenders=rivals[:1])).text


def test_what_a_terminal_would_obey_is_shown_as_escapes():
    wild = "\x1b[2J\x1b]0;title\x07 \x9b31m \x7f \u202egnp.exe \r"
    study = clinic(MemoryStore())
    ticket = study.ask(actor="Dr \x1b[31mNo")
    study.tell(ticket.id, 100.0, reason=f"seen {wild} twice", actor=wild)
    for card in (history_card(study.plan, study.name, study.history()), study.show()):
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", card.text(), re.ASCII)
    text = history_card(study.plan, study.name, study.history()).text(200)
    assert r"Dr \u001b[31mNo" in text
    assert r"seen \u001b[2J\u001b]0;title\u0007 \u009b31m \u007f \u202egnp.exe" in text
    assert harmless("café 0.1 µg\n─●─ 𝛽") == "café 0.1 µg\n─●─ 𝛽"
