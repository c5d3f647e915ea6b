"""What the paper says about each of its experiments, what was found, and where the two differ.

The words are fixed; every number comes from the summary, and a sentence whose runs are missing is
left out.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sidestep.experiments.analysis.bounds import Pairs, upper_rows
from sidestep.experiments.analysis.run_facts import Row
from sidestep.experiments.analysis.summary import STUCK, Series, Summary, WorldSummary
from sidestep.experiments.report.html import brief, share, slope
from sidestep.experiments.report.panel import times
from sidestep.experiments.spec import Spec

ORDER = ("synthetic", "warfarin", "failure", "lower-bound", "ball")  # the paper's, then the theorem
OURS, THEIRS, GREEDY = "directed-thompson", "protected-linucb", "epsilon-greedy"

SAYS = {
    "synthetic": "The first figure shows epsilon-greedy and Protected LinUCB over 1000 rounds at "
    "R = 0.001, with mean and one standard deviation. The paper gives no numbers. The caption says "
    "d = 6, L = 4 and ten runs; the text says d = 5, L = 3 and four runs.",
    "warfarin": "The second figure shows the same two players on the therapies of 1832 patients, an "
    "action set “large enough to approximate” all of R^8. The target is the stability of the therapy; "
    "the distance of INR from 2.5 is protected. The rule for the ball serves “as a heuristic”.",
    "failure": "With two arms in the plane an optimistic player “will just play a_1 again” and "
    "“suffers linear regret” once a certain vector lies in its confidence set, because a_1 never shows "
    "the difference.",
    "lower-bound": "For every horizon T there are two instances such that every algorithm fails on one "
    "of them: the larger regret is at least e^-21/16 T^(3/4). So no algorithm achieves √T on every "
    "action set.",
    "ball": "If every action of the unit ball may be played, the regret of Protected LinUCB is, with "
    "probability 1 - δ, at most of order (s+1)/λ_min √(T d log T) plus the cost of CORE-SET. This is "
    "the paper's only upper bound, and neither of its experiments is on the ball.",
}


def place_of(experiment: str) -> int:
    """Position of an experiment in the paper's order; all others come after."""
    return ORDER.index(experiment) if experiment in ORDER else len(ORDER)


class Told(NamedTuple):
    """The sentences on one experiment."""

    says: str
    found: list[str]
    differs: list[str]


class Look:
    """The numbers of one experiment by world and policy."""

    def __init__(self, summary: Summary, spec: Spec, pairs: Sequence[Pairs]) -> None:
        self.worlds = [world for world in summary.worlds if world.experiment == spec.name]
        self.pairs = [pair for pair in pairs if pair.worlds[0].experiment == spec.name]
        self._rows = {
            (row["world"], row["entry"]): row
            for world in self.worlds
            for row in world.rows["policies"]
            if row["shown"]
        }

    def row(self, world: str, entry: str) -> Row | None:
        """The row of a policy on a world."""
        return self._rows.get((world, entry))

    def ends(self, world: str, entries: Sequence[str]) -> str:
        """Final regret of policies: A at 1.2 ± 0.3, B at 4.5 ± 0.6."""
        rows = [row for entry in entries if (row := self.row(world, entry))]
        parts = [f"{row['label']} at {_mean_sd(row)}" for row in rows]
        return ", ".join(parts[:-1]) + (" and " if parts[1:] else "") + "".join(parts[-1:])

    def median(self, world: str, entry: str) -> float | None:
        """Final regret of the median run."""
        found = [
            series.final
            for one in self.worlds
            for series in one.series
            if (one.spec.id, series.entry) == (world, entry)
        ]
        return float(np.median(found[0])) if found else None

    def linear(self, entry: str) -> str:
        """The share of linear runs on every world that has any: 30% at R=1."""
        parts = [
            f"{share(row['share_linear'])} at {world.title}"
            for world in self.worlds
            if (row := self.row(world.spec.id, entry)) and row["share_linear"] > 0
        ]
        return ", ".join(parts) or "none"

    def longest_core_set(self, world: str, entry: str) -> int:
        """Largest number of rounds of CORE-SET in any run."""
        runs = [row for one in self.worlds if one.spec.id == world for row in one.rows["runs"]]
        return max((row["rounds core-set"] for row in runs if row["policy"] == entry), default=0)


def told(summary: Summary, spec: Spec, pairs: Sequence[Pairs]) -> Told | None:
    """The sentences on an experiment of the paper; None for any other."""
    if spec.name not in SAYS:
        return None
    found, differs = TELLERS[spec.name](Look(summary, spec, pairs))
    return Told(SAYS[spec.name], found, differs)


def _synthetic(look: Look) -> tuple[list[str], list[str]]:
    found, differs = [], []
    for world in ("synthetic", "synthetic-r0.1"):
        if ends := look.ends(world, (THEIRS, GREEDY, OURS)):
            title = next(w.spec.title for w in look.worlds if w.spec.id == world)
            found.append(f"{title}: {ends}.")
    theirs, greedy = (look.row("synthetic", entry) for entry in (THEIRS, GREEDY))
    if theirs and greedy:
        factor = times(theirs["mean"] / greedy["mean"])
        medians = [brief(look.median("synthetic", entry)) for entry in (THEIRS, GREEDY)]
        differs.append(
            f"At the caption's settings the mean of the paper's player is {factor} times that of tuned "
            f"epsilon-greedy; in the median run they end at {medians[0]} and {medians[1]}. CORE-SET "
            f"took up to {look.longest_core_set('synthetic', THEIRS)} rounds; it takes longer if the "
            "side effects are nearly parallel."
        )
    return found, differs + _open_core_sets(look)


