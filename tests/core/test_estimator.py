"""Regularised estimates: Eq. 1, and the same after a million updates as in wider arithmetic."""

import functools
from typing import NamedTuple

import numpy as np
import pytest

from sidestep.core.estimator import (
    REFACTOR,
    absorb,
    clear,
    copy_evidence,
    no_evidence,
    refactor,
)
from sidestep.core.jit import kernel
from sidestep.core.numba_backend import compiled

LONG = np.longdouble
MILLION = 1_000_000
DIM = 6
CLAIMS = [(1e6, 1e-9), (1e8, 1e-7)]  # condition of V, and how far an estimate may be off


@kernel
def absorb_all(evidence, rho, index, actions, feedback):
    for t in range(feedback.size):
        absorb(evidence, rho, actions[t], index, feedback[t])


@kernel
def plain_sums(actions, feedback):
    """The same sums without compensation."""
    d = actions.shape[1]
    gram, moment = np.zeros((d, d)), np.zeros(d)
    for t in range(feedback.size):
        for j in range(d):
            for k in range(d):
                gram[j, k] += actions[t, j] * actions[t, k]
            moment[j] += actions[t, j] * feedback[t]
    return gram, moment


def anew(evidence, rho):
    """The estimates, computed from the sums alone; (L+1, d)."""
    fresh = copy_evidence(evidence)
    for index in range(len(rho)):
        refactor(fresh, rho, index)
    return fresh.centre


def long_solve(matrix, right):
    """Gaussian elimination with row exchanges in long double."""
    a, x, d = matrix.astype(LONG), right.astype(LONG), len(right)
    for j in range(d):
        pivot = j + int(np.argmax(np.abs(a[j:, j])))
        a[[j, pivot]], x[[j, pivot]] = a[[pivot, j]], x[[pivot, j]]
        for row in range(j + 1, d):
            share = a[row, j] / a[j, j]
            a[row] -= share * a[j]
            x[row] -= share * x[j]
    for j in reversed(range(d)):
        x[j] = (x[j] - a[j, j + 1 :] @ x[j + 1 :]) / a[j, j]
    return x


def long_sums(actions, feedback, rho):
    """V and the moment in long double, in blocks so that no sum is long."""
    d = actions.shape[1]
    precision, moment = LONG(rho) * np.eye(d, dtype=LONG), np.zeros(d, LONG)
    for start in range(0, len(feedback), 1000):
        block = actions[start : start + 1000].astype(LONG)
        precision += block.T @ block
        moment += block.T @ feedback[start : start + 1000].astype(LONG)
    return precision, moment


class History(NamedTuple):
    actions: np.ndarray
    feedback: np.ndarray
    rho: float


def history(condition, rounds, arms, seed):
    """Measurements along rotated directions of very different strength, so that V is ill conditioned.

    With `arms` the same few are played over and over: rounding then does not average out.
    """
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
    spread = rng.standard_normal((arms or rounds, DIM))
    if arms:
        spread = np.linalg.qr(spread)[0] * np.sqrt(arms)
    actions = spread * np.geomspace(1.0, (0.9 * condition) ** -0.5, DIM) @ turn.T
    actions /= np.linalg.norm(actions, axis=1).max()
    if arms:
        actions = actions[rng.integers(arms, size=rounds)]
    theta = turn.sum(axis=1) / np.sqrt(DIM)  # of length 1, with a part along every direction
    feedback = actions @ theta + 0.01 * rng.standard_normal(rounds)
    rho = rounds * 1e-3 / condition  # small beside the weakest direction's share
    return History(np.ascontiguousarray(actions), feedback, rho)


class Replayed(NamedTuple):
    evidence: object
    rho: np.ndarray
    precision: np.ndarray  # V in long double
    truth: np.ndarray  # the estimate in long double
    naive: np.ndarray  # the estimate from sums without compensation


