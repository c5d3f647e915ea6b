"""Upper bounds over arms: Theorems 6, 7 and 8 of docs/theory.md."""

import math
from typing import Any

import numpy as np
import pytest

import sidestep as ss
from sidestep.core import theory
from sidestep.core.problem import Problem
from sidestep.environments import Instance, synthetic
from sidestep.errors import InputError

PROBLEM = Problem(3, 1, 1, noise_scale=0.1)


# ---------------------------------------------------------------- the lemma on projections


def turned(protected: np.ndarray, estimate: np.ndarray, rank: int) -> float:
    """|P - Q|: true span against the top singular directions of the estimate."""
    spans = [np.linalg.svd(table)[2][:rank] for table in (protected, estimate)]
    return float(np.linalg.norm(spans[0].T @ spans[0] - spans[1].T @ spans[1], 2))


def test_projections_differ_by_no_more_than_the_lemma_says_and_by_nearly_as_much() -> None:
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(3000):
        d, L = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        s = int(rng.integers(1, min(d, L) + 1))
        protected = rng.standard_normal((L, s)) @ rng.standard_normal((s, d))
        sigma = np.linalg.svd(protected)[1][s - 1]
        error = rng.standard_normal((L, 1)) @ rng.standard_normal((1, d))
        error *= sigma * rng.uniform(0, 1.5) / np.linalg.norm(error, 2)
        e, found = np.linalg.norm(error, 2), turned(protected, protected + error, s)
        assert found <= min(1.0, 2 * e / sigma) + 1e-9
        if e < sigma:
            assert found <= e / (sigma - e) + 1e-9
            largest = max(largest, found * (sigma - e) / e)
    assert largest > 0.9


# ---------------------------------------------------------------- explore, then commit


def test_the_bound_of_explore_then_commit_by_hand() -> None:
    N, T, sigma, kappa, delta, rho = 9000, 1e6, 0.8, 0.2, 0.01, 0.1
    each = 4500
    lost = math.sqrt(2 * math.log(2 * 2 * 3 / delta) / (each * kappa))
    strength = rho + (1 - lost) * each * kappa
    tail = math.sqrt(3) + math.sqrt(2 * math.log(4 / delta))
    e = rho / strength + 0.1 * tail / math.sqrt(strength)
    assert e < sigma / 2
    expected = 2 * N + 2 * (e + e / (sigma - e)) * (T - N)
    bound = theory.explore_commit_bound(PROBLEM, T, sigma, kappa, N, delta=delta, rho=rho)
    assert bound == pytest.approx(expected, rel=1e-12)


