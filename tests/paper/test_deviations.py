"""Where the code differs from print, one test per item: what print does, what the code does instead.

Letters and numbers are those of docs/deviations.md, which cites these tests by name.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import sidestep as ss
from sidestep.core import core_set as coreset
from sidestep.core.arm_forms import Menu
from sidestep.core.confidence import radius
from sidestep.core.core_set import best_subset, certified_factor, is_check, needed_eigenvalue
from sidestep.core.linalg import plug_in
from sidestep.core.projection import first_order_values
from sidestep.environments import FreshArms, Instance, synthetic
from sidestep.errors import CoreSetError
from sidestep.experiments.simulate import play

RHO, DELTA = 0.1, 0.001


def rng(seed=0):
    return np.random.default_rng(seed)


def u(angle):
    """The paper's u_alpha."""
    return np.array([np.cos(angle), np.sin(angle)])


def last_state(policy, instance, rounds, seed=0):
    *_, last = play(policy, instance, rounds, seed)
    return last.state


def core_set_rounds(policy, instance, horizon):
    return int((ss.simulate(policy, instance, horizon).phase == "core-set").sum())


def quiet(theta, told_noise, source=None, **told):
    """A world without noise whose policy assumes some: estimates are exact, confidence sets are not."""
    theta = np.asarray(theta, dtype=float)
    instance = Instance(theta, source or ss.UnitBall(theta.shape[1]), noise_scale=0.0, **told)
    d, L = instance.problem.dim, instance.problem.n_protected
    rank = instance.problem.subspace_dim
    return instance, ss.Problem(d, L, rank, noise_scale=told_noise)


def threshold(problem, delta):
    """What print compares lambda_min with after one sweep: 16 L R (M+R) (d log 6 + log 1/delta)."""
    d, L, R, M = problem.dim, problem.n_protected, problem.noise[0], problem.norm_bound
    return 16 * L * R * (M + R) * (d * np.log(6) + np.log(1 / delta))


def value_at(action, state, problem, surrogate):
    """The optimistic value of one arm under a surrogate."""
    policy = ss.ProtectedLinUCB(problem, surrogate=surrogate)
    return policy.ask(state, ss.Arms(action[None]), rng()).value


def sets_of(state, policy):
    """Centres, precisions V_i and radii of all vectors."""
    d = policy.problem.dim
    reach = [radius(policy.knobs.confidence, state.evidence, i) for i in range(len(state.core_set))]
    return state.evidence.centre, state.evidence.gram + policy.rho * np.eye(d), np.array(reach)


def reward_at(action, theta):
    """<a, Proj_perp theta_0> at any choice of the vectors."""
    basis = np.linalg.qr(theta[1:].T)[0]
    return action @ (theta[0] - basis @ (basis.T @ theta[0]))


def appendix(action, centre, precision, reach, sign):
    """The appendix's choice of vectors: print has sign = +1, its proof needs -1."""
    theta = centre.copy()
    for i in range(len(theta)):
        step = reach[i] / np.sqrt(action @ precision[i] @ action)
        far = step * (action @ action if sign < 0 else np.linalg.norm(action))
        share = 1.0 if i == 0 else sign * np.clip(action @ centre[i] / far, -1, 1)
        theta[i] += share * step * action
    return theta


def learned(noise=0.2, rounds=60, seed=3):
    """A player with L = s = 1 in R^3 after some rounds, and the state it is in."""
    instance = synthetic(3, 1, 1, FreshArms(10, 3), noise_scale=noise, seed=seed)
    policy = ss.ProtectedLinUCB(instance.problem)
    return policy, last_state(policy, instance, rounds)


# A. What would break or change an implementation


def test_a1_printed_index_rule_never_measures_the_target_and_pays_for_it():
    instance = synthetic(4, 2, 2, ss.UnitBall(4), noise_scale=0.001, seed=1)
    printed = ss.simulate(ss.ProtectedLinUCB.as_printed(instance.problem), instance, 250)
    intended = ss.simulate(ss.ProtectedLinUCB.as_intended(instance.problem), instance, 250)
    assert printed.counts[0] == 0
    assert intended.counts[0] > 0
    assert printed.cumulative_regret[-1] > 10 * intended.cumulative_regret[-1]


