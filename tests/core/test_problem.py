"""The problem and the checks of its arguments: sizes, noise, bounds, queries, feedback."""

import dataclasses
import pickle

import numpy as np
import pytest

from sidestep.core.problem import Problem, Query, checked_feedback, checked_query
from sidestep.core.validation import check_integer, check_positive, check_probability
from sidestep.policies.base import Decision
from sidestep.policies.uniform import Uniform

HUGE = 10**400  # an integer that no float can hold
NOT_WHOLE = (1.0, True, np.True_, "2", None, 2.5, float("nan"), np.array(2))
NOT_A_NUMBER = ("0.1", None, True, np.True_, 1j, [0.1], np.array([0.1]), float("nan"))
NOT_FINITE = (float("inf"), float("-inf"), HUGE, -HUGE, np.longdouble("1e4000"))


def problem(**changed):
    return Problem(**{"dim": 3, "n_protected": 2, "subspace_dim": 1, **changed})


def named(values):
    return [pytest.param(value, id=f"{type(value).__name__}-{k}") for k, value in enumerate(values)]


# What makes a problem


def test_a_problem_says_its_sizes_and_the_noise_of_every_vector():
    one = problem(noise_scale=0.5)
    assert (one.dim, one.n_protected, one.n_vectors, one.subspace_dim) == (3, 2, 3, 1)
    assert one.noise.tolist() == [0.5, 0.5, 0.5]
    each = problem(noise_scale=[0.1, 0.0, 0.3], costs=np.array([1.0, 2.0, 3.0]))
    assert each.noise.tolist() == [0.1, 0.0, 0.3]
    assert each.costs == (1.0, 2.0, 3.0)


def test_without_protected_vectors_the_rank_is_zero_and_need_not_be_said():
    assert Problem(3, 0).subspace_dim == 0
    assert Problem(3, 0, 0).subspace_dim == 0


def test_of_the_protected_subspace_nothing_need_be_known():
    assert problem(subspace_dim=None).subspace_dim is None
    assert problem(subspace_dim=None, eigenvalue=0.2, resolution=0.1).eigenvalue == 0.2


def test_a_problem_is_frozen_hashable_equal_by_value_and_pickles():
    one = problem(noise_scale=[0.1, 0.2, 0.3])
    assert one == problem(noise_scale=(0.1, 0.2, 0.3))
    assert hash(one) == hash(problem(noise_scale=(0.1, 0.2, 0.3)))
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.dim = 4


def test_what_is_handed_in_is_copied():
    noise = np.array([0.1, 0.2, 0.3])
    one = problem(noise_scale=noise)
    noise[:] = 9.0
    one.noise[:] = 9.0
    assert one.noise.tolist() == [0.1, 0.2, 0.3]


def test_integers_of_numpy_are_integers():
    assert Problem(np.int64(3), np.int32(2), np.int64(2)) == Problem(3, 2, 2)


# Bad sizes


@pytest.mark.parametrize("value", named((*NOT_WHOLE, 0, -1)))
def test_dim_is_a_positive_integer(refusal, value):
    assert "dim must be an integer >= 1" in refusal(Problem, value, 2, 1)


@pytest.mark.parametrize("value", named((*NOT_WHOLE, -1)))
def test_n_protected_is_an_integer_from_zero(refusal, value):
    assert "n_protected must be an integer >= 0" in refusal(Problem, 3, value, 1)


@pytest.mark.parametrize("value", named((*[x for x in NOT_WHOLE if x is not None], 0, -1, 3, HUGE)))
def test_subspace_dim_is_an_integer_up_to_the_number_of_protected_vectors(refusal, value):
    assert "subspace_dim must lie in 1..2" in refusal(Problem, 3, 2, value)


def test_subspace_dim_exceeds_neither_the_protected_vectors_nor_the_dimension(refusal):
    assert refusal(Problem, 3, 2, 3) == "subspace_dim must lie in 1..2, got 3"
    assert refusal(Problem, 2, 5, 3) == "subspace_dim must lie in 1..2, got 3"
    assert refusal(Problem, 2, 0, 1) == "subspace_dim must lie in 0..0, got 1"
    assert Problem(2, 5, 2).subspace_dim == 2


# Bad numbers


