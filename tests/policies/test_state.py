"""A state as text: exact to the last bit, and readable only by the policy that wrote it."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.estimator import Evidence
from sidestep.environments import synthetic
from sidestep.errors import UnsignedStateWarning
from sidestep.experiments.simulate import play
from sidestep.policies.catalog import from_config
from sidestep.policies.state import STATE_VERSION

POLICIES = ss.policies.POLICIES
ARMS = ss.Arms(np.vstack([np.eye(3), -np.eye(3)]))


def problem(**changed):
    return ss.Problem(
        **{"dim": 3, "n_protected": 2, "subspace_dim": 1, "noise_scale": 0.1, **changed}
    )


def grown(policy, rounds=20, seed=1):
    """The state of a policy after some rounds."""
    world = synthetic(3, 2, 1, ARMS, noise_scale=0.1, seed=seed)
    *_, last = play(policy, world, rounds, seed)
    return last.state


@pytest.mark.parametrize("name", POLICIES)
def test_the_text_of_a_state_gives_it_back_to_the_last_bit(name):
    policy = POLICIES[name](problem())
    for state in (policy.init(), grown(policy)):
        again = policy.state_from_json(state.to_json())
        for field in Evidence._fields:
            assert (
                getattr(again.evidence, field).tobytes() == getattr(state.evidence, field).tobytes()
            )
        assert (again.core_set == state.core_set).all()
        assert again.to_json() == state.to_json()


def test_the_text_is_plain_json_with_a_version_and_says_whose_it_is():
    content = json.loads(grown(ss.OFUL(problem(noise_scale=[0.1, 0.2, 0.3]))).to_json())
    assert content["version"] == STATE_VERSION
    assert set(content) == {"version", "fingerprint", "evidence", "core_set", "ranks", "exact"}
    assert set(content["evidence"]) == set(Evidence._fields)
    whose = content["fingerprint"]
    assert whose["policy"] == "OFUL"
    assert whose["problem"]["noise_scale"] == [0.1, 0.2, 0.3]
    assert whose["learning"] == {"rho": [0.1, 0.1, 0.1], "discount": 1.0}


# What is no state at all


def with_field(text, name, value):
    content = json.loads(text)
    target = content["evidence"] if name in content["evidence"] else content
    target[name] = value
    return json.dumps(content)


def without(text, *path):
    content = json.loads(text)
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return json.dumps(content)


def with_key(text, *path):
    content = json.loads(text)
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = 1
    return json.dumps(content)


MINUS = (-10 * np.eye(3)).tolist()
SKEW = [[1.0, 0.5, 0.0], [-0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
EYE = np.eye(3).tolist()


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (lambda _: "", "the text that to_json wrote"),
        (lambda _: "gibberish", "the text that to_json wrote, got 'gibberish'"),
        (lambda _: "[1, 2]", "the text that to_json wrote"),
        (lambda _: "null", "the text that to_json wrote"),
        (lambda _: "{}", "the text that to_json wrote"),
        (lambda _: None, "the text that to_json wrote"),
        (lambda text: text[:-5], "the text that to_json wrote"),
        (lambda text: without(text, "core_set"), "the text that to_json wrote"),
        (lambda text: without(text, "evidence", "gram"), "the text that to_json wrote"),
        (lambda text: with_field(text, "moment", "many"), "the text that to_json wrote"),
        (lambda text: with_field(text, "moment", [[1.0], [2.0, 3.0]]), "the text that to_json"),
        (lambda text: with_field(text, "logdet", ["1.0", 0.0, 0.0]), "the text that to_json"),
        (lambda text: with_field(text, "evidence", 7), "the text that to_json wrote"),
        (lambda text: with_field(text, "core_set", [10**30, 0, 0]), "whole numbers in core_set"),
        (lambda text: with_field(text, "core_set", [True, False, False]), "whole numbers"),
        (lambda text: with_field(text, "core_set", [7, 0, 0]), "0 or 1 in core_set, got 7"),
        (lambda text: with_field(text, "ranks", [1, 1]), "the ranks assumed and possible"),
        (
            lambda text: with_field(text, "ranks", {"assumed": 1, "possible": 9}),
            "lie in 0..2, got 9",
        ),
        (lambda text: with_field(text, "exact", 1), "true or false in exact, got 1"),
        (lambda text: without(text, "exact"), "the text that to_json wrote"),
        (lambda text: with_field(text, "core_set", [-1, 0, 0]), "no negative core_set, got -1"),
        (lambda text: with_field(text, "version", 99), "version 4, got 99"),
        (lambda text: with_field(text, "version", 3.0), "version 4, got 3.0"),
        (lambda text: with_field(text, "version", 2.0), "version 4, got 2.0"),
        (lambda text: with_field(text, "version", None), "version 4, got None"),
        (lambda text: with_field(text, "version", [3]), "version 4, got [3]"),
        (lambda _: '{"version": 1}', "version 4, got 1"),
        (lambda text: with_key(text, "extra"), "no keys but its own, got 'extra'"),
        (lambda text: with_key(text, "evidence", "extra"), "no keys but its own, got 'extra'"),
        (lambda text: with_field(text, "centre", [[0.0, 0.0]]), "shape (3, 3)"),
        (lambda text: with_field(text, "core_set", [1, 1]), "shape"),
        (lambda text: with_field(text, "gram", [[0.0]]), "shape (3, 3, 3)"),
        (lambda text: with_field(text, "counts", [0]), "shape (3,)"),
        (lambda text: with_field(text, "inverse", []), "shape (3, 3, 3)"),
        (lambda text: with_field(text, "logdet", [0.0, 0.0]), "shape (3,)"),
        (lambda text: with_field(text, "logdet", [float("nan"), 0.0, 0.0]), "finite"),
        (lambda text: with_field(text, "logdet", [0.0, float("inf"), 0.0]), "finite"),
        (lambda text: with_field(text, "counts", [-5, 0, 0]), "no negative counts, got -5"),
        (lambda text: with_field(text, "counts", [1.7, 0, 0]), "whole numbers in counts, got [1.7"),
        (lambda text: with_field(text, "streak", [-1]), "no negative streak"),
        (lambda text: with_field(text, "misfit", [-0.1, 0.0, 0.0]), "no negative misfit"),
        (lambda text: with_field(text, "inverse", [EYE, EYE, MINUS]), "positive definite inverse"),
        (lambda text: with_field(text, "inverse", [EYE, SKEW, EYE]), "for vector 1"),
        (lambda text: with_field(text, "gram", [MINUS, EYE, EYE]), "positive definite gram"),
        (lambda text: with_field(text, "fingerprint", "OFUL"), "say which policy wrote it"),
        (lambda text: with_field(text, "fingerprint", {}), "say which policy wrote it, got {}"),
        (lambda text: with_field(text, "fingerprint", None), "got measurements without a policy"),
        (lambda text: without(text, "fingerprint", "problem"), "say which policy wrote it"),
        (lambda text: with_key(text, "fingerprint", "problem"), "name its problem, got 1"),
        (lambda text: with_key(text, "fingerprint", "learning"), "name its learning, got 1"),
        (lambda text: with_key(text, "fingerprint", "problem", "taste"), "got 'taste' as well"),
        (lambda text: without(text, "fingerprint", "learning", "rho"), "got nothing"),
    ],
)
def test_a_text_that_is_no_state_is_refused_in_one_sentence(refusal, spoil, expected):
    policy = ss.OFUL(problem())
    assert expected in refusal(policy.state_from_json, spoil(grown(policy, 4).to_json()))


# Whose state it is


def test_the_state_of_another_problem_is_refused(refusal):
    other = ss.OFUL(ss.Problem(4, 1, 1, noise_scale=0.1)).init().to_json()
    message = refusal(ss.OFUL(problem()).state_from_json, other)
    assert "shape" in message
    assert "for this problem" in message


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"noise_scale": 0.2}, "a problem with noise_scale = 0.1, got 0.2"),
        ({"norm_bound": 2.0}, "a problem with norm_bound = 1.0, got 2.0"),
        ({"action_bound": 2.0}, "a problem with action_bound = 1.0, got 2.0"),
        ({"subspace_dim": 2}, "a problem with subspace_dim = 1, got 2"),
        ({"costs": [1.0, 1.0, 1.0]}, "a problem with costs = 1.0, got [1.0, 1.0, 1.0]"),
    ],
)
def test_the_state_of_a_problem_that_differs_in_a_number_is_refused(refusal, changed, expected):
    text = grown(ss.EpsilonGreedy(problem(**changed))).to_json()
    assert expected in refusal(ss.EpsilonGreedy(problem()).state_from_json, text)


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        (ss.ProtectedLinUCB, ss.OFUL, "that of a OFUL, got one of 'ProtectedLinUCB'"),
        (ss.OFUL, ss.DirectedThompson, "that of a DirectedThompson, got one of 'OFUL'"),
        (ss.DirectedThompson, ss.ProtectedThompson, "got one of 'DirectedThompson'"),
    ],
)
def test_the_state_of_another_policy_is_refused(refusal, writer, reader, expected):
    text = grown(writer(problem())).to_json()
    assert expected in refusal(reader(problem()).state_from_json, text)


@pytest.mark.parametrize(
    ("policy", "knobs", "expected"),
    [
        (ss.ProtectedLinUCB, {"rho": 100.0}, "learned with rho = [0.1, 0.1, 0.1], got [100.0"),
        (ss.ProtectedLinUCB, {"design": "basis"}, "learned with design = 'arms', got 'basis'"),
        (ss.ProtectedLinUCB, {"coreset": "printed"}, "coreset = 'certified', got 'printed'"),
        (ss.ProtectedLinUCB, {"reset": True}, "learned with reset = False, got True"),
        (ss.DirectedThompson, {"rho": 2.0}, "learned with rho = "),
        (ss.DirectedThompson, {"memory": 4.0}, "learned with discount = 1.0, got 0.75"),
    ],
)
def test_a_state_that_was_learned_otherwise_is_refused(refusal, policy, knobs, expected):
    text = grown(policy(problem(), **knobs)).to_json()
    assert expected in refusal(policy(problem()).state_from_json, text)


def test_a_knob_that_no_number_of_the_state_depends_on_may_change():
    text = grown(ss.ProtectedLinUCB(problem())).to_json()
    ss.ProtectedLinUCB(problem(), delta=0.5, lock_in="explore").state_from_json(text)


def test_before_the_first_round_a_state_may_be_nobodys_but_is_checked_all_the_same(refusal):
    text = ss.DirectedThompson(problem(), rho=3.0).init().to_json()
    assert ss.DirectedThompson(problem(), rho=3.0).state_from_json(text).round == 0
    refusal(ss.DirectedThompson(problem()).state_from_json, text)


def test_a_field_that_an_older_version_did_not_know_had_its_default(refusal):
    text = grown(ss.OFUL(problem())).to_json()
    older = without(text, "fingerprint", "problem", "costs")
    assert ss.OFUL(problem()).state_from_json(older).round == 20
    message = refusal(ss.OFUL(problem(costs=2.0)).state_from_json, older)
    assert "costs = 2.0, got 1.0" in message


# Version 2


def version_2(text):
    """The same state as version 2 wrote it."""
    for key in ("fingerprint", "ranks", "exact"):
        text = without(text, key)
    return with_field(text, "version", 2)


WRITTEN_ARMS = np.vstack([np.eye(3), -np.eye(3), [[0.6, 0.8, 0.0], [0.0, -0.6, 0.8]]])
OLDER = Path(__file__).parents[1] / "written_by" / "states_of_version_3.json"


@pytest.mark.parametrize("name", json.loads(OLDER.read_text()))
def test_a_state_of_version_3_goes_on_as_before(name):
    """Written with the last sources of version 3, as were the next decisions."""
    written = json.loads(OLDER.read_text())[name]
    policy = from_config(name, ss.Problem(**written["problem"]), written["knobs"])
    state, arms = policy.state_from_json(written["state"]), ss.Arms(WRITTEN_ARMS)
    assert json.loads(state.to_json())["version"] == STATE_VERSION
    coded = json.loads(written["state"])["core_set"][1:]
    if policy.reviews_rank:  # the ranks were coded in core_set: 1 assumed, 2 possible
        assert state.ranks == (coded.count(1), len(coded) - coded.count(0))
    for turn, (arm, index, exact, feedback) in enumerate(written["asked"]):
        decision = policy.ask(state, arms, np.random.default_rng(turn))
        assert (decision.arm, decision.query.index, decision.exact) == (arm, index, exact)
        state = policy.tell(policy.state_from_json(state.to_json()), decision.query, feedback)


def test_a_state_of_version_2_is_read_with_a_warning():
    policy = ss.ProtectedLinUCB(problem())
    text = grown(policy).to_json()
    with pytest.warns(UnsignedStateWarning, match="does not say whose it is"):
        again = policy.state_from_json(version_2(text))
    assert again.to_json() == text  # now it has a fingerprint


def test_a_state_of_version_2_is_checked_for_its_numbers(refusal):
    policy = ss.ProtectedLinUCB(problem())
    spoiled = with_field(version_2(grown(policy).to_json()), "counts", [1.7, 0, 0])
    assert "whole numbers in counts" in refusal(policy.state_from_json, spoiled)
    assert "got 'exact'" in refusal(
        policy.state_from_json, with_field(policy.init().to_json(), "version", 2)
    )


@pytest.mark.full
@pytest.mark.parametrize("noise_scale", [0.0, 1e-9, 0.1, None])
@pytest.mark.parametrize("policy", [ss.DirectedThompson, ss.ExploreThenCommit])
def test_no_state_that_was_really_learned_is_refused(policy, noise_scale):
    """Without noise rho is next to nothing, and the running inverse far from well conditioned."""
    told = problem(noise_scale=noise_scale)
    world = synthetic(3, 2, 1, ss.Arms(np.eye(3)[[0, 0, 1]]), noise_scale=0.0, seed=3)
    player = policy(told)
    with warnings.catch_warnings(action="ignore"):  # of arms that do not span
        for turn in play(player, world, 150, 0):
            if turn.number % 10 == 0:
                player.state_from_json(turn.state.to_json())