def test_a2_printed_sign_doubles_what_the_proof_needs_to_vanish():
    """And print has |a| where |a|^2 belongs: the same for unit arms only."""
    policy, state = learned()
    centre, precision, reach = sets_of(state, policy)
    free = 0
    for draw in rng(1).standard_normal((300, 3)):
        action = draw / np.linalg.norm(draw) / (1 if free < 20 else 3)  # unit arms, then short ones
        along, size = action @ centre[1], np.linalg.norm(action)
        printed = appendix(action, centre, precision, reach, sign=1)
        corrected = appendix(action, centre, precision, reach, sign=-1)
        step = reach[1] / np.sqrt(action @ precision[1] @ action)
        if abs(along) < min(step * size, step * size**2):
            assert action @ printed[1] == pytest.approx((1 + size) * along, abs=1e-12)
            assert action @ corrected[1] == pytest.approx(0.0, abs=1e-12)
            free += 1
        for word, theta in (("printed", printed), ("corrected", corrected)):
            found = value_at(action, state, policy.problem, word)
            assert found == pytest.approx(reward_at(action, theta), abs=1e-9)
    assert free >= 40


@pytest.mark.full
def test_a3_only_along_the_inverse_is_the_surrogate_tight_at_the_optimum():
    short = {"printed": [], "corrected": []}
    for seed in range(3):
        instance = synthetic(4, 2, 2, ss.UnitBall(4), noise_scale=0.1, seed=seed)
        policy = ss.ProtectedLinUCB(instance.problem)
        state = last_state(policy, instance, 30)
        best = policy.ask(state, instance.actions, rng())
        action, told = best.query.action, instance.problem
        assert value_at(action, state, told, "ellipsoid") == pytest.approx(best.value, rel=1e-9)
        for word, shares in short.items():
            shares.append(value_at(action, state, told, word) / best.value)
    assert max(short["corrected"]) < 1 - 1e-3
    assert np.median(short["printed"]) < np.median(short["corrected"])


def test_a4_a_decision_reads_every_vectors_own_set_as_it_was_before_the_round():
    policy, state = learned(seed=5)
    centre, precision, reach = sets_of(state, policy)
    right = np.linalg.svd(centre[1:])[2]
    action = (right[0] + right[1]) / np.sqrt(2)  # the set does not let theta_1 go all the way
    found = value_at(action, state, policy.problem, "corrected")
    own = appendix(action, centre, precision, reach, sign=-1)
    assert found == pytest.approx(reward_at(action, own), abs=1e-12)
    after = precision + np.outer(action, action)  # print: V_t, which holds the round's own action
    late = appendix(action, centre, after, reach, sign=-1)
    borrowed = appendix(action, centre, precision[[0, 0]], reach[[0, 0]], sign=-1)
    assert abs(found - reward_at(action, late)) > 1e-3
    assert abs(found - reward_at(action, borrowed)) > 1e-3


def test_a5_core_set_updates_the_vector_that_was_queried():
    """Print updates Theta_i with (e_i, x), i the number of the axis."""
    theta = np.array([[0.8, 0.4, 0.2], [0.1, 0.3, 0.9], [0.5, 0.5, -0.5]])
    instance, told = quiet(theta, 0.0, subspace_dim=1)
    policy = ss.ProtectedLinUCB(told, design="basis")
    state = policy.init()
    for turn in play(policy, instance, 6):
        index, axis = turn.decision.query.index, int(turn.decision.query.action.argmax())
        grown = turn.state.evidence.counts - state.evidence.counts
        assert grown.tolist() == [int(row == index) for row in range(3)]
        assert turn.state.evidence.moment[index, axis] == pytest.approx(theta[index, axis])
        state = turn.state
    for vector in (1, 2):
        assert (state.evidence.gram[vector] == np.eye(3)).all()
        np.testing.assert_allclose(state.evidence.moment[vector], theta[vector], atol=1e-15)
    assert not state.evidence.moment[0].any()


