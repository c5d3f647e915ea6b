"""What a type checker sees: the README's code and policies of one's own pass, mistakes do not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
OWN = """import numpy as np

import sidestep as ss


class First:
    plays = (ss.Arms,)

    def __init__(self, problem: ss.Problem) -> None:
        self.problem = problem

    def init(self) -> int:
        return 0

    def ask(self, state: int, actions: ss.Arms, rng: np.random.Generator) -> ss.Decision:
        return ss.Decision(ss.Query(actions.vectors[0], 0), "play")

    def tell(self, state: int, query: ss.Query, feedback: float) -> int:
        return state + 1


world = ss.environments.failure()
ss.simulate(First(world.problem), world, horizon=20)
"""
CELL = re.compile(r"^%%writefile mine.py\n(.*?)^```", re.MULTILINE | re.DOTALL)
INWARD = (
    "sqlalchemy",
    "matplotlib",
    "PIL",
    "IPython",
    "rich",
    "hypothesis",
)  # no public name is of theirs
SETTINGS = f"""[mypy]
strict = true
follow_imports = silent
[mypy-{",".join(f"{name}.*" for name in INWARD)}]
follow_imports = skip
"""
WRONG = """import sidestep as ss

ss.nonsense
ss.Problem(dim="six", n_protected=4)
reveal_type(ss.Study.create)
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, list[str]]:
    """What mypy --strict says of the README's blocks, one file each, and of code that is wrong."""
    folder = tmp_path_factory.mktemp("typed")
    blocks = FENCE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    files = {f"readme_{k}.py": text for k, text in enumerate(blocks)} | {"wrong.py": WRONG}
    tutorial = (ROOT / "docs" / "tutorials" / "policy.md").read_text(encoding="utf-8")
    files |= {"own.py": OWN, "mine.py": CELL.findall(tutorial)[0]}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "mypy.ini").write_text(SETTINGS)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", ROOT / ".mypy_cache" / "outside", *files],
        cwd=folder, env=os.environ | {"MYPYPATH": str(ROOT / "src")},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    found: dict[str, list[str]] = {name: [] for name in files}
    for line in done.stdout.splitlines():
        if line.split(":")[0] in found:
            found[line.split(":")[0]].append(line)
    return found


def test_the_code_of_the_readme_and_policies_of_ones_own_are_accepted(said):
    assert [line for name, lines in said.items() if name != "wrong.py" for line in lines] == []


def test_a_name_that_is_not_there_is_an_error(said):
    assert any('no attribute "nonsense"' in line for line in said["wrong.py"])


def test_a_parameter_of_the_wrong_type_is_an_error_and_no_name_is_any(said):
    assert any('Argument "dim"' in line for line in said["wrong.py"])
    assert any("def (name: " in line for line in said["wrong.py"])
