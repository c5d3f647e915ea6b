"""Restrictions of one ask: what may be played and measured, how far from the last, at what price."""

import numpy as np
import pytest

import sidestep as ss
from sidestep.environments import Instance, synthetic
from sidestep.policies.catalog import POLICIES

RNG = np.random.default_rng(0)
ARMS = ss.Arms(RNG.standard_normal((40, 4)) / 4)
THETA = synthetic(4, 3, 2, ARMS, seed=0).theta
WITHIN = {"tolerance": 0.15, "penalty": 5.0}
BOX = ss.Box([-0.4] * 4, [0.4] * 4)


def learned(actions=ARMS, rounds=25, policy=ss.DirectedThompson, told=WITHIN, **knobs):
    """A player, its world and its state after some rounds."""
    game = Instance(THETA, actions, 0.1, **told)
    player, rng = policy(game.problem, **knobs), np.random.default_rng(1)
    state = player.init()
    for _ in range(rounds):
        query = player.ask(state, actions, rng).query
        state = player.tell(state, query, game.observe(query, rng))
    return player, state


@pytest.fixture(scope="module")
def known():
    return learned()


@pytest.fixture(scope="module")
def in_box():
    return learned(BOX, rounds=6)


def asked(known, actions=ARMS, seeds=6, **rules):
    """The decisions under a restriction, for several seeds."""
    player, state = known
    rule = ss.Restrictions(**rules)
    return [
        player.ask(state, actions, np.random.default_rng(seed), restrictions=rule)
        for seed in range(seeds)
    ]


def test_no_restriction_changes_nothing(known):
    player, state = known
    for seed, bound in enumerate(asked(known)):
        free = player.ask(state, ARMS, np.random.default_rng(seed))
        assert (free.arm, free.query.index, free.price) == (
            bound.arm,
            bound.query.index,
            bound.price,
        )


@pytest.mark.parametrize("name", ["directed-thompson", "epsilon-greedy", "uniform", "oful"])
def test_only_allowed_rows_are_played_and_only_what_can_be_is_measured(name):
    told = {"subspace_dim": 2} if name == "oful" else WITHIN
    known = learned(policy=POLICIES[name], told=told, rounds=4)
    for decision in asked(known, allowed=[3, 17, 30], measure_only=[2]):
        assert decision.arm in (3, 17, 30)
        assert (decision.query.action == ARMS.vectors[decision.arm]).all()
        assert decision.query.index == 2


def test_rows_keep_the_names_that_the_caller_gave_them(known):
    mask = np.zeros(40, dtype=bool)
    mask[10:20] = True
    for decision in asked(known, ARMS.only(mask), allowed=[12, 15]):
        assert decision.arm in (12, 15)
        assert (decision.query.action == ARMS.vectors[decision.arm]).all()


def test_what_cannot_be_measured_leaves_the_other_costs_as_they_are():
    """With a huge cost instead, the relative costs of the others would change, and so the choice."""
    player, state = learned()
    dear = ss.DirectedThompson(ss.Problem(**_facts(player.problem), costs=[1.0, 3.0, 1.0, 2.0]))
    for seed in range(10):
        free = dear.ask(state, ARMS, np.random.default_rng(seed))
        bound = asked((dear, state), seeds=seed + 1, measure_only=[free.query.index, 3])[-1]
        assert (bound.arm, bound.query.index) == (free.arm, free.query.index)


def _facts(problem):
    return {
        "dim": problem.dim,
        "n_protected": problem.n_protected,
        "noise_scale": problem.noise_scale,
        "norm_bound": problem.norm_bound,
        "action_bound": problem.action_bound,
        **WITHIN,
    }


