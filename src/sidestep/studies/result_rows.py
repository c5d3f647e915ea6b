"""Every result of a record as a row: when, by whom, at which setting, and what became of it since."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sidestep.studies.factors import Setting
from sidestep.studies.measurement import Measurement, measurement_of_body
from sidestep.studies.plan import Plan
from sidestep.studies.storage.events import Event, written

COUNTS, CORRECTED, TAKEN_BACK = "", "corrected", "taken back"


@dataclass(frozen=True, slots=True)
class ResultRow:
    """A result as it counts now."""

    entry: int
    row: int | None  # of an import
    round: int | None  # of its question
    day: str  # on which it was measured; if that was not told, on which it was recorded
    at: str  # when it was recorded, UTC
    by: str
    note: str
    outcome: str
    result: Measurement  # of one that was taken back, what it was
    setting: Setting
    context: Mapping[str, Any]
    status: str = COUNTS
    was: Measurement | None = None  # before the latest correction
    why: str = ""  # it was corrected, or taken back


def result_rows(events: Iterable[Event]) -> list[ResultRow]:
    """The results in the order in which they were recorded."""
    rounds: dict[int, int] = {}
    found: dict[tuple[int, int], ResultRow] = {}
    for event in events:
        if event.kind == "asked":
            rounds[event.seq] = event.body["round"]
        elif event.kind == "answered":
            found[event.seq, 0] = _row(event, event.body, None, rounds.get(event.ticket or 0))
        elif event.kind == "imported":
            for row, body in enumerate(event.body["rows"]):
                found[event.seq, row] = _row(event, body, row, None)
        elif event.kind == "corrected":
            place = event.body["answer"], event.body.get("row", 0)
            found[place] = _changed(found[place], event)
    return list(found.values())


def _row(event: Event, body: Mapping[str, Any], row: int | None, round_: int | None) -> ResultRow:
    at = written(event.at)
    return ResultRow(
        entry=event.seq,
        row=row,
        round=round_,
        day=body.get("on") or f"{event.at.astimezone():%Y-%m-%d}",
        at=at,
        by=event.actor,
        note=event.reason or "",
        outcome=body["outcome"],
        result=measurement_of_body(body),
        setting=body["action"],
        context=body.get("context") or {},
    )


def _changed(row: ResultRow, event: Event) -> ResultRow:
    why = event.reason or ""
    if event.body["is"] is None:
        return replace(row, status=TAKEN_BACK, why=why)
    now = measurement_of_body(event.body, "is")
    return replace(
        row, status=CORRECTED, was=row.result, why=why, result=now, setting=event.body["action"]
    )


def columns_of_rows(plan: Plan, rows: Iterable[ResultRow]) -> dict[str, list[Any]]:
    """The rows as columns of a table; a table of past results can be read from it again."""
    rows = list(rows)
    when: dict[str, list[Any]] = {
        "date": [row.day for row in rows],
        "round": [row.round for row in rows],
    }
    told: dict[str, list[Any]] = {
        "outcome": [row.outcome for row in rows],
        "value": [row.result.value for row in rows],
        "unit": [plan.outcome(row.outcome).unit for row in rows],
        "kind": [row.result.kind for row in rows],
        "se": [row.result.se for row in rows],
        "repeats": [row.result.repeats for row in rows],
        "block": [row.result.block for row in rows],
        "by": [row.by for row in rows],
        "recorded": [row.at for row in rows],
        "note": [row.note for row in rows],
        "status": [row.status for row in rows],
        "was": [None if row.was is None else row.was.value for row in rows],
        "why": [row.why for row in rows],
        "entry": [row.entry for row in rows],
        "row": [row.row for row in rows],
    }
    settings = {
        f"set {factor.name}" if factor.name in {*when, *told} else factor.name: [
            {**row.context, **row.setting}.get(factor.name) for row in rows
        ]
        for factor in (*plan.factors, *plan.context)
    }
    return {**when, **settings, **told}
