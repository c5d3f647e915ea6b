"""Whether a result is surprising: far from the expected value, or outside the range of its outcome."""

from typing import Any

from sidestep.studies.cards.words import digits_of, measured_text, number, plain, with_unit
from sidestep.studies.measurement import BELOW, CHANGE, Measurement
from sidestep.studies.outcomes import Outcome

FAR = 2.0  # a result is far if it is this many half-widths of its interval from the expected value


def asked_twice(outcome: Outcome, expected: Any) -> tuple[float, float]:
    """The interval outside which a result must be confirmed before it is recorded."""
    if expected is None:
        return outcome.low, outcome.high
    estimate, low, high = expected
    reach = FAR * max(high - estimate, estimate - low)
    low, high = estimate - reach, estimate + reach
    if outcome.low <= estimate <= outcome.high:  # otherwise results are outside the range already
        low, high = max(low, outcome.low), min(high, outcome.high)
    return low, high


def asked_twice_text(outcome: Outcome, expected: Any) -> str:
    """We will ask twice below 127.9 or above 149.7."""
    low, high = (number(end, digits_of(outcome)) for end in asked_twice(outcome, expected))
    return f"We will ask twice below {low} or above {high}."


def doubt_text(outcome: Outcome, told: Measurement, expected: Any) -> str | None:
    """What is surprising about a result; None if nothing is."""
    value = told.value
    low, high = asked_twice(outcome, expected)
    if told.kind == CHANGE:
        return _doubted_change(outcome, told)
    if low <= value <= high or (told.kind == BELOW and value > high):
        return None
    about = (outcome.low, outcome.high) if expected is None else expected[1:]
    digits = digits_of(outcome)
    begin, end = (number(side, digits) for side in about)
    word = "plausible" if expected is None else "expected"
    text = measured_text(outcome, told)
    text = f"{text} is far from what is {word} for {outcome.name} ({begin} to {end})."
    lost = any(low <= value * shift <= high for shift in (0.1, 0.01, 0.001, 10, 100))
    return f"{text} A lost decimal point?" if lost else text


def _doubted_change(outcome: Outcome, told: Measurement) -> str | None:
    """A change of more than half the range of plausible values."""
    if abs(outcome.change_scaled(told.value)) <= 1:
        return None
    half = with_unit(plain(round(outcome.size(1.0), 6)), outcome.change_unit)
    return (
        f"{with_unit(plain(told.value), outcome.change_unit)} is a large change of {outcome.name}: more "
        f"than half the range that you call plausible, {half}."
    )
