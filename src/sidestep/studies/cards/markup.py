"""A card as HTML, by a small writer that always escapes text.

    tag("p", "a < b", class_="note")  ->  <p class="note">a &lt; b</p>

There is no inline style and no script, so that a page may forbid both; pictures are SVG with attributes
only. A notebook does not have our style sheet, so it is added in front of the card.
"""

from functools import cache
from html import escape
from importlib import resources

from sidestep.studies.cards.card import (
    BEYOND,
    OPEN,
    WITHIN,
    Card,
    Cell,
    Content,
    Gauge,
    Prose,
    Section,
    Table,
    Verdict,
)

WIDE, HIGH = 96, 18  # of a gauge, in pixels


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> str:
        """The method by which a template engine recognises HTML that it must not escape."""
        return str(self)


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """An element; text in it is escaped, markup in it is kept."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else escape(child) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def joined(*parts: Markup) -> Markup:
    """Elements one after another."""
    return Markup("".join(parts))


def card_html(card: Card) -> Markup:
    """The card as one section of a page."""
    head = tag("header", tag("h2", card.title), tag("p", card.aside, class_="aside"))
    body = [_section(section) for section in card.sections]
    return tag("section", head, *body, class_=f"card card-{card.kind}")


def notebook_html(card: Card) -> Markup:
    """The card with our style sheet in front, for a notebook."""
    return joined(Markup(f"<style>{_style()}</style>"), card_html(card))


@cache
def _style() -> str:
    return (
        resources.files("sidestep.studies.cards").joinpath("card.css").read_text(encoding="utf-8")
    )


def _section(section: Section) -> Markup:
    label = tag("h3", section.label) if section.label else Markup("")
    parts = [_content(content) for content in section.content]
    return tag("div", label, *parts, class_="part")


def _content(content: Content) -> Markup:
    if isinstance(content, Prose):
        lead = (tag("strong", content.lead), Markup(" ")) if content.lead else ()
        return tag("p", *lead, content.text)
    if isinstance(content, Table):
        return _table(content)
    note = tag("small", content.call_note) if content.call_note else Markup("")
    return tag("p", tag("code", content.call), Markup(" "), note, class_="command")


def _table(table: Table) -> Markup:
    head = Markup("")
    if table.head:
        head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in table.head)))
    columns = max(len(row) for row in (table.head, *table.rows))
    rows = [
        tag(
            "tr",
            _row_head(row, columns),
            *(tag("td", _cell(cell)) for cell in row[1:]),
        )
        for row in table.rows
    ]
    return tag("table", head, tag("tbody", *rows))


def _row_head(row: tuple[Cell, ...], columns: int) -> Markup:
    """The first cell of a row; one that stands alone is a heading of the rows below it."""
    if len(row) == 1 < columns:
        return tag("th", _cell(row[0]), scope="row", colspan=columns)
    return tag("th", _cell(row[0]), scope="row")


def _cell(cell: Cell) -> str:
    if isinstance(cell, Gauge):
        return gauge_svg(cell)
    return _verdict(cell) if isinstance(cell, Verdict) else cell


def _verdict(verdict: Verdict) -> Markup:
    """A shape and a word."""
    shapes = {
        WITHIN: tag("circle", cx=5, cy=5, r=4, fill="currentColor"),
        OPEN: joined(
            tag("circle", cx=5, cy=5, r=3.5, fill="none", stroke="currentColor"),
            tag("path", d="M5 1a4 4 0 0 1 0 8z", fill="currentColor"),
        ),
        BEYOND: tag("path", d="M5 0 10 9H0z", fill="currentColor"),
    }
    shape = tag("svg", shapes[verdict.word], width=10, height=10, aria_hidden="true")
    return tag(
        "span", shape, f" {verdict.text}", class_=f"verdict {verdict.word.replace(' ', '-')}"
    )


def gauge_svg(gauge: Gauge) -> Markup:
    """The interval as a line over its limits, shaded."""
    ends = (gauge.limit_low, gauge.limit_high, gauge.low, gauge.high, gauge.estimate, 0.0)
    places = [None if end is None else round(WIDE * gauge.share(end), 1) for end in ends]
    left, right, low, high, middle, zero = places
    left, right = left or 0.0, WIDE if right is None else right
    return tag(
        "svg",
        tag("rect", x=left, y=2, width=round(right - left, 1), height=HIGH - 4, class_="limits"),
        tag("line", x1=zero, x2=zero, y1=2, y2=HIGH - 2, class_="zero"),
        tag("line", x1=low, x2=high, y1=HIGH / 2, y2=HIGH / 2, class_="interval"),
        tag("circle", cx=middle, cy=HIGH / 2, r=3.5, class_="estimate"),
        viewBox=f"0 0 {WIDE} {HIGH}",
        width=WIDE,
        height=HIGH,
        class_="gauge",
        aria_hidden="true",
    )
