"""Checks of arguments: each raises one sentence with what was expected and what was given."""

import difflib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from sidestep.errors import InputError, MissingExtra, UnknownNameError

if TYPE_CHECKING:  # a study is recorded where numpy cannot even be imported
    from sidestep.core.arrays import FloatArray

SLACK = 1e-9  # relative slack when a length is compared with its bound
# bounds of a scale: the square of a product of two fits into a float
SMALLEST, LARGEST = 1e-50, 1e50


def check_integer(name: str, value: int, *, low: int, high: int | None = None) -> None:
    """Raise unless value is an integer in low..high."""
    integral = isinstance(value, Integral) and not isinstance(value, bool)
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
    from numpy.random import Generator  # noqa: PLC0415

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


def as_numbers(name: str, value: object) -> "FloatArray":
    """A copy of the value as an array of floats; raises one sentence if that is impossible."""
    import numpy as np  # noqa: PLC0415

    try:
        return np.array(value, dtype=float, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} must be an array of numbers, got {_not_numbers(value)}"
        ) from error


def _not_numbers(value: Any) -> str:
    """What was given instead of numbers; for a data frame, its first column that is not numeric."""
    import numpy as np  # noqa: PLC0415

    for column in getattr(value, "columns", ()):
        try:
            np.array(value[column], dtype=float)
        except (TypeError, ValueError, OverflowError):
            return f"a column {column!r} of something else"
    return shown(value)


def is_finite(value: object) -> bool:
    """Whether value is a finite number that fits into a float; a bool does not count as a number."""
    # a number of numpy has a dtype; a Fraction, which is Real as well, has none
    number = isinstance(value, (int, float)) or (
        isinstance(value, Real) and hasattr(value, "dtype")
    )
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


Entry = TypeVar("Entry")


def look_up(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """The entry of that name; raises one sentence with the most similar name otherwise."""
    if name in table:
        return table[name]
    words = ", ".join(sorted(table)) or "(none)"
    hint = did_you_mean(name, table, cutoff=0.4)
    raise UnknownNameError(f"{kind} must be one of {words}, got {name!r}{hint}")


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A hint at the most similar of the known names; empty if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""


def check_knobs(
    name: str, maker: Callable[..., Any], given: Iterable[str], *not_knobs: str
) -> None:
    """Raise unless `maker` has knobs of these names; `not_knobs` are parameters that are not knobs."""
    try:
        taken = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be built from knobs: {error}") from error
    if any(knob.kind is knob.VAR_KEYWORD for knob in taken):
        return
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = {k.name: k.name for k in taken if k.kind in named and k.name not in not_knobs}
    for knob in given:
        look_up(f"knob of {name}", knob, known)


def imported(kind: str, name: str) -> Callable[..., Any]:
    """A policy or world from another package, given as "package.module:Name"."""
    module, _, attribute = name.partition(":")
    try:
        maker: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{kind} {name!r} cannot be imported: {error}") from error
    return maker
