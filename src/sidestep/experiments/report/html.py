"""Parts of a self-contained HTML page: tables that scroll, inlined pictures."""

import html
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from string import Template
from typing import Any
from urllib.parse import quote

PLAIN = (
    " !$'()*,/:;=?@[]^`{|}~"  # what stands for itself in an inlined picture, which saves a quarter
)
UNKNOWN = "\N{EN DASH}"

Cells = Sequence[Mapping[str, Any]]


def page(title: str, body: str) -> str:
    """The whole page."""
    template = (
        resources.files("sidestep.experiments.report").joinpath("page.html").read_text("utf-8")
    )
    return Template(template).substitute(title=html.escape(title), body=body)


def text(words: object) -> str:
    """Text, escaped for HTML."""
    return html.escape(str(words))


def number(value: Any) -> str:
    """A number to four digits, words as they are, a dash for what is not known."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
    return str(value)


def brief(value: float | None) -> str:
    """A number to three digits, for sentences."""
    if value is None or math.isnan(value):
        return UNKNOWN
    if abs(value) < 1e-9:  # rounding
        return "0"
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def interval(low: float | None, high: float | None) -> str:
    """An interval as text."""
    known = low is not None and high is not None and not math.isnan(low)
    return f"{number(low)} to {number(high)}" if known else UNKNOWN


def share(part: float) -> str:
    """A share as per cent."""
    return f"{100 * part:.0f}%"


def slope(value: float | None) -> str:
    """An exponent to two digits."""
    if value is None or math.isnan(value):
        return UNKNOWN
    return f"{value:.2f}".replace("-0.00", "0.00")


def table(rows: Cells, caption: str = "") -> str:
    """A table that scrolls inside its box; the first column names the row."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    wordy = {name for name in names if name == names[0] or _is_prose(rows, name)}
    head = "".join(_cell("th", name, name in wordy, ' scope="col"') for name in names)
    body = "".join(
        "<tr>"
        + _cell("th", number(row.get(names[0])), wordy=True, more=' scope="row"')
        + "".join(_cell("td", number(row.get(n)), n in wordy) for n in names[1:])
        + "</tr>\n"
        for row in rows
    )
    title = f'<p class="soft">{text(caption)}</p>\n' if caption else ""
    return (
        f'{title}<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table></div>\n"
    )


def _is_prose(rows: Cells, name: str) -> bool:
    """Whether a column contains words, not numbers as text."""
    return any(str(row.get(name, ""))[:1].isalpha() for row in rows)


def _cell(kind: str, words: str, wordy: bool, more: str = "") -> str:  # noqa: FBT001
    left = ' class="words"' if wordy else ""
    return f"<{kind}{left}{more}>{text(words)}</{kind}>"


def picture(svg: bytes, words: str, *, wide: bool = False, caption: str | None = None) -> str:
    """An inlined picture, on white also in dark mode; `words` are its alternative text and caption."""
    data = quote(svg.decode(), safe=PLAIN)
    kind = ' class="wide"' if wide else ""
    image = f'<img src="data:image/svg+xml,{data}" alt="{text(words)}" loading="lazy">'
    below = words if caption is None else caption
    said = f"<figcaption>{text(below)}</figcaption>" if below else ""
    return f'<figure{kind}><div class="sheet">{image}</div>{said}</figure>\n'


def pictures_row(drawn: Sequence[str]) -> str:
    """Pictures beside each other, as many as fit."""
    return f'<div class="figures">{"".join(drawn)}</div>\n' if drawn else ""


def paragraphs(parts: Mapping[str, Sequence[str]]) -> str:
    """Sentences under a word each: what the paper says, what was found; several as a list."""
    said = []
    for name, lines in parts.items():
        if len(lines) > 1:
            said.append(f'<p class="told"><b>{text(name)}.</b></p>\n{items([*map(text, lines)])}')
        elif lines:
            said.append(f'<p class="told"><b>{text(name)}.</b> {text(lines[0])}</p>\n')
    return "".join(said)


def section(level: int, anchor: str, title: str, *parts: str) -> str:
    """A heading that can be linked to, and what follows it."""
    name = f' id="{text(anchor)}"' if anchor else ""
    return f"<h{level}{name}>{text(title)}</h{level}>\n" + "".join(parts)


def items(lines: Sequence[str]) -> str:
    """A list; empty without lines."""
    return "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>\n" if lines else ""


def details(title: str, content: str) -> str:
    """A collapsed section."""
    return f"<details><summary>{text(title)}</summary>\n{content}</details>\n" if content else ""