def test_a6_known_lambda_min_finds_the_rank_that_the_printed_loop_cannot():
    d, L, s, R, eigenvalue = 5, 4, 2, 0.05, 0.4
    instance = synthetic(d, L, s, ss.UnitBall(d), noise_scale=R, seed=1)
    best = best_subset(instance.theta[1:], s)
    assert best.eigenvalue > eigenvalue
    # print: sweeps while the error is small, so not at all, then takes k from no data ...
    error = 8 * L * R * (1 + R) * (d * np.log(6) + np.log(1 / DELTA))
    assert not error / np.sqrt(1) <= eigenvalue
    # ... and counts from the small end: even the truth would give d - rank + 1
    spectrum = np.linalg.eigvalsh(instance.theta[1:].T @ instance.theta[1:])
    k = 1 + int(np.flatnonzero(spectrum >= eigenvalue)[0])
    assert k == d - s + 1 != s
    # the code: sweeps until e_n <= 0.2113 sqrt(lambda_min), then counts what exceeds half of it
    x, m = np.log(2 / DELTA), d * L
    tail = R * np.sqrt(m + 2 * np.sqrt(m * x) + 2 * x)
    sweeps = int(np.ceil((tail / (0.5 * (1 - 1 / np.sqrt(3)) * np.sqrt(eigenvalue))) ** 2))
    told = ss.Problem(d, L, noise_scale=R, eigenvalue=eigenvalue)
    policy = ss.ProtectedLinUCB(told, design="basis")
    state = last_state(policy, instance, d * L * sweeps)
    assert sweeps > 1
    assert last_state(policy, instance, d * L * sweeps - 1).core_set.sum() == 0
    chosen = np.flatnonzero(state.core_set)
    assert len(chosen) == s + 1
    rows = instance.theta[chosen[1:]]
    assert np.linalg.eigvalsh(rows @ rows.T)[0] >= best.eigenvalue / 3


def test_a7_lambda_min_of_a_dependent_set_is_zero():
    lean = np.array([1.0, 0.5, 0.0]) / np.sqrt(1.25)
    twins = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], lean])

    def least_nonzero(rows):  # print: the minimum non-zero eigenvalue of the d x d matrix
        spectrum = np.linalg.eigvalsh(twins[rows].T @ twins[rows])
        return spectrum[spectrum > 1e-12][0]

    assert least_nonzero([0, 1]) == pytest.approx(2.0)
    assert least_nonzero([0, 2]) < 1.0
    best = best_subset(twins, 2)
    assert best.rows.tolist() == [0, 2]
    assert best.eigenvalue == pytest.approx(1 - 1 / np.sqrt(1.25))
    assert best_subset(twins[:2], 2).eigenvalue == 0.0
    instance = Instance(np.vstack([[0.0, 0.0, 1.0], twins]), ss.UnitBall(3), noise_scale=1e-4)
    chosen = last_state(ss.ProtectedLinUCB(instance.problem), instance, 9).core_set
    assert chosen.tolist() == [1, 1, 0, 1]


def test_a8_samples_of_core_set_are_reused_or_forgotten_but_never_mixed():
    """Print resets V and leaves estimate and count as they were."""
    instance = synthetic(3, 2, 1, ss.UnitBall(3), noise_scale=1e-4)
    kept = last_state(ss.ProtectedLinUCB(instance.problem), instance, 6).evidence
    assert kept.counts.tolist() == [0, 3, 3]
    np.testing.assert_allclose(kept.centre[1], instance.theta[1] / (1 + RHO), atol=1e-3)
    forgotten = last_state(ss.ProtectedLinUCB(instance.problem, reset=True), instance, 6).evidence
    assert forgotten.counts.tolist() == [0, 0, 0]
    assert not forgotten.gram.any()
    assert not forgotten.moment.any()
    assert not forgotten.centre.any()
    assert (forgotten.inverse == np.eye(3) / RHO).all()
    assert ss.ProtectedLinUCB.as_printed(instance.problem).reset
    assert not ss.ProtectedLinUCB.as_intended(instance.problem).reset


def test_a9_core_set_judges_plain_means_and_not_ridge_estimates():
    rho = 10.0
    instance, told = quiet([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], 0.001)
    policy = ss.ProtectedLinUCB.as_intended(told, rho=rho)
    needed = threshold(told, DELTA / 4)
    ridge = (1 / (1 + rho)) ** 2  # lambda_min of the ridge estimate after one sweep
    assert ridge < needed < 1.0
    assert core_set_rounds(policy, instance, 50) == 6
    centre = last_state(policy, instance, 6).evidence.centre
    assert centre[1, 0] == pytest.approx(1 / (1 + rho))


