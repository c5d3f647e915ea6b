"""Optimistic values of arms: against dense algebra, by hand, and against the exact optimum."""

import functools
from typing import NamedTuple

import numpy as np
import pytest

from sidestep.core.actions import Arms
from sidestep.core.arm_forms import COVARIANCE, PRECISION, Menu, empty_forms
from sidestep.core.confidence import LOGDET, Confidence, ellipsoids
from sidestep.core.estimator import absorb, copy_evidence, no_evidence
from sidestep.core.linalg import TIE
from sidestep.core.optimism_arms import BLOCK, SURROGATES, Estimates, optimistic_values
from sidestep.core.optimism_ball import optimistic_action
from sidestep.core.projection import first_order_values

DENSE = ("printed", "corrected", "ellipsoid")
EACH = pytest.mark.parametrize("surrogate", DENSE)
ROUNDING = np.finfo(float).eps


class World(NamedTuple):
    """Confidence sets of some vectors and some arms."""

    confidence: Confidence
    evidence: object
    arms: np.ndarray
    rows: np.ndarray

    def values(self, surrogate, arms=None):
        arms = Arms(self.arms if arms is None else arms)
        menu = Menu(arms.columns, arms.squared)
        forms = empty_forms(SURROGATES[surrogate].metric, len(self.confidence.rho), len(arms))
        forms.workspace.rows[: len(self.rows)] = self.rows
        called, n = SURROGATES[surrogate], len(self.rows)
        optimistic_values(called, Estimates(self.confidence, self.evidence, forms), menu, n)
        return forms.workspace.values

    @property
    def sets(self):
        return ellipsoids(self.confidence, self.evidence, self.rows)

    def precision(self, row):
        d = self.arms.shape[1]
        return self.evidence.gram[row] + self.confidence.rho[row] * np.eye(d)


@functools.cache
def world(s, noise=0.1, rounds=40, seed=0, d=6, count=60):
    """Sets after some rounds, of which s out of five protected vectors are looked at."""
    rng = np.random.default_rng([seed, s, rounds])
    confidence = Confidence(np.full(6, 0.1), np.full(6, noise), 1.0, 1.0, 1e-3, LOGDET)
    evidence = no_evidence(confidence.rho, d)
    theta = rng.standard_normal((6, d))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    for i in range(6):
        for _ in range(rounds + 3 * i if rounds else 0):
            action = rng.standard_normal(d) * np.exp(rng.standard_normal(d))
            action /= np.linalg.norm(action)
            feedback = float(action @ theta[i]) + noise * rng.standard_normal()
            absorb(evidence, confidence.rho, action, i, feedback)
    arms = rng.standard_normal((count, d))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    arms[::3] *= rng.uniform(0.05, 1.0, (len(arms[::3]), 1))  # not all of unit length
    arms[1] = 0.0
    rows = np.concatenate([[0], np.sort(rng.permutation(5)[:s]) + 1])
    return World(confidence, evidence, arms, rows)


def points(game, surrogate, action):
    """The points to which the appendix moves every vector for one action, as written; (s+1, d)."""
    sets, moved = game.sets, []
    for k, row in enumerate(game.rows):
        c, W, r, V = sets.centre[k], sets.inverse[k], sets.radius[k], game.precision(row)
        if surrogate == "ellipsoid":
            norm = np.sqrt(action @ W @ action)
            step, support_point = r * W @ action / norm, r * norm
        else:
            norm = np.sqrt(action @ V @ action)
            step, support_point = r * action / norm, r * (action @ action) / norm
        if k == 0:
            moved.append(c + step)
        elif surrogate == "printed":
            length = r * np.linalg.norm(action) / np.sqrt(action @ V @ action)
            alpha = np.clip((action @ c + length) / (2 * length), 0, 1)
            moved.append(c + (2 * alpha - 1) * step)
        else:
            moved.append(c - np.clip(action @ c / support_point, -1, 1) * step)
    return np.array(moved)


