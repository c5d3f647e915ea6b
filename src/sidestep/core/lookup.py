"""Look-up of policies, worlds, presets and knobs by name."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from sidestep.errors import InputError, UnknownNameError

Entry = TypeVar("Entry")


def look_up(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """The entry of that name; raises one sentence with the most similar name otherwise."""
    if name in table:
        return table[name]
    words = ", ".join(sorted(table)) or "(none)"
    hint = did_you_mean(name, table, cutoff=0.4)
    raise UnknownNameError(f"{kind} must be one of {words}, got {name!r}{hint}")


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """A hint at the most similar of the known names; empty if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"; did you mean {near[0]!r}?" if near else ""


def check_knobs(name: str, maker: Callable[..., Any], given: Iterable[str], *unsaid: str) -> None:
    """Raise unless `maker` has knobs of these names; `unsaid` are parameters that are not knobs."""
    try:
        taken = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} cannot be built from knobs: {error}") from error
    if any(knob.kind is knob.VAR_KEYWORD for knob in taken):
        return
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known = {k.name: k.name for k in taken if k.kind in named and k.name not in unsaid}
    for knob in given:
        look_up(f"knob of {name}", knob, known)


def imported(kind: str, name: str) -> Callable[..., Any]:
    """A policy or world from another package, given as "package.module:Name"."""
    module, _, attribute = name.partition(":")
    try:
        maker: Callable[..., Any] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{kind} {name!r} cannot be imported: {error}") from error
    return maker
