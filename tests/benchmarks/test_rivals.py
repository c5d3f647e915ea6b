"""The rivals play by the rules, and each does what it is named for."""

import numpy as np
import pytest

import sidestep as ss
from benchmarks.rivals import GRIDS, EvenPlugIn, KnowledgeGradient, played, tuned


def world(seed=0):
    return ss.environments.synthetic(4, 2, 1, "fixed:12", noise_scale=0.1, seed=seed)


@pytest.mark.full
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


def test_the_best_point_of_a_grid_is_shown(monkeypatch):
    monkeypatch.setattr("benchmarks.rivals.HORIZON", 20)
    cells = [played(world, lambda p, k=k: EvenPlugIn(p, k), 3) for k in GRIDS[EvenPlugIn]]
    assert tuned(EvenPlugIn, world, 3) == min(cells, key=lambda cell: float(cell.split()[0]))
