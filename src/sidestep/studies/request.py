"""The restrictions of one ask: candidates, ranges, outcomes, the size of a step, the price."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

from sidestep.errors import InputError
from sidestep.studies.factors import ANY, Factor, Range, Setting, Value, checked_steps
from sidestep.studies.plan import ALL, Plan
from sidestep.studies.values import checked_number, checked_positive, checked_word, shown

LEARN, CONFIRM = "learn", "confirm"


@dataclass(frozen=True)
class Request:
    """One ask, checked. Without restrictions it is a plain question."""

    purpose: str = LEARN
    measure: str | None = None  # the outcome to confirm
    panel: int = 1  # how many outcomes are measured at once
    measure_only: tuple[str, ...] = ()
    candidates: tuple[int, ...] | None = None  # the only ones allowed
    ranges: tuple[tuple[str, Range], ...] = ()  # of factors that are numbers
    words: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of factors that are words
    largest_step: tuple[tuple[str, float], ...] = ()  # from the last setting
    price_cap: float | None = None  # largest expected loss in the target against today's best
    context: tuple[tuple[str, Value], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The restrictions beyond a plain question, as JSON."""
        fields = ("measure", "panel", "measure_only", "candidates", "price_cap")
        told = {name: getattr(self, name) for name in fields}
        changed = {name: value for name, value in told.items() if value != getattr(PLAIN, name)}
        for name in ("ranges", "words", "largest_step", "context"):
            if getattr(self, name):
                changed[name] = dict(getattr(self, name))
        return changed if self.purpose == LEARN else {"purpose": self.purpose, **changed}

    def bounds(self, factor: Factor, last: Setting) -> Range:
        """The allowed range of a numeric factor in this round."""
        low, high = dict(self.ranges).get(factor.name, ANY)
        step = dict(self.largest_step).get(factor.name)
        if step is not None:
            slack = 1e-9 * step  # so that a step of exactly that size is allowed
            here = float(last[factor.name])
            low, high = max(low, here - step - slack), min(high, here + step + slack)
        return low, high

    def admits(self, factors: Sequence[Factor], setting: Setting, last: Setting) -> bool:
        """Whether a candidate may be asked."""
        for factor in factors:
            value = setting[factor.name]
            if isinstance(value, str):
                if value not in dict(self.words).get(factor.name, (value,)):
                    return False
            else:
                low, high = self.bounds(factor, last)
                if not low <= value <= high:
                    return False
        return True

    @property
    def restricts(self) -> bool:
        """Whether some candidates are excluded."""
        return bool(self.candidates is not None or self.ranges or self.words or self.largest_step)


PLAIN = Request()


def request_of(
    plan: Plan,
    *,
    purpose: str = LEARN,
    measure: str | None = None,
    panel: int | str | Sequence[str] | None = None,
    measure_only: str | Sequence[str] = (),
    allowed: Any = None,
    largest_step: Mapping[str, float] | None = None,
    price_cap: float | None = None,
    context: Mapping[str, Any] | None = None,
) -> Request:
    """The checked request; raises one sentence if a part of it is impossible."""
    checked_word("purpose", purpose, (LEARN, CONFIRM))
    if measure is not None:
        plan.index(measure)
        if purpose != CONFIRM:
            raise InputError(
                f'measure is for purpose="confirm", got {measure!r} (measure_only restricts an ask)'
            )
    only = _outcomes(plan, measure_only)
    if panel is None:
        panel = _usual_panel(plan, purpose, only)
    if panel == ALL:
        panel = only or [outcome.name for outcome in plan.outcomes]
    if isinstance(panel, Iterable):
        named = _outcomes(plan, panel)
        if left_out := [name for name in named if only and name not in only]:
            raise InputError(f"panel must be of measure_only, got {left_out[0]!r}")
        only, panel = named, len(named)
    if measure is not None and only and measure not in only:
        raise InputError(f"measure must be one of measure_only, got {measure!r}")
    limit = len(only) or len(plan.outcomes)
    if not isinstance(panel, int) or isinstance(panel, bool) or not 1 <= panel <= limit:
        raise InputError(f"panel must lie in 1..{limit}, got {panel!r}")
    numbers, ranges, words = _allowed(plan, allowed)
    return Request(
        purpose=purpose,
        measure=measure,
        panel=panel,
        measure_only=only,
        candidates=numbers,
        ranges=ranges,
        words=words,
        largest_step=checked_steps(
            plan.factors, plan.largest_step if largest_step is None else largest_step
        ),
        price_cap=None if price_cap is None else checked_positive("price_cap", price_cap),
        context=context_of(plan, context),
    )


