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


def test_tolerances_beside_which_the_target_is_lost_to_rounding_are_refused(refusal):
    """Before, values reached 1e35, and the target's part of them was below their last digit."""
    huge = {"action_bound": 1e8, "norm_bound": 1e9}
    sentence = refusal(ss.Problem, 4, 2, tolerance=0.1, **huge)
    assert sentence.startswith("tolerance must be at least 1e+05 wide")
    assert refusal(ss.Problem, 4, 2, tolerance=1e16, penalty=1e13, **huge).startswith("penalty")
    problem = ss.Problem(4, 2, tolerance=1e16, noise_scale=1e15, **huge)
    small = ss.Problem(4, 2, tolerance=0.1, noise_scale=0.01)
    arms, rng = (
        ss.Arms(np.random.default_rng(3).standard_normal((5, 4)) / 6),
        np.random.default_rng(0),
    )
    theta = np.random.default_rng(1).standard_normal((3, 4)) / 3
    one, other = ss.DirectedThompson(problem), ss.DirectedThompson(small)
    told, here = one.init(), other.init()
    long = ss.Arms(1e8 * arms.vectors)
    for turn in range(30):
        row, index = turn % 5, turn % 3
        value = float(theta[index] @ arms.vectors[row]) + 0.01 * rng.standard_normal()
        told = one.tell(told, ss.Query(long.vectors[row], index), 1e17 * value)
        here = other.tell(here, ss.Query(arms.vectors[row], index), value)
    large, usual = ss.recommend(one, told, long), ss.recommend(other, here, arms)
    assert large.arm == usual.arm  # another unit changes nothing
    assert large.reward.estimate == pytest.approx(1e17 * usual.reward.estimate, rel=1e-6)
