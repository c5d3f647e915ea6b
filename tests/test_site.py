"""The site builds without a warning and without a network, and its blocks of code do what they say."""

import os
import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from test_warfarin import as_csv, grid, made_up
from typer.main import get_command

from sidestep.cli.main import app

pytestmark = pytest.mark.usefixtures("interpreted")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts]
NOTEBOOKS = [path for path in PAGES if path.read_text(encoding="utf-8").startswith("---\nfile_f")]
FENCE = re.compile(r"^```(python|toml|console|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# ([\w-]+\.(?:py|toml))\n")
LOADED = ("script", "link", "img", "iframe", "source")  # tags that make a browser fetch something


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    text: str


def blocks_of(path: Path) -> list[Block]:
    return [Block(*found) for found in FENCE.findall(path.read_text(encoding="utf-8"))]


def titled(path: Path) -> str:
    return path.relative_to(DOCS).as_posix()


def weighed(path: Path) -> Any:
    """A page as a parameter; one whose commands draw a report is not for every push."""
    draws = any("$ sidestep run" in block.text for block in blocks_of(path))
    return pytest.param(path, id=titled(path), marks=pytest.mark.full if draws else ())


RUN = [
    weighed(path)
    for path in PAGES
    if any(block.language in ("python", "console") for block in blocks_of(path))
]
TYPED = [path for path in PAGES if any(block.language == "sh" for block in blocks_of(path))]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A new folder, with an invented table for the page that reads one."""
    (tmp_path / "warfarin.csv").write_text(as_csv(grid(made_up())), newline="")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(tmp_path)]))
    return tmp_path


def run_command(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line `$ sidestep ...`, here and now; its output goes where `>` says."""
    words = shlex.split(line.removeprefix("$ "), comments=True)
    assert words[0] == "sidestep", line
    target = words[words.index(">") + 1] if ">" in words else None
    if target is not None:
        words = words[: words.index(">")]
    capsys.readouterr()
    app(words[1:], standalone_mode=False)
    said, talk = capsys.readouterr()
    assert said or talk, f"{line}: nothing was printed"
    if target is not None:
        Path(target).write_text(said, encoding="utf-8")


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::sidestep.errors.UnreachedDirectionsWarning")
@pytest.mark.parametrize("path", RUN)
def test_every_block_of_python_and_every_command_of_a_page_runs(path, folder, capsys):
    names: dict[str, object] = {"__name__": "__main__"}
    for language, text in blocks_of(path):
        named = NAMED.match(text)
        if named:
            (folder / named[1]).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, titled(path), "exec"), names)
        elif language == "console":
            for line in text.splitlines():
                run_command(line, capsys)
    sys.modules.pop("mine", None)


@pytest.mark.full
@pytest.mark.parametrize("path", TYPED, ids=titled)
def test_every_command_that_is_only_shown_has_the_options_it_is_shown_with(path):
    for _, text in (block for block in blocks_of(path) if block.language == "sh"):
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["sidestep"]:
                check_options(words[1:])


def check_options(words: list[str]) -> None:
    command = get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    known = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known, words


def test_every_page_is_named_by_a_table_of_contents():
    named = {"index.md"}
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for entry in tree.splitlines():
                if entry and not entry.startswith(":"):
                    found = [file.resolve() for file in path.parent.glob(f"{entry}.md")]
                    assert found, f"{titled(path)}: {entry}"
                    named |= {titled(file) for file in found}
    assert {titled(path) for path in PAGES} == named


class Fetched(HTMLParser):
    """What a browser would load, and where a page leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids |= {given["id"]} if given.get("id") else set()
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in LOADED and given.get("rel") != "canonical":
            self.loaded += [given[key] for key in ("src", "href") if given.get(key)]


def build(out: Path, *options: str) -> Path:
    command = ("-m", "sphinx", "--quiet", "--fail-on-warning", "--keep-going", *options)
    done = subprocess.run(
        [sys.executable, *command, "--doctree-dir", out.with_suffix(".doctrees"), DOCS, out],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout + done.stderr == ""
    return out


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> dict[Path, Fetched]:
    """Every page of the site, built without running its notebooks."""
    out = build(tmp_path_factory.mktemp("site") / "html", "-D", "nb_execution_mode=off")
    return {page: Fetched(page.read_text(encoding="utf-8")) for page in out.rglob("*.html")}


@pytest.mark.full
def test_the_site_builds_without_a_warning_and_needs_no_network(site):
    assert len(site) >= len(PAGES)
    for page, found in site.items():
        assert not [one for one in found.loaded if "//" in one], page


@pytest.mark.full
def test_every_link_within_the_site_leads_somewhere(site):
    for page, found in site.items():
        for link in found.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            there = (page.parent / name).resolve() if name else page
            assert there.exists(), f"{page.name}: {link}"
            if anchor and there in site:
                assert anchor in site[there].ids, f"{page.name}: {link}"


@pytest.mark.slow
def test_every_notebook_of_the_site_runs(tmp_path):
    assert len(NOTEBOOKS) >= 4
    out = build(tmp_path / "html")
    assert "Directed Thompson" in (out / "tutorials" / "paper.html").read_text(encoding="utf-8")