def _open_core_sets(look: Look) -> list[str]:
    """Worlds on which the paper's CORE-SET does not end within the horizon."""
    stuck = [
        (world, row)
        for world in look.worlds
        if (row := look.row(world.spec.id, THEIRS)) and row["core_set_open"] > 0
    ]
    parts = [f"{share(row['core_set_open'])} at {world.spec.title}" for world, row in stuck]
    words = "Runs whose CORE-SET had not ended by the last round: "
    return [f"{words}{'; '.join(parts)}. The paper has only one noise level."] if stuck else []


def _warfarin(look: Look) -> tuple[list[str], list[str]]:
    found = [
        f"{world.spec.title}: {ends}."
        for world in look.worlds
        if (ends := look.ends(world.spec.id, (THEIRS, GREEDY, OURS)))
    ]
    differs = []
    rows = [row for world in look.worlds if (row := look.row(world.spec.id, THEIRS))]
    if any(row["share_linear"] > STUCK for row in rows):
        differs.append(
            "The records are a list of arms, not the ball, and on a list the paper's player can choose "
            f"a wrong arm for ever. Its runs that turned linear: {look.linear(THEIRS)}; runs of "
            f"Directed Thompson: {look.linear(OURS)}."
        )
    differs.append(
        "On the paper's instance (paper/raw) no player can learn which arm is best, because one of the "
        "drugs is never taken. A low regret there depends on a convention about that drug."
    )
    return found, differs


def _failure(look: Look) -> tuple[list[str], list[str]]:
    found = [
        f"Runs of {label} that turned linear: {look.linear(entry)}."
        for entry, label in ((THEIRS, "Protected LinUCB"), (OURS, "Directed Thompson"))
    ]
    rows = [row for world in look.worlds if (row := look.row(world.spec.id, THEIRS))]
    shares = [row["share_linear"] for row in rows]
    differs = []
    if shares and max(shares) - min(shares) > STUCK:
        differs.append(
            "The example assumes that the misleading vector is already in the confidence set. From a "
            "cold start the noise decides whether it gets there."
        )
    differs.append(
        "With the printed vector the two arms tie at cos²(π/8); a_1 is strictly ahead only if the set "
        "contains more than that vector."
    )
    return found, differs


def _lower_bound(look: Look) -> tuple[list[str], list[str]]:
    found, differs = [], []
    for pair in look.pairs:
        last = [row for row in pair.rows() if row["horizon"] == pair.horizons[-1]]
        best = min(last, key=lambda row: row["larger"])
        grows = ", ".join(f"{one.label} {slope(one.slope)}" for one in pair.series())
        fitted = f" Fitted exponents over T: {grows}." if len(pair.horizons) > 1 else ""
        found.append(
            f"At T = {pair.horizons[-1]} the smallest of these larger regrets is "
            f"{brief(best['larger'])} ({best['policy']}).{fitted}"
        )
        differs.append(
            f"The printed bound is too small to be seen, {brief(best['printed'])} at that horizon. "
            f"With the constants of its proof corrected it is {brief(best.get('corrected'))}; no "
            "player is below it."
            if best.get("corrected", 0) <= best["larger"]
            else f"A policy is below the corrected bound, {brief(best['corrected'])}, as a mean over "
            "so few runs may be."
        )
    return found, differs


def _ball(look: Look) -> tuple[list[str], list[str]]:
    found, differs = [], []
    for world in look.worlds:
        for row in (row for row in upper_rows(world) if row["proved"]):
            found.append(
                f"{world.spec.title}: the largest regret of {row['policy']} is "
                f"{brief(row['largest'])}, {share(row['largest'] / row['corrected'])} of the corrected "
                f"bound, {brief(row['corrected'])}. {_fastest(world)}"
            )
            differs.append(_silent(world, row))
    return found, list(dict.fromkeys(filter(None, differs)))


def _fastest(world: WorldSummary) -> str:
    """The policy with the lowest regret on a world, and its exponent."""
    best: Series = min(world.series, key=lambda series: series.final.mean())
    return f"Lowest: {best.label}, {brief(float(best.final.mean()))}, growing like T^{slope(best.slope)}."


def _silent(world: WorldSummary, row: Row) -> str:
    """Which printed forms say nothing at this horizon."""
    problem = world.facts.problem
    most = 2 * problem.norm_bound * world.horizon if problem else np.inf
    silent = [f"{form} {brief(row[form])}" for form in ("main", "appendix") if row[form] > most]
    if not silent:
        return ""
    return (
        f"At {world.spec.title} the printed bound exceeds 2MT = {brief(most)}, the largest possible "
        f"regret ({', '.join(silent)}): it is vacuous at this horizon."
    )


def _mean_sd(row: Row) -> str:
    spread = "" if np.isnan(row["sd"]) else f" ± {brief(row['sd'])}"
    return f"{brief(row['mean'])}{spread}"


TELLERS: dict[str, Callable[[Look], tuple[list[str], list[str]]]] = {
    "synthetic": _synthetic,
    "warfarin": _warfarin,
    "failure": _failure,
    "lower-bound": _lower_bound,
    "ball": _ball,
}