def reward(vectors, action):
    """<a, Proj_perp theta_0>, by the pseudo-inverse; and the condition of the protected vectors."""
    protected = vectors[1:]
    if not len(protected):
        return action @ vectors[0], 1.0
    spread = np.linalg.svd(protected, compute_uv=False)
    left = action - np.linalg.pinv(protected) @ (protected @ action)
    return left @ vectors[0], spread[0] / spread[-1]


# Against dense algebra


@pytest.mark.full
@EACH
@pytest.mark.parametrize("s", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("noise", "rounds"), [(0.001, 40), (0.1, 40), (1.0, 40), (0.1, 3), (0.1, 400)]
)
def test_values_are_the_rewards_at_the_points_of_the_appendix(surrogate, s, noise, rounds):
    game = world(s, noise, rounds)
    values = game.values(surrogate)
    for action, value in zip(game.arms, values, strict=True):
        if not action.any():
            assert value == 0.0
            continue
        moved = points(game, surrogate, action)
        expected, condition = reward(moved, action)
        scale = np.linalg.norm(action) * np.linalg.norm(moved[0])
        # a Gram matrix has the square of the vectors' condition
        assert abs(value - expected) <= 100 * ROUNDING * condition**2 * scale


@EACH
def test_the_worlds_of_these_tests_clip_some_moves_and_leave_others(surrogate):
    clipped = free = 0
    for noise, rounds in [(0.001, 40), (0.1, 40), (1.0, 40)]:
        game = world(2, noise, rounds)
        for action in game.arms[2:]:
            moved, sets = points(game, surrogate, action), game.sets
            for k in (1, 2):
                off = moved[k] - sets.centre[k]
                length = np.sqrt(off @ game.precision(game.rows[k]) @ off)
                clipped += length >= sets.radius[k] * (1 - 1e-9)
                free += length < sets.radius[k] * (1 - 1e-9)
    assert clipped >= 20
    assert free >= 20


@EACH
@pytest.mark.parametrize("noise", [0.001, 0.1, 1.0])
def test_every_point_of_a_surrogate_lies_in_its_set(surrogate, noise):
    game = world(3, noise)
    sets = game.sets
    for action in game.arms[2:]:
        off = points(game, surrogate, action) - sets.centre
        for k, row in enumerate(game.rows):
            length = np.sqrt(off[k] @ game.precision(row) @ off[k])
            assert length <= sets.radius[k] * (1 + 1e-9)
            if k == 0:
                assert length == pytest.approx(sets.radius[0], rel=1e-9)


# What the moves do to <a, theta_i> (A2, A3)


@pytest.mark.parametrize(
    ("surrogate", "factor"), [("printed", 2.0), ("corrected", 0), ("ellipsoid", 0)]
)
def test_an_unclipped_move_doubles_the_effect_as_printed_and_cancels_it_as_repaired(
    surrogate, factor
):
    game = world(2, 1.0)
    seen = 0
    for action in game.arms[2:]:
        if abs(np.linalg.norm(action) - 1) > 1e-9:
            continue  # print has |a| where |a|^2 belongs: the same for unit arms only
        moved, sets = points(game, surrogate, action), game.sets
        for k in (1, 2):
            off = moved[k] - sets.centre[k]
            if np.sqrt(off @ game.precision(game.rows[k]) @ off) < sets.radius[k] * (1 - 1e-9):
                seen += 1
                assert action @ moved[k] == pytest.approx(
                    factor * (action @ sets.centre[k]), abs=1e-12
                )
    assert seen >= 20


def crafted(centre, radius=1.0):
    """Sets that are balls of one radius around given centres: V = I and no noise."""
    n, d = np.shape(centre)
    confidence = Confidence(np.ones(n), np.zeros(n), radius, 1.0, 0.1, LOGDET)
    evidence = no_evidence(confidence.rho, d)
    evidence.centre[:] = centre
    return World(confidence, evidence, np.zeros((1, d)), np.arange(n))


