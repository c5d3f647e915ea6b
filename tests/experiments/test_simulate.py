"""One run and many: same seed, same trace; the same world for every policy; what is kept."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.actions import UnitBall, off_menu
from sidestep.core.jit import KERNELS
from sidestep.environments import FreshArms, Genie, Instance, Menus, synthetic
from sidestep.errors import CoreSetError
from sidestep.experiments import compiled_run, random_streams
from sidestep.experiments.random_streams import streams_of
from sidestep.experiments.simulate import play

ARMS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8], [-0.6, 0.8, 0.0]])
SOURCES = {
    "ball": UnitBall(3),
    "fixed": ss.Arms(ARMS),
    "fresh": FreshArms(5, 3),
    "changing": Menus([ARMS[:1], ARMS[1:]], weights=[0.3, 0.7]),
}
POLICIES = ss.policies.POLICIES
WHAT = ("round", "regret", "cumulative_regret", "index", "action", "arm", "feedback", "value")


def world(source="fresh", seed=1, **changed):
    return synthetic(3, 2, 1, SOURCES[source], **{"noise_scale": 0.1, "seed": seed, **changed})


def same(one, other):
    """Whether two traces are the same, bit for bit."""
    pairs = [(getattr(one, what), getattr(other, what)) for what in (*WHAT, "counts")]
    bits = all(here.tobytes() == there.tobytes() for here, there in pairs)
    return bits and (one.phase == other.phase).all()


@dataclass(frozen=True)
class Recorder:
    """A policy that records every menu it is asked about."""

    problem: ss.Problem
    inner: object
    seen: list

    def init(self):
        return self.inner.init()

    def ask(self, state, actions, rng, pending=()):
        self.seen.append(actions.vectors.copy())
        return self.inner.ask(state, actions, rng, pending)

    def tell(self, state, query, feedback):
        return self.inner.tell(state, query, feedback)

    def state_from_json(self, text):
        return self.inner.state_from_json(text)


# Random numbers


@pytest.mark.full
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", POLICIES)
def test_the_same_seed_gives_the_same_trace_to_the_last_bit(name, source):
    instance = world(source)
    policy = POLICIES[name](instance.problem)
    assert same(
        ss.simulate(policy, instance, 30, seed=5), ss.simulate(policy, instance, 30, seed=5)
    )


@pytest.mark.parametrize("compiled", [True, False])
def test_seed_0_is_a_seed(compiled):
    instance = world()
    policy = ss.Uniform(instance.problem)
    zero, one = (ss.simulate(policy, instance, 30, seed, compiled=compiled) for seed in (0, 1))
    assert same(zero, ss.simulate(policy, instance, 30, compiled=compiled))
    assert not np.isclose(zero.action, one.action).any()
    assert not np.isclose(zero.feedback, one.feedback).any()


def test_a_run_uses_no_random_generator_but_its_own():
    before = np.random.get_state()[1].copy()  # noqa: NPY002  (the generator that nobody may use)
    ss.simulate(ss.EpsilonGreedy(world().problem), world(), 30)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


@pytest.mark.parametrize("source", ["fixed", "fresh", "changing"])
def test_two_policies_meet_the_same_arms(source):
    instance = world(source)
    menus = []
    for policy in (ss.Uniform(instance.problem), ss.OFUL(instance.problem), Genie(instance)):
        recorder = Recorder(instance.problem, policy, [])
        ss.simulate(recorder, instance, 40, seed=3)
        menus.append(recorder.seen)
    for one, *others in zip(*menus, strict=True):
        assert all((one == other).all() for other in others)


@pytest.mark.full
@pytest.mark.parametrize("source", ["fresh", "changing"])
def test_the_compiled_loop_meets_the_arms_that_the_steps_meet(source):
    instance = world(source)
    recorder = Recorder(instance.problem, ss.OFUL(instance.problem), [])
    ss.simulate(recorder, instance, 40, seed=3)
    compiled = ss.simulate(ss.OFUL(instance.problem), instance, 40, seed=3, compiled=True)
    for menu, arm, action in zip(recorder.seen, compiled.arm, compiled.action, strict=True):
        assert (menu[arm] == action).all()


@pytest.mark.full
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("noise", ["gaussian", "rademacher", "uniform"])
def test_two_policies_meet_the_same_noise_whatever_they_measure(source, noise):
    instance = world(source, noise=noise)
    errors = []
    for name in POLICIES:
        trace = ss.simulate(POLICIES[name](instance.problem), instance, 20, seed=3)
        means = np.einsum("tj,tj->t", trace.action, instance.theta[trace.index])
        errors.append(trace.feedback - means)
    for other in errors[1:]:
        np.testing.assert_allclose(other, errors[0], rtol=0, atol=1e-14)


def test_arms_noise_and_choice_are_streams_apart():
    """Another number of arms changes no noise, another noise no arms and no choice."""
    assert len({stream.random() for stream in streams_of(0)}) == 3
    few = ss.simulate(ss.Uniform(world().problem), synthetic(3, 2, 1, 5, seed=1), 40)
    many = ss.simulate(ss.Uniform(world().problem), synthetic(3, 2, 1, 50, seed=1), 40)
    loud = synthetic(3, 2, 1, 5, seed=1, noise="uniform")
    loud_trace = ss.simulate(ss.Uniform(world().problem), loud, 40)
    theta = loud.theta

    def noise(trace):
        return trace.feedback - np.einsum("tj,tj->t", trace.action, theta[trace.index])

    np.testing.assert_allclose(noise(few), noise(many), rtol=0, atol=1e-14)
    assert (few.index == many.index).all()
    assert (few.action == loud_trace.action).all()


# What is kept


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("horizon", "every"), [(100, 7), (100, 10), (5, 100), (1, 1), (64, 64)])
def test_every_k_keeps_each_kth_round_and_the_last(compiled, horizon, every):
    instance = world()
    policy = ss.ProtectedLinUCB(instance.problem)
    full = ss.simulate(policy, instance, horizon, seed=2, compiled=compiled)
    thin = ss.simulate(policy, instance, horizon, seed=2, every=every, compiled=compiled)
    kept = [t for t in range(1, horizon + 1) if t % every == 0 or t == horizon]
    assert thin.round.tolist() == kept
    rows = np.array(kept) - 1
    assert (thin.phase == full.phase[rows]).all()
    for what in WHAT:
        assert getattr(thin, what).tobytes() == getattr(full, what)[rows].tobytes(), what
    assert (thin.counts == full.counts).all()


@pytest.mark.full
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("source", SOURCES)
def test_cumulative_regret_is_the_sum_and_counts_count(source, compiled):
    instance = world(source)
    policy = ss.ProtectedLinUCB(instance.problem)
    trace = ss.simulate(policy, instance, 80, compiled=compiled)
    np.testing.assert_allclose(trace.cumulative_regret, np.cumsum(trace.regret), rtol=1e-13)
    assert trace.counts.tolist() == np.bincount(trace.index, minlength=3).tolist()
    assert trace.counts.sum() == trace.horizon == 80
    assert trace.round.tolist() == list(range(1, 81))


def test_a_trace_has_the_shapes_that_the_design_names():
    instance = world()
    trace = ss.simulate(ss.ProtectedLinUCB(instance.problem, rho=0.3), instance, 50, seed=4)
    assert trace.action.shape == (50, 3)
    assert {getattr(trace, what).shape for what in set(WHAT) - {"action"}} == {(50,)}
    assert set(trace.phase) <= {"play", "explore", "core-set"}
    assert (trace.horizon, trace.seed) == (50, 4)
    assert "ProtectedLinUCB" in trace.policy
    assert "rho=0.3" in trace.policy


def test_the_value_is_nan_where_the_policy_does_not_say():
    instance = world()
    trace = ss.simulate(ss.ProtectedLinUCB(instance.problem), instance, 80)
    assert (np.isnan(trace.value) == (trace.phase == "core-set")).all()
    assert 0 < np.isnan(trace.value).sum() < 80


def test_a_frame_has_one_row_a_kept_round():
    instance = world()
    trace = ss.simulate(ss.OFUL(instance.problem), instance, 50, every=20)
    frame = trace.to_frame()
    columns = ["round", "index", "phase", "arm", "value", "feedback", "regret"]
    columns += ["cumulative_regret", "action_1", "action_2", "action_3"]
    assert [name for name in frame.columns if name in columns] == columns
    assert frame["round"].to_list() == [20, 40, 50]
    assert frame["phase"].to_list() == ["play"] * 3
    assert frame["action_2"].to_list() == trace.action[:, 1].tolist()
    assert frame["cumulative_regret"].to_list() == trace.cumulative_regret.tolist()


def test_off_the_menu_the_arm_says_which_axis_was_played():
    instance = world("fixed")
    policy = ss.ProtectedLinUCB.as_intended(instance.problem)
    for compiled in (True, False):
        trace = ss.simulate(policy, instance, 6, compiled=compiled)
        assert trace.arm.tolist() == [off_menu(axis) for axis in (0, 0, 1, 1, 2, 2)]
        assert (trace.action == np.repeat(np.eye(3), 2, axis=0)).all()


def test_on_the_ball_there_is_no_arm():
    trace = ss.simulate(ss.Uniform(world("ball").problem), world("ball"), 10)
    assert (trace.arm == -1).all()


def test_play_yields_every_round_as_it_happened():
    instance = world()
    policy = ss.EpsilonGreedy(instance.problem)
    turns = list(play(policy, instance, 30, seed=6))
    trace = ss.simulate(policy, instance, 30, seed=6, compiled=False)
    assert [turn.number for turn in turns] == list(range(1, 31))
    assert [turn.feedback for turn in turns] == trace.feedback.tolist()
    assert [turn.decision.query.index for turn in turns] == trace.index.tolist()
    assert [turn.state.round for turn in turns] == list(range(1, 31))


# One source, two speeds


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "source"),
    [
        *(("protected-linucb", source) for source in SOURCES),
        *(("epsilon-greedy", source) for source in SOURCES if source != "ball"),
        pytest.param("epsilon-greedy", "ball", marks=pytest.mark.slow),
    ],
)
def test_where_a_batch_ends_changes_nothing(monkeypatch, name, source):
    instance = world(source)
    policy = POLICIES[name](instance.problem)
    whole = ss.simulate(policy, instance, 60, seed=7, compiled=True)
    monkeypatch.setattr(random_streams, "BATCH", 7)
    assert same(ss.simulate(policy, instance, 60, seed=7, compiled=True), whole)


def test_arms_from_a_deck_are_the_arms_drawn_batch_by_batch(monkeypatch):
    world = synthetic(4, 2, 1, 9, noise_scale=0.1, seed=0)
    policy = ss.Uniform(world.problem)
    random_streams.deck.cache_clear()
    dealt = ss.simulate(policy, world, 60, seed=3, compiled=True)
    assert random_streams.deck.cache_info().misses == 1
    monkeypatch.setattr(random_streams, "DECK_BYTES", 8 * 9 * 4 * 60 - 1)
    drawn = ss.simulate(policy, world, 60, seed=3, compiled=True)
    assert random_streams.deck.cache_info().misses == 1  # a byte too long: no deck was asked for
    assert np.array_equal(dealt.action, drawn.action)
    assert np.array_equal(dealt.regret, drawn.regret)
    assert np.array_equal(dealt.feedback, drawn.feedback)


def test_runs_that_meet_the_same_arms_share_their_drawing_and_leave_them_alone():
    world = synthetic(4, 2, 1, 9, noise_scale=0.1, seed=0)
    policy = ss.Uniform(world.problem)
    random_streams.deck.cache_clear()
    first = ss.simulate(policy, world, 50, seed=1, compiled=True)
    again = ss.simulate(policy, world, 50, seed=1, compiled=True)
    assert random_streams.deck.cache_info()[:2] == (1, 1)
    assert np.array_equal(first.action, again.action)


def test_many_arms_are_kept_once_a_second_run_needs_them_and_until_another_seed_is_played(
    monkeypatch,
):
    world = synthetic(4, 2, 1, 9, noise_scale=0.1, seed=0)
    policy, large = ss.Uniform(world.problem), random_streams.LargeDeck()
    monkeypatch.setattr(random_streams, "_large", large)
    monkeypatch.setattr(random_streams, "DECK_BYTES", 8 * 9 * 4 * 60 - 1)
    first = ss.simulate(policy, world, 60, seed=3, compiled=True)
    assert large.last[1] is None
    second = ss.simulate(policy, world, 60, seed=3, compiled=True)
    kept = large.last[1]
    assert kept is not None
    third = ss.simulate(policy, world, 60, seed=3, compiled=True)
    assert large.last[1] is kept
    assert same(second, first)
    assert same(third, first)
    ss.simulate(policy, world, 60, seed=4, compiled=True)
    assert large.last[1] is None
    monkeypatch.setattr(random_streams, "LARGE_DECK_BYTES", 8 * 9 * 4 * 60 - 1)
    ss.simulate(policy, world, 60, seed=4, compiled=True)
    assert large.last[1] is None  # too many to be kept at all


def test_a_run_lets_other_threads_work():
    assert KERNELS[compiled_run.run_on_arms].nogil
    assert KERNELS[compiled_run.run_on_ball].nogil


@pytest.mark.full
def test_menus_of_unequal_sizes_are_played_within_their_sizes():
    menus = [ARMS[:1], ARMS[1:], -ARMS[:3], np.vstack([ARMS, -ARMS])]
    instance = synthetic(3, 2, 1, Menus(menus), noise_scale=0.1)
    for name in POLICIES:
        policy = POLICIES[name](instance.problem)
        recorder = Recorder(instance.problem, policy, [])
        stepped = ss.simulate(recorder, instance, 60, seed=8)
        trace = ss.simulate(policy, instance, 60, seed=8, compiled=True)
        assert {len(menu) for menu in recorder.seen} == {1, 3, 8}
        assert (trace.arm == stepped.arm).all()
        for menu, arm, action in zip(recorder.seen, trace.arm, trace.action, strict=True):
            assert (menu[arm] == action).all()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("cap", [18, 20])  # a sweep is 9 rounds
def test_core_set_gives_up_with_the_same_error_compiled_and_stepped(source, cap):
    theta = np.array([[0.8, 0.4, 0.2], [0.0, 0.3, 0.9], [0.0, 0.2, 0.6], [0.0, 0.1, 0.3]])
    instance = Instance(theta, SOURCES[source], subspace_dim=2)
    policy = ss.ProtectedLinUCB(instance.problem, max_core_set_rounds=cap)
    messages = []
    for compiled in (True, False):
        with pytest.raises(CoreSetError) as caught:
            ss.simulate(policy, instance, cap + 1, compiled=compiled)
        messages.append(str(caught.value))
        assert len(ss.simulate(policy, instance, cap, compiled=compiled).regret) == cap
    assert messages[0] == messages[1]
    assert f"within {cap} rounds" in messages[0]


def test_both_speeds_refuse_arms_that_are_longer_than_the_player_was_told(refusal):
    instance = Instance(np.eye(2), ss.Arms([[3.0, 4.0]]))
    told = ss.Problem(2, 1, 1, noise_scale=0.1)
    for compiled in (True, False):
        message = refusal(ss.simulate, ss.OFUL(told), instance, 5, compiled=compiled)
        assert "length at most 1, got one of length 5" in message


# Many runs


def test_many_runs_are_the_single_runs(interpreted):
    policy = ss.EpsilonGreedy(world().problem)
    traces = ss.simulate_many(policy, lambda seed: world(seed=seed), 40, runs=3, seed=5, every=3)
    assert [trace.seed for trace in traces] == [5, 6, 7]
    for seed, trace in zip((5, 6, 7), traces, strict=True):
        assert same(trace, ss.simulate(policy, world(seed=seed), 40, seed, 3))


def test_one_world_serves_many_runs():
    instance = world()
    traces = ss.simulate_many(ss.Uniform(instance.problem), instance, 20, runs=4)
    for seed, trace in enumerate(traces):
        assert same(trace, ss.simulate(ss.Uniform(instance.problem), instance, 20, seed))


def test_ten_runs_unless_told_otherwise():
    assert len(ss.simulate_many(ss.Uniform(world().problem), world(), 5)) == 10


@pytest.mark.full
@pytest.mark.parametrize("source", ["fresh", "ball"])
def test_threads_give_the_same_traces(source):
    instance = world(source)
    policy = ss.ProtectedLinUCB(instance.problem)
    alone = ss.simulate_many(policy, instance, 60, runs=4, seed=3)
    with ThreadPoolExecutor(2) as executor:
        shared = ss.simulate_many(policy, instance, 60, runs=4, seed=3, executor=executor)
    assert all(same(one, other) for one, other in zip(alone, shared, strict=True))


@pytest.mark.full
def test_processes_give_the_same_traces():
    instance = world("changing")
    policy = ss.ProtectedLinUCB(instance.problem)
    alone = ss.simulate_many(policy, instance, 60, runs=4, seed=3)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as executor:
        shared = ss.simulate_many(policy, instance, 60, runs=4, seed=3, executor=executor)
    assert all(same(one, other) for one, other in zip(alone, shared, strict=True))


# Bad input


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"horizon": 0}, "horizon must be an integer >= 1, got 0"),
        ({"horizon": -5}, "horizon must be an integer >= 1, got -5"),
        ({"horizon": 10.0}, "horizon must be an integer >= 1, got 10.0"),
        ({"every": 0}, "every must be an integer >= 1, got 0"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"seed": 0.5}, "seed must be an integer >= 0, got 0.5"),
        ({"seed": None}, "seed must be an integer >= 0, got None"),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_bad_input_is_refused_in_one_sentence(refusal, changed, expected, compiled):
    policy = ss.Uniform(world().problem)
    wanted = {"policy": policy, "instance": world(), "horizon": 10, "compiled": compiled}
    assert expected in refusal(ss.simulate, **{**wanted, **changed})


@pytest.mark.parametrize("told", [ss.Problem(4, 2, 1), ss.Problem(3, 1, 1)])
def test_a_policy_for_another_world_is_refused(refusal, told):
    message = refusal(ss.simulate, ss.Uniform(told), world(), 10)
    sizes = f"got {told.dim} and {told.n_protected} against 3 and 2"
    assert sizes in message


def test_a_policy_without_kernels_cannot_be_compiled(refusal):
    instance = world()
    assert "needs a policy with kernels" in refusal(
        ss.simulate, Genie(instance), instance, 10, compiled=True
    )


@pytest.mark.parametrize("runs", [0, -1, 2.5])
def test_no_runs_are_refused(refusal, runs):
    message = refusal(ss.simulate_many, ss.Uniform(world().problem), world(), 10, runs=runs)
    assert f"runs must be an integer >= 1, got {runs}" in message


def test_a_run_over_repeated_arms_names_their_first_rows_and_is_the_run_by_steps():
    rng = np.random.default_rng(0)
    arms = ss.Arms(np.repeat(rng.standard_normal((6, 3)) / 3, 4, axis=0)[rng.permutation(24)])
    world = ss.environments.synthetic(3, 1, 1, arms, noise_scale=0.1, seed=1)
    for policy in (ss.ProtectedLinUCB(world.problem), ss.Uniform(world.problem)):
        fast = ss.simulate(policy, world, 200, seed=2, compiled=True)
        slow = ss.simulate(policy, world, 200, seed=2, compiled=False)
        assert (fast.arm == slow.arm).all()
        assert (arms.vectors[fast.arm] == fast.action).all()
    assert len(set(fast.arm.tolist())) > 6  # chance counts every row


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda p, i: (ss.Uniform, i, 5),
            "such as Uniform(instance.problem), got the class Uniform",
        ),
        (lambda p, i: (i, p, 5), "policy must come first and instance second, got an Instance"),
        (lambda p, i: (p, 5, i), "instance must be an Instance, got 5"),
        (lambda p, i: (p, synthetic, 5), "instance must be an Instance, got <function synthetic"),
        (
            lambda p, i: (5, i, 5),
            "policy must have problem, init, ask, tell, got int without problem",
        ),
    ],
    ids=["a class", "swapped", "horizon before instance", "a function", "a number"],
)
def test_what_cannot_play_is_refused_with_a_hint(refusal, call, words):
    instance = world()
    policy = ss.Uniform(instance.problem)
    assert words in refusal(ss.simulate, *call(policy, instance))


@pytest.mark.parametrize("rng", [0, None, np.random])
def test_what_is_no_generator_is_refused(refusal, rng):
    instance = world("fixed")
    policy = ss.DirectedThompson(instance.problem)
    words = "rng must be a numpy Generator, np.random.default_rng(0), got "
    assert refusal(policy.ask, policy.init(), instance.actions, rng).startswith(words)
    query = ss.Query(instance.actions.vectors[0], 0)
    assert refusal(instance.observe, query, rng).startswith(words)
