"""Generated parts of docs/reference, which make its pages readable as plain files.

    python docs/_ext/names.py       writes them again; a test compares the pages with them

Before every block that Sphinx fills in (classes, functions, commands, requests) there is a table of the
names in it, with the first line of each docstring. After a class or function in such a block there is a
comment with its signature and parameters, which Sphinx skips.
"""

import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from sidestep.cli.main import app

REFERENCE = Path(__file__).parents[1] / "reference"
BEGIN, END = "<!-- names: written by docs/_ext/names.py -->", "<!-- end of names -->"
BLOCK = re.compile(
    rf"(?:{BEGIN}.*?{END}\n\n)?(^```\{{(eval-rst|commands|interface)\}}\n(.*?)^```)",
    re.MULTILINE | re.DOTALL,
)
DIRECTIVE = re.compile(
    r"^\.\. (auto\w+|currentmodule):: (\S+?)(?:\(\))?$((?:\n +:.*)*)", re.MULTILINE
)
MEMBERS = re.compile(r":members: (.+)")
COMMENT = re.compile(r"^\.\.\n(?:   .*\n|\n(?=   ))+", re.MULTILINE)

Named = tuple[str, str]


def written(text: str) -> str:
    """A page with its lists as they should be."""
    return BLOCK.sub(lambda found: table(list(names_of(found[2], found[3]))) + _block(found), text)


def _block(found: re.Match[str]) -> str:
    """A block; one of Sphinx's own directives is followed by what it will show, as comments."""
    if found[2] != "eval-rst":
        return found[1]
    module, parts = "sidestep", []
    for part in re.split(r"\n\n+", COMMENT.sub("", found[3]).strip()):
        parts.append(part)
        for directive, name, options in DIRECTIVE.findall(part):
            if directive == "currentmodule":
                module = name
            elif directive != "automodule":
                parts += comments(module, name, options)
    return "```{eval-rst}\n" + "\n\n".join(parts) + "\n```"


def comments(module: str, name: str, options: str) -> Iterator[str]:
    """Signature and docstring of a name and of its members, where there is more than one line to say."""
    thing, shown = found(module, name), name.rpartition(".")[2]
    listed = MEMBERS.search(options)
    yield from comment(shown, thing)
    for member in listed[1].split(", ") if listed else ():
        yield from comment(f"{shown}.{member}", inspect.getattr_static(thing, member))


def comment(shown: str, thing: Any) -> Iterator[str]:
    """One comment, or none for a docstring of one line: the table has it."""
    about = inspect.getdoc(thing) or ""
    about = about.partition("\n>>> ")[0].strip()
    if "\n" in about:
        lines = [f"{shown}{signature(thing)}", "", *about.splitlines()]
        yield "..\n" + "\n".join(f"   {line}".rstrip() for line in lines)


def signature(thing: Any) -> str:
    """The parameters that a caller names, with their defaults."""
    inner = getattr(thing, "__func__", thing)
    if not callable(inner):
        return ""
    kept = [
        each.replace(annotation=inspect.Parameter.empty)
        for name, each in inspect.signature(inner).parameters.items()
        if name not in ("self", "cls")
    ]
    text = str(inspect.Signature(kept))
    return re.sub(r"<factory>|<[^>]* at 0x[^>]*>", "...", text)


def table(names: list[Named]) -> str:
    """Names and what they are."""
    rows = [f"| `{name}` | {plain(about)} |" for name, about in names]
    return "\n".join([BEGIN, "", "| name | what it is |", "|---|---|", *rows, "", END, "", ""])


def plain(text: str) -> str:
    """Text for a cell, in which no bar and no bracket means anything."""
    return text.replace("|", "&#124;").replace("<", "&lt;")


def names_of(kind: str, block: str) -> Iterator[Named]:
    """What a block will show."""
    if kind == "commands":
        yield from commands(get_command(app), ("sidestep",))
    elif kind == "interface":
        yield from requests()
    else:
        yield from documented(block)


def commands(command: Any, path: tuple[str, ...]) -> Iterator[Named]:
    """Every command that does something."""
    below = getattr(command, "commands", None)
    if below:
        for name, inner in below.items():
            yield from commands(inner, (*path, name))
    else:
        yield " ".join(path), first_line(command.help)


def requests() -> Iterator[Named]:
    """Every request of the service."""
    described = json.loads((REFERENCE.parent / "openapi.json").read_text(encoding="utf-8"))
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", first_line(operation["description"])


def documented(block: str) -> Iterator[Named]:
    """Classes with the members that are shown, functions, and what a module holds."""
    module = "sidestep"
    for directive, name, options in DIRECTIVE.findall(block):
        if directive == "currentmodule":
            module = name
        elif directive == "automodule":
            yield from held(pkgutil.resolve_name(name)) if ":members:" in options else ()
        else:
            thing = found(module, name)
            shown = name.rpartition(".")[2]
            yield shown, first_line(inspect.getdoc(thing))
            listed = MEMBERS.search(options)
            for member in listed[1].split(", ") if listed else ():
                about = inspect.getdoc(inspect.getattr_static(thing, member))
                yield f"{shown}.{member}", first_line(about)


def found(module: str, name: str) -> Any:
    """What a directive names: in full, or below the current module."""
    within, _, leaf = (name if name.startswith("sidestep.") else f"{module}.{name}").rpartition(".")
    return getattr(pkgutil.resolve_name(within), leaf)  # a function may have the name of its module


def held(module: Any) -> Iterator[Named]:
    """The classes of a module, in the order of its source."""
    for name, thing in vars(module).items():
        if inspect.isclass(thing) and thing.__module__ == module.__name__:
            yield name, first_line(inspect.getdoc(thing))


def first_line(text: str | None) -> str:
    """What a thing is, in one line."""
    return (text or "").strip().partition("\n")[0]


if __name__ == "__main__":
    for page in sorted(REFERENCE.glob("*.md")):
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
