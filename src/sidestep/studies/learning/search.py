"""The settings of a box that are worth a thought: a search by exchange from many starts.

A box has no list of settings. What may be hoped for of a setting (next_question.py) is climbed by
changing one factor at a time, and at first also two, over values spread across their ranges and then
ever closer to where they are; the starts are the baseline, what was measured, the ends of the ranges and
points spread evenly. All that is found is offered to the choice, the most hopeful first, so that
questions may be about other settings too. Nothing is drawn: the same results give the same settings.
"""

import itertools
from collections.abc import Callable, Sequence

from sidestep.errors import InputError
from sidestep.studies.factors import Factor, Setting, Value
from sidestep.studies.plan import Plan
from sidestep.studies.request import Request
from sidestep.studies.values import standard

STARTS = 4  # that are climbed from
SPREAD = 200  # points that are spread evenly
VALUES = 7  # of a factor in an exchange
SWEEPS = 3  # each with steps of a third of those before
OFFERED = 400  # settings, at most

Hope = Callable[[Sequence[Setting]], list[float]]
Place = tuple[Value, ...]


def searched(
    hope: Hope, plan: Plan, request: Request, last: Setting | None, known: Sequence[Setting]
) -> list[Setting]:
    """Settings that the request admits: the baseline, what was measured, then the most hopeful."""
    here = last or plan.baseline
    ends = [_ends(factor, request, here) for factor in plan.factors]
    found: dict[Place, float] = {}

    def look(places: Sequence[Place]) -> None:
        new = list(dict.fromkeys(place for place in places if place not in found))
        if new:
            settings = [_setting(plan, place) for place in new]
            found.update(zip(new, (round(each, 9) for each in hope(settings)), strict=True))

    starts = [_place(plan, each) for each in (plan.baseline, here, *known)]
    starts = [place for place in starts if _inside(place, ends)]
    starts += [_at(plan, ends, shares) for shares in _shares(len(ends))]
    look(starts)
    best = sorted(found, key=lambda place: (-found[place], str(place)))[:STARTS]
    for sweep in range(SWEEPS):
        width = 3.0**-sweep
        groups: list[tuple[int, ...]] = [(i,) for i in range(len(ends))]
        if sweep == 0 and len(ends) > 1:
            groups += itertools.combinations(range(len(ends)), 2)
        for group in groups:
            tries = [_exchanged(plan, ends, place, group, width) for place in best]
            look([place for some in tries for place in some])
            best = [
                min((place, *some), key=lambda each: (-found[each], str(each)))
                for place, some in zip(best, tries, strict=True)
            ]
        best = list(dict.fromkeys(best))
    order = sorted(found, key=lambda place: (-found[place], str(place)))
    kept = dict.fromkeys([*starts[: 2 + len(known)], *order[: OFFERED // 2], *found])
    return [_setting(plan, place) for place in list(kept)[:OFFERED]]


def _ends(factor: Factor, request: Request, here: Setting) -> tuple[float, float]:
    low, high = request.bounds(factor, here)
    low, high = max(low, float(factor.low or 0)), min(high, float(factor.high or 0))
    if low > high:
        raise InputError(
            f"allowed and largest_step must leave a value for {factor.name}, got {low:g} to {high:g}"
        )
    return low, high


def _shares(count: int) -> list[tuple[float, ...]]:
    """Places of starts, as shares of the ranges: ends of one factor at a time, then an even spread."""
    middle = (0.5,) * count
    found = [middle, (0.0,) * count, (1.0,) * count]
    for factor, end in itertools.product(range(count), (0.0, 1.0)):
        found.append((*middle[:factor], end, *middle[factor + 1 :]))
    # the additive sequence of the generalised golden ratio fills a box evenly at every length
    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (count + 1))
    steps = [ratio ** -(factor + 1) for factor in range(count)]
    return found + [
        tuple(standard((0.5 + number * step) % 1.0) for step in steps)
        for number in range(1, SPREAD + 1)
    ]


def _at(plan: Plan, ends: Sequence[tuple[float, float]], shares: Sequence[float]) -> Place:
    """The setting at shares of the ranges, on their scales."""
    found: list[Value] = []
    for factor, bounds, share in zip(plan.factors, ends, shares, strict=True):
        low, high = (factor.coordinates(end)[0] for end in bounds)
        found.append(factor.nearest(low + share * (high - low), bounds))
    return tuple(found)


def _exchanged(
    plan: Plan,
    ends: Sequence[tuple[float, float]],
    place: Place,
    group: Sequence[int],
    width: float,
) -> list[Place]:
    """The same setting with other values of some factors, over a part of their ranges around it."""
    values = [_around(plan.factors[i], ends[i], place[i], width, len(group)) for i in group]
    found = []
    for chosen in itertools.product(*values):
        other = list(place)
        for i, value in zip(group, chosen, strict=True):
            other[i] = value
        found.append(tuple(other))
    return found


def _around(
    factor: Factor, bounds: tuple[float, float], value: Value, width: float, together: int
) -> list[float]:
    low, high = (factor.coordinates(end)[0] for end in bounds)
    middle = factor.coordinates(value)[0]
    half = width * (high - low) / (2.0 if width < 1 else 1.0)
    count = VALUES if together == 1 else 4
    first, end = max(low, middle - half), min(high, middle + half)
    return [
        factor.nearest(first + (end - first) * step / (count - 1), bounds) for step in range(count)
    ]


def _place(plan: Plan, setting: Setting) -> Place:
    return tuple(setting[factor.name] for factor in plan.factors)


def _setting(plan: Plan, place: Place) -> Setting:
    return {factor.name: value for factor, value in zip(plan.factors, place, strict=True)}


def _inside(place: Place, ends: Sequence[tuple[float, float]]) -> bool:
    return all(low <= float(value) <= high for value, (low, high) in zip(place, ends, strict=True))
