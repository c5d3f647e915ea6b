"""The rank of the protected vectors: what is certain, what is undecided, what a policy assumes."""

import numpy as np
import pytest

from sidestep.core.posterior import Posterior
from sidestep.core.problem import Problem
from sidestep.core.projection import frame, gradient, pooled_frame
from sidestep.core.rank import (
    chi_squared_bound,
    closest_of_rank,
    consistent_rank,
    error_of,
    first_ranks,
    reviewed_ranks,
    spectrum,
)


def belief(theta, noise, counts, seed=0):
    """Posterior after `count` measurements of every vector along uniform directions."""
    rng = np.random.default_rng(seed)
    n, d = theta.shape
    prior = 1 / d
    inverse, centre = np.empty((n, d, d)), np.empty((n, d))
    for v in range(n):
        actions = rng.standard_normal((counts, d))
        actions /= np.linalg.norm(actions, axis=1, keepdims=True)
        feedback = actions @ theta[v] + noise * rng.standard_normal(counts)
        inverse[v] = np.linalg.inv(actions.T @ actions + noise**2 / prior * np.eye(d))
        centre[v] = inverse[v] @ actions.T @ feedback
    return Posterior(centre, inverse, np.full(n, noise)), prior


def low_rank(rank, L=4, d=6, seed=0):
    rng = np.random.default_rng(seed)
    span = np.linalg.qr(rng.standard_normal((d, rank)))[0].T
    theta = np.vstack([rng.standard_normal((1, d)), rng.standard_normal((L, rank)) @ span])
    return theta / np.linalg.norm(theta, axis=1, keepdims=True)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_at_even_precision_the_closest_of_a_rank_is_the_truncated_decomposition(rank):
    rows = np.random.default_rng(1).standard_normal((4, 6))
    left, values, right = np.linalg.svd(rows, full_matrices=False)
    expected = (left[:, :rank] * values[:rank]) @ right[:rank]
    found = closest_of_rank(rows, np.stack([2.0 * np.eye(6)] * 4), rank)
    distance = ((rows - found) ** 2).sum()
    assert distance <= ((rows - expected) ** 2).sum() * 1.001
    assert np.linalg.matrix_rank(found, tol=1e-8) == rank


@pytest.mark.parametrize("rank", [1, 2, 3, 4])
def test_vectors_of_a_rank_are_found_again_from_partial_measurements(rank):
    """Every row is known along three of six directions only; together they fix the subspace."""
    theta = low_rank(rank)[1:]
    rng = np.random.default_rng(2)
    precision = np.empty((4, 6, 6))
    for i in range(4):
        seen = rng.standard_normal((6 if rank > 2 else 4, 6))
        precision[i] = 1e6 * seen.T @ seen + 1e-3 * np.eye(6)
    left = theta - closest_of_rank(theta, precision, rank)
    assert np.einsum("ij,ijk,ik->", left, precision, left) < 1e-3


@pytest.mark.full
@pytest.mark.full
@pytest.mark.parametrize("noise", [1e-3, 0.1])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_smallest_rank_that_is_not_contradicted_is_the_true_one(rank, noise, oracle):
    hits = 0
    for seed in range(30):
        posterior, _ = belief(low_rank(rank, seed=seed), noise, 400, seed)
        hits += consistent_rank(posterior, 0.05) == rank
    assert oracle.at_least(hits, 30, 0.95)


@pytest.mark.full
def test_a_weak_direction_is_taken_for_real_once_it_stands_out():
    """The paper's remark: theta_1 = (1, 0, 0), theta_2 = (1, Delta, 0), R = 0.1."""
    needed = {1.0: (0, 5), 0.3: (5, 30), 0.1: (30, 300), 0.03: (100, 3000), 0.01: (300, 30_000)}
    for weak, (few, many) in needed.items():
        theta = np.array([[0.6, 0.0, 0.8], [1.0, 0.0, 0.0], [1.0, weak, 0.0]])
        ranks = {
            count: [consistent_rank(belief(theta, 0.1, count, seed)[0], 0.05) for seed in range(20)]
            for count in (few, many)
        }
        assert np.mean(ranks[few]) < 1.5, weak
        assert np.mean(ranks[many]) == 2.0, weak


def test_the_error_bound_holds_for_all_vectors_together(oracle):
    theta, failures = low_rank(2), 0
    for seed in range(200):
        posterior, prior = belief(theta, 0.1, 50, seed)
        error = error_of(posterior, 1.0, prior, 0.1)
        failures += np.linalg.norm(posterior.mean[1:] - theta[1:], 2) > error
    assert oracle.at_most(failures, 200, 0.1)


def test_the_spectrum_keeps_apart_what_is_certain_and_what_is_open():
    posterior, prior = belief(low_rank(2), 0.01, 4000)
    seen = spectrum(posterior, 1.0, prior, 0.05, resolution=0.2)
    assert (seen.values[:-1] >= seen.values[1:]).all()
    assert seen.error < 0.05
    assert (seen.separated, seen.undecided) == (2, 0)
    doubtful = spectrum(posterior, 1.0, prior, 0.05, resolution=0.5 * seen.error)
    assert (doubtful.separated, doubtful.undecided) == (2, 2)
    nothing, prior = belief(low_rank(2), 1.0, 0)
    assert spectrum(nothing, 1.0, prior, 0.05, 0.1)[2:] == (0, 4)


def test_noise_passes_the_chi_squared_bound_as_rarely_as_it_says(oracle):
    squares = np.random.default_rng(7).chisquare(8, 20_000)
    assert oracle.at_most(int((squares > chi_squared_bound(8, 0.01)).sum()), 20_000, 0.01)


@pytest.mark.parametrize("n_protected", [3, 5])
def test_rank_d_is_never_assumed_nor_doubted_as_nothing_would_be_left_of_the_target(n_protected):
    problem = Problem(3, n_protected, noise_scale=0.01, resolution=0.01)
    assert first_ranks(problem) == (1, 2)
    posterior, prior = belief(low_rank(3, n_protected, 3), 0.01, 200)
    assert consistent_rank(posterior, 0.05) == 3  # what was measured is of rank d
    assert reviewed_ranks(problem, posterior, prior, 0.05) == (2, 2)


def test_nothing_is_left_of_a_target_in_a_span_of_full_rank():
    """To the last bit: what rounding left there decided, and another machine decided otherwise."""
    vectors = np.random.default_rng(3).standard_normal((4, 3))
    for made in (frame(vectors, 3), pooled_frame(vectors, np.array([1.0, 2.0, 0.5, 1.0]), 3)):
        assert not made.rest.any()
        assert not gradient(made, vectors[1]).any()
