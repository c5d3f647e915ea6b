"""A factor that is a yes or no, wherever it is written; and past results off the steps."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from sidestep.cli.main import app
from sidestep.errors import InputError
from sidestep.studies.cards.record_card import history_card
from sidestep.studies.cards.words import named, set_text
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import plan_from_config
from sidestep.studies.setup import read_setup
from sidestep.studies.study import Study

BANNER = Factor("banner", levels=[False, True])
DISCOUNT = Factor("discount", 0, 30, unit="%", step=10)
SIZE = Factor("size", levels=[1, 2, 5], unit="pt")
REVENUE = Outcome("revenue", goal="raise", range=(0, 100), matters=1, baseline=50)
RETURNS = Outcome("returns", range=(0, 10), tolerance=1)

TOML = """
[[factors]]
name = "banner"
levels = [false, true]
[target]
name = "revenue"
goal = "raise"
range = [0, 100]
"""


def shop(storage="memory:", *factors):
    wanted = factors or (DISCOUNT, BANNER, SIZE)
    return Study.create(
        "shop", storage, factors=wanted, target=REVENUE, protected=[RETURNS], seed=3, actor="ada"
    )


@pytest.mark.parametrize(
    "levels", [[False, True], (True, False), np.array([False, True]), [np.False_, np.True_]]
)
def test_false_and_true_are_a_yes_or_no(levels):
    factor = Factor("banner", levels=levels)
    assert factor.is_yes_no
    assert not factor.is_number
    assert set(factor.grid) == {False, True}
    assert all(type(level) is bool for level in (*factor.grid, factor.baseline))
    assert Factor(**factor.to_config()) == factor


@pytest.mark.parametrize("levels", [[False, False], [True], [False, 2], [False, "x"]])
def test_other_truth_values_are_refused(levels):
    with pytest.raises(InputError, match="banner"):
        Factor("banner", levels=levels)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(True, True), ("yes", True), ("No", False), ("FALSE", False), (1, True), (0.0, False)],
)
def test_it_is_understood_however_it_is_written(typed, meant):
    assert BANNER.read(typed) is meant


@pytest.mark.parametrize("typed", ["maybe", 2, None, ""])
def test_what_is_neither_is_refused(typed):
    with pytest.raises(InputError, match="banner must be yes or no"):
        BANNER.read(typed)


def test_people_read_yes_and_no_and_programs_true_and_false(tmp_path):
    study = shop(tmp_path / "shop.db")
    ticket = study.ask(allowed={"banner": True})
    assert ticket.action["banner"] is True
    assert re.search(r"banner +yes +baseline: no", str(ticket))
    assert json.loads(json.dumps(ticket.action))["banner"] is True
    study.tell(ticket.id, {ticket.measure: 5.0}, given={"banner": "no"})
    assert study.history()[-1].body["action"]["banner"] is False
    again = Study.open("shop", tmp_path / "shop.db", actor="ada")
    assert again.plan == study.plan
    setting = {"discount": 10.0, "banner": True, "size": 2.0}
    assert set_text(study.plan.factors, setting) == "discount 10 %, banner yes, size 2 pt"
    assert named(study.plan, setting) == "discount 10 %, banner yes, size 2 pt"
    assert study.verify(asks=True).data["holds"]


def test_the_record_keeps_it_as_version_0_2_reads_it():
    """That version has no yes or no: it reads levels 0 and 1, and values that equal them."""
    config = shop().plan.to_config()
    banner = config["factors"][1]
    assert (banner["levels"], banner["baseline"]) == ([0.0, 1.0], 0.0)
    assert all(type(level) is float for level in banner["levels"])
    assert config["yes_no"] == ["banner"]
    assert plan_from_config(config, None).factors[1] == BANNER


def test_a_file_may_have_it(tmp_path):
    path = tmp_path / "shop.toml"
    path.write_text(TOML)
    assert read_setup(path)["factors"][0].is_yes_no


def test_the_terminal_takes_it(tmp_path):
    path = tmp_path / "shop.db"
    study = shop(path)

    def command(*words):
        done = CliRunner().invoke(app, ["study", *words, "-s", str(path)])
        assert done.exit_code == 0, done.output
        return done.output

    assert re.search(r"banner +yes", command("ask", "shop", "--allow", "banner=yes"))
    command("tell", "shop", "2", "5", "--given", "banner=no", "--given", "discount=12.5", "--yes")
    action = study.history()[-1].body["action"]
    assert (action["banner"], action["discount"]) == (False, 12.5)


def test_a_model_counts_it_as_0_and_1():
    pytest.importorskip("formulaic")
    study = Study.create(
        "shop",
        "memory:",
        factors=[DISCOUNT, BANNER],
        target=REVENUE,
        protected=[RETURNS],
        model="0 + discount + banner + discount:banner",
    )
    assert study.ask().action["banner"] in (False, True)


@pytest.mark.parametrize(
    ("done", "kept"),
    [
        ({"discount": 12.5, "banner": True, "size": 2}, 12.5),
        ({"discount": 20.0000000001, "banner": True, "size": 3.3}, 20.0),
    ],
)
def test_past_results_may_lie_between_steps_and_levels(done, kept):
    study = shop()
    rows = {name: [value] for name, value in done.items()} | {"revenue": [55.0]}
    study.import_results(rows)
    action = study.history()[-1].body["rows"][0]["action"]
    assert (action["discount"], action["size"]) == (kept, done["size"])
    study.tell(None, 5.1, measured="returns", given=done)
    assert study.history()[-1].body["action"]["discount"] == kept
    ticket = study.ask()
    study.tell(ticket.id, {ticket.measure: 5.0}, given={"discount": 7})
    assert study.history()[-1].body["action"]["discount"] == 7.0
    assert study.best().results == 3
    assert study.best().action["discount"] in DISCOUNT.grid  # recommended is what can be set


@pytest.mark.parametrize(
    ("done", "said"),
    [
        ({"discount": 31, "banner": True, "size": 2}, "discount must lie in 0 to 30 %, got 31"),
        ({"discount": 10, "banner": True, "size": 6}, "size must lie in 1 to 5 pt, got 6"),
        ({"discount": 10, "banner": "often", "size": 2}, "banner must be yes or no"),
    ],
)
def test_past_results_outside_the_ranges_are_refused(done, said):
    study = shop()
    with pytest.raises(InputError, match=said):
        study.tell(None, 5.1, measured="returns", given=done)
    with pytest.raises(InputError, match=said):
        study.import_results({name: [value] for name, value in done.items()} | {"revenue": [55]})
    assert len(study.history()) == 1


def test_a_candidate_still_lies_on_the_steps():
    with pytest.raises(InputError, match="in steps of 10"):
        Study.create(
            "shop",
            "memory:",
            factors=[DISCOUNT],
            target=REVENUE,
            protected=[RETURNS],
            candidates={"discount": [0, 5]},
        )


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "the baseline"),
        ({"banner": True}, "banner yes"),
        ({"discount": 10.0, "banner": True}, "discount 10 %, banner yes"),
        ({"discount": 12.5, "size": 5.0}, "discount 12.5 %, size 5 pt"),
    ],
)
def test_a_setting_is_named_by_what_differs_from_the_baseline(changes, name):
    study = shop()
    assert named(study.plan, {**study.plan.baseline, **changes}) == name


def test_no_card_calls_a_candidate_by_its_number():
    study = shop()
    for result in range(9):
        ticket = study.ask()
        study.tell(ticket.id, {"revenue": 50.0 + result, "returns": 5.0}[str(ticket.measure)])
    cards = [
        study.ask(),
        study.best(),
        study.show(),
        history_card(study.plan, "shop", study.history()),
    ]
    for card in cards:
        assert not re.search(r"(?i)\bno\. \d| · ", str(card)), card
    table = str(study.explain(top=3))
    assert " · " not in table
    assert re.search(r"\n  (the baseline|discount|banner|size)", table)
