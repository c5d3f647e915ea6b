"""Names and what they stand for: policies, worlds, presets, knobs."""

import difflib
from collections.abc import Mapping
from typing import TypeVar

from sidestep.errors import UnknownNameError

Entry = TypeVar("Entry")


def look_up(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """The entry of that name, or one sentence with the nearest name there is."""
    if name in table:
        return table[name]
    near = difflib.get_close_matches(name, table, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    words = ", ".join(sorted(table)) or "(none)"
    raise UnknownNameError(f"{kind} must be one of {words}, got {name!r}{hint}")
