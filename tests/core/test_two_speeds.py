"""Kernels give the same numbers interpreted and compiled; what follows from sums, to the last bit."""

import numpy as np
import pytest

from sidestep.core import numba_backend as compiler
from sidestep.core.confidence import LOGDET, Confidence, ellipsoids
from sidestep.core.estimator import REFACTOR, absorb_with, fade, no_evidence

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not compiler.is_installed(), reason="there is nothing to compile with"),
]

TO_THE_LAST_BIT = (
    *("counts", "gram", "gram_low", "moment", "moment_low", "centre", "inverse", "weight"),
    *("misfit", "last", "streak"),
)  # all but the log-determinant: a logarithm of numpy and one of the C library may differ in it


def grown(absorb, forget, discount=1.0, rounds=2 * REFACTOR + 10):
    """Evidence of two vectors in R^5, past the rounds in which it is computed from its sums anew."""
    rng, rho = np.random.default_rng(5), np.array([0.1, 1e-6])
    evidence, gain = no_evidence(rho, 5), np.empty(5)
    for t in range(2 * rounds):
        action = rng.standard_normal(5) / 3
        if discount < 1.0:
            forget(evidence, rho, discount)
        absorb(gain, evidence, rho, action, t % 2, float(rng.standard_normal()))
    return evidence


@pytest.mark.full
@pytest.mark.parametrize(("discount", "rounds"), [(1.0, 2 * REFACTOR + 10), (0.95, 20)])
def test_evidence_is_the_same_interpreted_and_compiled(discount, rounds):
    slow = grown(absorb_with, fade, discount, rounds)
    fast = grown(compiler.compiled(absorb_with), compiler.compiled(fade), discount, rounds)
    for name in TO_THE_LAST_BIT:
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), err_msg=name)
    np.testing.assert_allclose(fast.logdet, slow.logdet, rtol=1e-14)


@pytest.mark.full
def test_confidence_sets_are_the_same_interpreted_and_compiled():
    evidence = grown(absorb_with, fade, rounds=20)
    confidence = Confidence(np.array([0.1, 1e-6]), np.ones(2), 1.0, 1.0, 0.001, LOGDET)
    rows = np.array([1, 0])
    slow = ellipsoids(confidence, evidence, rows)
    fast = compiler.compiled(ellipsoids)(confidence, evidence, rows)
    np.testing.assert_array_equal(fast.centre, slow.centre)
    np.testing.assert_array_equal(fast.inverse, slow.inverse)
    np.testing.assert_allclose(fast.radius, slow.radius, rtol=1e-14)
