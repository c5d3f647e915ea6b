"""CORE-SET: thresholds by hand, the clock, and the guarantee of every rule over random instances."""

import itertools
import math
import warnings

import numpy as np
import pytest

from sidestep.core.actions import Arms, UnitBall, off_menu
from sidestep.core.core_set import (
    CERTIFIED,
    EIGENVALUE,
    INTENDED,
    PRINTED,
    RESOLUTION,
    CoreSetRule,
    best_rows,
    best_subset,
    certified_factor,
    end_core_set,
    error_bound,
    is_check,
    may_end,
    needed_eigenvalue,
    plain_estimates,
    printed_scale,
    stopping_size,
    whole_error,
)
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.problem import Problem
from sidestep.environments.action_sources import FreshArms, Menus
from sidestep.environments.instance import Instance
from sidestep.errors import CoreSetError, UnreachedDirectionsWarning
from sidestep.experiments.simulate import play, simulate
from sidestep.policies.protected_linucb import ProtectedLinUCB

THIRD = 1 / 3


def rule(kind, size=2, *, noise=0.1, M=1.0, delta=0.01, gamma=THIRD, threshold=0.0, basis=True):
    return CoreSetRule(kind, size, noise, M, delta, certified_factor(gamma), threshold, basis)


def eigenvalue_of(vectors):
    """lambda_min of a set: the square of its smallest singular value."""
    return np.linalg.svd(vectors, compute_uv=False)[-1] ** 2


def best_eigenvalue(protected, k):
    """By enumeration."""
    sets = itertools.combinations(range(len(protected)), k)
    return max(eigenvalue_of(protected[list(rows)]) for rows in sets)


KINDS = ("unit", "scaled", "near-duplicates")


def instance(rng, kind="unit", d=6, L=4, s=2):
    """L protected vectors of rank s, none longer than 1; (L, d)."""
    span = np.linalg.qr(rng.standard_normal((d, s)))[0].T
    weights = rng.standard_normal((L, s))
    if kind == "near-duplicates":
        weights = weights[rng.integers(s, size=L)] + 0.3 * rng.standard_normal((L, s))
    protected = weights @ span
    protected /= np.linalg.norm(protected, axis=1, keepdims=True)
    if kind == "scaled":
        protected *= rng.uniform(0.2, 1.0, (L, 1))
    return protected


def draws(rng, shape, name, count=1):
    """Sum of `count` independent draws of unit noise, entry by entry."""
    if name == "gaussian":
        return np.sqrt(count) * rng.standard_normal(shape)
    return 2.0 * rng.binomial(count, 0.5, shape) - count


