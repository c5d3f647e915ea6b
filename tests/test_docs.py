"""The pages are consistent with the code: links, names, tests and knobs exist."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import sidestep as ss
from sidestep.core.estimator import Evidence
from sidestep.core.problem import Problem
from sidestep.experiments.spec import parse_spec, shipped_specs
from sidestep.policies.base import PHASES
from sidestep.policies.catalog import POLICIES, knobs_of
from sidestep.studies.advice import Best, Explanation
from sidestep.studies.cards.card import Card
from sidestep.studies.ticket import Receipt

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*(ROOT / f"{page}.md" for page in ("README", "CONTRIBUTING", "VISION")), *DOCS]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))

LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
CITED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
NAME = re.compile(r"`((?:core|policies|environments|experiments)\.[\w.]+)`")
PATH = re.compile(r"`(src/[\w/.]+)`")
ENTRY = re.compile(r"^##+ ([A-E]\d*)\. ", re.MULTILINE)
LETTER = re.compile(r"\b(?:A\d\d?|B\d\d?|C[1-8]|E[1-9])\b")

ENTRIES = {
    "D",
    *(f"A{k}" for k in range(1, 16)),
    *(f"B{k}" for k in range(1, 15)),
    *(f"C{k}" for k in range(1, 9)),
    *(f"E{k}" for k in range(1, 10)),
}


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def titled(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def resolve(name: str) -> object:
    """What a dotted name below the package means: the longest module, then attributes."""
    return pkgutil.resolve_name(f"sidestep.{name}")


@cache
def claims_of(file: str) -> set[str]:
    """Names of the tests in a file."""
    tree = ast.parse(page(file))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def rows_of(text: str) -> list[list[str]]:
    """Cells of every table row of a page, headings and rulers left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [row for row in cells if set("".join(row)) - set("-")]


@pytest.mark.parametrize("path", PAGES, ids=titled)
def test_every_relative_link_leads_to_a_file(path):
    for target in LINK.findall(path.read_text(encoding="utf-8")):
        if not target.startswith(("http", "#")):
            assert (path.parent / target.split("#")[0]).exists(), target


@pytest.mark.full
@pytest.mark.parametrize("path", PAGES, ids=titled)
def test_every_test_that_a_page_cites_exists(path):
    for file, claim in CITED.findall(path.read_text(encoding="utf-8")):
        assert (ROOT / file).is_file(), file
        assert not claim or claim in claims_of(file), f"{file}::{claim}"


@pytest.mark.parametrize("path", PAGES, ids=titled)
def test_every_source_file_that_a_page_names_exists(path):
    for file in PATH.findall(path.read_text(encoding="utf-8")):
        assert "NAME" in file or (ROOT / file).exists(), file


def test_every_name_in_the_paper_map_can_be_imported():
    names = NAME.findall(page("docs/paper-map.md"))
    assert len(names) > 40
    for name in names:
        assert resolve(name) is not None, name


def test_no_cell_of_the_paper_map_is_empty_and_what_is_missing_is_planned():
    for row in rows_of(page("docs/paper-map.md")):
        assert len(row) == 3, row
        assert all(row), row
        if row[0] not in ("paper", "what"):
            assert CITED.search(row[2]) or row[2] == "planned", row
            assert NAME.search(row[1]) or row[1].startswith("planned"), row


@pytest.mark.parametrize("part", ["Model", "Estimates, sets and optimism", "Algorithms"])
def test_of_model_estimates_and_algorithms_nothing_is_planned(part):
    _, _, after = page("docs/paper-map.md").partition(f"\n## {part}\n")
    section = after.partition("\n## ")[0]
    assert len(rows_of(section)) > 5
    assert "planned" not in section


def test_every_deviation_says_what_print_has_what_the_code_does_and_which_test_shows_it():
    text = page("docs/deviations.md")
    starts = list(ENTRY.finditer(text))
    found = {}
    for entry, after in zip(starts, [*starts[1:], None], strict=True):
        found[entry[1]] = text[entry.start() : after.start() if after else len(text)]
    assert {letter for letter in found if letter[1:] or letter == "D"} == ENTRIES
    for letter in ENTRIES:
        for part in ("**Print.**", "**Code.**", "**Test.**"):
            assert found[letter].count(part) == 1, (letter, part)
        shown = found[letter].partition("**Test.**")[2]
        assert CITED.search(shown), letter


def test_e1_e3_e4_shipped_experiments_run_both_readings_and_every_baseline():
    synthetic, warfarin = (
        parse_spec(shipped_specs()[name], name) for name in ("synthetic", "warfarin")
    )
    sizes = [
        (world.knobs["dim"], world.knobs["n_protected"])
        for world in synthetic.worlds
        if world.knobs["noise_scale"] == 0.001
    ]
    assert sizes == [(6, 4), (5, 3)]  # caption, text
    rhos = {one.knobs["rho"] for one in warfarin.policies if one.policy == "protected-linucb"}
    assert rhos == {0.1, 1.0}  # caption, text
    for spec in (synthetic, warfarin):
        assert spec.runs == 10
        players = {(one.policy, one.knobs.get("exponent")) for one in spec.policies}
        assert players >= {("round-robin-linucb", 0.5), ("round-robin-linucb", 0.25)}
        assert players >= {(name, None) for name in ("epsilon-greedy", "oful", "uniform")}


