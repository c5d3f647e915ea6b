"""The map at the top of a package names every file of its folder, and no other."""

import ast
import re
from pathlib import Path

import pytest

import sidestep

HOME = Path(sidestep.__file__).parent
MAPPED = (
    "core",
    "policies",
    "policies/advice",
    "environments",
    "experiments",
    "experiments/analysis",
    "experiments/figures",
    "experiments/report",
)


@pytest.mark.parametrize("package", MAPPED)
def test_the_map_of_a_package_names_what_is_in_its_folder(package):
    folder = HOME / package
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()), clean=False)
    named = re.findall(r"^    (\w+) {2,}\S", text, flags=re.MULTILINE)
    files = {file.stem for file in folder.glob("*.py")} - {"__init__"}
    packages = {file.parent.name for file in folder.glob("*/__init__.py")}
    assert sorted(named) == sorted(files | packages)
