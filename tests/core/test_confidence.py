"""Radii by hand and against each other, widths against the sets they measure, and coverage."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidestep.core.confidence import (
    LOGDET,
    PRINTED,
    RADII,
    Confidence,
    ellipsoids,
    radius,
    widest,
    width,
)
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.jit import kernel


def confidence(n=1, *, rho=0.1, noise=0.1, M=1.0, A=1.0, delta=1e-3, form=LOGDET):
    return Confidence(np.full(n, rho), np.full(n, noise), M, A, delta, form)


def measured(drawn, d, history, index=0):
    """Evidence after measurements (action, feedback) of one vector."""
    evidence = no_evidence(drawn.rho, d)
    for action, feedback in history:
        absorb(evidence, drawn.rho, np.array(action, dtype=float), index, float(feedback))
    return evidence


def random_history(seed, d, count, bound=1.0):
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((count, d))
    actions *= bound / np.maximum(np.linalg.norm(actions, axis=1, keepdims=True), 1e-9)
    return list(zip(actions, rng.standard_normal(count), strict=True))


# Radii


def test_printed_radius_by_hand():
    drawn = confidence(rho=0.25, noise=0.5, M=3.0, A=2.0, delta=0.1, form=PRINTED)
    evidence = measured(drawn, 2, [((1.0, 0.0), 1.0)] * 3)
    # R sqrt(d log((1 + t A^2 / rho) / delta)) + sqrt(rho) M with t = 3: (1 + 48) / 0.1
    assert radius(drawn, evidence, 0) == pytest.approx(0.5 * np.sqrt(2 * np.log(490.0)) + 1.5)


def test_log_det_radius_by_hand():
    drawn = confidence(rho=0.5, noise=0.2, M=2.0, delta=0.01)
    evidence = measured(drawn, 2, [((1.0, 0.0), 1.0)])
    # det V / rho^d = 3
    expected = 0.2 * np.sqrt(np.log(3.0) + 2 * np.log(100.0)) + np.sqrt(0.5) * 2.0
    assert radius(drawn, evidence, 0) == pytest.approx(expected, rel=1e-14)


def test_every_vector_has_its_own_noise_regulariser_and_count():
    drawn = Confidence(np.array([0.1, 0.4]), np.array([1.0, 0.5]), 1.0, 1.0, 0.1, PRINTED)
    evidence = measured(drawn, 3, [((1.0, 0.0, 0.0), 0.0)] * 2, index=1)
    first = np.sqrt(3 * np.log(1 / 0.1)) + np.sqrt(0.1)
    second = 0.5 * np.sqrt(3 * np.log((1 + 2 / 0.4) / 0.1)) + np.sqrt(0.4)
    assert radius(drawn, evidence, 0) == pytest.approx(first)
    assert radius(drawn, evidence, 1) == pytest.approx(second)


@pytest.mark.parametrize("form", [PRINTED, LOGDET])
def test_without_noise_the_radius_is_what_regularisation_leaves(form):
    drawn = confidence(rho=0.3, noise=0.0, M=2.0, form=form)
    evidence = measured(drawn, 3, random_history(1, 3, 40))
    assert radius(drawn, evidence, 0) == np.sqrt(0.3) * 2.0


def test_both_radii_go_by_their_names():
    assert RADII == {"printed": PRINTED, "logdet": LOGDET}


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10**6),
    d=st.integers(2, 6),
    count=st.integers(0, 60),
    bound=st.floats(0.01, 10.0),
    rho=st.floats(1e-3, 10.0),
    delta=st.floats(1e-6, 0.99),
    few=st.integers(1, 4),
)
def test_log_det_is_never_wider_than_print_in_two_dimensions_or_more(
    seed, d, count, bound, rho, delta, few
):
    drawn = confidence(rho=rho, noise=1.0, A=bound, delta=delta)
    arms = random_history(seed, d, few, bound)  # the same few over and over: V is lopsided
    evidence = no_evidence(drawn.rho, d)
    for t in range(count + 1):
        logdet = radius(drawn, evidence, 0)
        printed = radius(drawn._replace(form=PRINTED), evidence, 0)
        assert logdet <= printed * (1 + 1e-12)
        absorb(evidence, drawn.rho, np.array(arms[t % few][0]), 0, 0.0)


def test_in_one_dimension_print_is_narrower_than_its_theorem_allows():
    drawn = confidence(noise=1.0, delta=0.01)
    evidence = no_evidence(drawn.rho, 1)
    for _ in range(50):
        assert radius(drawn, evidence, 0) > radius(drawn._replace(form=PRINTED), evidence, 0)
        absorb(evidence, drawn.rho, np.array([1.0]), 0, 0.0)


# Widths


@pytest.mark.parametrize("form", [PRINTED, LOGDET])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_width_is_half_the_interval_over_the_ellipsoid(d, form):
    drawn = confidence(noise=0.3, form=form)
    evidence = measured(drawn, d, random_history(2, d, 5))
    rng = np.random.default_rng(3)
    set_radius, inverse, centre = (
        radius(drawn, evidence, 0),
        evidence.inverse[0],
        evidence.centre[0],
    )
    sphere = rng.standard_normal((100_000, d))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    boundary = centre + set_radius * sphere @ np.linalg.cholesky(inverse).T
    for action in rng.standard_normal((5, d)):
        half = width(drawn, evidence, 0, action)
        along = boundary @ action
        assert (along.max() - along.min()) / 2 <= half * (1 + 1e-12)
        # of 100 000 directions one lies within 0.03 of the best, for d <= 3: 0.03^2 / 2 is lost
        assert (along.max() - along.min()) / 2 >= half * (1 - 1e-3)
        assert along.max() <= centre @ action + half * (1 + 1e-12)


def test_the_width_is_reached_inside_the_set():
    drawn = confidence(noise=0.3)
    evidence = measured(drawn, 4, random_history(4, 4, 12))
    action = np.array([0.3, -0.5, 0.1, 0.7])
    set_radius, inverse = radius(drawn, evidence, 0), evidence.inverse[0]
    move = set_radius * inverse @ action / np.sqrt(action @ inverse @ action)
    precision = evidence.gram[0] + drawn.rho[0] * np.eye(4)
    assert np.sqrt(move @ precision @ move) == pytest.approx(set_radius, rel=1e-12)
    assert move @ action == pytest.approx(width(drawn, evidence, 0, action), rel=1e-12)


def test_nothing_is_unknown_along_the_zero_action():
    drawn = confidence()
    assert width(drawn, measured(drawn, 3, random_history(5, 3, 4)), 0, np.zeros(3)) == 0.0


def test_ellipsoids_are_the_sets_of_the_rows_asked_for():
    drawn = confidence(4, noise=0.3)
    evidence = no_evidence(drawn.rho, 3)
    for index in range(4):
        for action, feedback in random_history(index, 3, 3 * index):
            absorb(evidence, drawn.rho, action.copy(), index, feedback)
    rows = np.array([0, 2, 3])
    sets = ellipsoids(drawn, evidence, rows)
    assert np.array_equal(sets.centre, evidence.centre[rows])
    assert np.array_equal(sets.inverse, evidence.inverse[rows])
    assert sets.radius.tolist() == [radius(drawn, evidence, row) for row in rows]
    sets.centre[:] = 7.0
    assert not (evidence.centre == 7.0).any()


# The vector with the largest width


def test_widest_is_the_row_with_the_largest_width():
    rng = np.random.default_rng(6)
    drawn = Confidence(np.full(5, 0.1), rng.uniform(0.1, 1.0, 5), 1.0, 1.0, 0.01, LOGDET)
    evidence = no_evidence(drawn.rho, 3)
    for _ in range(60):
        action, index = rng.standard_normal(3), int(rng.integers(5))
        absorb(evidence, drawn.rho, action, index, 0.0)
        chosen = (rng.random(5) < 0.7).astype(np.int64)
        rows = np.flatnonzero(chosen)
        if len(rows):
            widths = [width(drawn, evidence, row, action) for row in rows]
            assert widest(drawn, evidence, chosen, 0, action) == rows[int(np.argmax(widths))]


def test_of_vectors_known_alike_the_lowest_is_the_widest():
    drawn = confidence(4)
    evidence = no_evidence(drawn.rho, 3)
    action = np.array([0.2, 0.5, -0.4])
    assert widest(drawn, evidence, np.ones(4, np.int64), 0, action) == 0
    assert widest(drawn, evidence, np.array([0, 0, 1, 1]), 0, action) == 2
    assert widest(drawn, evidence, np.ones(4, np.int64), 1, action) == 1
    absorb(evidence, drawn.rho, action, 0, 1.0)
    assert widest(drawn, evidence, np.ones(4, np.int64), 0, action) == 1
    assert widest(drawn, evidence, np.ones(4, np.int64), 0, np.zeros(3)) == 0


def test_a_tie_up_to_rounding_is_a_tie():
    drawn = confidence(2)
    evidence = no_evidence(drawn.rho, 2)
    action = np.array([0.6, 0.8])
    evidence.inverse[1] *= 1 + 1e-14
    assert width(drawn, evidence, 1, action) > width(drawn, evidence, 0, action)
    assert widest(drawn, evidence, np.ones(2, np.int64), 0, action) == 0
    evidence.inverse[1] *= 1 + 1e-8
    assert widest(drawn, evidence, np.ones(2, np.int64), 0, action) == 1


# Coverage


@kernel
def escapes(drawn, theta, noise, share):
    """Whether theta leaves that share of its set at any time, when the widest of d + 1 arms is played."""
    d = theta.size
    evidence = no_evidence(drawn.rho, d)
    action, best = np.empty(d), np.empty(d)
    for t in range(noise.size):
        largest, mean = -1.0, 0.0
        for arm in range(d + 1):
            for j in range(d):
                action[j] = 1.0 if j == arm else 0.0
                if arm == d:
                    action[j] = (
                        1.0 / np.sqrt(d) if evidence.centre[0, j] >= 0 else -1.0 / np.sqrt(d)
                    )
            here = width(drawn, evidence, 0, action)
            if here > largest:
                largest = here
                best[:] = action
        for j in range(d):
            mean += best[j] * theta[j]
        absorb(evidence, drawn.rho, best, 0, mean + noise[t])
        distance = 0.0
        for j in range(d):
            for k in range(d):
                entry = evidence.gram[0, j, k] + (drawn.rho[0] if j == k else 0.0)
                left, right = theta[j] - evidence.centre[0, j], theta[k] - evidence.centre[0, k]
                distance += entry * left * right
        if np.sqrt(distance) > share * radius(drawn, evidence, 0):
            return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("form", [PRINTED, LOGDET])
def test_the_truth_stays_in_its_set_at_all_times(oracle, form):
    rng = np.random.default_rng(7)
    runs, delta = 400, 0.2
    drawn = confidence(noise=1.0, delta=delta, form=form)
    left = 0
    for _ in range(runs):
        theta = rng.standard_normal(3)
        theta /= np.linalg.norm(theta)
        left += escapes(drawn, theta, rng.standard_normal(200), 1.0)
    assert oracle.at_most(left, runs, delta)


def test_a_set_of_a_third_of_the_radius_would_lose_the_truth(oracle):
    rng = np.random.default_rng(8)
    runs, delta = 200, 0.2
    drawn = confidence(noise=1.0, delta=delta)
    left = sum(escapes(drawn, np.zeros(3), rng.standard_normal(200), 1 / 3) for _ in range(runs))
    assert not oracle.at_most(left, runs, delta)
