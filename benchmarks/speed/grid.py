"""Every policy over every world: decisions a second, and the latency of `ask` and `tell`."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

from benchmarks.speed.clock import Effort, Rounds, interleaved, race
from benchmarks.speed.limits import Limits
from benchmarks.speed.worlds import (
    BALL,
    PAPER,
    World,
    policy_of,
    size_on,
    unit_vectors,
    vectors_in_play,
)
from sidestep.core.actions import Arms, UnitBall
from sidestep.environments.instance import Instance
from sidestep.experiments.analysis.run_facts import log_slope
from sidestep.experiments.random_streams import deck
from sidestep.experiments.simulate import simulate

Row = dict[str, Any]
FIRST = 1000  # rounds of a run by which growth is judged, whatever the size
FIRST_ON_BALL = 200  # the same where a decision is a search
HORIZONS = (1000, 10_000, 100_000, 1_000_000)


def decisions(
    world: World, names: Sequence[str], effort: Effort, limits: Callable[[], Limits]
) -> list[Row]:
    """Rounds a second of the loop behind `simulate`; fresh arms are drawn in it."""
    instance = world.instance()
    timed = race({name: _simulated(name, instance) for name in names}, effort, world.rounds)
    rows = []
    for name, timing in timed.items():
        last = simulate(
            policy_of(name, instance), instance, timing.rounds, every=timing.rounds, compiled=True
        )
        limit = limits().rate(world, vectors_in_play(name, world))
        rows.append(
            {
                "world": world.title,
                "policy": name,
                "rounds": timing.rounds,
                "phase": str(last.phase[-1]),  # in which the last of these rounds was
                "rate": timing.rate,
                "limit": limit,
                "share": limit and timing.rate / limit,
            }
        )
    return rows


def _simulated(name: str, instance: Instance) -> Rounds:
    """Runs of one policy, each with another seed: arms that are drawn serve one run only."""
    policy, seeds = policy_of(name, instance), count()
    return lambda rounds: simulate(
        policy, instance, rounds, next(seeds), every=rounds, compiled=True
    )


def sharing(names: Sequence[str], effort: Effort) -> list[Row]:
    """Rounds a second over fresh arms: drawn for this run, and met by another policy before."""
    instance, rows = PAPER.instance(), []
    for name in names:
        policy = policy_of(name, instance)

        def shared(rounds: int, policy: Any = policy) -> None:
            for _ in range(0, rounds, FIRST):
                simulate(policy, instance, FIRST, every=FIRST, compiled=True)

        timed = race({"alone": _apart(shared), "shared": shared}, effort, FIRST)
        rates = {how: timing.rate for how, timing in timed.items()}
        rows.append({"policy": name, **rates, "times": rates["shared"] / rates["alone"]})
    return rows


def _apart(play: Rounds) -> Rounds:
    """The same runs, none of which finds the arms of the one before."""

    def alone(rounds: int) -> None:
        for _ in range(0, rounds, FIRST):
            deck.cache_clear()
            play(FIRST)

    return alone


def latency(world: World, names: Sequence[str], effort: Effort) -> list[Row]:
    """Microseconds of one `ask` and one `tell` from Python; arms and generator are given."""
    instance = world.instance()
    actions: Arms | UnitBall = (
        instance.actions
        if isinstance(instance.actions, (Arms, UnitBall))
        else Arms(unit_vectors(1, world.arms, world.dim)[0])
    )
    timed = race({name: asked(name, instance, actions) for name in names}, effort)
    return [
        {"world": world.title, "policy": name, "rounds": t.rounds, "microseconds": 1e6 / t.rate}
        for name, t in timed.items()
    ]


def asked(name: str, instance: Instance, actions: Arms | UnitBall) -> Rounds:
    """Rounds of `ask` and `tell`, one call after another."""
    policy, noise = policy_of(name, instance), 0.1 * np.random.default_rng(0).standard_normal(1024)
    # over arms a decision costs the same whatever was learned; on the ball it does not
    theta = instance.theta if isinstance(actions, UnitBall) else None

    def play(rounds: int) -> None:
        state, rng = policy.init(), np.random.default_rng(0)
        for t in range(rounds):
            query = policy.ask(state, actions, rng).query
            feedback = noise[t % noise.size]
            if theta is not None:
                feedback += theta[query.index] @ query.action
            state = policy.tell(state, query, feedback)

    return play


def slope(axis: str, names: Sequence[str], worlds: Sequence[World]) -> list[Row]:
    """Exponent of the cost of a decision in K, d, L or s, over the first rounds of runs."""
    costs: dict[str, list[float]] = {name: [] for name in names}
    for world in worlds:
        instance = world.instance()
        rounds = FIRST_ON_BALL if world.kind == BALL else FIRST
        players = {name: (rounds, _simulated(name, instance)) for name in names}
        timed = interleaved(players, 3)  # the first turn may load code; the median does not see it
        for name, timing in timed.items():
            costs[name].append(1 / timing.rate)
    sizes = [size_on(axis, world) for world in worlds]
    return [_slope_row(axis, name, sizes, costs[name]) for name in names]


def slope_in_rounds(names: Sequence[str], horizons: Sequence[int]) -> list[Row]:
    """Exponent of the cost of a whole run in T, at 100 fresh arms in R^6."""
    instance = PAPER.instance()
    rows = []
    for name in names:
        play = _simulated(name, instance)
        play(1)
        timed = interleaved({str(T): (T, play) for T in horizons}, 1)
        rows.append(_slope_row("T", name, horizons, [timed[str(T)].seconds for T in horizons]))
    return rows


def _slope_row(axis: str, name: str, sizes: Sequence[float], costs: Sequence[float]) -> Row:
    return {
        "axis": axis,
        "policy": name,
        "exponent": log_slope(sizes, costs),
        "sizes": list(sizes),
        "microseconds": [1e6 * cost for cost in costs],
    }
