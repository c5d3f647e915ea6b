"""Outcomes: what is measured, in its unit, and its value on the common scale (values.py).

On scale="log" values stay in their unit, and changes are percentages: a tolerance of "2%" is what a
value may rise or fall by, as a share of itself. Then half of the range's logarithm is the scale.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sidestep.errors import InputError
from sidestep.studies.values import (
    checked_name,
    checked_number,
    checked_percent,
    checked_positive,
    checked_text,
    checked_word,
    exact,
    kept,
    percent_text,
    shown,
    standard,
)

LOG = "log"
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
    penalty    for a policy that is named, what a unit beyond the tolerance costs, in units of the target;
               None: exceeding a tolerance by its own width (its narrower side) costs half its range
    matters    smallest gain in the target that is worth another round; decides when to stop
    noise      standard deviation of one result; (low, high): between these, 19 times in 20; None: learned
    cost       cost of one result, in a unit common to all outcomes
    digits     decimals on the cards; None: from the tolerance or the range
    scale      "log": effects are percentages, and tolerance, matters and noise are given so: "2%"
    never      (low, high) that the value itself should never leave, None for no limit on that side

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
    noise: float | tuple[float, float] | None = None
    cost: float = 1.0
    digits: int | None = None
    scale: str | None = None
    never: tuple[float | None, float | None] | None = None

    def __post_init__(self) -> None:
        checked_name("the name of an outcome", self.name)
        checked_text(f"the unit of {self.name}", self.unit)
        if self.goal is not None:
            checked_word(f"the goal of {self.name}", self.goal, ("raise", "lower"))
        if self.scale is not None:
            checked_word(f"the scale of {self.name}", self.scale, (LOG,))
        object.__setattr__(self, "range", self._checked_range())
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", self._checked_tolerance(self.tolerance))
        for field in ("penalty", "cost"):
            value = getattr(self, field)
            if value is not None:
                object.__setattr__(self, field, checked_positive(f"{field} of {self.name}", value))
        if self.matters is not None:
            object.__setattr__(self, "matters", self._checked_size("matters", self.matters))
        if self.noise is not None:
            object.__setattr__(self, "noise", self._checked_noise(self.noise))
        if self.never is not None:
            object.__setattr__(self, "never", self._checked_never(self.never))
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
        if self.is_log and low <= 0:
            raise InputError(
                f'the range of {self.name} must lie above 0 on scale="log", got {shown(pair)}'
            )
        return low, high

    def _checked_size(self, field: str, given: Any) -> float:
        """A positive difference: in the unit, or on a log scale in percent."""
        what = f"{field} of {self.name}"
        return checked_positive(what, self.checked_change(what, given))

    def checked_change(self, what: str, given: Any) -> float:
        """A change: a number in the unit, or on a log scale a percentage, "2%"."""
        if self.is_log:
            return checked_percent(what, given)
        if isinstance(given, str) and given.strip().endswith("%"):
            raise InputError(f'{what} may be in percent only on scale="log", got {shown(given)}')
        return checked_number(what, given)

    def _checked_noise(self, given: Any) -> float | tuple[float, float]:
        if not isinstance(given, Sequence) or isinstance(given, str):
            return self._checked_size("noise", given)
        if len(given) != 2:
            raise InputError(
                f"noise of {self.name} must be a number or a pair (low, high), got {shown(given)}"
            )
        low, high = (self._checked_size("noise", end) for end in given)
        if low >= high:
            raise InputError(f"noise of {self.name} must have low < high, got {shown(given)}")
        return low, high

    def _checked_never(self, given: Any) -> tuple[float | None, float | None]:
        what = f"never of {self.name}"
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
            raise InputError(f"{what} must be a pair (low, high) {OPEN_SIDE}, got {shown(given)}")
        low, high = (
            None if end is None or end == endless else checked_number(what, end)
            for end, endless in zip(given, (-math.inf, math.inf), strict=True)
        )
        if (low is None and high is None) or (low is not None and high is not None and low >= high):
            raise InputError(f"{what} must have low < high {OPEN_SIDE}, got {shown(given)}")
        if (low is not None and low >= self.high) or (high is not None and high <= self.low):
            raise InputError(
                f"{what} must leave some of its range {self.low:g} to {self.high:g}, got {shown(given)}"
            )
        return low, high

    def _checked_tolerance(self, given: Any) -> float | tuple[float | None, float | None]:
        what = f"the tolerance of {self.name}"
        if not isinstance(given, Sequence) or isinstance(given, str):
            return checked_positive(what, self.checked_change(what, given))
        if len(given) != 2:
            raise InputError(
                f"{what} must be a number or a pair (low, high) {OPEN_SIDE}, got {shown(given)}"
            )
        low, high = (
            None if end is None or end == endless else self.checked_change(what, end)
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

    @property
    def is_log(self) -> bool:
        """Whether effects are percentages."""
        return self.scale == LOG

    @property
    def change_unit(self) -> str:
        """The unit of a change: that of the values, or percent on a log scale."""
        return "%" if self.is_log else self.unit

    @cached_property
    def half(self) -> float:
        """Half the plausible range: the outcome's scale."""
        if self.is_log:
            return math.log(self.high / self.low) / 2
        return float((exact(self.high) - exact(self.low)) / 2)

    @property
    def sign(self) -> int:
        """-1 for a target that should fall, else 1."""
        return -1 if self.goal == "lower" else 1

    @cached_property
    def level(self) -> float:
        """Zero of the scale: the baseline, or the middle of the range if the baseline is learned."""
        if self.baseline is not None:
            return self.baseline
        if self.is_log:
            return math.sqrt(self.low * self.high)
        return float((exact(self.high) + exact(self.low)) / 2)

    @property
    def limits(self) -> tuple[float | None, float | None]:
        """The changes that do no harm, as (low, high); None: no limit on that side."""
        if isinstance(self.tolerance, float):
            return -self.tolerance, self.tolerance
        return self.tolerance or (None, None)

    @property
    def noise_scaled(self) -> float | tuple[float, float] | None:
        """The noise of one result on the common scale, as it was told."""
        if isinstance(self.noise, tuple):
            return self.change_scaled(self.noise[0]), self.change_scaled(self.noise[1])
        return None if self.noise is None else self.change_scaled(self.noise)

    def scaled(self, value: float) -> float:
        """A result on the common scale."""
        if self.is_log:
            return standard(self.sign * math.log(value / self.level) / self.half)
        return standard(self.sign * (exact(value) - exact(self.level)) / exact(self.half))

    def change_scaled(self, change: float) -> float:
        """A change, a tolerance or a noise on the common scale, without the target's sign."""
        if self.is_log:
            return standard(math.log1p(change / 100) / self.half)
        return standard(exact(change) / exact(self.half))

    def error_scaled(self, error: float, value: float) -> float:
        """The standard error of a value on the common scale."""
        return standard(error / value / self.half) if self.is_log else self.change_scaled(error)

    def change(self, scaled: float) -> float:
        """A change in the unit of changes."""
        if self.is_log:
            return 100 * math.expm1(self.sign * scaled * self.half) + 0.0
        return self.sign * scaled * self.half + 0.0  # + 0.0 turns -0.0 into 0.0

    def size(self, scaled: float) -> float:
        """A difference in the unit of changes, without a sign."""
        return 100 * math.expm1(scaled * self.half) if self.is_log else scaled * self.half

    def value(self, scaled: float) -> float:
        """A result in the outcome's unit."""
        if self.is_log:
            return self.level * math.exp(self.sign * scaled * self.half)
        return self.level + self.change(scaled)

    def to_config(self) -> dict[str, Any]:
        """The outcome as JSON; `Outcome(**config)` builds it again."""
        config = kept(self)
        if self.is_log:
            for field in ("tolerance", "matters", "noise"):
                if field in config:
                    config[field] = percent_text(config[field])
        return config