def _usual_panel(plan: Plan, purpose: str, only: tuple[str, ...]) -> int | tuple[str, ...]:
    """What the study measures at a visit, of the outcomes that can be measured."""
    if purpose == CONFIRM:
        return 1
    if isinstance(plan.panel, int):
        return min(plan.panel, len(only) or plan.panel)
    named = tuple(name for name in plan.panel if not only or name in only)
    return named or only


def request_from_json(kept: Mapping[str, Any]) -> Request:
    """The request that `to_json` wrote."""
    fields = {name: value for name, value in kept.items() if name not in ("ranges", "words")}
    for name in ("measure_only", "candidates"):
        if name in kept:
            fields[name] = tuple(kept[name])
    for name in ("largest_step", "context"):
        if name in kept:
            fields[name] = tuple(kept[name].items())
    for name in ("ranges", "words"):
        fields[name] = tuple((each, tuple(value)) for each, value in kept.get(name, {}).items())
    return Request(**fields)


def arguments_of(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of `ask`, from what `to_json` wrote; for asking the same again."""
    same = ("purpose", "measure", "panel", "measure_only", "largest_step", "price_cap", "context")
    told = {"panel": 1} | {name: kept[name] for name in same if name in kept}
    allowed = kept.get("candidates") or {**kept.get("ranges", {}), **kept.get("words", {})}
    return told | ({"allowed": allowed} if allowed else {})


def context_of(plan: Plan, given: Mapping[str, Any] | None) -> tuple[tuple[str, Value], ...]:
    """A value for every context factor, if the plan has a model."""
    wanted = {factor.name: factor for factor in plan.context}
    for name in given or {}:
        if name not in wanted:
            known = ", ".join(wanted) or "none in this study"
            raise InputError(f"context must name {known}, got {name!r}")
    for name in wanted:
        if name not in (given or {}):
            raise InputError(f"context must have a value for {name!r}, got {shown(given)}")
    return tuple((name, factor.checked((given or {})[name])) for name, factor in wanted.items())


def _outcomes(plan: Plan, names: str | Sequence[str]) -> tuple[str, ...]:
    """Outcomes of the study, each once."""
    given = (names,) if isinstance(names, str) else tuple(names)
    for name in given:
        plan.index(name)
    return tuple(dict.fromkeys(given))


def _allowed(plan: Plan, allowed: Any) -> tuple[Any, Any, Any]:
    """(candidates, ranges, words) from the argument `allowed`."""
    if allowed is None:
        return None, (), ()
    if not isinstance(allowed, Mapping):
        return _numbers(plan, allowed), (), ()
    factors = {factor.name: factor for factor in plan.factors}
    ranges, words = [], []
    for name, value in allowed.items():
        if name not in factors:
            raise InputError(f"allowed must name factors of {', '.join(factors)}, got {name!r}")
        if factors[name].is_category:
            several = hasattr(value, "__iter__") and not isinstance(value, str)
            chosen = tuple(value) if several else (value,)
            words.append((name, tuple(str(factors[name].checked(word)) for word in chosen)))
        elif factors[name].is_yes_no:
            ranges.append((name, _yes_no_range(factors[name], value)))
        else:
            ranges.append((name, _range(name, value)))
    return None, tuple(ranges), tuple(words)


def _numbers(plan: Plan, allowed: Any) -> tuple[int, ...]:
    count = len(plan.candidates)
    if plan.candidates.is_box:
        raise InputError("allowed must be ranges of factors in a box, got candidates")
    try:
        numbers = tuple(index(number) for number in allowed)
    except TypeError as error:
        raise InputError(
            f"allowed must be numbers of candidates or ranges of factors, got {shown(allowed)}"
        ) from error
    wrong = [number for number in numbers if not 0 <= number < count]
    if wrong or not numbers:
        raise InputError(
            f"allowed must name candidates 0..{count - 1}, got {wrong[0] if wrong else 'none'}"
        )
    return tuple(sorted(set(numbers)))


def _range(name: str, value: Any) -> Range:
    pair = value if isinstance(value, Sequence) and not isinstance(value, str) else (value, value)
    if len(pair) != 2:
        raise InputError(f"allowed must be a pair (low, high) for {name}, got {shown(value)}")
    low, high = (checked_number(f"allowed of {name}", end) for end in pair)
    if low > high:
        raise InputError(f"allowed must have low <= high for {name}, got {shown(value)}")
    return low, high


def _yes_no_range(factor: Factor, value: Any) -> Range:
    """A yes or a no, or both, as a range of 0 and 1."""
    several = hasattr(value, "__iter__") and not isinstance(value, str)
    ends = [float(factor.checked(each)) for each in (value if several else (value,))]
    if not ends:
        raise InputError(f"allowed must be yes or no for {factor.name}, got {shown(value)}")
    return min(ends), max(ends)
