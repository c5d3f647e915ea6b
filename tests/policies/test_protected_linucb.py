"""Protected LinUCB: its three presets, CORE-SET as seen in runs, and what it needs to know."""

from itertools import combinations

import numpy as np
import pytest

import sidestep as ss
from sidestep.core import core_set as coreset
from sidestep.core.confidence import LOGDET, PRINTED
from sidestep.environments import FreshArms, Instance, Menus, synthetic
from sidestep.errors import CoreSetError, UnreachedDirectionsWarning
from sidestep.experiments.simulate import play

DELTA = 0.001
FLAT = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0]])


def rng(seed=0):
    return np.random.default_rng(seed)


def problem(**changed):
    told = {"dim": 4, "n_protected": 3, "subspace_dim": 2, "noise_scale": 0.001}
    return ss.Problem(**{**told, **changed})


def world(source=None, noise=0.001, seed=0, sizes=(4, 3, 2)):
    source = ss.UnitBall(sizes[0]) if source is None else source
    return synthetic(*sizes, source, noise_scale=noise, seed=seed)


def last_state(policy, instance, rounds, seed=0):
    *_, last = play(policy, instance, rounds, seed)
    return last.state


def eigenvalue(theta, rows):
    """lambda_min of the Gram matrix of some protected vectors."""
    chosen = theta[list(rows)]
    return np.linalg.eigvalsh(chosen @ chosen.T)[0]


# The three presets (the table in docs/deviations.md)


def faces():
    told = problem()
    return {
        "printed": ss.ProtectedLinUCB.as_printed(told, delta=DELTA),
        "intended": ss.ProtectedLinUCB.as_intended(told, delta=DELTA),
        "default": ss.ProtectedLinUCB(told, delta=DELTA),
    }


@pytest.mark.parametrize(
    ("what", "printed", "intended", "default"),
    [
        ("surrogate", "printed", "corrected", "corrected"),
        ("radius", "printed", "printed", "logdet"),
        ("coreset", "printed", "printed", "certified"),
        ("design", "basis", "basis", "arms"),
        ("reset", True, False, False),
    ],
)
def test_the_three_presets_have_the_knobs_of_the_table(what, printed, intended, default):
    found = {name: getattr(policy, what) for name, policy in faces().items()}
    assert found == {"printed": printed, "intended": intended, "default": default}


def test_the_three_presets_end_core_set_by_their_own_rule():
    rules = {name: policy.rule.kind for name, policy in faces().items()}
    assert rules == {
        "printed": coreset.PRINTED,
        "intended": coreset.INTENDED,
        "default": coreset.CERTIFIED,
    }


def test_the_three_presets_split_delta_as_the_table_says():
    sets = {name: policy.knobs.confidence.delta for name, policy in faces().items()}
    share = pytest.approx(DELTA / (2 * 4))
    assert sets == {"printed": DELTA, "intended": share, "default": share}
    phase = {name: policy.rule.delta for name, policy in faces().items()}
    assert phase == {
        "printed": DELTA,
        "intended": pytest.approx(DELTA / (2 * 3)),
        "default": pytest.approx(DELTA / 2),
    }


def test_the_three_presets_have_the_confidence_sets_of_the_table():
    forms = {name: policy.knobs.confidence.form for name, policy in faces().items()}
    assert forms == {"printed": PRINTED, "intended": PRINTED, "default": LOGDET}


def test_as_printed_never_queries_the_target_and_the_others_do():
    instance = world(noise=1e-5)
    counts = {
        name: ss.simulate(policy, instance, 60).counts
        for name, policy in (
            ("printed", ss.ProtectedLinUCB.as_printed(instance.problem)),
            ("intended", ss.ProtectedLinUCB.as_intended(instance.problem)),
            ("default", ss.ProtectedLinUCB(instance.problem)),
        )
    }
    assert counts["printed"][0] == 0
    assert counts["intended"][0] > 0
    assert counts["default"][0] > 0


@pytest.mark.slow
def test_once_core_set_is_over_only_the_target_and_the_core_set_are_measured():
    instance = world()
    policy = ss.ProtectedLinUCB(instance.problem)
    trace = ss.simulate(policy, instance, 80)
    chosen = set(np.flatnonzero(last_state(policy, instance, 80).core_set))
    assert set(trace.index[trace.phase == "play"]) == chosen
    assert len(chosen) == 3
    assert 0 in chosen


