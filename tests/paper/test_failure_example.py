"""Section "A Failure of Optimism": two arms in the plane, and when optimism gets stuck on the worse."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import Instance

DELTA, ROUNDS, SEEDS = 0.001, 600, range(4)


def u(angle):
    """The paper's u_alpha."""
    return np.array([np.cos(angle), np.sin(angle)])


TARGET, PROTECTED = u(np.pi / 4), u(0)
ARMS = np.array([u(np.pi / 4), u(np.pi / 2)])  # a_1, a_2

ANGLES = np.linspace(0, np.pi, 7_201)  # lines through the origin, every fortieth of a degree
LINES = np.array([np.cos(ANGLES), np.sin(ANGLES)]).T
NORMALS = np.array([-np.sin(ANGLES), np.cos(ANGLES)]).T
REWARDS = (ARMS @ NORMALS.T) * (
    NORMALS @ TARGET
)  # (2, lines): of each arm, were that line protected


def optimistic_values(centre, precision, reach):
    """Largest reward of each arm over all protected vectors in the ellipse, by scanning lines.

    The line along v meets the ellipse where (v' V c)^2 >= (|c|_V^2 - r^2) |v|_V^2.
    """
    seen = LINES @ (precision @ centre)
    room = centre @ precision @ centre - reach**2
    inside = seen**2 >= room * np.einsum("kj,kj->k", LINES @ precision, LINES)
    return REWARDS[:, inside].max(axis=1)


def plays_of_the_first_arm(rho, R, seed):
    """How often an exact optimist that knows the target and learns the protected vector plays a_1."""
    noise = np.random.default_rng(seed)
    precision, moment, count = rho * np.eye(2), np.zeros(2), 0
    for t in range(ROUNDS):
        reach = R * np.sqrt(2 * np.log((1 + t / rho) / DELTA)) + np.sqrt(rho)
        values = optimistic_values(np.linalg.solve(precision, moment), precision, reach)
        action = ARMS[int(np.argmax(values))]
        count += bool((action == ARMS[0]).all())
        x = action @ PROTECTED + R * noise.standard_normal()
        precision += np.outer(action, action)
        moment += x * action
    return count


def world(R):
    return Instance([TARGET, PROTECTED], ss.Arms(ARMS), noise_scale=R)


def test_the_true_rewards_are_a_half_and_the_root_of_a_half():
    rewards = [world(0.1).reward(arm) for arm in ARMS]
    assert rewards == pytest.approx([0.5, 0.70711], abs=1e-5)
    assert world(0.1).regret(ss.Query(ARMS[0], 1), ss.Arms(ARMS)) == pytest.approx(0.2071, abs=1e-4)


def test_at_the_example_vector_both_arms_are_worth_the_same():
    example = u(0) + u(-np.pi / 4)
    theta = Instance([TARGET, example], ss.Arms(ARMS), norm_bound=2.0)
    assert [theta.reward(arm) for arm in ARMS] == pytest.approx([0.853553] * 2, abs=1e-6)


def test_the_second_arm_is_never_worth_more_than_that_and_the_first_may_be():
    assert REWARDS[1].max() == pytest.approx(0.853553, abs=1e-6)
    assert REWARDS[0].max() == pytest.approx(1.0, abs=1e-6)


def test_playing_the_first_arm_teaches_nothing_about_the_direction_that_matters():
    precision = 0.1 * np.eye(2)
    across = u(-np.pi / 4)
    before = across @ precision @ across
    precision += 50 * np.outer(ARMS[0], ARMS[0])
    assert across @ precision @ across == pytest.approx(before)


def test_the_scan_agrees_with_points_of_the_ellipse():
    rng = np.random.default_rng(0)
    for _ in range(20):
        root = rng.standard_normal((2, 2))
        precision = root @ root.T + 0.5 * np.eye(2)
        centre, reach = rng.standard_normal(2), 0.8
        angles = np.linspace(0, 2 * np.pi, 20_000)
        circle = np.array([np.cos(angles), np.sin(angles)])
        points = (
            centre[:, None] + reach * np.linalg.solve(np.linalg.cholesky(precision).T, circle)
        ).T
        if centre @ precision @ centre < reach**2:
            continue  # the origin lies inside and every line meets the ellipse
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        brute = (ARMS @ TARGET)[:, None] - (ARMS @ points.T) * (points @ TARGET)
        scanned = optimistic_values(centre, precision, reach)
        np.testing.assert_allclose(scanned, brute.max(axis=1), atol=2e-3)


@pytest.mark.full
@pytest.mark.parametrize("seed", SEEDS)
def test_exact_optimism_locks_in_at_rho_a_tenth_and_noise_a_tenth(seed):
    assert plays_of_the_first_arm(rho=0.1, R=0.1, seed=seed) == ROUNDS


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_optimism_does_not_lock_in_at_the_noise_of_the_papers_experiments(seed):
    assert plays_of_the_first_arm(rho=0.1, R=0.001, seed=seed) <= 2


@pytest.mark.full
def test_whether_exact_optimism_locks_in_depends_on_rho_as_well():
    assert all(plays_of_the_first_arm(1.0, 0.3, seed) == ROUNDS for seed in SEEDS)
    few = [plays_of_the_first_arm(1.0, 0.1, seed) for seed in SEEDS]
    assert all(1 < count < 60 for count in few)


def share_of_the_first_arm(R):
    """Share of a_1 among the rounds of ProtectedLinUCB, which must learn the target too, per run."""
    policy = ss.ProtectedLinUCB(world(R).problem)
    runs = ss.simulate_many(policy, world(R), ROUNDS, runs=20)
    return np.array([(trace.arm == 0).mean() for trace in runs])


def test_protected_linucb_leaves_the_first_arm_at_noise_a_tenth():
    """It must learn the target as well, and its surrogate is not exact, so it does not lock in."""
    assert (share_of_the_first_arm(0.1) < 0.1).all()


def test_protected_linucb_locks_in_in_some_runs_at_noise_a_half():
    share = share_of_the_first_arm(0.5)
    assert (share > 0.9).any()
    assert (share < 0.5).any()
