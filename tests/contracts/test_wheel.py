"""What is shipped: the wheel, alone in an environment of its own, runs the README's quick start."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from email import message_from_string
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import sidestep as ss

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def run(*command: object, cwd: Path, **variables: str) -> str:
    """Output of a command that finds nothing of this tree by accident."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**clean, "PYTHONNOUSERSITE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def quick_start() -> str:
    """The first Python block of the README."""
    found = FENCE.search((ROOT / "README.md").read_text())
    assert found, "README.md has no ```python block"
    return found[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = ("-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    run(sys.executable, *build, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory) -> Path:
    """The interpreter of a new environment that holds the wheel and borrows its dependencies.

    A line in a .pth file adds a folder without reading the .pth files in it, so the editable
    install of this tree stays out of sight.
    """
    home = tmp_path_factory.mktemp("bare")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home)
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(where.strip(), "borrowed.pth").write_text("\n".join(sorted(borrowed)) + "\n")
    install = ("--python", python, "install", "--no-deps", "--no-index", "--quiet", wheel)
    run(sys.executable, "-m", "pip", *install, cwd=home)
    return python


def test_the_quick_start_runs_from_the_wheel(bare, tmp_path):
    code = quick_start()
    compiled = {"NUMBA_CACHE_DIR": str(tmp_path / "compiled")}
    if ">>> " in code:
        page = tmp_path / "quick_start.md"
        page.write_text(code)
        command: tuple[object, ...] = ("-W", "error", "-m", "doctest", "-o", "ELLIPSIS", page)
    else:
        script = tmp_path / "quick_start.py"
        script.write_text(code)
        command = ("-W", "error", script)
    run(bare, *command, cwd=tmp_path, **compiled)
    assert "sidestep" in code


def test_the_environment_imports_sidestep_from_the_wheel(bare, tmp_path):
    where = run(bare, "-c", "import sidestep; print(sidestep.__file__)", cwd=tmp_path).strip()
    assert Path(where).is_relative_to(bare.parents[1])
    assert ROOT not in Path(where).parents


def test_the_wheel_carries_its_version_its_types_its_licence_and_every_module(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = ROOT / "src"
    modules = {path.relative_to(source).as_posix() for path in source.rglob("*.py")}
    assert modules <= names
    assert "sidestep/py.typed" in names
    assert any(name.endswith("/LICENSE") for name in names)
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)
    assert wheel.name.split("-")[1] == ss.__version__


def test_the_wheel_declares_everything_that_it_imports(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        needs = message_from_string(archive.read(metadata).decode()).get_all("Requires-Dist")
        trees = [
            ast.parse(archive.read(name)) for name in archive.namelist() if name.endswith(".py")
        ]
    declared = {plain(re.split(r"[^\w.-]", need, maxsplit=1)[0]) for need in needs}
    imported = {
        module.split(".")[0]
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for module in (
            [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    }
    foreign = imported - set(sys.stdlib_module_names) - {"sidestep"}
    homes = packages_distributions()
    assert {"numpy", "numba"} <= foreign
    for module in foreign:
        assert {plain(name) for name in homes[module]} & declared, module


def plain(name: str) -> str:
    """The name of a distribution as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
