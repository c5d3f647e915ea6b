"""How kernels are compiled, and where compiled code is kept: a read-only installation must work."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys

import sidestep
from sidestep.core import jit as cache
from sidestep.core import numba_backend as compiled
from sidestep.core.jit import KERNELS, cache_folder, fingerprint, kernel
from sidestep.core.linalg import dot
from sidestep.environments import synthetic

PACKAGE = Path(sidestep.__file__).parent
CALL = (
    "import numpy; from sidestep.core.numba_backend import compiled\n"
    "from sidestep.core.linalg import dot; print(compiled(dot)(numpy.ones(3), numpy.ones(3)))"
)


def call(code=CALL, **changes):
    clean = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=clean | changes,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )


def test_a_kernel_is_the_function_itself():
    assert dot.__name__ == "dot"
    assert not hasattr(dot, "py_func")
    assert dot in KERNELS


@pytest.mark.full
def test_compiled_code_goes_to_the_users_cache_without_a_word_in_a_pipe(tmp_path):
    home = {"XDG_CACHE_HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    first, second = call(**home), call(**home)
    assert first.stdout == second.stdout == "3.0\n"
    assert first.stderr == second.stderr == ""
    assert list((tmp_path / "sidestep").rglob("linalg.dot-*.nbi"))
    assert not list(PACKAGE.rglob("*.nbi"))


@pytest.mark.full
def test_on_a_terminal_compiling_is_announced_once(tmp_path):
    """Two kernels are compiled; the standard error of the process is a terminal."""
    ours, theirs = pty.openpty()
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    code = CALL + "\nfrom sidestep.core.linalg import total; compiled(total)(numpy.ones(3), 0)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=theirs, env=env) as process:
        os.close(theirs)
        assert process.wait(timeout=300) == 0
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert said.count("compiling") == 1
    assert said.count("\n") == 1


@pytest.mark.full
@pytest.mark.parametrize("collecting", [True, False])
def test_compiling_leaves_the_garbage_collector_and_numba_as_the_user_had_them(
    collecting, tmp_path
):
    code = (
        "import gc\nfrom numba.core.compiler import Flags\n"
        "before = Flags.__eq__, Flags.__hash__\n"
        f"{'gc.enable()' if collecting else 'gc.disable()'}\n{CALL}\n"
        "print(gc.isenabled(), before == (Flags.__eq__, Flags.__hash__))"
    )
    done = call(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout.splitlines()[-1] == f"{collecting} True"


def test_an_edit_in_a_folder_of_a_room_gives_another_cache(monkeypatch, tmp_path):
    """Kernels may lie in a folder of a package; before, only files at its top were read."""
    file = tmp_path / "policies" / "advice" / "kernels.py"
    file.parent.mkdir(parents=True)
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "core" / "cache.py"))
    seen = set()
    for text in ("one", "two"):
        file.write_text(text)
        cache.fingerprint.cache_clear()
        seen.add(cache.fingerprint())
    cache.fingerprint.cache_clear()
    assert len(seen) == 2


def test_in_a_folder_that_the_user_names_every_source_has_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert cache_folder() == str(tmp_path / fingerprint())


def test_without_a_cache_folder_of_the_system_the_home_is_taken(monkeypatch, tmp_path):
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Path(cache_folder()).parent == tmp_path / ".cache" / "sidestep"


@pytest.mark.full
def test_where_the_users_cache_cannot_be_written_a_temporary_folder_is_taken(tmp_path):
    """A file stands where the folder would be made: that stops even an administrator."""
    (tmp_path / "file").write_text("")
    done = call(XDG_CACHE_HOME=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert done.stdout == "3.0\n"
    assert list(tmp_path.glob("sidestep-*/*/*/linalg.dot-*.nbi"))


@pytest.mark.full
def test_a_kernel_without_reference_counts_that_allocates_is_refused():
    @kernel(refcounts=False)
    def forgetful(n):
        return np.empty(n).size

    del KERNELS[forgetful]  # known to this test alone
    with pytest.raises(TypingError):
        compiled.compile_alone(forgetful, kernel_options(refcounts=False))(3)


def kernel_options(**changes):
    @kernel(**changes)
    def nothing():
        return None

    return KERNELS.pop(nothing)


def test_a_numba_without_the_private_option_compiles_all_the_same(monkeypatch):
    monkeypatch.setattr(compiled, "knows_refcounts", lambda: False)
    plain = compiled.compile_alone(_sum_of_squares, kernel_options(refcounts=False))
    assert plain(np.arange(4.0)) == 14.0


@pytest.mark.full
def test_a_numba_that_builds_libraries_otherwise_compiles_all_the_same(tmp_path):
    """`apply` calls `apply_into`, which is then compiled by itself."""
    code = (
        "import numpy; from sidestep.core import numba_backend as compiled\n"
        "from sidestep.core.linalg import apply\n"
        "compiled.knows_parts = lambda: False\n"
        "print(compiled.compiled(apply)(numpy.eye(2), numpy.ones(2)).sum())"
    )
    assert call(code, NUMBA_CACHE_DIR=str(tmp_path)).stdout == "2.0\n"


def _sum_of_squares(values):
    total = 0.0
    for k in range(values.size):
        total += values[k] * values[k]
    return total


@pytest.fixture
def counted():
    _nrt_python.memsys_enable_stats()
    yield rtsys.get_allocation_stats
    _nrt_python.memsys_disable_stats()


@pytest.mark.full
@pytest.mark.parametrize("policy", [sidestep.ProtectedLinUCB, sidestep.DirectedThompson])
@pytest.mark.parametrize("actions", [7, np.eye(4)], ids=["fresh", "fixed"])
def test_what_a_run_allocates_is_freed_and_what_it_is_handed_let_go(policy, actions, counted):
    arms = actions if isinstance(actions, int) else sidestep.Arms(actions)
    world = synthetic(4, 2, 1, arms, noise_scale=0.1, seed=0)
    player = policy(world.problem)
    sidestep.simulate(player, world, 150, compiled=True)
    rho, before = player.knobs.confidence.rho, counted()
    held = sys.getrefcount(rho)
    sidestep.simulate(player, world, 150, compiled=True)
    after = counted()
    assert after.alloc - before.alloc == after.free - before.free
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
    assert sys.getrefcount(rho) == held