@functools.cache
def replayed(condition, rounds, arms, seed):
    past = history(condition, rounds, arms, seed)
    rho = np.full(2, past.rho)
    evidence = no_evidence(rho, DIM)
    compiled(absorb_all)(evidence, rho, 1, past.actions, past.feedback)
    precision, moment = long_sums(*past)
    gram, plain = compiled(plain_sums)(past.actions, past.feedback)
    regularised = gram.astype(LONG) + LONG(past.rho) * np.eye(DIM, dtype=LONG)
    return Replayed(
        evidence,
        rho,
        precision,
        long_solve(precision, moment),
        long_solve(regularised, plain),
    )


def condition_of(precision):
    values = np.linalg.eigvalsh(precision.astype(float))
    return values[-1] / values[0]


LONG_RUNS = pytest.mark.parametrize(
    ("rounds", "arms"),
    [
        pytest.param(20_000, 0, id="20k-fresh"),
        pytest.param(20_000, 12, id="20k-repeated"),
        pytest.param(MILLION, 0, id="1M-fresh", marks=pytest.mark.slow),
        pytest.param(MILLION, 12, id="1M-repeated", marks=pytest.mark.full),
    ],
)


@pytest.mark.parametrize(("condition", "tolerance"), CLAIMS)
@LONG_RUNS
def test_estimates_are_those_of_long_double(rounds, condition, tolerance, arms):
    run = replayed(condition, rounds, arms, 1)
    assert condition / 2 <= condition_of(run.precision) <= condition
    assert (
        run.evidence.counts[1] % REFACTOR != 0
    )  # so the running values are not from a fresh solve
    assert np.abs(run.evidence.centre[1] - run.truth).max() <= tolerance
    assert np.abs(anew(run.evidence, run.rho)[1] - run.truth).max() <= tolerance


@pytest.mark.full
@pytest.mark.parametrize(("condition", "tolerance"), CLAIMS)
def test_sums_without_compensation_would_not_keep_that_promise(condition, tolerance):
    run = replayed(condition, MILLION, 12, 1)
    assert np.abs(run.naive - run.truth).max() > tolerance


@pytest.mark.parametrize("condition", [1e6, 1e8])
@LONG_RUNS
def test_running_centre_inverse_and_determinant_equal_a_fresh_solve(rounds, condition, arms):
    run = replayed(condition, rounds, arms, 1)
    # a solve in double precision is itself off by rounding times condition; updates between two
    # solves add up, at most REFACTOR of them
    allowed = REFACTOR * DIM * np.finfo(float).eps * condition
    inverse = run.evidence.inverse[1]
    off = run.precision @ inverse.astype(LONG) - np.eye(DIM)
    assert np.abs(off).max() <= allowed
    assert np.array_equal(inverse, inverse.T)
    sign, logdet = np.linalg.slogdet((run.precision / LONG(run.rho[1])).astype(float))
    assert sign == 1
    assert run.evidence.logdet[1] == pytest.approx(logdet, abs=allowed)
    fresh = copy_evidence(run.evidence)
    refactor(fresh, run.rho, 1)
    assert run.evidence.centre[1] == pytest.approx(fresh.centre[1], abs=1e-9)
    assert run.evidence.logdet[1] == pytest.approx(fresh.logdet[1], abs=allowed)


@pytest.mark.full
@pytest.mark.parametrize("rho", [10.0, 0.1, 1e-3, 1e-6])
def test_the_estimate_is_right_after_every_single_measurement(rho):
    past = history(10.0, 2 * REFACTOR + 20, 0, 4)
    rhos = np.full(1, rho)
    evidence = no_evidence(rhos, DIM)
    for t, (action, feedback) in enumerate(zip(past.actions, past.feedback, strict=True), 1):
        absorb(evidence, rhos, action, 0, feedback)
        precision, moment = long_sums(past.actions[:t], past.feedback[:t], rho)
        truth = long_solve(precision, moment)
        assert np.abs(evidence.centre[0] - truth).max() <= 1e-9
        logdet = np.linalg.slogdet((precision / LONG(rho)).astype(float))[1]
        assert evidence.logdet[0] == pytest.approx(logdet, rel=1e-10)


