"""The gradient against finite differences; the first-order value and its bound against an ascent."""

from typing import NamedTuple

import numpy as np
import pytest

from sidestep.core.actions import Arms
from sidestep.core.arm_forms import Menu
from sidestep.core.confidence import LOGDET, Confidence, ellipsoids
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.projection import (
    first_order_values,
    frame,
    gradient,
    gradient_matrices,
    pooled_frame,
)


def unit_rows(rng, count, d):
    rows = rng.standard_normal((count, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def low_rank(rng, L, s, d):
    """A target, and L protected vectors of rank s."""
    return np.vstack([unit_rows(rng, 1, d), rng.standard_normal((L, s)) @ unit_rows(rng, s, d)])


def reward(vectors, action, rank):
    """<a, theta_0> off the top `rank` directions of the protected vectors."""
    top = np.linalg.svd(vectors[1:])[2][:rank]
    return action @ vectors[0] - (top @ action) @ (top @ vectors[0])


# The frame


@pytest.mark.parametrize(("L", "s"), [(1, 1), (3, 3), (4, 2), (7, 3)])
def test_the_frame_splits_target_and_action_into_span_and_rest(L, s):
    rng = np.random.default_rng([1, L, s])
    vectors, action = low_rank(rng, L, s, 6), rng.standard_normal(6)
    view = frame(vectors.copy(), s)
    inverse = np.linalg.pinv(vectors[1:], rcond=1e-10)  # (d, L)
    assert view.basis @ view.basis.T == pytest.approx(np.eye(s), abs=1e-12)
    assert view.dual == pytest.approx(inverse.T, abs=1e-10)
    assert view.coefficients == pytest.approx(vectors[0] @ inverse, abs=1e-10)
    assert view.rest + view.coefficients @ vectors[1:] == pytest.approx(vectors[0], abs=1e-10)
    assert view.basis @ view.rest == pytest.approx(np.zeros(s), abs=1e-12)
    inside = action - gradient(view, action)[0]
    assert (view.dual @ action) @ vectors[1:] == pytest.approx(inside, abs=1e-10)
    spread = np.linalg.svd(vectors[1:], compute_uv=False)
    assert view.smallest == pytest.approx(spread[s - 1], rel=1e-10)


@pytest.mark.parametrize(("L", "rank"), [(0, 0), (3, 0)])
def test_without_protected_directions_the_rest_is_the_whole_target(L, rank):
    vectors = np.random.default_rng(2).standard_normal((L + 1, 4))
    view = frame(vectors, rank)
    assert view.basis.shape == (0, 4)
    assert np.array_equal(view.rest, vectors[0])
    action = np.array([0.1, 0.2, 0.3, 0.4])
    slopes = gradient(view, action)
    assert np.array_equal(slopes[0], action)
    assert not slopes[1:].any()


def test_a_frame_of_dependent_vectors_keeps_no_direction_that_is_rounding():
    rng = np.random.default_rng(3)
    one = rng.standard_normal(5)
    vectors = np.array([rng.standard_normal(5), one, 2 * one, -one])
    assert len(frame(vectors, 2).basis) == 1
    assert len(frame(np.zeros((3, 5)), 2).basis) == 0


# The gradient


@pytest.mark.parametrize(("L", "s"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 2), (6, 3)])
def test_the_gradient_is_that_of_finite_differences_at_rank_s(L, s):
    rng = np.random.default_rng([4, L, s])
    for _ in range(5):
        vectors = low_rank(rng, L, s, 6) if L else unit_rows(rng, 1, 6)
        action = unit_rows(rng, 1, 6)[0]
        slopes = gradient(frame(vectors.copy(), s), action)
        step = 1e-5
        for i, j in np.ndindex(L + 1, 6):
            ahead, behind = vectors.copy(), vectors.copy()
            ahead[i, j] += step
            behind[i, j] -= step
            if L:
                difference = reward(ahead, action, s) - reward(behind, action, s)
            else:
                difference = action @ (ahead[0] - behind[0])
            # central differences are off by step^2 times the third derivative
            assert slopes[i, j] == pytest.approx(
                difference / (2 * step), rel=1e-6, abs=1e-6 * np.abs(slopes).max()
            )


@pytest.mark.parametrize(("L", "rank"), [(0, 0), (3, 0), (1, 1), (4, 2), (7, 3), (7, 6)])
def test_the_gradient_of_every_action_at_once_is_that_of_one(L, rank):
    rng = np.random.default_rng([5, L, rank])
    vectors, action = low_rank(rng, L, max(rank, 1), 6), rng.standard_normal(6)
    view = frame(vectors.copy(), rank)
    matrices = gradient_matrices(view)
    assert matrices @ action == pytest.approx(gradient(view, action), abs=1e-9)


def test_with_rows_that_count_more_or_less_the_gradient_is_that_of_finite_differences():
    rng = np.random.default_rng(9)
    vectors, action = low_rank(rng, 4, 2, 6), unit_rows(rng, 1, 6)[0]
    weights, step = np.array([1.0, 1.0, 0.2, 0.6, 0.05]), 1e-5

    def value(moved):
        return action @ pooled_frame(moved, weights, 2).rest

    slopes = gradient(pooled_frame(vectors, weights, 2), action)
    for i, j in np.ndindex(5, 6):
        ahead, behind = vectors.copy(), vectors.copy()
        ahead[i, j] += step
        behind[i, j] -= step
        difference = (value(ahead) - value(behind)) / (2 * step)
        assert slopes[i, j] == pytest.approx(difference, rel=1e-6, abs=1e-6)
    plain = frame(vectors, 2)  # at rank s the span does not change with the weights
    np.testing.assert_allclose(pooled_frame(vectors, weights, 2).rest, plain.rest, atol=1e-12)
    assert not np.allclose(gradient(plain, action), slopes)


def test_at_the_optimum_of_the_ball_only_the_target_matters_along_the_action():
    rng = np.random.default_rng(5)
    vectors = low_rank(rng, 2, 2, 6)
    view = frame(vectors, 2)
    best = view.rest / np.linalg.norm(view.rest)
    assert view.dual @ best == pytest.approx(np.zeros(2), abs=1e-12)
    assert gradient(view, best)[0] == pytest.approx(best, abs=1e-12)


# Sets, and an ascent inside them as the oracle


class Sets(NamedTuple):
    centre: np.ndarray
    inverse: np.ndarray
    radius: np.ndarray

    def farthest(self, slopes):
        """Where every set reaches farthest along its slope."""
        moved = self.centre.copy()
        for i, slope in enumerate(slopes):
            along = self.inverse[i] @ slope
            length = np.sqrt(max(slope @ along, 0.0))
            if length > 0:
                moved[i] += self.radius[i] * along / length
        return moved

    def random_point(self, rng):
        """A point of the boundary of every set."""
        return self.farthest(rng.standard_normal(self.centre.shape))


def value_at(vectors, action):
    """<a, Proj_perp theta_0> by QR."""
    q = np.linalg.qr(vectors[1:].T)[0]
    left = action - q @ (q.T @ action)
    return (left - q @ (q.T @ left)) @ vectors[0]


def slopes_at(vectors, action):
    inverse = np.linalg.pinv(vectors[1:])
    left = action - inverse @ (vectors[1:] @ action)
    rest = vectors[0] - inverse @ (vectors[1:] @ vectors[0])
    x, y = vectors[0] @ inverse, action @ inverse
    return np.vstack([left, -(np.outer(x, left) + np.outer(y, rest))])


def climb(sets, action, start, steps):
    """Frank-Wolfe: feasible at every step, and never downwards."""
    here, best = start, value_at(start, action)
    for _ in range(steps):
        goal = sets.farthest(slopes_at(here, action))
        size = 1.0
        while size > 1e-4:
            there = (1 - size) * here + size * goal
            value = value_at(there, action)
            if value > best:
                break
            size /= 2
        else:
            break
        here, best = there, value
    return best


def optimum(sets, action, rng, steps=40, starts=3):
    """A value that points of the sets reach; close to the largest."""
    begin = [sets.centre, *(sets.random_point(rng) for _ in range(starts - 1))]
    return max(climb(sets, action, start, steps) for start in begin)


class World(NamedTuple):
    confidence: Confidence
    evidence: object
    rows: np.ndarray
    arms: np.ndarray

    @property
    def sets(self):
        return Sets(*ellipsoids(self.confidence, self.evidence, self.rows))

    def first_order(self, arms=None):
        arms = Arms(self.arms if arms is None else arms)
        menu = Menu(arms.columns, arms.squared)
        return first_order_values(self.confidence, self.evidence, menu, self.rows)


def world(s, noise, rounds, seed=0, d=5, count=8):
    rng = np.random.default_rng([seed, s, rounds])
    confidence = Confidence(np.full(s + 1, 0.1), np.full(s + 1, noise), 1.0, 1.0, 1e-3, LOGDET)
    evidence, theta = no_evidence(confidence.rho, d), unit_rows(rng, s + 1, d)
    for i in range(s + 1):
        for _ in range(rounds):
            action = rng.standard_normal(d) * np.exp(0.5 * rng.standard_normal(d))
            action /= np.linalg.norm(action)
            feedback = float(action @ theta[i]) + noise * rng.standard_normal()
            absorb(evidence, confidence.rho, action, i, feedback)
    arms = unit_rows(rng, count, d)
    arms[::2] *= rng.uniform(0.2, 1.0, (len(arms[::2]), 1))
    return World(confidence, evidence, np.arange(s + 1), arms)


def shrunk(game, share):
    """The same centres and shapes, without noise, and radii that are `share` of sqrt(rho).

    M is so large that no value is cut by it.
    """
    confidence = game.confidence._replace(
        rho=(share / 10) ** 2 * game.confidence.rho,
        noise=np.zeros_like(game.confidence.noise),
        norm_bound=10.0,
    )
    return game._replace(confidence=confidence)


def thales(sets, arms, longest=None):
    """min((<a, c_0> + r_0 |a|_W + |a| B_0) / 2, |a| B_0) with B_0 the longest vector of Theta_0."""
    if longest is None:
        longest = np.linalg.norm(sets.centre[0])
        longest += sets.radius[0] * np.sqrt(np.linalg.eigvalsh(sets.inverse[0])[-1])
    upper = arms @ sets.centre[0]
    upper += sets.radius[0] * np.sqrt(np.einsum("kj,jm,km->k", arms, sets.inverse[0], arms))
    across = np.linalg.norm(arms, axis=1) * longest
    return np.minimum((upper + across) / 2, across)


# The first-order value


@pytest.mark.parametrize("s", [0, 1, 2, 3])
def test_the_first_order_value_adds_what_every_set_allows_along_its_slope(s):
    game = world(s, 0.01, 100)
    sets, expected = game.sets, []
    view = frame(sets.centre.copy(), s)
    for action in game.arms:
        slopes = gradient(view, action.copy())
        at_centre = action @ view.rest
        gain = np.sqrt(np.einsum("ij,ijk,ik->i", slopes, sets.inverse, slopes)) @ sets.radius
        expected.append(at_centre + gain)
    for longest in (None, game.confidence.norm_bound):
        expected = np.minimum(expected, thales(sets, game.arms, longest))
    assert game.first_order()[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_without_protected_vectors_value_and_bound_are_the_upper_confidence_bound():
    game = world(0, 0.3, 20)
    game = game._replace(confidence=game.confidence._replace(norm_bound=10.0))  # which cuts nothing
    sets = game.sets
    width = np.sqrt(np.einsum("kj,jm,km->k", game.arms, sets.inverse[0], game.arms))
    exact = game.arms @ sets.centre[0] + sets.radius[0] * width
    values, bounds = game.first_order()
    assert values == pytest.approx(exact, rel=1e-12)
    assert bounds == pytest.approx(exact, rel=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("s", [1, 2, 3])
def test_the_first_order_value_tends_to_the_exact_one_as_the_sets_shrink(s):
    rng = np.random.default_rng(6)
    game = world(s, 0.01, 60)
    plain = np.array([value_at(game.sets.centre, action) for action in game.arms])
    shares = []
    for share in (1e-1, 1e-2, 1e-3):
        small = shrunk(game, share)
        values, bounds = small.first_order()
        exact = np.array([optimum(small.sets, action, rng) for action in game.arms])
        gain = values - plain
        assert (gain > 0).all()
        shares.append(np.abs(values - exact).max() / gain.max())
        assert (bounds >= values - 1e-12).all()
        # the remainder is of second order, so its share of the gain falls with the radius
        assert ((bounds - values) / gain).max() <= 200 * share
    assert shares[2] <= 0.01
    assert shares[2] <= shares[0] / 10


def dear_oracle(seed, d=4):
    """Eight short arms, and a long one, at least 0.35 worse, that alone shows much of the vectors."""
    rng = np.random.default_rng(seed)
    theta = unit_rows(rng, 3, d)
    span = np.linalg.qr(theta[1:].T)[0].T
    rest = theta[0] - span.T @ (span @ theta[0])
    long = span.T @ np.array([0.5, 0.6]) - 1.1 * rest / np.linalg.norm(rest)
    arms = np.vstack([0.05 * unit_rows(rng, 8, d), long / np.linalg.norm(long)])
    assert arms[-1] @ rest <= (arms @ rest).max() - 0.35
    return theta, arms


@pytest.mark.full
@pytest.mark.parametrize("noise", [0.1, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_no_value_exceeds_what_any_reward_can_be_where_an_oracle_is_dear(seed, noise):
    """Before the cap it was 9.4 for a unit arm, where M = 1 and no reward exceeds 0.05."""
    theta, arms = dear_oracle(seed)
    rng = np.random.default_rng([8, seed])
    confidence = Confidence(np.full(3, 0.1), np.full(3, noise), 1.0, 1.0, 1e-3, LOGDET)
    game = World(confidence, no_evidence(confidence.rho, 4), np.arange(3), arms)
    for t in range(60):
        values, _ = game.first_order()
        assert (values <= np.linalg.norm(arms, axis=1) * (1 + 1e-12)).all()
        assert (values <= thales(game.sets, arms, longest=1.0) + 1e-12).all()
        action, v = arms[np.argmax(values)].copy(), t % 3
        feedback = float(action @ theta[v]) + noise * rng.standard_normal()
        absorb(game.evidence, confidence.rho, action, v, feedback)


# The rigorous bound


def rigorous(sets, arms):
    """The first-order value plus its remainder, capped at the Thales bound: the bound in numpy."""
    C, W, r = sets.centre[1:], sets.inverse[1:], sets.radius[1:]
    inverse = np.linalg.pinv(C)
    axes = sets.radius * np.sqrt([np.linalg.eigvalsh(matrix)[-1] for matrix in sets.inverse])
    sigma = np.linalg.svd(C, compute_uv=False)[-1] - np.linalg.norm(axes[1:])
    cut = thales(sets, arms)
    if sigma <= 0:
        return cut
    x, t = sets.centre[0] @ inverse, sets.centre[0] - inverse @ (C @ sets.centre[0])
    total = []
    for action in arms:
        p, y = action - inverse @ (C @ action), action @ inverse
        slopes = slopes_at(sets.centre, action)
        first = p @ sets.centre[0]
        first += np.sqrt(np.einsum("ij,ijk,ik->i", slopes, sets.inverse, slopes)) @ sets.radius
        off = np.sqrt(np.sum(r**2 * np.einsum("j,ijk,k->i", p, W, p)))
        on = np.abs(y) @ axes[1:]
        moved, turned = np.hypot(on, off / sigma), off / sigma**2 + on / sigma
        rest = axes[0] * moved + np.abs(x) @ axes[1:] * moved
        rest += turned * (r @ np.sqrt(np.einsum("j,ijk,k->i", t, W, t)))
        total.append(first + rest)
    return np.minimum(total, cut)


@pytest.mark.full
@pytest.mark.parametrize("s", [1, 2, 3])
def test_the_bound_adds_the_remainder_of_second_order(s):
    for noise, rounds in [(0.001, 60), (0.001, 1000), (0.03, 300), (0.1, 60), (1.0, 5)]:
        game = world(s, noise, rounds)
        assert game.first_order()[1] == pytest.approx(rigorous(game.sets, game.arms), rel=1e-8)


@pytest.mark.full
@pytest.mark.parametrize("s", [1, 2, 3])
@pytest.mark.parametrize(
    ("noise", "rounds"), [(0.001, 60), (0.03, 300), (0.1, 60), (0.1, 1000), (1.0, 5)]
)
def test_no_point_of_the_sets_exceeds_the_bound(s, noise, rounds):
    rng = np.random.default_rng([7, s, rounds])
    game = world(s, noise, rounds)
    _, bounds = game.first_order()
    for action, bound in zip(game.arms, bounds, strict=True):
        points = [game.sets.random_point(rng) for _ in range(40)]
        assert max(value_at(point, action) for point in points) <= bound + 1e-9
        assert optimum(game.sets, action, rng, steps=25) <= bound + 1e-9


@pytest.mark.full
def test_these_worlds_put_both_parts_of_the_bound_to_the_test():
    inner = outer = 0
    for s in (1, 2, 3):
        for noise, rounds in [(0.001, 60), (0.03, 300), (0.1, 60), (0.1, 1000), (1.0, 5)]:
            game = world(s, noise, rounds)
            cut = thales(game.sets, game.arms)
            bounds = game.first_order()[1]
            inner += (bounds < cut * (1 - 1e-9)).sum()
            outer += (bounds >= cut * (1 - 1e-9)).sum()
    assert inner >= 20
    assert outer >= 20


@pytest.mark.full
def test_the_first_order_value_alone_would_be_no_bound():
    rng = np.random.default_rng(10)
    above = 0
    for seed in range(4):
        game = world(2, 0.1, 60, seed)
        values, _ = game.first_order()
        found = [optimum(game.sets, action, rng, steps=25) for action in game.arms]
        above += (np.array(found) > values + 1e-6).sum()
    assert above >= 1


def test_the_ascent_finds_the_optimum_where_it_is_known():
    rng = np.random.default_rng(8)
    game = world(1, 0.3, 10, d=2)
    sets = game.sets
    V = game.evidence.gram[1] + 0.1 * np.eye(2)
    angle = np.linspace(0, np.pi, 40_001)
    lines = np.column_stack([np.cos(angle), np.sin(angle)])
    c, r = sets.centre[1], sets.radius[1]
    spread = np.einsum("nj,jk,nk->n", lines, V, lines)
    lines = lines[(lines @ V @ c) ** 2 >= (c @ V @ c - r**2) * spread]
    longest = np.linalg.norm(sets.centre[0])
    longest += sets.radius[0] * np.sqrt(np.linalg.eigvalsh(sets.inverse[0])[-1])
    close = 0
    for action in game.arms:
        left = action - lines * (lines @ action)[:, None]
        width = np.sqrt(np.einsum("nj,jk,nk->n", left, sets.inverse[0], left))
        exact = (left @ sets.centre[0] + sets.radius[0] * width).max()
        found = optimum(sets, action, rng, steps=60, starts=4)
        assert found <= exact + np.pi / 40_000 * np.linalg.norm(action) * longest  # between lines
        close += found >= exact * (1 - 1e-2)
    assert close >= len(game.arms) - 1


# The Thales bound


@pytest.mark.parametrize("s", [1, 2, 3])
def test_before_the_span_is_settled_the_bound_is_that_of_thales(s):
    game = world(s, 0.1, 0)
    assert game.first_order()[1] == pytest.approx(thales(game.sets, game.arms), rel=1e-12)
    game = world(s, 1.0, 5)
    values, bounds = game.first_order()
    assert bounds == pytest.approx(thales(game.sets, game.arms), rel=1e-12)
    assert (values <= bounds).all()


def test_whatever_is_protected_no_reward_exceeds_the_thales_bound():
    rng = np.random.default_rng(9)
    game = world(2, 0.5, 12)
    bounds = thales(game.sets, game.arms)
    for _ in range(500):
        vectors = np.vstack([game.sets.random_point(rng)[:1], rng.standard_normal((2, 5))])
        values = np.array([value_at(vectors, action) for action in game.arms])
        assert (values <= bounds + 1e-12).all()


def test_the_thales_bound_is_reached():
    # Theta_0 is the point (1, 0) and the arm is at 60 degrees: the best projection of the arm is on
    # the circle over it, halfway between its direction and that of the target
    confidence = Confidence(np.ones(2), np.zeros(2), 1e-12, 1.0, 0.1, LOGDET)
    evidence = no_evidence(confidence.rho, 2)
    evidence.centre[0] = [1.0, 0.0]
    arm = np.array([[np.cos(np.pi / 3), np.sin(np.pi / 3)]])
    arms = Arms(arm)
    menu = Menu(arms.columns, arms.squared)
    _, bounds = first_order_values(confidence, evidence, menu, np.array([0, 1]))
    half = np.pi / 6
    protected = np.array([-np.sin(half), np.cos(half)])
    reached = value_at(np.array([[1.0, 0.0], protected]), arm[0])
    assert reached == pytest.approx(np.cos(half) ** 2)
    assert bounds[0] == pytest.approx(reached, abs=1e-9)
