"""Numerical checks of the proofs for posterior sampling on the ball (docs/theory.md, Theorems 4 and 5).

Every constant of Theorem 4 was also checked with a separate implementation in plain numpy, on 1,500
worlds of 60 rounds in each of seven settings (d from 3 to 8, s from 0 to 3, noise equal and from
0.02 to 1, costs equal and from 0.5 to 9). Of 1,590,000 rounds none exceeded step 3; the largest
reached 0.63 of it. The sum of min(m_t^2, 1) was at most 40.6 of 51.2 with equal noise and 20.7 of
211 with unequal noise, the rounds with m_t > 1 at most 23 of 51.2, and the mean of the longest draw
of the target 1.40 to 1.90 where 2.01 to 2.65 is allowed. Regret and the advantage of the draw (step
1) differed by less than three standard errors.
"""

import math

import numpy as np
import pytest
from scipy.stats import t as student_t

from sidestep.core import theory
from sidestep.core.actions import UnitBall
from sidestep.core.problem import Problem, Query
from sidestep.policies.protected_thompson import ProtectedThompson

DIM, PROTECTED, NOISE, ROUNDS = 6, 2, 0.3, 40
PROBLEM = Problem(DIM, PROTECTED, subspace_dim=PROTECTED, noise_scale=NOISE)
UNEVEN = Problem(
    DIM, PROTECTED, PROTECTED, noise_scale=(NOISE, 0.1 * NOISE, 3 * NOISE), costs=(1.0, 4.0, 0.5)
)
TAU = 1 / math.sqrt(DIM)


def off_span(theta):
    basis = np.linalg.qr(theta[1:].T)[0]
    return theta[0] - basis @ (basis.T @ theta[0])


def game(seed, policy):
    """Rounds of one world of the prior: regret, advantage of the draw, width measured, step 3."""
    rng = np.random.default_rng(seed)
    noise, costs = policy.problem.noise, np.broadcast_to(policy.problem.costs, PROTECTED + 1)
    theta = TAU * rng.standard_normal((PROTECTED + 1, DIM))
    rest, state, rows = off_span(theta), policy.init(), []
    x = np.linalg.lstsq(theta[1:].T, theta[0], rcond=None)[0]
    tail = math.sqrt(DIM) + math.sqrt(2 * math.log(2 * (PROTECTED + 1) * ROUNDS**2))
    slope = 2 * noise.max() * math.sqrt(costs.max() / costs.min()) * tail * (1 + np.abs(x).sum())
    for _ in range(ROUNDS):
        decision = policy.ask(state, UnitBall(DIM), rng)
        action, v = decision.query.action, decision.query.index
        widths = np.sqrt(np.einsum("j,vjk,k->v", action, state.evidence.inverse, action))
        assert v == (noise**2 * widths**2 / costs).argmax()
        advantage = decision.value - action @ rest
        rows.append((np.linalg.norm(rest) - action @ rest, advantage, widths[v], slope * widths[v]))
        feedback = action @ theta[v] + noise[v] * rng.standard_normal()
        state = policy.tell(state, decision.query, feedback)
    return np.array(rows)


@pytest.fixture(scope="module", params=[PROBLEM, UNEVEN], ids=["even", "uneven"])
def problem(request):
    return request.param


@pytest.fixture(scope="module")
def games(problem):
    policy = ProtectedThompson(problem, query="widest")
    return np.array([game(seed, policy) for seed in range(30)])


@pytest.mark.full
def test_step_1_regret_and_the_draws_advantage_have_one_mean(games, oracle):
    assert oracle.mean_about((games[:, :, 0] - games[:, :, 1]).mean(axis=1), 0.0)


@pytest.mark.full
def test_step_3_the_draws_advantage_stays_below_the_width(games, oracle):
    beyond = int((games[:, :, 1] > games[:, :, 3]).sum())
    assert oracle.at_most(beyond, games[:, :, 0].size, ROUNDS**-2.0)


@pytest.mark.full
def test_step_5_widths_never_pass_the_potential(games, problem):
    vectors, rho = PROTECTED + 1, problem.noise.min() ** 2 / TAU**2
    potential = vectors * DIM * np.log1p(ROUNDS / (vectors * DIM * rho)) / math.log(2)
    assert (np.minimum(games[:, :, 2] ** 2, 1).sum(axis=1) <= potential).all()