def test_absorb_is_equation_1():
    rng = np.random.default_rng(5)
    rho = np.array([0.1, 2.0, 0.5])
    evidence = no_evidence(rho, 3)
    index = rng.integers(3, size=60)
    actions, feedback = rng.standard_normal((60, 3)), rng.standard_normal(60)
    for t in range(60):
        absorb(evidence, rho, actions[t], index[t], feedback[t])
    for i in range(3):
        a, x = actions[index == i], feedback[index == i]
        precision = a.T @ a + rho[i] * np.eye(3)
        expected = np.linalg.solve(precision, a.T @ x)
        assert evidence.counts[i] == len(x)
        assert evidence.gram[i] == pytest.approx(a.T @ a, rel=1e-13)
        assert evidence.moment[i] == pytest.approx(a.T @ x, abs=1e-13)
        assert evidence.centre[i] == pytest.approx(expected, abs=1e-12)
        assert evidence.inverse[i] == pytest.approx(np.linalg.inv(precision), abs=1e-12)
        logdet = np.linalg.slogdet(precision)[1] - 3 * np.log(rho[i])
        assert evidence.logdet[i] == pytest.approx(logdet, abs=1e-12)
        assert anew(evidence, rho)[i] == pytest.approx(expected, abs=1e-12)


def test_one_measurement_by_hand():
    rho = np.array([0.5])
    evidence = no_evidence(rho, 2)
    absorb(evidence, rho, np.array([1.0, 0.0]), 0, 3.0)
    assert evidence.centre[0] == pytest.approx([2.0, 0.0], abs=1e-15)  # 3 / (1 + 1/2)
    assert evidence.inverse[0] == pytest.approx(np.diag([2 / 3, 2.0]), abs=1e-15)
    assert evidence.logdet[0] == pytest.approx(np.log(3.0), abs=1e-15)  # det V / rho^2


def test_no_evidence_is_the_prior():
    rho = np.array([0.1, 4.0])
    evidence = no_evidence(rho, 3)
    assert evidence.counts.tolist() == [0, 0]
    assert not evidence.centre.any()
    assert not evidence.logdet.any()
    assert np.array_equal(evidence.inverse, np.eye(3) / rho[:, None, None])
    assert not anew(evidence, rho).any()


def test_a_measurement_changes_its_own_vector_only():
    rng = np.random.default_rng(6)
    rho = np.full(3, 0.1)
    evidence = no_evidence(rho, 4)
    for t in range(2 * REFACTOR):
        absorb(evidence, rho, rng.standard_normal(4), t % 3, rng.standard_normal())
    before = copy_evidence(evidence)
    for _ in range(REFACTOR + 1):
        absorb(evidence, rho, rng.standard_normal(4), 1, rng.standard_normal())
    for old, new in zip(before[:-2], evidence[:-2], strict=True):
        assert np.array_equal(old[[0, 2]], new[[0, 2]])
        assert not np.array_equal(old[1], new[1])


def test_a_copy_is_equal_and_shares_nothing():
    evidence = replayed(10.0, 50, 0, 8).evidence
    for old, new in zip(evidence, copy_evidence(evidence), strict=True):
        assert np.array_equal(old, new)
        assert not np.shares_memory(old, new)


def test_estimates_computed_anew_come_from_the_sums_alone():
    run = replayed(10.0, 200, 0, 9)
    evidence = copy_evidence(run.evidence)
    evidence.centre[:] = 7.0
    evidence.inverse[:] = 7.0
    assert np.array_equal(anew(evidence, run.rho), anew(run.evidence, run.rho))


def test_clear_forgets_everything():
    run = replayed(1e4, 300, 0, 10)
    evidence = copy_evidence(run.evidence)
    clear(evidence, run.rho)
    for cleared, new in zip(evidence, no_evidence(run.rho, DIM), strict=True):
        assert np.array_equal(cleared, new)


def test_without_noise_and_with_little_regularisation_the_estimate_is_the_truth():
    rng = np.random.default_rng(11)
    theta = rng.standard_normal(DIM)
    rho = np.array([1e-10])
    evidence = no_evidence(rho, DIM)
    for _ in range(300):
        action = rng.standard_normal(DIM)
        absorb(evidence, rho, action, 0, float(action @ theta))
    assert evidence.centre[0] == pytest.approx(theta, abs=1e-8)
