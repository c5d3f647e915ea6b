"""A card as plain text: labels on the left, tables aligned, sentences wrapped."""

import re
import textwrap
from collections.abc import Iterator

from sidestep.studies.cards.card import (
    Card,
    Cell,
    Command,
    Content,
    Gauge,
    Prose,
    Section,
    Table,
    Verdict,
)

INDENT = 2
GAP = 2
BAR = 15  # characters of a gauge
# characters that a terminal obeys instead of showing: controls, and those that turn the direction
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def card_text(card: Card, width: int = 80, options: str | None = None) -> str:
    """The whole card, no line longer than `width` unless a single word is.

    It shows calls in Python; with `options`, even empty ones, the commands of a terminal.
    """
    room = max(len(section.label) for section in card.sections) if card.sections else 0
    lines = [_spread(card.title, card.aside, width)]
    for section in card.sections:
        if section.spaced:
            lines.append("")
        lines.extend(_section(section, room + GAP if section.label else 0, width, options))
    return harmless("\n".join(line.rstrip() for line in lines))


def harmless(text: str) -> str:
    """The text with what a terminal would obey shown as escapes, in JSON as well."""
    return OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _spread(left: str, right: str, width: int) -> str:
    gap = width - len(left) - len(right)
    if not right:
        return left
    return left + " " * gap + right if gap > 1 else f"{left}\n{right:>{width}}"


def _section(section: Section, room: int, width: int, options: str | None) -> Iterator[str]:
    margin = " " * (INDENT + room)
    label = " " * INDENT + section.label.ljust(room)
    for content in section.content:
        for line in _content(content, width - len(margin), options):
            yield label + line
            label = margin


def _content(content: Content, width: int, options: str | None) -> list[str]:
    if isinstance(content, Prose):
        words = f"{content.lead} {content.text}".strip()
        return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)
    if isinstance(content, Command):
        if options is None:
            return [content.call, *textwrap.wrap(content.call_note, width)]
        return [f"{content.command} {options}".strip(), *textwrap.wrap(content.command_note, width)]
    return _table(content, width)


def _table(table: Table, width: int) -> list[str]:
    body = [[_cell(cell) for cell in row] for row in table.rows]
    heads: list[list[list[str]]] = [[list(table.head)], _broken(table.head)] if table.head else [[]]
    for head in heads:
        lines = _aligned([*head, *body], width)
        if lines is not None:
            return lines
    return [line for row in [*heads[0], *body] for line in _stacked(row, width)]


def _broken(head: tuple[str, ...]) -> list[list[str]]:
    """A head on two lines: the last word of every cell below the others."""
    parts = [name.rpartition(" ") for name in head]
    return [[first for first, _, _ in parts], [last for _, _, last in parts]]


def _aligned(rows: list[list[str]], width: int) -> list[str] | None:
    """Cells under each other; None where that is too wide."""
    columns = max(len(row) for row in rows)
    alone = [len(row) == 1 < columns for row in rows]  # a heading of the rows below
    rows = [row + [""] * (columns - len(row)) for row in rows]
    filled = [row for row, heads in zip(rows, alone, strict=True) if not heads] or rows
    wide = [max(len(row[j]) for row in filled) for j in range(columns)]
    gap = 3 if sum(wide) + 3 * columns <= width else 2
    for widths in (wide, _tight(filled)):
        lines = [(" " * gap).join(map(str.ljust, row, widths)).rstrip() for row in rows]
        if max(map(len, lines)) <= width:
            return lines
    return None


def _tight(rows: list[list[str]]) -> list[int]:
    """Widths of columns by the rows that fill them all: a shorter row may run over its columns."""
    full = [row for row in rows if all(row)] or rows
    return [max(len(row[j]) for row in (full if j else rows)) for j in range(len(rows[0]))]


def _stacked(row: list[str], width: int) -> list[str]:
    """A row that is too wide, on two lines."""
    cells = [cell for cell in row if cell]
    return textwrap.wrap("  ".join(cells), width, subsequent_indent="  ", break_long_words=False)


def _cell(cell: Cell) -> str:
    if isinstance(cell, Gauge):
        return gauge_text(cell)
    return cell.text if isinstance(cell, Verdict) else cell


def gauge_text(gauge: Gauge) -> str:
    """The interval as a line between its limits: ├ and ┤ are the limits, ● the estimate."""
    marks = [" "] * BAR
    marks[_place(gauge, 0.0)] = "·"
    for place in range(_place(gauge, gauge.low), _place(gauge, gauge.high) + 1):
        marks[place] = "─"
    for end, mark in ((gauge.low, "<"), (gauge.high, ">")):
        if not gauge.shows(end):
            marks[_place(gauge, end)] = mark
    for limit, mark in ((gauge.limit_low, "├"), (gauge.limit_high, "┤")):
        if limit is not None:
            marks[_place(gauge, limit)] = mark
    marks[_place(gauge, gauge.estimate)] = "●"
    return "".join(marks)


def _place(gauge: Gauge, value: float) -> int:
    return round(gauge.share(value) * (BAR - 1))
