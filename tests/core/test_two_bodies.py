"""Arithmetic over all arms has two bodies, in numpy and as a loop: both give the same numbers."""

import ast
from pathlib import Path

import numpy as np
import pytest

import sidestep
from sidestep import policies  # noqa: F401  (its files import every file with two bodies)
from sidestep.core import numba_backend as compiled
from sidestep.core.actions import Arms
from sidestep.core.arm_forms import COVARIANCE, Menu, empty_forms
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.jit import LOOPS
from sidestep.core.optimism_arms import along_action
from sidestep.core.posterior import Posterior
from sidestep.core.problem import Limits
from sidestep.core.projection import frame

DIM, PROTECTED, COUNT = 5, 3, 37
N = PROTECTED + 1


@pytest.fixture
def given():
    """Arguments of every function with two bodies, by its name; made anew, as some are written into."""
    rng = np.random.default_rng(4)
    rho, evidence = np.full(N, 0.1), no_evidence(np.full(N, 0.1), DIM)
    for turn in range(60):
        absorb(evidence, rho, rng.standard_normal(DIM) / 2, turn % N, rng.standard_normal())
    rows = rng.standard_normal((COUNT, DIM)) / 2
    rows[3] = 0.0  # the zero arm
    arms = Arms(rows)
    menu = Menu(arms.columns, arms.squared)
    posterior = Posterior(evidence.centre, evidence.inverse, np.full(N, 0.3))
    limits = Limits(
        np.array([-0.2, -np.inf, -0.1]), np.array([0.2, 0.3, np.inf]), np.array([5.0, 3.0, 0.0])
    )
    matrix, square = evidence.inverse[1], rng.uniform(0.0, 1.0, COUNT)
    information, regret = rng.uniform(0.0, 1.0, (N, COUNT)), rng.uniform(0.1, 1.0, COUNT)
    gram = rng.standard_normal((N, DIM, COUNT))
    gram = np.einsum("ijk,mjk->imk", gram, gram)
    moved, parts = rng.standard_normal((N, COUNT)), np.ones((N, COUNT))

    def forms():
        made = empty_forms(COVARIANCE, N, COUNT)
        for part in (made.linear, made.square, made.unit_width):
            part[:] = np.random.default_rng(5).uniform(0.1, 1.0, part.shape)
        made.workspace.radii[:] = 0.3
        made.workspace.products[:] = np.eye(N)
        return made

    out = np.empty(COUNT)
    return {
        "scores": (menu.columns, evidence.centre[1], out),
        "both_forms": (menu.columns, rows[0], matrix, 0.2, out, np.empty(COUNT)),
        "widths_along_arms": (arms.squared, square, out),
        "lengths": (square - 0.1, out),
        "write_upper": (regret, square, 0.7, out),
        "arms_of": (menu, np.array([4, 1, 30])),
        "lowest_argmax": (np.round(regret, 1),),
        "standing": (rng.standard_normal((16, COUNT)),),
        "add_information": (
            posterior,
            rng.standard_normal((N, DIM)),
            menu,
            rng.uniform(0.1, 1.0, (N, COUNT)),
            np.zeros((N, COUNT)),
        ),
        "best_measurement": (information, np.array([1.0, 2.0, 0.5, 1.0])),
        "best_mixture": (regret, information[0]),
        "squares_in": (evidence.inverse, menu.columns),
        "posterior_from_sums": (evidence, posterior.noise, np.full((N, DIM), 0.5)),
        "draw": (posterior, rng.standard_normal(3 * N * DIM), 3),
        "log_likelihoods": (evidence, posterior.noise, 0.25, 1.0, DIM - 1),
        "frame": (evidence.centre, 2),
        "pooled_frame": (evidence.centre, np.array([1.0, 0.5, 1.0, 0.2]), 2),
        "gradient": (frame(evidence.centre, 2), rows[0]),
        "values_within": (limits, evidence.centre, menu.columns, COUNT),
        "steepness_within": (limits, posterior, rows[0], False),
        "expected_values": (limits, posterior, menu.columns, COUNT),
        "chances_within": (limits, posterior, menu.columns, COUNT),
        "along_action": (False, arms.squared, forms(), np.arange(N), out),
        "along_inverse": (evidence, menu, forms(), np.array([0, 2]), out),
        "project": (gram, moved, parts, N, out),
    }


def flat(value):
    """All arrays and numbers in nested tuples."""
    if isinstance(value, tuple):
        return [number for part in value for number in flat(part)]
    return [] if value is None else [np.array(value)]


def names():
    return sorted(function.__name__ for function in LOOPS)


def results(function, arguments):
    """What a function returns, and what it writes into its arguments."""
    copies = tuple(_copy(argument) for argument in arguments)
    return flat((function(*copies),)) + flat(copies)


def _copy(value):
    if isinstance(value, tuple):
        return type(value)._make(map(_copy, value))
    return value.copy() if isinstance(value, np.ndarray) else value


@pytest.mark.parametrize("name", names())
def test_a_loop_gives_the_numbers_of_its_numpy_body(name, given):
    function = next(function for function in LOOPS if function.__name__ == name)
    in_numpy = results(function, given[name])
    in_a_loop = results(LOOPS[function], given[name])
    checked = 0
    for one, other in zip(in_numpy, in_a_loop, strict=True):
        if name != "project" or one.shape == (COUNT,):  # it may write into its buffers as it likes
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
            checked += 1
    assert checked


@pytest.mark.full
@pytest.mark.parametrize("name", names())
def test_a_loop_can_be_compiled_and_gives_the_numbers_of_its_numpy_body(name, given):
    if not compiled.is_installed():
        pytest.skip("there is nothing to compile with")
    if name in {"along_action", "along_inverse", "project"}:
        pytest.skip("compiled in the loops of the LinUCBs: tests/contracts")
    function = next(function for function in LOOPS if function.__name__ == name)
    in_numpy = results(function, given[name])
    in_machine_code = results(compiled.compiled(function), given[name])
    for one, other in zip(in_numpy, in_machine_code, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_no_source_is_generated():
    written = {
        call.func.id
        for file in Path(sidestep.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    assert not written & {"exec", "eval", "compile"}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_both_bodies_give_the_same_values_for_every_size_of_a_core_set(count, given):
    """One or two protected vectors have a loop of their own."""
    _, squared, forms, _, out = given["along_action"]
    arguments = (False, squared, forms, np.array([0, 2, 1, 3])[:count], out)
    in_numpy, in_a_loop = results(along_action, arguments), results(LOOPS[along_action], arguments)
    np.testing.assert_allclose(in_numpy[-1], in_a_loop[-1], rtol=1e-11, atol=1e-12)
