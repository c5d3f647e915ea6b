import math

import numpy as np
import pytest

from sidestep.environments import blind_spot, blind_spot_family, failure, lower_bound
from sidestep.environments.hard import is_blind_spot
from sidestep.errors import InputError

HORIZONS = (256, 1000, 30_000, 10**6)


def rewards(instance, arms):
    return np.array([instance.reward(arm) for arm in arms.vectors])


def menus(instance):
    return instance.actions.arm_sets


def test_the_arms_of_the_failure_example_earn_a_half_and_root_a_half():
    instance = failure()
    np.testing.assert_allclose(
        rewards(instance, instance.actions), [0.5, math.sqrt(0.5)], atol=1e-12
    )
    assert instance.problem.subspace_dim == 1


def test_the_vector_that_keeps_the_optimist_hoping_ties_the_two_arms():
    """docs/deviations.md, D: both arms have the reward cos^2(pi/8) under u(0) + u(-pi/4), a tie."""
    instance = failure()
    hoped = np.array([1 + math.cos(math.pi / 4), -math.sin(math.pi / 4)])
    hoped /= np.linalg.norm(hoped)
    left = instance.theta[0] - (instance.theta[0] @ hoped) * hoped
    values = instance.actions.vectors @ left
    np.testing.assert_allclose(values, math.cos(math.pi / 8) ** 2, atol=1e-12)


def test_the_worse_arm_of_the_failure_example_never_shows_what_matters():
    hidden = np.array([math.cos(-math.pi / 4), math.sin(-math.pi / 4)])
    first, second = failure().actions.vectors
    assert abs(first @ hidden) < 1e-12
    assert abs(second @ hidden) > 0.7


@pytest.mark.parametrize("horizon", HORIZONS)
def test_rewards_of_the_lower_bound_pair_are_the_printed_ones(horizon):
    a = horizon**-0.25
    expected = {
        1: [
            math.sin(a) * math.cos(a),
            math.sin(2 * a) * math.cos(a),
            math.sin(3 * a) * math.cos(a),
        ],
        2: [0.0, math.sin(3 * a), math.sin(2 * a)],
    }
    for which in (1, 2):
        instance = lower_bound(horizon, which)
        two, three = menus(instance)
        assert (len(two), len(three)) == (2, 3)
        np.testing.assert_array_equal(two.vectors, three.vectors[:2])
        np.testing.assert_allclose(rewards(instance, three), expected[which], atol=1e-12)
        np.testing.assert_allclose(instance.actions.odds, [0.5, 1.0])


@pytest.mark.parametrize("horizon", HORIZONS)
def test_the_projection_of_instance_two_has_positive_off_diagonals(horizon):
    """docs/deviations.md, C1: print has a minus there, and rewards that need the plus."""
    a = horizon**-0.25
    instance = lower_bound(horizon, 2)
    projection = np.eye(2) - np.outer(instance.theta[1], instance.theta[1])
    off = 0.5 * math.sin(2 * a)
    expected = [[math.sin(a) ** 2, off], [off, math.cos(a) ** 2]]
    np.testing.assert_allclose(projection, expected, atol=1e-12)
    np.testing.assert_allclose(instance.theta_perp, expected @ instance.theta[0], atol=1e-12)


@pytest.mark.parametrize("horizon", HORIZONS)
def test_gaps_of_the_lower_bound_pair(horizon):
    """docs/deviations.md, C2: 0.78 alpha and 0.80 alpha, not the printed 1 - alpha."""
    a = horizon**-0.25
    gaps = {}
    for which in (1, 2):
        instance = lower_bound(horizon, which)
        ordered = np.sort(rewards(instance, menus(instance)[1]))
        gaps[which] = ordered[-1] - ordered[-2]
    assert gaps[1] == pytest.approx(math.cos(a) * (math.sin(3 * a) - math.sin(2 * a)), abs=1e-12)
    assert 0.78 * a <= gaps[1] < 1 - a
    assert gaps[2] >= 0.80 * a


