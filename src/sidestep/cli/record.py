"""`sidestep study ...` on the record: history, import, export, verify, backup, restore, doctor, close."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidestep.cli.terminal import (
    DEFAULT,
    Actor,
    AsJson,
    Context,
    Key,
    Name,
    Storage,
    Yes,
    ask_twice,
    open_study,
    print_card,
    values_of,
)
from sidestep.errors import InputError

if TYPE_CHECKING:
    from sidestep.studies.storage.store import Store

app = typer.Typer()


@app.command("list")
def list_studies(storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """List the studies in a storage and what each is waiting for.

    Example: sidestep study list
    """
    from sidestep.studies.cards.list_card import Line, list_card
    from sidestep.studies.standing import standing_of
    from sidestep.studies.storage.store import open_store

    store = open_store(storage, create=False)
    found = list(store.outlines())
    lines = [Line(*study[:3], standing_of(study.entries)) for study in found]
    print_card(list_card(lines, _standings(store) if as_json else ()), as_json=as_json)


@app.command()
def history(
    name: Name,
    after: Annotated[int, typer.Option(help="Only entries after this number.", min=0)] = 0,
    limit: Annotated[int | None, typer.Option(help="At most this many entries.", min=1)] = None,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show the record, oldest first: who did what, when and why.

    Example: sidestep study history bp-pilot-07 --after 50
    """
    from sidestep.studies.cards.record_card import history_card

    study = open_study(name, storage)
    print_card(
        history_card(study.plan, name, study.history(after, limit)),
        as_json=as_json,
        storage=storage,
    )


@app.command()
def explain(
    name: Name,
    top: Annotated[int, typer.Option(help="Number of candidates to show.", min=1)] = 8,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print all candidates as CSV.")] = False,
    context: Context = None,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Show every candidate: effects, limits, chance of being best.

    Example: sidestep study explain bp-pilot-07 --csv > candidates.csv
    """
    study = open_study(name, storage)
    here = values_of(study.plan.context, context, "context")
    explanation = study.explain(top=top, context=here)
    if as_csv:
        _print_csv(explanation.to_columns())
    else:
        print_card(explanation.card, as_json=as_json, storage=storage)


@app.command("import")
def import_file(
    parts: Annotated[list[str], typer.Argument(metavar="[NAME] FILE")],
    storage: Storage = DEFAULT,
    again: Annotated[
        bool, typer.Option("--again", help="Import the same table a second time.")
    ] = False,
    yes: Yes = False,
    actor: Actor = None,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Import past results from a table, or an exported study.

    A table (.csv, .parquet, .xlsx) has a column per factor and per outcome; an empty cell was not
    measured. An exported study is a .jsonl file. You are asked to confirm results outside the range
    of their outcome.

    Example: sidestep study import bp-pilot-07 earlier.csv
             sidestep study import bp-pilot-07.jsonl
    """
    from sidestep.studies.importing import doubt_of
    from sidestep.studies.storage.exchange import import_study
    from sidestep.studies.storage.store import open_store

    if len(parts) > 2:
        raise InputError(f"import must have a NAME and a FILE, got {len(parts)} words")
    path = Path(parts[-1])
    if path.suffix in (".jsonl", ".ndjson"):
        try:
            with path.open(encoding="utf-8") as lines:
                head = import_study(open_store(storage), lines)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} must be a file that can be read, got: {error}") from error
        print_card(open_study(head.name, storage).show(), as_json=as_json, storage=storage)
        return
    if len(parts) < 2:
        raise InputError(f"import must name the study that {path.name} has results of, got none")
    study = open_study(parts[0], storage, actor)
    doubt = doubt_of(study.plan, path)
    if doubt and not yes:
        ask_twice(doubt)
    receipt = study.import_results(path, again=again, key=key)
    print_card(receipt.card, as_json=as_json, storage=storage)


@app.command()
def export(
    name: Name,
    out: Annotated[
        Path | None, typer.Option(help="File to write; the terminal by default.")
    ] = None,
    storage: Storage = DEFAULT,
) -> None:
    """Export the record as lines of JSON. `import` restores it bit for bit.

    Example: sidestep study export bp-pilot-07 --out bp-pilot-07.jsonl
    """
    lines = open_study(name, storage).export(out)
    if out is None:
        for line in lines:
            print(line)
    else:
        print(f"{name} is in {out}", file=sys.stderr)


