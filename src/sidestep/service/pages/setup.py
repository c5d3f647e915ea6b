"""The form that sets up a study: rows of factors and outcomes, read as arguments of `Study.create`."""

from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

from sidestep.errors import InputError
from sidestep.service.pages.forms import Form
from sidestep.service.pages.mistakes import (
    ANY,
    CHOSEN,
    FACTOR,
    PROTECTED,
    TARGET,
    Line,
    Mistakes,
    factor_of,
    outcome_of,
    pair_of,
    step_of,
)
from sidestep.service.pages.views import plain_typed, question_view
from sidestep.studies.book import Question
from sidestep.studies.candidates import candidates_of
from sidestep.studies.cards.overview import apart_text
from sidestep.studies.cards.words import VOCABULARIES
from sidestep.studies.expected_changes import FALLS, RISES, checked_expect, checked_monotone
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import ALL, CLEAN, DECIDE, EARN, NAMED, SMOOTH, STRAIGHT, Plan
from sidestep.studies.storage.exchange import export_study, import_study
from sidestep.studies.storage.memory import MemoryStore
from sidestep.studies.storage.store import Store, check_name
from sidestep.studies.study import Study
from sidestep.studies.values import checked_text, exact, read_number

FEWEST, MORE, MOST = 3, 2, 40  # rows of a form


class Rows(NamedTuple):
    """Rows to be shown, each a field by its name."""

    factors: list[dict[str, str]]
    outcomes: list[dict[str, str]]


def rows_of(form: Form) -> Rows:
    """The rows of a form, with some empty ones."""
    more = form.text("do")
    return Rows(
        _rows(form, "f", FACTOR, MORE if more == "more-factors" else 0),
        _rows(form, "p", PROTECTED, MORE if more == "more-outcomes" else 0),
    )


def _rows(form: Form, prefix: str, fields: Iterable[str], more: int) -> list[dict[str, str]]:
    columns = {field: form.column(f"{prefix}.{field}") for field in fields}
    count = max(len(columns["name"]) + more, FEWEST)
    return [
        {field: column[n] if n < len(column) else "" for field, column in columns.items()}
        for n in range(min(count, MOST))
    ]


def read_setup(form: Form) -> tuple[dict[str, Any], Mistakes]:
    """The arguments of `Study.create`, and everything that is wrong with the form."""
    mistakes, found = Mistakes(), rows_of(form)
    if not form.text("name"):
        mistakes["name"] = "“Name” must be given, got nothing"
    mistakes.tried("name", lambda: check_name(form.text("name")))
    mistakes.tried("title", lambda: checked_text("“Title”", form.text("title")))
    factors = [Line(mistakes, FACTOR, row, "f", n) for n, row in _filled(found.factors)]
    goal = Line(mistakes, TARGET, {field: form.text(f"t.{field}") for field in TARGET}, "t")
    others = [Line(mistakes, PROTECTED, row, "p", n) for n, row in _filled(found.outcomes)]
    built = [factor_of(line) for line in factors]
    settings: dict[str, Any] = {
        "title": form.text("title"),
        "vocabulary": form.text("vocabulary") or "experiment",
        "factors": built,
        "largest_step": _largest(form, factors, built),
        "target": outcome_of(goal),
        "protected": [outcome_of(line) for line in others],
        "candidates": mistakes.tried("candidates", lambda: form.table("candidates")),
    }
    if not factors:
        mistakes["f.name.1"] = "“What you set” must name one factor or more, got none"
    _check_names([*factors, goal, *others])
    _check_candidates(mistakes, settings["factors"], settings["candidates"])
    outcomes = [settings["target"], *settings["protected"]]
    settings |= _expected(form, mistakes, built, outcomes)
    settings |= _asking(form, mistakes, [goal, *others])
    return settings | _more(form, mistakes, others), mistakes


def _filled(rows: list[dict[str, str]]) -> list[tuple[int, dict[str, str]]]:
    """The rows in which something was typed, with their numbers from 1."""
    return [
        (n, row)
        for n, row in enumerate(rows, start=1)
        if any(text for field, text in row.items() if field not in CHOSEN)
    ]


