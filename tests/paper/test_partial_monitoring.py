"""The reduction of Section 3.1 to linear partial monitoring is not globally observable."""

import numpy as np
import pytest


def shown(arms: np.ndarray, vectors: int) -> np.ndarray:
    """What may be observed of (theta_0, ..., theta_L, theta_perp): e_i (x) a, i = 0..L."""
    outcomes = np.eye(vectors + 1)[:vectors]
    return np.array([np.kron(row, arm) for row in outcomes for arm in arms])


@pytest.mark.parametrize(("dim", "vectors"), [(2, 2), (3, 2), (4, 5)])
def test_no_difference_of_two_rewards_is_in_the_span_of_what_may_be_observed(
    dim: int, vectors: int
) -> None:
    rng = np.random.default_rng(dim)
    arms = rng.standard_normal((6, dim))
    seen = shown(arms, vectors)
    assert np.linalg.matrix_rank(seen) == vectors * dim  # all of theta_0, ..., theta_L
    for first, second in ((0, 1), (2, 5)):
        reward = np.kron(np.eye(vectors + 1)[vectors], arms[first] - arms[second])
        found = np.linalg.lstsq(seen.T, reward, rcond=None)[0]
        off = np.linalg.norm(seen.T @ found - reward)
        assert off == pytest.approx(np.linalg.norm(arms[first] - arms[second]))


def test_the_target_is_among_what_is_observed_unlike_in_print() -> None:
    """Print takes (i, a) in [L] x A: then the target's own block is not spanned either."""
    arms = np.eye(3)
    printed = shown(arms, 3)[3:]
    target = np.kron(np.eye(4)[0], arms[0])
    assert not np.allclose(printed.T @ np.linalg.lstsq(printed.T, target, rcond=None)[0], target)
