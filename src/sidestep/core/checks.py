"""Checks of arguments: each raises one sentence with what was expected and what was given."""

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.random import Generator

from sidestep.core.arrays import FloatArray
from sidestep.errors import InputError, MissingExtra

SLACK = 1e-9  # relative slack when a length is compared with its bound
# bounds of a scale: the square of a product of two fits into a float
SMALLEST, LARGEST = 1e-50, 1e50


def check_integer(name: str, value: int, *, low: int, high: int | None = None) -> None:
    """Raise unless value is an integer in low..high."""
    integral = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integral or value < low or (high is not None and value > high):
        expected = f"be an integer >= {low}" if high is None else f"lie in {low}..{high}"
        raise InputError(f"{name} must {expected}, got {shown(value)}")


def check_positive(name: str, value: float) -> None:
    """Raise unless value is a finite number above zero."""
    if not is_finite(value) or value <= 0:
        raise InputError(f"{name} must be positive and finite, got {shown(value)}")


def check_scale(name: str, value: float) -> None:
    """Raise unless value is a positive number whose squares and products fit into a float."""
    check_positive(name, value)
    if not SMALLEST <= value <= LARGEST:
        raise InputError(
            f"{name} must lie between {SMALLEST:g} and {LARGEST:g} (choose another unit), "
            f"got {shown(value)}"
        )


def check_probability(name: str, value: float) -> None:
    """Raise unless value lies strictly between 0 and 1."""
    if not is_finite(value) or not 0 < value < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1, got {shown(value)}")


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raise unless value is one of the choices."""
    if value not in choices:
        words = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name} must be one of {words}, got {value!r}")


def check_rng(rng: object) -> None:
    """Raise unless this is a numpy random Generator."""
    if not isinstance(rng, Generator):
        raise InputError(
            f"rng must be a numpy Generator, np.random.default_rng(0), got {shown(rng)}"
        )


def check_lab(what: str, *packages: str) -> None:
    """Raise unless these packages of the extra `lab` are installed; `what` needs them."""
    for package in packages:
        try:
            import_module(package)
        except ImportError:
            raise MissingExtra(
                f'{what} needs {package}, which is not installed: pip install "sidestep[lab]"'
            ) from None


def as_numbers(name: str, value: object) -> FloatArray:
    """A copy of the value as an array of floats; raises one sentence if that is impossible."""
    try:
        return np.array(value, dtype=float, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} must be an array of numbers, got {_not_numbers(value)}"
        ) from error


def _not_numbers(value: Any) -> str:
    """What was given instead of numbers; for a data frame, its first column that is not numeric."""
    for column in getattr(value, "columns", ()):
        try:
            np.array(value[column], dtype=float)
        except (TypeError, ValueError, OverflowError):
            return f"a column {column!r} of something else"
    return shown(value)


def is_finite(value: object) -> bool:
    """Whether value is a finite number that fits into a float; a bool does not count as a number."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    try:
        return number and not isinstance(value, bool) and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def shown(value: object) -> str:
    """The value as an error message shows it: cut if it is long."""
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python refuses to print an integer of more than 4300 digits
        return "an integer of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."