def _largest(form: Form, lines: list[Line], built: list[Factor | None]) -> dict[str, float]:
    """The largest change of every factor that has one; a clinic without a caution is asked for it."""
    asked_for = form.text("vocabulary") == "clinic" and not form.text("caution")
    found = {
        line.name: step_of(line, factor, asked_for=asked_for)
        for line, factor in zip(lines, built, strict=True)
    }
    return {name: step for name, step in found.items() if step is not None}


def _asking(form: Form, mistakes: Mistakes, outcomes: list[Line]) -> dict[str, Any]:
    """The shape of responses, what questions are for, and what is measured at a visit."""
    asking: dict[str, Any] = {"panel": _panel(form, mistakes, [each.name for each in outcomes])}
    for field, label, usual in (
        ("shape", "“Responses are”", None),
        ("questions", "“Questions are for”", DECIDE),
    ):
        asking[field] = form.text(field) or usual
        if form.text("aim") == CLEAN and asking[field] != usual:
            mistakes[field] = f"{label} must be left as it is for this aim, got {asking[field]!r}"
    return asking


def _expected(
    form: Form, mistakes: Mistakes, factors: list[Factor | None], outcomes: list[Outcome | None]
) -> dict[str, Any]:
    """What is expected, a line each, and the earlier studies to learn from."""
    known_factors = [each for each in factors if each is not None]
    known = [each for each in outcomes if each is not None]
    pairs = {f"{o.name}, {f.name}": (o, f) for o in known for f in known_factors}
    told: dict[str, dict[str, dict[str, Any]]] = {"expect": {}, "monotone": {}}

    def take(line: str) -> None:
        where, _, what = line.rpartition(":")
        if where.strip() not in pairs:
            raise InputError(
                "“What you expect” must have an outcome and a factor in every line, such as “systolic "
                f"pressure, lisinopril: -25 to 0”, got {line!r}"
            )
        outcome, factor = pairs[where.strip()]
        kind, value = "monotone", what.strip()
        if value not in (RISES, FALLS):
            named = f"“What you expect” of {where.strip()}"
            kind, value = "expect", pair_of(named, what, log=outcome.is_log, whole=True)
        if factor.name in told[kind].setdefault(outcome.name, {}):
            raise InputError(f"“What you expect” must name {where.strip()} once, got it twice")
        told[kind][outcome.name][factor.name] = value

    for line in filter(None, map(str.strip, form.text("expect").splitlines())):
        mistakes.tried("expect", partial(take, line))
    words = {f"{word} of": "“What you expect” of" for word in told}

    def check() -> None:
        expect = checked_expect(told["expect"], known_factors, known)
        checked_monotone(told["monotone"], known_factors, known, expect)

    mistakes.tried("expect", check, **words)
    names = [name.strip() for name in form.text("earlier").split(";") if name.strip()]
    return {**{name: each or None for name, each in told.items()}, "learn_from": names or None}


def _panel(form: Form, mistakes: Mistakes, names: list[str]) -> Any:
    """What is measured at a visit: one outcome, all, a number of them, or some by their names."""
    chosen, some = form.text("panel") or "1", form.text("some")
    what = "“Which, or how many”"
    if chosen != "some":
        if some:
            mistakes["some"] = (
                f"{what} is for some of the outcomes, got {some!r} beside another choice"
            )
        return ALL if chosen == ALL else 1
    if not some:
        mistakes["some"] = f"{what} must be given for some of the outcomes, got nothing"
        return 1
    named = [part.strip() for part in some.split(";") if part.strip()]
    if all(name in names for name in named):
        return named
    count = mistakes.tried("some", lambda: _whole(what, some))
    if count is not None and not 1 <= count <= len(names):
        mistakes["some"] = f"{what} must lie in 1 to {len(names)}, the outcomes, got {count}"
    return count


