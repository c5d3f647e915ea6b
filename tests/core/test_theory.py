import math
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sidestep as ss
from sidestep.core import theory
from sidestep.core.actions import UnitBall
from sidestep.core.arrays import FloatArray
from sidestep.core.confidence import RADII, Confidence, radius, width
from sidestep.core.core_set import (
    CERTIFIED,
    EIGENVALUE,
    CoreSetRule,
    best_subset,
    certified_factor,
    core_set_of,
    error_bound,
    is_check,
    stopping_size,
)
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.problem import Problem
from sidestep.errors import InputError
from sidestep.policies.explore_commit import ExploreThenCommit
from sidestep.policies.oful import OFUL
from sidestep.policies.protected_linucb import ProtectedLinUCB

FORMS = ["main", "appendix", "corrected", "all"]
HORIZON = 2 * (math.e - 1)  # makes log(1 + T / d) = 1 in dimension 2


def told(**changes: Any) -> Problem:
    """The paper's synthetic problem (caption), with changes."""
    return Problem(**{"dim": 6, "n_protected": 4, "subspace_dim": 2, "noise_scale": 0.1, **changes})


def noiseless(**changes: Any) -> Problem:
    """Beta is rho M^2 and the printed CORE-SET takes no time: what is left is done by hand."""
    sizes = {"dim": 2, "n_protected": 1, "subspace_dim": 1, "noise_scale": 0.0}
    return Problem(**{**sizes, **changes})


def anything(rng: np.random.Generator, *, norm_bound: float | None = None) -> Problem:
    """A problem of any size and noise."""
    d, L = int(rng.integers(2, 12)), int(rng.integers(1, 9))
    M = 10 ** rng.uniform(-1, 1) if norm_bound is None else norm_bound
    noise = 10 ** rng.uniform(-3, 1, size=L + 1)
    return Problem(d, L, int(rng.integers(1, min(d, L) + 1)), noise, norm_bound=M)


# ---------------------------------------------------------------- radius


def test_radius_by_hand() -> None:
    problem = Problem(2, 1, noise_scale=3.0, norm_bound=5.0, action_bound=2.0)
    expected = 3 * math.sqrt(2 * math.log((1 + 7 * 4 / 0.25) / 0.01)) + 0.5 * 5
    assert theory.radius(problem, 7, 0.25, 0.01) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_radius_is_the_compiled_one_of_the_noisiest_vector(dim: int) -> None:
    rng = np.random.default_rng(dim)
    problem = Problem(
        dim, 2, noise_scale=[0.1, 0.7, 0.3], norm_bound=2.0, action_bound=3.0, eigenvalue=1.0
    )
    rho, delta = 0.4, 0.02
    evidence = no_evidence(np.full(3, rho), dim)
    for step in range(30):
        action = rng.normal(size=dim)
        absorb(evidence, np.full(3, rho), action / np.linalg.norm(action), 1, rng.normal())
        compiled = {
            form: radius(
                Confidence(np.full(3, rho), problem.noise, 2.0, 3.0, delta, RADII[form]),
                evidence,
                1,
            )
            for form in RADII
        }
        here = theory.radius(problem, step + 1, rho, delta)
        assert here == pytest.approx(compiled["printed"], rel=1e-13)
        covers_both = theory.radius(problem, step + 1, rho, delta, form="corrected")
        assert covers_both >= max(compiled.values()) * (1 - 1e-13)


def test_corrected_radius_differs_from_print_in_dimension_one_alone() -> None:
    for dim in (1, 2, 3):
        problem = Problem(dim, 0, noise_scale=0.5)
        printed = theory.radius(problem, 10, 1.0, 0.01)
        corrected = theory.radius(problem, 10, 1.0, 0.01, form="corrected")
        assert (corrected > printed) == (dim == 1)


# ---------------------------------------------------------------- CORE-SET


def test_printed_rounds_by_hand() -> None:
    problem = Problem(2, 3, 2, noise_scale=0.5)
    sweeps = 576 * 3**2 * 0.5**2 * 1.5**2 * (2 * math.log(6) + math.log(3 / 0.01)) ** 2 / 0.3**2
    assert theory.coreset_rounds(problem, 0.3, 0.01) == pytest.approx(2 * 3 * sweeps, rel=1e-14)


def test_printed_constant_is_2304_where_norm_and_noise_are_one() -> None:
    problem = told(noise_scale=1.0)
    sweeps = 2304 * 4**2 * (6 * math.log(6) + math.log(4 / 0.001)) ** 2 / 0.5**2
    rounds = theory.coreset_rounds(problem, 0.5, 0.001)
    assert rounds == pytest.approx(6 * 4 * sweeps, rel=1e-14)


def test_noise_that_counts_is_that_of_the_protected_vectors() -> None:
    for form in ("printed", "certified"):
        quiet = told(noise_scale=[50.0, 0.1, 0.2, 0.2, 0.1])
        rounds = theory.coreset_rounds(quiet, 0.5, form=form)
        assert rounds == theory.coreset_rounds(told(noise_scale=0.2), 0.5, form=form)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(60))
