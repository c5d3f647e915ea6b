"""The same rounds for everybody: ours, two ways without a compiler, and the peers that are installed."""

import warnings
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.clock import Effort, Rounds, fitting, interleaved, race
from benchmarks.speed.grid import asked
from benchmarks.speed.peers import Board, Play, ready
from benchmarks.speed.rivals import Pinv, Rival, Vectorised
from benchmarks.speed.rounds import Given
from benchmarks.speed.worlds import FIXED, World, policy_of, unit_vectors
from sidestep.core.actions import Arms
from sidestep.core.arrays import FloatArray, IntArray
from sidestep.environments.instance import Instance
from sidestep.experiments.random_streams import streams_of
from sidestep.experiments.simulate import simulate

Row = dict[str, Any]
ROUNDS = 1000  # of a run; a slower contestant plays as many of them as fit into its turn
SETS = 64  # arm sets that stand for new arms: as many as the second cache holds
SAME = 50  # rounds that ours and the rivals must decide alike
OURS = ("protected-linucb", "oful")
RIVALS: dict[str, type[Rival]] = {"numpy, recomputing": Vectorised, "pinv per arm": Pinv}
PATIENCE = 2  # a peer has that much longer a turn than ours: it is slower


class Entry(NamedTuple):
    """Somebody who plays, or the reason why not."""

    who: str
    kind: str  # "ours", "rival" or "peer"
    play: Rounds | str


class Table(NamedTuple):
    """What everybody is shown."""

    world: World
    instance: Instance
    menus: FloatArray  # (n, K, d)
    draws: FloatArray  # (ROUNDS,): the noise that `simulate` meets with seed 0


def contest(world: World, effort: Effort, *, with_peers: bool) -> list[Row]:
    """Rounds a second of everybody on one world; who cannot play is named with the reason."""
    menus = unit_vectors(1 if world.kind == FIXED else SETS, world.arms, world.dim)
    table = Table(world, world.instance(), menus, streams_of(0)[1].standard_normal(ROUNDS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the peers
        entries = [Entry(name, "ours", _ours(name, table)) for name in OURS]
        entries += _rivals(table)
        entries += _peers(table) if with_peers else []
        return _timed(world, entries, effort)


def _timed(world: World, entries: Sequence[Entry], effort: Effort) -> list[Row]:
    sized = {
        who: (_rounds(kind, play, effort.seconds), play)
        for who, kind, play in entries
        if not isinstance(play, str)
    }
    timed = interleaved(sized, effort.turns)
    return [
        {
            "world": world.title,
            "who": who,
            "kind": kind,
            "rounds": min(timed[who].rounds, ROUNDS) if who in timed else 0,
            "rate": timed[who].rate if who in timed else None,
            "reason": play if isinstance(play, str) else None,
        }
        for who, kind, play in entries
    ]


def _rounds(kind: str, play: Rounds, seconds: float) -> int:
    """How many fill a turn: of ours whole runs, again and again; of others at most one run."""
    if kind == "ours":
        return max(1, fitting(play, seconds) // ROUNDS) * ROUNDS
    return fitting(play, PATIENCE * seconds if kind == "peer" else seconds, ROUNDS)


def _ours(name: str, table: Table) -> Rounds:
    """Runs of ROUNDS, one after another: fixed arms by `simulate`, given ones without drawing them."""
    policy = policy_of(name, table.instance)
    given = Given(policy, table.instance, table.menus, table.draws)

    def play(rounds: int) -> None:
        for start in range(0, rounds, ROUNDS):
            length = min(ROUNDS, rounds - start)
            if table.world.kind == FIXED:
                simulate(policy, table.instance, length, every=length, compiled=True)
            else:
                given.play(length)

    return play


def _rivals(table: Table) -> list[Entry]:
    """Those who decide as ours does; who does not is not compared."""
    policy, decided, entries = _protected(table), _decided(table), []
    for name, kind in RIVALS.items():
        quick = max(1, SAME * 100 // table.world.arms)  # rounds of a loop over arms
        rounds = SAME if kind is Vectorised else min(SAME, quick)
        theirs = kind(policy, table.instance).play(table.menus, table.draws, rounds)
        differ = np.flatnonzero((decided[:rounds] != theirs).any(axis=1))
        play: Rounds | str = _rival(kind, table)
        if len(differ):
            play = f"decides otherwise in round {differ[0] + 1}"
        entries.append(Entry(name, "rival", play))
    return entries


def _rival(kind: type[Rival], table: Table) -> Rounds:
    policy = _protected(table)
    return lambda rounds: kind(policy, table.instance).play(table.menus, table.draws, rounds)


def _protected(table: Table) -> Any:
    return policy_of("protected-linucb", table.instance)


def _decided(table: Table) -> IntArray:
    """Arm and index of the first rounds of ours; (SAME, 2)."""
    policy = _protected(table)
    if table.world.kind != FIXED:
        return Given(policy, table.instance, table.menus, table.draws).play(SAME)
    trace = simulate(policy, table.instance, SAME)
    return np.stack([trace.arm, trace.index], axis=1)


def _peers(table: Table) -> list[Entry]:
    board = Board(table.menus, table.instance.theta[0], table.world.noise * table.draws)
    return [
        Entry(peer.name, "peer", play if isinstance(play, str) else _further(play))
        for peer, play in ready(board)
    ]


def _further(play: Play) -> Rounds:
    """Further rounds of one run."""
    clock = count(1)

    def rounds_of(rounds: int) -> None:
        for _ in range(rounds):
            play(next(clock))

    return rounds_of


def recomputing(world: World, effort: Effort) -> list[Row]:
    """Microseconds of a decision that keeps nothing: in compiled code, and by `ask` and `tell`."""
    instance = world.instance()
    menus = unit_vectors(1, world.arms, world.dim)
    draws = np.random.default_rng(0).standard_normal(ROUNDS)
    rows = []
    for name in OURS:
        compiled = Given(policy_of(name, instance), instance, menus, draws).play
        called = asked(name, instance, Arms(menus[0]))
        timed = race({"compiled": compiled, "asked": called}, effort)
        costs = {f"{how}_us": 1e6 / timing.rate for how, timing in timed.items()}
        rows.append({"world": world.title, "policy": name, **costs})
    return rows
