"""What we promised to reach, and what was measured: one row a promise, from the tables alone."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.speed.worlds import HUGE, LARGE, PAPER, PAPER_GIVEN, WARFARIN, World

Row = dict[str, Any]
Tables = dict[str, list[Row]]
MISSING = float("nan")


class Target(NamedTuple):
    """A promise: at least `wanted`, or at most where `most`; NaN where nothing was measured."""

    what: str
    wanted: float
    value: Callable[[Tables], float]
    form: str = "{:,.0f}x"
    most: bool = False


def find(tables: Tables, table: str, key: str, **where: Any) -> float:
    """The number in the one row that fits, or NaN."""
    for row in tables.get(table, []):
        if all(row[name] == value for name, value in where.items()):
            return MISSING if row[key] is None else float(row[key])
    return MISSING


def fastest_peer(tables: Tables, world: World) -> tuple[str, float]:
    """Name and rate of the peer that decides fastest there, whatever its form."""
    peers = [
        (row["who"], float(row["rate"]))
        for row in tables.get("contest", [])
        if row["kind"] == "peer" and row["world"] == world.title and row["rate"]
    ]
    return max(peers, key=lambda peer: peer[1], default=("", MISSING))


def over(world: World, ours: str, rival: str) -> Callable[[Tables], float]:
    """Our rate over a rival's, on the same world in the same step."""

    def ratio(tables: Tables) -> float:
        theirs = (
            fastest_peer(tables, world)[1]
            if rival == "peer"
            else find(tables, "contest", "rate", world=world.title, who=rival)
        )
        return find(tables, "contest", "rate", world=world.title, who=ours) / theirs

    return ratio


def share(world: World, policy: str) -> Callable[[Tables], float]:
    """Decisions a second as a share of the limit, in percent."""
    return lambda tables: 100 * find(tables, "decisions", "share", world=world.title, policy=policy)


def asked(tables: Tables, world: World) -> tuple[float, float]:
    """Microseconds of `ask` and `tell`, and of the compiled arithmetic that they contain."""
    where = {"world": world.title, "policy": "protected-linucb"}
    return (
        find(tables, "recomputing", "asked_us", **where),
        find(tables, "recomputing", "compiled_us", **where),
    )


def overhead(tables: Tables) -> float:
    """What Python adds to a decision."""
    whole, arithmetic = asked(tables, PAPER)
    return whole - arithmetic


def times_arithmetic(tables: Tables) -> float:
    """How often the compiled arithmetic would fit into one `ask` and `tell`."""
    whole, arithmetic = asked(tables, WARFARIN)
    return whole / arithmetic


def run_of(key: str, world: World, rounds: int) -> Callable[[Tables], float]:
    """A number of a long run."""
    return lambda tables: find(tables, "memory", key, world=world.title, rounds=rounds)


def times_matrix(tables: Tables) -> float:
    """Peak memory of the largest world, in arm matrices."""
    peak, matrix = (run_of(key, HUGE, 1000)(tables) for key in ("peak_mb", "matrix_mb"))
    return peak / matrix


def growth(tables: Tables) -> float:
    """Megabytes that ten times the rounds take more."""
    small, large = (run_of("peak_mb", PAPER, rounds)(tables) for rounds in (100_000, 1_000_000))
    return large - small


def started(what: str) -> Callable[[Tables], float]:
    """Seconds until something has started."""
    return lambda tables: find(tables, "startup", "seconds", what=what)


def two(kind: str) -> Callable[[Tables], float]:
    """Speed of two cores over one."""
    return lambda tables: find(tables, "cores", "times", how=f"2 {kind}")


OURS, OFUL = "protected-linucb", "oful"
NUMPY, PINV, PEER = "numpy, recomputing", "pinv per arm", "peer"
THREADS, RUNNING, STARTING = "threads", "processes, running", "processes, with their start"
CACHED = "first round of protected-linucb, compiled before"
US, SECONDS, PERCENT, MB, TIMES = "{:,.1f} us", "{:,.2f} s", "{:,.0f}%", "{:,.1f} MB", "{:,.2f}x"
MILLION = run_of("seconds", PAPER, 1_000_000)
TARGETS = (
    Target("Protected, 100 x 6 fresh: over pinv per arm", 10_000, over(PAPER_GIVEN, OURS, PINV)),
    Target("Protected, 100 x 6 fresh: over numpy", 60, over(PAPER_GIVEN, OURS, NUMPY)),
    Target("Protected, 100 x 6 fresh: over the fastest peer", 50, over(PAPER_GIVEN, OURS, PEER)),
    Target("Protected, 1832 x 8 fixed: over numpy, recomputing", 30, over(WARFARIN, OURS, NUMPY)),
    Target("Protected, 1832 x 8 fixed: over the fastest peer", 30, over(WARFARIN, OURS, PEER)),
    Target("Protected, 1832 x 8 fixed: of one pass", 10, share(WARFARIN, OURS), PERCENT),
    Target("OFUL, 1832 x 8 fixed: over the fastest peer", 100, over(WARFARIN, OFUL, PEER)),
    Target("OFUL, 1832 x 8 fixed: of one pass", 100 / 3, share(WARFARIN, OFUL), PERCENT),
    Target("OFUL, 10,000 x 50 fixed: of one pass", 50, share(LARGE, OFUL), PERCENT),
    Target("ask + tell, 100 x 6: over the compiled arithmetic", 25, overhead, US, most=True),
    Target("ask + tell, 1832 x 8: in recomputing decisions", 2, times_arithmetic, TIMES, most=True),
    Target("two cores, 100 runs, threads", 1.8, two(THREADS), TIMES),
    Target("two cores, 100 runs, processes running", 1.8, two(RUNNING), TIMES),
    Target("two cores, 100 runs, processes to be started", 1.8, two(STARTING), TIMES),
    Target("100,000 x 20: 1,000 rounds", 60, run_of("seconds", HUGE, 1000), SECONDS, most=True),
    Target("100,000 x 20: memory in arm matrices", 4, times_matrix, TIMES, most=True),
    Target("a million rounds at 100 x 6", 60, MILLION, SECONDS, most=True),
    Target("a million rounds: memory over 100,000 rounds", 1, growth, MB, most=True),
    Target("sidestep --help", 0.4, started("sidestep --help"), SECONDS, most=True),
    Target("first round of a run, compiled before", 2, started(CACHED), SECONDS, most=True),
)


def verdicts(tables: Tables) -> list[Row]:
    """Every promise with what came of it: reached, not reached, or not measured."""
    rows = []
    for target in TARGETS:
        value = target.value(tables)
        reached = value <= target.wanted if target.most else value >= target.wanted
        bound = "at most " if target.most else ""
        rows.append(
            {
                "what": target.what,
                "wanted": bound + target.form.format(target.wanted),
                "measured": "-" if math.isnan(value) else target.form.format(value),
                "verdict": "not measured" if math.isnan(value) else "yes" if reached else "no",
            }
        )
    return rows