def checks():
    """Sweeps at which the certified rule checks: n, then n times 1.1, rounded up."""
    n = 1
    while True:
        yield n
        n = -(-11 * n // 10)


def every_sweep():
    return itertools.count(1)


def looked_at():
    """The sweeps at which the rule itself checks."""
    n = 1
    while True:
        yield n
        n = next(m for m in itertools.count(max(n + 1, 11 * n // 10)) if is_check(m))


def after(sweeps, total):
    """Evidence after whole sweeps over the basis, from the sums of the feedback; total (L, d)."""
    L, d = total.shape
    evidence = no_evidence(np.full(L + 1, 0.1), d)
    evidence.counts[1:] = d * sweeps
    evidence.gram[1:] = sweeps * np.eye(d)
    evidence.moment[1:] = total
    return evidence


def phase(law, protected, rng, noise="gaussian", schedule=None, cap=10**7):
    """Sweeps that CORE-SET takes and the set it returns; None where it does not end."""
    before, total = 0, np.zeros(protected.shape)
    for n in schedule or looked_at():
        if n > cap:
            return n, None
        total = total + (n - before) * protected
        total += law.noise * draws(rng, protected.shape, noise, n - before)
        before = n
        found = end_core_set(law, after(n, total))
        if found is not None:
            return n, found.rows
    raise AssertionError("a schedule has no end")


# The printed rule


def test_the_printed_threshold_by_hand():
    d, L, R, M, delta = 6, 4, 0.1, 2.0, 0.01
    scale = 16 * L * R * (M + R) * (d * math.log(6) + math.log(1 / delta))
    printed, intended = (rule(kind, noise=R, M=M, delta=delta) for kind in (PRINTED, INTENDED))
    # after nine sweeps print's clock shows ten
    assert needed_eigenvalue(printed, d, L, 9.0, 9) == pytest.approx(scale / math.sqrt(10))
    assert needed_eigenvalue(intended, d, L, 9.0, 9) == pytest.approx(scale / 3)
    assert scale == pytest.approx(206.4, abs=0.1)


@pytest.mark.parametrize("kind", [PRINTED, INTENDED])
def test_the_printed_loop_goes_on_at_equality(kind):
    law = rule(kind, 1, noise=0.1)
    scale = 16 * 1 * 0.1 * 1.1 * (1 * np.log(6.0) - np.log(0.01))
    threshold = scale / np.sqrt(4.0 + (kind == PRINTED))
    assert needed_eigenvalue(law, 1, 1, 4.0, 4) > threshold
    assert needed_eigenvalue(law, 1, 1, 4.0, 4) <= threshold * (1 + 1e-15)


@pytest.mark.parametrize(("kind", "extra"), [(PRINTED, 1), (INTENDED, 0)])
def test_the_printed_rule_ends_at_the_first_sweep_whose_threshold_is_passed(kind, extra):
    protected = instance(np.random.default_rng(1))
    law = rule(kind, noise=3e-3)
    target = best_eigenvalue(protected, 2)
    scale = 16 * 4 * 3e-3 * 1.003 * (6 * math.log(6) + math.log(100))
    first = next(n for n in itertools.count(1) if target > scale / math.sqrt(n + extra))
    found, total = None, np.zeros((4, 6))
    for n in range(1, first + 1):
        assert found is None
        total += protected  # feedback without noise, under a rule that expects it
        found = end_core_set(law, after(n, total))
    assert found is not None
    assert first > 1  # otherwise the test shows nothing


@pytest.mark.parametrize("kind", [PRINTED, INTENDED])
@pytest.mark.parametrize("L", [1, 4])
def test_no_test_is_left_out_that_would_end_the_phase_and_most_others_are(kind, L):
    protected = instance(np.random.default_rng([7, L]), L=L, s=1)
    law, ends, tested = rule(kind, 1, noise=3e-3), [], []
    for n in range(1, 200):
        found = after(n, n * protected)
        tested.append(may_end(printed_scale(law, 6, L), found, n))
        ends.append(stopping_size(law, *plain_estimates(found, basis=True), n) >= 0)
    assert any(ends)
    assert all(test for test, end in zip(tested, ends, strict=True) if end)
    assert sum(tested) < 2 + 1.1 * sum(ends)  # a hundredth is left for rounding


@pytest.mark.full
@pytest.mark.parametrize("kind", [PRINTED, INTENDED])
@pytest.mark.parametrize("noise", [0.0003, 0.001, pytest.param(0.003, marks=pytest.mark.slow)])
def test_where_the_printed_rule_ends_it_keeps_a_third(oracle, kind, noise):
    rng = np.random.default_rng([2, kind])
    delta, runs, failures, ended = 0.01, 60, 0, 0
    for _ in range(runs):
        protected = instance(rng)
        law = rule(kind, noise=noise, delta=delta / 4)
        _, rows = phase(law, protected, rng, schedule=every_sweep(), cap=1000)
        if rows is not None:
            ended += 1
            failures += eigenvalue_of(protected[rows]) < best_eigenvalue(protected, 2) / 3
    assert ended >= runs // 2
    assert oracle.at_most(failures, runs, delta)


# The certified rule


def test_the_factor_of_the_certified_rule():
    assert certified_factor(THIRD) == pytest.approx(2 + math.sqrt(3))
    assert certified_factor(1 / 25) == pytest.approx(1.5)
    for gamma in (0.01, 0.3, 0.9):
        c = certified_factor(gamma)
        assert ((c - 1) / (c + 1)) ** 2 == pytest.approx(gamma)


def test_checks_grow_by_a_tenth_and_are_numbered():
    scheduled = itertools.takewhile(lambda n: n <= 20_000, checks())
    expected = {n: number for number, n in enumerate(scheduled, 1)}
    numbers = {n: is_check(n) for n in range(1, 20_001) if is_check(n)}
    assert numbers == expected
    assert is_check(0) == 0


def tail(m, x):
    return math.sqrt(m + 2 * math.sqrt(m * x) + 2 * x)


@pytest.mark.parametrize(
    ("d", "L", "k"), [(6, 4, 2), (2, 3, 1), (20, 16, 4), (1, 1, 1), (3, 40, 8), (50, 3, 3)]
)
@pytest.mark.parametrize("delta", [0.2, 1e-3, 1e-9])
def test_the_error_bound_is_the_least_of_its_three_parts(d, L, k, delta):
    subsets = math.log(math.comb(L, k) / delta)
    nets = [
        tail(d, k * math.log(1 + 2 / net) + subsets) / (1 - net) for net in (0.1, 0.2, 0.3, 0.4)
    ]
    least = min(tail(d * k, subsets), tail(d * L, math.log(1 / delta)), *nets)
    assert error_bound(d, L, k, 0.5, 16.0, delta) == pytest.approx(0.5 / 4 * least, rel=1e-12)
    assert whole_error(d, L, 0.5, 16.0, delta) == pytest.approx(
        0.5 / 4 * tail(d * L, math.log(1 / delta)), rel=1e-12
    )


@pytest.mark.full
@pytest.mark.parametrize("noise", ["gaussian", "rademacher"])
@pytest.mark.parametrize(("d", "L", "k"), [(6, 4, 2), (3, 6, 1), (8, 5, 3), (2, 2, 2)])
def test_no_subset_of_the_estimates_is_farther_off_than_the_error_bound(oracle, noise, d, L, k):
    rng = np.random.default_rng([3, d, L, k])
    runs, delta, sweeps = 4000, 0.2, 7
    bound, whole = error_bound(d, L, k, 0.3, 7.0, delta), whole_error(d, L, 0.3, 7.0, delta)
    error = 0.3 * draws(rng, (runs, L, d), noise, sweeps) / sweeps
    sets = [list(rows) for rows in itertools.combinations(range(L), k)]
    largest = np.max([np.linalg.norm(error[:, rows], 2, axis=(1, 2)) for rows in sets], axis=0)
    assert oracle.at_most(int((largest > bound).sum()), runs, delta)
    assert oracle.at_most(int((np.linalg.norm(error, 2, axis=(1, 2)) > whole).sum()), runs, delta)
    # and half the bound would be too little
    assert not oracle.at_most(int((largest > bound / 2).sum()), runs, delta)


def certified_failures(rng, runs, sizes, R, *, delta, noise="gaussian", gamma=THIRD):
    """How often the certified set keeps less than its share."""
    d, L, s = sizes
    law, failures = rule(CERTIFIED, s, noise=R, delta=delta, gamma=gamma), 0
    for run in range(runs):
        protected = instance(rng, KINDS[run % 3], d, L, s)
        _, rows = phase(law, protected, rng, noise)
        assert len(rows) == s
        failures += eigenvalue_of(protected[rows]) < gamma * best_eigenvalue(protected, s)
    return failures


@pytest.mark.full
@pytest.mark.parametrize("gamma", [THIRD, 1 / 25])
@pytest.mark.parametrize(
    ("R", "noise"),
    [
        (0.001, "gaussian"),
        (0.1, "gaussian"),
        (0.1, "rademacher"),
        pytest.param(1.0, "gaussian", marks=pytest.mark.slow),
        pytest.param(1.0, "rademacher", marks=pytest.mark.slow),
    ],
)
def test_the_certified_set_keeps_its_share(oracle, R, noise, gamma):
    rng = np.random.default_rng([4, int(1000 * R), int(100 * gamma)])
    for runs, delta in [(60, 1e-3), (30, 0.2)]:
        failures = certified_failures(
            rng, runs, (6, 4, 2), R, delta=delta, noise=noise, gamma=gamma
        )
        assert oracle.at_most(failures, runs, delta)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gaussian", "rademacher"])
@pytest.mark.parametrize("sizes", [(6, 4, 2), (10, 8, 3)])
def test_the_certified_set_keeps_its_share_over_two_thousand_instances(oracle, sizes, noise):
    rng = np.random.default_rng([5, *sizes])
    for R in (0.01, 0.1, 1.0):
        for delta in (1e-3, 0.2):
            failures = certified_failures(rng, 350, sizes, R, delta=delta, noise=noise)
            assert oracle.at_most(failures, 350, delta)


@pytest.mark.slow
@pytest.mark.parametrize("R", [0.001, 0.01, 0.1, 1.0])
def test_a_third_is_kept_in_a_thousand_instances_at_every_noise(oracle, R):
    rng = np.random.default_rng([6, int(1000 * R)])
    failures = certified_failures(rng, 1000, (6, 4, 2), R, delta=1e-3)
    assert oracle.at_most(failures, 1000, 1e-3)


@pytest.mark.slow
def test_at_noise_one_the_certified_rule_is_hundreds_of_times_shorter_than_print():
    rng = np.random.default_rng(7)
    printed, certified = [], []
    for _ in range(30):
        protected = instance(rng)
        ever = (int(1.05**k) for k in range(1, 600) if int(1.05**k) > int(1.05 ** (k - 1)))
        paper = rule(INTENDED, noise=1.0, delta=1e-3 / 8)
        printed.append(phase(paper, protected, rng, schedule=ever, cap=10**12)[0])
        certified.append(phase(rule(CERTIFIED, noise=1.0, delta=5e-4), protected, rng)[0])
    ratios = np.array(printed) / np.array(certified)
    assert ratios.min() > 100
    assert np.median(ratios) > 1000


def test_a_rule_that_does_not_wait_would_fail_that_test(oracle):
    rng = np.random.default_rng(6)
    hasty, runs, failures = rule(CERTIFIED, noise=1.0)._replace(factor=1e-9), 100, 0
    for _ in range(runs):
        protected = instance(rng)
        _, rows = phase(hasty, protected, rng)
        failures += eigenvalue_of(protected[rows]) < best_eigenvalue(protected, 2) / 3
    assert not oracle.at_most(failures, runs, 0.01)


def test_the_certified_rule_looks_at_its_checks_only():
    law = rule(CERTIFIED, noise=0.05)
    estimates = instance(np.random.default_rng(7))
    looked = [n for n in range(1, 200) if stopping_size(law, estimates, float(n), n) >= 0]
    assert looked
    scheduled = itertools.takewhile(lambda n: n < 200, looked_at())
    assert looked == [n for n in scheduled if n >= looked[0]]


def test_the_certified_rule_ends_where_the_strength_beats_the_error():
    protected = instance(np.random.default_rng(8))
    law = rule(CERTIFIED, noise=0.2, delta=0.01)
    root = math.sqrt(best_eigenvalue(protected, 2))
    for number, n in zip(range(1, 40), looked_at(), strict=False):
        allowed = error_bound(6, 4, 2, 0.2, float(n), 0.01 / (number * (number + 1)))
        ends = root >= certified_factor(THIRD) * allowed
        assert (stopping_size(law, protected, float(n), n) == 2) == ends
        assert (stopping_size(law, protected, float(n), n) == -1) != ends


def test_less_noise_and_a_smaller_share_end_sooner():
    rng = np.random.default_rng(9)
    protected = instance(rng)
    sweeps = [phase(rule(CERTIFIED, noise=R), protected, rng)[0] for R in (0.03, 0.3, 3.0)]
    assert sweeps[0] < sweeps[1] < sweeps[2]
    modest = phase(rule(CERTIFIED, noise=3.0, gamma=1 / 25), protected, rng)[0]
    assert modest < sweeps[2]


# Known lambda_min, and known resolution


@pytest.mark.parametrize("R", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("noise", ["gaussian", "rademacher"])
def test_a_known_eigenvalue_finds_the_rank_and_keeps_a_third(oracle, R, noise):
    rng = np.random.default_rng([10, int(100 * R)])
    delta, runs, failures = 0.01, 60, 0
    for run in range(runs):
        s = 1 + run % 3
        protected = instance(rng, KINDS[run % 2], 6, 4, s)
        known = best_eigenvalue(protected, s)
        law = rule(EIGENVALUE, noise=R, delta=delta, threshold=known)
        share = (1 - 1 / math.sqrt(3)) / 2
        n = max(1, math.ceil((R * tail(24, math.log(100)) / share) ** 2 / known))
        total = n * protected + R * draws(rng, protected.shape, noise, n)
        chosen = end_core_set(law, after(n, total))
        assert chosen is not None  # at the sweep known beforehand, and not before
        if n > 1:
            assert stopping_size(law, total / n, n - 1.0, n - 1) == -1
        rows = chosen.rows
        failures += len(rows) != s or eigenvalue_of(protected[rows]) < known / 3
    assert oracle.at_most(failures, runs, delta)


def shaped(rng, strengths, L=5, d=6):
    """Protected vectors with these singular values."""
    left = np.linalg.qr(rng.standard_normal((L, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((d, len(strengths))))[0].T
    return left * strengths @ right


@pytest.mark.parametrize("R", [0.01, 0.1, 1.0])
def test_a_resolution_finds_every_direction_that_strong(oracle, R):
    rng = np.random.default_rng([11, int(100 * R)])
    delta, runs, missed, wrong, weak = 0.01, 60, 0, 0, 0
    for run in range(runs):
        faint = run % 2 == 1
        strengths = np.array([1.0, 0.5, 0.2, 0.02]) if faint else np.array([1.0, 0.5, 0.2])
        protected = shaped(rng, strengths)
        law = rule(RESOLUTION, noise=R, delta=delta, threshold=0.2)
        n = max(1, math.ceil((R * tail(30, math.log(100)) / 0.1) ** 2))
        total = n * protected + R * draws(rng, protected.shape, "gaussian", n)
        found = len(end_core_set(law, after(n, total)).rows)
        missed += found < 3
        wrong += not faint and found != 3
        weak += faint and found == 4
        if n > 1:
            assert stopping_size(law, total / n, n - 1.0, n - 1) == -1
    assert oracle.at_most(missed, runs, delta)
    assert oracle.at_most(wrong, runs // 2, delta)
    assert weak <= runs // 2  # a direction below the resolution may go either way


def test_without_noise_a_resolution_counts_no_rounding_as_a_direction():
    rng = np.random.default_rng(12)
    for _ in range(20):
        law = rule(RESOLUTION, noise=0.0, threshold=0.2)
        found = end_core_set(law, after(1, shaped(rng, np.array([1.0, 0.5]))))
        assert len(found.rows) == 2


# Estimates


def sampled(actions, protected, R, rng):
    """Evidence of every protected vector along the same actions."""
    rho = np.full(len(protected) + 1, 0.1)
    evidence = no_evidence(rho, protected.shape[1])
    for index, vector in enumerate(protected, 1):
        for action in actions:
            feedback = float(action @ vector) + R * rng.standard_normal()
            absorb(evidence, rho, np.array(action), index, feedback)
    return evidence


def test_over_the_basis_estimates_are_plain_means():
    rng = np.random.default_rng(13)
    protected = instance(rng)
    evidence = sampled(np.tile(np.eye(6), (5, 1)), protected, 0.5, rng)
    estimates, strength = plain_estimates(evidence, True)
    assert strength == 5.0
    assert estimates == pytest.approx(evidence.moment[1:] / 5, rel=1e-15)
    ridge = evidence.centre[1:]
    assert np.abs(ridge).sum() < np.abs(estimates).sum()  # which would bias the eigenvalue down
    again, same = plain_estimates(evidence, False)
    assert again == pytest.approx(estimates, abs=1e-14)
    assert same == pytest.approx(5.0)


def test_over_arms_estimates_are_least_squares():
    rng = np.random.default_rng(14)
    actions, protected = rng.standard_normal((20, 6)) / 3, instance(rng)
    exact = plain_estimates(sampled(actions, protected, 0.0, rng), False)
    assert exact[0] == pytest.approx(protected, abs=1e-12)
    assert exact[1] == pytest.approx(np.linalg.svd(actions, compute_uv=False)[-1] ** 2)


def test_over_arms_that_do_not_span_estimates_have_least_length():
    rng = np.random.default_rng(15)
    actions, protected = rng.standard_normal((20, 6)), instance(rng)
    actions[:, 4:] = 0.0
    estimates, strength = plain_estimates(sampled(actions, protected, 0.0, rng), False)
    assert estimates[:, :4] == pytest.approx(protected[:, :4], abs=1e-12)
    assert estimates[:, 4:] == pytest.approx(np.zeros((4, 2)), abs=1e-12)
    assert strength == pytest.approx(np.linalg.svd(actions, compute_uv=False)[3] ** 2)


def test_before_a_measurement_no_rule_ends():
    evidence = no_evidence(np.full(5, 0.1), 6)
    for kind in (PRINTED, INTENDED, CERTIFIED, EIGENVALUE, RESOLUTION):
        for basis in (True, False):
            law = rule(kind, noise=0.0, threshold=0.5, basis=basis)
            assert end_core_set(law, evidence) is None


def test_best_rows_are_the_target_and_the_best_subset():
    vectors = np.vstack([np.ones(6), instance(np.random.default_rng(16))])
    assert best_rows(vectors, 2).tolist() == [0, *(best_subset(vectors[1:], 2).rows + 1)]
    assert best_rows(vectors, 0).tolist() == [0]


# The phase as it is played


def game(protected, actions, R=0.1, **told):
    """A world with these protected vectors."""
    target = np.full(protected.shape[1], 1 / math.sqrt(protected.shape[1]))
    return Instance(np.vstack([target, protected]), actions, noise_scale=R, **told)


def ended(policy, world, limit=20_000, seed=0):
    """The last round of CORE-SET and the state after it."""
    for played in play(policy, world, limit, seed):
        if played.state.core_set[0]:
            return played.number, played.state
    raise AssertionError(f"CORE-SET did not end within {limit} rounds")


@pytest.mark.full
def test_the_phase_is_a_round_robin_over_the_basis_and_all_vectors_and_counts_d_l_n():
    world = game(instance(np.random.default_rng(17)), UnitBall(6), R=0.02)
    policy = ProtectedLinUCB(world.problem)
    trace = simulate(policy, world, 400, seed=1)
    used = int((trace.phase == "core-set").sum())
    number, state = ended(policy, world, seed=1)
    sweeps, rest = divmod(used, 6 * 4)
    assert (used, rest) == (number, 0)
    assert sweeps >= 1
    assert (trace.phase[:used] == "core-set").all()  # in one piece, at the start
    assert trace.index[:used].tolist() == [1, 2, 3, 4] * (6 * sweeps)
    axes = np.tile(np.repeat(np.arange(6), 4), sweeps)
    assert np.array_equal(trace.action[:used], np.eye(6)[axes])
    assert state.evidence.counts.tolist() == [0] + [6 * sweeps] * 4
    assert np.array_equal(state.evidence.gram[1:], np.tile(sweeps * np.eye(6), (4, 1, 1)))


@pytest.mark.parametrize("make", [ProtectedLinUCB.as_intended, ProtectedLinUCB.as_printed])
def test_the_papers_phase_over_arms_plays_the_basis_off_the_menu(make):
    world = game(instance(np.random.default_rng(18)), FreshArms(10, 6), R=0.0005)
    trace = simulate(make(world.problem), world, 200, seed=1)
    used = int((trace.phase == "core-set").sum())
    assert used % 24 == 0
    assert 24 <= used < 200
    assert np.array_equal(trace.action[:used], np.eye(6)[np.arange(used) // 4 % 6])
    assert trace.arm[:used].tolist() == [off_menu(axis) for axis in np.arange(used) // 4 % 6]


def test_one_vector_per_dimension_of_the_subspace_costs_no_round():
    world = game(instance(np.random.default_rng(19), L=2), UnitBall(6))
    for knobs in ({}, {"coreset": "printed"}, {"design": "basis"}):
        policy = ProtectedLinUCB(world.problem, **knobs)
        assert policy.init().core_set.tolist() == [1, 1, 1]
        assert "core-set" not in simulate(policy, world, 30).phase
    literal = ProtectedLinUCB.as_printed(world.problem)
    assert not literal.init().core_set.any()  # the printed version plays its sweeps anyway


@pytest.mark.full
@pytest.mark.parametrize("kind", ["certified", "printed"])
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("R", [0.1, 1e-6, 1e-12, 0.0])
def test_a_rank_that_is_too_high_ends_in_an_error_at_the_cap(kind, compiled, R):
    rng = np.random.default_rng(20)
    for protected in (np.eye(5)[[0, 0, 0]], instance(rng, d=5, L=3, s=1)):
        world = game(protected, UnitBall(5), R, subspace_dim=2)
        policy = ProtectedLinUCB(world.problem, coreset=kind, max_core_set_rounds=150)
        with pytest.raises(CoreSetError) as caught:
            simulate(policy, world, 400, compiled=compiled)
        message = str(caught.value)
        assert "did not end within 150 rounds (max_core_set_rounds)" in message
        assert "subspace_dim = 2" in message
        assert "subspace_dim is too large" in message


def test_a_rank_that_is_too_high_ends_in_an_error_over_arms_too():
    rng = np.random.default_rng(21)
    world = game(instance(rng, d=5, L=3, s=1), Arms(np.eye(5)), subspace_dim=2)
    policy = ProtectedLinUCB(world.problem, max_core_set_rounds=150)
    with pytest.raises(CoreSetError, match="subspace_dim = 2"):
        simulate(policy, world, 400)


def test_noise_too_large_for_the_resolution_is_what_the_error_blames():
    world = game(instance(np.random.default_rng(22)), UnitBall(6), R=1.0)
    told = Problem(6, 4, noise_scale=1.0, resolution=1e-3)
    policy = ProtectedLinUCB(told, max_core_set_rounds=48)
    with pytest.raises(CoreSetError, match="noise is too large for the eigenvalue or resolution"):
        simulate(policy, world, 100)


def test_the_cap_is_the_same_whatever_runs_the_loop():
    world = game(np.eye(5)[[0, 0, 0]], UnitBall(5), subspace_dim=2)
    messages = []
    for compiled in (True, False):
        policy = ProtectedLinUCB(world.problem, max_core_set_rounds=100)  # no whole sweep
        with pytest.raises(CoreSetError) as caught:
            simulate(policy, world, 110, compiled=compiled)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_phase_that_ends_in_time_raises_nothing():
    world = game(instance(np.random.default_rng(23)), UnitBall(6), R=0.001)
    policy = ProtectedLinUCB(world.problem, max_core_set_rounds=24)
    assert (simulate(policy, world, 60).phase[24:] == "play").all()


@pytest.mark.parametrize("kind", ["certified", "printed"])
def test_samples_are_kept_unless_a_knob_resets_them(kind):
    world = game(instance(np.random.default_rng(24)), UnitBall(6), R=0.0005)
    number, kept = ended(ProtectedLinUCB(world.problem, coreset=kind), world)
    again, cleared = ended(ProtectedLinUCB(world.problem, coreset=kind, reset=True), world)
    assert number == again
    assert kept.evidence.counts.tolist() == [0] + [number // 4] * 4
    assert kept.core_set.tolist() == cleared.core_set.tolist()
    for value, empty in zip(cleared.evidence, no_evidence(np.full(5, 0.1), 6), strict=True):
        assert np.array_equal(value, empty)


def test_an_unknown_rank_is_found_by_eigenvalue_or_resolution_as_it_is_played():
    protected = instance(np.random.default_rng(25), L=5, s=3)
    world = game(protected, UnitBall(6), R=0.01)
    weakest = np.linalg.svd(protected, compute_uv=False)[2]
    for known in ({"eigenvalue": best_eigenvalue(protected, 3)}, {"resolution": weakest}):
        _, state = ended(ProtectedLinUCB(Problem(6, 5, noise_scale=0.01, **known)), world)
        rows = np.flatnonzero(state.core_set[1:])
        assert len(rows) == 3
        assert eigenvalue_of(protected[rows]) >= best_eigenvalue(protected, 3) / 3


# Over arms


def arms_of(rng, kind, d=4):
    rows = rng.standard_normal((12, d))
    if kind == "lopsided":
        rows *= np.geomspace(1.0, 0.3, d)
    return rows / np.linalg.norm(rows, axis=1).max()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["round", "lopsided"])
@pytest.mark.parametrize("R", [0.01, 0.1])
def test_over_arms_that_span_the_certified_set_keeps_its_share(oracle, kind, R):
    rng = np.random.default_rng([26, int(100 * R)])
    delta, runs, failures = 0.02, 12, 0  # half of which is CORE-SET's
    for run in range(runs):
        protected = instance(rng, KINDS[run % 2], 4, 3, 2)
        world = game(protected, Arms(arms_of(rng, kind)), R)
        policy = ProtectedLinUCB(world.problem, delta=delta, gamma=1 / 25)
        number, state = ended(policy, world, seed=run, limit=100_000)
        assert number % 12 == 0
        rows = np.flatnonzero(state.core_set[1:])
        failures += eigenvalue_of(protected[rows]) < best_eigenvalue(protected, 2) / 25
    assert oracle.at_most(failures, runs, delta / 2)


def test_over_arms_the_design_looks_at_no_feedback():
    rng = np.random.default_rng(27)
    protected, arms = instance(rng, d=4, L=3), Arms(arms_of(rng, "round"))
    traces = [
        simulate(ProtectedLinUCB(world.problem), world, 36, seed)
        for seed, world in enumerate([game(protected, arms, 0.5), game(-protected, arms, 0.5)])
    ]
    assert (traces[0].phase == "core-set").all()
    assert np.array_equal(traces[0].arm, traces[1].arm)
    assert np.array_equal(traces[0].index, traces[1].index)


def test_arms_that_do_not_span_are_named_and_what_they_show_is_certified():
    flat = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])
    protected = np.array([[0.9, 0.0, 0.3], [0.0, 0.8, 0.5], [0.8, 0.1, 0.0]])
    world = game(protected, Arms(flat), 0.01, subspace_dim=2)
    policy = ProtectedLinUCB(world.problem)
    for compiled in (True, False):
        with pytest.warns(UnreachedDirectionsWarning, match="do not reach e_3"):
            simulate(policy, world, 20, compiled=compiled)
    with pytest.warns(UnreachedDirectionsWarning, match="do not reach e_3"):
        _, state = ended(policy, world)
    rows = np.flatnonzero(state.core_set[1:])
    shown = protected[:, :2]
    assert eigenvalue_of(shown[rows]) >= best_eigenvalue(shown, 2) / 3


def test_arms_that_span_raise_no_warning():
    world = game(np.eye(3)[[0, 0]], Arms(np.eye(3)), 0.01)
    simulate(ProtectedLinUCB(world.problem), world, 20)  # warnings are errors


@pytest.mark.parametrize("kind", [INTENDED, CERTIFIED, EIGENVALUE, RESOLUTION])
def test_a_direction_that_only_some_vectors_were_measured_along_is_not_settled(kind):
    rng = np.random.default_rng(28)
    protected = np.array([[0.1, 0.0, 1.0], [0.3, 0.3, 0.0]])
    evidence = sampled(np.eye(3)[[0, 1, 2]], protected, 0.0, rng)
    law = rule(kind, 1, noise=1e-6, threshold=0.1, basis=False)
    assert end_core_set(law, evidence) is not None  # all three directions of both
    other = sampled(np.eye(3)[[0, 1, 0]], protected, 0, rng)
    for part, shorter in zip(evidence[:-2], other[:-2], strict=True):
        part[1] = shorter[1]  # theta_1 has not been measured along e_3, where it is long
    assert end_core_set(law, evidence) is None


@pytest.mark.full
def test_over_changing_menus_the_certified_set_keeps_its_share(oracle):
    protected = np.array([[0.0, 0.0, 1.0], [0.1, 0.0, 0.0], [0.0, 0.1, 0.0]])
    world = game(protected, Menus([np.eye(3)[:2], np.eye(3)[2:]]), 1e-4, subspace_dim=1)
    policy, runs, wrong = ProtectedLinUCB(world.problem), 100, 0
    for seed in range(runs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreachedDirectionsWarning)  # of the first menu alone
            _, state = ended(policy, world, seed=seed)
        wrong += state.core_set.tolist() != [1, 1, 0, 0]  # theta_1 is ten times as long
    # a direction that no round of a sweep measured stays unknown: nine rounds without the second menu
    assert oracle.at_most(wrong, runs, 0.5**9 + policy.delta / 2)
