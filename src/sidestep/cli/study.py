"""`sidestep study ...`: parse, call, print. Data go to stdout, talk to stderr."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sidestep.cli.record import app as record_app
from sidestep.cli.terminal import (
    DEFAULT,
    Actor,
    Against,
    AsJson,
    Below,
    Block,
    Change,
    Context,
    Error,
    Given,
    Key,
    Measured,
    Name,
    Number,
    Reason,
    Repeats,
    Row,
    Storage,
    Yes,
    ask_twice,
    open_study,
    parts_of,
    print_card,
    ranges_of,
    result_of,
    steps_of,
    values_of,
)
from sidestep.errors import InputError
from sidestep.studies.plan import ALL

app = typer.Typer(
    help="Run a study: ask what to try, tell results, see the best.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(record_app)


@app.command()
def create(
    name: Annotated[str | None, typer.Argument(help="Name of the study.")] = None,
    setup: Annotated[
        Path | None, typer.Option("--from", help="The set-up of the study, a TOML file.")
    ] = None,
    candidates: Annotated[
        Path | None,
        typer.Option(help="Table of candidates, a column per factor: .csv, .parquet or .xlsx."),
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a commented example of a set-up.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the study.", min=0)] = None,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Create a study from a file.

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
        bool, typer.Option("--new", help="Ask a further question while one is open.")
    ] = False,
    confirm: Annotated[
        str | None,
        typer.Option(
            help="Repeat the recommended action and measure this outcome; `any` picks the "
            "least certain one."
        ),
    ] = None,
    panel: Annotated[
        str | None,
        typer.Option(help="Outcomes to measure in this round: a number, or `all`."),
    ] = None,
    measure_only: Annotated[
        list[str] | None, typer.Option(help="Measure only this outcome; may be repeated.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            help="Allow only these values of a factor: dose=0:20, salt=none; may be repeated."
        ),
    ] = None,
    candidate: Annotated[
        list[int] | None,
        typer.Option(help="Allow only the candidate with this number; may be repeated."),
    ] = None,
    largest_step: Annotated[
        list[str] | None,
        typer.Option(help="Largest change of a factor since the last round: dose=10."),
    ] = None,
    price_cap: Annotated[
        float | None,
        typer.Option(help="Largest acceptable loss of the target against today's best."),
    ] = None,
    context: Context = None,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Ask what to try next and which outcome to measure.

    The same question is repeated until it is answered. Early questions may be far from the baseline:
    --largest-step and --allow keep them near.

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
        panel=panel_of(panel),
        measure_only=measure_only or (),
        allowed=candidate or ranges_of(study.plan, allow),
        largest_step=steps_of(largest_step),
        price_cap=price_cap,
        context=values_of(study.plan.context, context, "context"),
        key=key,
    )
    print_card(ticket.card, as_json=as_json, storage=storage)


def panel_of(text: str | None) -> int | str | None:
    """The panel as it was typed."""
    if text is None or text == ALL:
        return text
    if not text.isdecimal():
        raise InputError(f"--panel must be a number or `all`, got {text!r}")
    return int(text)


@app.command(context_settings={"ignore_unknown_options": True})
def tell(
    name: Name,
    ticket: Annotated[
        str,
        typer.Argument(
            help="Number of the question, as on its card; - for a result without a question."
        ),
    ],
    value: Annotated[
        list[str] | None,
        typer.Argument(
            help="The result; for a panel: sodium=138 potassium=4.1±0.1. '<0.3' is below detection."
        ),
    ] = None,
    error: Error = None,
    repeats: Repeats = None,
    below: Below = None,
    change: Change = None,
    against: Against = None,
    block: Block = None,
    on: Annotated[
        str | None, typer.Option(help="The day on which it was measured: 2026-11-18.")
    ] = None,
    measured: Measured = None,
    given: Given = None,
    context: Context = None,
    reason: Annotated[
        str | None,
        typer.Option(help="Why a surprising result is right, or another note; it is recorded."),
    ] = None,
    yes: Yes = False,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Record a result. You are asked to confirm a result that is far from what was expected.

    Example: sidestep study tell bp-pilot-07 55 138.0
             sidestep study tell bp-pilot-07 55 138.0 --given lisinopril=35
             sidestep study tell bp-pilot-07 55 2.31 --se 0.12
    """
    study = open_study(name, storage, actor)
    if ticket != "-" and not ticket.isdecimal():
        raise InputError(f"the number of a question must be a whole number, got {ticket!r}")
    number = None if ticket == "-" else int(ticket)
    result = result_of(value or [], measured)
    parts = parts_of(
        study.plan, se=error, repeats=repeats, below=below, change=change, against=against
    )
    doubt = study.doubt(number, result, measured=measured, **parts)
    if doubt and not yes:
        ask_twice(doubt)
    receipt = study.tell(
        number,
        result,
        **parts,
        block=block,
        on=on,
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
    value: Annotated[str, typer.Argument(help="The correct value; or 2.31±0.12, or '<0.3'.")],
    reason: Reason,
    error: Error = None,
    repeats: Repeats = None,
    block: Block = None,
    measured: Measured = None,
    given: Given = None,
    row: Row = None,
    yes: Yes = False,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Correct a result and record why. Both values stay in the record.

    You are asked to confirm a value that is far from what was expected.

    Example: sidestep study correct bp-pilot-07 55 136.0 --reason "misread"
    """
    study = open_study(name, storage, actor)
    result = result_of([value], measured or "the value")
    parts = parts_of(study.plan, se=error, repeats=repeats)
    doubt = study.doubt_correction(number, result, measured=measured, row=row, **parts)
    if doubt and not yes:
        ask_twice(doubt)
    receipt = study.correct(
        number,
        result,
        **parts,
        reason=reason,
        block=block,
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
    """Withdraw a question, or the answer to a question.

    Example: sidestep study withdraw bp-pilot-07 55 --reason "missed visit"
    """
    receipt = open_study(name, storage, actor).withdraw(number, reason=reason, row=row, key=key)
    print_card(receipt.card, as_json=as_json, storage=storage)


@app.command()
def show(name: Name, storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """Show the study, its open questions and what was measured.

    Example: sidestep study show bp-pilot-07
    """
    print_card(open_study(name, storage).show(), as_json=as_json, storage=storage)


@app.command()
def best(
    name: Name,
    rounds: Annotated[
        bool,
        typer.Option(
            "--rounds", help="Also estimate how many rounds are left; this takes a while."
        ),
    ] = False,
    certainty: Annotated[
        float | None,
        typer.Option(help="Of being within all limits, of intervals and words; usually 0.95."),
    ] = None,
    context: Context = None,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show what the study recommends today, and how certain that is.

    Example: sidestep study best bp-pilot-07 --certainty 0.8
    """
    study = open_study(name, storage)
    if rounds:
        print("Looking ahead: this takes a while.", file=sys.stderr)
    here = values_of(study.plan.context, context, "context")
    best = study.best(certainty=certainty, rounds=rounds, context=here)
    print_card(best.card, as_json=as_json, storage=storage)


@app.command()
def tradeoff(
    name: Name,
    context: Context = None,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show what more risk would buy.

    Example: sidestep study tradeoff bp-pilot-07
    """
    study = open_study(name, storage)
    here = values_of(study.plan.context, context, "context")
    print_card(study.tradeoff(context=here).card, as_json=as_json, storage=storage)


@app.command()
def outlook(
    name: Name,
    results: Annotated[
        list[int] | None, typer.Option(help="Further results after which to look; may be repeated.")
    ] = None,
    studies: Annotated[int, typer.Option(help="Number of studies that are played.", min=1)] = 12,
    context: Context = None,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show what further results should buy.

    Studies are played on in worlds drawn from what is believed now; this takes a while.

    Example: sidestep study outlook bp-pilot-07 --results 8 --results 15
    """
    study = open_study(name, storage)
    here = values_of(study.plan.context, context, "context")
    on_terminal = sys.stderr.isatty()

    def progress(done: int, of: int) -> None:
        if on_terminal:
            bar = "#" * (20 * done // of)
            end = "\n" if done == of else ""
            print(f"\r[{bar:<20}] {done} of {of} studies", end=end, file=sys.stderr, flush=True)

    found = study.outlook(
        results=tuple(results or (8, 15, 30)), studies=studies, progress=progress, context=here
    )
    print_card(found.card, as_json=as_json, storage=storage)
