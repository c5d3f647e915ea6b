"""Run the quick start of the README and show what it prints: `make quick-start`."""

import re
import sys
from pathlib import Path

from sidestep.core.cache import cache_folder

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main():
    """Execute the README's first Python block."""
    block = BLOCK.search(README.read_text(encoding="utf-8"))
    if block is None:
        raise SystemExit(f"{README.name} must have a ```python block, got none")
    if not any(Path(cache_folder()).iterdir()):
        print("Compiling, once: a minute or two.\n", file=sys.stderr, flush=True)
    exec(compile(block[1], f"{README.name}, quick start", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
