"""How the arithmetic is compiled: one decorator, and a cache that notices every edit.

numba's own cache looks only at the file of the function that is called. A kernel that calls
another file's kernel would go on with yesterday's version of it, so we keep compiled code in a
folder named after the whole source: edit any file and everything is compiled anew, once.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])

_SOURCE = Path(__file__).parents[1]


def cache_folder() -> str:
    """Where compiled code is kept: NUMBA_CACHE_DIR if set, else the user's cache, by source."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return chosen
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    stamp = hashlib.sha256(sys.version.encode())
    for file in sorted(_SOURCE.rglob("*.py")):
        stat = file.stat()
        stamp.update(f"{file}:{stat.st_mtime_ns}:{stat.st_size}".encode())
    return os.path.join(home, "sidestep", stamp.hexdigest()[:16])


_FOLDER = cache_folder()


def kernel(function: Function) -> Function:
    """Compile on first call, cached on disk; IEEE arithmetic (no reassociation), 1/0 gives inf."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = _FOLDER  # read once, while the function is decorated
    try:
        return cast(Function, numba.njit(cache=True, error_model="numpy")(function))
    finally:
        settings.CACHE_DIR = before
