"""Statistical claims of playing within tolerances (docs/guardrails.md); `make test-slow` runs them."""

import numpy as np
import pytest

from benchmarks.guardrails import WORLDS, advice_of, chance_cost, is_linear, players
from sidestep import simulate

SEEDS = 50
TUNED = ("epsilon 0.3", "epsilon 1", "epsilon 3")


@pytest.fixture(scope="module", params=[0.03, 0.1, 0.5])
def finals(request):
    """Final regret of everyone on 50 worlds of arms, and how many runs of ours were linear."""
    found, linear = {}, 0
    for seed in range(SEEDS):
        world = WORLDS["arms"].make(seed, request.param)
        for who, policy in players(world.problem).items():
            trace = simulate(policy, world, 1000, seed, every=10)
            found.setdefault(who, []).append(trace.cumulative_regret[-1])
            linear += who == "directed" and is_linear(trace, chance_cost(world))
    return request.param, {who: np.array(values) for who, values in found.items()}, linear


@pytest.mark.slow
def test_it_pays_half_of_tuned_epsilon_greedy_and_a_fifth_more_where_nobody_can_learn(
    finals, oracle
):
    noise, found, _ = finals
    tuned = min((found[who] for who in TUNED), key=np.mean)
    limit = 0.5 if noise <= 0.1 else 1.2
    assert oracle.mean_at_most(found["directed"] - limit * tuned, 0.0)


@pytest.mark.slow
def test_no_more_than_one_run_in_fifty_is_linear(finals, oracle):
    assert oracle.at_most(finals[2], SEEDS, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["arms", "grid", "trial"])
def test_what_is_said_to_be_within_is_and_intervals_cover_with_noise_and_levels_learned(
    name, oracle
):
    found = [advice_of(WORLDS[name], 0.1, seed) for seed in range(200)]
    said = [one for one in found if one.said]
    assert oracle.at_least(sum(one.within for one in said), len(said), 0.95)
    assert oracle.at_least(sum(one.said for one in found if one.is_clear), len(found), 0.5)
    for covered in ("effects", "verdicts"):
        hits, total = np.sum([getattr(one, covered) for one in found], axis=0)
        assert oracle.at_least(int(hits), int(total), 0.93)
    assert oracle.at_least(sum(one.loss_held for one in found), len(found), 0.93)
