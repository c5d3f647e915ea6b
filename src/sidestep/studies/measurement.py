"""A result as people have it: a value, with its error or its repeats, below detection, or a change.

    138.0                              one measurement
    2.31, se=0.12                      an estimate with its standard error: a weekly mean, an A/B test
    4.1, repeats=3                     the mean of three measurements of the same
    below=0.3                          less than can be detected; the limit is told
    change=-0.4, se=0.2                treatment minus control, measured side by side; against the
                                       baseline, or against another setting

In text (a field of a page, a cell of a table, a terminal): 2.31 ± 0.12, 4.1 x3, < 0.3, change -0.4 ± 0.2.
Needs no numpy.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from sidestep.errors import InputError
from sidestep.studies.factors import Factor, Setting, setting_of
from sidestep.studies.outcomes import Outcome
from sidestep.studies.values import (
    checked_name,
    checked_number,
    checked_percent,
    checked_positive,
    read_number,
    shown,
)

VALUE, BELOW, CHANGE = "value", "below", "change"
FARTHEST = 1e5  # half-ranges from the baseline; a number beyond would dominate all sums
MOST_REPEATS = 1_000_000
PARTS = ("value", "below", "change", "se", "repeats", "against")

_PARTS = re.compile(
    r"(?P<change>change\s*)?(?P<below><\s*)?(?P<number>[^±<x]+?)\s*"
    r"(?:(?:±|\+/?-)\s*(?P<se>.+?))?\s*(?:[x\u00d7]\s*(?P<repeats>\d+))?"
)


class Report(TypedDict, total=False):
    """A result as a caller gives it: exactly one of value, below and change."""

    value: float
    below: float  # less than this
    change: float | str  # against a control measured side by side; on a log scale in percent: "-4%"
    se: float | str  # its standard error
    repeats: int  # it is the mean of so many
    against: Mapping[str, object]  # the setting of the control, where it is not the baseline


class MeasurementBody(TypedDict, total=False):
    """What an entry of the record holds of a result; all but the value only where they were told."""

    value: float  # of "below" the limit, of "change" the difference
    kind: str  # "below" or "change"
    se: float
    repeats: int
    against: Setting
    block: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """A checked result. `value` is the limit of what lies below it, or the difference of a change."""

    value: float
    kind: str = VALUE
    se: float | None = None
    repeats: int | None = None
    against: Setting | None = None  # None: the baseline
    block: str | None = None  # batch, device or laboratory

    @property
    def is_plain(self) -> bool:
        """Whether a program that knows only values reads it rightly."""
        return self == Measurement(self.value)

    def to_body(self) -> MeasurementBody:
        """The keys of the record."""
        body: MeasurementBody = {"value": self.value}
        if self.kind != VALUE:
            body["kind"] = self.kind
        if self.se is not None:
            body["se"] = self.se
        if self.repeats is not None:
            body["repeats"] = self.repeats
        if self.against is not None:
            body["against"] = self.against
        if self.block is not None:
            body["block"] = self.block
        return body


def measurement_of_body(body: Mapping[str, Any], value: str = "value") -> Measurement:
    """The result that an entry holds; of a correction under the key "is"."""
    return Measurement(
        body[value],
        body.get("kind", VALUE),
        body.get("se"),
        body.get("repeats"),
        body.get("against"),
        body.get("block"),
    )


def is_new(body: Mapping[str, Any]) -> bool:
    """Whether an entry, or a row of an import, holds more than a value."""
    keys = ("kind", "se", "repeats", "against", "block")
    if "rows" in body:
        return any(is_new(row) for row in body["rows"])
    return "outcome" in body and any(key in body for key in keys)


def report_of(value: Any, **parts: Any) -> Any:
    """One report from the arguments of `tell`; a plain value, or a panel, as it came."""
    told = {name: part for name, part in parts.items() if part is not None}
    if not told:
        return value
    if isinstance(value, Mapping):
        raise InputError(
            f"{next(iter(told))} must be told for every outcome of a panel, as in "
            '{"sodium": {"value": 138, "se": 0.5}}, got it beside the panel'
        )
    return told if value is None else {"value": value, **told}


def is_report(value: object) -> bool:
    """Whether a mapping is one report rather than the results of a panel."""
    return isinstance(value, Mapping) and bool(value) and set(value) <= set(PARTS)


def measured(
    outcome: Outcome, factors: tuple[Factor, ...], told: Any, block: str | None = None
) -> Measurement:
    """The checked result; raises one sentence that says what is wrong."""
    report = dict(told) if isinstance(told, Mapping) else {"value": told}
    name = outcome.name
    if unknown := [key for key in report if key not in PARTS]:
        raise InputError(f"{name} must be told by {', '.join(PARTS)}, got {shown(unknown[0])}")
    kinds = [kind for kind in (VALUE, BELOW, CHANGE) if report.get(kind) is not None]
    if len(kinds) != 1:
        came = " and ".join(kinds) or ("none" if isinstance(told, Mapping) else shown(told))
        raise InputError(f"{name} must be told a value, below or change, one of these, got {came}")
    kind = kinds[0]
    value = (
        _change(outcome, report[kind]) if kind == CHANGE else checked_value(outcome, report[kind])
    )
    se, repeats, against = (report.get(part) for part in ("se", "repeats", "against"))
    if kind == BELOW and (se is not None or repeats is not None):
        raise InputError(f"{name} below detection must come without se and repeats, got one")
    if se is not None and repeats is not None:
        raise InputError(f"{name} must have se or repeats, got both")
    if against is not None and kind != CHANGE:
        raise InputError(f"against belongs to a change of {name}, got it with a {kind}")
    return Measurement(
        value,
        kind,
        None if se is None else _error(outcome, se, kind),
        None if repeats is None else _repeats(name, repeats),
        None if against is None else _against(factors, against),
        None if block is None else checked_name("block", block),
    )


def checked_value(outcome: Outcome, value: object) -> float:
    """A value that can be recorded: a finite number, at most FARTHEST half-ranges from the baseline."""
    number = checked_number(outcome.name, value)
    if outcome.is_log and number <= 0:
        raise InputError(f'{outcome.name} must be above 0 on scale="log", got {number:g}')
    if not outcome.is_log and abs(number - outcome.level) > FARTHEST * outcome.half:
        raise InputError(
            f"{outcome.name} must lie within {FARTHEST:g} times half its range {outcome.low:g} to "
            f"{outcome.high:g}, got {number:g}"
        )
    return number


def _change(outcome: Outcome, told: object) -> float:
    what = f"the change of {outcome.name}"
    if outcome.is_log:
        return checked_percent(what, told)
    number = checked_number(what, told)
    if abs(number) > FARTHEST * outcome.half:
        raise InputError(
            f"{what} must lie within {FARTHEST:g} times half its range, got {number:g}"
        )
    return number


def _error(outcome: Outcome, told: object, kind: str) -> float:
    what = f"se of {outcome.name}"
    if outcome.is_log and kind == CHANGE:
        return checked_positive(what, checked_percent(what, told))
    return checked_positive(what, told)


def _repeats(name: str, told: object) -> int | None:
    whole = isinstance(told, int) and not isinstance(told, bool)
    if not whole or not 1 <= int(str(told)) <= MOST_REPEATS:
        raise InputError(f"repeats of {name} must be a whole number, 1 or more, got {shown(told)}")
    return None if told == 1 else int(str(told))


def _against(factors: tuple[Factor, ...], told: object) -> Setting | None:
    """The setting of the control: the baseline but for the factors that are named."""
    baseline: Setting = {factor.name: factor.baseline for factor in factors}  # type: ignore[misc]
    if not isinstance(told, Mapping):
        raise InputError(f"against must be a value for factors, got {shown(told)}")
    setting = setting_of(factors, {**baseline, **told}, "against")
    return None if setting == baseline else setting


def read_report(what: str, text: str) -> Any:
    """A result as people type it: a number, or a report of its parts."""
    found = _PARTS.fullmatch(text.strip().replace("\u2212", "-"))
    if found is None or not any(found[part] for part in ("change", "below", "se", "repeats")):
        return read_number(what, text)
    number = found["number"]
    kind = CHANGE if found["change"] else BELOW if found["below"] else VALUE

    def read(name: str, part: str) -> Any:
        return part if part.endswith("%") else read_number(name, part)

    report: dict[str, Any] = {kind: read(what, number)}
    if found["se"]:
        report["se"] = read(f"the standard error of {what}", found["se"])
    if found["repeats"]:
        report["repeats"] = int(found["repeats"])
    return report
