"""What the paper says of each of its experiments, what was found, and where the two differ.

The words are fixed; every number is read from the summary, and a sentence whose runs are missing is
left out.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sidestep.experiments.numbers.bounds import Pairs, upper_rows
from sidestep.experiments.numbers.summary import STUCK, Series, Summary, WorldSummary
from sidestep.experiments.numbers.traces import Row
from sidestep.experiments.page.page import brief, share, slope
from sidestep.experiments.page.panel import times
from sidestep.experiments.spec import Spec

ORDER = ("synthetic", "warfarin", "failure", "lower-bound", "ball")  # the paper's, then the theorem
OURS, THEIRS, GREEDY = "directed-thompson", "protected-linucb", "epsilon-greedy"

SAYS = {
    "synthetic": "The first figure has two curves, epsilon-greedy and Protected LinUCB, over 1000 "
    "rounds at R = 0.001: mean and one standard deviation. No number is printed beside it. The caption "
    "has d = 6 and L = 4, the text d = 5 and L = 3; ten runs here, four there.",
    "warfarin": "The second figure has the same two players over the therapies of 1832 patients, an "
    "action set “large enough to approximate” all of R^8: stability of the therapy is the target, the "
    "distance of INR from 2.5 is protected. A rule for the ball serves “as a heuristic”.",
    "failure": "With two arms in the plane an optimist “will just play a_1 again” and “suffers linear "
    "regret”, once a certain vector lies in his confidence set: what he plays never tells him better.",
    "lower-bound": "There are two instances, chosen by the horizon T, of which every algorithm fails "
    "on one: the larger regret is at least e^-21/16 T^(3/4). So no algorithm has √T on every action set.",
    "ball": "Where every action of the unit ball may be played, the regret of Protected LinUCB is, "
    "with probability 1 - δ, at most of order (s+1)/λ_min √(T d log T), and what CORE-SET costs. "
    "It is the paper's only upper bound, and neither of its experiments is on the ball.",
}


def place_of(experiment: str) -> int:
    """Where an experiment stands in the paper's order; all others come after."""
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
        """What is known of a policy on a world."""
        return self._rows.get((world, entry))

    def ends(self, world: str, entries: Sequence[str]) -> str:
        """Where policies end: A at 1.2 ± 0.3, B at 4.5 ± 0.6."""
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
            f"{share(row['share_linear'])} at {world.spec.title or world.spec.id}"
            for world in self.worlds
            if (row := self.row(world.spec.id, entry)) and row["share_linear"] > 0
        ]
        return ", ".join(parts) or "none"

    def longest_core_set(self, world: str, entry: str) -> int:
        """Rounds that CORE-SET took in the run in which it took most."""
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
            f"took up to {look.longest_core_set('synthetic', THEIRS)} rounds: the nearer the side "
            "effects are to each other, the more."
        )
    return found, differs + _open_core_sets(look)


def _open_core_sets(look: Look) -> list[str]:
    """Where CORE-SET of the paper outlasts the horizon."""
    stuck = [
        (world, row)
        for world in look.worlds
        if (row := look.row(world.spec.id, THEIRS)) and row["core_set_open"] > 0
    ]
    parts = [f"{share(row['core_set_open'])} at {world.spec.title}" for world, row in stuck]
    words = "Runs whose CORE-SET had not ended by the last round: "
    return [f"{words}{'; '.join(parts)}. The paper has one noise level."] if stuck else []


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
            "The records are a list of arms, not the ball, and on a list the paper's player can settle "
            f"on a wrong arm for good. Its runs that turned linear: {look.linear(THEIRS)}; of Directed "
            f"Thompson {look.linear(OURS)}."
        )
    differs.append(
        "The paper's instance (paper/raw) does not show which arm is best, because one of its drugs is "
        "never taken: a low regret there is a convention about what no arm shows, not knowledge."
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
            "The example begins where the vector that deceives is in the set already. From a cold "
            "start it depends on the noise whether it gets there."
        )
    differs.append(
        "With the vector that print names the two arms tie at cos²(π/8); a_1 is strictly ahead only "
        "where the set reaches beyond it."
    )
    return found, differs


def _lower_bound(look: Look) -> tuple[list[str], list[str]]:
    found, differs = [], []
    for pair in look.pairs:
        last = [row for row in pair.rows() if row["horizon"] == pair.horizons[-1]]
        best = min(last, key=lambda row: row["larger"])
        grows = ", ".join(f"{one.label} {slope(one.slope)}" for one in pair.series())
        found.append(
            f"At T = {pair.horizons[-1]} the smallest of the larger regrets is {brief(best['larger'])} "
            f"({best['policy']}). Fitted exponents over T: {grows}."
        )
        differs.append(
            f"The printed constant is so small that it cannot be seen: {brief(best['printed'])} at "
            f"that horizon. With the constants of its own proof put right the bound is "
            f"{brief(best.get('corrected'))}; nobody is below it."
            if best.get("corrected", 0) <= best["larger"]
            else f"A policy is below the corrected bound, {brief(best['corrected'])}: on so few runs a "
            "mean may be."
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
    """Who ends lowest on a world, and how fast regret grows there."""
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
        f"At {world.spec.title} what is printed is above 2MT = {brief(most)}, which nobody can lose "
        f"({', '.join(silent)}): true, and no news at this horizon."
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