def test_the_best_rounds_are_best_and_of_the_order_of_two_thirds() -> None:
    T = np.array([1e6, 1e9])
    rounds = [theory.explore_commit_rounds(PROBLEM, x, 0.9, 0.2) for x in T]
    bounds = [theory.explore_commit_bound(PROBLEM, x, 0.9, 0.2) for x in T]
    for x, n, best in zip(T, rounds, bounds, strict=True):
        assert theory.explore_commit_bound(PROBLEM, x, 0.9, 0.2, n) == best
        for other in (n // 2, 2 * n):
            assert theory.explore_commit_bound(PROBLEM, x, 0.9, 0.2, other) > best
    for values in (rounds, bounds):
        assert math.log(values[1] / values[0]) / math.log(1000) == pytest.approx(2 / 3, abs=0.02)


def test_with_a_known_gap_the_bound_grows_like_the_logarithm() -> None:
    bounds = [
        theory.explore_commit_bound(PROBLEM, 1e12, 0.9, 0.2, delta=1 / T, gap=0.2)
        for T in (1e3, 1e6, 1e9)
    ]
    steps = np.diff(bounds)
    assert steps[1] == pytest.approx(steps[0], rel=0.2)
    assert bounds[-1] < 1e-3 * theory.explore_commit_bound(PROBLEM, 1e12, 0.9, 0.2, delta=1e-9)
    # nothing is gained by a gap that the estimates do not reach
    plain, small = (theory.explore_commit_bound(PROBLEM, 1e4, 0.9, 0.2, gap=g) for g in (0.0, 1e-6))
    assert plain == small


def test_only_exploring_costs_from_the_gap_on_that_the_estimates_reach() -> None:
    """Theorem 7 by hand: 2 A (e + M |P - P'|) < gap, and not a hundredth sooner."""
    N, T, sigma, kappa, delta, rho = 9000, 1e6, 0.8, 0.2, 0.01, 0.1
    lost = math.sqrt(2 * math.log(2 * 2 * 3 / delta) / (4500 * kappa))
    strength = rho + (1 - lost) * 4500 * kappa
    e = rho / strength + 0.1 * (math.sqrt(3) + math.sqrt(2 * math.log(4 / delta))) / strength**0.5
    reached = 2 * (e + e / (sigma - e))
    more, less = (
        theory.explore_commit_bound(
            PROBLEM, T, sigma, kappa, N, delta=delta, rho=rho, gap=reached * share
        )
        for share in (1.001, 0.99)
    )
    assert more == 2 * N
    assert less > 5 * more


def test_without_protected_vectors_only_the_target_is_estimated() -> None:
    plain = theory.explore_commit_bound(Problem(3, 0, 0, noise_scale=0.1), 1e6, 1.0, 0.2)
    assert plain < theory.explore_commit_bound(PROBLEM, 1e6, 1.0, 0.2)


@pytest.mark.full
def test_explore_then_commit_stays_below_its_bound(oracle: Any) -> None:
    T, N, delta, failures = 1200, 600, 0.1, 0
    for seed in range(8):
        world = synthetic(3, 1, 1, "fixed:20", noise_scale=0.05, seed=seed)
        arms = world.actions.vectors
        kappa = float(np.linalg.eigvalsh(arms.T @ arms / len(arms))[0])
        policy = ss.ExploreThenCommit(world.problem, rounds=N)
        trace = ss.simulate(policy, world, T, seed, every=T, compiled=False)
        bound = theory.explore_commit_bound(world.problem, T, 1.0, kappa, N, delta=delta)
        assert bound < 2 * T
        failures += trace.cumulative_regret[-1] > bound
    assert oracle.at_most(failures, 8, delta)


# ---------------------------------------------------------------- an optimist within tolerances


def optimist(world: Instance, horizon: int, rho: float, delta: float, seed: int) -> float:
    """Regret of the optimist of Theorem 8, written out in numpy."""
    rng, problem = np.random.default_rng(seed), world.problem
    arms, theta, limits = world.actions.vectors, world.theta, problem.limits
    assert limits is not None
    n, d = theta.shape
    weights = np.append(1.0, limits.penalty)
    inverse, moment = np.array([np.eye(d) / rho] * n), np.zeros((n, d))
    counts, regret = np.zeros(n), 0.0

    def value(effects: np.ndarray) -> np.ndarray:
        over = np.maximum(effects[1:] - limits.high[:, None], limits.low[:, None] - effects[1:])
        return effects[0] - limits.penalty @ np.maximum(over, 0)

    truth = value(theta @ arms.T)
    for _ in range(horizon):
        centre = np.einsum("vij,vj->vi", inverse, moment) @ arms.T  # (n, K)
        root = np.array(
            [theory.radius(problem, c, rho, delta / n, form="corrected") for c in counts]
        )
        width = root[:, None] * np.sqrt(np.einsum("ki,vij,kj->vk", arms, inverse, arms))
        low, high = centre - width, centre + width
        over = np.maximum(low[1:] - limits.high[:, None], limits.low[:, None] - high[1:])
        hoped = high[0] - limits.penalty @ np.maximum(over, 0)
        k = int(hoped.argmax())
        v = int((weights * width[:, k]).argmax())
        regret += truth.max() - truth[k]
        feedback = theta[v] @ arms[k] + problem.noise[v] * rng.standard_normal()
        moment[v] += feedback * arms[k]
        moved = inverse[v] @ arms[k]
        inverse[v] -= np.outer(moved, moved) / (1 + arms[k] @ moved)
        counts[v] += 1
    return float(regret)


@pytest.mark.full
def test_the_optimist_within_tolerances_stays_below_its_bound() -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        theta = rng.standard_normal((3, 3))
        theta /= np.linalg.norm(theta, axis=1, keepdims=True)
        arms = rng.standard_normal((15, 3))
        arms /= np.linalg.norm(arms, axis=1, keepdims=True)
        world = Instance(theta, ss.Arms(arms), noise_scale=0.1, tolerance=0.2, penalty=2.0)
        bound = theory.tolerance_bound(world.problem, 500, 0.05, 1.0)
        assert 0 < optimist(world, 500, 1.0, 0.05, seed) < bound


def test_the_bound_within_tolerances_by_hand() -> None:
    problem = Problem(4, 2, noise_scale=0.3, tolerance=0.1, penalty=(0.5, 3.0), norm_bound=2.0)
    T, delta, rho = 1e5, 0.03, 2.0
    widest = theory.radius(problem, T, rho, delta / 3, form="corrected")
    expected = 2 * 3 * 3 * widest * math.sqrt(2 * 3 * 4 * T * math.log(1 + T / (4 * rho)))
    assert theory.tolerance_bound(problem, T, delta, rho) == pytest.approx(expected, rel=1e-12)
    mild = Problem(4, 2, noise_scale=0.3, tolerance=0.1, penalty=0.5, norm_bound=2.0)
    assert theory.tolerance_bound(mild, T, delta, rho) == pytest.approx(expected / 3, rel=1e-12)


def test_elliptical_potential_with_rho_of_one_or_more() -> None:
    """sum |a|^2 in V^-1 <= 2 d log(1 + T A^2 / (d rho)) where rho >= A^2."""
    rng = np.random.default_rng(3)
    for _ in range(50):
        d, T, A = int(rng.integers(1, 6)), 200, 10 ** rng.uniform(-1, 1)
        rho = A * A * rng.uniform(1, 4)
        V, total = rho * np.eye(d), 0.0
        for _ in range(T):
            a = rng.standard_normal(d)
            a *= A / np.linalg.norm(a)
            total += a @ np.linalg.solve(V, a)
            V += np.outer(a, a)
        assert total <= 2 * d * math.log1p(T * A * A / (d * rho))


WITHIN = Problem(3, 1, noise_scale=0.1, tolerance=0.1)

SAID = [
    (lambda: theory.tolerance_bound(PROBLEM, 9), "tolerance must be told"),
    (
        lambda: theory.tolerance_bound(
            Problem(3, 1, noise_scale=0.1, tolerance=0.1, intercept=True), 9
        ),
        "intercept must be False",
    ),
    (lambda: theory.tolerance_bound(WITHIN, 9, rho=0.5), r"rho must be at least action_bound\^2"),
    (lambda: theory.tolerance_bound(WITHIN, 9, 1.5), "delta must"),
    (lambda: theory.explore_commit_bound(PROBLEM, 0, 0.9, 0.1), "horizon must be positive"),
    (lambda: theory.explore_commit_bound(PROBLEM, 9, 0.0, 0.1), "singular_value must be positive"),
    (lambda: theory.explore_commit_bound(PROBLEM, 9, 1.5, 0.1), "singular_value must be at most"),
    (lambda: theory.explore_commit_bound(PROBLEM, 9, 0.9, 0.0), "kappa must be positive"),
    (lambda: theory.explore_commit_bound(PROBLEM, 9, 0.9, 0.4), "kappa must be at most"),
    (lambda: theory.explore_commit_bound(PROBLEM, 9, 0.9, 0.1, 0), "rounds must be an integer"),
    (
        lambda: theory.explore_commit_bound(
            Problem(3, 1, noise_scale=0.1, resolution=0.1), 9, 0.9, 0.1
        ),
        "subspace_dim must be known",
    ),
    (
        lambda: theory.explore_commit_bound(WITHIN, 9, 0.9, 0.1),
        "subspace_dim must be known|projected",
    ),
    (lambda: theory.explore_commit_bound(PROBLEM, 9, 0.9, 0.1, gap=-1.0), "gap must be"),
    (
        lambda: theory.explore_commit_bound(PROBLEM, 9, 0.9, 0.1, gap=2.1),
        "gap must be at most 2 A M",
    ),
    (lambda: theory.expected_coefficients(3, 3), r"size must lie in 0\.\.2"),
]


@pytest.mark.parametrize(("call", "sentence"), SAID)
def test_what_the_proofs_do_not_cover_is_refused_in_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