def _check_names(lines: list[Line]) -> None:
    names = [line.cells["name"] for line in lines]
    for place, (line, name) in enumerate(zip(lines, names, strict=True)):
        if name and name in names[:place]:
            line.blame(
                "name", f"factors and outcomes must have different names, got {name!r} twice"
            )


def _check_candidates(mistakes: Mistakes, factors: list[Factor | None], table: Any) -> None:
    """Check that the factors have a grid, a box or a table together."""
    built = [factor for factor in factors if factor is not None]
    if not built or len(built) < len(factors):
        return
    bare = [n for n, factor in enumerate(built, start=1) if not factor.grid]
    field = f"f.step.{(bare or [1])[0]}" if table is None else "candidates"
    mistakes.tried(field, lambda: candidates_of(built, table))


def _more(form: Form, mistakes: Mistakes, protected: list[Line]) -> dict[str, Any]:
    """Aim, caution and seed."""

    def whole(field: str, what: str) -> int | None:
        text = form.text(field)
        return mistakes.tried(field, lambda: _whole(what, text)) if text else None

    more: dict[str, Any] = {"seed": whole("seed", "“Seed”") or 0}
    if form.text("aim") == CLEAN:
        what, most = "“Directions of side effects”", len(protected)
        rank = whole("rank", what)
        if most and not form.text("rank"):
            mistakes["rank"] = f"{what} must be given for this aim, got nothing"
        if rank is not None and not 1 <= rank <= most:
            mistakes["rank"] = f"{what} must lie in 1 to {most}, the protected outcomes, got {rank}"
        return more | {"aim": CLEAN, "rank": rank}
    for line in protected:
        if not line.cells["tolerance"]:
            line.blame("tolerance", f"{line.what('tolerance')} must be given, got nothing")
    if caution := form.text("caution"):
        level = mistakes.tried("caution", lambda: _share("“Caution”", caution))
        more["caution"] = level
    return more


def _whole(what: str, text: str) -> int:
    number = read_number(what, text)
    if number < 0 or number != int(number):
        raise InputError(f"{what} must be a whole number, 0 or more, got {text!r}")
    return int(number)


def _share(what: str, text: str) -> float:
    """A share from its percentage: 95 is 0.95."""
    percentage = read_number(what, text.removesuffix("%"))
    if not 0 <= percentage < 100:
        raise InputError(f"{what} must be at least 0% and less than 100%, got {text!r}")
    return float(exact(percentage) / 100)


def first_question(name: str, settings: dict[str, Any], store: Store) -> dict[str, Any]:
    """The first question of the study, computed in memory and not stored.

    Earlier studies must be of the storage: a path is no name of one, whatever file it leads to.
    """
    memory = MemoryStore()
    for earlier in dict.fromkeys(settings["learn_from"] or ()):
        check_name(earlier)
        import_study(memory, export_study(store, earlier))
    study = Study.create(name, memory, actor="preview", **settings)
    study.ask()
    question: Question = study.questions()[0]
    return {
        **question_view(study.plan, question),
        "words": study.plan.words,
        "candidates": len(study.plan.candidates),
        "apart": apart_text(study.plan),
    }


def example_form() -> Form:
    """An example form: a clinic with three drugs and three markers."""
    return Form({name: list(values) for name, values in EXAMPLE.items()})


EXAMPLE: dict[str, tuple[str, ...]] = {
    "name": ("bp-pilot-08",),
    "title": ("Blood pressure pilot",),
    "vocabulary": ("clinic",),
    "f.name": ("lisinopril", "amlodipine", "chlortalidone"),
    "f.unit": ("mg/day", "mg/day", "mg/day"),
    "f.low": ("0", "0", ""),
    "f.high": ("40", "10", ""),
    "f.step": ("10", "2.5", ""),
    "f.levels": ("", "", "0; 6.25; 12.5; 25"),
    "f.baseline": ("20", "0", "0"),
    "f.largest": ("10", "2.5", "12.5"),
    "t.name": ("systolic pressure",),
    "t.unit": ("mmHg",),
    "t.goal": ("lower",),
    "t.low": ("100",),
    "t.high": ("190",),
    "t.baseline": ("150",),
    "t.matters": ("1",),
    "t.noise": ("3 to 8",),
    "p.name": ("potassium", "sodium", "heart rate"),
    "p.unit": ("mmol/L", "mmol/L", "beats/min"),
    "p.low": ("3", "125", "40"),
    "p.high": ("6", "150", "120"),
    "p.tolerance": ("0.3", "2.5", "6"),
    "p.harm": ("both", "fall", "both"),
    "p.baseline": ("4.2", "", ""),
    "p.noise": ("0.1 to 0.3", "", ""),
}