@app.command()
def verify(
    name: Name,
    asks: Annotated[
        bool, typer.Option("--asks", help="Also compute every question again and compare.")
    ] = False,
    known: Annotated[
        str | None, typer.Option(help="A tip (hash of the last entry) that you noted earlier.")
    ] = None,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Check that no entry of the record was edited, removed or moved.

    Example: sidestep study verify bp-pilot-07 --asks
    """
    card = open_study(name, storage).verify(asks=asks, known=known)
    print_card(card, as_json=as_json, storage=storage)
    if not card.data["holds"]:
        raise typer.Exit(1)


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="A new file for the backup.")],
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Copy every study into one verified file. Others may go on writing.

    Example: sidestep study backup monday.db
    """
    from sidestep.studies.storage import copies
    from sidestep.studies.storage.sql import SqlStore

    _report(copies.backup(SqlStore.open(storage, create=False), file), f"saved in {file}", as_json)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="The backup file.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only check that the backup could be restored.")
    ] = False,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty storage.

    Example: sidestep study restore monday.db --storage new.db
    """
    from sidestep.studies.storage import copies
    from sidestep.studies.storage.sql import SqlStore

    if check:
        _report(copies.check_backup(file), f"{file} can be restored", as_json)
    else:
        _report(copies.restore(file, SqlStore.open(storage)), f"restored into {storage}", as_json)


@app.command()
def doctor(storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """Check a storage: durability, space, permissions, hash chains.

    Example: sidestep study doctor
    """
    from sidestep.studies.storage import doctor as examination
    from sidestep.studies.storage.sql import SqlStore

    findings = examination.doctor(SqlStore.open(storage, create=False))
    if as_json:
        print(json.dumps([finding._asdict() for finding in findings], ensure_ascii=False))
    else:
        for finding in findings:
            print(f"{finding.state:<8} {finding.what}: {finding.sentence}")
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


@app.command()
def close(
    name: Name,
    accept: Annotated[bool, typer.Option("--accept", help="Adopt today's recommendation.")] = False,
    overrule: Annotated[
        list[str] | None, typer.Option(help="Adopt this instead: dose=30; name every factor once.")
    ] = None,
    context: Context = None,
    reason: Annotated[str | None, typer.Option(help="Why; it is recorded.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Close it on a terminal without confirmation.")
    ] = False,
    storage: Storage = DEFAULT,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Close a study to new questions, for good. Open ones can still be answered.

    Example: sidestep study close bp-pilot-07 --accept --reason "settled"
    """
    study = open_study(name, storage, actor)
    if not yes and sys.stdin.isatty():
        sure = f"Close {name!r}? It will ask nothing more, and it cannot be opened again."
        if not typer.confirm(sure, err=True):
            print("Nothing was saved.", file=sys.stderr)
            raise typer.Exit(1)
    setting = values_of(study.plan.factors, overrule, "overrule")
    here = values_of(study.plan.context, context, "context")
    receipt = study.close(accept=accept, overrule=setting, context=here, reason=reason)
    print_card(receipt.card, as_json=as_json, storage=storage)


def _standings(store: "Store") -> list[dict[str, Any]]:
    """Where every study stands, for a program."""
    from sidestep.studies.book import Book
    from sidestep.studies.cards.overview import standing

    found = []
    for head, events in store.records():
        book = Book()
        book.take(events)
        found.append(standing(head, book))
    return found


def _report(verdicts: list[Any], done: str, as_json: bool) -> None:  # noqa: FBT001
    """What was found of every study that was copied."""
    if as_json:
        rows = [verdict._asdict() | {"holds": verdict.holds} for verdict in verdicts]
        print(json.dumps(rows, ensure_ascii=False))
    for verdict in verdicts:
        state = "whole" if verdict.holds else "not as it should be"
        print(f"{verdict.name}: {verdict.events} entries, {state}", file=sys.stderr)
    print(done, file=sys.stderr)
    if not all(verdict.holds for verdict in verdicts):
        raise typer.Exit(1)


def _print_csv(columns: dict[str, list[Any]]) -> None:
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
