"""The candidates side by side, sorted: what each does to every outcome, and how likely it is the best."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sidestep.errors import InputError
from sidestep.service.pages import svg
from sidestep.service.pages.best_view import is_few
from sidestep.studies.advice import Best, Effect, Explanation, Row
from sidestep.studies.cards.card import VERDICTS
from sidestep.studies.cards.markup import Markup
from sidestep.studies.cards.words import (
    digits_of_change,
    limit_text,
    named,
    percent,
    plain,
    signed,
    with_unit,
)
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan

FEW = 8
BEST, NUMBER = "best", "no"
RECOMMENDED = "recommended"
# first characters of cells that a spreadsheet would execute
RISKY = ("=", "+", "-", "@", "\t", "\r")


class Cell(NamedTuple):
    """One outcome of one candidate."""

    name: str
    change: str
    interval: str
    verdict: str
    mark: Markup
    gauge: Markup


class Sorting(NamedTuple):
    """The column and direction by which a table is sorted."""

    by: str = BEST
    down: bool = True


def candidates_view(
    plan: Plan,
    rows: Sequence[Row],
    *,
    best: Best,
    asked: int | None,
    sorting: Sorting = Sorting(),  # noqa: B008  # it never changes
    begin: int = 0,
    most: int = FEW,
) -> dict[str, Any]:
    """A page of the table, its heading, and what it is sorted by."""
    ordered = sorted_rows(plan, rows, sorting)
    notes = _notes(plan, best, asked)
    return {
        "total": len(rows),
        "begin": begin,
        "next": begin + most if begin + most < len(rows) else None,
        "before": max(begin - most, 0) if begin else None,
        "sorting": sorting,
        "heads": [_head(plan, outcome) for outcome in plan.outcomes],
        "candidate": plan.words.candidate,
        "rows": [_row(plan, row, notes) for row in ordered[begin : begin + most]],
        "few": is_few(plan, best),
    }


def _notes(plan: Plan, best: Best, asked: int | None) -> dict[int | None, list[str]]:
    """What is written beside candidates; before there is enough data nothing is recommended."""
    notes: dict[int | None, list[str]] = {}
    if not is_few(plan, best):
        notes[best.candidate] = [RECOMMENDED]
    notes.setdefault(asked, []).append("asked now")
    return notes


def sorted_rows(plan: Plan, rows: Sequence[Row], sorting: Sorting) -> list[Row]:
    """The rows in order: by chance of being the best, by number, or by an outcome's change."""
    if sorting.by == NUMBER:
        return sorted(rows, key=lambda row: row.candidate or 0, reverse=sorting.down)
    if sorting.by == BEST:
        return list(rows) if sorting.down else list(rows)[::-1]
    plan.index(sorting.by)
    return sorted(rows, key=lambda row: row.effects[sorting.by].estimate, reverse=sorting.down)


def sorting_of(plan: Plan, by: str | None, order: str | None) -> Sorting:
    """The requested sorting; by default the best for the goal first."""
    if by is None:
        return Sorting()
    if by not in (BEST, NUMBER):
        plan.index(by)
    if order not in (None, "up", "down"):
        raise InputError(f"order must be up or down, got {order!r}")
    return Sorting(by, order == "down")


def _head(plan: Plan, outcome: Outcome) -> dict[str, str]:
    unit = outcome.change_unit
    about = unit if outcome is plan.target else with_unit(limit_text(outcome), unit)
    return {"name": outcome.name, "about": about}


def _row(plan: Plan, row: Row, notes: Mapping[int | None, list[str]]) -> dict[str, Any]:
    noted = notes.get(row.candidate, [])
    target, *others = [_cell(each, row.effects[each.name]) for each in plan.outcomes]
    return {
        "number": row.candidate,
        "note": ", ".join(noted),
        "is_best": RECOMMENDED in noted,
        "setting": named(plan, row.action),
        "target": target,
        "others": others,
        "chance": percent(row.probability) if row.probability else "<1%",
    }


def _cell(outcome: Outcome, effect: Effect) -> Cell:
    estimate, low, high = (signed(end, digits_of_change(outcome)) for end in effect[:3])
    verdict = VERDICTS.get(effect.verdict or "", "")
    picture = svg.gauge(outcome, effect, 14)
    return Cell(
        outcome.name, estimate, f"{low} to {high}", verdict, svg.mark(effect.verdict), picture
    )


def csv_text(explanation: Explanation) -> str:
    """Every candidate as CSV."""
    return csv_of(explanation.to_columns())


def csv_of(columns: Mapping[str, Sequence[Any]]) -> str:
    """Columns as CSV without cells that a spreadsheet would execute."""
    written = io.StringIO()
    table = csv.writer(written)
    table.writerow([_safe(name) for name in columns])
    table.writerows([_safe(value) for value in row] for row in zip(*columns.values(), strict=True))
    return written.getvalue()


def _safe(value: object) -> object:
    if isinstance(value, bool):
        return plain(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(RISKY) else value