def test_a10_the_clock_counts_rounds_and_the_test_counts_finished_sweeps():
    """One round is one round: n sweeps are d L n of them; print's sqrt(t) is one sweep ahead."""
    instance, told = quiet([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], 0.004)
    d_l = 3 * 2
    printed = int(np.floor(threshold(told, DELTA) ** 2))  # least n with 1 > threshold / sqrt(n+1)
    intended = int(np.floor(threshold(told, DELTA / 4) ** 2)) + 1  # with 1 > threshold / sqrt(n)
    assert 1 < printed < intended
    horizon = d_l * intended + 20
    for preset, sweeps in (("as_printed", printed), ("as_intended", intended)):
        policy = getattr(ss.ProtectedLinUCB, preset)(told)
        trace = ss.simulate(policy, instance, horizon)
        assert (trace.phase == "core-set").sum() == d_l * sweeps
        assert len(trace.regret) == horizon
    rule = ss.ProtectedLinUCB.as_intended(told).rule
    late = needed_eigenvalue(rule, 3, 2, 5.0, 5)
    ahead = needed_eigenvalue(rule._replace(kind=coreset.PRINTED), 3, 2, 4.0, 4)
    assert late == ahead


@pytest.mark.full
def test_a11_a_rank_above_the_truth_ends_in_an_error_and_not_never():
    theta = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.5, 0.0, 0.0]]
    instance = Instance(theta, ss.UnitBall(3), noise_scale=0.001, subspace_dim=2)
    for word in ("printed", "certified"):
        policy = ss.ProtectedLinUCB(instance.problem, coreset=word, max_core_set_rounds=9_000)
        with pytest.raises(CoreSetError, match="subspace_dim is too large"):
            ss.simulate(policy, instance, 20_000)
    for preset in (ss.ProtectedLinUCB.as_printed, ss.ProtectedLinUCB.as_intended):
        assert preset(instance.problem).max_core_set_rounds < np.inf


def test_a12_where_l_equals_s_no_round_is_spent_and_print_spends_a_sweep():
    instance = synthetic(4, 2, 2, ss.UnitBall(4), noise_scale=0.0)
    rounds = {
        name: core_set_rounds(make(instance.problem), instance, 20)
        for name, make in (
            ("printed", ss.ProtectedLinUCB.as_printed),
            ("intended", ss.ProtectedLinUCB.as_intended),
            ("default", ss.ProtectedLinUCB),
        )
    }
    assert rounds == {"printed": 8, "intended": 0, "default": 0}


def test_a13_core_set_plays_the_basis_off_the_menu_or_arms_of_the_menu():
    arms = ss.Arms(rng(4).standard_normal((12, 3)) / 3)
    instance = synthetic(3, 2, 1, arms, noise_scale=0.0)
    for design in ("basis", "arms"):
        trace = ss.simulate(ss.ProtectedLinUCB(instance.problem, design=design), instance, 20)
        phase = trace.phase == "core-set"
        on_menu = np.array([arms.contains(action) for action in trace.action])
        assert on_menu[~phase].all()
        assert on_menu[phase].all() == (design == "arms")
        assert phase.sum() == 6  # without noise a sweep is enough, whatever rho
    assert ss.ProtectedLinUCB.as_printed(instance.problem).design == "basis"


def test_a14_the_first_action_on_the_ball_is_a_seeded_random_direction(oracle):
    policy = ss.ProtectedLinUCB(ss.Problem(3, 1, 1, noise_scale=0.1))
    ball, state = ss.UnitBall(3), policy.init()
    first = np.array([policy.ask(state, ball, rng(seed)).query.action for seed in range(400)])
    assert (first[0] == policy.ask(state, ball, rng(0)).query.action).all()
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1.0, rtol=1e-12)
    for axis in range(3):
        assert oracle.mean_about(first[:, axis], 0.0)
        assert oracle.mean_about(first[:, axis] ** 2, 1 / 3)


