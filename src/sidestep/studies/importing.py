"""Imports past results from a table: all of them or none; an error names the wrong rows.

wide    a column for every factor and one for every measured outcome; empty cells are skipped
long    a column for every factor, and the columns `outcome` and `value`

Beside the column of an outcome there may be its standard error ("potassium se") or the number of
measurements that it is the mean of ("potassium repeats"); in a long table the columns `se` and `repeats`.
A cell may say "< 0.3" for what is below detection, "2.31 ± 0.12", or "change -0.4 ± 0.2". The column
`block` names a batch, a device or a laboratory, `date` the day (2026-11-18). Instead of the factors
either may have the column `candidate`, with the numbers of candidates.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sidestep.errors import ConflictError, InputError
from sidestep.studies.cards.doubt import doubt_text
from sidestep.studies.cards.words import counted, local_time
from sidestep.studies.factors import Factor, Setting
from sidestep.studies.frames import Columns, columns_of
from sidestep.studies.keys import repeat_of
from sidestep.studies.measurement import measurement_of_body, read_report, report_of
from sidestep.studies.plan import Plan
from sidestep.studies.recording import Author, Told, Written, results_of
from sidestep.studies.storage.events import written
from sidestep.studies.storage.log import Log
from sidestep.studies.values import checked_day, read_number

MOST = 10_000  # results at once
NAMED = 5  # wrong rows that are named
CANDIDATE = "candidate"  # column that names a setting by its number
BESIDE = ("se", "repeats")  # columns beside that of an outcome: "potassium se"
DATE = "date"  # column of the day on which a row was measured
BLOCK = "block"  # column of the batch, the device or the laboratory

Row = dict[str, Any]


class Import(NamedTuple):
    """The results of a table, their source, and the columns that the study does not use."""

    rows: list[Row]
    source: str
    unused: list[str]


def import_of(plan: Plan, table: Any) -> Import:
    """The results of a table, checked."""
    columns = columns_of(table, "results")
    rows = rows_of(plan, columns)
    used = {factor.name for factor in (*plan.factors, *plan.context)}
    used |= set(_measured(plan, columns)) or {"outcome", "value"}
    used |= _beside(plan, columns)
    used |= {CANDIDATE} if _names_candidates(plan, columns) else set()
    source = table.name if isinstance(table, Path) else type(table).__name__
    return Import(rows, source, [name for name in columns if name not in used])


def take_over(log: Log, found: Import, author: Author, *, again: bool) -> Written:
    """Record past results, all at once; the same results a second time only with `again`."""
    rows = found.rows
    known = repeat_of(log, author.key, ("imported",), lambda event: event.body["rows"] == rows)
    if known is not None:
        return Written((known,), repeated=True)
    if not again:
        _check_new(log, rows)
    body = {"rows": rows, "source": found.source}
    body |= {"unused": found.unused} if found.unused else {}
    event = log.append("imported", body=body, actor=author.actor, key=author.key)
    return Written((event,), repeated=False)


def _check_new(log: Log, rows: list[Row]) -> None:
    for event in log.events():
        if event.kind == "imported" and event.body["rows"] == rows:
            raise ConflictError(
                f"entry {event.seq} holds exactly {_these(len(rows))}, imported by "
                f"{event.actor} at {local_time(written(event.at))}; nothing was recorded: import "
                "them with again=True (--again) where they were measured twice"
            )


def _these(count: int) -> str:
    return "this one result" if count == 1 else f"these {count} results"


def rows_of(plan: Plan, table: Any) -> list[Row]:
    """The results of a table, each with its setting; raises one sentence that names wrong rows."""
    return [row for _, row in _numbered(plan, columns_of(table, "results"))]


def doubt_of(plan: Plan, table: Any) -> str | None:
    """What is surprising about results that are not imported yet; None if nothing is."""
    doubts = []
    for number, row in _numbered(plan, columns_of(table, "results")):
        text = doubt_text(plan.outcome(row["outcome"]), measurement_of_body(row), None)
        doubts += [f"row {number}: {text}"] if text else []
    if not doubts:
        return None
    more = len(doubts) - 1
    return doubts[0] + (f" And {counted(more, 'more result')} like it." if more else "")


def _numbered(plan: Plan, columns: Columns) -> list[tuple[int, Row]]:
    """Every result with the number of its row in the table."""
    named = _names_candidates(plan, columns)
    for factor in plan.context if named else (*plan.factors, *plan.context):
        if factor.name not in columns:
            raise InputError(
                f"results must have a column for every factor, or {CANDIDATE!r} with numbers of "
                f"candidates, got none for {factor.name!r}"
            )
    measured, days = _measured(plan, columns), _days(plan, columns)
    found: list[tuple[int, Row]] = []
    wrong: list[str] = []
    for number in range(len(next(iter(columns.values())))):
        cells = {name: column[number] for name, column in columns.items()}
        try:
            found += [(number, row | days[number]) for row in _row(plan, cells, measured)]
        except InputError as error:
            wrong.append(f"row {number}: {error}")
    if wrong:
        more = f"; and {len(wrong) - NAMED} more rows" if len(wrong) > NAMED else ""
        raise InputError(
            f"no result was recorded: every row must be right, got {'; '.join(wrong[:NAMED])}{more}"
        )
    if not 1 <= len(found) <= MOST:
        raise InputError(f"results must be 1 to {MOST} at once, got {len(found)}")
    return found


def _measured(plan: Plan, columns: Columns) -> list[str]:
    """Outcomes that have their own column; none in a long table."""
    names = [outcome.name for outcome in plan.outcomes if outcome.name in columns]
    if not names and not {"outcome", "value"} <= set(columns):
        raise InputError(
            "results must have a column for an outcome, or the columns outcome and value, got "
            + ", ".join(columns)
        )
    return names


def _row(plan: Plan, cells: Mapping[str, Any], measured: list[str]) -> list[Row]:
    """The results of one row."""
    action = _action(plan, cells)
    context = _read(plan.context, cells)
    pairs = [(name, cells[name]) for name in measured] or [(cells["outcome"], cells["value"])]
    rows = []
    for name, cell in pairs:
        if measured and _is_empty(cell):
            continue
        told = _report(str(name), cell, cells, f"{name} " if measured else "")
        result = results_of(plan, Told(told, str(name), block=_block(cells)), ())[str(name)]
        row: Row = {"outcome": name, **result.to_body(), "action": action}
        rows.append(row | ({"context": context} if context else {}))
    return rows


def _report(name: str, cell: Any, cells: Mapping[str, Any], prefix: str) -> Any:
    """A result of a row: its cell, and the cells beside it that hold its error or its repeats."""
    told = read_report(name, cell) if isinstance(cell, str) else cell
    beside = {part: cells.get(f"{prefix}{part}") for part in BESIDE}
    parts = {
        part: read_number(f"{name} {part}", each) if isinstance(each, str) else each
        for part, each in beside.items()
        if not _is_empty(each)
    }
    if (repeats := parts.get("repeats")) is not None and repeats == int(repeats):
        parts["repeats"] = int(repeats)
    if isinstance(told, Mapping):
        return {**told, **parts}
    return report_of(told, **parts)


def _block(cells: Mapping[str, Any]) -> str | None:
    cell = cells.get(BLOCK)
    return None if _is_empty(cell) else str(cell)


def _beside(plan: Plan, columns: Columns) -> set[str]:
    """The columns that hold the error or the repeats of a result, and the batch of a row."""
    prefixes = [f"{name} " for name in _measured(plan, columns)] or [""]
    known = {f"{prefix}{part}" for prefix in prefixes for part in BESIDE} | {BLOCK}
    known |= {DATE} if any(_days(plan, columns)) else set()
    return known & set(columns)


def _days(plan: Plan, columns: Columns) -> list[Row]:
    """The day of every row; none where the column has other words than days, and then it is unused."""
    names = {each.name for each in (*plan.factors, *plan.context)}
    cells: list[Any] = [None] * len(next(iter(columns.values())))
    if DATE not in names:
        cells = columns.get(DATE, cells)
    try:
        return [{} if _is_empty(cell) else {"on": checked_day(DATE, cell)} for cell in cells]
    except InputError:
        return [{} for _ in cells]


def _names_candidates(plan: Plan, columns: Columns) -> bool:
    """Whether the table has the numbers of candidates instead of factors."""
    has_factors = any(factor.name in columns for factor in plan.factors)
    return CANDIDATE in columns and not has_factors and not plan.candidates.is_box


def _action(plan: Plan, cells: Mapping[str, Any]) -> Setting:
    """The setting of a row: the value of every factor, or that of the candidate it names."""
    if any(factor.name in cells for factor in plan.factors):
        return _read(plan.factors, cells)
    number, last = read_number(CANDIDATE, str(cells[CANDIDATE])), len(plan.candidates) - 1
    if number != int(number) or not 0 <= number <= last:
        raise InputError(f"{CANDIDATE} must be a number in 0..{last}, got {cells[CANDIDATE]!r}")
    return plan.candidates.setting(int(number))


def _read(factors: tuple[Factor, ...], cells: Mapping[str, Any]) -> Setting:
    return {factor.name: factor.read(cells[factor.name], on_steps=False) for factor in factors}


def _is_empty(cell: Any) -> bool:
    blank = isinstance(cell, str) and not cell.strip()
    return cell is None or blank or (isinstance(cell, float) and math.isnan(cell))