@pytest.mark.parametrize("make", [ss.ProtectedLinUCB, ss.ProtectedLinUCB.as_intended])
def test_where_l_equals_s_core_set_costs_no_round(make):
    instance = world(sizes=(4, 2, 2))
    trace = ss.simulate(make(instance.problem), instance, 20)
    assert (trace.phase == "play").all()


def test_where_l_equals_s_as_printed_burns_sweeps_all_the_same():
    instance = world(sizes=(4, 2, 2), noise=1e-6)
    trace = ss.simulate(ss.ProtectedLinUCB.as_printed(instance.problem), instance, 20)
    assert (trace.phase[:8] == "core-set").all()
    assert (trace.phase[8:] == "play").all()


@pytest.mark.parametrize("face", ["as_printed", "as_intended"])
def test_the_papers_presets_take_rho_and_delta(face):
    policy = getattr(ss.ProtectedLinUCB, face)(problem(), rho=0.7, delta=0.2)
    assert (policy.rho, policy.delta) == (0.7, 0.2)
    assert policy.knobs.confidence.rho.tolist() == [0.7] * 4


# CORE-SET


@pytest.mark.full
@pytest.mark.parametrize("design", ["basis", "arms"])
@pytest.mark.parametrize("source", [ss.UnitBall(4), FreshArms(9, 4)], ids=["ball", "fresh"])
def test_core_set_asks_for_every_vector_alike_sweep_after_sweep(design, source):
    instance = world(source, noise=0.05)
    policy = ss.ProtectedLinUCB(instance.problem, design=design)
    trace = ss.simulate(policy, instance, 600, compiled=True)
    phase = trace.index[trace.phase == "core-set"]
    assert len(phase) % 12 == 0
    assert len(phase) > 12
    assert phase.tolist() == [1 + t % 3 for t in range(len(phase))]
    assert (trace.phase[: len(phase)] == "core-set").all()


def test_core_set_on_its_basis_plays_e_1_to_e_d():
    instance = world(noise=0.05)
    trace = ss.simulate(ss.ProtectedLinUCB(instance.problem, design="basis"), instance, 24)
    expected = np.tile(np.repeat(np.eye(4), 3, axis=0), (2, 1))
    assert (trace.action == expected).all()


@pytest.mark.parametrize("make", [ss.ProtectedLinUCB.as_intended, ss.ProtectedLinUCB.as_printed])
def test_a_basis_that_is_longer_than_any_action_may_be_is_refused_beforehand(refusal, make):
    message = refusal(make, problem(action_bound=0.5))
    assert "design='basis' plays e_1..e_d, so that action_bound must be at least 1" in message
    assert "got 0.5" in message
    ss.ProtectedLinUCB(problem(action_bound=0.5))  # plays arms of the menu
    ss.ProtectedLinUCB.as_intended(problem(action_bound=0.5, n_protected=2))  # has no phase


def test_core_set_over_arms_plays_only_arms():
    arms = ss.Arms(rng(1).standard_normal((9, 4)) / 4)
    instance = world(arms, noise=0.01)
    trace = ss.simulate(ss.ProtectedLinUCB(instance.problem), instance, 200)
    assert (trace.phase == "core-set").any()
    assert all(arms.contains(action) for action in trace.action)
    assert (trace.arm >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "seed"),
    [(None, 1), *((FreshArms(30, 4), seed) for seed in range(5))],
    ids=["ball", *(f"fresh{seed}" for seed in range(5))],
)
def test_the_certified_core_set_keeps_a_third_of_the_best(source, seed):
    instance = world(source, noise=0.02, seed=seed)
    chosen = last_state(ss.ProtectedLinUCB(instance.problem), instance, 400).core_set
    assert chosen.sum() == 3
    found = eigenvalue(instance.theta, np.flatnonzero(chosen)[1:])
    best = max(eigenvalue(instance.theta, rows) for rows in combinations(range(1, 4), 2))
    assert found >= best / 3


def test_a_smaller_gamma_ends_core_set_sooner():
    instance = world(FreshArms(30, 4), noise=0.1)
    rounds = []
    for gamma in (0.7, 1 / 3, 0.04):
        trace = ss.simulate(ss.ProtectedLinUCB(instance.problem, gamma=gamma), instance, 3000)
        rounds.append((trace.phase == "core-set").sum())
    assert rounds[0] > rounds[1] > rounds[2] >= 12


def test_reset_forgets_the_samples_and_keeps_the_core_set():
    instance = world(noise=1e-4)
    for reset in (False, True):
        policy = ss.ProtectedLinUCB(instance.problem, reset=reset)
        state = last_state(policy, instance, 12)
        assert state.core_set.sum() == 3
        assert state.round == (0 if reset else 12)
        for learned in (state.evidence.gram, state.evidence.moment, state.evidence.centre):
            assert np.any(learned) != reset


