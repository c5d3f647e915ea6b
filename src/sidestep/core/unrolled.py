"""Kernels with the work on one arm written out, by a program.

numba does not unroll a loop that it cannot count. Written out, the few numbers that all arms share stay
in registers, an arm is read once, and the machine works on several arms at a time. The text is that of
an ordinary function: Python runs it too, and a traceback shows its lines.
"""

import linecache
from collections.abc import Sequence
from typing import Any

from sidestep.core.kernels import kernel


def unrolled(name: str, title: str, lines: Sequence[str]) -> Any:
    """The kernel that a text defines: `name` is its name there, `title` that of its file."""
    file, text = f"<{title}>", "\n".join(lines) + "\n"
    made: dict[str, Any] = {}
    exec(compile(text, file, "exec"), made)  # noqa: S102  (our own text, of numbers alone)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return kernel(refcounts=False, fma=True)(made[name])
