"""How kernels are compiled, for those who ask: numba, and a cache that notices every edit.

Live code never comes here: `ask` and `tell` run the kernels as they are. `simulate` compiles its loop
where numba is installed, because it plays millions of rounds. `compiled_steps` lets `ask` and `tell` run
compiled too.

numba's own cache looks only at the file of the function that is called. A kernel that calls
another file's kernel would go on with yesterday's version of it, so compiled code is kept in a
folder named after the whole source: edit any file and everything is compiled anew, once.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from sidestep.core.kernels import FAMILIES, KERNELS, Options

Function = TypeVar("Function", bound=Callable[..., Any])

SECONDS = 20  # what the loop of one policy takes to compile, roughly
_ROOMS = ("core", "policies", "environments", "experiments/loop.py")  # where kernels are written
_steps_compiled = [os.environ.get("SIDESTEP_COMPILE", "") not in ("", "0")]


def is_installed() -> bool:
    """Whether there is anything to compile with."""
    return find_spec("numba") is not None


@contextmanager
def compiled_steps() -> Iterator[None]:
    """Let `ask` and `tell` run compiled in here. SIDESTEP_COMPILE=1 does the same for a process."""
    before, _steps_compiled[0] = _steps_compiled[0], True
    try:
        yield
    finally:
        _steps_compiled[0] = before


def step(function: Function) -> Function:
    """The kernel as `ask` and `tell` should run it: as it is, unless compiled steps were asked for."""
    return compiled(function) if _steps_compiled[0] else function


@cache
def compiled(function: Function) -> Function:
    """The kernel compiled whole, with all that it calls, and cached on disk."""
    _teach()
    _ENTRIES.add(function)
    return compile_alone(function, KERNELS[function])


def compile_alone(function: Function, options: Options) -> Function:
    """One function compiled with these options, and cached on disk."""
    numba = _numba()
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = cache_folder()  # read once, while the function is decorated
    try:
        return numba.njit(cache=True, nogil=options.nogil, **_settings(options))(function)  # type: ignore[no-any-return]
    finally:
        settings.CACHE_DIR = before


@cache
def _numba() -> Any:
    """The numba module, set up to say when it compiles."""
    import numba  # noqa: PLC0415  (an extra, and half a second to import)
    from numba.core import event  # noqa: PLC0415

    class Announcer(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            _announce(event.data["dispatcher"].py_func, event.data["args"])

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcer())
    return numba


def _announce(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Say on stderr what is being compiled: nobody should wait in silence."""
    if function in _ENTRIES:
        kind = getattr(arguments[0] if arguments else None, "instance_class", None)
        whose = f" for {kind.__name__.removesuffix('Knobs')}" if kind else ""
        print(
            f"sidestep: compiling {function.__name__}{whose}, about {SECONDS} s, once",
            file=sys.stderr,
            flush=True,
        )


_ENTRIES: set[Callable[..., Any]] = set()
_TAUGHT: set[Any] = set()


def _teach() -> None:
    """Let compiled code call every kernel that is known by now, and every family by type."""
    from numba.extending import overload, register_jitable  # noqa: PLC0415

    for function, options in list(KERNELS.items()):
        if function not in _TAUGHT:
            _TAUGHT.add(function)
            inline = "always" if options.inline else "never"
            register_jitable(inline=inline, **_settings(options))(function)
    for selector, family in FAMILIES.items():
        for kind, function in family.items():
            if (selector, kind) not in _TAUGHT:
                _TAUGHT.add((selector, kind))
                settings = _settings(KERNELS[function])
                overload(selector, jit_options=settings, strict=False)(_chosen(kind, function))


def _chosen(kind: type, function: Callable[..., Any]) -> Callable[..., Any]:
    """What numba asks while it compiles a call of a family: the kernel, if the type is this one."""

    def choose(knobs: Any, *arguments: Any) -> Any:
        return function if getattr(knobs, "instance_class", None) is kind else None

    return choose


def _settings(options: Options) -> dict[str, Any]:
    """Options of numba: IEEE arithmetic (no reassociation), and 1/0 gives inf."""
    settings: dict[str, Any] = {"error_model": "numpy"}
    if options.fma:
        settings["fastmath"] = {"contract"}
    if knows_refcounts():  # said of every kernel: it would be inherited from the caller
        settings["_nrt"] = options.refcounts
    return settings


@cache
def knows_refcounts() -> bool:
    """Whether this numba can leave out reference counts: a private option, which costs speed alone."""
    from numba.core.options import DefaultOptions  # noqa: PLC0415

    return hasattr(DefaultOptions, "_nrt")


def cache_folder() -> str:
    """Where compiled code is kept: NUMBA_CACHE_DIR if set, else the user's cache, by source.

    Where the user's cache cannot be written (a locked-down account), a folder for temporary files.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return chosen
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "sidestep", fingerprint())
    try:
        os.makedirs(folder, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    mine = f"sidestep-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    return os.path.join(tempfile.gettempdir(), mine, fingerprint())


@cache
def fingerprint() -> str:
    """A name for this very source: it changes with every edit of a room that holds kernels."""
    source = Path(__file__).parents[1]
    content = hashlib.sha256(sys.version.encode())
    for room in _ROOMS:
        for file in sorted([source / room, *(source / room).glob("*.py")]):
            if file.suffix == ".py":
                content.update(file.read_bytes())
    return content.hexdigest()[:16]
