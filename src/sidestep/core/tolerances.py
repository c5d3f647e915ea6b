"""Tolerances of the side effects, and the penalty of a unit beyond them."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from sidestep.core.arrays import FloatArray
from sidestep.core.checks import is_finite, shown
from sidestep.errors import InputError

Side: TypeAlias = float | None
Tolerance: TypeAlias = float | Sequence[float | tuple[Side, Side] | None] | None
Pairs: TypeAlias = tuple[tuple[float, float], ...]


class Limits(NamedTuple):
    """Lowest and highest tolerated effect on every protected outcome, and the penalty; (L,) each."""

    low: FloatArray  # at most 0; -inf where a decrease is harmless
    high: FloatArray  # at least 0; inf where an increase is harmless
    penalty: FloatArray  # of a unit beyond either limit


def checked_tolerance(value: Any, count: int) -> Pairs:
    """A (low, high) pair for every protected outcome; raises one sentence if something is wrong."""
    if not _is_several(value):
        return ((-_side(value, value), _side(value, value)),) * count
    if len(value) != count:
        raise InputError(
            f"tolerance must be a number or {count} of them, one per protected vector, each a "
            f"number or a (low, high) pair, got {len(value)}"
        )
    return tuple(_pair(one) for one in value)


def checked_penalty(value: Any, pairs: Pairs, scale: float) -> tuple[float, ...]:
    """The penalty of a unit beyond each tolerance.

    None: exceeding a tolerance by its width (see `width_of`) costs `scale`, as much as the target can
    move.
    """
    if value is None:
        return tuple(_usual_penalty(pair, scale) for pair in pairs)
    several = tuple(value) if _is_several(value) else (value,) * len(pairs)
    if len(several) != len(pairs):
        raise InputError(
            f"penalty must be a number or {len(pairs)} numbers, one per protected vector, "
            f"got {len(several)}"
        )
    for one in several:
        if not is_finite(one) or one < 0:
            raise InputError(f"penalty must be zero or positive and finite, got {shown(value)}")
    return tuple(float(one) for one in several)


def limits_of(pairs: Pairs, penalty: tuple[float, ...]) -> Limits:
    """The limits and penalties as arrays."""
    low, high = np.array(pairs, dtype=float).reshape(-1, 2).T.copy()
    return Limits(low, high, np.array(penalty, dtype=float))


def width_of(sides: Sequence[float]) -> float:
    """Width of a tolerance: its narrower side; if that is zero, half the other side.

    The wider side must not count: a very wide limit on one side would make exceeding the other cheap.
    """
    return min(sides) or max(sides) / 2


def _usual_penalty(pair: tuple[float, float], scale: float) -> float:
    """Scale divided by the width; 0 where there is no limit."""
    sides = [abs(side) for side in pair if math.isfinite(side)]
    if not sides:
        return 0.0
    width = width_of(sides)
    if width == 0.0:
        raise InputError("penalty must be given where a tolerance has no width, got None")
    return scale / width


def _is_several(value: Any) -> bool:
    several = isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)
    return several and getattr(value, "ndim", 1) >= 1


def _pair(value: Any) -> tuple[float, float]:
    if not _is_several(value):
        return (-_side(value, value), _side(value, value))
    if len(value) != 2:
        raise InputError(f"tolerance must have pairs (low, high), got {shown(value)}")
    fall, rise = value
    return (-_side(-fall if _is_number(fall) else fall, value), _side(rise, value))


def _side(value: Any, whole: Any) -> float:
    """How far an outcome may move to one side; None and infinity: no limit."""
    if value is None:
        return math.inf
    if not _is_number(value) or not value >= 0:
        raise InputError(
            "tolerance must be zero or positive, or a pair (low, high) with low <= 0 <= high, "
            f"got {shown(whole)}"
        )
    return float(value) + 0.0  # + 0.0 turns -0.0 into 0.0


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float, np.integer, np.floating))
    return number and not isinstance(value, bool) and (is_finite(value) or math.isinf(value))