def test_e9_at_noise_a_tenth_the_printed_phase_outlasts_the_papers_horizon():
    for noise, ends in ((0.001, True), (0.1, False)):
        world = ss.environments.synthetic(noise_scale=noise, seed=0)
        trace = ss.simulate(ss.ProtectedLinUCB.as_intended(world.problem), world, 1000)
        assert (trace.phase[-1] != "core-set") == ends


def test_every_letter_that_the_source_cites_is_an_entry():
    for file in sorted((ROOT / "src").rglob("*.py")):
        prose = re.findall(r"#.*|\"\"\".*?\"\"\"", file.read_text(encoding="utf-8"), re.DOTALL)
        assert set(LETTER.findall("\n".join(prose))) <= ENTRIES, file


@pytest.mark.parametrize("name", POLICIES)
def test_every_knob_stands_in_the_notation(name):
    text = page("docs/notation.md")
    for knob in knobs_of(POLICIES[name]):
        assert f"`{knob}`" in text, f"{name}: {knob}"


@pytest.mark.parametrize(
    "fields", [Evidence._fields, [field.name for field in dataclasses.fields(Problem)]]
)
def test_every_field_stands_in_the_notation(fields):
    text = page("docs/notation.md")
    for field in fields:
        assert field.startswith("_") or f"`{field}`" in text, field


def test_every_name_of_the_notation_stands_in_its_file():
    for row in rows_of(page("docs/notation.md")):
        files = [ROOT / "src" / "sidestep" / name for name in re.findall(r"[\w/]+\.py", row[-1])]
        words = set(re.findall(r"\w+", "".join(file.read_text() for file in files)))
        names = [re.split(r"[^\w.]", name)[0] for name in re.findall(r"`([^`]+)`", row[1])]
        missing = [name for name in names if files and name.split(".")[-1] not in words]
        assert not missing, row


def test_every_file_that_the_notation_names_exists():
    for row in rows_of(page("docs/notation.md")):
        file = row[-1]
        assert len(row) == 5, row
        if "/" in file:
            assert (ROOT / "src" / "sidestep" / file).exists() or (ROOT / file).exists(), row


@pytest.mark.parametrize("path", DECISIONS, ids=titled)
def test_a_decision_is_one_screen_of_context_choice_and_cost(path):
    text = path.read_text(encoding="utf-8")
    places = [text.index(f"**{part}.**") for part in ("Context", "Choice", "Cost")]
    assert places == sorted(places)
    assert text.startswith(f"# {path.name[:4]}. ")
    assert len(text.splitlines()) <= 40


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "reference").glob("*.md")), ids=titled)
def test_the_names_on_a_page_of_the_reference_are_those_that_the_site_shows(path, monkeypatch):
    """`python docs/_ext/names.py` writes these parts."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    text = path.read_text(encoding="utf-8")
    assert importlib.import_module("names").written(text) == text
    assert not re.match(r"# [^\n]+\n\n(<!--|```)", text), "a page begins with what it is about"


def returned(kind: type) -> dict[str, type]:
    """A class and all classes of ours in the types of its fields, by name in full."""
    if not getattr(kind, "__module__", "").startswith("sidestep."):
        return {}
    found, hints = {f"{kind.__module__}.{kind.__name__}": kind}, get_type_hints(kind)
    for field in fields_of(kind):
        kinds = [hints[field]]
        for each in kinds:
            kinds += get_args(each)
            found |= returned(each) if isinstance(each, type) and each is not Card else {}
    return found


def fields_of(kind: type) -> list[str]:
    named = getattr(kind, "_fields", None) or [each.name for each in dataclasses.fields(kind)]
    return [name for name in named if not name.startswith("_")]


@pytest.mark.parametrize(
    "kind", [ss.Decision, ss.Recommendation, ss.RoundsLeft, ss.Ticket, Receipt, Best, Explanation]
)
def test_every_field_of_what_is_returned_stands_in_the_reference(kind):
    text = "".join(page(titled(path)) for path in (ROOT / "docs/reference").glob("*.md"))
    for name, each in returned(kind).items():
        shown = re.search(
            rf"^\.\. autoclass:: (sidestep\.|{re.escape(each.__module__)}\.)?{each.__name__}\b",
            text,
            re.M,
        )
        assert shown, name
        about = inspect.getdoc(each).partition(">>>")[0]
        for field in fields_of(each):
            assert re.search(rf"^([\w, ]+, )?{field}(, \w+)*  +\S", about, re.M), f"{name}.{field}"


def test_the_reference_explains_every_phase():
    rows = rows_of(page("docs/reference/policies.md").partition("`Decision.phase` is one of")[2])
    assert tuple(row[0].strip('"') for row in rows[1 : 1 + len(PHASES)]) == PHASES


def test_the_tables_of_the_panel_name_policies_and_are_narrow_enough_for_a_phone():
    tables, _, _ = page("docs/panel.md").partition("The command also plays")
    rows = rows_of(tables)
    names = {
        "policy",
        *(entry.label for entry in parse_spec(shipped_specs()["panel"], "p").policies),
    }
    assert len(rows) > 100
    assert {row[0] for row in rows} <= names
    assert max(map(len, rows)) <= 5
