"""Round Robin LinUCB: how often it explores, whose turn it is, and what it plays then."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import FreshArms, synthetic
from sidestep.experiments.simulate import play

DOUBT = 1e-6


def coins(chances):
    """Expected heads of independent coins, and how far off they may be (Bernstein's bound)."""
    log, spread = np.log(2 / DOUBT), (chances * (1 - chances)).sum()
    return chances.sum(), log / 3 + np.sqrt(log**2 / 9 + 2 * spread * log)


def printed_order(L, turns):
    """The loop of the paper: l <- 1; then l <- (l+1) mod L and I <- l+1, turn after turn."""
    order, at = [], 1
    for _ in range(turns):
        at = (at + 1) % L
        order.append(at + 1)
    return order


@pytest.mark.full
@pytest.mark.parametrize("exponent", [0.5, 0.25, 1.0])
def test_round_t_explores_with_probability_t_to_the_minus_exponent(exponent):
    world = synthetic(3, 2, 1, 4, noise_scale=0.1)
    policy = ss.RoundRobinLinUCB(world.problem, exponent=exponent)
    runs = ss.simulate_many(policy, world, 1000, runs=60)
    explored = np.array([trace.phase == "explore" for trace in runs])
    chances = np.arange(1.0, 1001.0) ** -exponent
    for span in (slice(0, 10), slice(10, 100), slice(100, 1000)):
        expected, slack = coins(np.tile(chances[span], 60))
        assert abs(explored[:, span].sum() - expected) <= slack
    assert explored[:, 0].all()


@pytest.mark.full
@pytest.mark.parametrize(
    ("L", "source"), [(1, "arms"), (2, "arms"), (3, "arms"), (4, "arms"), (5, "arms"), (3, "ball")]
)
def test_protected_vectors_take_turns_in_the_printed_order(L, source):
    dim = 6
    actions = FreshArms(4, dim) if source == "arms" else ss.UnitBall(dim)
    world = synthetic(dim, L, min(L, 2), actions, noise_scale=0.1)
    trace = ss.simulate(ss.RoundRobinLinUCB(world.problem), world, 60)
    turns = trace.index[trace.phase == "explore"].tolist()
    assert len(turns) >= 2
    assert turns == printed_order(L, len(turns))


def test_other_rounds_measure_the_target():
    world = synthetic(4, 3, 2, 5, noise_scale=0.1)
    trace = ss.simulate(ss.RoundRobinLinUCB(world.problem), world, 200)
    assert (trace.index[trace.phase == "play"] == 0).all()
    assert set(trace.phase) == {"play", "explore"}


def test_a_turn_plays_the_largest_plausible_side_effect():
    """OFUL on the protected vector whose turn it is: mind that this maximises the effect."""
    world = synthetic(3, 2, 1, FreshArms(9, 3), noise_scale=0.1)
    policy = ss.RoundRobinLinUCB(world.problem, exponent=0.25)
    before = policy.init()
    checked = 0
    arms = np.random.default_rng(np.random.SeedSequence(4).spawn(3)[0])
    for turn in play(policy, world, 60, seed=4):
        menu = arms.standard_normal((3, 9)).T
        menu /= np.linalg.norm(menu, axis=1, keepdims=True)
        index = turn.decision.query.index
        if turn.decision.phase == "explore":
            precision = before.evidence.gram[index] + 0.1 * np.eye(3)
            centre = np.linalg.solve(precision, before.evidence.moment[index])
            growth = np.linalg.slogdet(precision)[1] - 3 * np.log(0.1)
            reach = 0.1 * np.sqrt(growth - 2 * np.log(0.001 / 3)) + np.sqrt(0.1)
            squares = np.einsum("kj,kj->k", menu, np.linalg.solve(precision, menu.T).T)
            upper = menu @ centre + reach * np.sqrt(squares)
            if np.ptp(np.sort(upper)[-2:]) > 1e-9:
                assert turn.decision.arm == upper.argmax()
                checked += 1
        before = turn.state
    assert checked >= 10


def test_where_l_equals_s_the_best_subset_is_all_of_them():
    world = synthetic(4, 2, 2, 8, noise_scale=0.1)
    best, everything = (
        ss.simulate(ss.RoundRobinLinUCB(world.problem, core_set=word), world, 150)
        for word in ("best", "all")
    )
    assert (best.arm == everything.arm).all()
    assert (best.index == everything.index).all()


def test_without_protected_vectors_there_are_no_turns():
    world = synthetic(3, 0, 0, 5, noise_scale=0.1)
    trace = ss.simulate(ss.RoundRobinLinUCB(world.problem), world, 50)
    assert (trace.phase == "play").all()


def test_delta_is_shared_by_all_vectors():
    policy = ss.RoundRobinLinUCB(ss.Problem(3, 2, 1), delta=0.3)
    assert policy.knobs.confidence.delta == pytest.approx(0.1)
