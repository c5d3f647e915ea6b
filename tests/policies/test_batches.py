"""Batches, panels and past records: pending queries count, and a wrong row changes nothing."""

import numpy as np
import polars
import pytest

import sidestep as ss
from sidestep.environments import synthetic
from sidestep.experiments.simulate import play

ARMS = ss.Arms(np.random.default_rng(0).standard_normal((20, 3)) / 3)
WORLD = synthetic(3, 2, 1, ARMS, noise_scale=0.1, seed=1)


def player():
    return ss.DirectedThompson(WORLD.problem)


def state_after(rounds):
    *_, last = play(player(), WORLD, rounds, seed=0)
    return last.state


def test_a_batch_is_asked_one_by_one_with_the_earlier_ones_pending():
    state = state_after(10)
    batch = ss.ask_batch(player(), state, ARMS, np.random.default_rng(1), 4)
    rng, pending = np.random.default_rng(1), []
    for decision in batch:
        again = player().ask(state, ARMS, rng, pending)
        assert again.query.index == decision.query.index
        assert (again.query.action == decision.query.action).all()
        pending.append(again.query)


@pytest.mark.full
@pytest.mark.parametrize(
    "policy", [ss.DirectedThompson, ss.ProtectedLinUCB, ss.EpsilonGreedy, ss.Uniform]
)
def test_a_panel_is_one_action_and_different_outcomes(policy):
    panel = ss.ask_panel(policy(WORLD.problem), policy(WORLD.problem).init(), ARMS,
                         np.random.default_rng(2), 3)  # fmt: skip
    assert sorted(decision.query.index for decision in panel) == [0, 1, 2]
    assert len({decision.arm for decision in panel}) == 1


def test_a_panel_of_more_tests_than_outcomes_is_refused(refusal):
    call = (player(), player().init(), ARMS, np.random.default_rng(0), 4)
    assert refusal(ss.ask_panel, *call).startswith("size must lie in 1..3")


def test_a_panel_starts_with_what_a_single_query_would_be():
    state = state_after(10)
    single = player().ask(state, ARMS, np.random.default_rng(3))
    panel = ss.ask_panel(player(), state, ARMS, np.random.default_rng(3), 2)
    assert panel[0].query.index == single.query.index
    assert panel[0].arm == single.arm


RECORDS = [([0.1, 0.2, 0.3], 0, 0.5), ([0.0, 1.0, 0.0], 2, -0.25)]
FRAME = {
    "action_1": [0.1, 0.0],
    "action_2": [0.2, 1.0],
    "action_3": [0.3, 0.0],
    "index": [0, 2],
    "value": [0.5, -0.25],
}


@pytest.mark.parametrize(
    "records",
    [
        RECORDS,
        FRAME,
        polars.DataFrame(FRAME),
        {"action": [row[0] for row in RECORDS], "index": [0.0, 2.0], "feedback": [0.5, -0.25]},
    ],
    ids=["rows", "columns", "frame", "lists, and an index read as a float"],
)
def test_records_from_before_are_told_like_one_measurement_after_another(records):
    state = player().init()
    for action, index, value in RECORDS:
        state = player().tell(state, ss.Query(np.array(action), index), value)
    assert ss.tell_all(player(), player().init(), records).to_json() == state.to_json()


def test_a_trace_can_be_told_as_records():
    trace = ss.simulate(player(), WORLD, 30, seed=4)
    frame = trace.to_frame().drop("value")
    state = ss.tell_all(player(), player().init(), frame)
    assert (state.evidence.counts == trace.counts).all()


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ([RECORDS[0], ([0.0, 2.0, 0.0], 1, 0.1)], "row 1: action must have length at most"),
        ([RECORDS[0], ([0.0, 1.0, 0.0], 3, 0.1)], "row 1: index must lie in 0..2"),
        ([RECORDS[0], ([0.0, 1.0, 0.0], 1.5, 0.1)], "row 1: index must lie in 0..2"),
        ([RECORDS[0], ([0.0, 1.0], 1, 0.1)], "row 1: action must have shape (3,)"),
        ([RECORDS[0], ([0.0, 1.0, 0.0], 1, None)], "row 1: feedback must be a finite number"),
        ([RECORDS[0], (1, 2)], "row 1: must be (action, index, value)"),
        ({**FRAME, "value": [0.5]}, "records must have columns of one length"),
        ({"index": [0], "value": [1.0]}, "records must have the columns index, value and action"),
        (3.0, "records must be a frame, a mapping of columns or rows"),
        ("abc", "records must be a frame, a mapping of columns or rows"),
    ],
)
def test_a_wrong_row_is_named_and_nothing_is_told(records, sentence, refusal):
    state = state_after(5)
    before = state.to_json()
    assert refusal(ss.tell_all, player(), state, records).startswith(sentence)
    assert state.to_json() == before


def test_a_mask_leaves_the_names_of_the_arms():
    mask = np.zeros(20, dtype=bool)
    mask[[4, 17]] = True
    state = state_after(10)
    decision = player().ask(state, ARMS.only(mask), np.random.default_rng(5))
    assert decision.arm in (4, 17)
    assert (ARMS.vectors[decision.arm] == decision.query.action).all()
    again = ARMS.only(mask).only(np.array([False, True]))
    assert player().ask(state, again, np.random.default_rng(5)).arm == 17
    assert ss.recommend(player(), state, again).arm == 17


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        (np.zeros(20, dtype=bool), "allowed must leave at least one arm"),
        (np.ones(3, dtype=bool), "allowed must be 20 truth values"),
        (np.ones(20), "allowed must be 20 truth values"),
    ],
)
def test_a_wrong_mask_is_refused(mask, sentence, refusal):
    assert refusal(ARMS.only, mask).startswith(sentence)
