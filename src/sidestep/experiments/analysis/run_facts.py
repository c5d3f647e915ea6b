"""One run read from its file, and the facts that follow from this run alone.

In thinned traces the cumulative regret is exact. Their phases and query indices are those of the recorded
rounds, and each counts for all rounds since the one before.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars

from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Problem
from sidestep.errors import InputError
from sidestep.experiments.results import read_notes, trace_path
from sidestep.experiments.spec import Job
from sidestep.policies.base import PHASES

NAN = float("nan")

Row = dict[str, Any]


class Run(NamedTuple):
    """One run, read from its file."""

    job: Job
    notes: dict[str, Any]
    frame: polars.DataFrame

    def column(self, name: str) -> Any:
        """One column of the kept rounds; (n,)."""
        return self.frame[name].to_numpy()

    @property
    def actions(self) -> FloatArray:
        """What was played; (n, d)."""
        return np.asarray(self.frame.select("^action_[0-9]+$").to_numpy())

    @property
    def problem(self) -> Problem | None:
        """What the policy knew; None for runs of version 0.1 and of some users' policies."""
        try:
            return Problem(**self.notes["problem"])
        except (KeyError, TypeError, InputError):
            return None

    @property
    def final(self) -> float:
        """Cumulative regret of all rounds."""
        return float(self.column("cumulative_regret")[-1])


def read_run(folder: Path, job: Job) -> Run | None:
    """The run of a job; None if it is missing or was played with other settings."""
    path = trace_path(folder, job)
    if not path.exists():  # the folder of one experiment
        path = folder / path.relative_to(folder / job.experiment)
    if not path.exists():
        return None
    notes = read_notes(path)
    if notes["fingerprint"].partition("-")[0] != job.setting:  # a report needs no code
        return None
    try:
        frame = polars.read_parquet(path)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise InputError(f"{path}: must be a run that sidestep wrote ({error})") from error
    return Run(job, notes, frame)


def exponent(rounds: FloatArray, cumulative: FloatArray) -> float:
    """Slope of log regret against log round over the last half; NaN if regret is not positive."""
    late = rounds >= rounds[-1] / 2
    return log_slope(rounds[late], cumulative[late])


def log_slope(x: Sequence[float] | FloatArray, y: Sequence[float] | FloatArray) -> float:
    """The b of y = c x^b by least squares over log y; NaN for fewer than two x, or y not positive."""
    if len(set(x)) < 2 or min(y) <= 0:
        return NAN
    from_middle = np.log(x) - np.log(x).mean()
    return float(from_middle @ np.log(y) / (from_middle @ from_middle))


def facts_of(run: Run, uniform: float | None) -> Row:
    """The facts of one run; `uniform` is the regret of Uniform per round on this world."""
    t, c = run.column("round"), run.column("cumulative_regret")
    horizon, total = run.job.horizon, float(c[-1])
    at = np.interp([0.05 * horizon, 0.5 * horizon], np.append(0, t), np.append(0.0, c))
    limit = 0.1 * (at[0] / (0.05 * horizon) if uniform is None else uniform)
    linear = total - at[1] > 0.9 * at[1] and total / horizon > limit
    steps, costs = np.diff(t, prepend=0), np.diff(c, prepend=0.0)
    facts: Row = {"final": total, "linear": bool(linear), "seconds": float(run.notes["seconds"])}
    facts["linear_rule"] = "early rounds" if uniform is None else "Uniform"
    for name in PHASES:
        during = (run.frame["phase"] == name).to_numpy()
        facts[f"regret {name}"] = float(costs[during].sum())
        facts[f"rounds {name}"] = int(steps[during].sum())
    return facts | {"core_set_open": run.frame["phase"][-1] == "core-set"}


def uniform_cost(runs: dict[str, list[Run]]) -> float | None:
    """Regret of Uniform per round on this world; None if it was not run."""
    played = [run for group in runs.values() for run in group if run.job.policy == "uniform"]
    return float(np.mean([run.final / run.job.horizon for run in played])) if played else None
