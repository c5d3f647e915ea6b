"""`sidestep study ...`: parse, call, print. Data go to stdout, talk to stderr."""

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidestep.errors import InputError

if TYPE_CHECKING:
    from sidestep.studies.card import Card
    from sidestep.studies.plan import Plan
    from sidestep.studies.study import Study

app = typer.Typer(
    help="Ask what to try next, tell what came of it, see what is best; on a record that stays.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

DEFAULT = "sidestep.db"
Name = Annotated[str, typer.Argument(help="Name of the study.")]
Number = Annotated[int, typer.Argument(help="Number of the question, or of the entry.")]
Storage = Annotated[
    str,
    typer.Option(
        "--storage",
        "-s",
        envvar="SIDESTEP_STORAGE",
        help="A file, sqlite:///... or postgresql://...",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Actor = Annotated[str | None, typer.Option(help="Who does this; else the user of the machine.")]
Key = Annotated[
    str | None, typer.Option(help="The same key again is the same request, not a second one.")
]
Reason = Annotated[str, typer.Option(help="Why; it stays on record.")]
Given = Annotated[
    list[str] | None,
    typer.Option(help="What was really done, where it was not what was asked: dose=35."),
]
Measured = Annotated[
    str | None, typer.Option(help="The outcome that was measured, where it is not the one asked.")
]


@app.command()
def create(
    name: Annotated[str | None, typer.Argument(help="Name of the study.")] = None,
    setup: Annotated[Path | None, typer.Option("--from", help="The set-up, a TOML file.")] = None,
    candidates: Annotated[
        Path | None, typer.Option(help="A table of candidates: .csv, .parquet or .xlsx.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a set-up to begin from.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the study.", min=0)] = None,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Set up a study.

    Example: sidestep study create --example > study.toml
             sidestep study create bp-pilot-07 --from study.toml
    """
    from sidestep.studies.setup import example as example_text
    from sidestep.studies.setup import read_setup
    from sidestep.studies.study import Study

    if example:
        print(example_text(), end="")
        return
    if name is None or setup is None:
        missing = "no name" if name is None else "no file"
        raise InputError(f"create needs a NAME and --from FILE, got {missing}")
    arguments = read_setup(setup)
    arguments |= {"candidates": candidates} if candidates else {}
    arguments |= {} if seed is None else {"seed": seed}
    study = Study.create(name, storage, actor=actor, key=key, **arguments)
    _print(study.show(), as_json=as_json)


@app.command()
def ask(
    name: Name,
    new: Annotated[
        bool, typer.Option("--new", help="Another question beside the open one.")
    ] = False,
    confirm: Annotated[
        str | None,
        typer.Option(
            help="Do what is recommended; measure this outcome, or any: the least settled."
        ),
    ] = None,
    panel: Annotated[int, typer.Option(help="Outcomes to measure at once.", min=1)] = 1,
    measure_only: Annotated[
        list[str] | None, typer.Option(help="An outcome that can be measured now; may be repeated.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(help="A range or word that is allowed: dose=0:20, salt=none."),
    ] = None,
    candidate: Annotated[
        list[int] | None, typer.Option(help="A candidate that is allowed; may be repeated.")
    ] = None,
    largest_step: Annotated[
        list[str] | None, typer.Option(help="Most that a factor may change: dose=10.")
    ] = None,
    price_cap: Annotated[
        float | None, typer.Option(help="At most so much less of the goal than today's best.")
    ] = None,
    context: Annotated[list[str] | None, typer.Option(help="Of this round: age=63.")] = None,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """What to do next, and what to measure. Asked again it is the same question until it is answered.

    Example: sidestep study ask bp-pilot-07
             sidestep study ask bp-pilot-07 --confirm creatinine --largest-step lisinopril=10
    """
    study = _open(name, storage, actor)
    if allow and candidate:
        raise InputError("an ask must be restricted by --allow or by --candidate, got both")
    ticket = study.ask(
        new=new,
        purpose="learn" if confirm is None else "confirm",
        measure=None if confirm in (None, "any") else confirm,
        panel=panel,
        measure_only=measure_only or (),
        allowed=candidate or _ranges(study.plan, allow),
        largest_step=_steps(largest_step),
        price_cap=price_cap,
        context=_values(study.plan.context, context, "context"),
        key=key,
    )
    _print(ticket.card, as_json=as_json)


@app.command(context_settings={"ignore_unknown_options": True})
def tell(
    name: Name,
    ticket: Annotated[
        str, typer.Argument(help="Number of the question; - for a result that nobody asked for.")
    ],
    value: Annotated[
        list[str], typer.Argument(help="The result; of a panel sodium=138 potassium=4.1.")
    ],
    measured: Measured = None,
    given: Given = None,
    context: Annotated[list[str] | None, typer.Option(help="Of that round: age=63.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Record it even where it is far off.")] = False,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Record a result. What is far from what was expected is asked twice before anything is saved.

    Example: sidestep study tell bp-pilot-07 55 138.0
             sidestep study tell bp-pilot-07 55 138.0 --given lisinopril=35
    """
    study = _open(name, storage, actor)
    number = None if ticket == "-" else _whole("the number of a question", ticket)
    result = _result(value, measured)
    doubt = study.doubt(number, result, measured=measured)
    if doubt and not yes:
        _ask_twice(doubt)
    receipt = study.tell(
        number,
        result,
        measured=measured,
        given=_values(study.plan.factors, given, "given"),
        context=_values(study.plan.context, context, "context"),
        key=key,
    )
    _print(receipt.card, as_json=as_json)


@app.command(context_settings={"ignore_unknown_options": True})
def correct(
    name: Name,
    number: Number,
    value: Annotated[str, typer.Argument(help="What the result should be.")],
    reason: Reason,
    measured: Measured = None,
    given: Given = None,
    row: Annotated[int, typer.Option(help="Of an import, from 0.", min=0)] = 0,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Change a result, with a reason; both values stay on record, and everything is learned again.

    Example: sidestep study correct bp-pilot-07 55 136.0 --reason "misread"
    """
    from sidestep.studies.values import read_number

    study = _open(name, storage, actor)
    receipt = study.correct(
        number,
        read_number("the value", value),
        reason=reason,
        measured=measured,
        given=_values(study.plan.factors, given, "given"),
        row=row,
        key=key,
    )
    _print(receipt.card, as_json=as_json)


@app.command()
def withdraw(
    name: Name,
    number: Number,
    reason: Reason,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Close a question that will have no answer, or take back the answer it has.

    Example: sidestep study withdraw bp-pilot-07 55 --reason "missed visit"
    """
    receipt = _open(name, storage, actor).withdraw(number, reason=reason, key=key)
    _print(receipt.card, as_json=as_json)


@app.command()
def show(name: Name, storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """What the study is, which questions are open, and what was measured.

    Example: sidestep study show bp-pilot-07
    """
    _print(_open(name, storage).show(), as_json=as_json)


@app.command()
def best(
    name: Name,
    rounds: Annotated[
        bool, typer.Option("--rounds", help="Also how many rounds are left, which takes a while.")
    ] = False,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """What the study would stand by today, and whether that is enough.

    Example: sidestep study best bp-pilot-07
    """
    _print(_open(name, storage).best(rounds=rounds).card, as_json=as_json)


@app.command("list")
def list_studies(storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """The studies of a storage, and whose turn it is.

    Example: sidestep study list
    """
    from sidestep.studies.study import Study

    for name in Study.list(storage):
        print(name)


def _open(name: str, storage: str, actor: str | None = None) -> "Study":
    from sidestep.studies.study import Study

    return Study.open(name, storage, actor=actor)


def _print(card: "Card", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(card.to_json(), ensure_ascii=False))
        return
    wide = min(shutil.get_terminal_size().columns, 100) if sys.stdout.isatty() else 80
    print(card.text(max(wide, 60)))


def _ask_twice(doubt: str) -> None:
    """Go on only where a person says so; nothing has been saved."""
    print(f"{doubt} Nothing was saved.", file=sys.stderr)
    try:
        sure = typer.confirm("Record it anyway?", err=True)
    except typer.Abort:
        raise InputError("a value that is far off must be told with --yes, got no answer") from None
    if not sure:
        raise typer.Exit(1)


def _result(values: list[str], measured: str | None) -> Any:
    """A number, or a number for every outcome of a panel."""
    from sidestep.studies.values import read_number

    if len(values) == 1 and "=" not in values[0]:
        return read_number(measured or "the value", values[0])
    return {name: read_number(name, text) for name, text in _pairs(values, "a panel")}


def _values(factors: Any, texts: list[str] | None, what: str) -> dict[str, Any] | None:
    """Values of factors from name=value."""
    if not texts:
        return None
    known = {factor.name: factor for factor in factors}
    return {
        name: known[name].read(text) if name in known else text
        for name, text in _pairs(texts, what)
    }


def _ranges(plan: "Plan", texts: list[str] | None) -> dict[str, Any] | None:
    """What is allowed, from dose=0:20 or salt=none."""
    from sidestep.studies.values import read_number

    if not texts:
        return None
    words = {factor.name for factor in plan.factors if factor.is_category}
    allowed: dict[str, Any] = {}
    for name, text in _pairs(texts, "--allow"):
        if name in words:
            allowed[name] = text.split(":")
        else:
            allowed[name] = [read_number(f"allowed of {name}", end) for end in text.split(":")]
            allowed[name] *= 2 if len(allowed[name]) == 1 else 1
    return allowed


def _steps(texts: list[str] | None) -> dict[str, float] | None:
    from sidestep.studies.values import read_number

    if not texts:
        return None
    return {name: read_number(name, text) for name, text in _pairs(texts, "--largest-step")}


def _pairs(texts: Iterable[str], what: str) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise InputError(f"{what} must be written as name=value, got {text!r}")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _whole(what: str, text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"{what} must be a whole number, got {text!r}")
    return int(text)
