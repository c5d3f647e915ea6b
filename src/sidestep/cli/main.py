"""The command line. Commands load what they need when they run, so that --help is quick."""

import inspect
import json
import multiprocessing
import os
import signal
import sys
import textwrap
import warnings
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from sidestep import __version__
from sidestep.cli.accounts import tokens, users
from sidestep.cli.missing import missing_text
from sidestep.cli.serve import serve
from sidestep.cli.study import app as study_app
from sidestep.cli.terminal import AsJson
from sidestep.errors import ConflictError, InputError, NotFoundError, SidestepError

app = typer.Typer(
    help="Move one outcome and leave the others alone, measuring one outcome at a time.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(study_app, name="study")
app.command()(serve)
app.add_typer(users, name="user")
app.add_typer(tokens, name="token")

Jobs = Annotated[int, typer.Option(help="Number of processes; 0 means one per core.", min=0)]
Out = Annotated[Path, typer.Option(help="Folder for the results.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace results in --out that have other settings.")
]
EXIT_CODES = ((NotFoundError, 3), (InputError, 2), (ConflictError, 4), (SidestepError, 1))
INTERRUPTED = 130  # what shells expect after Ctrl-C
KEPT = {
    "run": "; finished runs are kept, --resume goes on",
    "reproduce": "; finished runs are kept, the same command goes on",
}
EXAMPLE = "\n\nExample:"
PAPER = ("synthetic", "warfarin", "failure", "lower-bound", "ball")


def _version(asked: bool) -> None:  # noqa: FBT001  (typer calls it so)
    if asked:
        print(f"sidestep {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="synthetic, warfarin, failure, lower-bound, ball, diabetes, guardrails or panel; all is "
            "the first five."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The IWPC table, which warfarin needs; guardrails and panel use it too."),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs per policy.", min=1)] = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds per run.", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the first run.", min=0)] = None,
    jobs: Jobs = 0,
    out: Out = Path("out"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Only 3 runs of 200 rounds, for a first look.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Reproduce the paper's experiments and write a report.

    Example: sidestep reproduce all --jobs 2 --out out
    """
    from sidestep.cli import lab

    settings = {"runs": runs, "horizon": horizon, "seed": seed}
    if quick:
        settings = {"runs": runs or 3, "horizon": horizon or 200, "seed": seed}
    wanted = [name for name in names or ["all"] for name in (PAPER if name == "all" else [name])]
    runner = lab.runner_of(jobs or _cores())
    failed = lab.reproduce(
        wanted, data=data, settings=settings, runner=runner, out=out, overwrite=overwrite
    )
    lab.finish(out, runner=runner, as_json=as_json, failed=failed)


@app.command()
def run(
    spec: Annotated[Path | None, typer.Argument(help="The experiment, a TOML file.")] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a commented example with every key.")
    ] = False,
    jobs: Jobs = 0,
    scheduler: Annotated[
        str, typer.Option(help="Address of a Dask scheduler: tcp://HOST:PORT.")
    ] = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue: play only the runs that are missing.")
    ] = False,
    overwrite: Overwrite = False,
    out: Out = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Run an experiment that a TOML file describes.

    Example: sidestep run --example > mine.toml
             sidestep run mine.toml --jobs 2 --resume
    """
    from sidestep.cli import lab

    if example:
        print(resources.files("sidestep.cli").joinpath("example.toml").read_text("utf-8"), end="")
        return
    if spec is None:
        raise InputError("run needs a SPEC, got none (--example prints one)")
    # for the user's own policies and worlds: "package.module:Class"
    sys.path.insert(0, os.getcwd())
    here = lab.runner_of(jobs or _cores())
    runner = lab.runner_of(jobs, scheduler) if scheduler else here
    failed = lab.run_spec(spec, out=out, runner=runner, resume=resume, overwrite=overwrite)
    lab.finish(out, runner=here, as_json=as_json, failed=failed)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `run` or `reproduce` wrote.")],
    formats: Annotated[
        str, typer.Option("--format", help="Figures for a paper besides: pdf, pgf or pdf,pgf.")
    ] = "",
    width: Annotated[
        float | None, typer.Option(help="Inches of these figures; 3.3 is one column.")
    ] = None,
    jobs: Jobs = 0,
    as_json: AsJson = False,
) -> None:
    """Rebuild figures, tables and report.html from recorded runs.

    Beside every figure lies a CSV file with the numbers that it shows.

    Example: sidestep report out
             sidestep report out --format pdf,pgf --width 3.3
    """
    from sidestep.cli import lab

    runner = lab.runner_of(jobs or _cores())
    lab.finish(folder, runner=runner, as_json=as_json, formats=formats, width=width)