def test_certified_rounds_are_those_of_the_compiled_error_bound_and_schedule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, L = int(rng.integers(2, 12)), int(rng.integers(2, 14))
    k = min(d, L - 1) if seed % 2 else int(rng.integers(1, min(d, L - 1) + 1))
    eigenvalue, delta = rng.uniform(0.05, 1), 10 ** rng.uniform(-6, -0.05)
    for R in np.geomspace(0.001, 0.3, 20):
        sweeps = first_check_that_must_stop(d, L, k, R, eigenvalue, delta)
        rounds = theory.coreset_rounds(Problem(d, L, k, R), eigenvalue, delta, form="certified")
        assert rounds == d * L * sweeps


def test_error_of_the_whole_table_counts_where_it_is_smaller_than_that_of_its_parts() -> None:
    for R, sweeps in ((0.0595, 1), (0.063, 2)):
        assert first_check_that_must_stop(2, 3, 2, R, 1.0, 0.9) == sweeps
        assert theory.coreset_rounds(Problem(2, 3, 2, R), 1.0, 0.9, form="certified") == 6 * sweeps


def first_check_that_must_stop(
    d: int, L: int, k: int, R: float, eigenvalue: float, delta: float
) -> int:
    """By the compiled functions, trying every sweep."""
    n, factor = 0, certified_factor(1 / 3)
    while True:
        n += 1
        number = is_check(n)
        if number > 0:
            error = error_bound(d, L, k, R, float(n), delta / (number * (number + 1)))
            if math.sqrt(eigenvalue) >= (factor + 1) * error:
                return n


def certified(problem: Problem, delta: float) -> CoreSetRule:
    size, noise = problem.subspace_dim or 0, float(problem.noise[1:].max())
    return CoreSetRule(CERTIFIED, size, noise, 1.0, delta, certified_factor(1 / 3), 0.0, True)


def unit_rows(rng: np.random.Generator, rows: int, rank: int, dim: int) -> FloatArray:
    table = rng.normal(size=(rows, rank)) @ rng.normal(size=(rank, dim))
    return table / np.linalg.norm(table, axis=1, keepdims=True)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
def test_compiled_rule_stops_at_the_bound_whatever_errors_of_that_size_there_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem, delta = told(noise_scale=10 ** rng.uniform(-2, 0)), 0.01
    theta = unit_rows(rng, 4, 2, 6)
    eigenvalue = best_subset(theta, 2).eigenvalue
    sweeps = int(theory.coreset_rounds(problem, eigenvalue, delta, form="certified") / 24)
    number, rule = is_check(sweeps), certified(problem, delta)
    size = error_bound(6, 4, 2, rule.noise, float(sweeps), delta / (number * (number + 1)))
    for rank in (1, 2, 4) * 20:
        error = rng.normal(size=(4, rank)) @ rng.normal(size=(rank, 6))
        error *= size / np.linalg.norm(error, 2)
        assert stopping_size(rule, theta + error, float(sweeps), sweeps) == 2


@pytest.mark.parametrize("noise", [0.03, 0.1, 1.0])
def test_one_check_earlier_the_worst_errors_of_that_size_keep_the_rule_going(noise: float) -> None:
    problem, delta, eigenvalue = told(noise_scale=noise), 0.01, 0.4
    sweeps = int(theory.coreset_rounds(problem, eigenvalue, delta, form="certified") / 24)
    rule = certified(problem, delta)
    for at in [n for n in range(1, sweeps + 1) if is_check(n) > 0][-2:]:
        number = is_check(at)
        error = error_bound(6, 4, 2, noise, float(at), delta / (number * (number + 1)))
        shrunk = np.zeros((4, 6))  # the truth has sqrt(lambda) where this has sqrt(lambda) - e
        shrunk[0, 0] = shrunk[1, 1] = math.sqrt(eigenvalue) * (1 + 1e-12) - error
        assert stopping_size(rule, shrunk, float(at), at) == (2 if at == sweeps else -1)


@pytest.mark.slow
def test_sweeps_of_a_noisy_run_pass_the_bound_with_probability_delta_at_most(oracle: Any) -> None:
    delta, shares = 0.05, []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        problem, theta = told(noise_scale=10 ** rng.uniform(-1, 0)), unit_rows(rng, 4, 2, 6)
        eigenvalue = best_subset(theta, 2).eigenvalue
        bound = theory.coreset_rounds(problem, eigenvalue, delta, form="certified") / 24
        shares.append(sweeps_used(certified(problem, delta), theta, rng) / bound)
    assert oracle.at_most(int((np.array(shares) > 1).sum()), len(shares), delta)
    assert 0.3 < np.median(shares) < 1


def sweeps_used(rule: CoreSetRule, theta: FloatArray, rng: np.random.Generator) -> int:
    """Sweeps of e_1..e_d until the compiled rule stops, with the noise drawn from check to check."""
    noise, done, number = np.zeros_like(theta), 0, 0
    while True:
        number += 1
        until = (11 * done + 9) // 10 if done else 1
        assert is_check(until) == number
        noise += rule.noise * math.sqrt(until - done) * rng.normal(size=theta.shape)
        done = until
        if stopping_size(rule, theta + noise / done, float(done), done) > 0:
            return done


def test_where_every_vector_is_needed_the_certified_phase_is_skipped() -> None:
    forced = told(subspace_dim=4)
    assert theory.coreset_rounds(forced, 0.5, form="certified") == 0
    assert theory.coreset_rounds(forced, 0.5, form="printed") > 0
    certified, printed = (
        theory.regret_bound(forced, 100, 0.5, form="corrected", coreset=rule)
        for rule in ("certified", "printed")
    )
    assert certified == printed < theory.regret_bound(forced, 100, 0.5, form="appendix")


