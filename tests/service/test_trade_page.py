"""The trade between effect and certainty on the page: what the picture shows is what the study says."""

import re

import numpy as np
import pytest
from houses import text_of

from clinic import WORLD, clinic, play
from sidestep.service.pages import svg
from sidestep.service.pages.trade_view import trade_view
from sidestep.studies.advice import Best, Effect, Trade, Tradeoff
from sidestep.studies.cards.card import Card
from sidestep.studies.cards.tradeoff_card import trade_lines
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.study import Study


def visits(storage, count, **changes):
    """A study whose every visit measures everything."""
    study = clinic(storage, panel="all", **changes)
    for number in range(count):
        ticket, rng = study.ask(), np.random.default_rng([3, number])
        results = {name: WORLD.result(study, name, ticket.action, rng) for name in WORLD.noise}
        study.tell(ticket.id, results)
    return study


@pytest.fixture(scope="module")
def told():
    study = visits(MemoryStore(), 9)
    return study, study.best(), study.tradeoff()


def circles(picture):
    """The class of every dot and its place, in percent from the left and from the top."""
    found = re.findall(r'<circle class="(\w+)" cx="([\d.]+)%" cy="([\d.]+)%"', str(picture))
    return [(class_, float(x), float(y)) for class_, x, y in found]


def test_the_picture_marks_the_recommendation_and_what_less_certainty_buys(told):
    study, best, tradeoff = told
    shown = trade_view(study.plan, best, tradeoff)
    recommended = tradeoff.at(0.95)
    assert recommended is not None
    assert recommended.action == best.action
    top = 1.12 * -tradeoff.trades[0].effect.estimate

    def place(trade):
        return (200 * (trade.chance - 0.5), 100 * (1 + trade.effect.estimate / top))

    dots = circles(shown["plot"])
    chosen = [where for class_, *where in dots if class_ == "chosen"]
    others = [where for class_, *where in dots if class_ == "other"]
    assert np.allclose(chosen, [place(recommended)], atol=0.01)
    assert np.allclose(others, [place(tradeoff.at(each)) for each in (0.5, 0.8)], atol=0.01)
    assert ["chosen" in str(mark) for mark, _, _ in shown["lines"]] == [False, False, True]
    assert len(shown["rows"]) == len(tradeoff.trades)


def test_the_curve_falls_from_the_largest_effect_to_the_baseline(told):
    study, best, tradeoff = told
    curve = re.search(
        r'class="line soft" d="M([^"]+)"', str(trade_view(study.plan, best, tradeoff)["plot"])
    )
    corners = [tuple(map(float, pair.split())) for pair in curve[1].split("L")]
    across, down = zip(*corners, strict=True)
    assert list(across) == sorted(across)
    assert list(down) == sorted(down)  # downwards
    assert corners[0][0] == 0
    assert corners[-1] == (across[-1], 100.0)
    assert across[-1] == pytest.approx(200 * (tradeoff.trades[-1].chance - 0.5), abs=0.01)


TRADES = (
    Trade(0.62, 3, {"dose": 30.0}, Effect(12.0, 6.0, 18.0), 0.99),
    Trade(0.9, 2, {"dose": 20.0}, Effect(7.0, 3.0, 11.0), 0.98),
)


def small(goal):
    target = Outcome("yield", "kg", goal=goal, range=(0, 100))
    dose = Factor("dose", 0, 30, "mg", step=10)
    stained = Outcome("stain", range=(0, 10), tolerance=1)
    return Study.create("s", MemoryStore(), factors=[dose], target=target, protected=[stained]).plan


@pytest.mark.parametrize(("goal", "sign"), [("raise", 1), ("lower", -1)])
def test_where_one_should_stay_the_picture_and_the_lines_say_so(goal, sign):
    plan = small(goal)
    trades = tuple(
        each._replace(effect=Effect(*(sign * end for end in each.effect[:3]))) for each in TRADES
    )
    best = Best(action=plan.baseline, effects={})
    shown = trade_view(plan, best, Tradeoff(trades, Card("tradeoff", "")))
    assert ("chosen", 100.0, 100.0) in circles(shown["plot"])
    assert ">stay<" in str(shown["plot"])
    assert shown["spoken"].endswith("Recommended: to stay.")
    texts = [(lead, text) for _, lead, text in shown["lines"]]
    assert [lead for lead, _ in texts] == [
        f"At least {each}% likely within limits:" for each in (50, 80, 95)
    ]
    size = {1: "+12", -1: "\u221212"}[sign]
    assert texts[0][1].startswith(f"yield {size} (")
    assert texts[0][1].endswith("kg with dose 30 mg.")
    assert texts[1][1].endswith("with dose 20 mg.")
    assert texts[2][1] == "nothing but the baseline."
    first, second = ((x, y) for class_, x, y in circles(shown["plot"]) if class_ == "other")
    assert first[1] < second[1]  # the larger effect is higher, whichever way the goal goes


def test_figures_beside_the_axis_are_round_and_signed():
    plot = str(
        svg.trade(
            small("lower").target, [TRADES[0]._replace(effect=Effect(-12, -18, -6))], None, [], 0.95
        )
    )
    assert re.findall(r">([^<]+)</text>", plot)[:3] == ["0", "\u22125", "\u221210"]
    assert re.findall(r">(\d+%)</text>", plot) == [f"{each}%" for each in range(50, 101, 10)]


def test_what_more_certainty_buys_too_is_said_once():
    plan = small("raise")
    sure = TRADES[1]._replace(chance=0.97)
    for trades, said in (
        ((sure,), ["At least 95% likely within limits:"]),
        (
            TRADES[:1],
            [
                f"At least {each}% likely within limits{more}:"
                for each, more in ((50, ""), (80, ", or more"))
            ],
        ),
        (
            (TRADES[0], sure),
            ["At least 50% likely within limits:", "At least 95% likely within limits:"],
        ),
    ):
        assert [prose.lead for _, prose in trade_lines(plan, trades)] == said
    ((_, only),) = trade_lines(plan, (sure,))
    assert only.text.endswith("with dose 20 mg. More risk would buy nothing more.")
    assert trade_lines(plan, ()) == []


def test_the_page_shows_the_trade_below_the_recommendation(running, browser):
    study = visits(running.store, 9)
    page = browser.get("/studies/bp?wait=1")
    assert page.text.index('id="best"') < page.text.index('id="trade"')
    said = text_of(page)
    for _, lead, text in trade_view(study.plan, study.best(), study.tradeoff())["lines"]:
        assert f"{lead} {text}" in said
    assert "The whole curve as numbers" in said
    assert 'id="trade"' in browser.get("/studies/bp/parts/trade").text


@pytest.mark.parametrize("change", [{"aim": "clean", "rank": 2}, {"protected": ()}])
def test_there_is_no_trade_where_nothing_limits_the_goal(running, browser, change):
    play(clinic(running.store, **change), 2)
    assert 'id="trade"' not in browser.get("/studies/bp?wait=1").text


def test_there_is_no_trade_before_every_outcome_was_measured(running, browser):
    play(clinic(running.store), 2)
    assert 'id="trade"' not in browser.get("/studies/bp?wait=1").text


def test_the_tradeoff_prints_what_three_certainties_buy(told):
    study, _, tradeoff = told
    printed = " ".join(str(tradeoff).split())
    for _, lead, text in trade_view(study.plan, study.best(), tradeoff)["lines"]:
        assert f"{lead} {text}" in printed
