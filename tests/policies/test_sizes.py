"""Numbers of absurd size: refused in one sentence, or played without an infinity."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.policies.catalog import POLICIES

ARMS = np.random.default_rng(3).standard_normal((5, 4)) / 6
LEAST_SQUARES = [
    ss.ProtectedLinUCB,
    ss.RoundRobinLinUCB,
    ss.EpsilonGreedy,
    ss.OFUL,
    ss.ExploreThenCommit,
    ss.Uniform,
]


@pytest.mark.parametrize("policy", LEAST_SQUARES)
def test_actions_so_long_that_rho_is_lost_to_rounding_are_refused(policy, refusal):
    """Before, the evidence became infinite after a few rounds."""
    problem = ss.Problem(4, 2, subspace_dim=1, action_bound=1e8, norm_bound=1e9)
    sentence = refusal(policy, problem)
    assert sentence.startswith("action_bound must be at most ")
    assert sentence.endswith("got 1e+08")


def test_a_given_rho_of_a_posterior_is_checked_and_a_learned_level_counts(refusal):
    long = ss.Problem(4, 2, subspace_dim=1, action_bound=1e6)
    assert "with rho=1" in refusal(ss.DirectedThompson, long, rho=1.0)
    ss.DirectedThompson(long)
    ss.OFUL(ss.Problem(4, 2, subspace_dim=1, action_bound=9e4))
    levels = ss.Problem(4, 2, tolerance=0.2, action_bound=9e4, intercept=True)
    assert "at most" in refusal(ss.EpsilonGreedy, levels)  # a level is 2 A sqrt(d) long


PLAYED = [(name, 9e4) for name in POLICIES]
PLAYED += [(name, 1e8) for name in POLICIES if POLICIES[name] not in LEAST_SQUARES]


@pytest.mark.parametrize(("name", "length"), PLAYED)
def test_the_longest_actions_that_are_accepted_leave_the_evidence_finite(name, length):
    problem = ss.Problem(4, 2, subspace_dim=1, action_bound=length, norm_bound=1e3)
    policy, rng = POLICIES[name](problem), np.random.default_rng(1)
    arms, state = ss.Arms(length * ARMS), policy.init()
    theta = 300 * rng.standard_normal((3, 4))
    for turn in range(300):
        query = ss.Query(arms.vectors[0], turn % 3)
        if turn % 3 == 0:
            query = policy.ask(state, arms, rng).query
        state = policy.tell(state, query, float(theta[query.index] @ query.action))
        assert all(np.isfinite(part).all() for part in state.evidence)