def test_a15_a_set_that_holds_the_origin_constrains_nothing():
    """A protected vector that was never measured may be zero: optimism then looks at the target."""
    told = ss.Problem(3, 1, 1, noise_scale=0.1)
    policy = ss.ProtectedLinUCB(told)
    blind = ss.OFUL(told, delta=policy.knobs.confidence.delta)
    state = policy.init()
    for axis, x in ((0, 0.8), (1, -0.3), (2, 0.2), (0, 0.7)):
        state = policy.tell(state, ss.Query(np.eye(3)[axis], 0), x)
    here = policy.ask(state, ss.UnitBall(3), rng())
    there = blind.ask(replace(state, fingerprint=None), ss.UnitBall(3), rng())
    assert here.value == pytest.approx(there.value, rel=1e-9)
    np.testing.assert_allclose(here.query.action, there.query.action, atol=1e-6)
    for _ in range(300):
        for axis, x in ((0, 0.8), (1, -0.3), (2, 0.2)):  # as it happens, the target's own direction
            state = policy.tell(state, ss.Query(np.eye(3)[axis], 1), x)
    assert policy.ask(state, ss.UnitBall(3), rng()).value < 0.9 * here.value


# B. Constants


def test_b1_delta_is_split_between_core_set_and_the_sets_and_print_spends_it_twice():
    told = ss.Problem(4, 3, 2, noise_scale=0.1)
    intended = ss.ProtectedLinUCB.as_intended(told, delta=DELTA)
    printed = ss.ProtectedLinUCB.as_printed(told, delta=DELTA)
    default = ss.ProtectedLinUCB(told, delta=DELTA)
    L = 3
    for policy in (intended, default):
        assert policy.knobs.confidence.delta * (L + 1) == pytest.approx(DELTA / 2)
    assert intended.rule.delta * L == pytest.approx(DELTA / 2)
    assert default.rule.delta == pytest.approx(DELTA / 2)
    assert printed.knobs.confidence.delta == printed.rule.delta == DELTA