@pytest.mark.full
def test_the_bound_holds_on_average_over_the_prior(games, problem, oracle):
    bound = theory.thompson_bound(problem, ROUNDS)
    assert oracle.mean_at_most(games[:, :, 0].sum(axis=1), bound)


def test_step_2_regret_is_linear_in_the_errors():
    rng = np.random.default_rng(0)
    for _ in range(50):
        theta, drawn = TAU * rng.standard_normal((2, PROTECTED + 1, DIM))
        action = off_span(drawn) / np.linalg.norm(off_span(drawn))
        x = np.linalg.lstsq(theta[1:].T, theta[0], rcond=None)[0]
        advantage = action @ drawn[0] - action @ off_span(theta)
        errors = action @ (drawn[0] - theta[0]) + x @ ((theta[1:] - drawn[1:]) @ action)
        assert advantage == pytest.approx(errors, abs=1e-12)


def test_step_3_lengths_of_gaussian_vectors_stay_below_their_tail(oracle):
    rng = np.random.default_rng(1)
    lengths = np.linalg.norm(rng.standard_normal((20_000, DIM)), axis=1)
    for u in (1.0, 2.0, 4.0):
        failures = int((lengths > math.sqrt(DIM) + math.sqrt(2 * u)).sum())
        assert oracle.at_most(failures, len(lengths), math.exp(-u))


def coefficients(dim, size, count):
    theta = np.random.default_rng(2).standard_normal((count, size + 1, dim))
    gram = np.einsum("nij,nkj->nik", theta[:, 1:], theta[:, 1:])
    moved = np.einsum("nij,nj->ni", theta[:, 1:], theta[:, 0])[:, :, None]
    return np.linalg.solve(gram, moved)[:, :, 0]


@pytest.mark.parametrize(("dim", "size"), [(6, 2), (8, 3), (12, 5)])
def test_coefficients_have_the_mean_square_of_an_inverse_wishart(dim, size, oracle):
    x = coefficients(dim, size, 20_000)
    assert oracle.mean_about((x**2).sum(axis=1), size / (dim - size - 1))


@pytest.mark.parametrize(("dim", "size"), [(6, 2), (5, 3), (4, 1), (12, 5)])
def test_step_8_coefficients_have_the_mean_of_students_t(dim, size, oracle):
    lengths = np.abs(coefficients(dim, size, 20_000)).sum(axis=1)
    expected = theory.expected_coefficients(dim, size)
    assert oracle.mean_about(lengths, expected)
    assert not oracle.mean_about(lengths, 0.9 * expected)
    assert not oracle.mean_about(lengths, 1.1 * expected)


@pytest.mark.parametrize(("dim", "size"), [(3, 2), (4, 3), (8, 7)])
def test_step_8_coefficients_have_their_distribution_where_one_direction_is_left(dim, size, oracle):
    """There the mean square is infinite: the share of coefficients beyond t is compared instead."""
    x = np.abs(coefficients(dim, size, 20_000)[:, 0]) * math.sqrt(dim - size + 1)
    for t in (0.5, 1.0, 3.0):
        expected = 2 * student_t.sf(t, dim - size + 1)
        assert oracle.mean_about((x > t).astype(float), expected)
    mean = student_t.expect(abs, args=(dim - size + 1,)) / math.sqrt(dim - size + 1)
    assert theory.expected_coefficients(dim, size) == pytest.approx(size * mean, rel=1e-6)


def test_the_bound_of_the_widest_query_by_hand():
    problem = Problem(6, 2, 2, noise_scale=(0.3, 0.1, 0.9), costs=(1.0, 4.0, 9.0), norm_bound=2.0)
    T = 1e4
    rho = (0.1 / 2.0) ** 2 * 6
    widths = 18 * math.log(1 + T / (18 * rho)) / math.log(2)
    tail = math.sqrt(6) + math.sqrt(2 * math.log(6 * T * T))
    slope = 1 + 2 * math.gamma(2) / (math.sqrt(math.pi) * math.gamma(2.5))
    expected = 2 * 0.9 * tail * slope * 3 * math.sqrt(widths * T)
    expected += widths * 2 * (2 + math.sqrt(2 * math.log(T) / 6)) + 4
    assert theory.thompson_bound(problem, T) == pytest.approx(expected, rel=1e-12)


