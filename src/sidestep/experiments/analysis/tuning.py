"""Which point of a grid is shown, and which runs chose it.

Choosing on the runs that are shown flatters the chosen point: by chance, the best of several points did
better there than it does elsewhere. A spec with `tune_seeds` chooses on runs of other seeds.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sidestep.experiments.analysis.run_facts import Run
from sidestep.experiments.spec import Spec

HERE = "these runs"  # instead of the seeds, where the choice was made on the runs that are shown
FLATTERED = (
    "best point of its grid on these very runs: by chance its mean is too low, and its intervals do "
    "not include that"
)

Runs = Mapping[str, Sequence[Run]]


class Choice(NamedTuple):
    """The policy that is shown for an entry of a spec."""

    policy: str  # its id
    on: str  # which runs chose it: "seeds 1000 to 1009", or HERE; empty without a choice
    means: dict[str, float]  # mean final regret of every point on the runs that chose


def choices(spec: Spec, shown: Runs, tuning: Runs) -> dict[str, Choice]:
    """The policy to show for every entry that was played: itself, or the best point of its grid."""
    found = {}
    for entry in spec.policies:
        points = [point.id for point in entry.expanded() if point.id in shown]
        if points:
            found[entry.id] = _choice(points, shown, tuning)
    return found


def _choice(points: Sequence[str], shown: Runs, tuning: Runs) -> Choice:
    if len(points) == 1:
        return Choice(points[0], "", {})
    seeds = set.intersection(*({run.job.seed for run in tuning.get(p, ())} for p in points))
    runs = tuning if seeds else shown
    means = {
        point: float(np.mean([r.final for r in runs[point] if not seeds or r.job.seed in seeds]))
        for point in points
    }
    return Choice(min(means, key=means.__getitem__), _in_words(seeds) if seeds else HERE, means)


def _in_words(seeds: set[int]) -> str:
    first, last = min(seeds), max(seeds)
    return f"seeds {first} to {last}" if len(seeds) > 1 else f"seed {first}"
