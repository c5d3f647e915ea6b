"""How objects are displayed at a prompt and in a notebook."""

import html.parser
import pickle

import numpy as np
import pytest

import sidestep as ss
from sidestep.core.display import brief, notebook_table, sparkline
from sidestep.policies.catalog import POLICIES

ARMS = ss.Arms([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
TOLD = ss.Problem(dim=2, n_protected=1, subspace_dim=1, noise_scale=0.1)
WITHIN = ss.Problem(2, 1, noise_scale=None, tolerance=0.15, intercept=True, costs=(1.0, 2.0))


class Words(html.parser.HTMLParser):
    """The text of a piece of HTML whose tags are closed."""

    def __init__(self, piece):
        super().__init__()
        self.open, self.words = [], []
        self.feed(piece)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open += [] if tag == "polyline" else [tag]

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def shown(thing):
    return Words(thing._repr_html_()).words


@pytest.mark.parametrize("problem", [TOLD, WITHIN, ss.Problem(3, 0), ss.Problem(2, 1, costs=2)])
def test_a_problem_prints_as_the_call_that_builds_it(problem):
    assert eval(repr(problem), {"Problem": ss.Problem}) == problem
    assert len(repr(problem)) < 140
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_what_was_not_told_is_not_printed():
    assert repr(TOLD) == "Problem(dim=2, n_protected=1, subspace_dim=1, noise_scale=0.1)"
    assert shown(TOLD) == ["Problem", "dim", "2", "n_protected", "1", "subspace_dim", "1",
                           "noise_scale", "0.1"]  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_prints_as_the_call_that_builds_it(name):
    policy = POLICIES[name](TOLD)
    assert repr(policy) == f"{type(policy).__name__}(problem={TOLD!r})"
    names = {type(policy).__name__: type(policy), "Problem": ss.Problem}
    assert eval(repr(policy), names) == policy
    words = shown(policy)
    assert words[0] == type(policy).__name__
    assert words[2] == type(policy).__doc__.partition("\n")[0]


def test_knobs_that_differ_are_printed():
    assert repr(ss.DirectedThompson(TOLD, kappa=3.0)).endswith("kappa=3.0)")


@pytest.fixture(scope="module")
def played():
    policy, rng = ss.DirectedThompson(WITHIN), np.random.default_rng(0)
    state = policy.init()
    for feedback in (0.3, -0.1, 0.4):
        decision = policy.ask(state, ARMS, rng)
        state = policy.tell(state, decision.query, feedback)
    return policy, state, decision


def test_a_state_says_whose_it_is_and_what_was_measured(played):
    policy, state, _ = played
    counts = state.evidence.counts.tolist()
    assert repr(state) == f"State(DirectedThompson, round 3, counts {counts})"
    assert repr(policy.init()).startswith("State(")
    assert shown(state)[0] == "State after 3 rounds"
    assert policy.state_from_json(state.to_json()).to_json() == state.to_json()


def test_a_decision_says_what_to_do(played):
    _, _, decision = played
    action = brief(decision.query.action)
    assert repr(decision).startswith(f"Decision(Query({action}, {decision.query.index}), ")
    assert len(repr(decision)) < 100
    words = shown(decision)
    assert words[:3] == ["Decision", "play", action]
    assert "price" in words


def test_a_recommendation_says_what_it_stands_by(played):
    policy, state, _ = played
    advice = ss.recommend(policy, state, ARMS)
    assert repr(advice).startswith(
        f"Recommendation(arm {advice.arm}, reward {brief(advice.reward)}"
    )
    words = shown(advice)
    assert "effect on outcome 1" in words
    assert any(advice.verdicts[0] in word for word in words)


def test_a_trace_says_who_played_for_how_long_and_what_it_cost():
    world = ss.environments.synthetic(dim=2, n_protected=1, subspace_dim=1, arms=3, seed=0)
    trace = ss.simulate(ss.Uniform(world.problem), world, 30, seed=4, compiled=False)
    regret = f"{trace.cumulative_regret[-1]:.4g}"
    assert repr(trace) == f"Trace(Uniform, 30 rounds, seed 4, regret {regret})"
    assert regret in shown(trace)
    assert "<polyline" in trace._repr_html_()


def test_a_curve_of_zeros_or_of_one_point_can_be_drawn():
    for values in ([0.0, 0.0], [3.0], [-1.0, 2.0]):
        assert "nan" not in sparkline(values)


def test_what_is_shown_cannot_break_a_page():
    assert "<i>" not in notebook_table("<i>", {"<i>": "<i>"})
