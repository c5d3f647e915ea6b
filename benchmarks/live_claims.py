"""What sixty rounds of a study lead to, judged by the truth: simulated clinics and product teams.

python benchmarks/live_claims.py --seeds 100            a quarter of an hour on one core
python benchmarks/live_claims.py --seeds 10 --world clinic
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from statistics import median

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "studies")]

from stories import ROUNDS, STORIES, Outcome, outcome_of  # noqa: E402

Z = 1.96  # of a 95% interval


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--seeds", type=int, default=100)
    words.add_argument("--world", choices=sorted(STORIES), action="append")
    words.add_argument("--rounds", type=int, default=ROUNDS)
    words.add_argument("--noise", type=float, default=1.0, help="share of the world's noise")
    words.add_argument("--policy", help="a policy that asks instead")
    options = words.parse_args()
    found: dict[str, list[Outcome]] = {kind: [] for kind in options.world or STORIES}
    print("| world | seed | says within | truly within | baseline | gives up | covered |")
    print("|---|---|---|---|---|---|---|")
    for seed in range(options.seeds):
        for kind, outcomes in found.items():
            end = outcome_of(kind, seed, options.rounds, options.noise, policy=options.policy)
            outcomes.append(end)
            print(
                f"| {kind} | {seed} | {end.says} | {end.within} | {end.idle} | {end.lost:.0%} "
                f"| {end.covered} of {end.effects} |",
                flush=True,
            )
    for kind, outcomes in found.items():
        print(f"\n{kind}: {summary(outcomes)}")
    print(f"\npooled: {summary([end for each in found.values() for end in each])}")


def summary(outcomes: list[Outcome]) -> str:
    """The claims in one sentence each, with intervals."""
    saying = [end for end in outcomes if end.says]
    moving = [end for end in saying if not end.idle]
    covered = sum(end.covered for end in outcomes), sum(end.effects for end in outcomes)
    lines = [
        f"{len(outcomes)} studies",
        f"says it is within limits in {share(end.says for end in outcomes)}",
        f"... and names more than the baseline in {share(not end.idle for end in saying)}",
        f"truly within where it says so: {share(end.within for end in saying)}",
        f"... where it names more than the baseline: {share(end.within for end in moving)}",
        f"gives up in the median {median(end.lost for end in outcomes):.0%} of the best reachable",
        f"intervals of effects cover {covered[0]} of {covered[1]} ({covered[0] / covered[1]:.1%})",
    ]
    return "\n  ".join(lines)


def share(flags: Iterable[bool]) -> str:
    """A share with its 95% interval (Wilson)."""
    given = list(flags)
    n, p = len(given), sum(given) / max(len(given), 1)
    if not n:
        return "0 of 0"
    middle, half = p + Z**2 / (2 * n), Z * ((p * (1 - p) + Z**2 / (4 * n)) / n) ** 0.5
    low, high = (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)
    return f"{sum(given)} of {n} ({p:.0%}; {low:.0%} to {high:.0%})"


if __name__ == "__main__":
    main()
