"""Whether decisions have become slower, as ratios in one process: `make bench-check`.

The least ratio that is accepted stands in FLOORS: the lower of what two machines measured when it was
last set, less a sixth for noise. numpy is relatively faster on one of them, an Intel Xeon (41, 3,150,
118, 15.6 and 43 times), than on the other, an AMD EPYC (80, 7,736, 216, 21.6 and 65). Raise the floors
when something has become faster, in the same commit.
"""

# ruff: noqa: E402  (the number of threads must be set before numpy is imported)
import math
import os

for threads in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{threads}_NUM_THREADS"] = "1"

from benchmarks.speed.clock import Effort
from benchmarks.speed.contest import contest
from benchmarks.speed.worlds import PAPER_GIVEN, WARFARIN

NUMPY, PINV = "numpy, recomputing", "pinv per arm"
FLOORS = (  # world, ours, rival, least ratio
    (PAPER_GIVEN, "protected-linucb", NUMPY, 34),
    (PAPER_GIVEN, "protected-linucb", PINV, 2_600),
    (PAPER_GIVEN, "oful", NUMPY, 98),
    (WARFARIN, "protected-linucb", NUMPY, 13),
    (WARFARIN, "oful", NUMPY, 36),
)
EFFORT = Effort(turns=7, seconds=0.1)


def rates_of(world):
    """Rounds a second by name."""
    return {row["who"]: row["rate"] for row in contest(world, EFFORT, with_peers=False)}


def main():
    """Print every ratio, and a line for every one that fell below its floor; 1 where one did."""
    rates = {world: rates_of(world) for world in dict.fromkeys(row[0] for row in FLOORS)}
    fallen = 0
    for world, ours, rival, floor in FLOORS:
        # no rate: the rival decided otherwise
        ratio = rates[world][ours] / (rates[world][rival] or math.inf)
        words = f"{world.title}: {ours} is {ratio:,.1f} times {rival}, the floor is {floor:,}"
        fallen += ratio < floor
        print(f"{'SLOWER' if ratio < floor else 'ok':<6}  {words}", flush=True)
    return 1 if fallen else 0


if __name__ == "__main__":
    raise SystemExit(main())
