"""Run the examples of the README and show what they print: `make quick-start`."""

import os
import re
import tempfile
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def main():
    """Execute every Python block of the README, in a folder that is gone afterwards."""
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    if not blocks:
        raise SystemExit(f"{README.name} must have a ```python block, got none")
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for block in blocks:
            exec(compile(block, f"{README.name}, quick start", "exec"), {"__name__": "__main__"})
        os.chdir(before)


if __name__ == "__main__":
    main()
