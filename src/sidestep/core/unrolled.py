"""Generated kernels in which the loop over coordinates is unrolled.

numba does not unroll a loop whose length is unknown at compile time. In unrolled code the few numbers
that all arms share stay in registers, an arm is read once, and the processor works on several arms at a
time.
The generated text is an ordinary function: Python can run it too, and a traceback shows its lines.
"""

import linecache
from collections.abc import Sequence
from typing import Any

from sidestep.core.kernels import kernel


def unrolled(name: str, title: str, lines: Sequence[str]) -> Any:
    """The kernel defined by these source lines; `name` is the function, `title` the file name shown."""
    file, text = f"<{title}>", "\n".join(lines) + "\n"
    made: dict[str, Any] = {}
    exec(compile(text, file, "exec"), made)  # noqa: S102  (our own text, of numbers alone)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    return kernel(refcounts=False, fma=True)(made[name])
