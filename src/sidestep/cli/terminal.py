"""Common to the commands on studies: options, reading of values from text, printing of cards."""

import json
import os
import shutil
import sys
from collections.abc import Iterable
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidestep.errors import InputError

if TYPE_CHECKING:
    from sidestep.studies.cards.card import Card
    from sidestep.studies.plan import Plan
    from sidestep.studies.study import Study

DEFAULT = "sidestep.db"
Name = Annotated[str, typer.Argument(help="Name of the study.")]
Number = Annotated[
    int, typer.Argument(help="Number of the question, or of an entry in `study history`.")
]
Storage = Annotated[
    str,
    typer.Option(
        "--storage",
        "-s",
        envvar="SIDESTEP_STORAGE",
        help="Database: a file, sqlite:///... or postgresql://...",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Actor = Annotated[
    str | None, typer.Option(help="Who is recorded as the author; by default your login name.")
]
Key = Annotated[
    str | None, typer.Option(help="A repeated request with the same key is carried out once.")
]
Reason = Annotated[str, typer.Option(help="Why; it is recorded.")]
Given = Annotated[
    list[str] | None,
    typer.Option(help="What was really done, if not what was asked: dose=35; may be repeated."),
]
Measured = Annotated[
    str | None, typer.Option(help="The outcome that was measured, if not the one asked for.")
]
Error = Annotated[
    str | None, typer.Option("--se", help="Standard error of the result, where it is an estimate.")
]
Repeats = Annotated[
    int | None, typer.Option(help="Number of measurements that the result is the mean of.", min=1)
]
Below = Annotated[
    str | None, typer.Option(help="Instead of a value: it is less than this limit of detection.")
]
Change = Annotated[
    str | None,
    typer.Option(
        help="Instead of a value: the difference from a control measured side by side; in percent "
        "for an outcome on a log scale."
    ),
]
Against = Annotated[
    list[str] | None,
    typer.Option(
        help="The setting of that control where it is not the baseline: dose=10; may be repeated."
    ),
]
Block = Annotated[
    str | None, typer.Option(help="Batch, device or laboratory, which may have its own level.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Record surprising values without confirmation.")]
Context = Annotated[
    list[str] | None, typer.Option(help="A context value of this round: age=63; may be repeated.")
]
Row = Annotated[
    int | None,
    typer.Option(help="Which result of an import, counted from 0 as in `history --json`.", min=0),
]


def open_study(name: str, storage: str, actor: str | None = None) -> "Study":
    """The study, on its storage."""
    from sidestep.studies.study import Study

    return Study.open(name, storage, actor=actor)


def print_card(card: "Card", *, as_json: bool, storage: str = DEFAULT) -> None:
    """Print the card as text of the terminal's width, or as JSON; its commands include the storage."""
    from sidestep.studies.cards.text import harmless

    if as_json:
        print(harmless(json.dumps(card_json(card, storage), ensure_ascii=False)))
        return
    wide = min(shutil.get_terminal_size().columns, 100) if sys.stdout.isatty() else 80
    text = card.text(max(wide, 60), _options(storage))
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        text = text.replace(card.title, f"\033[1m{card.title}\033[0m", 1)
    print(text)


def card_json(card: "Card", storage: str) -> dict[str, Any]:
    """The card for a program; its text is that of the terminal."""
    return {**card.to_json(), "text": card.text(options=_options(storage))}


def _options(storage: str) -> str:
    """What a command needs to find the storage."""
    known = storage in (DEFAULT, os.environ.get("SIDESTEP_STORAGE"))
    return "" if known else f"-s {quote(storage)}"


def ask_twice(doubt: str) -> None:
    """Continue only if a person confirms; nothing has been saved yet."""
    print(f"{doubt} Nothing was saved.", file=sys.stderr)
    try:
        sure = typer.confirm("Record it anyway?", err=True)
    except typer.Abort:
        raise InputError("a value that is far off must be told with --yes, got no answer") from None
    if not sure:
        raise typer.Exit(1)


def result_of(values: list[str], measured: str | None) -> Any:
    """A result, or one for every outcome of a panel; None where it is told by options."""
    from sidestep.studies.measurement import read_report

    if not values:
        return None
    if len(values) == 1 and "=" not in values[0]:
        return read_report(measured or "the value", values[0])
    return {name: read_report(name, text) for name, text in _pairs(values, "a panel")}


def parts_of(plan: "Plan", **told: Any) -> dict[str, Any]:
    """The options of a result that were told: the numbers of text, but for percentages."""
    from sidestep.studies.values import read_number

    found: dict[str, Any] = {name: part for name, part in told.items() if part is not None}
    for name, part in found.items():
        if isinstance(part, str) and not part.strip().endswith("%"):
            found[name] = read_number(name, part)
    if found.get("against"):
        found["against"] = values_of(plan.factors, found["against"], "against")
    return {name: part for name, part in found.items() if part != []}


def values_of(factors: Any, texts: list[str] | None, what: str) -> dict[str, Any] | None:
    """Values of factors from name=value, also between their steps: studies check where they may lie."""
    if not texts:
        return None
    known = {factor.name: factor for factor in factors}
    return {
        name: known[name].read(text, on_steps=False) if name in known else text
        for name, text in _pairs(texts, what)
    }


def ranges_of(plan: "Plan", texts: list[str] | None) -> dict[str, Any] | None:
    """The argument `allowed`, from dose=0:20 or salt=none."""
    from sidestep.studies.values import read_number

    if not texts:
        return None
    words = {factor.name for factor in plan.factors if not factor.is_number}
    allowed: dict[str, Any] = {}
    for name, text in _pairs(texts, "--allow"):
        if name in words:
            allowed[name] = text.split(":")
        else:
            allowed[name] = [read_number(f"allowed of {name}", end) for end in text.split(":")]
            allowed[name] *= 2 if len(allowed[name]) == 1 else 1
    return allowed


def steps_of(texts: list[str] | None) -> dict[str, float] | None:
    """Numbers from dose=10."""
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
