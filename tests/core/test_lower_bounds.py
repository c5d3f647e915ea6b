"""What every policy must pay: constants of Theorems 9, 10, 12 and 13 of docs/theory.md."""

import math
from typing import Any

import numpy as np
import pytest

import sidestep as ss
from sidestep.core import theory
from sidestep.core.arrays import FloatArray
from sidestep.core.lower_bounds import near_bound, spanning_angle
from sidestep.environments import Instance, spanning, synthetic, unspanned
from sidestep.errors import InputError


def ball(dim: int, size: int, seed: int = 0, noise: Any = 0.1) -> Instance:
    return synthetic(dim, size, size, "ball", noise_scale=noise, seed=seed)


# ---------------------------------------------------------------- arms that do not span


def test_the_unspanned_pair_gives_the_same_feedback_and_opposite_rewards() -> None:
    pair = [unspanned(which) for which in (1, 2)]
    arms = pair[0].actions.vectors
    np.testing.assert_array_equal(arms, pair[1].actions.vectors)
    np.testing.assert_allclose(*(arms @ world.theta.T for world in pair), rtol=0, atol=1e-15)
    rewards = np.array([[world.reward(arm) for arm in arms] for world in pair])
    np.testing.assert_allclose(rewards, [[-0.5, 0.5], [0.5, -0.5]], atol=1e-15)


@pytest.mark.parametrize("policy", ["uniform", "directed-thompson", "information-directed"])
def test_regrets_on_the_unspanned_pair_add_up_to_the_horizon(policy: str) -> None:
    total = 0.0
    for which in (1, 2):
        world = unspanned(which)
        player = ss.policies.from_config(policy, world.problem)
        total += ss.simulate(player, world, 60, seed=3, compiled=False).cumulative_regret[-1]
    assert total == pytest.approx(2 * theory.unspanned_bound(60), rel=1e-12)


def test_the_unspanned_bound_scales_with_both_lengths() -> None:
    T = np.array([10.0, 100.0])
    np.testing.assert_allclose(theory.unspanned_bound(T, 2.0, 3.0), 3 * T, rtol=1e-15)


# ---------------------------------------------------------------- fixed arms that span


@pytest.mark.parametrize("kappa", [1e-6, 0.01, 0.1, 1 / 6])
@pytest.mark.parametrize("horizon", [100, 10_000, 10**7])
def test_regrets_and_divergence_of_the_spanning_pair_are_those_of_the_proof(
    kappa: float, horizon: int
) -> None:
    R, sigma = 0.3, 0.9
    pair = [spanning(horizon, which, kappa, R, sigma) for which in (1, 2)]
    angle = spanning_angle(horizon, kappa, R, sigma)
    arms = pair[0].actions.vectors
    gaps = np.array([[max(w.reward(a) for a in arms) - w.reward(b) for b in arms] for w in pair])
    wrong, loss = math.sin(2 * angle) / math.sqrt(2), _loss(kappa)
    np.testing.assert_allclose(gaps[:, :2], [[wrong, 0], [0, wrong]], atol=1e-12)
    assert (gaps[:, 2:] >= max(wrong, loss) - 1e-12).all()
    shown = arms @ (pair[0].theta[1] - pair[1].theta[1])
    np.testing.assert_allclose(shown[[0, 1, 3]], 0, atol=1e-15)
    per_play = shown[2] ** 2 / (2 * R**2)
    assert per_play == pytest.approx(2 * kappa * (sigma * math.sin(angle) / R) ** 2)
    np.testing.assert_array_equal(pair[0].theta[0], pair[1].theta[0])


def _loss(kappa: float) -> float:
    return (math.sqrt(1 - kappa) - math.sqrt(kappa)) / math.sqrt(2)