def test_the_bound_grows_like_the_root_of_the_horizon():
    T = np.array([1e6, 1e8])
    low, high = theory.thompson_bound(PROBLEM, T)
    assert math.log(high / low) / math.log(100) == pytest.approx(0.55, abs=0.06)  # root, and logs


def test_the_bound_says_where_it_does_not_hold(refusal):
    for problem in (
        Problem(6, 4, subspace_dim=2, noise_scale=0.1),
        Problem(4, 4, subspace_dim=4, noise_scale=0.1),
    ):
        assert "needs subspace_dim = n_protected" in refusal(theory.thompson_bound, problem, 100)


def test_the_bound_holds_where_one_direction_is_left_and_proportional_needs_two(refusal):
    problem = Problem(4, 3, subspace_dim=3, noise_scale=0.1)
    assert theory.thompson_bound(problem, 100) > 0
    said = refusal(theory.thompson_bound, problem, 100, query="proportional")
    assert "n_protected <= dim - 2" in said


def test_a_vector_with_less_noise_has_the_larger_potential():
    even = theory.thompson_bound(Problem(6, 2, 2, noise_scale=0.3), 1000)
    uneven = theory.thompson_bound(Problem(6, 2, 2, noise_scale=(0.3, 0.03, 0.3)), 1000)
    assert uneven > even  # with R = .3 for all the widths of the second would be counted too small


def test_unequal_costs_multiply_the_bound_by_the_root_of_their_ratio():
    T = 1e12  # where the rounds of play are all of the bound
    even = theory.thompson_bound(PROBLEM, T)
    dear = theory.thompson_bound(Problem(6, 2, 2, noise_scale=NOISE, costs=(1.0, 4.0, 1.0)), T)
    assert dear / even == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"tolerance": 0.1}, "without levels"),
        ({"intercept": True}, "without levels"),
        ({"noise_scale": 0.0}, "must be at least 1e-06"),
    ],
)
def test_what_the_proof_does_not_reach_is_refused(told, words, refusal):
    problem = Problem(6, 2, 2, **{"noise_scale": NOISE} | told)
    assert words in refusal(theory.thompson_bound, problem, 100)


def test_a_part_of_a_round_is_bounded_like_a_whole_one():
    assert theory.thompson_bound(PROBLEM, 0.5) == theory.thompson_bound(PROBLEM, 1)


# ---------------------------------------------------------------- the query "proportional"


@pytest.mark.full
def test_a_query_of_a_second_draw_measures_on_average_what_the_truth_weighs(oracle):
    """Step 3 of Theorem 5: E sum_v |x_v| R_v m_v = E[G(x'') m_v], v drawn with x''; equal costs."""
    policy = ProtectedThompson(PROBLEM, query="proportional")
    differences = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        theta = TAU * rng.standard_normal((PROTECTED + 1, DIM))
        x = np.append(1.0, np.linalg.lstsq(theta[1:].T, theta[0], rcond=None)[0])
        state, rows = policy.init(), []
        for _ in range(25):
            decision = policy.ask(state, UnitBall(DIM), rng)
            action, v = decision.query.action, decision.query.index
            widths = np.sqrt(np.einsum("j,vjk,k->v", action, state.evidence.inverse, action))
            second = drawn_again(policy, state, rng)
            weights = np.abs(np.append(1.0, second))
            # over the vector that is drawn, the mean of G(x'') m_v is the sum below
            rows.append(np.abs(x) @ widths - weights @ widths)
            feedback = action @ theta[v] + NOISE * rng.standard_normal()
            state = policy.tell(state, decision.query, feedback)
        differences.append(np.mean(rows))
    assert oracle.mean_about(np.array(differences), 0.0)


