"""The optimistic action on the ball: against brute force, against its dual, and at the edges."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import brentq, nnls

from sidestep.core import optimism_ball as ball
from sidestep.core import optimism_ball_bound as dual
from sidestep.core.jit import kernel
from sidestep.core.numba_backend import compiled

RHO, DELTA = 0.1, 1e-3
NOISES = (0.001, 0.1, 1.0)


class State(NamedTuple):
    """Confidence sets of the target (row 0) and the protected vectors."""

    centre: np.ndarray  # (s+1, d)
    inverse: np.ndarray  # (s+1, d, d)
    radius: np.ndarray  # (s+1,)

    @property
    def spread(self):
        return self.radius[:, None, None] ** 2 * self.inverse

    def widths(self, actions):
        forms = [np.sum((actions @ inverse) * actions, axis=-1) for inverse in self.inverse]
        return self.radius * np.sqrt(np.stack(forms, axis=-1))

    def values(self, actions):
        return actions @ self.centre[0] + self.widths(actions)[..., 0]

    def violation(self, actions):
        excess = np.abs(actions @ self.centre[1:].T) - self.widths(actions)[..., 1:]
        return np.max(excess, axis=-1, initial=-np.inf)

    def without(self, index):
        return State(*(np.delete(part, index, axis=0) for part in self))


def sets(gram, moment, noise):
    """The confidence sets of ridge statistics, with the determinant radius."""
    V = RHO * np.eye(gram.shape[-1]) + gram
    inverse = np.linalg.inv(V)
    inverse = (inverse + inverse.transpose(0, 2, 1)) / 2
    log_det = np.linalg.slogdet(V)[1] - V.shape[-1] * np.log(RHO)
    radius = noise * np.sqrt(log_det + 2 * np.log(1 / DELTA)) + np.sqrt(RHO)
    return State(np.einsum("ijk,ik->ij", inverse, moment), inverse, radius)


def unit_rows(rng, count, d):
    rows = rng.normal(size=(count, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def sampled(rng, d, s, noise):
    """Sets after samples with unequal directions, and a different number for every vector."""
    theta = unit_rows(rng, s + 1, d)
    gram, moment = np.zeros((s + 1, d, d)), np.zeros((s + 1, d))
    for i in range(s + 1):
        count = int(np.exp(rng.uniform(0, np.log(40 * d * (1 + 9 * noise)))))
        actions = unit_rows(rng, count, d) * np.exp(rng.normal(size=d))
        actions /= np.linalg.norm(actions, axis=1, keepdims=True)
        feedback = actions @ theta[i] + noise * rng.normal(size=count)
        gram[i], moment[i] = actions.T @ actions, actions.T @ feedback
    return sets(gram, moment, noise)


def late(rng, d, s, noise, rounds, every):
    """Sets that the optimistic policy itself reaches, after many measurements of every vector."""
    theta = unit_rows(rng, s + 1, d)
    gram, moment = np.zeros((s + 1, d, d)), np.zeros((s + 1, d))
    for t in range(rounds):
        state = sets(gram, moment, noise)
        if t >= rounds // 2 and t % every == 0:
            yield state
        action = ball.optimistic_action(*state, 1e-2)[0] if t else unit_rows(rng, 1, d)[0]
        i = int(np.argmax(state.widths(action)))
        gram[i] += np.outer(action, action)
        moment[i] += action * (action @ theta[i] + noise * rng.normal())


@kernel
def best_random_ascent(centre, spread, points):
    best = 0.0
    for k in range(points.shape[0]):
        start = ball.feasible_point(centre, spread, points[k])
        best = max(best, ball.ascend(centre, spread, start, 1e-9)[1])
    return best


def assert_sound(state, action, value, bound):
    assert abs(np.linalg.norm(action) - 1) <= 1e-12
    assert state.violation(action) <= 1e-9
    assert value == pytest.approx(state.values(action), rel=1e-9, abs=1e-15)
    assert value >= state.values(-action) - 1e-12
    assert value <= bound < np.inf


def sphere(d):
    """A grid of the unit circle or sphere; (n, d)."""
    if d == 2:
        angle = np.linspace(0, 2 * np.pi, 20_001)
        return np.column_stack([np.cos(angle), np.sin(angle)])
    height, angle = np.meshgrid(np.linspace(-1, 1, 201), np.linspace(0, 2 * np.pi, 401))
    flat = np.sqrt(1 - height**2)
    return np.stack([flat * np.cos(angle), flat * np.sin(angle), height], axis=-1).reshape(-1, 3)


@pytest.mark.full
@pytest.mark.parametrize("noise", NOISES)
def test_every_climb_is_feasible_and_none_loses(noise):
    rng = np.random.default_rng(1)
    gained = 0
    for d, s in [(2, 1), (3, 2), (6, 2), (10, 4)] * 5:
        state = sampled(rng, d, s, noise)
        spread = state.spread
        action = ball.feasible_point(state.centre, spread, rng.normal(size=d))
        first, weights = state.values(action), np.zeros(2 * s + 1)
        for _ in range(25):
            step, value = ball.climb(state.centre, spread, action, weights)
            assert value >= state.values(action) - 1e-12
            assert state.violation(step) <= 1e-9
            action = step
        end, value = ball.ascend(state.centre, spread, action, 1e-9)
        assert value >= state.values(action) - 1e-12
        assert state.violation(end) <= 1e-9
        gained += state.values(end) > first + 1e-3
    assert gained >= 10  # some steps must really gain something


def test_the_cone_projection_solves_the_nonnegative_least_squares_problem():
    rng = np.random.default_rng(2)
    for s, d in [(1, 3), (2, 3), (3, 6), (5, 6), (8, 10)] * 10:
        rows = rng.normal(size=(2 * s + 1, d))
        rows[2::2] = 0.3 * rows[2::2] - rows[1::2]  # in pairs that nearly oppose each other
        weights, residual = nnls(rows[1:].T, -rows[0])
        nearest = rows[0] + weights @ rows[1:]
        if residual < 1e-6:
            continue
        warm = np.abs(rng.normal(size=2 * s + 1)) * (rng.random(2 * s + 1) < 0.5)
        warm[0] = 0
        for start in (np.zeros(2 * s + 1), warm):
            direction = ball.cone_projection(rows, start)
            assert direction == pytest.approx(nearest / residual, abs=1e-8)
            assert start[1:] == pytest.approx(weights, abs=1e-7)


@pytest.mark.parametrize("noise", NOISES)
def test_feasible_point_maps_every_direction_into_the_feasible_set(noise):
    rng = np.random.default_rng(3)
    moved = 0
    for d, s in [(2, 1), (3, 2), (6, 4), (10, 4)] * 10:
        state = sampled(rng, d, s, noise)
        point = unit_rows(rng, 1, d)[0]
        action = ball.feasible_point(state.centre, state.spread, point)
        assert abs(np.linalg.norm(action) - 1) <= 1e-12
        assert state.violation(action) <= 1e-12
        assert state.values(action) >= state.values(-action)
        if state.violation(point) <= 0:
            assert abs(action @ point) == pytest.approx(1, abs=1e-12)
        moved += state.violation(point) > 1e-3
    assert moved >= 3


def trust_region(centre, spread):
    """The length of the longest vector of an ellipsoid, from the secular equation by brentq."""
    values, vectors = np.linalg.eigh(spread)
    along, top = vectors.T @ centre, values[-1]
    below = values < top * (1 - 1e-9)

    def excess(m):
        return np.sum(values[below] * along[below] ** 2 / (m - values[below]) ** 2) - 1

    if np.linalg.norm(along[~below]) < 1e-12 and excess(top) < 0:  # the hard case
        return np.sqrt(
            np.sum((along[below] * top / (top - values[below])) ** 2) - top * excess(top)
        )
    below[:] = True
    high = top + 2 * np.sqrt(top) * np.linalg.norm(centre)
    m = brentq(excess, top * (1 + 1e-13), high, xtol=1e-15)
    return np.linalg.norm(along * m / (m - values))


@pytest.mark.parametrize("noise", NOISES)
def test_without_constraints_it_is_the_longest_vector_of_the_set(noise):
    rng = np.random.default_rng(4)
    for d in (1, 2, 3, 6, 20):
        state = sampled(rng, d, 0, noise)
        action, value, bound = ball.optimistic_action(*state, 1e-4)
        assert_sound(state, action, value, bound)
        assert value == pytest.approx(trust_region(state.centre[0], state.spread[0]), rel=1e-10)
        assert bound == pytest.approx(value, rel=1e-12)


def test_the_hard_case_of_the_trust_region_is_solved():
    inverse = np.diag([1.0, 1.0, 4.0])[None]  # the centre has no part along the widest axis
    state = State(np.array([[0.3, -0.2, 0.0]]), inverse, np.array([1.0]))
    action, value, bound = ball.optimistic_action(*state, 1e-4)
    assert_sound(state, action, value, bound)
    assert value >= state.values(sphere(3)).max()
    assert value == pytest.approx(np.sqrt(4 + 0.13 * 4 / 3), rel=1e-12)
    assert bound == pytest.approx(value, rel=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("d", "s"), [(2, 1), (3, 1), (3, 2)])
def test_no_point_of_a_fine_grid_is_better(d, s, noise):
    rng = np.random.default_rng(5)
    grid, coarse = sphere(d), {2: 1e-3, 3: 5e-2}[d]
    for _ in range(5):
        state = sampled(rng, d, s, noise)
        action, value, bound = ball.optimistic_action(*state, 1e-4)
        assert_sound(state, action, value, bound)
        values, violation = state.values(grid), state.violation(grid)
        assert values[violation <= 0].max(initial=0.0) <= value + 1e-9
        near = values[violation <= coarse].max()
        assert near >= value * (1 - coarse)  # the grid is fine enough to have found it


@pytest.mark.full
@pytest.mark.parametrize("noise", NOISES)
def test_the_joint_search_over_action_and_vectors_finds_the_same_optimum(noise):
    rng = np.random.default_rng(6)
    actions, turns = sphere(2)[::50], sphere(2)[::40]
    for _ in range(4):
        state = sampled(rng, 2, 1, noise)
        root = np.linalg.cholesky(state.spread)
        targets = state.centre[0] + turns @ root[0].T
        shells = np.linspace(0, 1, 12)[:, None, None] * (turns @ root[1].T)
        protected = (state.centre[1] + shells).reshape(-1, 2)
        normal = protected[:, ::-1] * [1, -1]  # spans what is orthogonal to theta_1
        normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-300)
        moved, gained = normal @ actions.T, normal @ targets.T
        joint = np.maximum(
            moved.max(axis=1) * gained.max(axis=1), moved.min(axis=1) * gained.min(axis=1)
        ).max()
        value = ball.optimistic_action(*state, 1e-4)[1]
        if ball.reduced(*state)[0].shape[0] == 1:  # theta_1 = 0 is allowed: nothing is projected
            joint = max(joint, (actions @ targets.T).max())
        assert value * (1 - 2e-3) <= joint <= value * (1 + 1e-9)


@pytest.mark.slow
def test_the_bound_is_above_every_value_and_mostly_tight():
    rng = np.random.default_rng(7)
    gaps = []
    for k in range(100):
        d = int(rng.integers(2, 11))
        s = int(rng.integers(1, min(d, 5)))
        state = sampled(rng, d, s, NOISES[k % 3])
        action, value, bound = ball.optimistic_action(*state, 1e-4)
        assert_sound(state, action, value, bound)
        climbs = compiled(best_random_ascent)(state.centre, state.spread, rng.normal(size=(10, d)))
        assert climbs <= bound * (1 + 1e-9)
        gaps.append((bound - value) / value)
    assert np.median(gaps) < 1e-6
    assert np.quantile(gaps, 0.9) < 1e-2
    assert max(gaps) < 0.2


def test_the_dual_is_tight_without_constraints():
    rng = np.random.default_rng(8)
    for noise in NOISES:
        centre, spread, _ = ball.reduced(*sampled(rng, 6, 0, noise))
        assert dual.dual_bound(centre, spread)[0] == pytest.approx(
            ball.longest(centre[0], spread[0])[1], rel=1e-6
        )


def test_the_slopes_of_the_dual_match_finite_differences():
    rng = np.random.default_rng(9)
    centre, spread, _ = ball.reduced(*sampled(rng, 5, 3, 0.001))
    pieces = dual.dual_pieces(centre, spread)
    count, weight, nudge = len(pieces), 0.05, 1e-5
    point = np.r_[1.3, 5.0, rng.uniform(0.5, 1.5, size=count - 2)]

    def slope(x):
        white = dual.dual_value(pieces, centre[0], x)[2]
        return dual.dual_slopes(pieces, centre[0], x, white, weight)

    def penalised(x):
        value, barrier, _ = dual.dual_value(pieces, centre[0], x)
        return value + weight * barrier

    for j, step in enumerate(nudge * np.eye(count)):
        rise = (penalised(point + step) - penalised(point - step)) / (2 * nudge)
        bend = (slope(point + step)[0] - slope(point - step)[0]) / (2 * nudge)
        assert slope(point)[0][j] == pytest.approx(rise, rel=1e-6, abs=1e-9)
        assert slope(point)[1][j, : j + 1] == pytest.approx(bend[: j + 1], rel=1e-6, abs=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("noise", NOISES)
def test_the_ellipsoid_points_at_the_action_attain_its_value(noise):
    rng = np.random.default_rng(10)
    for d, s in [(2, 1), (3, 2), (6, 2), (10, 4)] * 3:
        state = sampled(rng, d, s, noise)
        a, value, _ = ball.optimistic_action(*state, 1e-4)
        pulled = np.einsum("ijk,k->ij", state.spread, a) / state.widths(a)[:, None]
        share = -np.clip(state.centre @ a / state.widths(a), -1, 1)
        share[0] = 1.0
        theta = state.centre + share[:, None] * pulled
        off = np.linalg.solve(state.inverse, (theta - state.centre)[..., None])[..., 0]
        assert np.all(
            np.sqrt(np.sum(off * (theta - state.centre), axis=1)) <= state.radius * (1 + 1e-9)
        )
        assert np.abs(theta[1:] @ a).max() <= 1e-9
        coefficients = np.linalg.lstsq(theta[1:].T, theta[0], rcond=1e-9)[0]
        assert a @ (theta[0] - coefficients @ theta[1:]) == pytest.approx(value, abs=1e-7)


@pytest.mark.slow
def test_two_hundred_random_climbs_do_not_find_better_in_late_states():
    rng = np.random.default_rng(11)
    short, loose = [], 0
    for d, s, noise in [
        (3, 2, 0.1),
        (6, 2, 0.001),
        (6, 2, 0.1),
        (6, 4, 0.1),
        (6, 5, 0.03),
        (8, 3, 0.3),
    ]:
        for state in late(rng, d, s, noise, rounds=200, every=10):
            action, value, bound = ball.optimistic_action(*state, 1e-4)
            assert_sound(state, action, value, bound)
            rival = compiled(best_random_ascent)(
                state.centre, state.spread, rng.normal(size=(200, d))
            )
            short.append(1 - value / rival)
            loose += bound > value * (1 + 1e-4)
    assert len(short) >= 50
    assert loose >= 10  # some cases are hard: the certificate alone does not prove the optimum
    assert max(short) <= 1e-3
    assert np.mean(np.array(short) > 1e-6) <= 0.1


@pytest.mark.parametrize(("d", "s"), [(1, 0), (2, 0), (2, 1), (6, 2)])
def test_the_first_round_has_a_unit_action_of_constant_value(d, s):
    state = sets(np.zeros((s + 1, d, d)), np.zeros((s + 1, d)), 0.1)
    action, value, bound = ball.optimistic_action(*state, 1e-2)
    assert_sound(state, action, value, bound)
    assert value == pytest.approx(state.radius[0] / np.sqrt(RHO), rel=1e-12)
    assert bound == pytest.approx(value, rel=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("radius", [1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize(("d", "s"), [(2, 1), (3, 2), (6, 2), (6, 5), (10, 4)])
def test_vanishing_sets_leave_the_projection_of_the_target(d, s, radius):
    state = sampled(np.random.default_rng(12), d, s, 0.1)._replace(radius=np.full(s + 1, radius))
    action, value, bound = ball.optimistic_action(*state, 1e-4)
    assert_sound(state, action, value, bound)
    basis = np.linalg.qr(state.centre[1:].T)[0]
    rest = state.centre[0] - basis @ (basis.T @ state.centre[0])
    assert value == pytest.approx(np.linalg.norm(rest), abs=1000 * radius + 1e-11)
    assert bound <= value + 1e-4


@pytest.mark.full
@pytest.mark.parametrize("s", [1, 3])
@pytest.mark.parametrize("radius", [1e-12, 0.01, 1.0])
@pytest.mark.parametrize(
    "centre", [lambda s, d: np.ones((s + 1, d)), lambda s, d: np.eye(d)[np.zeros(s + 1, int)]]
)
def test_a_target_equal_to_every_protected_vector_is_no_trouble(centre, radius, s):
    d = s + 1
    inverse = np.tile(np.eye(d) / RHO, (s + 1, 1, 1))
    state = State(centre(s, d), inverse, np.full(s + 1, radius))
    assert_sound(state, *ball.optimistic_action(*state, 1e-4))


def test_a_duplicate_or_a_vacuous_constraint_changes_nothing():
    rng = np.random.default_rng(13)
    for noise in NOISES:
        state = sampled(rng, 6, 2, noise)
        twice = State(*(np.concatenate([part, part[1:]]) for part in state))
        vacuous = twice._replace(centre=twice.centre * [[1], [1], [1], [0], [0]])
        alone = ball.optimistic_action(*state, 1e-4)
        for other in (twice, vacuous):
            answer = ball.optimistic_action(*other, 1e-4)
            assert_sound(other, *answer)
            assert answer[1] == pytest.approx(alone[1], rel=1e-6)
            assert answer[2] == pytest.approx(alone[2], rel=1e-6)


@pytest.mark.full
def test_a_constraint_only_costs_and_its_scale_does_not_matter():
    rng = np.random.default_rng(14)
    cost = []
    for noise in NOISES * 5:
        state = sampled(rng, 5, 2, noise)
        value = ball.optimistic_action(*state, 1e-4)[1]
        free = ball.optimistic_action(*state.without(1), 1e-4)
        assert value <= free[2] * (1 + 1e-12)
        cost.append(free[1] - value)
        scale = np.array([3.0, 0.01, 70.0])
        scaled = State(state.centre * scale[:, None], state.inverse, state.radius * scale)
        assert ball.optimistic_action(*scaled, 1e-4)[1] == pytest.approx(3 * value, rel=1e-8)
    assert max(cost) > 0.01


def test_the_same_state_gives_the_same_bits_however_it_is_stored():
    rng = np.random.default_rng(15)
    for noise in NOISES:
        state = sampled(rng, 6, 3, noise)
        first = ball.optimistic_action(*state, 1e-4)
        frozen = State(*(part.copy() for part in state))
        for part in frozen:
            part.setflags(write=False)
        ordered = State(*(np.asfortranarray(part) for part in state))
        for other in (state, frozen, ordered):
            again = ball.optimistic_action(*other, 1e-4)
            assert again[0].tobytes() == first[0].tobytes()
            assert again[1:] == first[1:]
