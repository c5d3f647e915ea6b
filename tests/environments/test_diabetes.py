import sys

import numpy as np
import pytest

from sidestep.environments import diabetes
from sidestep.errors import InputError


@pytest.mark.full
@pytest.mark.parametrize(("threshold", "rank"), [(0.1, 4), (0.25, 3), (0.05, 5)])
def test_the_told_rank_is_the_true_rank(threshold, rank):
    instance = diabetes(threshold=threshold)
    assert instance.theta.shape == (7, 13)
    assert instance.problem.subspace_dim == rank
    values = np.linalg.svd(instance.theta[1:], compute_uv=False)
    assert values[rank - 1] > threshold * values[0]
    np.testing.assert_allclose(values[rank:], 0, atol=1e-12)


def test_the_spectrum_is_that_of_the_docstring():
    values = np.linalg.svd(diabetes(threshold=0.001).theta[1:], compute_uv=False)
    np.testing.assert_allclose(values / values[0], [1, 0.45, 0.27, 0.18, 0.07, 0.008], atol=5e-3)


def test_cutting_to_rank_four_moves_the_protected_vectors_by_six_percent():
    whole, cut = diabetes(threshold=0.001).theta, diabetes().theta
    np.testing.assert_array_equal(whole[0], cut[0])
    moved = np.linalg.norm(whole[1:] - cut[1:]) / np.linalg.norm(whole[1:])
    assert moved == pytest.approx(0.064, abs=1e-3)


def test_arms_are_unit_vectors_that_span():
    instance = diabetes(noise_scale=0.02)
    vectors = instance.actions.vectors
    assert vectors.shape == (442, 13)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-12)
    assert np.linalg.cond(vectors) == pytest.approx(3.03, abs=0.01)
    assert np.linalg.norm(instance.theta, axis=1).max() == pytest.approx(1)
    assert instance.problem.noise_scale == 0.02


def test_ignoring_the_serum_measures_costs_most_of_the_reward():
    instance = diabetes()
    vectors = instance.actions.vectors
    best = instance.best_reward(instance.actions)
    greedy = instance.reward(vectors[np.argmax(vectors @ instance.theta[0])])
    assert best == pytest.approx(0.313, abs=1e-3)
    assert best - greedy == pytest.approx(0.176, abs=1e-3)


def test_without_scikit_learn_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(InputError, match=r"scikit-learn.*pip install 'sidestep\[data\]'"):
        diabetes()


def test_a_threshold_is_a_share():
    with pytest.raises(InputError, match="threshold must lie strictly between 0 and 1, got 2"):
        diabetes(threshold=2)