def drawn_again(policy, state, rng):
    """Coefficients of one more draw from the posterior, in plain numpy."""
    evidence = state.evidence
    roots = np.linalg.cholesky(evidence.inverse) * NOISE
    drawn = evidence.centre + np.einsum(
        "vij,vj->vi", roots, rng.standard_normal(evidence.centre.shape)
    )
    return np.linalg.lstsq(drawn[1:].T, drawn[0], rcond=None)[0]


@pytest.mark.parametrize("costs", [1.0, (1.0, 4.0, 9.0)])
def test_a_proportional_query_has_the_frequencies_of_its_draws(costs, oracle):
    problem = Problem(DIM, PROTECTED, PROTECTED, noise_scale=(0.3, 0.1, 0.9), costs=costs)
    policy = ProtectedThompson(problem, query="proportional")
    state, rng = policy.init(), np.random.default_rng(4)
    for v in (0, 1, 2) * 8:
        action = rng.standard_normal(DIM)
        state = policy.tell(state, Query(action / np.linalg.norm(action), v), rng.standard_normal())
    asked = np.array([policy.ask(state, UnitBall(DIM), rng).query.index for _ in range(1500)])
    evidence, shares = state.evidence, []
    roots = np.linalg.cholesky(evidence.inverse) * problem.noise[:, None, None]
    for _ in range(4000):
        normals = rng.standard_normal(evidence.centre.shape)
        drawn = evidence.centre + np.einsum("vij,vj->vi", roots, normals)
        x = np.append(1.0, np.linalg.lstsq(drawn[1:].T, drawn[0], rcond=None)[0])
        weight = np.abs(x) * problem.noise / np.sqrt(np.broadcast_to(problem.costs, 3))
        shares.append(weight / weight.sum())
    for v, share in enumerate(np.mean(shares, axis=0)):
        assert oracle.mean_about((asked == v).astype(float), share)


@pytest.mark.full
def test_the_bound_of_the_proportional_query_holds_on_average_over_the_prior(problem, oracle):
    policy, finals = ProtectedThompson(problem, query="proportional"), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        theta = TAU * rng.standard_normal((PROTECTED + 1, DIM))
        rest, state, regret = off_span(theta), policy.init(), 0.0
        for _ in range(ROUNDS):
            query = policy.ask(state, UnitBall(DIM), rng).query
            regret += np.linalg.norm(rest) - query.action @ rest
            feedback = query.action @ theta[query.index]
            feedback += problem.noise[query.index] * rng.standard_normal()
            state = policy.tell(state, query, feedback)
        finals.append(regret)
    bound = theory.thompson_bound(problem, ROUNDS, query="proportional")
    assert oracle.mean_at_most(np.array(finals), bound)


def test_the_bound_of_the_proportional_query_by_hand():
    problem = Problem(6, 2, 2, noise_scale=(0.3, 0.1, 0.9), costs=(1.0, 4.0, 9.0), norm_bound=2.0)
    T = 1e4
    rho = (0.1 / 2.0) ** 2 * 6
    widths = 18 * math.log(1 + T / (18 * rho)) / (rho * math.log(1 + 1 / rho))
    tail = math.sqrt(6) + math.sqrt(2 * math.log(6 * T * T))
    root = 0.3 + (0.1 / 2 + 0.9 / 3) / math.sqrt(3)
    expected = 2 * 3 * tail * root * math.sqrt(widths * T) + 4
    bound = theory.thompson_bound(problem, T, query="proportional")
    assert bound == pytest.approx(expected, rel=1e-12)


def test_widths_are_below_the_larger_potential_however_large_they_are():
    """Step 5 of Theorem 5: m^2 <= log(1 + m^2) / (rho log(1 + 1 / rho)) for every m^2 <= 1 / rho."""
    for rho in (1e-3, 0.06, 1.0, 30.0):
        squares = np.linspace(0, 1 / rho, 1001)
        factor = 1 / (rho * math.log1p(1 / rho))
        assert (squares <= np.log1p(squares) * factor * (1 + 1e-12)).all()
        assert squares[-1] > 0.9 * factor * np.log1p(squares[-1])


def test_a_proportional_query_is_refused_within_tolerances(refusal):
    problem = Problem(6, 2, noise_scale=0.1, tolerance=0.1)
    assert "with tolerances, got 'proportional'" in refusal(
        ProtectedThompson, problem, query="proportional"
    )