def test_the_three_values_by_hand():
    game = crafted([[1.0, 0.0], [0.1, 1.0]])
    action = np.array([[1.0, 0.0]])
    # theta_0 moves to (2, 0). Print moves theta_1 to (0.2, 1): <a, theta_1> doubles
    assert game.values("printed", action)[0] == pytest.approx(2 - 0.2 * 0.4 / 1.04, rel=1e-14)
    # repaired, it moves to (0, 1), which costs the action nothing
    assert game.values("corrected", action)[0] == pytest.approx(2.0, rel=1e-14)
    assert game.values("ellipsoid", action)[0] == pytest.approx(2.0, rel=1e-14)


def test_a_set_too_small_to_reach_orthogonality_goes_as_far_as_it_can():
    game = crafted([[1.0, 0.0], [0.6, 0.8]], radius=0.1)
    action = np.array([[1.0, 0.0]])
    target = 1.1
    away, towards = 0.7**2 / (0.7**2 + 0.64), 0.5**2 / (0.5**2 + 0.64)
    assert game.values("printed", action)[0] == pytest.approx(target * (1 - away), rel=1e-13)
    assert game.values("corrected", action)[0] == pytest.approx(target * (1 - towards), rel=1e-13)
    assert game.values("ellipsoid", action)[0] == pytest.approx(target * (1 - towards), rel=1e-13)


def test_a_short_arm_is_worth_in_proportion_once_the_length_is_repaired():
    game = world(2, 0.1)
    unit = game.arms[2:] / np.linalg.norm(game.arms[2:], axis=1, keepdims=True)
    for surrogate in ("corrected", "ellipsoid"):
        whole, short = game.values(surrogate, unit), game.values(surrogate, 0.25 * unit)
        assert short == pytest.approx(0.25 * whole, rel=1e-9)
    printed = game.values("printed", unit), game.values("printed", 0.25 * unit)
    assert np.abs(printed[1] - 0.25 * printed[0]).max() > 1e-3


# Against the exact optimum


@pytest.mark.full
@pytest.mark.parametrize("noise", [0.001, 0.1, 1.0])
def test_the_ellipsoid_value_is_tight_at_the_optimum_of_the_ball(noise):
    loose = 0
    for s in (1, 2, 3):
        for seed in range(4):
            game = world(s, noise, 40, seed)
            best, value, _ = optimistic_action(*game.sets, 1e-4)
            at_best = {name: game.values(name, best[None, :])[0] for name in DENSE}
            assert at_best["ellipsoid"] == pytest.approx(value, rel=1e-8)
            assert at_best["printed"] <= value * (1 + 1e-9)
            assert at_best["corrected"] <= value * (1 + 1e-9)
            loose += at_best["printed"] < 0.9 * value
            assert game.values("ellipsoid").max() <= value * (1 + 1e-2)
    assert loose >= 6  # the lemma's "tight at the optimum" does not hold as printed


def directions(d, fineness):
    """A grid of lines through the origin, and the largest angle from any line to it."""
    if d == 2:
        angle = np.arange(fineness) * np.pi / fineness
        return np.column_stack([np.cos(angle), np.sin(angle)]), np.pi / fineness / 2
    step = np.pi / fineness
    height, angle = np.meshgrid(np.arange(fineness + 1) * step, np.arange(fineness) * step)
    flat = np.sin(height)
    grid = np.stack([flat * np.cos(angle), flat * np.sin(angle), np.cos(height)], axis=-1)
    return grid.reshape(-1, 3), step / np.sqrt(2)


