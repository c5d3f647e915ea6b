"""The lock-in monitor: it warns if the repeated arm is uninformative, and not otherwise."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.arm_forms import Menu
from sidestep.core.confidence import LOGDET, Confidence
from sidestep.core.estimator import absorb, no_evidence
from sidestep.core.lock_in import LockInMonitor, is_due, locked_in
from sidestep.environments import failure, synthetic
from sidestep.policies.base import EXPLORE, LOCKED, PLAY
from sidestep.policies.builtin import SILENT, Choice, Watch, after_monitor

RHO = np.full(2, 0.1)
LOUD = Confidence(RHO, np.full(2, 1.0), 1.0, 1.0, 0.001, LOGDET)


def played(actions, theta, index=(0, 1), noise=None):
    """Evidence after actions played in turn, both vectors measured by turns; without noise if None."""
    evidence = no_evidence(RHO, len(actions[0]))
    for turn, action in enumerate(actions):
        v = index[turn % len(index)]
        chance = 0.0 if noise is None else noise[turn]
        absorb(evidence, RHO, action, v, float(theta[v] @ action) + chance)
    return evidence


def test_the_monitor_tests_after_patience_rounds_of_one_arm_and_then_after_twice_as_many():
    assert [streak for streak in range(18) if is_due(4, streak)] == [4, 8, 16]


def test_the_monitor_warns_only_if_the_last_action_is_played_again():
    world = failure(1.0)
    arms = world.actions
    worse = np.array(arms.vectors[0])
    menu = Menu(arms.columns, arms.squared)
    for n, due in [(49, False), (50, True), (51, False), (100, True)]:
        watch = Watch(LockInMonitor(50, False), LOUD, played([worse] * n, world.theta), 1)
        assert watch.is_due() == due
        verdict = watch.verdict(menu)
        again, other = (Choice(arm, 0, PLAY, 0.7, 0.0) for arm in (0, 1))
        assert after_monitor(verdict, worse, menu, again) == Choice(0, 0, LOCKED, 0.7, 0.0)
        assert after_monitor(verdict, worse, menu, other) == other
        explored = after_monitor(verdict, worse, menu, again._replace(phase=EXPLORE))
        assert explored.phase == EXPLORE


def test_the_monitor_ignores_an_action_that_is_not_on_the_menu():
    world = failure(1.0)
    watch = Watch(LockInMonitor(2, False), LOUD, played([np.ones(2)] * 2, world.theta), 1)
    arms = world.actions
    assert watch.verdict(Menu(arms.columns, arms.squared))[0] == SILENT


def test_in_the_papers_example_the_worse_arm_is_locked_in_and_the_better_one_is_named():
    world = failure(1.0)
    arms = world.actions
    worse = np.array(arms.vectors[0])
    evidence = played([worse] * 50, world.theta)
    menu = Menu(arms.columns, arms.squared)
    locked, telling, _ = locked_in(LockInMonitor(50, True), LOUD, evidence, menu, 1, 0)
    assert locked
    assert telling == 1


def test_an_arm_that_every_rival_was_measured_against_is_not_locked_in():
    world = failure(1.0)
    arms = world.actions
    worse, better = (np.array(arm) for arm in arms.vectors)
    evidence = played([better, better, worse, worse] * 2000 + [better] * 50, world.theta)
    menu, monitor = Menu(arms.columns, arms.squared), LockInMonitor(50, False)
    assert not locked_in(monitor, LOUD, evidence, menu, 1, 1)[0]


def test_nothing_is_locked_in_where_the_protected_vectors_leave_no_reward():
    rng, rho = np.random.default_rng(1), np.full(3, 0.1)
    arms = ss.Arms(rng.standard_normal((9, 2)))
    menu, evidence = Menu(arms.columns, arms.squared), no_evidence(rho, 2)
    for turn, feedback in enumerate(rng.standard_normal(20)):
        absorb(evidence, rho, np.array(arms.vectors[turn % 2]), turn % 3, feedback)
    known = LOUD._replace(rho=rho, noise=np.ones(3))
    for rank, expected in [(1, True), (2, False)]:
        assert locked_in(LockInMonitor(2, False), known, evidence, menu, rank, 0)[0] == expected


def test_a_noise_scale_that_is_not_told_is_learned_and_raises_no_alarm_of_its_own():
    world = failure(1.0)
    arms, rng = world.actions, np.random.default_rng(3)
    worse, better = (np.array(arm) for arm in arms.vectors)
    untold = LOUD._replace(noise=np.full(2, np.nan))
    menu, monitor = Menu(arms.columns, arms.squared), LockInMonitor(50, False)
    for history, arm, expected in [
        ([better, better, worse, worse] * 2000 + [better] * 50, 1, False),
        ([worse] * 50, 0, True),
    ]:
        evidence = played(history, world.theta, noise=rng.standard_normal(len(history)))
        assert locked_in(monitor, LOUD, evidence, menu, 1, arm)[0] == expected
        assert locked_in(monitor, untold, evidence, menu, 1, arm)[0] == expected


@pytest.mark.parametrize("policy", [ss.ProtectedLinUCB, ss.RoundRobinLinUCB])
def test_a_run_that_locks_in_says_so_in_its_trace(policy):
    world = failure(1.0)
    traces = [ss.simulate(policy(world.problem), world, 1000, seed, every=10) for seed in range(8)]
    stuck = [trace for trace in traces if (trace.regret[-20:] > 0.1).all()]
    assert stuck
    for trace in stuck:
        (sentence,) = trace.warnings
        assert sentence.startswith("locked in: ")
        first = int(trace.record.locked[1])
        stepped = ss.simulate(policy(world.problem), world, first, trace.seed, compiled=False)
        assert stepped.phase[-1] == "locked-in"
        assert stepped.record.locked.tolist() == [1, first]


def test_on_fresh_arms_no_arm_is_ever_locked_in():
    world = synthetic(noise_scale=0.1, seed=0)
    assert ss.simulate(ss.EpsilonGreedy(world.problem), world, 500).warnings == ()


@pytest.mark.full
def test_exploring_frees_locked_in_runs(oracle):
    """A run counts as stuck if it plays the worse arm in at least 95% of its second half."""
    world, runs, stuck = failure(1.0), 20, {}
    for word in ("warn", "explore"):
        policy = ss.ProtectedLinUCB(world.problem, lock_in=word, patience=10)
        traces = [ss.simulate(policy, world, 1000, seed) for seed in range(runs)]
        stuck[word] = sum((trace.regret[500:] > 0).mean() > 0.95 for trace in traces)
    assert oracle.at_most(stuck["explore"], runs, 0.1)
    assert not oracle.at_most(stuck["warn"], runs, 0.1)