@pytest.mark.slow
@pytest.mark.parametrize(
    ("known", "value"), [("eigenvalue", 0.3), ("resolution", 0.3)], ids=["eigenvalue", "resolution"]
)
def test_where_the_rank_is_not_known_core_set_finds_it(known, value):
    instance = world(noise=0.01, sizes=(5, 4, 2), seed=1)
    assert eigenvalue_of_best(instance) > 0.3
    told = ss.Problem(5, 4, noise_scale=0.01, **{known: value})
    state = last_state(ss.ProtectedLinUCB(told), instance, 100)
    assert state.core_set.sum() == 1 + 2


def eigenvalue_of_best(instance):
    return max(eigenvalue(instance.theta, rows) for rows in combinations(range(1, 5), 2))


def test_a_rank_above_the_truth_ends_at_the_cap_with_a_reason():
    theta = np.array([[0.8, 0.4, 0.2], [0.0, 0.3, 0.9], [0.0, 0.2, 0.6], [0.0, 0.1, 0.3]])
    instance = Instance(theta, ss.UnitBall(3), noise_scale=0.1, subspace_dim=2)
    policy = ss.ProtectedLinUCB(instance.problem, max_core_set_rounds=900)
    with pytest.raises(CoreSetError) as caught:
        ss.simulate(policy, instance, 2000)
    message = str(caught.value)
    assert "did not end within 900 rounds (max_core_set_rounds)" in message
    assert "subspace_dim is too large, or the noise hides the rest" in message
    assert "Singular values" in message


def test_an_eigenvalue_beyond_the_noise_ends_at_the_cap_with_a_reason():
    instance = world(noise=1.0)
    told = ss.Problem(4, 3, noise_scale=1.0, eigenvalue=0.1)
    policy = ss.ProtectedLinUCB(told, max_core_set_rounds=24)
    with pytest.raises(CoreSetError, match="too large for the eigenvalue or resolution"):
        ss.simulate(policy, instance, 100)


def test_a_run_that_ends_with_its_cap_is_no_error():
    instance = world(noise=1.0)
    policy = ss.ProtectedLinUCB(instance.problem, max_core_set_rounds=24)
    assert (ss.simulate(policy, instance, 24).phase == "core-set").all()


# Without a phase


@pytest.mark.slow
def test_adaptive_and_all_have_no_core_set_phase_and_may_measure_every_vector():
    instance = world(noise=0.1)
    for word in ("adaptive", "all"):
        trace = ss.simulate(ss.ProtectedLinUCB(instance.problem, coreset=word), instance, 100)
        assert (trace.phase == "play").all()
        assert (trace.counts > 0).all()


@pytest.mark.full
def test_all_needs_nothing_to_be_known_of_the_subspace():
    instance = world(noise=0.01)
    told = ss.Problem(4, 3, noise_scale=0.01)
    trace = ss.simulate(ss.ProtectedLinUCB(told, coreset="all"), instance, 300)
    assert trace.regret[-50:].mean() < 0.5 * trace.regret[:20].mean()


def test_all_plays_the_ball_only(refusal):
    policy = ss.ProtectedLinUCB(problem(), coreset="all")
    arms = ss.Arms(np.eye(4))
    message = refusal(policy.ask, policy.init(), arms, rng())
    assert "coreset='all' plays the unit ball only, got arms" in message
    instance = world(arms)
    for compiled in (True, False):
        assert message == refusal(ss.simulate, policy, instance, 5, compiled=compiled)


def test_all_needs_fewer_protected_vectors_than_dimensions(refusal):
    policy = ss.ProtectedLinUCB(problem(n_protected=4), coreset="all")
    message = refusal(policy.ask, policy.init(), ss.UnitBall(4), rng())
    assert "got 4 in dimension 4" in message


def test_adaptive_needs_the_rank(refusal):
    message = refusal(
        ss.ProtectedLinUCB, problem(subspace_dim=None, eigenvalue=0.1), coreset="adaptive"
    )
    assert "coreset='adaptive' needs the problem's subspace_dim, got None" in message


def test_without_rank_eigenvalue_or_resolution_it_says_what_it_needs(refusal):
    message = refusal(ss.ProtectedLinUCB, problem(subspace_dim=None))
    assert "one of the problem's subspace_dim, eigenvalue or resolution" in message
    assert "cannot be certified from data alone" in message


# Arms that do not span