def test_b2_the_certified_rule_pays_for_looking_again_and_again():
    """Print's bound is for one fixed n and is used at a random one."""
    checks = [n for n in range(1, 2000) if is_check(n)]
    assert [is_check(n) for n in checks] == list(range(1, len(checks) + 1))
    assert all(b == (11 * a + 9) // 10 for a, b in pairwise(checks))  # 1.1 a, rounded up
    rule = ss.ProtectedLinUCB(ss.Problem(4, 3, 2, noise_scale=0.1)).rule
    spent = 0.0
    for number, n in enumerate(checks, start=1):
        share = rule.delta / (number * (number + 1))
        error = coreset.error_bound(4, 3, 2, 0.1, float(n), share)
        needed = needed_eigenvalue(rule, 4, 3, float(n), number)
        assert needed == pytest.approx((rule.factor * error) ** 2, rel=1e-12)
        spent += share
    assert 0.9 * rule.delta < spent < rule.delta


def test_b3_the_threshold_has_no_factor_m_and_so_the_units_of_lambda():
    """Measure everything in other units and CORE-SET takes the same rounds."""
    rounds = []
    for unit in (1.0, 0.01, 50.0):
        theta = unit * synthetic(3, 3, 2, 4, seed=5).theta
        source = ss.Arms(np.eye(3))
        instance = Instance(theta, source, noise_scale=0.0, norm_bound=unit, subspace_dim=2)
        told = ss.Problem(3, 3, 2, noise_scale=0.002 * unit, norm_bound=unit)
        policy = ss.ProtectedLinUCB.as_intended(told, rho=RHO)
        rounds.append(core_set_rounds(policy, instance, 2000))
        needed = needed_eigenvalue(policy.rule, 3, 3, 1.0, 1)
        R, M = 0.002 * unit, unit
        without = 16 * 3 * R * (M + R) * (3 * np.log(6) + np.log(2 * 3 / DELTA))
        assert needed == pytest.approx(without, rel=1e-12)
    assert 9 < rounds[0] < 2000
    assert rounds == [rounds[0]] * 3


def test_b7_the_radius_has_one_bound_for_actions_and_one_for_vectors():
    R, d, A, M, rho, delta = 0.3, 3, 2.0, 5.0, 0.4, 0.05
    told = ss.Problem(d, 0, noise_scale=R, norm_bound=M, action_bound=A)
    policy = ss.OFUL(told, rho=rho, delta=delta, radius="printed")
    state = policy.init()
    for t in range(8):
        expected = R * np.sqrt(d * np.log((1 + t * A**2 / rho) / delta)) + np.sqrt(rho) * M
        mixed = R * np.sqrt(d * np.log((1 + t * M**2 / rho) / delta)) + np.sqrt(rho) * M
        found = radius(policy.knobs.confidence, state.evidence, 0)
        assert found == pytest.approx(expected, rel=1e-12)
        assert (found == pytest.approx(mixed, rel=1e-12)) == (t == 0)
        state = policy.tell(state, ss.Query(np.array([0.0, A, 0.0]), 0), 1.0)


def test_b8_lambda_min_enters_by_its_root():
    """Print has |sum theta_i x_i| >= lambda_min |x|, which is false where lambda_min > 1."""
    vectors = np.array([[3.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    least = best_subset(vectors, 2).eigenvalue
    x = np.array([0.0, 1.0])
    length = np.linalg.norm(x @ vectors)
    assert length < least
    assert length == pytest.approx(np.sqrt(least))
    # so the certified rule compares singular values: sigma >= c e leaves ((c-1)/(c+1))^2 lambda
    c, error = certified_factor(1 / 3), 0.1
    assert ((c - 1) / (c + 1)) ** 2 == pytest.approx(1 / 3)
    sigma = c * error
    assert (sigma - error) ** 2 == pytest.approx((sigma + error) ** 2 / 3)
    rule = ss.ProtectedLinUCB(ss.Problem(4, 3, 2, noise_scale=0.1)).rule
    here, quieter = (needed_eigenvalue(rule, 4, 3, n, 1) for n in (1.0, 4.0))
    assert here == pytest.approx(4 * quieter)  # sqrt(lambda) shrinks like the error, 1 / sqrt(n)


# D. The example of section 5.4


def test_b13_the_largest_inner_product_is_no_bound_without_its_absolute_value():
    shown, x = np.array([-1.0, 0.1]), np.array([-2.0, 0.5])
    assert x @ shown > shown.max() * np.abs(x).sum()
    assert x @ shown <= np.abs(shown).max() * np.abs(x).sum()


def test_c7_one_minus_the_cosine_is_not_one_minus_x():
    x = np.linspace(0.01, 0.25, 50)
    assert (1 - np.cos(x) < 1 - x).all()
    assert (np.cos(x) >= 1 - x).all()


@pytest.mark.parametrize(
    ("norm", "locks_in"), [(1.0, False), (1.84, False), (1.86, True), (2.0, True)]
)
def test_d_an_optimist_who_knows_the_norm_does_not_lock_in(norm, locks_in):
    """Along the line that the worse arm never measures, theta_1 + t u(-pi/4), no longer than M."""
    steps = np.linspace(-3, 3, 60_001)
    choices = u(0)[None] + steps[:, None] * u(-np.pi / 4)[None]
    choices = choices[np.linalg.norm(choices, axis=1) <= norm]
    choices = choices / np.maximum(np.linalg.norm(choices, axis=1, keepdims=True), 1e-12)
    target, arms = u(np.pi / 4), np.array([u(np.pi / 4), u(np.pi / 2)])
    left = target - (choices @ target)[:, None] * choices
    hoped = (left @ arms.T).max(axis=0)
    assert (hoped[0] > hoped[1]) == locks_in


def test_d_both_arms_tie_at_the_protected_vector_of_the_example():
    """Print lets a_1 win there; it wins only beyond -22.5 degrees."""
    arms = np.array([u(np.pi / 4), u(np.pi / 2)])

    def rewards(direction):
        theta = [u(np.pi / 4), direction]
        instance = Instance(theta, ss.Arms(arms), norm_bound=2.0)
        return [instance.reward(arm) for arm in arms]

    assert rewards(u(0)) == pytest.approx([0.5, np.sqrt(0.5)])
    example = u(0) + u(-np.pi / 4)
    assert np.linalg.norm(example) == pytest.approx(1.847759, abs=1e-6)
    assert np.degrees(np.arctan2(example[1], example[0])) == pytest.approx(-22.5)
    assert rewards(example) == pytest.approx([np.cos(np.pi / 8) ** 2] * 2)
    assert rewards(u(np.radians(-23)))[0] > rewards(u(np.radians(-23)))[1]
    assert rewards(u(np.radians(-22)))[0] < rewards(u(np.radians(-22)))[1]


# E. Experiments


def test_e5_epsilon_greedy_explores_less_and_less_and_may_measure_the_target():
    """Pseudocode: a constant epsilon, so with epsilon = 1 every round; text: epsilon / sqrt(t)."""
    world = synthetic(3, 2, 1, 5, noise_scale=0.1)
    policy = ss.EpsilonGreedy(world.problem, epsilon=1.0)
    trace = ss.simulate(policy, world, 2500)
    explored = trace.phase == "explore"
    assert explored[0]
    assert 50 < explored.sum() < 150  # 2 sqrt(T) = 100, standard deviation below 10
    assert set(trace.index[explored]) == {0, 1, 2}
    as_in_text = ss.EpsilonGreedy(world.problem, epsilon=1.0, explore_index="protected")
    text = ss.simulate(as_in_text, world, 2500)
    assert set(text.index[text.phase == "explore"]) == {1, 2}
    assert ss.EpsilonGreedy(world.problem).explore_index == "all"


def test_e6_the_plug_in_projects_off_the_subspace_by_uncentred_pca():
    target = np.array([1.0, 2.0, 3.0])
    protected = np.array([[1.0, 0.1, 0.0], [1.0, -0.1, 0.0]])
    found = plug_in(np.vstack([target, protected]), 1)
    np.testing.assert_allclose(found, [0.0, 2.0, 3.0], atol=1e-12)
    onto = target - found  # what print assigns to P theta_0
    np.testing.assert_allclose(onto, [1.0, 0.0, 0.0], atol=1e-12)
    centred = protected - protected.mean(axis=0)
    usual = np.linalg.svd(centred)[2][0]
    assert abs(usual @ [0.0, 1.0, 0.0]) == pytest.approx(1.0)  # centring would protect e_2


def test_e7_round_robin_takes_out_the_best_subset_and_all_vectors_are_too_many():
    """This is with the printed surrogate; with the corrected one the harm is mild."""
    regret = {"best": [], "all": []}
    for seed in range(2):
        world = synthetic(6, 4, 2, 100, noise_scale=0.001, seed=seed)
        for word, totals in regret.items():
            policy = ss.RoundRobinLinUCB(world.problem, core_set=word, surrogate="printed")
            trace = ss.simulate(policy, world, 1000, seed, compiled=True)
            totals.append(trace.cumulative_regret[-1])
        turns = ss.simulate(policy, world, 100, seed)
        order = turns.index[turns.phase == "explore"]
        assert order[:4].tolist() == [3, 4, 1, 2]  # the printed counter starts at 3, all get a turn
    assert np.mean(regret["all"]) > 2 * np.mean(regret["best"])


def test_e8_on_finitely_many_arms_the_surrogates_are_lower_bounds_and_no_more():
    """The exact optimistic value of an arm, by scanning all directions of one set in the plane."""
    instance = synthetic(2, 1, 1, FreshArms(10, 2), noise_scale=0.3, seed=1)
    policy = ss.ProtectedLinUCB(instance.problem, surrogate="ellipsoid")
    state = last_state(policy, instance, 120)
    centre, precision, reach = sets_of(state, policy)
    angles = np.linspace(0, np.pi, 40_001)
    lines = np.array([np.cos(angles), np.sin(angles)]).T
    seen = lines @ precision[1] @ centre[1]
    room = centre[1] @ precision[1] @ centre[1] - reach[1] ** 2
    squares = np.einsum("kj,kj->k", lines @ precision[1], lines)
    inside = seen**2 >= room * squares
    assert 0 < inside.sum() < len(lines)
    normals = np.array([-np.sin(angles), np.cos(angles)]).T[inside]
    menu = np.array([u(angle) for angle in np.linspace(0, 2 * np.pi, 40, endpoint=False)])
    arms = ss.Arms(menu)
    bounds = first_order_values(
        policy.knobs.confidence,
        state.evidence,
        Menu(arms.columns, arms.squared),
        np.arange(2),
    )[1]
    inverse = np.linalg.inv(precision[0])
    shortfall = []
    for arm, bound in zip(menu, bounds, strict=True):
        left = (normals @ arm)[:, None] * normals
        widths = reach[0] * np.sqrt(np.einsum("kj,kj->k", left @ inverse, left))
        exact = (left @ centre[0] + widths).max()
        for word in ("printed", "corrected", "ellipsoid"):
            assert value_at(arm, state, instance.problem, word) <= exact + 1e-6
        shortfall.append(exact - value_at(arm, state, instance.problem, "ellipsoid"))
        assert bound >= exact - 1e-6
    assert max(shortfall) > 0.01