def exact_value(game, action, fineness):
    """The optimum over both sets for one action and one protected vector, by a grid of its lines.

    Theta_1 meets the line of u where (u'Vc)^2 >= (|c|_V^2 - r^2) |u|_V^2. Returns the largest value on
    the grid and how much a line between its points could add.
    """
    sets = game.sets
    lines, angle = directions(game.arms.shape[1], fineness)
    V, c, r = game.precision(game.rows[1]), sets.centre[1], sets.radius[1]
    spread = np.einsum("nj,jk,nk->n", lines, V, lines)
    meets = (lines @ V @ c) ** 2 >= (c @ V @ c - r**2) * spread
    left = action - lines[meets] * (lines[meets] @ action)[:, None]
    width = np.sqrt(np.einsum("nj,jk,nk->n", left, sets.inverse[0], left))
    values = left @ sets.centre[0] + sets.radius[0] * width
    longest = np.linalg.norm(sets.centre[0])
    longest += sets.radius[0] * np.sqrt(np.linalg.eigvalsh(sets.inverse[0])[-1])
    # turning a line by an angle moves the projection of a by at most that angle times |a|; a set
    # that meets a line between grid points meets a neighbour or is narrower than the grid
    return values.max(), 4 * angle * np.linalg.norm(action) * longest


@pytest.mark.full
@EACH
@pytest.mark.parametrize(("d", "fineness"), [(2, 20_000), (3, 250)])
def test_no_surrogate_exceeds_the_exact_optimistic_value(surrogate, d, fineness):
    for noise, rounds in [(1.0, 10), (0.3, 10), (0.3, 40)]:
        game = world(1, noise, rounds, d=d, count=6)
        values = game.values(surrogate)
        for action, value in zip(game.arms[2:], values[2:], strict=True):
            exact, between = exact_value(game, action, fineness)
            assert value <= exact + between


@pytest.mark.full
@EACH
@pytest.mark.parametrize("s", [0, 1, 2, 3])
@pytest.mark.parametrize("noise", [0.001, 0.1])
def test_no_surrogate_exceeds_the_rigorous_bound(surrogate, s, noise):
    game = world(s, noise, 400)
    arms = Arms(game.arms)
    menu = Menu(arms.columns, arms.squared)
    _, bounds = first_order_values(game.confidence, game.evidence, menu, game.rows)
    assert (game.values(surrogate) <= bounds + 1e-9).all()


@pytest.mark.parametrize("s", [1, 2, 3])
def test_more_optimism_in_the_order_printed_corrected_ellipsoid_on_average(s):
    game = world(s, 0.1)
    printed, corrected, ellipsoid = (game.values(name)[2:].mean() for name in DENSE)
    assert printed < corrected < ellipsoid


# Edges


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_where_the_protected_vectors_fill_the_space_every_value_is_zero(surrogate):
    game = world(3, 0.1, d=3)
    assert game.values(surrogate).tolist() == [0.0] * len(game.arms)


@pytest.mark.full
@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("count", [1, BLOCK, BLOCK + 1, 300])
def test_many_arms_have_the_values_they_have_alone(surrogate, count):
    game = world(2, 0.1, count=301)
    together = game.values(surrogate, game.arms[:count])
    alone = [game.values(surrogate, game.arms[k : k + 1])[0] for k in range(count)]
    assert together == pytest.approx(alone, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_duplicates_of_an_arm_have_equal_values_far_below_a_tie(surrogate):
    game = world(2, 0.1)
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 30))
    values = game.values(surrogate, game.arms[copies])
    for arm in range(10):
        assert np.ptp(values[copies == arm]) <= TIE / 1e3


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("s", [0, 1, 2])
def test_before_the_first_measurement_a_value_is_the_width_of_the_target(surrogate, s):
    game = world(s, 0.1, 0)
    r, rho = game.sets.radius[0], game.confidence.rho[0]
    lengths = np.linalg.norm(game.arms, axis=1)
    expected = r * lengths / np.sqrt(rho)
    if surrogate == "first-order":  # which is cut at what any reward can be
        expected = np.minimum(expected, lengths * game.confidence.norm_bound)
    assert game.values(surrogate) == pytest.approx(expected, rel=1e-12)


