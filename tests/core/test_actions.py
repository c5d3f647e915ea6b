"""The unit ball and sets of arms: what they accept and store, and directions they do not reach."""

import pickle

import numpy as np
import pytest

from sidestep.core.actions import Arms, UnitBall, checked_actions, name_directions, unreached
from sidestep.core.problem import Problem

PROBLEM = Problem(3, 2, 1)
FLAT = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])


def turned(seed, d):
    """A random rotation."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


# Arms


def test_arms_hold_rows_columns_and_lengths_of_the_same_numbers():
    vectors = np.random.default_rng(0).standard_normal((5, 3))
    arms = Arms(vectors)
    assert np.array_equal(arms.vectors, vectors)
    assert np.array_equal(arms.columns, vectors.T)
    assert arms.columns.flags.c_contiguous
    assert arms.squared == pytest.approx((vectors**2).sum(axis=1), rel=1e-15)
    assert arms.longest == pytest.approx(np.linalg.norm(vectors, axis=1).max(), rel=1e-15)
    assert (len(arms), arms.dim) == (5, 3)


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (4, 1), (1, 1)])
def test_arms_are_copied(shape):
    vectors = np.full(shape, 0.5)
    arms = Arms(vectors)
    vectors[:] = 9.0
    assert (arms.vectors == 0.5).all()
    assert (arms.columns == 0.5).all()


@pytest.mark.parametrize("shape", [(4, 3), (1, 3), (4, 1), (1, 1)])
def test_the_rows_of_arms_cannot_be_written_to(shape):
    arms = Arms(np.full(shape, 0.5))
    with pytest.raises(ValueError, match="read-only"):
        arms.vectors[0, 0] = 9.0


def test_a_list_of_whole_numbers_makes_arms():
    assert Arms([[1, 0], [0, 1]]).vectors.dtype == np.float64


@pytest.mark.parametrize("row", [[1, 0, 0], np.array([1.0, 0.0, 0.0])])
def test_a_one_dimensional_array_is_refused_as_arms(refusal, row):
    message = refusal(Arms, row)
    assert "must be a non-empty array of shape (K, d), got shape (3,): a single arm" in message


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_of_a_frame_with_text_the_column_is_named_and_nothing_is_printed(refusal, library):
    frame = pytest.importorskip(library).DataFrame
    table = frame({"dose": [1.0] * 50, "drug": ["statin"] * 50})
    message = refusal(Arms, table)
    assert message == "arms must be an array of numbers, got a column 'drug' of something else"
    assert len(Arms(frame({"dose": [1.0, 2.0], "pills": [0, 1]}))) == 2


def test_arms_know_their_rows():
    arms = Arms(FLAT)
    assert arms.contains(np.array([0.6, 0.8, 0.0]))
    assert not arms.contains(np.array([0.6, 0.8, 1e-12]))


def test_arms_pickle_and_stay_read_only():
    again = pickle.loads(pickle.dumps(Arms(FLAT)))
    assert np.array_equal(again.vectors, FLAT)
    assert np.array_equal(again.columns, FLAT.T)
    assert not again.vectors.flags.writeable


@pytest.mark.parametrize("empty", [[], [[]], np.zeros((0, 3)), np.zeros((3, 0))])
def test_an_empty_arm_set_is_refused(refusal, empty):
    message = refusal(Arms, empty)
    assert message.startswith("arms must be a non-empty array of shape (K, d), got shape (")


def test_arms_that_are_not_two_dimensional_are_refused(refusal):
    assert refusal(Arms, np.zeros((2, 2, 2))).endswith("got shape (2, 2, 2)")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_arms_that_are_not_finite_are_refused_by_row(refusal, value):
    vectors = FLAT.copy()
    vectors[2, 1] = value
    message = refusal(Arms, vectors)
    assert message.startswith("arms must be finite numbers, got ")
    assert message.endswith("in row 2")


@pytest.mark.parametrize(
    "rows",
    [None, "x", [["a", "b"]], [[1, 2], [3]], [[1j, 0]], [[None, 1]], [[10**400, 1]]],
    ids=["None", "text", "texts", "ragged", "complex", "hole", "huge"],
)
def test_arms_that_are_not_numbers_are_refused(refusal, rows):
    assert refusal(Arms, rows).startswith("arms must ")


# The ball


@pytest.mark.parametrize("dim", [0, -1, 1.5, True, None, "3"])
def test_a_ball_needs_a_dimension(refusal, dim):
    assert refusal(UnitBall, dim) == f"dim must be an integer >= 1, got {dim!r}"


def test_the_ball_holds_what_is_no_longer_than_one_up_to_rounding():
    ball = UnitBall(3)
    direction = np.array([2.0, -1.0, 2.0]) / 3.0
    assert ball.contains(direction * (1 + 5e-10))
    assert ball.contains(np.zeros(3))
    assert not ball.contains(direction * (1 + 1e-8))
    assert not ball.contains(np.zeros(2))


# Actions of a problem


def test_actions_that_fit_the_problem_are_handed_on():
    arms, ball = Arms(FLAT), UnitBall(3)
    assert checked_actions(PROBLEM, arms) is arms
    assert checked_actions(PROBLEM, ball) is ball


def test_arms_of_the_wrong_dimension_are_refused(refusal):
    assert refusal(checked_actions, PROBLEM, Arms(np.eye(2))) == (
        "actions must have dimension 3, got 2"
    )
    assert refusal(checked_actions, PROBLEM, UnitBall(4)) == "actions must have dimension 3, got 4"


def test_what_is_neither_arms_nor_ball_is_refused(refusal):
    assert refusal(checked_actions, PROBLEM, FLAT) == (
        "actions must be Arms, UnitBall, Box, Ellipsoid, Simplex, got ndarray"
    )


@pytest.mark.parametrize("bound", [1.0, 0.25, 40.0])
def test_an_arm_may_exceed_the_bound_by_rounding_and_no_more(refusal, bound):
    told = Problem(3, 2, 1, action_bound=bound)
    rows = turned(1, 3) * 0.5 * bound
    rows[1] *= 2 * (1 + 5e-10)
    assert checked_actions(told, Arms(rows)).longest > bound
    rows[1] *= 1 + 1e-8
    message = refusal(checked_actions, told, Arms(rows))
    assert message.startswith(f"actions must have length at most {bound:g}, got one of length ")


def test_a_ball_larger_than_the_bound_is_refused(refusal):
    told = Problem(3, 2, 1, action_bound=0.5)
    assert refusal(checked_actions, told, UnitBall(3)) == (
        "actions must have length at most 0.5, got one of length 1: scale the actions, or raise the "
        "problem's action_bound"
    )


# Directions that no arm reaches


def test_arms_that_span_leave_nothing_unreached():
    assert unreached(Arms(np.eye(4))).shape == (0, 4)
    assert unreached(Arms(turned(2, 6) * np.array([1, 1, 1, 1, 1, 1e-3])[:, None])).shape == (0, 6)


def test_a_missing_coordinate_is_named():
    assert name_directions(unreached(Arms(FLAT))) == "e_3"


def test_a_missing_combination_is_named_by_its_coordinates():
    arms = Arms([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    name = name_directions(unreached(arms))
    assert name in ("+0.71 e_1 -0.71 e_2", "-0.71 e_1 +0.71 e_2")


def test_several_missing_directions_are_named_one_after_the_other():
    names = name_directions(unreached(Arms([[1.0, 0.0, 0.0]])))
    assert sorted(names.split("; ")) == ["e_2", "e_3"]
    assert name_directions(np.zeros((0, 3))) == ""


@pytest.mark.parametrize("rank", [0, 1, 3, 5])
def test_unreached_is_the_orthonormal_complement_of_the_arms(rank):
    d = 5
    frame = turned(3, d)
    rows = np.random.default_rng(4).standard_normal((12, rank)) @ frame[:rank]
    missing = unreached(Arms(rows))
    assert missing.shape == (d - rank, d)
    assert missing @ missing.T == pytest.approx(np.eye(d - rank), abs=1e-12)
    assert missing @ rows.T == pytest.approx(np.zeros((d - rank, 12)), abs=1e-12)


def test_a_direction_counts_as_reached_whatever_the_unit_of_length():
    rows = turned(5, 4)
    for scale in (1e-6, 1.0, 1e6):
        assert len(unreached(Arms(scale * rows))) == 0
        assert len(unreached(Arms(scale * rows[:3]))) == 1


def test_distinct_arms_are_the_first_of_each_in_their_order():
    rows = np.array([[0.5, 0.0], [0.0, 0.5], [0.5, 0.0], [0.1, 0.2], [0.0, 0.5]])
    distinct = Arms(rows).distinct()
    assert distinct.vectors.tolist() == [[0.5, 0.0], [0.0, 0.5], [0.1, 0.2]]
    assert [distinct.row(arm) for arm in range(3)] == [0, 1, 3]
    masked = Arms(rows).only(np.array([False, True, True, True, True])).distinct()
    assert [masked.row(arm) for arm in range(3)] == [1, 2, 3]
    alone = Arms(rows[:2])
    assert alone.distinct() is alone


def test_arms_listed_twice_are_found_and_the_first_is_kept():
    rng = np.random.default_rng(0)
    few = rng.standard_normal((30, 4))
    few[0] = 0.0
    rows = few[rng.integers(30, size=400)]
    rows[7] = -0.0  # equal to zero, whatever its sign
    _, firsts = np.unique(rows, axis=0, return_index=True)
    assert np.array_equal(Arms(rows).distinct().vectors, rows[np.sort(firsts)])
    assert len(Arms(few).distinct()) == 30


def test_a_table_of_arms_is_kept_once():
    arms = Arms(np.eye(3))
    assert np.shares_memory(arms.vectors, arms.columns)
    assert not arms.vectors.flags.writeable
