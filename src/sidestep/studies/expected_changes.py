"""What people expect of effects before the first result: changes over the whole range of a factor."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sidestep.errors import InputError
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import OPEN_SIDE, Outcome
from sidestep.studies.values import percent_text, shown

RISES, FALLS = "rises", "falls"

Ends = tuple[float | None, float | None]


class Change(NamedTuple):
    """A change that was checked: its ends, None where there is no limit."""

    low: float | None
    high: float | None


Expect = Mapping[str, Mapping[str, Ends]]
Monotone = Mapping[str, Mapping[str, str]]


def checked_expect(
    given: Any, factors: Sequence[Factor], outcomes: Sequence[Outcome]
) -> dict[str, dict[str, Ends]]:
    """Changes that would not surprise, by outcome and factor, in the unit of the outcome's changes."""
    return {
        outcome.name: {
            name: _checked_ends(f"expect of {outcome.name} and {name}", outcome, pair)
            for name, pair in some.items()
        }
        for outcome, some in _named("expect", given, factors, outcomes)
    }


def checked_monotone(
    given: Any, factors: Sequence[Factor], outcomes: Sequence[Outcome], expect: Expect
) -> dict[str, dict[str, str]]:
    """Outcomes that rise or fall with a factor; they agree with what is expected."""
    found: dict[str, dict[str, str]] = {}
    for outcome, some in _named("monotone", given, factors, outcomes):
        for name, word in some.items():
            if word not in (RISES, FALLS):
                raise InputError(
                    f'monotone of {outcome.name} and {name} must be "rises" or "falls", '
                    f"got {shown(word)}"
                )
            low, high = expect.get(outcome.name, {}).get(name, (None, None))
            rises = high is None or high > 0
            falls = low is None or low < 0
            if not (rises if word == RISES else falls):
                raise InputError(
                    f"monotone of {outcome.name} and {name} must agree with what is expected, got "
                    f'"{word}" and {ends_text((low, high))}'
                )
            found.setdefault(outcome.name, {})[name] = word
    return found


def _named(
    what: str, given: Any, factors: Sequence[Factor], outcomes: Sequence[Outcome]
) -> list[tuple[Outcome, Mapping[str, Any]]]:
    """The outcomes that are named, each with what is told of factors."""
    known = {outcome.name: outcome for outcome in outcomes}
    axes = {factor.name: factor for factor in factors}
    if not isinstance(given, Mapping):
        raise InputError(f"{what} must name outcomes, and factors of each, got {shown(given)}")
    found = []
    for name, some in given.items():
        if name not in known:
            raise InputError(f"{what} must name outcomes, {', '.join(known)}, got {shown(name)}")
        if not isinstance(some, Mapping):
            raise InputError(f"{what} of {name} must name factors, got {shown(some)}")
        for factor in some:
            if factor not in axes or axes[factor].is_category:
                raise InputError(
                    f"{what} of {name} must name factors that are numbers, got {shown(factor)}"
                )
        if some:
            found.append((known[name], some))
    return found


def _checked_ends(what: str, outcome: Outcome, given: Any) -> Change:
    if isinstance(given, Change):
        return given
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise InputError(f"{what} must be a pair (low, high) {OPEN_SIDE}, got {shown(given)}")
    low, high = (
        None if end is None or end == endless else outcome.checked_change(what, end)
        for end, endless in zip(given, (-math.inf, math.inf), strict=True)
    )
    if (low is None and high is None) or (low is not None and high is not None and low >= high):
        raise InputError(f"{what} must have low < high {OPEN_SIDE}, got {shown(given)}")
    return Change(low, high)


def ends_text(ends: Ends) -> str:
    """-25 to 0; at most 0; at least 5."""
    low, high = (None if end is None else f"{end:g}" for end in ends)
    if low is None:
        return f"at most {high}"
    return f"at least {low}" if high is None else f"{low} to {high}"


def expect_config(expect: Expect, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Expectations as JSON that `checked_expect` reads."""
    logs = {outcome.name for outcome in outcomes if outcome.is_log}
    return {
        name: {
            factor: percent_text(list(pair)) if name in logs else list(pair)
            for factor, pair in some.items()
        }
        for name, some in expect.items()
    }


def told_of_changes(expect: Expect, monotone: Monotone) -> dict[str, dict[str, Ends]]:
    """What is expected in all: where an outcome only rises or falls, its change has that sign."""
    found = {name: dict(some) for name, some in expect.items()}
    for name, some in monotone.items():
        for factor, word in some.items():
            low, high = found.setdefault(name, {}).get(factor, (None, None))
            if word == RISES:
                low = 0.0 if low is None else max(low, 0.0)
            else:
                high = 0.0 if high is None else min(high, 0.0)
            found[name][factor] = low, high
    return found


def scaled_changes(outcome: Outcome, some: Mapping[str, Ends]) -> dict[str, Ends]:
    """The same on the outcome's scale."""
    found: dict[str, Ends] = {}
    for factor, (low, high) in some.items():
        ends = [
            None if end is None else outcome.sign * outcome.change_scaled(end)
            for end in (low, high)
        ]
        found[factor] = (ends[0], ends[1]) if outcome.sign > 0 else (ends[1], ends[0])
    return found