def test_certified_phase_takes_one_sweep_without_noise_and_never_ends_without_signal() -> None:
    assert theory.coreset_rounds(told(noise_scale=0.0), 0.5, form="certified") == 24
    assert theory.coreset_rounds(told(), 1e-310, form="certified") == math.inf
    assert theory.coreset_rounds(told(), 1e-310) == math.inf


@pytest.mark.parametrize("form", ["printed", "certified"])
def test_rounds_grow_with_the_noise_and_as_the_eigenvalue_shrinks(form: str) -> None:
    noise = [theory.coreset_rounds(told(noise_scale=R), 0.5, form=form) for R in (0.1, 1.0, 10.0)]
    signal = [theory.coreset_rounds(told(), x, form=form) for x in (1.0, 0.1, 0.01, 0.001)]
    assert noise == sorted(set(noise))
    assert signal == sorted(set(signal))


@pytest.mark.parametrize("seed", range(50))
def test_certified_rule_needs_no_more_than_the_printed_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = anything(rng)
    eigenvalue = problem.norm_bound**2 * 10 ** rng.uniform(-4, 0)
    rounds = {
        f: theory.coreset_rounds(problem, eigenvalue, form=f) for f in ("printed", "certified")
    }
    sweep = problem.dim * problem.n_protected
    assert rounds["certified"] <= rounds["printed"] + sweep


STITCHED = 1000  # sweeps with a share of the risk of their own; beyond, doublings share it


@pytest.mark.parametrize("x", [5.0, 6.0, 8.0, 20.0, 100.0])
@pytest.mark.parametrize("noise", [1e-9, 0.001, 0.5, 1.0])  # R / M
def test_printed_threshold_has_room_for_a_union_over_every_sweep(x: float, noise: float) -> None:
    """x = d log 6 + log(L / delta), at least 5, and R <= M (B2; docs/theory.md, Theorem 3).

    Sweep n <= 1000 has the share 1 / (n (n + 1)) of the risk. Doubling j = 0, 1, ... of what follows
    has 1 / (1001 (j + 1) (j + 2)) of it, and its sums are bounded by those at its end: a factor of 2.
    """
    n = np.arange(1.0, STITCHED + 1)
    own = x + np.log(n * (n + 1))
    error = 4 * np.sqrt(2 * own / n) + 8 * noise * own / n  # over L M R
    assert (error <= 8 * (1 + noise) * x / np.sqrt(n)).all()
    j = np.arange(600.0)
    start = STITCHED * 2**j
    shared = x + np.log(STITCHED + 1) + np.log((j + 1) * (j + 2))
    error = 4 * np.sqrt(4 * shared / start) + 16 * noise * shared / start
    assert (error <= 8 * (1 + noise) * x / np.sqrt(start)).all()


def test_below_five_the_printed_threshold_has_no_room_for_all_sweeps() -> None:
    x, n = 4.0, 1.3e6
    own = x + np.log(n * (n + 1))
    assert 4 * np.sqrt(2 * own / n) + 8 * 0.001 * own / n > 8 * 1.001 * x / np.sqrt(n)


# ---------------------------------------------------------------- regret


def test_regret_bounds_by_hand() -> None:
    hand = {
        "appendix": 2 * math.sqrt(((3 + 1) ** 2 + 1) * 2 * HORIZON * 2),
        "corrected": 2 * math.sqrt(((1 + 1) ** 2 + 1) * 2 * HORIZON * 2),
        "all": 2 * math.sqrt(((1 + 1) ** 2 + 1) * 2 * HORIZON * 2),
        "main": 12 * math.sqrt(2) * 2 * math.sqrt(2 * HORIZON)
        + 4608 * 2 * (2 * math.log(6) + math.log(2 / 0.01)) ** 2,
    }
    for form, expected in hand.items():
        bound = theory.regret_bound(noiseless(), HORIZON, 1.0, 0.01, 1.0, form=form)
        assert bound == pytest.approx(expected, rel=1e-13), form


def test_where_every_vector_counts_the_core_set_keeps_all_of_lambda_min() -> None:
    for gamma in (1 / 3, 0.6):
        bounds = [
            theory.regret_bound(told(subspace_dim=4), 1000, 0.5, form=form, gamma=gamma)
            for form in ("corrected", "all")
        ]
        assert bounds[0] == bounds[1]


def test_another_share_of_lambda_min_costs_sweeps_and_saves_slope() -> None:
    some, most = (
        theory.coreset_rounds(told(), 0.5, form="certified", gamma=gamma) for gamma in (1 / 3, 0.8)
    )
    assert most > some
    some, most = (
        theory.regret_bound(told(), 1e9, 0.5, form="corrected", gamma=gamma)
        for gamma in (1 / 3, 0.8)
    )
    assert most < some


def test_the_lazy_core_set_pays_for_both_of_its_parts() -> None:
    T, eigenvalue = 1000, 0.5
    lazy, every, corrected = (
        theory.regret_bound(told(), T, eigenvalue, form=form)
        for form in ("lazy", "all", "corrected")
    )
    phase = 2 * theory.coreset_rounds(told(), eigenvalue, 0.0005, form="certified")
    assert lazy == pytest.approx(every + corrected - phase, rel=1e-12)


# ---------------------------------------------------------------- Algorithm 3