@pytest.mark.parametrize("name", ["noise_scale", "costs"])
@pytest.mark.parametrize(
    "value",
    named(
        (
            *[x for x in NOT_A_NUMBER if x is not None],
            *NOT_FINITE,
            -0.1,
            [0.1, 0.2],  # one too few
            np.full(4, 0.1),  # one too many
            [[0.1, 0.2, 0.3]],
            ["a", "b", "c"],
            [0.1, True, 0.2],
            [0.1, 0.2, HUGE],
            [0.1, 0.2, float("nan")],
            [0.1, 0.2, -0.3],
            {},
        )
    ),
)
def test_noise_and_costs_are_one_number_or_one_per_vector(refusal, name, value):
    message = refusal(problem, **{name: value})
    assert message.startswith(f"{name} must be ")


def test_noise_may_be_zero_and_a_cost_may_not(refusal):
    assert problem(noise_scale=0.0).noise.tolist() == [0.0] * 3
    assert refusal(problem, costs=0.0) == "costs must be positive and finite, got 0.0"
    assert refusal(problem, costs=None).startswith("costs must be ")
    assert refusal(problem, costs=[0.1, None, 0.2]).startswith("costs must be ")


def test_noise_that_is_not_known_is_asked_for_where_it_is_needed(refusal):
    silent = problem(noise_scale=None)
    assert "noise_scale must be a number" in refusal(lambda: silent.noise)


SCALES = ["norm_bound", "action_bound", "eigenvalue", "resolution", "noise_scale", "costs"]


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize("value", [1e-200, 1e-51, 1e51, 1e160, 5e-324])
def test_a_scale_whose_squares_no_float_can_hold_is_refused_with_the_range(refusal, name, value):
    expected = f"{name} must lie between 1e-50 and 1e+50 (choose another unit), got {value}"
    assert refusal(problem, **{name: value}) == expected


@pytest.mark.parametrize("name", SCALES)
def test_a_scale_may_lie_anywhere_in_the_range(name):
    for value in (1e-50, 1e50):
        assert getattr(problem(**{name: value}), name) == value


@pytest.mark.parametrize("name", ["norm_bound", "action_bound", "eigenvalue", "resolution"])
@pytest.mark.parametrize("value", named((*NOT_A_NUMBER, *NOT_FINITE, 0, 0.0, -1.0)))
def test_bounds_are_positive_and_finite(refusal, name, value):
    if value is None and name in ("eigenvalue", "resolution"):
        assert getattr(problem(**{name: None}), name) is None
        return
    assert refusal(problem, **{name: value}).startswith(f"{name} must be positive and finite, got ")


def test_the_refusal_names_what_came(refusal):
    assert refusal(problem, noise_scale=-0.25) == (
        "noise_scale must be zero or positive and finite, got -0.25"
    )
    assert refusal(problem, noise_scale=[1.0, 2.0]) == (
        "noise_scale must be a number or 3 numbers, one per vector, got 2"
    )
    assert refusal(problem, norm_bound=float("nan")).endswith("got nan")


@pytest.mark.parametrize("value", named((*NOT_A_NUMBER, *NOT_FINITE, 0, -0.1)))
def test_rho_is_positive_and_finite(refusal, value):
    assert refusal(check_positive, "rho", value).startswith("rho must be positive and finite, got ")


@pytest.mark.parametrize("value", named((*NOT_A_NUMBER, *NOT_FINITE, 0, 1, 0.0, 1.0, -0.1, 1.1)))
def test_delta_lies_strictly_between_zero_and_one(refusal, value):
    assert "delta must lie strictly between 0 and 1, got " in refusal(
        check_probability, "delta", value
    )


def test_numbers_inside_their_range_are_accepted():
    check_positive("rho", 1e-300)
    check_positive("rho", np.float32(2.0))
    check_positive("rho", 3)
    check_probability("delta", 1e-300)
    check_probability("delta", 1 - 1e-16)
    check_integer("size", 0, low=0, high=0)


# Queries


def test_a_query_is_handed_on_as_floats_in_an_array_of_its_own():
    given = np.array([0, 1, 0])
    query = checked_query(problem(), Query(given, np.int64(2)))
    assert query.action.dtype == np.float64
    assert query.action.tolist() == [0.0, 1.0, 0.0]
    assert (query.index, type(query.index)) == (2, int)
    query.action[0] = 9.0
    assert given.tolist() == [0, 1, 0]