HINTS = {  # what a field may hold
    **{name: f"such as {values[0]}" for name, values in EXAMPLE.items() if name.endswith(".name")},
    "f.unit": "mg/day",
    "f.low": "0",
    "f.high": "40",
    "f.step": "10, or none",
    "f.levels": "0; 5; 20, or no; yes",
    "f.baseline": "20",
    "f.largest": "10, or any",
    "f.offset": "none, or 0.5",
    "t.unit": "mmHg",
    "t.low": "100",
    "t.high": "190",
    "t.baseline": "150",
    "t.matters": "1, or 2%",
    "t.noise": "3 to 8",
    "t.never": "to 180",
    "p.unit": "mmol/L",
    "p.low": "3",
    "p.high": "6",
    "p.tolerance": "0.3, or 2%",
    "p.baseline": "4.2",
    "p.noise": "0.1 to 0.3",
    "p.never": "3.5 to 5.5",
}

SHAPES = (  # what each buys, and what it costs
    (
        "",
        "whatever they are",
        "The promise of limits holds whether effects are straight or bend; that takes the most results.",
    ),
    (
        SMOOTH,
        "smooth",
        "For doses and temperatures: fewer results, since no setting is expected to do something of its "
        "own. If one does, the study is too sure.",
    ),
    (
        STRAIGHT,
        "straight",
        "In a simulated clinic with straight effects, 30 results reached 66% of what was possible, not "
        "29%. If effects bend, what is recommended may be beyond a limit, and the study may not notice.",
    ),
)
PURPOSES = (
    (
        DECIDE,
        "deciding what to recommend",
        "The fewest questions until something can be recommended.",
    ),
    (
        EARN,
        "today as well",
        "Every question is itself a good choice for today; deciding takes longer.",
    ),
)


def form_like(plan: Plan) -> Form:
    """The form of a study like this one: everything that the form has, but for its name and seed."""
    form = {"title": [plan.title], "vocabulary": [plan.vocabulary], "aim": [plan.aim]}
    form["rank"] = ["" if plan.rank is None else str(plan.rank)]
    if plan.caution is not None:
        form["caution"] = [f"{100 * plan.caution:g}"]
    form |= {"shape": [plan.shape or ""], "questions": [plan.questions]} | _panel_fields(plan)
    form["expect"] = ["\n".join(_expect_lines(plan))]
    rows = [_factor_row(factor, plan) for factor in plan.factors]
    form |= {f"f.{field}": [row.get(field, "") for row in rows] for field in FACTOR}
    form |= {f"t.{field}": [text] for field, text in _outcome_row(plan.target).items()}
    form["t.goal"] = ["lower" if plan.target.sign < 0 else "raise"]
    others = [_outcome_row(outcome) for outcome in plan.protected]
    form |= {f"p.{field}": [row.get(field, "") for row in others] for field in PROTECTED}
    if plan.candidates.kind == "table":
        lines = [[factor.name for factor in plan.factors], *plan.candidates.rows]
        form["candidates"] = ["\n".join("\t".join(map(plain_typed, line)) for line in lines)]
    return Form(form)


def _expect_lines(plan: Plan) -> list[str]:
    lines = []
    for name, some in plan.expect.items():
        sign = "%" if plan.outcome(name).is_log else ""
        for factor, (low, high) in some.items():
            ends = f"{_typed(low, sign)} to {_typed(high, sign)}".strip()
            lines.append(f"{name}, {factor}: {ends}")
    for name, words in plan.monotone.items():
        lines += [f"{name}, {factor}: {word}" for factor, word in words.items()]
    return lines


