"""Factors: what is set in a round, in its unit, and its coordinates on the common scale (values.py)."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

from sidestep.errors import InputError
from sidestep.studies.values import (
    checked_name,
    checked_number,
    checked_positive,
    checked_text,
    checked_word,
    checked_yes_no,
    exact,
    kept,
    read_number,
    shown,
    standard,
)

Value: TypeAlias = float | str  # of a factor: a number, a yes or no (True, False), or a word
Setting: TypeAlias = dict[str, Value]  # a value for every factor
Range: TypeAlias = tuple[float, float]
ANY: Range = (-math.inf, math.inf)
NEAR = Decimal("1e-6")  # a value within this share of a step from a grid value is on the grid
MOST_STEPS = 10_000


@dataclass(frozen=True)
class Factor:
    """Something you set in a round: a range with or without steps, or a list of levels.

    name       name on the cards
    low, high  the range; not needed with levels
    unit       unit on the cards
    step       values are low, low + step, ...; None: any value of the range
    levels     the possible values, numbers or words (a category); [False, True] is a yes or no
    baseline   what is set now; effects are changes from it; None: the low end, or the first level
    scale      "log": what counts is by how many times a value is larger, as of doses and rates
    offset     on the log scale, added to every value, so that 0 is allowed

    >>> from sidestep import Factor
    >>> Factor("lisinopril", 0, 40, unit="mg/day", step=10, baseline=20).grid
    (0.0, 10.0, 20.0, 30.0, 40.0)
    """

    name: str
    low: float | None = None
    high: float | None = None
    unit: str = ""
    step: float | None = None
    levels: Sequence[Value] | None = None
    baseline: Value | None = None
    scale: str | None = None
    offset: float | None = None

    def __post_init__(self) -> None:
        checked_name("the name of a factor", self.name)
        checked_text(f"the unit of {self.name}", self.unit)
        if self.levels is not None:
            self._take_levels(self.levels)
        else:
            self._take_range()
        self._check_scale()
        start = self.grid[0] if self.grid else self.low
        given = start if self.baseline is None else self.baseline
        listed, what = self.levels is not None, f"the baseline of {self.name}"
        baseline = self.checked(given, on_steps=listed, what=what)
        object.__setattr__(self, "baseline", baseline)

    def _take_levels(self, levels: Sequence[Value]) -> None:
        if self.step is not None:
            raise InputError(f"{self.name} must have a step or levels, got both")
        several = hasattr(levels, "__iter__") and not isinstance(levels, str)
        if not several or len(tuple(levels)) < 2:
            raise InputError(f"{self.name} must have two levels or more, got {shown(levels)}")
        words = all(isinstance(level, str) for level in levels)
        checked: Callable[[str, object], Value] = checked_name if words else checked_number
        if all(_is_truth(level) for level in levels):
            checked = checked_yes_no
        kept = tuple(checked(f"a level of {self.name}", level) for level in levels)
        if len(set(kept)) < len(kept):
            raise InputError(f"{self.name} must have levels that differ, got {shown(levels)}")
        object.__setattr__(self, "levels", kept)
        ends = (None, None) if words else (float(min(kept)), float(max(kept)))
        for side, end in zip(("low", "high"), ends, strict=True):
            given = getattr(self, side)
            if given is not None and given != end:
                raise InputError(
                    f"{side} of {self.name} must be left out or equal its levels' {end}, got {given!r}"
                )
            object.__setattr__(self, side, end)

    def _take_range(self) -> None:
        for side in ("low", "high"):
            end = checked_number(f"{side} of {self.name}", getattr(self, side))
            object.__setattr__(self, side, end)
        if self.low >= self.high:  # type: ignore[operator]
            raise InputError(f"{self.name} must have low < high, got {self.low} and {self.high}")
        if self.step is not None:
            step = checked_positive(f"the step of {self.name}", self.step)
            object.__setattr__(self, "step", step)
            if not 1 <= self._steps_to(self._high) <= MOST_STEPS:
                raise InputError(
                    f"the step of {self.name} must go 1 to {MOST_STEPS} times into its range, "
                    f"got {step:g}"
                )

    def _check_scale(self) -> None:
        """Refuse a logarithm of what is not above 0."""
        if self.scale is None:
            if self.offset is not None:
                raise InputError(
                    f'the offset of {self.name} belongs to scale="log", got {shown(self.offset)} without'
                )
            return
        checked_word(f"the scale of {self.name}", self.scale, ("log",))
        if self.is_category:
            raise InputError(f"the scale of {self.name} is for numbers, got words")
        if self.offset is not None:
            offset = checked_positive(f"the offset of {self.name}", self.offset)
            object.__setattr__(self, "offset", offset)
        if self._low + (self.offset or 0) <= 0:
            raise InputError(
                f'{self.name} must lie above 0 on scale="log", got {self._low:g}: an offset, a small '
                "amount in its unit, is added to every value"
            )

    @property
    def is_log(self) -> bool:
        """Whether the scale is logarithmic."""
        return self.scale is not None

    @property
    def is_category(self) -> bool:
        """Whether the levels are words."""
        return self.low is None

    @property
    def is_yes_no(self) -> bool:
        """Whether the levels are True and False."""
        return self.levels is not None and all(isinstance(level, bool) for level in self.levels)

    @property
    def is_number(self) -> bool:
        """Whether values are amounts, of which there may be more or less."""
        return not (self.is_category or self.is_yes_no)

    @cached_property
    def grid(self) -> tuple[Value, ...]:
        """The possible values, as a person writes them; empty if any value of the range is possible."""
        if self.levels is not None:
            return tuple(self.levels)
        if self.step is None:
            return ()
        low, step = exact(self._low), exact(self.step)
        return tuple(float(low + k * step) for k in range(int(self._steps_to(self._high)) + 1))

    @property
    def width(self) -> int:
        """Number of coordinates of a value: one; for words, one for every word except the baseline."""
        return len(self.grid) - 1 if self.is_category else 1

    def checked(self, value: object, *, on_steps: bool = True, what: str | None = None) -> Value:
        """The value as it is recorded; raises one sentence if this factor cannot have it.

        What was done may lie anywhere in the range, even between steps and levels: `on_steps=False`.
        """
        what = what or self.name
        if self.is_category:
            return checked_word(what, value, (str(level) for level in self.grid))
        if self.is_yes_no:
            return checked_yes_no(what, value)
        number = checked_number(what, value)
        if self.levels is not None:
            near = [level for level in self.grid if math.isclose(float(level), number, abs_tol=0)]
            if near:
                return near[0]
            if on_steps:
                raise InputError(f"{what} must be one of {self._listed()}, got {number:g}")
        if not self._low <= number <= self._high:
            raise InputError(
                f"{what} must lie in {self._low:g} to {self._high:g}{self._behind}, got {number:g}"
            )
        if self.step is None or not (on_steps or self._is_on_step(number)):
            return number
        return self._stepped(what, number)

    def read(self, value: object, what: str | None = None, *, on_steps: bool = True) -> Value:
        """`checked` for a cell of a table, where a number may be text."""
        if isinstance(value, str) and self.is_number:
            value = read_number(what or self.name, value)
        return self.checked(value, on_steps=on_steps, what=what)

    def coordinates(self, value: Value) -> tuple[float, ...]:
        """Coordinates of a value on the common scale; the baseline is at 0."""
        if self.is_category:
            others = [level for level in self.grid if level != self.baseline]
            return tuple(float(level == value) for level in others)
        if self.is_log:
            middle = self._log(float(self.baseline or 0))
            return (standard((self._log(float(value)) - middle) / self._log_half),)
        if self.step is not None:  # in steps: the same numbers in every unit
            half = self._steps_to(self._high) / 2
            return (standard((self._steps_to(float(value)) - self._steps_from_low) / half),)
        half = (exact(self._high) - exact(self._low)) / 2
        return (standard((exact(float(value)) - exact(float(self.baseline or 0))) / half),)

    def nearest(self, coordinate: float, allowed: Range = ANY) -> float:
        """The value at a coordinate, within `allowed` and with as many digits as a person can set."""
        low, high = max(allowed[0], self._low), min(allowed[1], self._high)
        half = (self._high - self._low) / 2
        value = float(self.baseline or 0) + coordinate * half
        fine = 2 - math.floor(math.log10(self._high - self._low))
        if self.is_log:
            middle, offset = self._log(float(self.baseline or 0)), self.offset or 0.0
            value = math.exp(middle + coordinate * self._log_half) - offset
            fine = 3 - math.floor(math.log10(value + offset))
        for near in (0, -1, 1):
            rounded = round(value + near * 10.0**-fine, fine)
            if low <= rounded <= high:
                return rounded + 0.0
        return min(max(value, low), high) + 0.0

    def _log(self, value: float) -> float:
        return math.log(value + (self.offset or 0.0))

    @property
    def _log_half(self) -> float:
        return (self._log(self._high) - self._log(self._low)) / 2

    def _steps_to(self, value: float) -> Decimal:
        """How many steps a value is above the low end; a whole number if it is on the grid."""
        steps = (exact(value) - exact(self._low)) / exact(float(self.step or 1))
        whole = steps.to_integral_value()
        return whole if abs(steps - whole) <= NEAR else steps

    @property
    def _steps_from_low(self) -> Decimal:
        return self._steps_to(float(self.baseline or 0))

    def _is_on_step(self, number: float) -> bool:
        steps = self._steps_to(number)
        return steps == steps.to_integral_value() and int(steps) < len(self.grid)

    def _stepped(self, what: str, number: float) -> float:
        if not self._is_on_step(number):
            raise InputError(
                f"{what} must be {self._low:g} to {self._high:g}{self._behind} in steps of "
                f"{self.step:g}, got {number:g}"
            )
        return float(self.grid[int(self._steps_to(number))])

    def _listed(self) -> str:
        return ", ".join(f"{level:g}" for level in self.grid) + self._behind

    @property
    def _behind(self) -> str:
        return f" {self.unit}" if self.unit else ""

    @property
    def _low(self) -> float:
        return float(self.low or 0)

    @property
    def _high(self) -> float:
        return float(self.high or 0)

    def to_config(self) -> dict[str, Any]:
        """The factor as JSON; `Factor(**config)` builds it again."""
        return kept(self)


def _is_truth(level: object) -> bool:
    """Whether a level is True or False, of Python or of numpy."""
    return isinstance(level.item() if hasattr(level, "item") else level, bool)


def setting_of(
    factors: Iterable[Factor], given: Mapping[str, object], what: str, *, on_steps: bool = True
) -> Setting:
    """A checked value for every factor; raises one sentence that names a wrong factor.

    What was done may lie between steps and levels: `on_steps=False`.
    """
    wanted = {factor.name: factor for factor in factors}
    if not isinstance(given, Mapping):
        raise InputError(f"{what} must be a value for every factor, got {shown(given)}")
    for name in given:
        if name not in wanted:
            raise InputError(f"{what} must name factors of {', '.join(wanted)}, got {shown(name)}")
    for name in wanted:
        if name not in given:
            raise InputError(f"{what} must have a value for every factor, got none for {name!r}")
    return {name: factor.checked(given[name], on_steps=on_steps) for name, factor in wanted.items()}


def checked_steps(
    factors: Iterable[Factor], steps: Mapping[str, float] | None
) -> tuple[tuple[str, float], ...]:
    """The largest change of some factors since the last round, checked."""
    if steps is None:
        return ()
    known = {factor.name: factor for factor in factors}
    if not isinstance(steps, Mapping):
        raise InputError(f"largest_step must be a change for factors, got {shown(steps)}")
    for name in steps:
        if name not in known or not known[name].is_number:
            raise InputError(f"largest_step must name factors that are numbers, got {shown(name)}")
    return tuple((n, checked_positive(f"largest_step of {n}", s)) for n, s in steps.items())