def test_directions_that_the_arms_do_not_reach_are_named_once():
    policy = ss.ProtectedLinUCB(ss.Problem(3, 2, 1, noise_scale=0.1))
    with pytest.warns(UnreachedDirectionsWarning, match="the arms do not reach e_3:") as warned:
        decision = policy.ask(policy.init(), ss.Arms(FLAT), rng())
    assert len(warned) == 1
    state = policy.tell(policy.init(), decision.query, 0.1)
    policy.ask(state, ss.Arms(FLAT), rng())  # a warning here would be an error


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_warns_of_directions_that_the_arms_do_not_reach(compiled):
    instance = synthetic(3, 2, 1, ss.Arms(FLAT), noise_scale=0.001)
    with pytest.warns(UnreachedDirectionsWarning, match="e_3") as warned:
        trace = ss.simulate(ss.ProtectedLinUCB(instance.problem), instance, 60, compiled=compiled)
    assert len(warned) == 1
    assert (trace.phase == "play").any()  # CORE-SET ends on what the arms show


@pytest.mark.parametrize("compiled", [True, False])
def test_menus_that_span_together_are_no_reason_to_warn(compiled):
    source = Menus([FLAT, np.array([[0.0, 0.0, 1.0]])])
    instance = synthetic(3, 2, 1, source, noise_scale=0.001)
    ss.simulate(ss.ProtectedLinUCB(instance.problem), instance, 30, compiled=compiled)


# The optimistic action


