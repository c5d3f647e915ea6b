"""Earlier studies that teach the next one: whether they may, and their results."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sidestep.errors import InputError, StudyNotFound
from sidestep.studies.book import Book, Result
from sidestep.studies.factors import Factor
from sidestep.studies.frames import Columns, columns_of
from sidestep.studies.importing import rows_of
from sidestep.studies.measurement import measurement_of_body
from sidestep.studies.plan import Plan, plan_from_config
from sidestep.studies.storage.exchange import import_study
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.store import Store
from sidestep.studies.values import shown

SUBJECT = "subject"  # column of a table that says whose result it is
TABLES = (".csv", ".parquet", ".xlsx")
MOST = 100  # earlier studies


class Lesson(NamedTuple):
    """The results of one earlier study."""

    name: str
    results: tuple[Result, ...]


def lessons_of(plan: Plan, given: Any, store: Store) -> list[Lesson]:
    """The results of earlier studies: names in the same storage, exports, or a table by subject."""
    if isinstance(given, (str, Path)):
        given = columns_of(given, "learn_from") if str(given).endswith(TABLES) else [given]
    named = isinstance(given, (list, tuple)) and all(isinstance(e, (str, Path)) for e in given)
    found = (
        [_studied(plan, each, store) for each in given]
        if named
        else _by_subject(plan, columns_of(given, "learn_from"))
    )
    names = [each.name for each in found]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"learn_from must name every study once, got {shown(twice[0])} twice")
    if len(found) > MOST:
        raise InputError(f"learn_from must name at most {MOST} studies, got {len(found)}")
    if empty := [each.name for each in found if not each.results]:
        raise InputError(f"learn_from must name studies with results, got {shown(empty[0])}: none")
    return found


def _studied(plan: Plan, each: str | Path, store: Store) -> Lesson:
    """The results of a study in the storage, or of an export."""
    source, name = store, str(each)
    try:
        head = store.head(name)
    except (StudyNotFound, InputError):
        if not Path(each).is_file():
            raise InputError(
                f"learn_from must name studies of this storage, or exports, got {shown(name)}"
            ) from None
        source = MemoryStore()
        with Path(each).open(encoding="utf-8") as lines:
            head = import_study(source, lines)
    rows = head.config["candidates"].get("rows")
    table = None if rows is None else json.loads(source.blob(rows) or "[]")
    other = plan_from_config(head.config, table)
    if why := unlike(plan, other):
        raise InputError(f"{head.name} must not teach this study: {why}")
    book = Book()
    book.take(source.events(head.name))
    names = {outcome.name for outcome in plan.outcomes}
    results = [result for result in book.results.values() if result.outcome in names]
    return Lesson(head.name, tuple(results))


def _by_subject(plan: Plan, columns: Columns) -> list[Lesson]:
    """The results of a table, by its column `subject`."""
    if SUBJECT not in columns:
        raise InputError(
            f"learn_from must have a column {SUBJECT!r} that says whose results a row holds, got "
            + ", ".join(columns)
        )
    found = []
    for subject in dict.fromkeys(str(each) for each in columns[SUBJECT]):
        rows = [row for row, each in enumerate(columns[SUBJECT]) if str(each) == subject]
        mine = {
            name: [column[row] for row in rows]
            for name, column in columns.items()
            if name != SUBJECT
        }
        results = tuple(
            Result(
                0,
                row,
                body["outcome"],
                measurement_of_body(body),
                body["action"],
                body.get("context"),
                0,
            )
            for row, body in enumerate(rows_of(plan, mine))
        )
        found.append(Lesson(subject, results))
    return found


def unlike(plan: Plan, other: Plan) -> str | None:
    """Why the results of another study say nothing of this one; None: they do."""
    for what in ("factors", "context"):
        mine, yours = getattr(plan, what), getattr(other, what)
        if [each.name for each in mine] != [each.name for each in yours]:
            listed = ", ".join(each.name for each in yours) or "none"
            return f"its {what} are {listed}"
        for one, two in zip(mine, yours, strict=True):
            if why := _differ(one, two):
                return why
    known = {outcome.name: outcome for outcome in other.outcomes}
    for outcome in plan.outcomes:
        if outcome.name not in known:
            return f"it does not measure {outcome.name}"
        there = known[outcome.name]
        if (there.unit, there.is_log) != (outcome.unit, outcome.is_log):
            return f"its {outcome.name} is in {shown(there.change_unit)}"
    return None


def _differ(one: Factor, two: Factor) -> str | None:
    """In what a factor differs from that of the same name."""
    if one.unit != two.unit:
        return f"its {one.name} is in {shown(two.unit)}"
    if one.baseline != two.baseline:
        return f"its baseline of {one.name} is {shown(two.baseline)}"
    words = one.is_category and set(one.grid) != set(two.grid)
    if words or (one.low, one.high, one.scale, one.offset) != (
        two.low,
        two.high,
        two.scale,
        two.offset,
    ):
        return f"its {one.name} has another range"
    return None


def frozen_from(lessons: Sequence[Lesson], taught: Mapping[str, Any]) -> dict[str, Any]:
    """What the record of a study keeps of the earlier ones."""
    told = [{"name": each.name, "results": len(each.results)} for each in lessons]
    return {"studies": told, **taught}