@pytest.mark.parametrize("kappa", [1e-8, 0.01, 1 / 6])
def test_the_spanning_bound_is_what_the_proof_gives_for_every_number_of_plays(kappa: float) -> None:
    """max(c n, T sin(2 eps) / (8 sqrt 2) exp(-h n sin^2 eps)) >= the bound for every n >= 0."""
    for T in (10.0, 1e3, 1e5, 1e8):
        R, sigma = 0.2, 0.8
        bound, angle = (
            theory.spanning_bound(T, kappa, R, strength=sigma),
            spanning_angle(T, kappa, R, sigma),
        )
        n = np.append(0.0, np.geomspace(1e-3, 1e3, 4001)) * bound / _loss(kappa)
        missed = np.exp(-2 * kappa * (sigma * math.sin(angle) / R) ** 2 * n)
        paid = np.maximum(_loss(kappa) * n, T * math.sin(2 * angle) / (8 * math.sqrt(2)) * missed)
        assert bound <= paid.min() * (1 + 1e-9)
        assert bound >= 0.85 * paid.min()  # a constant 10% smaller is caught below


def test_the_constant_of_the_spanning_bound_is_the_one_of_the_theorem() -> None:
    T, kappa, R, sigma, M = 1e9, 0.05, 0.3, 0.7, 2.0
    rate = (R * T / (sigma * math.sqrt(kappa))) ** (2 / 3)
    expected = M * _loss(kappa) ** (1 / 3) * (math.exp(-0.5) / (8 * math.sqrt(2))) ** (2 / 3) * rate
    bound = theory.spanning_bound(T, kappa, R, strength=sigma, norm_bound=M)
    assert bound == pytest.approx(expected, rel=0.01)


def test_where_the_arms_hardly_span_the_spanning_bound_is_linear() -> None:
    T = np.array([1e2, 1e4])
    expected = T / (8 * math.sqrt(2))
    np.testing.assert_allclose(theory.spanning_bound(T, 1e-12), expected, rtol=1e-6)


def test_the_eigenvalue_of_uniform_exploration_is_between_an_eighth_and_a_quarter_of_kappa() -> (
    None
):
    for kappa in (1e-6, 0.01, 0.1, 1 / 6):
        arms = spanning(1000, 1, kappa).actions.vectors
        least = np.linalg.eigvalsh(arms.T @ arms / len(arms))[0]
        assert kappa / 8 <= least <= kappa / 4


@pytest.mark.slow
def test_no_policy_beats_the_spanning_bound_and_two_of_ours_stay_near_it() -> None:
    T = 1000
    bound = theory.spanning_bound(T, 0.1, 0.1, strength=0.9)
    for policy in (ss.DirectedThompson, ss.InformationDirected):
        means = []
        for which in (1, 2):
            world = spanning(T, which)
            runs = [
                ss.simulate(policy(world.problem), world, T, seed, every=100).cumulative_regret[-1]
                for seed in range(4)
            ]
            means.append(float(np.mean(runs)))
        assert bound < max(means) < 40 * bound


# ---------------------------------------------------------------- the ball


def test_the_price_by_hand() -> None:
    theta = np.array([[0.5, 0.2, 0.6, 0.0], [0.5, 0.0, 0.0, 0.0], [0.0, -0.4, 0.0, 0.0]])
    world = Instance(theta, ss.UnitBall(4), noise_scale=(0.1, 0.2, 0.3))
    price = theory.price_of_protection(world)
    assert price.directions == 1
    assert price.noise == pytest.approx(0.1 + 1.0 * 0.2 + 0.5 * 0.3)
    np.testing.assert_allclose(price.coefficients, [1.0, -0.5])
    assert price.regret(100) == pytest.approx(4.5)


@pytest.mark.parametrize(("dim", "size"), [(3, 0), (3, 1), (4, 2), (6, 2)])
def test_the_ball_bound_reaches_the_price_and_never_passes_it(dim: int, size: int) -> None:
    world = ball(dim, size, seed=1)
    T = np.geomspace(1e2, 1e28, 14)
    share = theory.ball_bound(world, T) / theory.price_of_protection(world).regret(T)
    assert (np.diff(share) >= 0).all()
    assert 0.99 < share[-1] < 1
    assert share[0] < 0.9


