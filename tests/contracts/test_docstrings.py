"""Every public name says what its parameters are, and its example does what it shows."""

import doctest
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sidestep as ss
from sidestep.service.remote import RemoteStudy

pytestmark = pytest.mark.usefixtures("interpreted")

NAMED = re.compile(r"^ *([A-Za-z]\w*(?:, [A-Za-z]\w*)*) {2,}\S", re.MULTILINE)
ROOMS = ("environments", "policies", "theory")
NO_EXAMPLE = {"Client", "warfarin", "check_policy"}  # a service, a table, a policy of your own
UNSAID = {"self", "cls", "settings"}


def public() -> Iterator[tuple[str, Any]]:
    """Name and object of everything that a user calls."""
    for name in ss.__all__:
        yield name, getattr(ss, name)
    for room in ROOMS:
        for name in getattr(ss, room).__all__ if room != "theory" else bounds():
            yield f"{room}.{name}", getattr(getattr(ss, room), name)
    yield "testing.check_policy", ss.testing.check_policy


def bounds() -> list[str]:
    return [
        name
        for name, thing in vars(ss.theory).items()
        if inspect.isfunction(thing)
        and thing.__module__ == ss.theory.__name__
        and not name.startswith("_")
    ]


CALLED = {
    name: thing
    for name, thing in public()
    if (inspect.isclass(thing) or inspect.isfunction(thing))
    and name.rpartition(".")[2] not in {"Policy", "State"}
}


HEAVY = {"environments.diabetes"}  # loads scikit-learn
EXAMPLES = [pytest.param(name, marks=pytest.mark.full if name in HEAVY else ()) for name in CALLED]


def parameters_of(thing: Any) -> set[str]:
    """The parameters of a public name; for a study, those of `create`."""
    called = ss.Study.create if thing is ss.Study else thing
    return {
        name
        for name, parameter in inspect.signature(called).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    } - UNSAID


def named_in(text: str) -> set[str]:
    return {name for line in NAMED.findall(text) for name in line.split(", ")}


@pytest.mark.parametrize("name", CALLED)
def test_every_parameter_of_a_public_name_is_explained(name):
    thing = CALLED[name]
    said = inspect.getdoc(ss.Study.create if thing is ss.Study else thing) or ""
    assert parameters_of(thing) <= named_in(said)


@pytest.mark.parametrize("verb", ["open", "ask", "tell", "correct", "withdraw", "close", "best"])
def test_every_parameter_of_a_verb_of_a_study_is_explained(verb):
    method = getattr(ss.Study, verb)
    assert parameters_of(method) <= named_in(inspect.getdoc(method) or "")


@pytest.mark.full
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_public_name_does_what_it_shows(name):
    thing = CALLED[name]
    if name.rpartition(".")[2] in NO_EXAMPLE:
        pytest.skip("a page of the site has one")
    globs = vars(sys.modules[thing.__module__]).copy()
    (found,) = doctest.DocTestFinder(recurse=False).find(thing, name, globs=globs)
    assert found.examples, f"{name} has no example"
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(found, out=said.append)
    assert result.failed == 0, "".join(said)


def test_every_public_name_stands_on_a_page_of_the_reference():
    pages = (Path(__file__).parents[2] / "docs" / "reference").glob("*.md")
    said = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = {
        name.rpartition(".")[2] for name in re.findall(r"auto(?:class|function):: ([\w.]+)", said)
    }
    called = {
        name.rpartition(".")[2]
        for name, thing in public()
        if inspect.isclass(thing) or inspect.isfunction(thing)
    }
    assert called <= shown


def verbs_of(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_page_of_the_client_says_which_verbs_a_study_behind_it_has():
    page = Path(__file__).parents[2] / "docs" / "reference" / "client.md"
    has, has_not = (
        page.read_text(encoding="utf-8").partition("<!-- names")[0].split("It does not have")
    )
    here, there = verbs_of(ss.Study) - {"create", "open", "list"}, verbs_of(RemoteStudy)
    assert set(re.findall(r"`(\w+)`", has)) - {"open", "create", "Study"} == there
    assert set(re.findall(r"`(\w+)`", has_not)) - {"show"} == here - there