def test_algorithm_3_sweeps_as_often_as_its_rule_says_beforehand() -> None:
    eigenvalue, delta = 0.4, 0.01
    for noise in (0.01, 0.1, 1.0):
        problem = Problem(6, 4, noise_scale=noise, eigenvalue=eigenvalue)
        sweeps = theory.coreset_rounds(problem, eigenvalue, delta, form="eigenvalue") / 24
        rule = CoreSetRule(EIGENVALUE, 0, noise, 1.0, delta, 0.0, eigenvalue, True)
        theta = unit_rows(np.random.default_rng(0), 4, 2, 6)
        assert stopping_size(rule, theta, sweeps, int(sweeps)) >= 0
        assert sweeps == 1 or stopping_size(rule, theta, sweeps - 1, int(sweeps) - 1) == -1


def test_algorithm_3_pays_for_its_sweeps_and_for_the_largest_rank_there_can_be() -> None:
    eigenvalue, delta = 0.4, 0.002
    problem = Problem(6, 4, noise_scale=0.1, eigenvalue=eigenvalue)
    bound = theory.regret_bound(
        problem, 1e5, eigenvalue, delta, form="corrected", coreset="eigenvalue"
    )
    beta = theory.radius(problem, 1e5, 0.1, delta / 10, form="corrected") ** 2
    slope = 1 + math.sqrt(4 * 3 / eigenvalue)
    phase = 2 * theory.coreset_rounds(problem, eigenvalue, delta / 2, form="eigenvalue")
    play = 2 * math.sqrt((slope**2 * beta + 1) * 5 * 1e5 * 6 * math.log(1 + 1e5 / 0.6))
    assert bound == pytest.approx(play + phase, rel=1e-12)


def test_regret_bounds_as_the_paper_writes_them() -> None:
    d, L, s, R, M, T, rho, delta, lam = 6, 4, 2, 0.3, 1.7, 900.0, 0.2, 0.01, 0.6
    problem = Problem(d, L, s, R, norm_bound=M)
    root = R * math.sqrt(d * math.log((1 + T / rho) * 2 * (L + 1) / delta)) + M * math.sqrt(rho)
    log = d * math.log(6) + math.log(2 * L / delta)
    appendix = (
        2
        * math.sqrt(
            ((3 * math.sqrt(s) / lam * M + 1) ** 2 * root**2 + M**2)
            * ((s + 1) * T * d * math.log(1 + T * L / (d * rho)))
        )
        + 1152 * L**3 * M * R**2 * (M + R) ** 2 * d * log**2 / lam**2
    )
    main = (
        12 * math.sqrt(2) * (s + 1) / lam * math.sqrt(T * d * math.log(1 + T * L / d)) * root
        + 4608 * L**3 * d * log**2 / lam**2
    )
    rounds = theory.coreset_rounds(problem, lam, delta / 2, form="certified")
    corrected = (
        2
        * math.sqrt(
            ((1 + M * math.sqrt(3 * s / lam)) ** 2 * root**2 + M**2)
            * ((s + 1) * T * d * math.log(1 + T / (d * rho)))
        )
        + 2 * M * rounds
    )
    every = 2 * math.sqrt(
        ((1 + M * math.sqrt(s / lam)) ** 2 * root**2 + M**2)
        * ((L + 1) * T * d * math.log(1 + T / (d * rho)))
    )
    for form, expected in zip(FORMS, (main, appendix, corrected, every), strict=True):
        bound = theory.regret_bound(problem, T, lam, delta, rho, form=form)
        assert bound == pytest.approx(expected, rel=1e-13), form


def test_corrected_form_pays_for_the_rounds_of_the_rule_that_is_named() -> None:
    problem, delta = told(), 0.002
    bounds, rounds = {}, {}
    for rule in ("certified", "printed"):
        bounds[rule] = theory.regret_bound(
            problem, 1000, 0.7, delta, form="corrected", coreset=rule
        )
        rounds[rule] = theory.coreset_rounds(problem, 0.7, delta / 2, form=rule)
    whole = 24 * math.ceil(rounds["printed"] / 24)
    assert bounds["printed"] - bounds["certified"] == pytest.approx(
        2 * (whole - rounds["certified"]), rel=1e-9
    )


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_printed_phase_of_less_than_a_sweep_counts_as_one(noise: float) -> None:
    quiet = told(noise_scale=noise)
    assert theory.coreset_rounds(quiet, 0.7) < 1
    one, other = (
        theory.regret_bound(quiet, 1000, 0.7, form="corrected", coreset=rule)
        for rule in ("printed", "certified")
    )
    assert one == other


@pytest.mark.parametrize("s", [1, 2, 5])
@pytest.mark.parametrize("eigenvalue", [1.0, 0.3, 0.01])
def test_main_form_follows_from_the_appendix_where_all_three_constants_are_one(
    s: int, eigenvalue: float
) -> None:
    problem, T = Problem(6, 5, s, 1.0), np.geomspace(1, 1e9, 30)
    main, appendix = (
        theory.regret_bound(problem, T, eigenvalue, rho=1.0, form=form)
        for form in ("main", "appendix")
    )
    assert (main >= appendix).all()


def test_main_form_is_loose_by_a_factor_of_three_and_a_half() -> None:
    problem, T = Problem(6, 4, 2, 1.0), 1e6
    core_set = 2 * theory.coreset_rounds(problem, 0.1, 0.0005)
    main, appendix = (
        theory.regret_bound(problem, T, 0.1, rho=1.0, form=form) - core_set
        for form in ("main", "appendix")
    )
    assert main / appendix == pytest.approx(3.4, abs=0.05)


