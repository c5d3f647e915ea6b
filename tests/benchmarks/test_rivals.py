"""The rivals keep the contract of a policy, and each implements the method in its name."""

import numpy as np
import pytest

import sidestep as ss
from benchmarks.rivals import GRIDS, EvenPlugIn, Game, KnowledgeGradient, games, played, tuned


def world(seed=0):
    return ss.environments.synthetic(4, 2, 1, "fixed:12", noise_scale=0.1, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("rival", GRIDS)
def test_a_rival_learns_what_chance_does_not(rival):
    shares = []
    for seed in range(5):
        game = world(seed)
        trace = ss.simulate(rival(game.problem, GRIDS[rival][0]), game, 200, seed)
        chance = ss.simulate(ss.Uniform(game.problem), game, 200, seed, compiled=False)
        shares.append(trace.cumulative_regret[-1] / chance.cumulative_regret[-1])
    assert np.median(shares) < 0.5


def test_even_measuring_is_even():
    game = world()
    trace = ss.simulate(EvenPlugIn(game.problem, 3.0), game, 60, 0)
    assert np.ptp(trace.counts) == 0


def test_with_no_round_left_the_knowledge_gradient_takes_the_best_mean():
    game = world()
    policy, rng = KnowledgeGradient(game.problem, 0.0), np.random.default_rng(0)
    state = policy.tell(policy.init(), ss.Query(game.actions.vectors[3], 0), 1.0)
    assert policy.ask(state, game.actions, rng).arm == 3


def test_the_best_point_of_a_grid_is_shown():
    game = Game("small", world, 20)
    grid = GRIDS[EvenPlugIn]
    cells = [played(game, lambda p, k=k: EvenPlugIn(p, k), 3, k) for k in grid]
    assert tuned(EvenPlugIn, game, 3) == min(cells, key=lambda cell: cell.mean)


def test_rivals_meet_the_worlds_of_the_panel_that_they_can_play():
    found = {game.name: game.horizon for game in games([""])}
    assert found["fresh arms, R=0.1"] == 3000  # as on the panel
    assert "low-rank arms, R=0.1" in found
    for beyond in ("unit ball", "Warfarin", "d=50", "within tolerances", "lower bound"):
        assert not any(beyond in name for name in found)