def _panel_fields(plan: Plan) -> dict[str, list[str]]:
    if plan.panel == 1:
        return {"panel": ["1"]}
    if isinstance(plan.panel, int):
        return {"panel": ["some"], "some": [str(plan.panel)]}
    if len(plan.panel) == len(plan.outcomes):
        return {"panel": [ALL]}
    return {"panel": ["some"], "some": ["; ".join(plan.panel)]}


def not_in_form(plan: Plan) -> list[str]:
    """What a study has that the form has no field for."""
    found = {
        f"{field} of {each.name}"
        for several in (plan.factors, plan.outcomes)
        for each in several
        for field, value in each.to_config().items()
        if field not in _FIELDS and value != _USUAL.get(field)
    }
    usual = plan.policy is None or (plan.policy == NAMED and plan.aim == CLEAN and not plan.knobs)
    unnamed = {"policy", "knobs"} if usual else set()
    told = {name for name, value in plan.to_config().items() if value} - _PLANNED - unnamed
    found |= {_CALLED.get(name, name) for name in told}
    found |= {f"context {factor.name}" for factor in plan.context}
    return sorted(found)


_USUAL = {"cost": 1.0}
_FIELDS = {*FACTOR, *TARGET, *PROTECTED, "range"}
_CALLED = {"earlier": "earlier studies"}
_PLANNED = {  # of the stored set-up: in the form, or told by its own name
    *(
        "version",
        "factors",
        "target",
        "protected",
        "candidates",
        "context",
        "yes_no",
        "aim",
        "rank",
    ),
    *("seed", "vocabulary", "title", "shape", "questions", "panel", "largest_step", "caution"),
    *("expect", "monotone"),
}


def _factor_row(factor: Factor, plan: Plan) -> dict[str, str]:
    row = {"name": factor.name, "unit": factor.unit, "baseline": plain_typed(factor.baseline or 0)}
    step = plan.largest_step.get(factor.name)
    if step is not None:
        row["largest"] = plain_typed(step)
    elif factor.is_number and plan.words is VOCABULARIES["clinic"] and plan.caution is None:
        row["largest"] = ANY
    row |= {"scale": factor.scale or "", "offset": _typed(factor.offset)}
    if not factor.is_number or factor.levels is not None:
        return row | {"levels": "; ".join(map(plain_typed, factor.grid))}
    row |= {"low": plain_typed(factor.low or 0), "high": plain_typed(factor.high or 0)}
    return row | {"step": _typed(factor.step)}


def _outcome_row(outcome: Outcome) -> dict[str, str]:
    sign = "%" if outcome.is_log else ""
    noise = outcome.noise if isinstance(outcome.noise, tuple) else (outcome.noise,)
    row = {
        "name": outcome.name,
        "unit": outcome.unit,
        "low": plain_typed(outcome.low),
        "high": plain_typed(outcome.high),
        "baseline": _typed(outcome.baseline),
        "matters": _typed(outcome.matters, sign),
        "noise": " to ".join(_typed(end, sign) for end in noise),
        "scale": outcome.scale or "",
        "never": " to ".join(map(_typed, outcome.never)).strip() if outcome.never else "",
        "harm": "both",
        "tolerance": "",
    }
    if outcome.tolerance is None:
        return row
    if isinstance(outcome.tolerance, float):
        return row | {"tolerance": _typed(outcome.tolerance, sign)}
    low, high = outcome.limits
    if low is None and high:
        return row | {"tolerance": _typed(high, sign), "harm": "rise"}
    if high is None and low:
        return row | {"tolerance": _typed(-low, sign), "harm": "fall"}
    return row | {"tolerance": f"{_typed(low, sign)} to {_typed(high, sign)}".strip()}


def _typed(value: float | None, sign: str = "") -> str:
    """A number as it is typed; empty if there is none."""
    return "" if value is None else plain_typed(value) + sign