def test_the_expected_price_is_the_mean_of_the_prices_of_the_prior(oracle: Any) -> None:
    rng, noise = np.random.default_rng(5), (0.1, 0.4, 0.02)
    problem = ss.Problem(6, 2, 2, noise_scale=noise)
    paid = []
    for _ in range(4000):
        theta = rng.standard_normal((3, 6)) / 10
        price = theory.price_of_protection(
            Instance(theta, ss.UnitBall(6), noise_scale=noise, norm_bound=2.0)
        )
        paid.append(price.directions * price.noise)
    expected = theory.expected_price(problem)
    assert oracle.mean_about(np.array(paid), expected)
    assert not oracle.mean_about(np.array(paid), 0.95 * expected)
    plain = ss.Problem(6, 0, 0, noise_scale=0.1)
    assert theory.expected_price(plain) == pytest.approx(0.5)  # (d - 1) R


def test_the_bound_of_posterior_sampling_is_dearer_than_the_price_by_the_factor_of_the_page() -> (
    None
):
    """thompson_bound / (expected_price sqrt(T)) tends to 2 z sqrt(Lambda) / p."""
    d, s, T = 6, 2, 1e14
    problem = ss.Problem(d, s, s, noise_scale=0.1)
    z = math.sqrt(d) + math.sqrt(2 * math.log(2 * (s + 1) * T * T))
    potential = (s + 1) * d * math.log1p(T / ((s + 1) * d * 0.06)) / math.log(2)
    found = theory.thompson_bound(problem, T) / (theory.expected_price(problem) * math.sqrt(T))
    assert found == pytest.approx(2 * z * math.sqrt(potential) / (d - s - 1), rel=1e-4)


def test_where_one_direction_is_left_there_is_no_price() -> None:
    world = ball(4, 3)
    assert theory.price_of_protection(world).directions == 0
    assert theory.ball_bound(world, 1e9) == 0


def test_a_smaller_reach_allows_less() -> None:
    world, T = ball(4, 1), 1e8
    reaches = (1e-6, 0.03, 0.1)
    bounds = [theory.ball_bound(world, T, reach=reach) for reach in reaches]
    assert bounds == sorted(bounds)
    assert bounds[0] == 0 < bounds[1] < bounds[2] <= theory.ball_bound(world, T)


def _proved(world: Instance, T: float, spread: float, tail: float, seed: int) -> FloatArray:
    """Coefficients and lengths of problems of the prior beside what the proof allows them."""
    rng = np.random.default_rng(seed)
    theta = world.theta
    s, d = len(theta) - 1, theta.shape[1]
    x = np.linalg.lstsq(theta[1:].T, theta[0], rcond=None)[0]
    length = np.linalg.norm(theta[0] - theta[1:].T @ x)
    r = spread * (math.sqrt(d) + math.sqrt(2 * tail))
    slack = np.linalg.svd(theta[1:])[1][-1] - math.sqrt(s) * r
    moved = r * (1 + np.abs(x).sum()) + length * math.sqrt(s) * r / slack
    shares = []
    for _ in range(300):
        error = rng.standard_normal(theta.shape)
        error *= r / np.linalg.norm(error, axis=1, keepdims=True)
        other = theta + error
        y = np.linalg.lstsq(other[1:].T, other[0], rcond=None)[0]
        rest = other[0] - other[1:].T @ y
        shares.append(
            (
                abs(np.linalg.norm(rest) - length) / moved,
                np.linalg.norm(y - x) / (moved / slack),
            )
        )
    return np.array(shares)


@pytest.mark.parametrize(("dim", "size"), [(4, 1), (6, 2), (8, 4)])
def test_problems_near_the_instance_are_as_near_as_the_proof_says(dim: int, size: int) -> None:
    for seed in range(5):
        world = ball(dim, size, seed)
        shares = _proved(world, 1e8, 0.003, 8.0, seed)
        assert shares.max() <= 1


