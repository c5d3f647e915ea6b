"""What is shipped: the wheel, alone in an environment of its own, runs the README's quick start."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
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
    """Output of a command that cannot import from this source tree by accident."""
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
    install = ("--python", python, "install", "--no-deps", "--no-index", "--quiet")
    install += ("--ignore-installed", wheel)  # borrowed packages may hold a sidestep too
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


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="what is tracked is known in a checkout")
def test_the_sdist_has_what_tests_and_site_are_made_of(tmp_path):
    build = ("-m", "build", "--sdist", "--no-isolation", "--outdir", tmp_path, ROOT)
    run(sys.executable, *build, cwd=tmp_path)
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = run("git", "ls-files", cwd=ROOT).split("\n")
    wanted = {
        name for name in tracked if name.startswith(("src/", "tests/", "docs/", "benchmarks/"))
    }
    wanted |= {
        "Makefile",
        "constraints.txt",
        "README.md",
        "CONTRIBUTING.md",
        "VISION.md",
        "SECURITY.md",
    }
    assert wanted <= names
    assert not any(name.startswith("docs/_build") for name in names)


def test_the_metadata_says_where_it_runs_and_invents_no_address(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        said = message_from_string(archive.read(metadata).decode())
    assert said["Requires-Python"] == ">=3.11"
    versions = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)}
    assert versions <= set(said.get_all("Classifier"))
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for address in said.get_all("Project-URL"):
        assert address.partition(", ")[2] in cited


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