@pytest.mark.parametrize("bound", [1.0, 0.25, 40.0])
def test_an_action_may_exceed_its_bound_by_rounding_and_no_more(refusal, bound):
    told = problem(action_bound=bound)
    direction = np.array([2.0, -1.0, 2.0]) / 3.0
    kept = checked_query(told, Query(direction * bound * (1 + 5e-10), 0)).action
    assert np.linalg.norm(kept) > bound  # let in, and not clipped
    message = refusal(checked_query, told, Query(direction * bound * (1 + 1e-8), 0))
    assert message.startswith(f"action must have length at most {bound:g}, got ")
    assert f"{bound * (1 + 1e-8):.9g}" in message


@pytest.mark.parametrize(
    "action",
    named((np.zeros(2), np.zeros(4), np.zeros((1, 3)), np.zeros((3, 1)), np.float64(0), None, [])),
)
def test_an_action_of_the_wrong_shape_is_refused(refusal, action):
    message = refusal(checked_query, problem(), Query(action, 0))
    assert message == f"action must have shape (3,), got {np.shape(action)}"


@pytest.mark.parametrize(
    "action",
    named(
        (
            [np.nan, 0, 0],
            [0, np.inf, 0],
            [0, 0, -np.inf],
            [None, 0, 0],
            ["a", "b", "c"],
            "abc",
            [1, [2], 3],
            [1j, 0, 0],
            [HUGE, 0, 0],
            [1e200, 0, 0],  # finite, and its square is not
        )
    ),
)
def test_an_action_that_is_not_made_of_finite_numbers_is_refused(refusal, action):
    assert refusal(checked_query, problem(), Query(action, 0)).startswith("action must ")


@pytest.mark.parametrize("index", [True, False, np.True_])
def test_a_bool_is_refused_as_an_index(refusal, index):
    assert refusal(Query, [1, 0], index) == f"index must be an integer >= 0, got {index}"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (Decision(Query(np.zeros(3), 0), "play"), "got a Decision: hand over its .query"),
        ((np.zeros(3), 0), "got a tuple: write Query(action, index)"),
        (None, "got a NoneType: write Query(action, index)"),
    ],
    ids=["Decision", "tuple", "None"],
)
def test_an_object_that_is_not_a_query_is_refused_with_a_hint(refusal, query, words):
    policy = Uniform(problem())
    assert refusal(policy.tell, policy.init(), query, 0.1) == f"query must be a Query, {words}"


@pytest.mark.parametrize(
    "index",
    named((*(index for index in NOT_WHOLE if type(index) not in (bool, np.bool_)), -1, 3, HUGE)),
)
def test_an_index_outside_the_vectors_is_refused(refusal, index):
    message = refusal(checked_query, problem(), Query(np.zeros(3), index))
    assert message.startswith("index must lie in 0..2, got ")


# Feedback


@pytest.mark.parametrize(
    "value", [0, 1, -1.5, np.float32(0.5), np.int64(7), 2e6, -2e6, np.array(0.5), np.array(3)]
)
def test_finite_numbers_within_the_bound_are_feedback(value):
    number = checked_feedback(problem(), value)
    assert type(number) is float
    assert number == value


@pytest.mark.parametrize("value", named((*NOT_A_NUMBER, float("inf"), float("-inf"), "text", "")))
def test_feedback_that_is_not_a_finite_number_is_refused(refusal, value):
    assert refusal(checked_feedback, problem(), value).startswith(
        "feedback must be a finite number, got "
    )


@pytest.mark.parametrize(
    "value", [HUGE, -HUGE, 10**5000, np.longdouble("1e4000")], ids=["+", "-", "5000 digits", "wide"]
)
def test_feedback_that_no_float_can_hold_is_refused(refusal, value):
    assert refusal(checked_feedback, problem(), value).startswith("feedback must ")


@pytest.mark.parametrize("value", [2.0001e6, -2.0001e6, 1e8, 1e300])
def test_feedback_beyond_the_bound_is_refused_and_not_clipped(refusal, value):
    assert refusal(checked_feedback, problem(), value) == (
        f"feedback must lie within +-2e+06, got {value!r}"
    )