def test_main_form_promises_too_much_where_the_noise_is_not_one() -> None:
    problem = told(noise_scale=2.0)
    main, appendix = (
        theory.regret_bound(problem, 1000, 0.5, rho=1.0, form=form) for form in ("main", "appendix")
    )
    assert main < appendix


@pytest.mark.parametrize("coreset", ["certified", "printed"])
def test_corrected_form_is_never_above_the_appendix_by_more_than_a_sweep_up_to_eigenvalue_three(
    coreset: str,
) -> None:
    rng = np.random.default_rng(0)
    T = np.geomspace(1, 1e8, 20)
    for _ in range(200):
        problem = anything(rng)
        M, rho = problem.norm_bound, 10 ** rng.uniform(-2, 1)
        eigenvalue = min(M**2, 3.0) * 10 ** rng.uniform(-3, 0)
        if coreset == "printed" and problem.noise[1:].max() > M:
            continue  # not proved, and refused
        printed, corrected = (
            theory.regret_bound(problem, T, eigenvalue, 0.01, rho, form=form, coreset=coreset)
            for form in ("appendix", "corrected")
        )
        sweep = 2 * M * problem.dim * problem.n_protected
        assert (corrected <= printed * (1 + 1e-12) + sweep).all()


@pytest.mark.parametrize("noise", [0.001, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("eigenvalue", [0.01, 0.3, 1.0])
def test_corrected_form_improves_on_print_at_the_settings_of_the_paper(
    noise: float, eigenvalue: float
) -> None:
    T = np.array([100.0, 1000.0, 1e5])
    printed, corrected = (
        theory.regret_bound(told(noise_scale=noise), T, eigenvalue, form=form)
        for form in ("appendix", "corrected")
    )
    assert (corrected < printed).all()


def test_beyond_eigenvalue_three_print_promises_more_than_its_proof_gives() -> None:
    for eigenvalue, promised in ((2.9, False), (3.1, True), (9.0, True)):
        problem = Problem(3, 2, 1, noise_scale=0.0, norm_bound=3.0)
        printed, corrected = (
            theory.regret_bound(problem, 100, eigenvalue, form=form)
            for form in ("appendix", "corrected")
        )
        assert (printed < corrected) == promised


def test_coefficients_obey_the_square_root_of_the_eigenvalue_and_not_the_eigenvalue() -> None:
    """|x|_1 <= M sqrt(s / lambda_min), where the projection of theta_0 is sum x_i theta_i (B8)."""
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(300):
        s, d = int(rng.integers(1, 5)), 6
        protected = rng.normal(size=(s, d)) * 10 ** rng.uniform(-1, 1)
        target = protected.T @ rng.normal(size=s)
        eigenvalue = np.linalg.svd(protected, compute_uv=False)[-1] ** 2
        length = abs(np.linalg.lstsq(protected.T, target, rcond=None)[0]).sum()
        M = np.linalg.norm(target)
        assert length <= M * math.sqrt(s / eigenvalue) * (1 + 1e-9)
        broken += length > M * math.sqrt(s) / eigenvalue
    assert broken > 0


def test_all_constraints_form_has_no_phase_and_takes_the_largest_rank_where_none_is_told() -> None:
    unknown = told(subspace_dim=None)
    bound = theory.regret_bound(unknown, 1000, 0.5, form="all")
    assert bound == theory.regret_bound(told(subspace_dim=4), 1000, 0.5, form="all")
    assert bound > theory.regret_bound(told(), 1000, 0.5, form="all")


@pytest.mark.parametrize("form", FORMS)
def test_regret_bound_grows_with_the_horizon_and_slower_than_it(form: str) -> None:
    T = np.geomspace(1, 1e12, 200)
    bound = theory.regret_bound(told(), T, 0.5, form=form)
    assert (np.diff(bound) > 0).all()
    assert (np.diff(bound / T) < 0).all()


# ---------------------------------------------------------------- OFUL


def test_oful_bounds_by_hand() -> None:
    problem = noiseless()
    printed = theory.oful_bound(problem, HORIZON, 0.01, 1.0)
    corrected = theory.oful_bound(problem, HORIZON, 0.01, 1.0, form="corrected")
    assert printed == pytest.approx(4 * math.sqrt(2 * HORIZON))
    assert corrected == pytest.approx(2 * math.sqrt((1 + 1) * 2 * HORIZON))


def test_oful_is_the_main_form_without_its_factor() -> None:
    problem, T = told(noise_scale=1.0), 1e5
    core_set = 2 * theory.coreset_rounds(problem, 0.5, 0.0005)
    main = theory.regret_bound(problem, T, 0.5, 0.001, 1.0, form="main")
    oful = theory.oful_bound(problem, T, 0.001 / 10, 1.0)
    assert main - core_set == pytest.approx(3 * math.sqrt(2) * 3 / 0.5 * oful)


@pytest.mark.parametrize("n_protected", [0, 1, 4])
def test_printed_oful_bound_follows_from_the_corrected_one_for_rho_of_one_or_more(
    n_protected: int,
) -> None:
    T = np.geomspace(1, 1e9, 30)
    for rho in (1.0, 7.0):
        for noise in (0.001, 1.0):
            problem = Problem(5, n_protected, noise_scale=noise, resolution=0.1)
            printed = theory.oful_bound(problem, T, 0.01, rho)
            assert (printed >= theory.oful_bound(problem, T, 0.01, rho, form="corrected")).all()
    quiet = Problem(5, n_protected, noise_scale=0.001, resolution=0.1)
    assert theory.oful_bound(quiet, 1000) < theory.oful_bound(quiet, 1000, form="corrected")


def test_printed_oful_bound_needs_actions_of_length_one() -> None:
    """With longer actions print promises less than its proof gives, also where rho is 1."""
    for bound, promised in ((1.0, False), (2.0, True), (5.0, True)):
        problem = Problem(5, 0, noise_scale=0.001, action_bound=bound)
        printed, corrected = (
            theory.oful_bound(problem, 1000, 0.01, 1.0, form=form)
            for form in ("printed", "corrected")
        )
        assert (printed < corrected) == promised


def test_corrected_oful_bound_scales_with_the_bound_on_actions() -> None:
    """Actions twice as long and vectors half as long are the same bandit, at four times the rho."""
    short = Problem(3, 0, noise_scale=0.2, norm_bound=2.0)
    long = Problem(3, 0, noise_scale=0.2, norm_bound=1.0, action_bound=2.0)
    one = theory.oful_bound(short, 500, 0.01, 0.5, form="corrected")
    assert one == pytest.approx(theory.oful_bound(long, 500, 0.01, 2.0, form="corrected"))


# ---------------------------------------------------------------- lower bound


def test_printed_lower_bound_is_as_printed_from_256_rounds_on() -> None:
    assert theory.lower_bound(10_000) == pytest.approx(math.exp(-21) / 16 * 1000)
    assert theory.lower_bound(10_000, 0.001) == theory.lower_bound(10_000)
    assert theory.lower_bound(255) == 0 < theory.lower_bound(256)


@pytest.mark.parametrize("noise", [0.001, 0.1, 1.0])
def test_corrected_lower_bound_is_half_the_sum_that_the_proof_gives(noise: float) -> None:
    for T in (1, 81, 82, 100, 255, 256, 1000, 10**6):
        alpha = math.sqrt(noise) / T**0.25
        both = 0.78 * alpha * T / 6 * (math.exp(-3.125) / 2 - 2 * math.exp(-T / 18))
        expected = max(both, 0) / 2 if alpha <= 0.25 else 0
        bound = theory.lower_bound(T, noise, form="corrected")
        assert bound == pytest.approx(expected, rel=1e-13)
        assert (bound > 0) == (max(82, 256 * noise**2) <= T)


def test_corrected_lower_bound_grows_as_the_root_of_the_noise_and_three_quarters_of_time() -> None:
    T = np.array([1e4, 1e8])
    loud, quiet = (theory.lower_bound(T, noise, form="corrected") for noise in (1.0, 0.01))
    np.testing.assert_allclose(loud, 10 * quiet, rtol=1e-12)
    assert loud[1] / loud[0] == pytest.approx(1000)
    assert theory.lower_bound(1000, 0.0, form="corrected") == 0


def test_corrected_lower_bound_is_far_above_the_printed_one_and_below_what_can_be_lost() -> None:
    T = np.geomspace(256, 1e9, 50)
    corrected = theory.lower_bound(T, form="corrected")
    assert (corrected > 1e7 * theory.lower_bound(T)).all()
    assert (corrected < 2 * T).all()


def unit(angle: FloatArray | float) -> FloatArray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def test_constants_of_the_corrected_lower_bound_are_those_of_the_pair_of_instances() -> None:
    alpha = np.linspace(1e-3, 0.25, 500)
    target = unit(np.pi / 2 - alpha)
    arms = np.stack([unit(np.pi - alpha), unit(2 * alpha), unit(np.pi - 3 * alpha)])  # (3, 500, 2)
    protected = [unit(0 * alpha), unit(-alpha)]
    rewards = [
        ((arms - (arms * p).sum(-1, keepdims=True) * p) * target).sum(-1)  # (3, 500)
        for p in protected
    ]
    first, second = rewards[0][2] - rewards[0][1], rewards[1][1] - rewards[1][2]
    assert (np.minimum(first, second) >= 0.78 * alpha).all()
    seen = (arms * (protected[0] - protected[1])).sum(-1)
    assert (seen**2 / 2 <= 3.125 * alpha**4 * (1 + 1e-9)).all()  # D <= T seen^2 / (2 R^2)


def test_third_arm_is_on_offer_in_a_third_of_the_rounds_but_for_the_chance_in_the_bound() -> None:
    for T in range(1, 400):
        few = sum(math.comb(T, n) for n in range(math.ceil(T / 3))) / 2**T
        assert few <= math.exp(-T / 18)


@pytest.mark.parametrize("form", ["printed", "corrected"])
@pytest.mark.parametrize("noise", [0.001, 1.0, 5.0])
def test_lower_bound_never_falls_with_the_horizon(form: str, noise: float) -> None:
    bound = theory.lower_bound(np.arange(1.0, 20_000), noise, form=form)
    assert (np.diff(bound) >= 0).all()
    assert bound[-1] > 0


# ---------------------------------------------------------------- doors

CURVES: list[Callable[[Any], Any]] = [
    lambda T: theory.radius(told(), T, 0.1, 0.01),
    lambda T: theory.regret_bound(told(), T, 0.5, form="main"),
    lambda T: theory.regret_bound(told(), T, 0.5),
    lambda T: theory.regret_bound(told(), T, 0.5, form="corrected"),
    lambda T: theory.regret_bound(told(), T, 0.5, form="all"),
    lambda T: theory.oful_bound(told(), T),
    lambda T: theory.oful_bound(told(), T, form="corrected"),
    theory.lower_bound,
    lambda T: theory.lower_bound(T, form="corrected"),
]


@pytest.mark.parametrize("curve", CURVES)
def test_array_of_horizons_gives_what_each_horizon_gives(curve: Callable[[Any], Any]) -> None:
    T = np.array([[1, 10, 300], [1000, 2000, 10**9]])
    T.flags.writeable = False
    values = curve(T)
    assert values.shape == T.shape
    assert values.dtype == np.float64
    for at, value in zip(T.flat, values.flat, strict=True):
        alone = curve(int(at))
        assert type(alone) is float
        assert value == pytest.approx(alone, rel=1e-14)
    np.testing.assert_array_equal(curve(T.tolist()), values)
    assert curve(np.empty(0)).shape == (0,)


SAID: list[tuple[Callable[[], object], str]] = [
    (lambda: theory.regret_bound(told(), 0, 0.5), "horizon must be positive and finite, got 0"),
    (lambda: theory.regret_bound(told(), [5, -2], 0.5), "horizon must .* got -2"),
    (lambda: theory.regret_bound(told(), math.nan, 0.5), "horizon must .* got nan"),
    (lambda: theory.regret_bound(told(), "9", 0.5), "horizon must be a number .* got '9'"),
    (lambda: theory.regret_bound(told(), None, 0.5), "horizon must be a number .* got None"),
    (lambda: theory.regret_bound(told(), True, 0.5), "horizon must be a number .* got True"),
    (lambda: theory.regret_bound(told(), [[1], [2, 3]], 0.5), "horizon must be a number"),
    (lambda: theory.regret_bound(told(), 9, 0.0), "eigenvalue must be positive"),
    (lambda: theory.regret_bound(told(), 9, 1.5), r"eigenvalue must be at most norm_bound\^2 = 1"),
    (lambda: theory.regret_bound(told(), 9, 0.5, 2.0), "delta must .* got 2.0"),
    (lambda: theory.regret_bound(told(), 9, 0.5, 1.5, form="main"), "delta must .* got 1.5"),
    (lambda: theory.regret_bound(told(), 9, 0.5, 0.1, -1.0), "rho must be positive"),
    (lambda: theory.regret_bound(told(), 9, 0.5, form="best"), "form must be one of 'main', "),
    (lambda: theory.regret_bound(told(), 9, 0.5, coreset="all"), "coreset must be one of"),
    (lambda: theory.regret_bound(told(subspace_dim=None), 9, 0.5), "subspace_dim must be known"),
    (lambda: theory.regret_bound(told(noise_scale=None), 9, 0.5), "noise_scale must be a number"),
    (
        lambda: theory.regret_bound(told(action_bound=0.5), 9, 0.5),
        "action_bound must be at least 1",
    ),
    (lambda: theory.regret_bound(Problem(3, 0), 9, 0.5), "n_protected must be an integer >= 1"),
    (lambda: theory.coreset_rounds(told(), 0.5, 0.0), "delta must lie strictly"),
    (lambda: theory.coreset_rounds(told(), -1.0), "eigenvalue must be positive"),
    (lambda: theory.regret_bound(told(), 9, 0.5, gamma=1.0), "gamma must lie strictly between"),
    (
        lambda: theory.regret_bound(Problem(6, 8, 2, noise_scale=0.1), 9, 0.5, form="all"),
        "needs fewer protected vectors than dimensions, .* n_protected=8, dim=6",
    ),
    (
        lambda: theory.regret_bound(
            told(noise_scale=2.0), 9, 0.5, form="corrected", coreset="printed"
        ),
        "noise_scale of the protected vectors must be at most norm_bound",
    ),
    (
        lambda: theory.regret_bound(
            Problem(2, 2, 1, noise_scale=0.1), 9, 0.5, 0.99, form="corrected", coreset="printed"
        ),
        "d log 6 .* must be at least 5 for coreset='printed', got 4.98",
    ),
    (
        lambda: theory.coreset_rounds(told(), 0.5, form="eigenvalue"),
        "'eigenvalue' is for a problem with this eigenvalue and without subspace_dim",
    ),
    (
        lambda: theory.coreset_rounds(told(), 0.5, form="corrected"),
        "form must be one of 'printed', ",
    ),
    (lambda: theory.coreset_rounds(told(noise_scale=None), 0.5), "noise_scale must be a number"),
    (lambda: theory.oful_bound(told(), -1), "horizon must be positive"),
    (lambda: theory.oful_bound(told(), 9, 7.0), "delta must .* got 7.0"),
    (lambda: theory.oful_bound(told(), 9, form="main"), "form must be one of"),
    (lambda: theory.lower_bound(0), "horizon must be positive"),
    (lambda: theory.lower_bound(9, -0.5), "noise_scale must be positive"),
    (lambda: theory.lower_bound(9, np.ones(2)), "noise_scale must be positive"),
    (lambda: theory.lower_bound(9, form="main"), "form must be one of"),
    (lambda: theory.radius(told(), -1, 0.1, 0.1), "count must be zero or positive"),
    (lambda: theory.radius(told(), 1, 0.0, 0.1), "rho must be positive"),
    (lambda: theory.radius(told(), 1, 0.1, 1.0), "delta must lie strictly"),
]


@pytest.mark.parametrize(("call", "sentence"), SAID)
def test_wrong_arguments_are_refused_in_one_sentence(
    call: Callable[[], object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_theory_can_be_imported_without_a_compiler() -> None:
    program = "import sys, sidestep.core.theory; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


# ---------------------------------------------------------------- against play


@pytest.mark.slow
@pytest.mark.parametrize("coreset", ["certified", "all"])
@pytest.mark.parametrize("noise", [0.001, 0.1, 1.0])
def test_a_round_on_the_ball_costs_no_more_than_its_width_and_certificate(
    coreset: str, noise: float
) -> None:
    """Lemma "delta_upperbound", corrected: regret <= 2 (1 + M sqrt(s / lambda)) width + gap."""
    rng = np.random.default_rng(0)
    theta = np.vstack([unit_rows(rng, 1, 6, 6), unit_rows(rng, 4, 2, 6)])
    rows, eigenvalue, _ = best_subset(theta[1:], 2)
    policy = ProtectedLinUCB(told(noise_scale=noise), coreset=coreset)
    state, regret, gaps = policy.init(), 0.0, 0.0
    if coreset != "all":
        state = replace(state, core_set=core_set_of(5, rows))
    basis = np.linalg.svd(theta[1:])[2][2:]
    left = basis.T @ basis @ theta[0]
    for _ in range(300):
        decision = policy.ask(state, UnitBall(6), rng)
        action, index = decision.query.action, decision.query.index
        gap = max((decision.bound or 0.0) - (decision.value or 0.0), 0.0)
        loss = np.linalg.norm(left) - action @ left
        reach = width(policy.knobs.confidence, state.evidence, index, action)
        assert loss <= 2 * (1 + math.sqrt(2 / eigenvalue)) * reach + gap
        regret, gaps = regret + loss, gaps + gap
        state = policy.tell(state, decision.query, action @ theta[index] + noise * rng.normal())
    form = "all" if coreset == "all" else "corrected"
    assert regret <= theory.regret_bound(policy.problem, 300, eigenvalue, form=form) + gaps


@pytest.mark.parametrize(
    "told",
    [
        {"costs": (1.0, 2.0, 1.0, 1.0, 1.0)},
        {"intercept": True},
        {"subspace_dim": None, "tolerance": 0.2},
    ],
)
def test_where_a_policy_refuses_a_problem_so_does_its_bound(told: dict[str, Any]) -> None:
    problem = Problem(**{"dim": 6, "n_protected": 4, "subspace_dim": 2, "noise_scale": 0.1} | told)
    calls: list[Callable[[], object]] = [
        lambda: ProtectedLinUCB(problem),
        lambda: theory.regret_bound(problem, 100, 0.5, form="all"),
        lambda: theory.regret_bound(problem, 100, 0.5, form="corrected"),
        lambda: theory.coreset_rounds(problem, 0.5, form="certified"),
        lambda: OFUL(problem),
        lambda: theory.oful_bound(problem, 100),
        lambda: ExploreThenCommit(problem),
        lambda: theory.explore_commit_bound(problem, 100, 0.5, 0.1),
    ]
    for call in calls:
        with pytest.raises(InputError) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_the_lazy_core_set_keeps_the_share_of_its_own_rule():
    """Where only lambda_min is told the policy keeps a third, whatever gamma says."""
    knows = ss.Problem(8, 4, noise_scale=0.1, eigenvalue=0.3)
    bound = ss.theory.regret_bound(knows, 10**6, 0.3, form="lazy", gamma=0.9)
    assert bound == ss.theory.regret_bound(knows, 10**6, 0.3, form="lazy", gamma=1 / 3)
    told = ss.Problem(8, 4, subspace_dim=2, noise_scale=0.1)
    shares = [
        ss.theory.regret_bound(told, 10**6, 0.3, form="lazy", gamma=gamma) for gamma in (0.1, 0.9)
    ]
    assert shares[0] > shares[1]
    for coreset in ("certified", "eigenvalue", "printed"):
        assert shares[0] == ss.theory.regret_bound(
            told, 10**6, 0.3, form="lazy", coreset=coreset, gamma=0.1
        )


def test_the_lazy_core_set_is_refused_where_no_share_is_proved(refusal):
    resolved = ss.Problem(8, 4, noise_scale=0.1, resolution=0.3)
    message = refusal(ss.theory.regret_bound, resolved, 100, 0.3, form="lazy")
    assert "resolution must be None for form='lazy'" in message
    knows = ss.Problem(8, 4, noise_scale=0.1, eigenvalue=0.3)
    assert "eigenvalue=0.3" in refusal(ss.theory.regret_bound, knows, 100, 0.9, form="lazy")


def test_a_target_that_is_protected_has_no_price(refusal):
    world = ss.environments.synthetic(4, 1, 1, "ball", noise_scale=0.1, seed=0)
    theta = world.theta.copy()
    theta[0] = 0.5 * theta[1]
    whole = ss.environments.Instance(theta, world.actions, 0.1)
    assert "some of the target" in refusal(ss.theory.price_of_protection, whole)
