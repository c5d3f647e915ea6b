"""The package root: its names are exact, it imports fast and nothing heavy; the tree of errors."""

import ast
import inspect
import subprocess
import sys
from importlib import resources

import pytest

import sidestep as ss
from sidestep import errors

HEAVY = ("numba", "sqlalchemy", "fastapi", "pydantic", "matplotlib", "polars")
MOST_CPU = 0.35  # seconds

RAISED = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type)
    and issubclass(kind, Exception)
    and not issubclass(kind, Warning)
    and kind.__module__ == errors.__name__
]
WARNED = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Warning) and kind.__module__ == errors.__name__
]


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", ss.__all__)
def test_every_name_of_the_front_door_loads(name):
    assert getattr(ss, name) is not None


def test_no_name_is_listed_twice():
    assert len(ss.__all__) == len(set(ss.__all__))


def test_dir_lists_exactly_the_front_door():
    assert dir(ss) == sorted(ss.__all__)


@pytest.fixture(scope="module")
def opened() -> tuple[list[str], set[str]]:
    """Names that `from sidestep import *` brings in a fresh process, and what that imports."""
    answer = in_a_fresh_process(
        "import sys; before = set(globals())\n"
        "from sidestep import *\n"
        "print((sorted(set(globals()) - before - {'before'}), sorted(sys.modules)))"
    )
    names, modules = ast.literal_eval(answer)
    return names, {module.split(".")[0] for module in modules}


@pytest.mark.full
def test_a_star_import_brings_exactly_the_front_door(opened):
    assert opened[0] == sorted(ss.__all__)


@pytest.mark.full
def test_opening_every_room_needs_no_compiler_no_database_no_server_and_no_pictures(opened):
    assert "numpy" in opened[1]
    assert opened[1].isdisjoint({"numba", "sqlalchemy", "fastapi", "matplotlib"})


def test_a_name_is_the_one_that_its_room_defines():
    assert ss.ProtectedLinUCB is ss.policies.POLICIES["protected-linucb"]
    assert ss.errors is errors
    assert ss.environments.Instance.__module__ == "sidestep.environments.instance"
    assert ss.TARGET == 0


def test_a_name_that_is_not_there_is_an_attribute_error_that_names_it():
    with pytest.raises(AttributeError, match="No sidestep attribute ProtectedLinUBC"):
        _ = ss.ProtectedLinUBC


def test_importing_sidestep_imports_nothing_heavy():
    loaded = in_a_fresh_process("import sys, sidestep; print(sorted(sys.modules))")
    roots = {module.split(".")[0] for module in ast.literal_eval(loaded)}
    assert "sidestep" in roots
    assert roots.isdisjoint(HEAVY)


def test_importing_sidestep_takes_under_a_third_of_a_second_of_cpu():
    code = (
        "import time; before = time.process_time(); import sidestep\n"
        "print(time.process_time() - before)"
    )
    assert min(float(in_a_fresh_process(code)) for _ in range(3)) < MOST_CPU


def test_the_version_is_three_numbers():
    assert all(part.isdigit() for part in ss.__version__.split("."))
    assert len(ss.__version__.split(".")) == 3


def test_py_typed_ships():
    assert resources.files("sidestep").joinpath("py.typed").is_file()


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
def test_every_exception_of_ours_is_a_sidestep_error(kind):
    assert issubclass(kind, errors.SidestepError)


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
def test_input_errors_are_value_errors_and_only_they(kind):
    assert issubclass(kind, ValueError) == issubclass(kind, errors.InputError)


@pytest.mark.parametrize("kind", WARNED, ids=lambda kind: kind.__name__)
def test_a_warning_is_not_an_error(kind):
    assert not issubclass(kind, errors.SidestepError)


def test_the_tree_at_the_top_of_errors_draws_every_class_under_its_parent():
    drawn: dict[str, list[str]] = {}
    above: list[tuple[int, str]] = []
    for line in inspect.getdoc(errors).splitlines()[2:]:
        branch = line.lstrip("|`- ")
        if not branch:
            continue
        name, depth = branch.split()[0], len(line) - len(branch)
        above = [(deep, parent) for deep, parent in above if deep < depth]
        drawn[name] = [parent for _, parent in above]
        above.append((depth, name))
    assert set(drawn) == {kind.__name__ for kind in [*RAISED, *WARNED]}
    for kind in RAISED:
        ours = [base.__name__ for base in kind.__mro__[1:] if base in RAISED]
        assert drawn[kind.__name__] == ours[::-1]


def test_every_exception_says_what_it_is_for():
    assert all(inspect.getdoc(kind) for kind in [*RAISED, *WARNED])
