"""Linear and quadratic forms of all arms: filled, followed, and the same for the same arm."""

import numpy as np
import pytest

from sidestep.core.actions import Arms
from sidestep.core.arm_forms import (
    CHUNK,
    COVARIANCE,
    PRECISION,
    Menu,
    arm_of,
    both_forms,
    empty_forms,
    fill,
    follow,
    scores,
    upper_means,
)
from sidestep.core.estimator import REFACTOR, absorb, no_evidence
from sidestep.core.linalg import TIE

METRICS = pytest.mark.parametrize(
    "metric", [PRECISION, COVARIANCE], ids=["precision", "covariance"]
)
SIZES = pytest.mark.parametrize("count", [1, 7, CHUNK, CHUNK + 1, CHUNK + 44])
DIM = 5
ROOM = np.empty(DIM)


def vectors(count, seed=0, d=DIM):
    """Arms of different lengths, the last one zero where there are several."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, d)) * rng.uniform(0.1, 1.0, (count, 1)) / np.sqrt(d)
    if count > 1:
        rows[-1] = 0.0
    return rows


def menu_of(rows):
    arms = Arms(rows)
    return Menu(arms.columns, arms.squared)


def some_evidence(rho, count=30, seed=1):
    rng = np.random.default_rng(seed)
    evidence = no_evidence(rho, DIM)
    for t in range(count):
        absorb(evidence, rho, rng.standard_normal(DIM) / 3, t % len(rho), rng.standard_normal())
    return evidence


def reference(metric, evidence, rho, rows, index):
    matrix = evidence.inverse[index]
    if metric == PRECISION:
        matrix = evidence.gram[index] + rho[index] * np.eye(DIM)
    return rows @ evidence.centre[index], np.einsum("kj,jm,km->k", rows, matrix, rows)


def unit_width(metric, rows, square):
    """How far <a, theta> moves: along a to the edge of {|x|_V <= 1}; along V^-1 a likewise."""
    squared, norm = np.einsum("kj,kj->k", rows, rows), np.sqrt(np.maximum(square, 0.0))
    if metric == COVARIANCE:
        return norm
    return np.divide(squared, norm, out=np.zeros(len(rows)), where=norm > 0)


@pytest.mark.full
@SIZES
@pytest.mark.parametrize("d", [*range(1, 12), 16, 17])  # compiled: in passes of 8 and tiles of 3
def test_scores_and_forms_are_those_of_numpy(count, d):
    rows = vectors(count, d=d)
    root = np.random.default_rng(2).standard_normal((d + 1, d))
    matrix, first, second = root.T @ root, root[0].copy(), root[1].copy()
    one, other = np.empty(count), np.empty(count)
    scores(menu_of(rows).columns, first, one)
    assert one == pytest.approx(rows @ first, abs=1e-13)
    both_forms(menu_of(rows).columns, second, matrix, 0.3, one, other)
    matrix += 0.3 * np.eye(d)
    assert one == pytest.approx(rows @ second, abs=1e-13)
    assert other == pytest.approx(np.einsum("kj,jm,km->k", rows, matrix, rows), abs=1e-12)


def test_an_arm_is_taken_out_as_a_vector_of_its_own():
    rows = vectors(4)
    menu = menu_of(rows)
    assert np.array_equal(arm_of(menu, 2), rows[2])


@METRICS
@SIZES
def test_fill_computes_the_row_of_one_vector_only(metric, count):
    rho = np.array([0.1, 2.0])
    evidence, rows = some_evidence(rho), vectors(count)
    forms = empty_forms(metric, 2, count)
    fill(forms, evidence, rho, menu_of(rows), 1)
    linear, square = reference(metric, evidence, rho, rows, 1)
    assert forms.linear[1] == pytest.approx(linear, abs=1e-13)
    assert forms.square[1] == pytest.approx(square, abs=1e-12)
    assert forms.unit_width[1] == pytest.approx(unit_width(metric, rows, square), abs=1e-12)
    assert forms.filled.tolist() == [0, 1]


def test_a_row_that_is_filled_is_left_alone():
    rho = np.array([0.1])
    rows = vectors(6)
    forms = empty_forms(PRECISION, 1, 6)
    fill(forms, some_evidence(rho), rho, menu_of(rows), 0)
    before = forms.linear.copy()
    fill(forms, some_evidence(rho, seed=9), rho, menu_of(rows), 0)
    assert np.array_equal(forms.linear, before)


def test_a_row_that_is_not_filled_is_not_followed():
    rho = np.array([0.1])
    evidence = some_evidence(rho)
    forms = empty_forms(PRECISION, 1, 6)
    forms.linear[:], forms.square[:] = 7.0, 7.0
    follow(ROOM, forms, evidence, menu_of(vectors(6)), np.ones(DIM), 0, 0.1)
    assert (forms.linear == 7.0).all()
    assert (forms.square == 7.0).all()
    assert not forms.filled.any()


@METRICS
@pytest.mark.parametrize("d", [9, 16, 21])
def test_forms_follow_in_more_dimensions_than_a_pass_takes(metric, d):
    rng, rhos = np.random.default_rng(5), np.full(1, 0.1)
    rows = vectors(40, d=d)
    menu, forms = menu_of(rows), empty_forms(metric, 1, 40)
    evidence = no_evidence(rhos, d)
    fill(forms, evidence, rhos, menu, 0)
    for _ in range(60):
        action, surprise = rows[rng.integers(39)].copy(), rng.standard_normal()
        absorb(evidence, rhos, action, 0, evidence.centre[0] @ action + surprise)
        follow(np.empty(d), forms, evidence, menu, action, 0, surprise)
        assert forms.filled[0]
    matrix = evidence.gram[0] + 0.1 * np.eye(d) if metric == PRECISION else evidence.inverse[0]
    square = np.einsum("kj,jm,km->k", rows, matrix, rows)
    assert forms.linear[0] == pytest.approx(rows @ evidence.centre[0], abs=1e-11)
    assert forms.square[0] == pytest.approx(square, abs=1e-11)
    assert forms.unit_width[0] == pytest.approx(unit_width(metric, rows, square), abs=1e-10)


SHORT = {(7, 1.0), (7, 6e-6), (CHUNK + 1, 6e-6)}


@pytest.mark.full
@METRICS
@pytest.mark.parametrize(
    ("count", "rho"),
    [
        pytest.param(count, rho, marks=() if (count, rho) in SHORT else pytest.mark.slow)
        for rho in (1.0, 0.1, 1e-3, 6e-6)  # the last is R^2 d / M^2 at R = 0.001
        for count in (7, 301, CHUNK + 1)
    ],
)
def test_forms_that_follow_hundreds_of_measurements_equal_forms_computed_anew(metric, count, rho):
    rng = np.random.default_rng(3)
    rhos = np.full(2, rho)
    rows = vectors(count)
    menu, forms = menu_of(rows), empty_forms(metric, 2, count)
    evidence = no_evidence(rhos, DIM)
    for index in (0, 1):
        fill(forms, evidence, rhos, menu, index)
    for t in range(3 * REFACTOR):
        action, index = rows[rng.integers(count)].copy(), t % 2
        surprise = rng.standard_normal()
        absorb(evidence, rhos, action, index, evidence.centre[index] @ action + surprise)
        follow(ROOM, forms, evidence, menu, action, index, surprise)
        fill(forms, evidence, rhos, menu, index)  # a row that could not follow is computed anew
        linear, square = reference(metric, evidence, rhos, rows, index)
        assert np.allclose(forms.linear[index], linear, rtol=1e-9, atol=1e-9)
        assert np.allclose(forms.square[index], square, rtol=1e-9, atol=1e-12)
        expected = unit_width(metric, rows, forms.square[index])
        assert np.allclose(forms.unit_width[index], expected, rtol=1e-12, atol=0.0)


@pytest.mark.full
@METRICS
def test_duplicates_of_an_arm_have_equal_forms_far_below_a_tie(metric):
    rng = np.random.default_rng(4)
    rho = np.array([0.1])
    few = vectors(7)
    copies = rng.permutation(np.repeat(np.arange(7), 243))  # 1701 arms, across chunks
    first = np.unique(copies, return_index=True)[1]
    rows = few[copies]
    menu, forms = menu_of(rows), empty_forms(metric, 1, len(rows))
    evidence = some_evidence(rho)
    fill(forms, evidence, rho, menu, 0)
    for t in range(REFACTOR + 12):
        for form in (forms.linear[0], forms.square[0], forms.unit_width[0]):
            assert form == pytest.approx(form[first][copies], rel=TIE / 1e3, abs=TIE / 1e3)
        action = few[t % 7].copy()
        surprise = rng.standard_normal()
        absorb(evidence, rho, action, 0, evidence.centre[0] @ action + surprise)
        follow(ROOM, forms, evidence, menu, action, 0, surprise)


@SIZES
def test_upper_means_are_the_largest_over_the_set(count):
    rho = np.array([0.1])
    evidence, rows = some_evidence(rho), vectors(count)
    out = np.empty(count)
    upper_means(menu_of(rows).columns, evidence.centre[0], evidence.inverse[0], 0.7, out)
    linear, square = reference(COVARIANCE, evidence, rho, rows, 0)
    assert out == pytest.approx(linear + 0.7 * np.sqrt(square), abs=1e-12)
