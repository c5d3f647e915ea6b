"""The words and numbers of a card: a vocabulary per study, and as many digits as a person needs."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import TYPE_CHECKING

from sidestep.studies.factors import Factor, Value
from sidestep.studies.measurement import BELOW, CHANGE, Measurement
from sidestep.studies.outcomes import Outcome

if TYPE_CHECKING:
    from sidestep.studies.plan import Plan

MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a round, a candidate and an outcome are called, and what is done in a round."""

    verb: str  # an order: "give"
    done: str  # what was done: "given"
    round: str
    candidate: str
    outcome: str
    candidates: str
    outcomes: str


VOCABULARIES = {
    "clinic": Vocabulary("give", "given", "visit", "regimen", "marker", "regimens", "markers"),
    "experiment": Vocabulary("set", "live", "week", "setting", "metric", "settings", "metrics"),
    "lab": Vocabulary("run", "run", "batch", "recipe", "property", "recipes", "properties"),
}


def digits_of(outcome: Outcome) -> int:
    """Decimals of a value: as given, or from the tolerance, or from the range."""
    if outcome.digits is not None:
        return outcome.digits
    fine = _fine(outcome)
    return _digits(outcome.low * fine / 100 if outcome.is_log else fine)


def digits_of_change(outcome: Outcome) -> int:
    """Decimals of a change: those of a value; on a log scale, where it is in percent, its own."""
    return _digits(_fine(outcome)) if outcome.is_log else digits_of(outcome)


def _fine(outcome: Outcome) -> float:
    """The smallest change that a card shows."""
    limits = [abs(limit) for limit in outcome.limits if limit]
    return min(limits) / 6 if limits else outcome.size(1.0) / 20


def digits_of_loss(outcome: Outcome) -> int:
    """Decimals of the loss of stopping: from `matters`, if it is set."""
    return digits_of_change(outcome) if outcome.matters is None else _digits(outcome.matters / 6)


def _digits(fine: float) -> int:
    """Decimals that show differences of this size."""
    return min(max(0, -math.floor(math.log10(fine))), 9)


def number(value: float, digits: int) -> str:
    """A number with a point for decimals, no grouping, and a real minus."""
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def signed(value: float, digits: int) -> str:
    """A number with its sign, except zero."""
    text = number(value, digits)
    return text if text.startswith(MINUS) or float(text) == 0 else f"+{text}"


def plain(value: Value) -> str:
    """A value of a factor as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:.12g}".replace("-", MINUS)


def with_unit(text: str, unit: str) -> str:
    """A figure with its unit behind it."""
    return f"{text} {unit}" if unit else text


def result_text(outcome: Outcome, value: float) -> str:
    """A result with its unit, as a person writes it."""
    return with_unit(plain(value), outcome.unit)


def measured_text(outcome: Outcome, result: Measurement, factors: tuple[Factor, ...] = ()) -> str:
    """A result as a person says it: 2.31 ± 0.12 mmol/L; below 0.3; a change of -0.4 against ..."""
    unit = outcome.change_unit if result.kind == CHANGE else outcome.unit
    text = plain(result.value)
    if result.se is not None:
        text = f"{text} ± {plain(result.se)}"
    text = with_unit(text, unit)
    if result.kind == BELOW:
        text = f"below {text}"
    if result.kind == CHANGE:
        control = "the baseline" if result.against is None else set_text(factors, result.against)
        text = f"a change of {text} against {control}"
    if result.repeats is not None:
        text = f"{text}, the mean of {result.repeats}"
    return text if result.block is None else f"{text} ({result.block})"


def typed_text(outcome: Outcome, result: Measurement) -> str:
    """A result as `read_report` reads it again, for a field that is typed in."""
    mark = "%" if result.kind == CHANGE and outcome.is_log else ""
    parts = [{BELOW: "< ", CHANGE: "change "}.get(result.kind, ""), plain(result.value), mark]
    parts += [f" ± {plain(result.se)}{mark}"] if result.se is not None else []
    parts += [f" x{result.repeats}"] if result.repeats is not None else []
    return "".join(parts).replace(MINUS, "-")


def limit_text(outcome: Outcome) -> str:
    """The tolerance: ±0.30, or the two ends where they differ."""
    low, high = outcome.limits
    digits = digits_of_change(outcome)
    if low is None and high is None:
        return ""
    if low is not None and high is not None and low == -high:
        return f"±{number(high, digits)}"
    if low is None:
        return f"at most {signed(high or 0.0, digits)}"
    if high is None:
        return f"at least {signed(low, digits)}"
    return f"{signed(low, digits)} to {signed(high, digits)}"


def command(verb: str, *arguments: object) -> str:
    """What to type: words with spaces are quoted as a shell wants them."""
    return " ".join(["sidestep study", verb, *(quote(str(each)) for each in arguments)])


def quoted(text: str) -> str:
    """A text as Python writes it, in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def local_time(at: str) -> str:
    """A time of the record, which is UTC, in local time."""
    return f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M}"


def listed(names: list[str]) -> str:
    """Names in a sentence: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def sentence(text: str) -> str:
    """A text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """One result, 4 results."""
    if count == 1:
        return f"one {noun}"
    return f"{count} {plural or noun + 's'}"


def percent(share: float) -> str:
    """A share in percent; below one percent, and where it only rounds to all, it says so."""
    if share < 0.01:
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


def named(plan: "Plan", setting: Mapping[str, Value]) -> str:
    """A setting by what differs from the baseline: discount 10 %, banner yes."""
    changed = [each for each in plan.factors if setting[each.name] != plan.baseline[each.name]]
    return set_text(tuple(changed), setting) if changed else "the baseline"


def set_text(factors: tuple[Factor, ...], setting: Mapping[str, Value]) -> str:
    """A candidate in words: lisinopril 30, amlodipine 10, chlortalidone 25 mg/day."""
    parts = []
    for place, factor in enumerate(factors):
        following = factors[place + 1].unit if place + 1 < len(factors) else None
        text = f"{factor.name} {plain(setting[factor.name])}"
        parts.append(text if factor.unit == following else with_unit(text, factor.unit))
    return ", ".join(parts)
