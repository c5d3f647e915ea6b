"""Kernels: arithmetic that runs with or without a compiler.

`@kernel` leaves a function exactly as it is, so that Python runs it, a debugger steps through it and a
type checker reads it. It also records how numba should compile the function, for those who play millions
of rounds and ask for compiled code (core/numba_backend.py). Nothing here imports numba.

Arithmetic over all arms has two bodies, one below the other: `def name` in numpy, which Python runs where
a person waits, and a loop marked `@compiled_as(name)`, which numba compiles in its place. Everything else
is written once.

Kernels use the arithmetic of IEEE 754, where 1/0 is infinite and 0/0 is NaN, and test the result.
Python code calls them inside `ieee_arithmetic()`; otherwise numpy would warn.

Compiled code is kept in a folder whose name is a hash of the whole source (`cache_folder`). numba's own
cache checks only the file of the function that is called: a kernel that calls a kernel of another file
would keep using its old version. Here an edit of any file gives a new folder, and everything is compiled
once more.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast, overload

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def ieee_arithmetic() -> np.errstate:
    """Context manager in which numpy does not warn of divisions by zero."""
    return np.errstate(all="ignore")


class Options(NamedTuple):
    """How numba should compile one kernel."""

    inline: bool  # inline it into its caller, however long it is
    refcounts: bool  # False: it allocates nothing, so numba need not count references
    fma: bool  # a multiplication and an addition may be rounded together (fused multiply-add)
    nogil: bool  # it runs long: it releases the GIL, so that other Python threads can run
    small: bool  # its loops are short or run rarely: they are not unrolled, which compiles faster


KERNELS: dict[Callable[..., Any], Options] = {}
LOOPS: dict[
    Callable[..., Any], Callable[..., Any]
] = {}  # what numba compiles instead of a numpy body
FAMILIES: dict[Callable[..., Any], dict[type, Callable[..., Any]]] = {}


@overload
def kernel(function: Function) -> Function: ...


@overload
def kernel(
    *,
    inline: bool = ...,
    refcounts: bool = ...,
    fma: bool = ...,
    nogil: bool = ...,
    small: bool = ...,
) -> Callable[[Function], Function]: ...


def kernel(
    function: Any = None,
    *,
    inline: bool = False,
    refcounts: bool = True,
    fma: bool = False,
    nogil: bool = False,
    small: bool = False,
) -> Any:
    """Mark a function as a kernel, and return it unchanged.

    A kernel without reference counts may call one that allocates for itself, but it must not receive an
    array from such a kernel, nor a Generator from Python: their references would leak. With `fma` the
    last digits may differ between machines, and between compiled and interpreted runs.
    """

    def note(function: Any) -> Any:
        KERNELS[function] = Options(inline, refcounts, fma, nogil, small)
        return function

    return note if function is None else note(function)


def compiled_as(
    function: Function, *, refcounts: bool = True, fma: bool = False, small: bool = False
) -> Callable[[Function], Function]:
    """Mark a loop as what numba compiles where Python runs `function`, its body in numpy.

    Both take the same arguments and give the same values, up to rounding (tests/core/test_two_bodies.py).
    """

    def note(loop: Function) -> Function:
        KERNELS[function] = Options(
            inline=False, refcounts=refcounts, fma=fma, nogil=False, small=small
        )
        LOOPS[function] = loop
        return loop

    return note


def by_type(selector: Function) -> Function:
    """A function whose body is the kernel that was registered for the type of its first argument.

    Python looks the kernel up at every call, numba once at compile time. So the simulation loop is
    written once for all policies, and the compiled loop is cached on disk. (A loop that took the kernels
    as arguments would be compiled again in every process.)
    """
    family: dict[type, Callable[..., Any]] = {}

    @wraps(selector)
    def call(knobs: Any, *arguments: Any) -> Any:
        return family[type(knobs)](knobs, *arguments)

    FAMILIES[call] = family
    return cast(Function, call)


def register(selector: Callable[..., Any], kind: type, function: Callable[..., Any]) -> None:
    """Register the kernel that `selector` calls when its first argument has this NamedTuple type.

    The name of the type must be unique: numba treats two NamedTuples with the same name and the same
    fields as one type.
    """
    FAMILIES[selector][kind] = function


_ROOMS = ("core", "policies", "environments", "experiments")  # where kernels are written


def cache_folder() -> str:
    """The folder for this version of the source: in NUMBA_CACHE_DIR if set, else in the user's cache.

    Where the user's cache is not writable (a locked-down account), it is in the temporary directory.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return os.path.join(chosen, fingerprint())
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(home, "sidestep", fingerprint())
    try:
        os.makedirs(folder, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    private = f"sidestep-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    return os.path.join(tempfile.gettempdir(), private, fingerprint())


@cache
def fingerprint() -> str:
    """Hash of the source of all packages that contain kernels; it changes with every edit of them."""
    source = Path(__file__).parents[1]
    content = hashlib.sha256(sys.version.encode())
    for room in _ROOMS:
        for file in sorted((source / room).rglob("*.py")):
            content.update(file.read_bytes())
    return content.hexdigest()[:16]
