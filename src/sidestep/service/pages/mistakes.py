"""Reads the rows of the form for a new study, and notes every mistake by the field that it is about.

A row is built part by part (name, range, step, ...): the part that a constructor refuses is the mistake.
"""

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from sidestep.errors import InputError
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import LOG, Outcome
from sidestep.studies.values import (
    YES_NO,
    checked_name,
    checked_positive,
    checked_text,
    read_number,
)

T = TypeVar("T")
FIGURE = re.compile(r"[+\-\u2212]?[\d.,]+([eE][+-]?\d+)?")  # 6.25; and 6,25, refused with advice
FACTOR = {
    "name": "factor",
    "unit": "unit",
    "low": "from",
    "high": "to",
    "step": "step",
    "levels": "or levels",
    "baseline": "now",
    "largest": "largest change a visit",
    "scale": "what counts",
    "offset": "added before the logarithm",
}
TARGET = {
    "name": "outcome",
    "unit": "unit",
    "goal": "goal",
    "low": "plausible from",
    "high": "to",
    "baseline": "now, if known",
    "matters": "a difference that matters",
    "noise": "noise of a result, roughly",
    "scale": "changes are",
    "never": "never outside",
}
PROTECTED = {
    "name": "outcome",
    "unit": "unit",
    "low": "plausible from",
    "high": "to",
    "tolerance": "tolerance",
    "harm": "what harms",
    "baseline": "now, if known",
    "noise": "noise of a result, roughly",
    "scale": "changes are",
    "never": "never outside",
}
CHOSEN = ("goal", "harm", "scale")  # fields that are chosen from a list
ANY = "any"  # of a largest change: as much as you like


class Mistakes(dict[str, str]):
    """What is wrong, by the id of its field; "" is the form as a whole."""

    def tried(self, field: str, make: Callable[[], T], **words: str) -> T | None:
        """What `make` returns; None if it refuses, and its sentence is noted.

        The first sentence of a field counts. `words` are replaced by the labels of the form.
        """
        try:
            return make()
        except InputError as error:
            text = str(error)
            for word, label in words.items():
                text = text.replace(word, label)
            self.setdefault(field, text)
            return None


@dataclass(frozen=True)
class Line:
    """A row of the form."""

    mistakes: Mistakes
    labels: Mapping[str, str]
    cells: Mapping[str, str]
    prefix: str
    row: int | None = None  # from 1; None: there is only one

    @property
    def name(self) -> str:
        """How the row is called in a sentence."""
        return self.cells["name"] or ("the goal" if self.row is None else f"row {self.row}")

    def what(self, field: str) -> str:
        """A field as the form names it: “from” of heat."""
        return f"“{self.labels[field]}” of {self.name}"

    def blame(self, field: str, text: str) -> None:
        """Note a mistake; the first of a field counts."""
        self.mistakes.setdefault(field_id(self.prefix, field, self.row), text)

    def tried(self, field: str, make: Callable[[], T]) -> T | None:
        """What `make` returns; None if it refuses, and its sentence is noted in the form's words."""
        label, word = self.what(field), f"{field} of {self.name}"
        words = {f"the {word}": label, word: label, 'scale="log"': "a logarithmic scale"}
        return self.mistakes.tried(field_id(self.prefix, field, self.row), make, **words)

    def number(self, field: str) -> float | None:
        """The typed number; None if nothing was typed, or no number, which is noted."""
        text = self.cells[field]
        return self.tried(field, lambda: read_number(self.what(field), text)) if text else None

    def ends(self, instead: str = "") -> tuple[float, float] | None:
        """The two ends of the range; None where a mistake was noted."""
        for field in ("low", "high"):
            if not self.cells[field]:
                self.blame(field, f"{self.what(field)} must be a number{instead}, got nothing")
        low, high = self.number("low"), self.number("high")
        if low is None or high is None:
            return None
        if low >= high:
            told = f"got {low:g} and {high:g}"
            self.blame(
                "low", f"{self.what('low')} must be less than “{self.labels['high']}”, {told}"
            )
            return None
        return low, high

    def check_words(self) -> None:
        """Check name and unit."""
        what = f"“{self.labels['name']}”" + (f" in row {self.row}" if self.row else " of the goal")
        self.tried("name", lambda: checked_name(what, self.cells["name"]))
        self.tried("unit", lambda: checked_text(self.what("unit"), self.cells["unit"]))


def field_id(prefix: str, field: str, row: int | None = None) -> str:
    """The id of a field on the page: t.low, f.low.2."""
    return f"{prefix}.{field}" + ("" if row is None else f".{row}")


def factor_of(line: Line) -> Factor | None:
    """The factor; None where it cannot be built."""
    line.check_words()
    unit = line.cells["unit"]
    if line.cells["levels"]:
        factor = line.tried("levels", lambda: Factor(line.name, unit=unit, levels=_levels(line)))
    else:
        factor, step, ends = None, line.number("step"), line.ends(", or levels must be given")
        if ends is not None:
            factor = line.tried("low", lambda: Factor(line.name, *ends, unit=unit))
        if factor and step is not None:
            factor = line.tried("step", partial(replace, factor, step=step)) or factor
    words = not factor.is_number if factor else bool(line.cells["levels"])
    now: Any = line.cells["baseline"] if words else line.number("baseline")
    if factor and now not in ("", None):
        factor = line.tried("baseline", partial(replace, factor, baseline=now)) or factor
    return _scaled(line, factor) if factor else None


