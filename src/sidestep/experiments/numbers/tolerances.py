"""How tolerances were kept, over the runs of a policy on a world."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sidestep.experiments.numbers.traces import NAN, Row, Run


class Kept(NamedTuple):
    """Shares; NaN where the runs do not say."""

    beyond: float  # of the rounds: a protected outcome was moved beyond its tolerance
    within: float  # of the runs: what is recommended in the end is truly within all of them
    said: float  # of the runs: the recommendation says that it is
    true: float  # of those that say so: it is


def kept_of(runs: Sequence[Run]) -> Kept | None:
    """What the runs say of tolerances; None where the world has none."""
    found = [run.notes["tolerances"] for run in runs if "tolerances" in run.notes]
    if not found:
        return None
    said = [bool(one["said"]) for one in found if one.get("said") is not None]
    true = [one["within"] for one in found if one.get("said")]
    within = [one["within"] for one in found if "within" in one]
    return Kept(_share([one["beyond"] for one in found]), *map(_share, (within, said, true)))


def kept_row(kept: Kept | None) -> Row:
    """The same as columns of the table of policies."""
    names = ("beyond_tolerance", "recommends_within", "says_within", "says_so_rightly")
    return dict(zip(names, kept or (NAN,) * len(names), strict=True))


def _share(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else NAN