@app.command()
def policies(as_json: AsJson = False) -> None:
    """List the policies and their knobs.

    Example: sidestep policies --json
    """
    from sidestep.policies.catalog import POLICIES, knobs_of

    rows = [
        {"policy": name, "what": _first_line(policy), "knobs": knobs_of(policy)}
        for name, policy in POLICIES.items()
    ]
    _print_catalog(rows, "policy", as_json=as_json)


@app.command()
def environments(as_json: AsJson = False) -> None:
    """List the worlds and their knobs.

    Example: sidestep environments
    """
    from sidestep.environments.catalog import WORLDS, knobs_of_world

    rows = [
        {"world": name, "what": _first_line(maker), "knobs": knobs_of_world(maker)}
        for name, maker in WORLDS.items()
    ]
    _print_catalog(rows, "world", as_json=as_json)


@app.command()
def demo(
    storage: Annotated[str, typer.Argument(help="Database file of the demo.")] = "demo.db",
    rounds: Annotated[
        int | None,
        typer.Option(
            help="Simulate this many visits without asking you, then show the result.", min=1
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the study.", min=0)] = 7,
    as_json: AsJson = False,
) -> None:
    """Try a simulated clinic. It has three drugs, five outcomes and a laboratory that answers.

    Example: sidestep demo
             sidestep demo --rounds 30
    """
    from sidestep.cli import demo as clinic

    study = clinic.opened(storage, seed)
    if rounds is None and sys.stdin.isatty():
        clinic.by_hand(study, storage)
    else:
        clinic.play(study, rounds or 20)
    clinic.conclude(study, storage, as_json=as_json)


def _keep_examples(group: typer.Typer) -> None:
    """Have --help print the examples line by line, as they are written."""
    for command in group.registered_commands:
        text = inspect.cleandoc(getattr(command.callback, "__doc__", None) or "")
        command.help = text.replace(EXAMPLE, EXAMPLE.replace("E", "\b\nE", 1))
    for below in group.registered_groups:
        if below.typer_instance is not None:
            _keep_examples(below.typer_instance)


_keep_examples(app)


def _first_line(thing: Any) -> str:
    return (thing.__doc__ or "").strip().splitlines()[0]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _print_catalog(rows: list[dict[str, Any]], key: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(rows, indent=1, default=str))
        return
    for row in rows:
        knobs = ", ".join(f"{knob}={value!r}" for knob, value in row["knobs"].items())
        print(row[key])
        for text in (row["what"], knobs or "(no knobs)"):
            print(textwrap.fill(text, 80, initial_indent="    ", subsequent_indent="    "))


def _interrupt(*_: Any) -> NoReturn:
    """The first Ctrl-C: exit, keeping finished results."""
    signal.signal(signal.SIGINT, _leave_at_once)
    raise KeyboardInterrupt


def _leave_at_once(*_: Any) -> NoReturn:
    """The second Ctrl-C: exit at once, without a message."""
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(INTERRUPTED)


def main() -> None:
    """The `sidestep` command; its exit codes are in EXIT_CODES, 0 for success."""
    signal.signal(signal.SIGINT, _interrupt)
    setattr(warnings, "showwarning", _say_warning)  # noqa: B010  (mypy would have its exact type)
    try:
        sys.exit(app(standalone_mode=False))
    except SidestepError as error:
        from sidestep.studies.cards.text import harmless

        print(f"sidestep: {harmless(str(error))}", file=sys.stderr)
        sys.exit(next(code for kind, code in EXIT_CODES if isinstance(error, kind)))
    except (KeyboardInterrupt, typer.Abort):
        _say_interrupted()
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED:
            _say_interrupted()
        raise
    except Exception as error:
        if not hasattr(error, "show") or not hasattr(error, "exit_code"):
            raise
        if said := missing_text(error):
            print(f"sidestep: {said}", file=sys.stderr)
        else:
            error.show()  # a wrong option: the parser's own message
        sys.exit(error.exit_code)


def _say_interrupted() -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program is exiting already
    kept = KEPT.get("".join(sys.argv[1:2]), "")
    print(f"sidestep: interrupted{kept}", file=sys.stderr)
    sys.exit(INTERRUPTED)


@cache
def _say_once(text: str) -> None:
    print(f"sidestep: note: {text}", file=sys.stderr)


def _say_warning(message: Warning | str, *_: Any) -> None:
    _say_once(str(message))


if __name__ == "__main__":
    main()