def test_no_coordinate_moves_farther_than_the_step(known, in_box):
    last = np.array(ARMS.vectors[5])
    for decision in asked(known, largest_step=0.4, last=last):
        assert (np.abs(decision.query.action - last) <= 0.4 + 1e-9).all()
    steps = [0.05, 0.1, np.inf, 0.0]
    for decision in asked(in_box, BOX, largest_step=steps, last=[0.1, 0.0, -0.2, 0.3]):
        moved = np.abs(decision.query.action - [0.1, 0.0, -0.2, 0.3])
        assert (moved <= np.array(steps) + 1e-9).all()
        assert BOX.contains(decision.query.action)


def test_a_step_is_counted_from_what_was_told_last(known):
    player, state = known
    state = player.tell(state, ss.Query(ARMS.vectors[7], 1), 0.1)
    for decision in asked((player, state), largest_step=0.3):
        assert (np.abs(decision.query.action - ARMS.vectors[7]) <= 0.3 + 1e-9).all()


@pytest.mark.parametrize(
    "solid", [ss.UnitBall(4), ss.Simplex(4), ss.Ellipsoid([1.0, 0.5, 0.5, 1.0])]
)
def test_on_other_solids_the_action_is_drawn_back_to_the_step(solid):
    last = np.full(4, 0.25)
    known = learned(solid, rounds=3)
    for decision in asked(known, solid, seeds=3, largest_step=0.1, last=last, price_cap=0.02):
        assert (np.abs(decision.query.action - last) <= 0.1 + 1e-9).all()
        assert solid.contains(decision.query.action)
        assert decision.price <= 0.02 + 1e-12


@pytest.mark.parametrize("told", [WITHIN, {"subspace_dim": 2}], ids=["within", "projected"])
def test_nothing_is_played_that_costs_more_than_the_cap(told):
    known = learned(rounds=3, told=told)
    free = max(decision.price for decision in asked(known, seeds=20))
    assert free > 0.01
    for decision in asked(known, seeds=20, price_cap=0.01):
        assert decision.price <= 0.01
    for decision in asked(known, price_cap=0.0):
        assert decision.price == 0.0


def test_in_a_box_the_price_is_capped_as_well(in_box):
    prices = [decision.price for decision in asked(in_box, BOX)]
    assert max(prices) > 0.005
    for decision in asked(in_box, BOX, price_cap=0.005):
        assert decision.price <= 0.005 + 1e-9
        assert BOX.contains(decision.query.action)


def test_to_confirm_is_to_play_what_is_recommended_and_measure_what_is_least_settled(known):
    player, state = known
    advice = ss.recommend(player, state, ARMS)
    decision = asked(known, seeds=1, purpose="confirm")[0]
    assert decision.phase == "confirm"
    assert decision.arm == advice.arm
    widths = {i: each.high - each.low for i, each in enumerate(advice.effects) if i > 0}
    unsettled = [i for i in widths if advice.verdicts[i - 1] == "not settled"] or list(widths)
    assert decision.query.index == max(unsettled, key=widths.get)
    assert asked(known, seeds=1, purpose="confirm", measure=0)[0].query.index == 0
    assert asked(known, seeds=1, purpose="confirm", measure_only=[0, 3])[0].query.index == 3


def test_tolerances_are_the_unit_of_what_is_least_settled():
    game = Instance(THETA, ARMS, 0.1, tolerance=[0.5, 0.5, 0.001], penalty=5.0)
    known = ss.DirectedThompson(game.problem), ss.DirectedThompson(game.problem).init()
    assert asked(known, seeds=1, purpose="confirm")[0].query.index == 3


def test_in_a_box_it_confirms_as_well(in_box):
    decision = asked(in_box, BOX, seeds=1, purpose="confirm", largest_step=0.1, last=np.zeros(4))[0]
    assert (np.abs(decision.query.action) <= 0.1 + 1e-9).all()
    assert decision.query.index > 0


