"""Docstrings are plain text that a terminal can show; here they become what Sphinx reads.

A line `name   what it is` is a parameter, an indented block is shown as it stands, and no bar, star or
underscore means anything.
"""

import re
from typing import Any

PARAMETER = re.compile(r"^([A-Za-z]\w*(?:, [A-Za-z]\w*)*) {2,}(\S.*)$")
CODE = re.compile(r"`+([^`]+)`+")
DRAWN = re.compile(r"^[|`]-- ")
SPECIAL = re.compile(r"([\\*|_])")


def plain(text: str) -> str:
    """A line of prose with its code marked, and nothing else in it meaning anything."""
    parts = CODE.split(text)  # prose, code, prose, ...
    return "".join(
        f"``{part}``" if k % 2 else SPECIAL.sub(r"\\\1", part) for k, part in enumerate(parts)
    )


def paragraphs(lines: list[str]) -> list[list[str]]:
    """Lines between empty ones."""
    found: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [part for part in found if part]


def fields(lines: list[str]) -> list[str]:
    """A paragraph in which lines name parameters; what names none is prose."""
    out: list[str] = []
    inside = False
    for line in lines:
        named = PARAMETER.match(line)
        if named:
            out += [""] if not inside else []
            out += [f":param {name}: {plain(named[2])}" for name in named[1].split(", ")]
            inside = True
        elif inside and line.startswith(" "):
            out.append(f"    {plain(line.strip())}")
        else:
            out += [""] if inside else []
            out.append(plain(line))
            inside = False
    return out


def converted(lines: list[str]) -> list[str]:
    """A docstring as reStructuredText."""
    out: list[str] = []
    for part in paragraphs(lines):
        if part[0].startswith(">>>"):
            out += part
        elif part[0].startswith(" ") or any(map(DRAWN.match, part)):
            out += ["::", "", *(f"    {line}" for line in part)]
        else:
            out += fields(part)
        out.append("")
    return out


def _convert(_app: Any, _what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    lines[:] = converted(lines)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", _convert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
