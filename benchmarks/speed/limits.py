"""What the machine allows, measured in the same run: reading from every cache, and arithmetic.

The limit of a decision over fixed arms is one pass over the arm matrix at the speed of the cache that
holds it. Where arms are new every round the limit is their drawing, or, where they are given, the
arithmetic of their quadratic forms at the speed of dgemm. On the ball it is one pass over the
matrices of the vectors in play. A share of a limit travels between machines better than a rate does.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from benchmarks.speed.clock import Effort, cpu
from benchmarks.speed.worlds import BALL, FIXED, FRESH, World

FLOAT = 8  # bytes
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL = {"L1": 32 << 10, "L2": 512 << 10, "L3": 8 << 20}  # where the system does not say


class Limits(NamedTuple):
    """What was measured."""

    bytes_of: dict[str, int]  # size of every cache
    bandwidth: dict[str, float]  # bytes a second that one core reads, by level; "DRAM" is the last
    flops: float  # of dgemm, a second
    normals: float  # draws a second

    def level(self, size: int) -> str:
        """The first cache that holds that many bytes."""
        return next((name for name, room in self.bytes_of.items() if size <= room), "DRAM")

    def rate(self, world: World, vectors: int) -> float | None:
        """Decisions a second that the machine allows where `vectors` are looked at; None: no limit."""
        K, d = world.arms, world.dim
        if world.kind == FRESH:
            return self.normals / (K * d)
        if vectors == 0:
            return None
        if world.kind == FIXED:
            size = K * d * FLOAT
            return self.bandwidth[self.level(size)] / size
        if world.kind == BALL:
            size = vectors * d * d * FLOAT
            return self.bandwidth[self.level(size)] / size
        return self.flops / (vectors * K * (d * d + 3 * d))


def cache_sizes() -> dict[str, int]:
    """Bytes of every data cache that this core reaches, smallest first."""
    found = dict(USUAL)
    for folder in sorted(CACHES.glob("index*")):
        level, kind, size = ((folder / name).read_text() for name in ("level", "type", "size"))
        if kind.strip() != "Instruction":
            units = {"K": 1 << 10, "M": 1 << 20}
            found[f"L{level.strip()}"] = int(size.strip()[:-1]) * units[size.strip()[-1]]
    return found


def passes(numbers: Any, times: int) -> float:
    """Sum an array, again and again; the write keeps the compiler from doing it once."""
    total = 0.0
    for _ in range(times):
        for k in range(numbers.size):
            total += numbers[k]
        numbers[0] = total * 1e-300
    return total


def reading() -> Callable[[Any, int], float]:
    """`passes` compiled with leave to reorder the sum, so that nothing but memory holds it up."""
    compiled: Callable[[Any, int], float] = numba.njit(fastmath=True)(passes)
    compiled(np.zeros(8), 1)
    return compiled


def bandwidths(sizes: dict[str, int], effort: Effort) -> dict[str, float]:
    """Bytes a second from every level, by arrays that are between it and the level before in size."""
    read, rooms, before = reading(), {}, min(sizes.values()) // 4
    for name, size in sizes.items():
        rooms[name], before = math.isqrt(before * size), size
    rooms["DRAM"] = 4 * before
    return {name: _bandwidth(read, room, effort) for name, room in rooms.items()}


def _bandwidth(read: Callable[[Any, int], float], room: int, effort: Effort) -> float:
    numbers = np.ones(room // FLOAT)
    times = max(1, int(effort.seconds * 1e10 / room))
    return times * room / best(lambda: read(numbers, times), effort.turns)


def best(function: Callable[[], Any], turns: int) -> float:
    """CPU seconds of the quickest of several calls: a limit is what is possible."""
    return min(cpu(function) for _ in range(turns))


def measured(effort: Effort) -> Limits:
    """The limits of this machine, one core."""
    sizes, side, turns = cache_sizes(), 512, 3 * effort.turns
    rng, draws = np.random.default_rng(0), np.empty(1 << 18)
    matrix = rng.random((side, side))
    product = best(lambda: matrix @ matrix, turns)
    drawing = best(lambda: rng.standard_normal(out=draws), turns)
    return Limits(sizes, bandwidths(sizes, effort), 2 * side**3 / product, draws.size / drawing)


def as_rows(limits: Limits) -> list[dict[str, Any]]:
    """The limits as a table."""
    rows: list[dict[str, Any]] = [
        {"limit": f"reading from {name}", "value": speed / 1e9, "unit": "GB/s"}
        for name, speed in limits.bandwidth.items()
    ]
    rows.append({"limit": "dgemm", "value": limits.flops / 1e9, "unit": "GFLOP/s"})
    return [*rows, {"limit": "normal draws", "value": limits.normals / 1e6, "unit": "million/s"}]