@pytest.mark.parametrize("horizon", HORIZONS)
def test_a_query_barely_tells_the_pair_apart(horizon):
    """docs/deviations.md, C3: the largest difference is cos 2a - cos 3a <= 2.5 a^2; targets agree."""
    a = horizon**-0.25
    first, second = (lower_bound(horizon, which) for which in (1, 2))
    np.testing.assert_array_equal(first.theta[0], second.theta[0])
    shown = np.abs(menus(first)[1].vectors @ (first.theta[1] - second.theta[1]))
    assert shown.max() == pytest.approx(math.cos(2 * a) - math.cos(3 * a), abs=1e-12)
    assert shown.max() <= 2.5 * a**2
    assert horizon * shown.max() ** 2 <= 6.25


def test_the_corrected_angle_keeps_the_divergence_at_any_noise():
    """docs/deviations.md, C4: with sqrt(R) T^(-1/4) the divergence is below 3.125; as printed not."""

    def divergence(noise_scale, *, corrected):
        pair = [lower_bound(10**4, k, noise_scale, corrected=corrected) for k in (1, 2)]
        shown = menus(pair[0])[1].vectors @ (pair[0].theta[1] - pair[1].theta[1])
        return 10**4 * (shown**2).max() / (2 * noise_scale**2)

    for noise_scale in (0.001, 0.1, 1.0):
        assert 2.9 < divergence(noise_scale, corrected=True) <= 3.125
    assert divergence(1.0, corrected=False) <= 3.125
    assert divergence(0.1, corrected=False) > 21


def test_the_angle_can_be_given():
    expected = lower_bound(10_000, 2).theta
    np.testing.assert_array_equal(lower_bound(77, 2, alpha=10_000**-0.25).theta, expected)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((0, 1), "horizon must be an integer >= 1"),
        ((1000, 3), r"which must lie in 1\.\.2, got 3"),
        ((6, 1), r"alpha must lie below pi/5 = 0\.6283.*got 0\.6389"),
        ((1000, 1, 1.0, -0.1), "alpha must be positive"),
        ((1000, 1, -1.0), "noise_scale must be positive"),
    ],
)
def test_a_pair_that_proves_nothing_is_refused(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        lower_bound(*arguments)


def test_the_good_arms_of_the_blind_spot_cannot_show_what_separates_them():
    instance = blind_spot(0.3)
    arms = instance.actions.vectors
    np.testing.assert_allclose(
        rewards(instance, instance.actions), [-0.019, 0.181, -0.334], atol=1e-3
    )
    np.testing.assert_array_equal(arms[:2, 2], 0)
    assert abs(instance.theta_perp[2]) > 0.3
    np.testing.assert_array_equal(arms[2], [0, 0, 1])
    assert instance.problem.noise_scale == 0.3


def seen(theta, arms):
    """Rewards of the arms, by an independent formula."""
    target, protected = theta
    return arms @ (target - (target @ protected) / (protected @ protected) * protected)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(200))
def test_every_instance_of_the_family_is_a_blind_spot(seed):
    instance = blind_spot_family(seed)
    theta, arms = instance.theta, instance.actions.vectors
    truth, looks = seen(theta, arms), seen(theta * [[1, 1, 1], [1, 1, 0]], arms)
    np.testing.assert_allclose(np.linalg.norm(arms, axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(arms[:2, 2], 0)
    np.testing.assert_array_equal(arms[2], [0, 0, 1])
    assert 0.05 <= abs(truth[0] - truth[1]) <= 0.4
    assert np.argmax(truth[:2]) != np.argmax(looks[:2])
    assert truth.argmin() == 2
    assert max(truth) - truth[2] >= 0.2
    assert max(looks) - looks[2] >= 0.2


def test_two_seeds_of_the_family_are_two_instances():
    first, again, second = (blind_spot_family(seed, 0.3).theta for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, second).any()
    assert blind_spot_family(0, 0.3).problem.noise_scale == 0.3


def test_the_blind_spot_belongs_to_the_family_unless_something_hidden_is_shown():
    instance = blind_spot()
    theta, arms = instance.theta, instance.actions.vectors
    assert is_blind_spot(theta, arms)
    assert not is_blind_spot(theta * [[1, 1, 1], [1, 1, 0]], arms)  # nothing hidden
    assert not is_blind_spot(theta, arms * [[1], [1], [-1]])  # the third arm is the best
    assert not is_blind_spot(theta, arms[[0, 0, 2]])  # nothing contested