@EACH
def test_a_protected_vector_that_repeats_another_changes_nothing(surrogate):
    game = world(2, 0.1)
    spare = min(set(range(1, 6)) - set(game.rows.tolist()))
    evidence = copy_evidence(game.evidence)
    for part in evidence[:-2]:
        part[spare] = part[game.rows[2]]  # and its set
    twice = game._replace(evidence=evidence, rows=np.append(game.rows, spare))
    assert twice.values(surrogate) == pytest.approx(game.values(surrogate), abs=1e-9)


@EACH
def test_protected_vectors_that_nearly_coincide_cost_digits_and_no_more(surrogate):
    for apart in (1e-2, 1e-3, 1e-4):
        rng = np.random.default_rng(2)
        centre = rng.standard_normal((3, 6))
        centre /= np.linalg.norm(centre, axis=1, keepdims=True)
        centre[2] = centre[1] + apart * centre[2]
        game = crafted(centre, radius=1e-9)
        arms = rng.standard_normal((20, 6))
        for action, value in zip(arms, game.values(surrogate, arms), strict=True):
            expected, condition = reward(points(game, surrogate, action), action)
            scale = np.linalg.norm(action)
            assert abs(value - expected) <= 100 * ROUNDING * condition**2 * scale


def sparse(s, rho, seed):
    """Sets of which some cancel: theta_1 is well known, the others were measured along one arm each.

    For that arm c and V^-1 a are parallel, and nothing but rounding is left once c is moved.
    """
    rng, d = np.random.default_rng([19, s, seed]), 5
    confidence = Confidence(np.full(s + 1, rho), np.full(s + 1, 0.01), 1.0, 1.0, 1e-3, LOGDET)
    evidence = no_evidence(confidence.rho, d)
    arms = rng.standard_normal((12, d))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    theta = rng.standard_normal((s + 1, d)) / np.sqrt(d)
    for v in range(s + 1):
        for action in arms if v < 2 else arms[v : v + 1]:
            absorb(evidence, confidence.rho, action, v, float(action @ theta[v]))
    return World(confidence, evidence, arms, np.arange(s + 1))


@pytest.mark.full
@EACH
@pytest.mark.parametrize("rho", [0.1, 1e-3, 1e-8])
@pytest.mark.parametrize("s", [1, 2, 3])
def test_the_last_digits_of_what_is_kept_of_an_arm_decide_nothing(surrogate, s, rho):
    """Over fixed arms <a, centre> is followed from round to round and ends in other digits."""
    for seed in range(8):
        game = sparse(s, rho, seed)
        arms = Arms(game.arms)
        menu = Menu(arms.columns, arms.squared)
        found = []
        for nudge in (0.0, 2.0, -2.0):
            forms = empty_forms(SURROGATES[surrogate].metric, s + 1, len(arms))
            forms.workspace.rows[: s + 1] = game.rows
            called, known = SURROGATES[surrogate], Estimates(game.confidence, game.evidence, forms)
            optimistic_values(called, known, menu, s + 1)  # fills the forms
            forms.linear[:] *= 1 + nudge * ROUNDING
            optimistic_values(called, known, menu, s + 1)
            found.append(forms.workspace.values.copy())
        sets = game.sets
        longest = np.linalg.norm(sets.centre[0]) + sets.radius[0] / np.sqrt(rho)
        assert np.abs(found[1] - found[0]).max() <= 1e-5 * longest
        assert np.abs(found[2] - found[0]).max() <= 1e-5 * longest


def test_each_surrogate_reads_the_quadratic_form_it_moves_along():
    assert [surrogate.metric for surrogate in SURROGATES.values()] == [
        PRECISION,
        PRECISION,
        COVARIANCE,
        COVARIANCE,
    ]


def test_asking_for_values_writes_nothing_into_the_evidence():
    game = world(2, 0.1)
    before = [part.copy() for part in game.evidence]
    for surrogate in SURROGATES:
        game.values(surrogate)
    for old, new in zip(before, game.evidence, strict=True):
        assert np.array_equal(old, new)
