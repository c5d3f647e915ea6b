"""A card: one value that says the same on a terminal, on a page, in a notebook and to a program."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

WITHIN, BEYOND, OPEN = "within", "beyond", "not settled"
REACH = 1.5  # a gauge extends to this multiple of the limit on either side
VERDICTS = {WITHIN: "within limits", BEYOND: "beyond limits", OPEN: "not settled"}


class Gauge(NamedTuple):
    """An interval against its limits, drawn as a line; None: no limit on that side."""

    estimate: float
    low: float
    high: float
    limit_low: float | None
    limit_high: float | None

    @property
    def reach(self) -> float:
        """The largest change that is drawn, to either side."""
        limits = [abs(limit) for limit in (self.limit_low, self.limit_high) if limit]
        return REACH * max(limits or [abs(self.low), abs(self.high)]) or 1.0

    def share(self, value: float) -> float:
        """Position of a change between the two ends, in 0..1; a change beyond an end is at that end."""
        return min(max(0.5 + value / (2 * self.reach), 0.0), 1.0)

    def shows(self, value: float) -> bool:
        """Whether a change is not beyond the ends."""
        return abs(value) <= self.reach


class Verdict(NamedTuple):
    """Within, beyond, or not settled: a word and a shape, never a colour alone."""

    word: str

    @property
    def text(self) -> str:
        """The text on the card."""
        return VERDICTS[self.word]


Cell: TypeAlias = str | Gauge | Verdict


class Prose(NamedTuple):
    """A few sentences; `lead` is what they are about."""

    text: str
    lead: str = ""


class Table(NamedTuple):
    """Rows of cells, aligned."""

    rows: tuple[tuple[Cell, ...], ...]
    head: tuple[str, ...] = ()


class Command(NamedTuple):
    """What to do next: a call in Python, a command on a terminal; a page shows a form instead."""

    call: str
    command: str  # its storage is not part of it: text(options="-s pilot.db")
    call_note: str = ""
    command_note: str = ""


Content: TypeAlias = Prose | Table | Command


class Section(NamedTuple):
    """A part of a card under one label."""

    label: str
    content: tuple[Content, ...]
    spaced: bool = False  # an empty line before it


@dataclass(frozen=True)
class Card:
    """The words for a person, and the numbers behind them."""

    kind: str  # "ask", "tell", "best", ...
    title: str
    aside: str = ""
    sections: tuple[Section, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)  # in the study's units

    def to_json(self) -> dict[str, Any]:
        """The numbers, and the card as text."""
        return {"card": self.kind, "title": self.title, **self.data, "text": str(self)}

    def text(self, width: int = 80, options: str | None = None) -> str:
        """The card as plain text, for Python.

        width     length of the longest line
        options   for a terminal: its commands, each with these options; may be empty
        """
        from sidestep.studies.cards.text import card_text  # noqa: PLC0415

        return card_text(self, width, options)

    def html(self) -> str:
        """The card as a fragment of a page, without style."""
        from sidestep.studies.cards.markup import card_html  # noqa: PLC0415

        return card_html(self)

    def __repr__(self) -> str:
        return f"Card({self.kind!r}, {self.title!r})"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from sidestep.studies.cards.markup import notebook_html  # noqa: PLC0415

        return notebook_html(self)


class Printed:
    """Something that prints as its card."""

    card: Card

    def to_json(self) -> dict[str, Any]:
        """The numbers of its card, and the card as text, for a program."""
        return self.card.to_json()

    def __str__(self) -> str:
        return str(self.card)

    def _repr_html_(self) -> str:
        return self.card._repr_html_()


def verdict_of(low: float, high: float, limits: tuple[float | None, float | None]) -> Verdict:
    """Within where the whole interval is inside, beyond where it is outside, else not settled."""
    floor = -float("inf") if limits[0] is None else limits[0]
    ceiling = float("inf") if limits[1] is None else limits[1]
    if floor <= low and high <= ceiling:
        return Verdict(WITHIN)
    if high <= floor or low >= ceiling:
        return Verdict(BEYOND)
    return Verdict(OPEN)