@pytest.mark.full
@pytest.mark.parametrize("noise", [0.01, 0.5])
def test_no_feasible_direction_of_the_ball_is_worth_more_than_the_certificate(noise):
    instance = world(noise=noise, sizes=(3, 2, 2), seed=2)
    policy = ss.ProtectedLinUCB(instance.problem)
    directions = rng(5).standard_normal((20_000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for rounds in (5, 40):
        state = last_state(policy, instance, rounds)
        decision = policy.ask(state, instance.actions, rng())
        values, feasible = optimism(policy, state, directions)
        assert values[feasible].max() <= decision.bound * (1 + 1e-9)
        (value,), (allowed,) = optimism(policy, state, decision.query.action[None], slack=1e-9)
        assert allowed
        assert value == pytest.approx(decision.value, rel=1e-9)
        assert decision.value >= values[feasible].max() * (1 - 1e-2)


def optimism(policy, state, actions, slack=0.0):
    """f(a) and whether |<a, c_i>| <= w_i(a), from the sums alone, in numpy."""
    knobs, evidence = policy.knobs.confidence, state.evidence
    d = actions.shape[1]
    means, widths = [], []
    for i in range(len(evidence.counts)):
        precision = evidence.gram[i] + knobs.rho[i] * np.eye(d)
        centre = np.linalg.solve(precision, evidence.moment[i])
        growth = np.linalg.slogdet(precision)[1] - d * np.log(knobs.rho[i])
        reach = knobs.noise[i] * np.sqrt(growth - 2 * np.log(knobs.delta))
        reach += np.sqrt(knobs.rho[i]) * knobs.norm_bound
        means.append(actions @ centre)
        squares = np.einsum("kj,kj->k", actions, np.linalg.solve(precision, actions.T).T)
        widths.append(reach * np.sqrt(squares))
    inside = np.abs(means[1:]) <= np.array(widths[1:]) + slack
    return means[0] + widths[0], inside.all(axis=0)


def test_the_query_is_the_widest_of_the_target_and_the_core_set():
    instance = world(FreshArms(8, 4), noise=0.3, sizes=(4, 2, 2))
    policy = ss.ProtectedLinUCB(instance.problem, surrogate="ellipsoid")
    for turn, before in rounds_with_state(policy, instance, 60):
        action = turn.decision.query.action[None]
        widths = [
            optimism_width(policy, before, action, index) for index in range(len(before.core_set))
        ]
        assert widths[turn.decision.query.index] == pytest.approx(max(widths), rel=1e-9)


def optimism_width(policy, state, action, index):
    knobs, evidence = policy.knobs.confidence, state.evidence
    precision = evidence.gram[index] + knobs.rho[index] * np.eye(action.shape[1])
    growth = np.linalg.slogdet(precision)[1] - action.shape[1] * np.log(knobs.rho[index])
    reach = knobs.noise[index] * np.sqrt(growth - 2 * np.log(knobs.delta))
    reach += np.sqrt(knobs.rho[index]) * knobs.norm_bound
    return reach * np.sqrt(action[0] @ np.linalg.solve(precision, action[0]))


def rounds_with_state(policy, instance, horizon):
    """Every round with the state that it was asked in."""
    before = policy.init()
    for turn in play(policy, instance, horizon):
        yield turn, before
        before = turn.state


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["corrected", "ellipsoid", "first-order"])
def test_over_fresh_arms_regret_falls_off(surrogate):
    instance = world(FreshArms(30, 4), noise=0.01)
    policy = ss.ProtectedLinUCB(instance.problem, surrogate=surrogate)
    trace = ss.simulate(policy, instance, 1500)
    assert trace.regret[-500:].mean() < 0.1 * trace.regret[:50].mean()


def test_on_the_ball_regret_falls_off():
    instance = world(noise=0.001)
    trace = ss.simulate(ss.ProtectedLinUCB(instance.problem), instance, 400)
    assert trace.regret[-50:].mean() < 0.2 * trace.regret[:50].mean()


def test_of_noise_one_per_vector_each_set_reads_its_own():
    told = ss.Problem(3, 2, 2, noise_scale=[0.1, 0.0, 2.0])
    policy = ss.ProtectedLinUCB(told)
    assert policy.knobs.confidence.noise.tolist() == [0.1, 0.0, 2.0]
    assert policy.rule.noise == 2.0


def quickly_certified(kind, actions):
    """A policy and a world whose lazy core set takes over in round 27, whatever the seed.

    With more noise that round depends on the last digits of the optimism on the ball, which differ
    between processors.
    """
    instance = synthetic(5, 4, 2, actions, noise_scale=1e-6, seed=0)
    return ss.ProtectedLinUCB(instance.problem, rho=1e-6, coreset=kind), instance


@pytest.mark.full
def test_a_lazy_core_set_takes_over_once_it_is_certified_and_spans():
    policy, instance = quickly_certified("lazy", ss.UnitBall(5))
    assert policy.init().core_set.all()
    *_, last = play(policy, instance, 60, seed=0)
    chosen = np.flatnonzero(last.state.core_set[1:])
    assert len(chosen) == 2
    best = coreset.best_subset(np.array(instance.theta[1:]), 2).eigenvalue
    assert eigenvalue(instance.theta[1:], chosen) >= best / 3


@pytest.mark.slow
@pytest.mark.parametrize(("told", "left"), [({}, 5), ({"resolution": 0.5}, 3)])
def test_a_lazy_core_set_needs_some_knowledge_of_the_rank(told, left):
    instance = synthetic(5, 4, 2, ss.UnitBall(5), noise_scale=1e-4, seed=0)
    untold = ss.Problem(5, 4, noise_scale=1e-4, **told)
    policy = ss.ProtectedLinUCB(untold, rho=1e-4, coreset="lazy")
    *_, last = play(policy, instance, 400, seed=0)
    assert last.state.core_set.sum() == left


def test_a_lazy_core_set_is_for_the_ball(refusal):
    policy = ss.ProtectedLinUCB(ss.Problem(3, 1, 1, noise_scale=0.1), coreset="lazy")
    sentence = refusal(policy.ask, policy.init(), ss.Arms(np.eye(3)), np.random.default_rng(0))
    assert sentence == "coreset='lazy' plays the unit ball only, got arms"


@pytest.mark.parametrize(
    ("kind", "actions"),
    [
        ("certified", ss.Arms(np.eye(5))),
        ("printed", ss.Arms(np.eye(5))),
        pytest.param("lazy", ss.UnitBall(5), marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize(("cap", "exact"), [(1_000_000, True), (0, False)])
def test_a_decision_says_whether_its_core_set_is_proved_to_be_the_best(
    monkeypatch, kind, actions, cap, exact
):
    monkeypatch.setattr(coreset, "MOST_NODES", cap)
    policy, instance = quickly_certified(kind, actions)
    assert policy.ask(policy.init(), instance.actions, rng()).exact is None
    states = (played.state for played in play(policy, instance, 60, seed=0))
    last = next(state for state in states if 0 < (state.core_set > 0).sum() < 5)
    assert last.exact is exact
    assert policy.ask(last, instance.actions, rng()).exact is exact
    again = policy.state_from_json(last.to_json())
    assert policy.ask(again, instance.actions, rng()).exact is exact


def test_where_no_core_set_is_chosen_a_decision_says_nothing_of_it():
    instance = world(ss.Arms(np.eye(4)))
    for policy in (
        ss.ProtectedLinUCB(instance.problem, coreset="adaptive"),
        ss.OFUL(instance.problem),
    ):
        assert policy.ask(policy.init(), instance.actions, rng()).exact is None
