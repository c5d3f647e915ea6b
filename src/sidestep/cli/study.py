"""`sidestep study ...`: parse, call, print. Data go to stdout, talk to stderr."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sidestep.cli.record import app as record_app
from sidestep.cli.terminal import (
    DEFAULT,
    Actor,
    AsJson,
    Context,
    Given,
    Key,
    Measured,
    Name,
    Number,
    Reason,
    Row,
    Storage,
    Yes,
    ask_twice,
    open_study,
    print_card,
    ranges_of,
    result_of,
    steps_of,
    values_of,
    whole_number,
)
from sidestep.errors import InputError

app = typer.Typer(
    help="Ask what to try next, tell the result, see what is best. On a record that stays.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(record_app)


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
    print_card(study.show(), as_json=as_json, storage=storage)


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
    context: Context = None,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """What to do next, and what to measure. Asked again it is the same question until it is answered.

    Example: sidestep study ask bp-pilot-07
             sidestep study ask bp-pilot-07 --confirm creatinine
    """
    study = open_study(name, storage, actor)
    if allow and candidate:
        raise InputError("an ask must be restricted by --allow or by --candidate, got both")
    ticket = study.ask(
        new=new,
        purpose="learn" if confirm is None else "confirm",
        measure=None if confirm in (None, "any") else confirm,
        panel=panel,
        measure_only=measure_only or (),
        allowed=candidate or ranges_of(study.plan, allow),
        largest_step=steps_of(largest_step),
        price_cap=price_cap,
        context=values_of(study.plan.context, context, "context"),
        key=key,
    )
    print_card(ticket.card, as_json=as_json, storage=storage)


@app.command(context_settings={"ignore_unknown_options": True})
def tell(
    name: Name,
    ticket: Annotated[
        str,
        typer.Argument(
            help="Number of the question, as its card and `study show` have it; - for a result that "
            "nobody asked for."
        ),
    ],
    value: Annotated[
        list[str], typer.Argument(help="The result; of a panel sodium=138 potassium=4.1.")
    ],
    measured: Measured = None,
    given: Given = None,
    context: Context = None,
    reason: Annotated[
        str | None, typer.Option(help="Why it is right, where it is far off; it stays on record.")
    ] = None,
    yes: Yes = False,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Record a result. What is far from what was expected is asked twice before anything is saved.

    Example: sidestep study tell bp-pilot-07 55 138.0
             sidestep study tell bp-pilot-07 55 138.0 --given lisinopril=35
    """
    study = open_study(name, storage, actor)
    number = None if ticket == "-" else whole_number("the number of a question", ticket)
    result = result_of(value, measured)
    doubt = study.doubt(number, result, measured=measured)
    if doubt and not yes:
        ask_twice(doubt)
    receipt = study.tell(
        number,
        result,
        measured=measured,
        given=values_of(study.plan.factors, given, "given"),
        context=values_of(study.plan.context, context, "context"),
        reason=reason,
        key=key,
    )
    print_card(receipt.card, as_json=as_json, storage=storage)


@app.command(context_settings={"ignore_unknown_options": True})
def correct(
    name: Name,
    number: Number,
    value: Annotated[str, typer.Argument(help="What the result should be.")],
    reason: Reason,
    measured: Measured = None,
    given: Given = None,
    row: Row = None,
    yes: Yes = False,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Change a result, with a reason. Both values stay on record, and everything is learned again.

    What is far from what was expected is asked twice before anything is saved.
    Example: sidestep study correct bp-pilot-07 55 136.0 --reason "misread"
    """
    from sidestep.studies.values import read_number

    study = open_study(name, storage, actor)
    result = read_number("the value", value)
    doubt = study.doubt_correction(number, result, measured=measured, row=row)
    if doubt and not yes:
        ask_twice(doubt)
    receipt = study.correct(
        number,
        result,
        reason=reason,
        measured=measured,
        given=values_of(study.plan.factors, given, "given"),
        row=row,
        key=key,
    )
    print_card(receipt.card, as_json=as_json, storage=storage)


@app.command()
def withdraw(
    name: Name,
    number: Number,
    reason: Reason,
    row: Row = None,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Close a question without an answer, or take back its answer.

    Example: sidestep study withdraw bp-pilot-07 55 --reason "missed visit"
    """
    receipt = open_study(name, storage, actor).withdraw(number, reason=reason, row=row, key=key)
    print_card(receipt.card, as_json=as_json, storage=storage)


@app.command()
def show(name: Name, storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """The study, its open questions, and what was measured.

    Example: sidestep study show bp-pilot-07
    """
    print_card(open_study(name, storage).show(), as_json=as_json, storage=storage)


@app.command()
def best(
    name: Name,
    rounds: Annotated[
        bool, typer.Option("--rounds", help="Also how many rounds are left, which takes a while.")
    ] = False,
    context: Context = None,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """What the study would stand by today, and whether that is enough.

    Example: sidestep study best bp-pilot-07
    """
    study = open_study(name, storage)
    if rounds:
        print("Looking ahead: this takes a while.", file=sys.stderr)
    here = values_of(study.plan.context, context, "context")
    print_card(study.best(rounds=rounds, context=here).card, as_json=as_json, storage=storage)
