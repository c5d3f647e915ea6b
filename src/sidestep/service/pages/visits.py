"""The visits of a study as a table: what was set, what was measured, by whom, and what was corrected."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from sidestep.service.auth import Visit
from sidestep.service.pages.candidates_view import csv_of
from sidestep.service.pages.shell import attachment, page
from sidestep.service.pages.study_view import common
from sidestep.service.pages.views import capital, day_name
from sidestep.service.routes import Readers
from sidestep.studies.cards.words import measured_text, named
from sidestep.studies.plan import Plan
from sidestep.studies.result_rows import TAKEN_BACK, ResultRow, columns_of_rows, result_rows

SCREEN = 50  # results

visit_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@visit_pages.get("/studies/{name}/visits")
def visits(
    request: Request, visit: Readers, begin: Annotated[int, Query(ge=0, le=1_000_000)] = 0
) -> Response:
    """A screen of results, the latest first."""
    rows = _rows(visit)[::-1]
    shown = rows[begin : begin + SCREEN]
    context = {
        "rows": [_shown(visit.study.plan, row) for row in shown],
        "total": len(rows),
        "begin": begin,
        "before": max(begin - SCREEN, 0) if begin else None,
        "next": begin + SCREEN if begin + SCREEN < len(rows) else None,
    }
    return page(request, "visits.html", {**common(visit), **context}, caller=visit.caller)


@visit_pages.get("/studies/{name}/visits.csv")
def visits_csv(visit: Readers) -> Response:
    """Every result, for a spreadsheet, in the order in which they were recorded."""
    text = csv_of(columns_of_rows(visit.study.plan, _rows(visit)))
    headers = {"Content-Disposition": attachment(f"{visit.study.name}-visits.csv")}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


def _rows(visit: Visit) -> list[ResultRow]:
    return visit.study.worked_out("result rows", lambda study: result_rows(study.history()))


def _shown(plan: Plan, row: ResultRow) -> dict[str, Any]:
    outcome = plan.outcome(row.outcome)
    was = "" if row.was is None else measured_text(outcome, row.was, plan.factors)
    return {
        "day": day_name(row.day),
        "round": "" if row.round is None else f"{plan.words.round} {row.round}",
        "setting": capital(named(plan, row.setting)),
        "outcome": row.outcome,
        "value": measured_text(outcome, row.result, plan.factors),
        "gone": row.status == TAKEN_BACK,
        "status": row.status,
        "was": was,
        "by": row.by,
        "note": row.note,
        "why": row.why,
        "entry": row.entry,
        "row": row.row,
    }
