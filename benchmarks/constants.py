"""Whether a test fails where a constant of a theorem is 10% smaller: docs/theory.md promises one.

    python -m benchmarks.constants [--only last_direction]

Copies the sources and tests to a folder of its own, multiplies one constant by 0.9 there, runs the tests
of that theorem, and says which one failed first; then the next constant. Exits with 1 if one survives.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
CORE = "src/sidestep/core/"


class Constant(NamedTuple):
    """A line of a bound, and the same with a constant that is a tenth smaller."""

    file: str  # in core
    line: str  # a part of it, found once
    smaller: str
    tests: str


THEORY, LOWER = "tests/core/test_theory.py", "tests/core/test_lower_bounds.py"
UPPER, LAST = "tests/core/test_upper_bounds.py", "tests/core/test_last_direction.py"
SAMPLING = "tests/paper/test_posterior_sampling.py"
CONSTANTS = (
    # Theorems 1 to 3
    Constant("theory.py", "return 2 * np.sqrt(spread", "return 1.8 * np.sqrt(spread", THEORY),
    Constant("theory.py", "plain(root)", "plain(0.9 * root)", THEORY),
    Constant("theory.py", "ratio = 24 * L", "ratio = 22.77 * L", THEORY),
    Constant("theory.py", "np.ceil(root * root)", "np.ceil(0.9 * root * root)", THEORY),
    Constant("theory.py", "(factor + 1) * error", "0.95 * (factor + 1) * error", THEORY),
    Constant("theory.py", "12 * math.sqrt(2)", "10.8 * math.sqrt(2)", THEORY),
    Constant("theory.py", "core_set = 4608", "core_set = 4147", THEORY),
    Constant("theory.py", "on_all + on_core_set", "0.9 * (on_all + on_core_set)", THEORY),
    Constant("theory.py", "4 * np.sqrt(T * d", "3.6 * np.sqrt(T * d", THEORY),
    # Theorems 4 and 5
    Constant("upper_bounds.py", "play = 2 * dear", "play = 1.8 * dear", SAMPLING),
    Constant("upper_bounds.py", "potential * M * (2 +", "0.9 * potential * M * (2 +", SAMPLING),
    Constant(
        "upper_bounds.py", "2 * math.sqrt(costs.max())", "1.8 * math.sqrt(costs.max())", SAMPLING
    ),
    Constant("upper_bounds.py", "size * math.exp(ratio)", "0.9 * size * math.exp(ratio)", SAMPLING),
    # Theorems 6 to 8
    Constant("upper_bounds.py", "minimum(2 * A * (e", "minimum(1.8 * A * (e", UPPER),
    Constant("upper_bounds.py", "return N, 2 * A * M", "return N, 1.8 * A * M", UPPER),
    Constant("upper_bounds.py", "wrong < gap", "0.9 * wrong < gap", UPPER),
    Constant("theory.py", "2 * n * largest", "1.8 * n * largest", UPPER),
    # Theorems 9 to 12
    Constant("lower_bounds.py", "0.5 * action_bound", "0.45 * action_bound", LOWER),
    Constant("lower_bounds.py", "plain(norm_bound * loss", "plain(0.9 * norm_bound * loss", LOWER),
    Constant("lower_bounds.py", "plain(best)", "plain(0.9 * best)", LOWER),
    Constant("lower_bounds.py", "float(noise[0]", "0.9 * float(noise[0]", LOWER),
    Constant("lower_bounds.py", "both = 0.78", "both = 0.70", THEORY),
    Constant("lower_bounds.py", "math.exp(-21)", "0.9 * math.exp(-21)", THEORY),
    Constant("lower_bounds.py", "(d - s - 1) * float", "0.9 * (d - s - 1) * float", LOWER),
    # Theorem 14
    Constant("last_direction.py", "return sweep *", "return 0.9 * sweep *", LAST),
    Constant("last_direction.py", "NOISY = 2 /", "NOISY = 1.8 /", LAST),
    Constant("last_direction.py", "played = 0.5 *", "played = 0.45 *", LAST),
)


def first_failure(constant: Constant, folder: Path) -> str | None:
    """The first test that fails with the smaller constant; None where all pass."""
    path = folder / CORE / constant.file
    source = path.read_text(encoding="utf-8")
    path.write_text(source.replace(constant.line, constant.smaller), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    paths = os.environ | {"PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}"}
    done = subprocess.run(
        [*command, constant.tests],
        cwd=folder,
        env=paths,
        capture_output=True,
        text=True,
        check=False,
    )
    path.write_text(source, encoding="utf-8")
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
    return failed[0].split(" - ")[0].partition("::")[2] if failed else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="a part of a file's name")
    asked = parser.parse_args()
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "tests", "benchmarks", "docs"):
            shutil.copytree(ROOT / part, folder / part)
        shutil.copy(ROOT / "pyproject.toml", folder)
        for constant in CONSTANTS:
            if asked.only in constant.file:
                found = first_failure(constant, folder)
                survived += found is None
                print(f"{constant.file}: {constant.smaller}: {found or 'SURVIVED'}", flush=True)
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main())
