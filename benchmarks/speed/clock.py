"""How time is taken: CPU seconds of this process, medians of turns in which everybody plays once."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, NamedTuple

Rounds = Callable[[int], Any]  # play that many rounds


class Effort(NamedTuple):
    """How long to look."""

    turns: int
    seconds: float  # of one contestant in one turn, about


FULL = Effort(turns=5, seconds=0.2)
QUICK = Effort(turns=3, seconds=0.05)


class Timing(NamedTuple):
    """What one contestant did."""

    rounds: int  # in a turn
    seconds: float  # CPU seconds of a turn, the median

    @property
    def rate(self) -> float:
        """Rounds a second."""
        return self.rounds / max(self.seconds, 1e-9)


def cpu(function: Callable[..., Any], *arguments: Any) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    function(*arguments)
    return time.process_time() - start


def fitting(play: Rounds, seconds: float, most: int = 1 << 22) -> int:
    """How many rounds fill about that time; a call that had to load code first does not count."""
    play(1)
    rounds = 1
    while rounds < most:
        took = min(cpu(play, rounds) for _ in range(2))
        if took > seconds / 3:
            return max(1, min(most, int(rounds * seconds / took)))
        rounds *= 4
    return most


def interleaved(contestants: Mapping[str, tuple[int, Rounds]], turns: int) -> dict[str, Timing]:
    """Everybody plays once a turn, so that a busy moment of the machine meets them all."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, (rounds, play) in contestants.items():
            seconds[name].append(cpu(play, rounds))
    return {
        name: Timing(rounds, median(seconds[name])) for name, (rounds, _) in contestants.items()
    }


def race(contestants: Mapping[str, Rounds], effort: Effort, least: int = 1) -> dict[str, Timing]:
    """The same, each with as many rounds as fill its turn, and no fewer than `least`."""
    sized = {
        name: (max(least, fitting(play, effort.seconds)), play)
        for name, play in contestants.items()
    }
    return interleaved(sized, effort.turns)