def test_regret_is_at_least_what_the_spectrum_of_the_design_says() -> None:
    """sum(1 - <a, a*>) >= (q + (T - 2 q) sin^2) / 2 with q = T - the largest eigenvalue."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        d, T = int(rng.integers(2, 6)), 40
        best = rng.standard_normal(d)
        best /= np.linalg.norm(best)
        around = best + rng.uniform(0, 1) * rng.standard_normal(d)
        a = around + rng.uniform(0, 2) * rng.standard_normal((T, d))
        a /= np.maximum(np.linalg.norm(a, axis=1, keepdims=True), rng.uniform(0.5, 1))
        a /= np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1)
        values, vectors = np.linalg.eigh(a.T @ a)
        q, off = T - values[-1], 1 - (vectors[:, -1] @ best) ** 2
        assert (1 - a @ best).sum() >= 0.5 * (q + (T - 2 * q) * off) - 1e-9


def test_no_design_estimates_better_than_the_proof_allows() -> None:
    """sum_v g_v^2 tr(posterior covariance of v) >= p^2 G^2 / (q + p sum R_v^2 / tau^2)."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        n, p, tau = int(rng.integers(1, 5)), int(rng.integers(1, 5)), 10 ** rng.uniform(-1, 1)
        R, g = 10 ** rng.uniform(-1, 1, n), rng.standard_normal(n)
        designs = [rng.standard_normal((int(rng.integers(0, 9)), p)) for _ in range(n)]
        grams = [x.T @ x for x in designs]
        q = sum(np.trace(gram) for gram in grams)
        error = sum(
            g[v] ** 2 * np.trace(np.linalg.inv(grams[v] / R[v] ** 2 + np.eye(p) / tau**2))
            for v in range(n)
        )
        G = np.abs(g) @ R
        assert error >= (p * G) ** 2 / (q + p * (R @ R) / tau**2) * (1 - 1e-9)


def test_the_proof_may_be_vacuous_but_says_nothing_false_about_it() -> None:
    T = np.array([1e6])
    world = ball(4, 1)
    assert near_bound(world, T, 10.0, 4.0) == 0  # the neighbours reach dependent vectors
    assert near_bound(world, T, 1e-9, 4.0) <= 0  # the prior knows everything


SAID = [
    (lambda: theory.unspanned_bound(0), "horizon must be positive"),
    (lambda: theory.unspanned_bound(5, -1.0), "norm_bound must be positive"),
    (lambda: theory.spanning_bound(10, 0.2), "kappa must be at most 1/6"),
    (lambda: theory.spanning_bound(10, 0.0), "kappa must be positive"),
    (lambda: theory.spanning_bound(10, 0.1, 0.0), "noise_scale must be positive"),
    (lambda: theory.spanning_bound(10, 0.1, strength=2.0), "strength must be at most norm_bound"),
    (lambda: theory.ball_bound(ball(4, 1), -1), "horizon must be positive"),
    (lambda: theory.ball_bound(ball(4, 1), 9, reach=0.0), "reach must be positive"),
    (lambda: theory.ball_bound(ball(4, 1, noise=0.0), 9), "noise_scale must be positive"),
    (
        lambda: theory.price_of_protection(synthetic(4, 1, 1, "fixed:9")),
        "actions must be the unit ball for this price, got Arms",
    ),
    (lambda: theory.ball_bound(synthetic(4, 1, 1, 9), 9), "actions must be the unit ball"),
    (
        lambda: theory.expected_price(ss.Problem(4, 3, 3, noise_scale=0.1)),
        "needs subspace_dim = n_protected <= dim - 2",
    ),
    (
        lambda: theory.expected_price(ss.Problem(4, 1, 1, noise_scale=0.1, action_bound=0.5)),
        "action_bound must be at least 1",
    ),
    (
        lambda: theory.price_of_protection(synthetic(6, 4, 2, "ball")),
        "protected vectors must be independent",
    ),
    (
        lambda: theory.price_of_protection(
            Instance(np.eye(3)[[0, 0, 1, 2]], ss.UnitBall(3), noise_scale=0.1)
        ),
        "some direction must be left",
    ),
    (
        lambda: theory.price_of_protection(
            Instance(np.eye(3)[:2], ss.UnitBall(3), noise_scale=0.1, tolerance=0.1)
        ),
        "for the projected reward",
    ),
    (lambda: spanning(1000, 3), r"which must lie in 1\.\.2"),
    (lambda: unspanned(0), r"which must lie in 1\.\.2|which must be"),
]


@pytest.mark.parametrize(("call", "sentence"), SAID)
def test_what_the_proofs_do_not_cover_is_refused_in_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
