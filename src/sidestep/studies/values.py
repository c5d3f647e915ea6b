"""Checks of numbers and names as people write them, and the one scale on which the arithmetic works.

    factor    (value - baseline) / half-range; a grid is counted in steps, every word has a coordinate
    outcome   (value - baseline) / half-range; with the opposite sign for a target that should fall

So one prior, one resolution and one noise floor serve mmHg and mmol/L. Standardised numbers are rounded
at 1e-12. Without rounding, their last digit would depend on the unit. With it, the same study in other
units asks the same questions, ties included.

Nothing here needs numpy: a result can be recorded where numpy is missing.
"""

import dataclasses
import math
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import date
from decimal import Decimal
from numbers import Real
from typing import Any

from sidestep.errors import InputError

LARGEST = 1e15  # a float does not represent larger numbers exactly
LONGEST_NAME = 100

COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")  # a decimal comma
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # which may as well separate thousands


def checked_number(what: str, value: object) -> float:
    """The value as a float; raises one sentence if it is not a usable number."""
    if isinstance(value, str):
        raise InputError(f"{what} must be a number, got the text {value!r:.40}{_advice(value)}")
    usable = isinstance(value, (Real, Decimal)) and not isinstance(value, bool)
    try:
        number = float(value) if usable else math.nan  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{what} must be a finite number, got {shown(value)}")
    if abs(number) > LARGEST:
        raise InputError(f"{what} must lie within +-{LARGEST:g}, got {shown(value)}")
    return number + 0.0  # + 0.0 turns -0.0 into 0.0


def read_number(what: str, text: str) -> float:
    """A number from its text, with a decimal point, or with a comma where that can mean nothing else.

    4,2 and 0,125 are understood; 1,380 may be 1.38 or 1380 and is refused. One sentence with advice.
    """
    cleaned = text.strip().replace("\u2212", "-")
    if COMMA.fullmatch(cleaned) and not GROUPED.fullmatch(cleaned):
        cleaned = cleaned.replace(",", ".")
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", cleaned):
        raise InputError(f"{what} must be a number, got {text.strip()!r:.40}{_advice(cleaned)}")
    return checked_number(what, float(cleaned))


def _advice(text: str) -> str:
    """What to write instead, if it can be guessed."""
    text = text.strip()
    if GROUPED.fullmatch(text):
        return f", which may be {text.replace(',', '.')} or {text.replace(',', '')}: write which"
    if COMMA.fullmatch(text):
        return f"; write {text.replace(',', '.')} with a point for decimals"
    if "," in text and re.fullmatch(r"[+-]?[\d.,]+", text):
        return "; write a point for decimals, and thousands without separators"
    if re.match(r"[<>≤≥]", text):
        return (
            "; beyond a limit is no number: a result below detection is told as below=0.3, and "
            "typed as < 0.3; above a limit, tell the value that your protocol puts in its place, or "
            "withdraw the question with a reason"
        )
    return ""


def checked_positive(what: str, value: object) -> float:
    """A number above zero."""
    number = checked_number(what, value)
    if number <= 0:
        raise InputError(f"{what} must be positive, got {shown(value)}")
    return number


def checked_percent(what: str, value: object) -> float:
    """A percentage above -100, from a text such as "2%"."""
    text = value.strip().replace("\u2212", "-") if isinstance(value, str) else ""
    if not text.endswith("%"):
        raise InputError(f'{what} must be in percent, such as "2%", got {shown(value)}')
    number = read_number(what, text.removesuffix("%"))
    if number <= -100:
        raise InputError(f"{what} must be above -100%, got {shown(value)}")
    return number


def percent_text(value: Any) -> Any:
    """The text of a percentage that `checked_percent` reads; of every end of a pair."""
    if isinstance(value, (list, tuple)):
        return [percent_text(end) for end in value]
    return None if value is None else f"{value!r}%"


def checked_name(what: str, value: object) -> str:
    """A name that fits on one line of a card."""
    usable = isinstance(value, str) and value == value.strip() and value.isprintable() and value
    if not usable or len(str(value)) > LONGEST_NAME:
        raise InputError(
            f"{what} must be one line of 1 to {LONGEST_NAME} characters, got {shown(value)}"
        )
    return str(value)


def checked_day(what: str, value: object) -> str:
    """A day as the record keeps it, 2026-11-18; from a date, or from such a text."""
    text = value.isoformat() if isinstance(value, date) else value
    if isinstance(text, str):
        with suppress(ValueError):
            return date.fromisoformat(text.strip()[:10]).isoformat()
    raise InputError(f"{what} must be a day such as 2026-11-18, got {shown(value)}")


YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def checked_yes_no(what: str, value: object) -> bool:
    """A yes or a no, however it was written: a truth value, a word, 0 or 1."""
    if hasattr(value, "item"):
        value = value.item()  # of numpy
    if isinstance(value, (bool, Real)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in YES_NO:
        return YES_NO[value.strip().lower()]
    raise InputError(f"{what} must be yes or no, got {shown(value)}")


def checked_text(what: str, value: object) -> str:
    """Text that may be empty, such as a unit."""
    if not isinstance(value, str) or not (value.isprintable() and len(value) <= LONGEST_NAME):
        raise InputError(
            f"{what} must be one line of at most {LONGEST_NAME} characters, got {shown(value)}"
        )
    return value


def checked_word(what: str, value: object, words: Iterable[str]) -> str:
    """One of a few words."""
    known = tuple(words)
    if value not in known:
        choices = ", ".join(repr(word) for word in known)
        raise InputError(f"{what} must be one of {choices}, got {shown(value)}")
    return str(value)


def exact(number: float) -> Decimal:
    """The decimal number that a float is printed as: 0.1 is exactly a tenth."""
    return Decimal(repr(float(number)))


def standard(number: Any) -> float:
    """A standardised number without its last digits, which depend on the original unit."""
    return round(float(number), 12) + 0.0


def rounded(value: Any) -> Any:
    """Numbers with six significant digits, which two machines agree on; of lists and mappings too."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return rounded_value(value, 6) if isinstance(value, float) else value


def rounded_value(value: float, digits: int = 3) -> float:
    """A number with a few significant digits."""
    return float(f"{value:.{digits}g}") + 0.0 if math.isfinite(value) else value


def kept(settings: Any) -> dict[str, Any]:
    """The fields of a dataclass that were given, as JSON."""
    fields = dataclasses.asdict(settings)
    return {name: value for name, value in fields.items() if value is not None}


def shown(value: object) -> str:
    """The value as an error message shows it: cut if it is long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to print an integer of more than 4300 digits
        return "an integer of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
