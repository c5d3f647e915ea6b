"""Explore, then commit: every vector in turn along random actions, then nothing is learned."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import synthetic
from sidestep.experiments.simulate import play

ROUNDS = 24


def world(source=6):
    return synthetic(4, 2, 2, source, noise_scale=0.05, seed=1)


def committed(source=6):
    policy = ss.ExploreThenCommit(world(source).problem, rounds=ROUNDS)
    return policy, list(play(policy, world(source), 60, seed=2))


@pytest.mark.parametrize("source", [6, ss.UnitBall(4)], ids=["arms", "ball"])
def test_it_explores_for_its_rounds_and_then_never_again(source):
    policy = ss.ExploreThenCommit(world(source).problem, rounds=ROUNDS)
    trace = ss.simulate(policy, world(source), 60)
    assert (trace.phase[:ROUNDS] == "explore").all()
    assert (trace.phase[ROUNDS:] == "play").all()


def test_while_it_explores_every_vector_is_measured_in_turn():
    _, turns = committed()
    indices = [turn.decision.query.index for turn in turns]
    assert indices[:ROUNDS] == [t % 3 for t in range(ROUNDS)]
    assert set(indices[ROUNDS:]) == {0}


def test_while_it_explores_arms_are_drawn_evenly(oracle):
    policy = ss.ExploreThenCommit(world().problem, rounds=6_000)
    arms = ss.simulate(policy, world(), 6_000).arm
    for row in range(6):
        assert oracle.about(int((arms == row).sum()), len(arms), 1 / 6)


def test_after_the_commitment_nothing_is_learned():
    policy, turns = committed()
    settled = turns[ROUNDS - 1].state.to_json()
    assert all(turn.state.to_json() == settled for turn in turns[ROUNDS:])
    assert turns[-1].state.round == ROUNDS
    query = ss.Query(np.eye(4)[0], 1)
    assert policy.tell(turns[-1].state, query, 100.0).to_json() == settled


def test_after_the_commitment_a_bad_measurement_is_still_refused(refusal):
    policy, turns = committed()
    query = ss.Query(np.eye(4)[0], 1)
    assert "finite number" in refusal(policy.tell, turns[-1].state, query, float("nan"))


@pytest.mark.parametrize("compiled", [True, False])
def test_on_fixed_arms_it_stands_by_one_arm(compiled):
    arms = ss.Arms(np.vstack([np.eye(4), -np.eye(4)]))
    policy = ss.ExploreThenCommit(world(arms).problem, rounds=ROUNDS)
    trace = ss.simulate(policy, world(arms), 80, compiled=compiled)
    assert len(set(trace.arm[ROUNDS:])) == 1
    assert len(set(trace.value[ROUNDS:])) == 1


def test_it_plays_along_the_estimate_of_theta_perp():
    policy, turns = committed(ss.UnitBall(4))
    evidence = turns[ROUNDS - 1].state.evidence
    ridge = [
        np.linalg.solve(gram + policy.rho * np.eye(4), moment)
        for gram, moment in zip(evidence.gram, evidence.moment, strict=True)
    ]
    basis = np.linalg.svd(np.array(ridge[1:]))[2][:2]
    hope = ridge[0] - basis.T @ (basis @ ridge[0])
    for turn in turns[ROUNDS:]:
        expected = hope / np.linalg.norm(hope)
        np.testing.assert_allclose(turn.decision.query.action, expected, atol=1e-9)


def test_what_is_in_flight_counts_towards_the_rounds():
    policy = ss.ExploreThenCommit(world().problem, rounds=2)
    arms, rng = ss.Arms(np.eye(4)), np.random.default_rng(0)
    pending = [ss.Query(np.eye(4)[0], 0)]
    assert policy.ask(policy.init(), arms, rng, pending).query.index == 1
    assert policy.ask(policy.init(), arms, rng, pending * 2).phase == "play"
