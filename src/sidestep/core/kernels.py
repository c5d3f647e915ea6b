"""Kernels: arithmetic that is written once and runs with or without a compiler.

`@kernel` leaves a function exactly as it is, so that Python runs it, a debugger steps through it and a
type checker reads it. It also notes how numba should compile the function, for those who play millions
of rounds and ask for that (core/compiled.py). Nothing here imports numba.

Kernels use the arithmetic of IEEE 754, where 1/0 is infinite and 0/0 is NaN, and test for the outcome.
Whoever runs them from Python does so inside `ieee_arithmetic()`, or numpy would warn of it.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast, overload

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def ieee_arithmetic() -> np.errstate:
    """A block in which numpy divides by zero without a word."""
    return np.errstate(all="ignore")


class Options(NamedTuple):
    """How numba should compile one kernel."""

    inline: bool  # into its caller, however long it is
    refcounts: bool  # False: it allocates nothing, so that numba need not count references
    fma: bool  # a product and the sum it goes into may be rounded once (fused multiply-add)
    nogil: bool  # it runs long: other threads of Python go on meanwhile
    small: bool  # its loops are short, or run rarely: they are not unrolled, which compiles sooner


KERNELS: dict[Callable[..., Any], Options] = {}
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
    """Note a function as a kernel, and return it as it is.

    A kernel without reference counts may call one that allocates for itself, but it must not receive an
    array from such a kernel, nor a Generator from Python: their references would leak. With `fma` the
    last digits may differ between machines, and between compiled and interpreted runs.
    """

    def note(function: Any) -> Any:
        KERNELS[function] = Options(inline, refcounts, fma, nogil, small)
        return function

    return note if function is None else note(function)


def by_type(selector: Function) -> Function:
    """A function whose body is the kernel that was registered for the type of its first argument.

    Python looks that kernel up at every call, numba once while it compiles: so one compiled loop serves
    every policy, and its result is cached on disk (a loop that took the kernels as arguments would be
    compiled anew in every process).
    """
    family: dict[type, Callable[..., Any]] = {}

    @wraps(selector)
    def call(knobs: Any, *arguments: Any) -> Any:
        return family[type(knobs)](knobs, *arguments)

    FAMILIES[call] = family
    return cast(Function, call)


def register(selector: Callable[..., Any], kind: type, function: Callable[..., Any]) -> None:
    """Let a first argument of this NamedTuple type mean this kernel.

    The type needs a name of its own: to numba two NamedTuples of one name and the same fields are the
    same type.
    """
    FAMILIES[selector][kind] = function
