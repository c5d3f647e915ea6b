"""How tolerances were kept, over the runs of a policy on a world."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sidestep.experiments.numbers.traces import NAN, Row, Run


class Kept(NamedTuple):
    """Shares; NaN if the runs do not have them."""

    beyond: float  # share of rounds in which a protected outcome exceeded its tolerance
    within: float  # share of runs whose final recommendation is truly within all tolerances
    said: float  # share of runs whose final recommendation says that it is
    true: float  # share of the runs in `said` in which it truly is


def kept_of(runs: Sequence[Run]) -> Kept | None:
    """How the runs kept the tolerances; None if the world has none."""
    found = [run.notes["tolerances"] for run in runs if "tolerances" in run.notes]
    if not found:
        return None
    said = [bool(one["said"]) for one in found if one.get("said") is not None]
    true = [one["within"] for one in found if one.get("said")]
    within = [one["within"] for one in found if "within" in one]
    return Kept(_share([one["beyond"] for one in found]), *map(_share, (within, said, true)))


def kept_row(kept: Kept | None) -> Row:
    """The shares as columns of the table of policies."""
    names = ("beyond_tolerance", "recommends_within", "says_within", "says_so_rightly")
    return dict(zip(names, kept or (NAN,) * len(names), strict=True))


def _share(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else NAN