def _scaled(line: Line, factor: Factor) -> Factor:
    """The factor with its logarithmic scale, if it has one."""
    scale, offset = line.cells["scale"] or None, line.number("offset")
    if offset is not None and scale is None:
        what = f"{line.what('offset')} needs a logarithmic scale"
        line.blame("offset", f"{what}, got {offset:g} without")
        return factor
    field = "scale" if offset is None else "offset"
    return line.tried(field, partial(replace, factor, scale=scale, offset=offset)) or factor


def step_of(line: Line, factor: Factor | None, *, asked_for: bool) -> float | None:
    """The largest change a visit; None: as much as you like, which may have to be said."""
    text = line.cells["largest"]
    if text.lower() == ANY or (factor and not factor.is_number and not text):
        return None
    if not text:
        if asked_for and factor:
            line.blame(
                "largest",
                f"{line.what('largest')} must be given in the words of a clinic, or a caution: the "
                "first visit may go to either end; write “any” where that is meant, got nothing",
            )
        return None
    return line.tried("largest", lambda: _step(line, factor, text))


def _step(line: Line, factor: Factor | None, text: str) -> float:
    what = line.what("largest")
    step = checked_positive(what, read_number(what, text))
    if factor is None:
        return step
    if not factor.is_number:
        raise InputError(f"{what} is for factors that are numbers, got {text!r}")
    grid = sorted(float(value) for value in factor.grid)
    least = min((high - low for low, high in itertools.pairwise(grid)), default=0.0)
    if step < least * (1 - 1e-9):
        raise InputError(f"{what} must be at least its smallest step {least:g}, got {text!r}")
    return step


def _levels(line: Line) -> list[Any]:
    """Levels as people write them: 0; 6.25; 12.5, or words; no and yes are no words."""
    parts = [part.strip() for part in line.cells["levels"].replace(";", "\n").splitlines()]
    parts = [part for part in parts if part]
    if {part.lower() for part in parts} in ({"yes", "no"}, {"true", "false"}):
        return [YES_NO[part.lower()] for part in parts]
    if all(FIGURE.fullmatch(part) for part in parts):
        return [read_number("a level", part) for part in parts]
    return parts


def outcome_of(line: Line) -> Outcome | None:
    """The goal or a protected outcome; None where it cannot be built."""
    line.check_words()
    ends, goal, unit = line.ends(), line.cells.get("goal"), line.cells["unit"]
    given = ends or (0.0, 1.0)  # so that the other fields are checked all the same
    outcome = line.tried("name", lambda: Outcome(line.name, unit, goal=goal, range=given))
    if ends is None:
        line.number("baseline")
    fields = ("matters", "tolerance", "noise", *(("baseline", "never") if ends else ()))
    if ends and outcome and line.cells["scale"]:
        logged = line.tried("scale", partial(replace, outcome, scale=LOG))
        outcome, fields = logged or outcome, fields if logged else ()
    for field in fields:
        if outcome and line.cells.get(field):
            outcome = line.tried(field, partial(_with, line, outcome, field)) or outcome
    return outcome


def _with(line: Line, outcome: Outcome, field: str) -> Outcome:
    what, text, log = line.what(field), line.cells[field], outcome.is_log
    value: Any
    if field == "tolerance":
        value = _tolerance(line, log=log)
    elif field in ("never", "noise"):
        value = pair_of(what, text, log=log and field == "noise", whole=field == "never")
    else:
        value = _change(what, text, log=log and field == "matters")
    return Outcome(**{**outcome.to_config(), field: value})


def _change(what: str, text: str, *, log: bool) -> Any:
    """A number; where changes are in percent, its text with the sign."""
    figure = text.strip()
    if not log and figure.endswith("%"):
        raise InputError(f"{what} may be in percent only where changes are, got {figure!r}")
    number = read_number(what, figure.removesuffix("%"))
    if not log:
        return number
    if number <= -100:
        raise InputError(f"{what} must be above -100%, got {figure!r}")
    return f"{number!r}%"


def pair_of(what: str, text: str, *, log: bool, whole: bool) -> Any:
    """From where to where: 3 to 8; `whole`: an end may be left out, but not the “to”."""
    first, to, last = text.partition("to")
    if not to and not whole:
        return _change(what, text, log=log)
    if not to or not (first.strip() or last.strip()) or not (whole or first.strip()):
        such = "3.5 to 5.5, or to 5.5" if whole else "3 to 8"
        raise InputError(f"{what} must go from where to where, such as {such}, got {text!r}")
    ends = [_change(what, end, log=log) if end.strip() else None for end in (first, last)]
    return ends[0], ends[1]


def _tolerance(line: Line, *, log: bool) -> Any:
    """The tolerance: a number, or "-0.2 to 0.5" if the two sides differ.

    If only an increase or only a decrease is harmful, the other side has no limit.
    """
    what, text = line.what("tolerance"), line.cells["tolerance"]
    if "to" in text:
        low, high = pair_of(what, text, log=log, whole=True)
        sizes = [_figure(end) for end in (low, high)]
        if sizes[0] > 0 or sizes[1] < 0 or low == high:
            raise InputError(
                f"{what} must go from a fall to a rise, such as -0.2 to 0.5, got {text!r}"
            )
        return low, high
    size = _change(what, text, log=log)
    checked_positive(what, _figure(size))
    if line.cells["harm"] not in ("rise", "fall"):
        return size
    if line.cells["harm"] == "rise":
        return None, size
    return (f"-{size}" if log else -size), None


def _figure(end: Any) -> float:
    """The number of an end, in its unit or in percent; 0 of one that is open."""
    return float(str(end).removesuffix("%")) if end is not None else 0.0