@pytest.mark.parametrize("purpose", ["learn", "confirm"])
def test_a_panel_keeps_to_the_same_restrictions(known, purpose):
    rule = ss.Restrictions(allowed=[3, 17], measure_only=[0, 2, 3], purpose=purpose)
    panel = ss.ask_panel(*known, ARMS, np.random.default_rng(0), 3, restrictions=rule)
    assert sorted(decision.query.index for decision in panel) == [0, 2, 3]
    assert len({decision.arm for decision in panel} | {3, 17}) == 2
    batch = ss.ask_batch(*known, ARMS, np.random.default_rng(0), 3, restrictions=rule)
    assert {decision.arm for decision in batch} <= {3, 17}


def test_a_panel_of_more_tests_than_can_be_measured_is_refused(known, refusal):
    rule = ss.Restrictions(measure_only=[0, 2])
    message = refusal(ss.ask_panel, *known, ARMS, np.random.default_rng(0), 3, restrictions=rule)
    assert message.startswith("size must lie in 1..2")


class FourArguments:
    """A user's policy whose `ask` does not accept restrictions."""

    def __init__(self, problem):
        self.problem = problem
        self.init = ss.Uniform(problem).init

    def ask(self, state, actions, rng, pending=()):
        return ss.Uniform(self.problem).ask(state, actions, rng, pending)


def test_a_policy_of_four_arguments_goes_on_playing_and_says_what_it_cannot(refusal):
    player = FourArguments(learned(rounds=0)[0].problem)
    call = (player, player.init(), ARMS, np.random.default_rng(0), 2)
    assert len(ss.ask_panel(*call)) == 2
    message = refusal(ss.ask_panel, *call, restrictions=ss.Restrictions(allowed=[1]))
    assert "whose ask takes restrictions, got FourArguments.ask" in message


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        ({"allowed": []}, "allowed must leave at least one"),
        ({"allowed": [True]}, "allowed must be whole numbers"),
        ({"allowed": [40]}, "allowed must name rows of the arms, got 40"),
        ({"measure_only": [4]}, "measure must lie in 0..3"),
        ({"largest_step": -1.0, "last": [0.0] * 4}, "largest_step must be zero or positive"),
        ({"largest_step": 0.1, "last": [0.0] * 3}, "last must have 4 coordinates"),
        ({"largest_step": 1e-9, "last": [9.0] * 4}, "must leave an arm, got none"),
        ({"price_cap": -1.0}, "price_cap must be zero or positive"),
        ({"purpose": "guess"}, "purpose must be one of"),
        ({"measure": 1}, 'measure is for purpose="confirm"'),
        ({"purpose": "confirm", "measure": 1, "measure_only": [2]}, "one of measure_only"),
    ],
)
def test_what_cannot_be_kept_to_is_refused_in_a_sentence(known, refusal, rules, sentence):
    assert sentence in refusal(asked, known, seeds=1, **rules)


def test_on_a_solid_rows_are_refused(in_box, refusal):
    assert "allowed must be rows of arms" in refusal(asked, in_box, BOX, allowed=[1])
    far = {"largest_step": 0.1, "last": [2.0] * 4}
    assert "must leave an action of the box" in refusal(asked, in_box, BOX, **far)
    ball = learned(ss.UnitBall(4), rounds=0)
    assert "last must be an action of the UnitBall" in refusal(asked, ball, ss.UnitBall(4), **far)


def test_a_policy_without_a_posterior_prices_nothing_and_basis_vectors_are_off_the_menu(refusal):
    known = learned(policy=ss.EpsilonGreedy, rounds=0)
    assert "price_cap needs a policy that has a posterior" in refusal(asked, known, price_cap=1.0)
    printed = learned(policy=ss.ProtectedLinUCB, told={"subspace_dim": 2}, rounds=0, design="basis")
    assert "keeps to the menu" in refusal(asked, printed, allowed=[1, 2])


def test_restrictions_are_equal_by_value():
    one, other = (ss.Restrictions(allowed=rows, last=[0, 1]) for rows in ([1, 2], np.array([2, 1])))
    assert one == other
