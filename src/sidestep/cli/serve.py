"""`sidestep serve`: parse, call, print."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidestep.cli.terminal import AsJson
from sidestep.errors import InputError

if TYPE_CHECKING:
    from sidestep.service.settings import Loaded
    from sidestep.studies.storage.sql import SqlStore

DEMO = "demo.db"
DEMO_ROUNDS = 26


def serve(
    storage: Annotated[
        str | None, typer.Argument(help="Database: a file, sqlite:///... or postgresql://...")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 picks a free one.")] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Include a simulated study called `demo`.")
    ] = False,
    config: Annotated[Path | None, typer.Option(help="Settings file (TOML).")] = None,
    settings: Annotated[
        bool, typer.Option("--settings", help="Print every setting and where its value comes from.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Serve studies as web pages and over HTTP. Only this machine can reach them by default.

    Example: sidestep serve pilot.db
             sidestep serve --demo
    """
    need_extra()
    from sidestep.service.server import check_port_free, open_sql, run
    from sidestep.service.settings import load

    if storage is not None and not storage.strip():
        raise InputError(
            "STORAGE must be a file, sqlite:///... or postgresql://..., or be left out for "
            f"sidestep.db, got {storage!r}"
        )
    flags = {"storage": storage or (DEMO if demo else None), "host": host, "port": port}
    loaded = load(flags, config)
    if settings:
        _show_settings(loaded, as_json=as_json)
        return
    check_port_free(loaded.settings)
    store = open_sql(loaded.settings.storage)
    try:
        laboratory = _demo(store) if demo else None
        page = "/studies/demo" if demo else ""
        code = run(loaded.settings, store, lambda address: _say(address, page), laboratory)
    finally:
        store.close()
    raise typer.Exit(code)


def _demo(store: "SqlStore") -> Any:
    """The simulated study, with some rounds played; what its laboratory reports."""
    from sidestep.cli import demo

    study = demo.opened(store)
    if not study.n_results:
        print("sidestep: playing the first visits of the demo ...", file=sys.stderr)
        demo.play(study, DEMO_ROUNDS)
        study.ask()
    return demo.laboratory


def _say(address: str, page: str) -> None:
    said = f"\nsidestep: listening at {address}\nOpen {address}{page} in a browser. Ctrl-C stops.\n"
    print(said, file=sys.stderr, flush=True)


def _show_settings(loaded: "Loaded", *, as_json: bool) -> None:
    rows = loaded.shown()
    if as_json:
        print(json.dumps([row._asdict() for row in rows]))
        return
    for row in rows:
        value = row.value or "(none)"
        print(f"{row.name} = {value}   ({row.source})\n    {row.about}")
    print(
        "\nSet by option, by environment variable (SIDESTEP_PORT=...) or in a TOML file (--config)."
    )


def need_extra() -> None:
    """Say what to install where the service cannot run."""
    try:
        import argon2  # noqa: F401
        import fastapi  # noqa: F401
    except ImportError:
        raise InputError(
            "serving needs the extra 'serve' (pip install 'sidestep[serve]'), got none"
        ) from None
