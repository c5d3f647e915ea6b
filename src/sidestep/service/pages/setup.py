"""The form that sets up a study: rows of factors and outcomes, read as arguments of `Study.create`."""

import re
from typing import Any, NamedTuple

from sidestep.errors import InputError
from sidestep.service.pages.forms import Form
from sidestep.service.pages.views import question_view
from sidestep.studies.book import Question
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.study import Study
from sidestep.studies.values import checked_positive, read_number

FACTOR = ("name", "unit", "low", "high", "step", "levels", "baseline")
OUTCOME = ("name", "unit", "low", "high", "tolerance", "harm", "baseline")
FIGURE = re.compile(r"[+\-\u2212]?[\d.,]+([eE][+-]?\d+)?")  # 6.25; and 6,25, refused with advice
FEWEST, MORE, MOST = 3, 2, 40  # rows of a form


class Rows(NamedTuple):
    """Rows to be shown, each a field by its name."""

    factors: list[dict[str, str]]
    outcomes: list[dict[str, str]]

    @staticmethod
    def example() -> Form:
        """An example form: a clinic with three drugs and three markers."""
        return Form({name: list(values) for name, values in EXAMPLE.items()})


def rows_of(form: Form) -> Rows:
    """The rows of a form, with some empty ones."""
    more = form.text("do")
    return Rows(
        _rows(form, "f", FACTOR, MORE if more == "more-factors" else 0),
        _rows(form, "p", OUTCOME, MORE if more == "more-outcomes" else 0),
    )


def _rows(form: Form, prefix: str, fields: tuple[str, ...], more: int) -> list[dict[str, str]]:
    columns = {field: form.column(f"{prefix}.{field}") for field in fields}
    count = max(len(columns["name"]) + more, FEWEST)
    return [
        {field: column[n] if n < len(column) else "" for field, column in columns.items()}
        for n in range(min(count, MOST))
    ]


def read_setup(form: Form) -> dict[str, Any]:
    """The arguments of `Study.create`; raises one sentence if something is wrong."""
    found = rows_of(form)
    settings: dict[str, Any] = {
        "title": form.text("title"),
        "vocabulary": form.text("vocabulary") or "experiment",
        "factors": [_factor(row) for row in found.factors if row["name"]],
        "target": _target(form),
        "protected": [_protected(row) for row in found.outcomes if row["name"]],
        "candidates": form.table("candidates"),
        "seed": int(form.maybe_number("seed", "the seed") or 0),
    }
    if form.text("aim") == "clean":
        rank = form.maybe_number("rank", "the number of directions")
        settings |= {"aim": "clean", "rank": None if rank is None else int(rank)}
    return settings


def first_question(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The first question of the study, computed in memory and not stored."""
    study = Study.create(name, MemoryStore(), actor="preview", **settings)
    if study.plan.context:
        raise InputError("a form sets up no context, got one")
    study.ask()
    question: Question = study.questions()[0]
    return {
        **question_view(study.plan, question),
        "words": study.plan.words,
        "candidates": len(study.plan.candidates),
    }


def _factor(row: dict[str, str]) -> Factor:
    name, levels = row["name"], _levels(row["levels"])
    words = levels is not None and any(isinstance(level, str) for level in levels)
    baseline: Any = row["baseline"] or None
    if baseline is not None and not words:
        baseline = read_number(f"the baseline of {name}", baseline)
    return Factor(
        name,
        _maybe(f"low of {name}", row["low"]) if levels is None else None,
        _maybe(f"high of {name}", row["high"]) if levels is None else None,
        unit=row["unit"],
        step=_maybe(f"the step of {name}", row["step"]) if levels is None else None,
        levels=levels,
        baseline=baseline,
    )


def _levels(text: str) -> list[Any] | None:
    """Levels as people write them: 0; 6.25; 12.5, or words."""
    parts = [part.strip() for part in text.replace(";", "\n").splitlines() if part.strip()]
    if not parts:
        return None
    if all(FIGURE.fullmatch(part) for part in parts):
        return [read_number("a level", part) for part in parts]
    return parts


def _target(form: Form) -> Outcome:
    name = form.text("t.name")
    return Outcome(
        name,
        form.text("t.unit"),
        goal=form.text("t.goal") or "raise",
        range=_range(name, form.text("t.low"), form.text("t.high")),
        baseline=_maybe(f"the baseline of {name}", form.text("t.baseline")),
        matters=_maybe(f"what matters of {name}", form.text("t.matters")),
    )


def _protected(row: dict[str, str]) -> Outcome:
    name = row["name"]
    return Outcome(
        name,
        row["unit"],
        range=_range(name, row["low"], row["high"]),
        tolerance=_tolerance(name, row["tolerance"], row["harm"]),
        baseline=_maybe(f"the baseline of {name}", row["baseline"]),
    )


def _tolerance(name: str, text: str, harm: str) -> Any:
    """The tolerance: a number, or "-0.2 to 0.5" if the two sides differ.

    If only an increase or only a decrease is harmful, the other side has no limit.
    """
    what, (low, to, high) = f"the tolerance of {name}", text.partition("to")
    if to:
        return _maybe(what, low.strip()), _maybe(what, high.strip())
    size = _maybe(what, text)
    if size is None or harm not in ("rise", "fall"):
        return size
    checked_positive(what, size)
    return (None, size) if harm == "rise" else (-size, None)


def _range(name: str, low: str, high: str) -> Any:
    if not low and not high:
        return None
    what = f"the range of {name or 'the goal'}"
    return read_number(what, low), read_number(what, high)


def _maybe(what: str, text: str) -> float | None:
    return read_number(what, text) if text else None


EXAMPLE: dict[str, tuple[str, ...]] = {
    "name": ("bp-pilot-08",),
    "title": ("Blood pressure pilot, patient 08",),
    "vocabulary": ("clinic",),
    "f.name": ("lisinopril", "amlodipine", "chlortalidone"),
    "f.unit": ("mg/day", "mg/day", "mg/day"),
    "f.low": ("0", "0", ""),
    "f.high": ("40", "10", ""),
    "f.step": ("10", "2.5", ""),
    "f.levels": ("", "", "0; 6.25; 12.5; 25"),
    "f.baseline": ("20", "0", "0"),
    "t.name": ("systolic pressure",),
    "t.unit": ("mmHg",),
    "t.goal": ("lower",),
    "t.low": ("100",),
    "t.high": ("190",),
    "t.baseline": ("150",),
    "t.matters": ("1",),
    "p.name": ("potassium", "sodium", "heart rate"),
    "p.unit": ("mmol/L", "mmol/L", "beats/min"),
    "p.low": ("3", "125", "40"),
    "p.high": ("6", "150", "120"),
    "p.tolerance": ("0.3", "2.5", "6"),
    "p.harm": ("both", "fall", "both"),
    "p.baseline": ("4.2", "", ""),
}
