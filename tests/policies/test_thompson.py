"""Thompson sampling and the directed query: what they know, what they measure, when they pay."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.posterior import prior_of
from sidestep.core.problem import Problem
from sidestep.core.rank import Ranks
from sidestep.environments import failure, synthetic
from sidestep.experiments.simulate import play

BOTH = [ss.ProtectedThompson, ss.DirectedThompson]
FIXED = ss.Arms(np.random.default_rng(3).standard_normal((30, 4)) / 4)


def told(instance, **change):
    """The problem of a world, with changes to what the policy knows."""
    problem = instance.problem
    known = {
        "dim": problem.dim,
        "n_protected": problem.n_protected,
        "subspace_dim": problem.subspace_dim,
        "noise_scale": problem.noise_scale,
        "norm_bound": problem.norm_bound,
        "action_bound": problem.action_bound,
    }
    return Problem(**(known | change))


def test_the_prior_is_that_of_a_vector_of_length_m_and_of_the_noise():
    problem = ss.Problem(4, 1, 1, noise_scale=[0.1, 0.2], norm_bound=2.0)
    prior = prior_of(problem, None)
    assert prior.rho == pytest.approx([0.01, 0.04])
    assert prior.variance == 1.0
    assert prior_of(problem, 0.5).rho == pytest.approx([0.5, 0.5])
    quiet = prior_of(ss.Problem(4, 1, 1, noise_scale=0.0), None)
    assert (quiet.rho > 0).all()
    assert (quiet.noise > 0).all()


@pytest.mark.parametrize("policy", BOTH)
def test_rank_eigenvalue_or_resolution_is_needed(policy, refusal):
    sentence = refusal(policy, ss.Problem(4, 2, noise_scale=0.1))
    assert "subspace_dim, eigenvalue or resolution" in sentence
    policy(ss.Problem(4, 2, noise_scale=0.1, eigenvalue=0.2))


@pytest.mark.parametrize(
    ("knob", "value", "sentence"),
    [
        ("memory", 1.0, "memory must be more than 1 round"),
        ("memory", -3.0, "memory must be positive"),
        ("delta", 1.0, "delta must lie strictly between 0 and 1"),
        ("rho", 0.0, "rho must be positive"),
        ("kappa", 0.0, "kappa must be positive"),
    ],
)
def test_a_knob_out_of_range_is_refused(knob, value, sentence, refusal):
    problem = ss.Problem(3, 1, 1, noise_scale=0.1)
    assert refusal(ss.DirectedThompson, problem, **{knob: value}).startswith(sentence)


def test_rho_cannot_be_told_where_the_noise_is_learned(refusal):
    sentence = refusal(ss.DirectedThompson, ss.Problem(3, 1, 1, noise_scale=None), rho=0.1)
    assert sentence.startswith("rho follows from the noise where noise_scale is None")


@pytest.mark.full
@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize(
    "change", [{"noise_scale": None}, {"subspace_dim": None, "resolution": 0.2}]
)
@pytest.mark.parametrize("arms", [FIXED, 12, ss.UnitBall(4)], ids=["fixed", "fresh", "ball"])
def test_with_unknown_rank_or_noise_the_compiled_run_equals_the_steps(policy, change, arms):
    instance = synthetic(4, 3, 2, arms, noise_scale=0.1, seed=1)
    player = policy(told(instance, **change))
    fast = ss.simulate(player, instance, 60, seed=2)
    slow = ss.simulate(player, instance, 60, seed=2, compiled=False)
    assert (fast.index == slow.index).all()
    np.testing.assert_allclose(fast.action, slow.action, rtol=0, atol=1e-9)


@pytest.mark.full
@pytest.mark.parametrize("policy", BOTH)
def test_with_a_memory_the_compiled_run_equals_the_steps(policy):
    instance = synthetic(4, 3, 2, FIXED, noise_scale=0.1, seed=1)
    player = policy(instance.problem, memory=20.0)
    fast = ss.simulate(player, instance, 60, seed=2)
    slow = ss.simulate(player, instance, 60, seed=2, compiled=False)
    assert (fast.index == slow.index).all()
    assert (fast.arm == slow.arm).all()


@pytest.mark.full
def test_a_decision_shows_the_evidence_on_a_rank_that_is_not_told():
    instance = synthetic(4, 3, 2, 20, noise_scale=0.01, seed=1)
    player = ss.DirectedThompson(told(instance, subspace_dim=None, resolution=0.2))
    state, rng = player.init(), np.random.default_rng(0)
    first = player.ask(state, FIXED, rng).spectrum
    assert (first.separated, first.undecided) == (0, 3)
    assert state.ranks == Ranks(assumed=1, possible=3)
    *_, last = play(player, instance, 400, seed=0)
    seen = last.decision.spectrum
    assert seen.separated == 2
    assert seen.error < first.error
    assert last.state.ranks.assumed >= 2
    assert ss.DirectedThompson(instance.problem).ask(state, FIXED, rng).spectrum is None


@pytest.mark.slow
def test_the_remark_of_the_paper_is_decided_when_the_direction_stands_out():
    """theta_1 = (1, 0, 0), theta_2 = (1, Delta, 0), R = 0.1: rank 2 for every Delta above 0."""
    decided = {}
    for weak in (1.0, 0.3, 0.1, 0.01):
        theta = np.array([[0.6, 0.0, 0.8], [1.0, 0.0, 0.0], [1.0, weak, 0.0]]) / np.sqrt(2)
        instance = ss.environments.Instance(theta, ss.environments.FreshArms(50, 3), 0.1)
        player = ss.DirectedThompson(told(instance, subspace_dim=None, resolution=0.05))
        ranks = [turn.state.ranks.assumed for turn in play(player, instance, 1500, 0)]
        late = np.array(ranks[-300:])
        decided[weak] = ranks.index(2) if (late == 2).all() else None
    assert decided[1.0] < decided[0.3] < 1200
    assert decided[0.01] is None  # below the resolution, and not seen in 1500 rounds


def final(policy, world, horizon, runs):
    regrets = []
    for run in range(runs):
        instance = world(run) if callable(world) else world
        trace = ss.simulate(policy(instance.problem), instance, horizon, seed=run, every=horizon)
        regrets.append(trace.cumulative_regret[-1])
    return np.array(regrets)


@pytest.mark.full
def test_in_the_blind_spot_paying_for_information_beats_plain_sampling():
    world = ss.environments.blind_spot(0.1)
    plain = final(ss.ProtectedThompson, world, 3000, 20)
    directed = final(ss.DirectedThompson, world, 3000, 20)
    assert directed.mean() < 0.5 * plain.mean()
    trace = ss.simulate(ss.DirectedThompson(world.problem), world, 3000, seed=0)
    paid = trace.phase == "explore"
    assert 0 < paid.sum() < 300
    assert (trace.arm[paid] == 2).any()  # the bad arm, which can tell


@pytest.mark.full
@pytest.mark.parametrize("policy", [ss.ProtectedThompson, ss.DirectedThompson])
@pytest.mark.parametrize("noise_scale", [0.001, 0.1])
def test_no_phase_is_wasted_on_fresh_arms(policy, noise_scale):
    def world(seed):
        return ss.environments.synthetic(noise_scale=noise_scale, seed=seed)

    ours = final(policy, world, 1000, 20)
    papers = final(ss.ProtectedLinUCB.as_intended, world, 1000, 20)
    gain = papers - ours  # the same worlds, arms and noise
    assert gain.mean() - 3 * gain.std(ddof=1) / np.sqrt(len(gain)) > 0
    assert ours.mean() < 0.3 * papers.mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", [{"noise_scale": None}, {"subspace_dim": None, "resolution": 0.1}]
)
def test_an_unknown_rank_or_noise_costs_little_on_fresh_arms(change):
    def world(seed):
        return synthetic(noise_scale=0.1, seed=seed)

    known = final(ss.DirectedThompson, world, 1000, 20)
    learned = final(lambda problem: ss.DirectedThompson(told(world(0), **change)), world, 1000, 20)
    assert learned.mean() < 1.5 * known.mean()


@pytest.mark.slow
def test_after_a_change_of_the_world_a_memory_finds_the_new_best_arm():
    before = synthetic(4, 1, 1, FIXED, noise_scale=0.05, seed=5)
    after = synthetic(4, 1, 1, FIXED, noise_scale=0.05, seed=6)
    late = {}
    for memory in (None, 100.0):
        player = ss.DirectedThompson(before.problem, memory=memory)
        *_, last = play(player, before, 2000, seed=0)
        state, rng, noise = last.state, np.random.default_rng(1), np.random.default_rng(2)
        regret = 0.0
        for turn in range(1000):
            decision = player.ask(state, FIXED, rng)
            state = player.tell(state, decision.query, after.observe(decision.query, noise))
            regret += after.regret(decision.query, FIXED) if turn >= 500 else 0.0
        late[memory] = regret
    assert late[100.0] < 0.3 * late[None]


def test_what_is_not_played_fades_to_the_prior_and_no_further():
    problem = ss.Problem(3, 1, 1, noise_scale=0.1)
    player = ss.DirectedThompson(problem, memory=10.0)
    state = player.init()
    for turn in range(300):
        axis = 0 if turn >= 50 else turn % 3
        state = player.tell(state, ss.Query(np.eye(3)[axis], 0), 0.3)
    prior = 1 / player.knobs.prior.rho[0]
    spread = np.diag(state.evidence.inverse[0])
    assert spread[0] < 0.5
    assert spread[1:] == pytest.approx([prior, prior], rel=1e-6)
    assert (np.linalg.eigvalsh(state.evidence.inverse) <= prior * (1 + 1e-9)).all()


@pytest.mark.full
@pytest.mark.parametrize("solid", [ss.Box(-np.ones(3) / 2, np.ones(3) / 2), ss.Simplex(3)])
def test_on_a_solid_the_best_corner_is_found(solid):
    instance = synthetic(3, 1, 1, solid, noise_scale=0.01, seed=2)
    trace = ss.simulate(ss.DirectedThompson(instance.problem), instance, 300, seed=0)
    assert all(solid.contains(action) for action in trace.action)
    assert (trace.regret >= -1e-12).all()
    assert trace.regret[-50:].mean() < 0.01
    stepped = ss.simulate(ss.DirectedThompson(instance.problem), instance, 60, 0, compiled=False)
    np.testing.assert_allclose(trace.action[:60], stepped.action, atol=1e-9)


@pytest.mark.parametrize(
    ("chance", "sentence"),
    [
        ({"lost": 1.5}, "lost must lie strictly between 0 and 1"),
        ({"delay": -1}, "delay must be an integer >= 0"),
    ],
)
def test_a_wrong_delay_or_loss_probability_is_refused(chance, sentence, refusal):
    world = failure(0.3)
    rounds = play(ss.DirectedThompson(world.problem), world, 5, **chance)
    assert refusal(next, rounds).startswith(sentence)


def test_an_optimist_refuses_a_box(refusal):
    instance = synthetic(3, 1, 1, ss.Box(-np.ones(3) / 2, np.ones(3) / 2), noise_scale=0.1)
    sentence = refusal(ss.simulate, ss.OFUL(instance.problem), instance, 10)
    assert sentence == "OFUL plays arms and the unit ball, got Box"


@pytest.mark.slow
def test_late_and_lost_answers_leave_the_regret_sublinear():
    world = failure(0.3)
    for delay, lost in ((20, 0.0), (20, 0.3)):
        turns = list(
            play(ss.DirectedThompson(world.problem), world, 2000, 3, delay=delay, lost=lost)
        )
        regret = np.array([turn.regret for turn in turns])
        assert regret[1000:].sum() < 0.25 * regret[:1000].sum() + 1.0


@pytest.mark.full
def test_the_unit_of_costs_changes_nothing():
    world = ss.environments.synthetic(4, 3, 2, FIXED, noise_scale=0.3, seed=1)
    plays = []
    for unit in (1.0, 0.001, 50.0):
        problem = told(world, costs=[unit, 2 * unit, 3 * unit, unit])
        trace = ss.simulate(ss.DirectedThompson(problem), world, 80, seed=0, compiled=False)
        plays.append((trace.arm.tolist(), trace.index.tolist()))
    assert plays[0] == plays[1] == plays[2]


def test_an_expensive_measurement_is_made_less_often():
    world = ss.environments.synthetic(3, 1, 1, 20, noise_scale=0.1, seed=1)
    dear = ss.Problem(3, 1, 1, noise_scale=0.1, costs=[1.0, 100.0])
    even = ss.simulate(ss.DirectedThompson(world.problem), world, 300, seed=0).counts
    spared = ss.simulate(ss.DirectedThompson(dear), world, 300, seed=0).counts
    assert spared[1] < even[1]


@pytest.mark.full
def test_half_the_spending_buys_the_same_regret_where_costs_differ_tenfold():
    """Two cheap and two expensive protected outcomes in one subspace: the cheap ones suffice."""
    costs = np.array([1.0, 1.0, 1.0, 10.0, 10.0])
    spent = {"blind": 0.0, "told": 0.0}
    regret = {"blind": 0.0, "told": 0.0}
    for seed in range(20):
        instance = synthetic(noise_scale=0.1, seed=seed)
        for name, problem in {
            "blind": instance.problem,
            "told": told(instance, costs=tuple(costs)),
        }.items():
            trace = ss.simulate(ss.DirectedThompson(problem), instance, 1000, seed)
            spent[name] += float(costs @ trace.counts)
            regret[name] += float(trace.cumulative_regret[-1])
    assert spent["told"] < 0.5 * spent["blind"]
    assert regret["told"] < 1.15 * regret["blind"]
