"""Projections and subspaces against numpy, near dependence too; and the one rule for ties."""

import numpy as np
import pytest

from sidestep.core import linalg as geometry
from sidestep.core.linalg import SKIP

ROUNDING = np.finfo(float).eps


def projector(rows):
    """On the span of independent rows, by numpy's QR."""
    q = np.linalg.qr(rows.T)[0]
    return q @ q.T


def gaussian(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


# Bases and projections


@pytest.mark.parametrize(("count", "d"), [(1, 1), (1, 4), (3, 4), (4, 4), (5, 9)])
def test_orthonormal_spans_what_the_rows_span(count, d):
    rows = gaussian(count * d, count, d)
    basis = geometry.orthonormal(rows.copy())
    assert basis.shape == (count, d)
    assert basis @ basis.T == pytest.approx(np.eye(count), abs=4 * d * ROUNDING)
    assert basis.T @ basis == pytest.approx(projector(rows), abs=1e-12)


@pytest.mark.parametrize("apart", [1e-2, 1e-4, 1e-5, 1e-7])
def test_rows_that_nearly_coincide_still_span_two_directions(apart):
    d = 6
    rows = gaussian(1, 3, d)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[1] = rows[0] + apart * rows[1]
    basis = geometry.orthonormal(rows.copy())
    assert len(basis) == 3
    assert basis @ basis.T == pytest.approx(np.eye(3), abs=4 * d * ROUNDING)
    # the difference of the rows is known to rounding / apart, in QR as well
    assert basis.T @ basis == pytest.approx(projector(rows), abs=20 * d * ROUNDING / apart)


def test_rows_that_add_no_direction_are_left_out():
    rows = gaussian(2, 2, 5)
    dependent = np.array([np.zeros(5), rows[0], 3 * rows[0], rows[1], rows[0] - 2 * rows[1]])
    basis = geometry.orthonormal(dependent)
    assert len(basis) == 2
    assert basis.T @ basis == pytest.approx(projector(rows), abs=1e-14)
    assert geometry.orthonormal(np.zeros((2, 5))).shape == (0, 5)
    assert geometry.orthonormal(np.zeros((0, 5))).shape == (0, 5)


def test_more_rows_than_dimensions_give_a_basis_of_the_space():
    assert len(geometry.orthonormal(gaussian(3, 7, 3))) == 3


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e150])
def test_the_unit_of_length_changes_no_basis(scale):
    rows = gaussian(4, 3, 5)
    assert geometry.orthonormal(scale * rows) == pytest.approx(
        geometry.orthonormal(rows.copy()), abs=1e-14
    )


@pytest.mark.parametrize("apart", [1e-2, 1e-5, 1e-7])
def test_what_is_projected_off_is_orthogonal_to_the_rows_and_as_numpy_has_it(apart):
    d = 6
    rows = gaussian(5, 2, d)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[1] = rows[0] + apart * rows[1]
    vector = gaussian(6, d)
    left = geometry.project_off(geometry.orthonormal(rows.copy()), vector.copy())
    assert np.abs(rows @ left).max() <= 10 * ROUNDING
    assert left == pytest.approx(vector - projector(rows) @ vector, abs=20 * d * ROUNDING / apart)


def test_a_vector_almost_inside_the_span_leaves_an_accurate_rest():
    basis = geometry.orthonormal(gaussian(7, 2, 5))
    outside = geometry.project_off(basis, gaussian(8, 5))
    inside = basis[0] - 2 * basis[1]
    left = geometry.project_off(basis, inside + 1e-9 * outside)
    assert np.abs(basis @ left).max() <= ROUNDING * np.linalg.norm(left)
    assert left == pytest.approx(1e-9 * outside, abs=10 * ROUNDING)


def test_projecting_writes_nothing_into_what_it_is_given():
    basis, vector = geometry.orthonormal(gaussian(9, 2, 4)), gaussian(10, 4)
    before = basis.copy(), vector.copy()
    geometry.project_off(basis, vector)
    assert np.array_equal(basis, before[0])
    assert np.array_equal(vector, before[1])


# The closest subspace


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_plug_in_is_the_target_off_the_top_directions_of_uncentred_pca(rank):
    centre = gaussian(11, 6, 5)
    centre[1:] += 2.0  # a mean that centred PCA would take out
    _, directions = np.linalg.eigh(centre[1:].T @ centre[1:])
    top = directions[:, ::-1][:, :rank]
    expected = centre[0] - top @ (top.T @ centre[0])
    assert geometry.plug_in(centre.copy(), rank) == pytest.approx(expected, abs=1e-12)
    centred = centre[1:] - centre[1:].mean(axis=0)
    other = np.linalg.svd(centred)[2][:rank]
    assert np.abs(centre[0] - other.T @ (other @ centre[0]) - expected).max() > 1e-2


def test_plug_in_is_the_complement_and_not_the_projection():
    centre = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 2.0]])
    assert geometry.plug_in(centre, 1) == pytest.approx([1.0, 2.0, 0.0], abs=1e-15)


def test_plug_in_without_protected_directions_is_the_target_in_an_array_of_its_own():
    centre = gaussian(12, 1, 4)
    kept = geometry.plug_in(centre, 0)
    assert np.array_equal(kept, centre[0])
    assert not np.shares_memory(kept, centre)


