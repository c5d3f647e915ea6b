"""Outcomes: what is measured, in its unit, and its value on the common scale (values.py)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sidestep.errors import InputError
from sidestep.studies.values import (
    checked_name,
    checked_number,
    checked_positive,
    checked_text,
    checked_word,
    exact,
    kept,
    shown,
    standard,
)

OPEN_SIDE = "(-inf or inf, in Python also None, where a side has no limit)"


@dataclass(frozen=True)
class Outcome:
    """Something you measure: the target, or a protected outcome that should not change.

    name       name on the cards
    unit       unit on the cards
    goal       "raise" (the default) or "lower"; only for the target
    baseline   its level at the baseline of the factors; None: learned
    range      every result that you would believe without checking it; half of it is the scale
    tolerance  of a protected outcome, the largest harmless change from the baseline: a number for both
               directions, or (low, high), None (or -inf, inf) for no limit on that side
    penalty    what a unit beyond the tolerance costs, in units of the target; None: exceeding a tolerance
               by its own width (of its narrower side) costs half the target's range
    matters    smallest gain in the target that is worth another round; decides when to stop
    noise      standard deviation of one result; None: learned
    cost       cost of one result, in a unit common to all outcomes
    digits     decimals on the cards; None: from the tolerance or the range

    >>> from sidestep import Outcome
    >>> Outcome("potassium", "mmol/L", range=(3.0, 6.0), tolerance=0.3).limits
    (-0.3, 0.3)
    """

    name: str
    unit: str = ""
    goal: str | None = None
    baseline: float | None = None
    range: tuple[float, float] | None = None
    tolerance: float | tuple[float | None, float | None] | None = None
    penalty: float | None = None
    matters: float | None = None
    noise: float | None = None
    cost: float = 1.0
    digits: int | None = None

    def __post_init__(self) -> None:
        checked_name("the name of an outcome", self.name)
        checked_text(f"the unit of {self.name}", self.unit)
        if self.goal is not None:
            checked_word(f"the goal of {self.name}", self.goal, ("raise", "lower"))
        object.__setattr__(self, "range", self._checked_range())
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", self._checked_tolerance(self.tolerance))
        for field in ("penalty", "matters", "noise", "cost"):
            value = getattr(self, field)
            if value is not None:
                object.__setattr__(self, field, checked_positive(f"{field} of {self.name}", value))
        if self.baseline is not None:
            baseline = checked_number(f"the baseline of {self.name}", self.baseline)
            if not self.low <= baseline <= self.high:
                raise InputError(
                    f"the baseline of {self.name} must lie in its range {self.low:g} to "
                    f"{self.high:g}, got {baseline:g}"
                )
            object.__setattr__(self, "baseline", baseline)
        if type(self.digits) not in (int, type(None)) or self.digits not in (None, *range(10)):
            raise InputError(f"digits of {self.name} must lie in 0..9, got {shown(self.digits)}")

    def _checked_range(self) -> tuple[float, float]:
        pair = self.range
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InputError(
                f"{self.name} must have a range (low, high) of plausible values, got {shown(pair)}"
            )
        low, high = (checked_number(f"the range of {self.name}", end) for end in pair)
        if low >= high:
            raise InputError(f"the range of {self.name} must have low < high, got {shown(pair)}")
        return low, high

    def _checked_tolerance(self, given: Any) -> float | tuple[float | None, float | None]:
        what = f"the tolerance of {self.name}"
        if not isinstance(given, Sequence) or isinstance(given, str):
            return checked_positive(what, given)
        if len(given) != 2:
            raise InputError(
                f"{what} must be a number or a pair (low, high) {OPEN_SIDE}, got {shown(given)}"
            )
        low, high = (
            None if end is None or end == endless else checked_number(what, end)
            for end, endless in zip(given, (-math.inf, math.inf), strict=True)
        )
        if (low or 0) > 0 or (high or 0) < 0 or low == high:
            raise InputError(f"{what} must have low <= 0 <= high {OPEN_SIDE}, got {shown(given)}")
        return low, high

    @property
    def low(self) -> float:
        """The smallest plausible value."""
        return self.range[0]  # type: ignore[index]

    @property
    def high(self) -> float:
        """The largest plausible value."""
        return self.range[1]  # type: ignore[index]

    @cached_property
    def half(self) -> float:
        """Half the plausible range: the outcome's scale."""
        return float((exact(self.high) - exact(self.low)) / 2)

    @property
    def sign(self) -> int:
        """-1 for a target that should fall, else 1."""
        return -1 if self.goal == "lower" else 1

    @cached_property
    def level(self) -> float:
        """Zero of the scale: the baseline, or the middle of the range if the baseline is learned."""
        middle = float((exact(self.high) + exact(self.low)) / 2)
        return middle if self.baseline is None else self.baseline

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The changes that do no harm, as (low, high); None: no limit on that side."""
        if isinstance(self.tolerance, float):
            return -self.tolerance, self.tolerance
        return self.tolerance or (None, None)

    def scaled(self, value: float) -> float:
        """A result on the common scale."""
        return standard(self.sign * (exact(value) - exact(self.level)) / exact(self.half))

    def change_scaled(self, change: float) -> float:
        """A change, a tolerance or a noise on the common scale, without the target's sign."""
        return standard(exact(change) / exact(self.half))

    def change(self, scaled: float) -> float:
        """A change in the outcome's unit."""
        return self.sign * scaled * self.half + 0.0  # + 0.0 turns -0.0 into 0.0

    def value(self, scaled: float) -> float:
        """A result in the outcome's unit."""
        return self.level + self.change(scaled)

    def to_config(self) -> dict[str, Any]:
        """The outcome as JSON; `Outcome(**config)` builds it again."""
        return kept(self)