def test_the_bound_on_feedback_follows_lengths_and_the_largest_noise():
    told = problem(noise_scale=[0.0, 3.0, 1.0], norm_bound=2.0, action_bound=5.0)
    assert told.feedback_bound == 1e6 * (2.0 * 5.0 + 3.0)
    assert problem(noise_scale=None).feedback_bound == 1e6


# Tolerances, penalties, levels


def limits(**told):
    return problem(**told).limits


def test_a_tolerance_is_one_number_one_each_or_pairs_and_open_sides_are_infinite():
    assert problem().limits is None
    same = limits(tolerance=0.1, penalty=2)
    assert (same.low.tolist(), same.high.tolist()) == ([-0.1, -0.1], [0.1, 0.1])
    assert same.penalty.tolist() == [2.0, 2.0]
    each = limits(tolerance=[0.1, (None, 0.3)], penalty=[1, 2])
    assert (each.low.tolist(), each.high.tolist()) == ([-0.1, -np.inf], [0.1, 0.3])
    assert each.penalty.tolist() == [1.0, 2.0]
    free = limits(tolerance=[None, float("inf")])
    assert (free.low.tolist(), free.high.tolist()) == ([-np.inf] * 2, [np.inf] * 2)
    assert free.penalty.tolist() == [0.0, 0.0]


def test_unless_told_exceeding_a_tolerance_by_its_own_width_costs_the_largest_effect():
    usual = limits(tolerance=[0.1, (-0.4, 0.6)], norm_bound=2.0, action_bound=3.0)
    assert usual.penalty == pytest.approx([6.0 / 0.1, 6.0 / 0.4])
    assert limits(tolerance=[0.1, (None, 0.25)]).penalty == pytest.approx([10.0, 4.0])
    lopsided = limits(
        tolerance=[(-1000.0, 0.1), (0.0, 0.5)]
    )  # the narrower side, unless it is zero
    assert lopsided.penalty == pytest.approx([10.0, 4.0])


def test_a_problem_with_tolerances_is_hashable_and_reads_what_it_wrote():
    one = problem(tolerance=[0.1, (None, 0.3)], noise_scale=[0.1, None, 0.2])
    assert one == problem(tolerance=one.tolerance, noise_scale=one.noise_scale)
    assert hash(one) == hash(pickle.loads(pickle.dumps(one)))
    assert dataclasses.replace(one, penalty=3.0).limits.penalty.tolist() == [3.0, 3.0]
    assert Problem(3, 0, tolerance=0.1).limits.low.size == 0


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"tolerance": -0.1}, "tolerance must be zero or positive, or a pair"),
        ({"tolerance": "wide"}, "tolerance must be zero or positive, or a pair"),
        ({"tolerance": True}, "tolerance must be zero or positive, or a pair"),
        ({"tolerance": float("nan")}, "tolerance must be zero or positive, or a pair"),
        ({"tolerance": [0.1]}, "tolerance must be a number or 2 of them"),
        ({"tolerance": [0.1, (0.1, 0.2)]}, "tolerance must be zero or positive, or a pair"),
        ({"tolerance": [0.1, (-0.1, -0.2)]}, "tolerance must be zero or positive, or a pair"),
        ({"tolerance": [0.1, (1, 2, 3)]}, "tolerance must have pairs (low, high)"),
        ({"tolerance": 0.0}, "penalty must be given where a tolerance has no width"),
        ({"penalty": 1.0}, "penalty needs a tolerance"),
        ({"tolerance": 0.1, "penalty": -1.0}, "penalty must be zero or positive and finite"),
        ({"tolerance": 0.1, "penalty": float("inf")}, "penalty must be zero or positive and"),
        ({"tolerance": 0.1, "penalty": [1.0]}, "penalty must be a number or 2 numbers"),
        ({"intercept": 1}, "intercept must be True or False"),
    ],
)
def test_a_wrong_tolerance_penalty_or_intercept_is_refused(told, sentence, refusal):
    assert refusal(problem, **told).startswith(sentence)


def test_the_noise_of_some_vectors_may_be_learned():
    one = problem(noise_scale=[0.1, None, 0.3])
    assert np.isnan(one.known_noise).tolist() == [False, True, False]
    assert np.isnan(problem(noise_scale=None).known_noise).all()


def test_a_policy_that_needs_the_noise_says_so(refusal):
    one = problem(noise_scale=[0.1, None, 0.3])
    assert refusal(lambda: one.noise).startswith("noise_scale must be a number for this policy")