@pytest.mark.parametrize(
    "weights",
    [(1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (1.0, -0.3, 0.7)],
    ids=["one", "same", "multiples"],
)
def test_plug_in_takes_out_no_direction_that_is_only_rounding(weights):
    target, protected = gaussian(13, 6), gaussian(14, 6)
    centre = np.vstack([target, np.outer(weights, protected)])
    expected = target - target @ protected / (protected @ protected) * protected
    assert geometry.plug_in(centre, 2) == pytest.approx(expected, abs=1e-12)


def test_before_the_first_measurement_plug_in_takes_nothing_out():
    centre = np.zeros((4, 3))
    centre[0] = [1.0, 2.0, 3.0]
    assert geometry.plug_in(centre, 2).tolist() == [1.0, 2.0, 3.0]


# Ties


def test_lowest_argmax_is_the_row_of_the_largest_value():
    rng = np.random.default_rng(15)
    for _ in range(50):
        for count in (1, 20, SKIP, 3 * SKIP + 5):
            values = rng.standard_normal(count)
            assert geometry.lowest_argmax(values) == int(np.argmax(values))


def test_a_chain_of_ties_ends_at_what_ties_with_the_largest():
    values = np.zeros(3 * SKIP)  # each a tie with the next, the first not with the last
    values[[5, SKIP + 5, 2 * SKIP + 5]] = 1.0, 1.0 + 0.9e-10, 1.0 + 1.8e-10
    assert geometry.lowest_argmax(values) == SKIP + 5


@pytest.mark.parametrize("lowest", [0, SKIP - 1, SKIP, SKIP + 1, 3 * SKIP - 1])
def test_the_lowest_of_many_values_that_tie_is_found_wherever_it_is(lowest):
    values = np.linspace(-1.0, 0.5, 3 * SKIP)
    values[lowest:] = 1.0
    assert geometry.lowest_argmax(values) == lowest


@pytest.mark.parametrize("largest", [1.0, -1.0, 0.3, -1e-8, 1e12])
def test_of_values_that_tie_up_to_rounding_the_lowest_row_wins(largest):
    low, top = largest - 0.5 * abs(largest), largest
    nearly = np.nextafter(np.nextafter(top, -np.inf), -np.inf)  # two roundings below
    assert geometry.lowest_argmax(np.array([low, nearly, low, top, top])) == 1
    assert geometry.lowest_argmax(np.array([low, top, nearly, top])) == 1


@pytest.mark.parametrize("largest", [1.0, -1.0, 1e12])
def test_values_that_differ_by_more_than_rounding_do_not_tie(largest):
    below = largest - 1e-8 * abs(largest)
    assert geometry.lowest_argmax(np.array([below, largest])) == 1


def test_equal_values_and_zeros_tie():
    assert geometry.lowest_argmax(np.zeros(5)) == 0
    assert geometry.lowest_argmax(np.full(5, -np.inf)) == 0
    assert geometry.lowest_argmax(np.array([-1.0, 0.0, 0.0])) == 1


def test_the_order_of_a_sum_does_not_choose_among_equal_arms():
    vector, arm = gaussian(16, 8), gaussian(17, 8)
    forward = sum(x * y for x, y in zip(vector, arm, strict=True))
    backward = sum(x * y for x, y in zip(vector[::-1], arm[::-1], strict=True))
    assert forward != backward  # else this test shows nothing
    assert geometry.lowest_argmax(np.array([forward, backward])) == 0
    assert geometry.lowest_argmax(np.array([backward, forward])) == 0


# Small linear algebra


@pytest.mark.parametrize("d", [1, 2, 6])
def test_factor_solve_and_inverse_are_those_of_numpy(d):
    root = gaussian(18 + d, d, d)
    matrix = root @ root.T + 0.1 * np.eye(d)
    factor = geometry.cholesky(matrix.copy())
    assert factor == pytest.approx(np.linalg.cholesky(matrix), abs=1e-12)
    right = gaussian(19, d)
    assert geometry.solve_cholesky(factor, right.copy()) == pytest.approx(
        np.linalg.solve(matrix, right), rel=1e-10
    )
    out = np.empty((d, d))
    geometry.inverse_into(factor, out)
    assert out == pytest.approx(np.linalg.inv(matrix), abs=1e-10)
    assert np.array_equal(out, out.T)


def test_products_are_those_of_numpy():
    root, vector = gaussian(20, 4, 4), gaussian(21, 4)
    matrix = root @ root.T
    assert geometry.dot(matrix[0], vector) == pytest.approx(matrix[0] @ vector, rel=1e-14)
    assert geometry.apply(matrix, vector) == pytest.approx(matrix @ vector, rel=1e-13)
    assert geometry.quadratic(matrix, vector) == pytest.approx(vector @ matrix @ vector, rel=1e-13)


def test_members_are_the_rows_switched_on_and_total_counts_from_a_row_on():
    rows = np.full(4, -1)
    assert geometry.members(np.array([1, 0, 1, 1]), rows) == 3
    assert rows.tolist() == [0, 2, 3, -1]
    assert geometry.members(np.zeros(3, np.int64), rows) == 0
    assert geometry.total(np.array([5, 2, 3]), 0) == 10
    assert geometry.total(np.array([5, 2, 3]), 1) == 5
