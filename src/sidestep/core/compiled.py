"""How the arithmetic is compiled: one decorator, and a cache that notices every edit.

numba's own cache looks only at the file of the function that is called. A kernel that calls
another file's kernel would go on with yesterday's version of it, so we keep compiled code in a
folder named after the whole source: edit any file and everything is compiled anew, once.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

_ROOMS = ("core", "policies", "environments", "experiments/loop.py")  # where kernels are written


def cache_folder() -> str:
    """Where compiled code is kept: NUMBA_CACHE_DIR if set, else the user's cache, by source.

    Where the user's cache cannot be written (a locked-down account), a folder for temporary files.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return chosen
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "sidestep", _fingerprint())
    try:
        os.makedirs(folder, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    mine = f"sidestep-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    return os.path.join(tempfile.gettempdir(), mine, _fingerprint())


def _fingerprint() -> str:
    """A name for this very source: it changes with every edit of a room that holds kernels."""
    source = Path(__file__).parents[1]
    content = hashlib.sha256(sys.version.encode())
    for room in _ROOMS:
        for file in sorted([source / room, *(source / room).glob("*.py")]):
            if file.suffix == ".py":
                content.update(file.read_bytes())
    return content.hexdigest()[:16]


_FOLDER = cache_folder()


def kernel(function: Function) -> Function:
    """Compile on first call, cached on disk; IEEE arithmetic (no reassociation), 1/0 gives inf."""
    return _compiled(function, _nrt=True)


def folded(function: Function) -> Function:
    """The same, written into its caller: every array in a tuple that is handed on is counted anew.

    For what hands much on and does little.
    """
    return _compiled(function, inline="always", _nrt=True)


def bare(function: Function) -> Function:
    """The same, for what allocates nothing: numba then counts no references, 6 ns each.

    What does allocate is refused when it is compiled. It may call a kernel that allocates for itself, but
    not take an array from one, and no generator from Python: neither would ever be let go.
    """
    return _compiled(function, _nrt=False)


def over_arms(function: Function, *, cached: bool = True) -> Function:
    """Bare, for a pass over arms: a product and the sum it goes into may be rounded once (FMA).

    A machine that cannot do both at once rounds twice, so last digits may differ between machines.
    """
    return _compiled(function, cached=cached, fastmath={"contract"}, _nrt=False)


def whole_run(function: Function) -> Function:
    """A kernel that runs long: Python's other threads go on meanwhile."""
    return _compiled(function, nogil=True, _nrt=True)


def _compiled(function: Function, *, cached: bool = True, **options: Any) -> Function:
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _FOLDER  # read once, while the function is decorated
    try:
        compiler = numba.njit(cache=cached, error_model="numpy", **options)
        return cast(Function, compiler(function))
    finally:
        settings.CACHE_DIR = before
