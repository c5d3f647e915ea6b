"""From traces to numbers: the results of every policy on every world, with their uncertainty.

A results folder is read through its specs: only the runs that they name. Missing runs (of an
interrupted sweep) are counted.

linear run      the regret of the last half is more than 0.9 of the first half, and that of a round more
                than a tenth of a round of Uniform on that world (if Uniform was not run: more than a
                tenth of a round of the first 5% of the same run)
exponent        slope of log(mean cumulative regret) against log(round) over the last half
tuned           of a grid, the point with the lowest mean final regret on that world: on the tuning seeds
                of the spec, else on the runs that are shown
relative        mean final regret divided by the lowest of the policies shown on that world
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars
from scipy.special import stdtrit

from sidestep.core.arrays import FloatArray
from sidestep.errors import InputError
from sidestep.experiments.analysis.effects import TraceFacts, measure
from sidestep.experiments.analysis.run_facts import (
    NAN,
    Row,
    Run,
    exponent,
    facts_of,
    read_run,
    uniform_cost,
)
from sidestep.experiments.analysis.tuning import Choice, choices
from sidestep.experiments.executors import Runner, Serial
from sidestep.experiments.results import read_specs
from sidestep.experiments.spec import Job, PolicySpec, Spec, WorldSpec, jobs_of
from sidestep.policies.base import PHASES

POINTS = 120  # most points of a curve
BINS = 40  # bins of the widths over time
# up to this multiple of the lowest mean regret of a world, a policy counts as good there
NEAR = 1.5
STUCK = 0.1  # a larger share of linear runs is marked
TABLES = ("policies", "phases", "queries", "effects", "runs")


class Estimate(NamedTuple):
    """A mean over runs, its standard deviation, and a 95% confidence interval (Student)."""

    n: int
    mean: float
    sd: float
    low: float
    high: float


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


class Series(NamedTuple):
    """One policy on one world, as the figures read it."""

    entry: str  # id in the spec, before a grid is expanded; decides the style
    policy: str  # its name in the catalog
    knobs: dict[str, Any]  # all of them, as far as the traces say
    label: str  # including the point of its grid
    name: str  # the same on every world, for figures
    rounds: FloatArray  # (n,)
    mean: FloatArray  # of cumulative regret; (n,)
    sd: FloatArray  # (n,)
    slope: float  # fitted exponent
    linear: float  # share of runs that turned linear
    final: FloatArray  # of every run
    phases: dict[str, float]  # mean regret of every phase
    counts: FloatArray  # mean number of queries of every vector; (L+1,)
    widths: FloatArray  # (2, m): round, mean width
    kept: Kept | None = None  # how tolerances were kept, where the world has some


class WorldSummary(NamedTuple):
    """One world with the policies to show: the best point of every grid, and all others."""

    experiment: str
    spec: WorldSpec
    horizon: int
    series: list[Series]
    facts: TraceFacts
    versions: list[str]  # of the installed packages, as JSON
    missing: int  # number of missing runs
    rows: dict[str, list[Row]]  # its rows of the frames

    @property
    def title(self) -> str:
        """Its title, or its id where the spec gives no title."""
        return self.spec.title or self.spec.id


class Summary(NamedTuple):
    """All that a report shows, and the frames from which its tables are made."""

    specs: list[Spec]
    worlds: list[WorldSummary]
    policies: polars.DataFrame  # a row for every experiment, world, policy
    phases: polars.DataFrame  # ... and phase
    queries: polars.DataFrame  # ... and vector
    effects: polars.DataFrame  # ... and outcome
    runs: polars.DataFrame  # ... and run


class _Place(NamedTuple):
    """One world of a results folder."""

    folder: Path
    spec: Spec
    entry: WorldSpec
    jobs: list[Job]


def summarise(folder: Path | str, runner: Runner | None = None) -> Summary:
    """The numbers of a results folder, from its traces alone; `runner` reads the worlds."""
    folder = Path(folder)
    specs = read_specs(folder)
    places = [
        _Place(folder, spec, entry, [job for job in jobs if job.world_id == entry.id])
        for spec in specs
        for jobs in [jobs_of(spec)]
        for entry in spec.worlds
    ]
    found = {
        (world.experiment, world.spec.id): world
        for world in filter(None, (runner or Serial()).run(_world, places))
    }
    keys = [(place.spec.name, place.entry.id) for place in places]
    worlds = [found[key] for key in keys if key in found]
    if not worlds:
        raise InputError(f"{folder}: must hold runs with the settings of its spec.json, got none")
    tables = {name: [row for world in worlds for row in world.rows[name]] for name in TABLES}
    frames = {
        name: polars.DataFrame(rows, infer_schema_length=None) for name, rows in tables.items()
    }
    return Summary(specs, worlds, **frames)


def _world(place: _Place) -> WorldSummary | None:
    """One world from its runs; None where none was played."""
    folder, spec, entry, jobs = place
    runs: dict[str, list[Run]] = {}
    tuning: dict[str, list[Run]] = {}
    for run in filter(None, (read_run(folder, job) for job in jobs)):
        (tuning if run.job.tuning else runs).setdefault(run.job.policy_id, []).append(run)
    if not runs:
        return None
    best, cost = choices(spec, runs, tuning), uniform_cost(runs)
    reference = runs[best[spec.reference].policy] if spec.reference in best else []
    found, effects = measure(runs)
    rows: dict[str, list[Row]] = {name: [] for name in TABLES} | {"effects": effects}
    drawn = []
    for base in spec.policies:
        for point in (point for point in base.expanded() if point.id in runs):
            facts = [facts_of(run, cost) for run in runs[point.id]]
            series = _series(base, point, runs[point.id], facts)
            gap = paired(runs[point.id], reference)
            marks = _marks(base, point, best[base.id]) | {"judged": entry.judged}
            rows["policies"].append(_policy_row(base, point, series, facts, gap) | marks)
            for name, new in _other_rows(series, facts, runs[point.id]).items():
                rows[name] += [{"policy": point.id} | row for row in new]
            drawn += [series] if marks["shown"] else []
    _compare(rows["policies"])
    keyed = {
        name: [{"experiment": spec.name, "world": entry.id} | row for row in new]
        for name, new in rows.items()
    }
    everything = [run for group in runs.values() for run in group]
    versions = sorted({json.dumps(run.notes["versions"]) for run in everything})
    horizon = entry.horizon or spec.horizon
    missing = len(jobs) - len(everything) - sum(map(len, tuning.values()))
    return WorldSummary(spec.name, entry, horizon, drawn, found, versions, missing, keyed)


def _marks(base: PolicySpec, point: PolicySpec, choice: Choice) -> Row:
    """Whether a point of a grid is shown, and which runs decided that."""
    return {
        "grid": bool(base.grid),
        "shown": choice.policy == point.id,
        "tuned_on": choice.on,
        "tuning_mean": choice.means.get(point.id, NAN),
    }


def estimate(values: Sequence[float] | FloatArray) -> Estimate:
    """Mean, sd and 95% interval; NaN for the last two with a single value."""
    sample = np.asarray(values, dtype=float)
    n, mean = sample.size, float(sample.mean())
    if n < 2:
        return Estimate(n, mean, NAN, NAN, NAN)
    sd = float(sample.std(ddof=1))
    half = float(stdtrit(n - 1, 0.975)) * sd / float(np.sqrt(n))
    return Estimate(n, mean, sd, mean - half, mean + half)


def paired(runs: Sequence[Run], reference: Sequence[Run]) -> Estimate | None:
    """Final regret minus the reference's on the same runs: same world, same arms, same noise."""
    theirs = {run.job.run: run.final for run in reference}
    gaps = [run.final - theirs[run.job.run] for run in runs if run.job.run in theirs]
    same = bool(runs and reference) and runs[0].job.policy_id == reference[0].job.policy_id
    return None if same or not gaps else estimate(gaps)


def _series(
    base: PolicySpec, point: PolicySpec, runs: Sequence[Run], facts: Sequence[Row]
) -> Series:
    rounds = runs[0].column("round").astype(float)
    regret = np.array([run.column("cumulative_regret") for run in runs])
    mean = regret.mean(axis=0)
    sd = regret.std(axis=0, ddof=1) if len(runs) > 1 else np.full(mean.shape, NAN)
    n = len(rounds)
    even, early = np.linspace(0, n - 1, POINTS - 40), np.geomspace(1, n, 40) - 1
    keep = np.unique(np.concatenate([even, early]).astype(int))
    label = point.label or point.id
    return Series(
        entry=base.id,
        policy=base.policy,
        knobs=runs[0].notes.get("knobs", {}),
        label=label,
        name=(base.label or base.id) + (", tuned" if base.grid else ""),
        rounds=rounds[keep],
        mean=mean[keep],
        sd=sd[keep],
        slope=exponent(rounds, mean),
        linear=_mean(facts, "linear"),
        final=regret[:, -1],
        phases={name: _mean(facts, f"regret {name}") for name in PHASES},
        counts=np.mean([run.notes["counts"] for run in runs], axis=0),
        widths=_widths(runs),
        kept=kept_of(runs),
    )


def _widths(runs: Sequence[Run]) -> FloatArray:
    """Mean width of the measured vector, in bins of equal length in log(round); (2, m)."""
    t = np.concatenate([run.column("round") for run in runs]).astype(float)
    width = np.concatenate([run.column("width") for run in runs])
    known = np.isfinite(width)
    bins = np.minimum(np.log(t) / np.log(max(t.max(), 2.0)) * BINS, BINS - 1).astype(int)[known]
    count = np.bincount(bins, minlength=BINS)
    sums = [np.bincount(bins, weights=x[known], minlength=BINS) for x in (np.log(t), width)]
    used = count > 0
    return np.array([np.exp(sums[0][used] / count[used]), sums[1][used] / count[used]])


def _policy_row(
    base: PolicySpec, point: PolicySpec, series: Series, facts: Sequence[Row], gap: Estimate | None
) -> Row:
    seconds = float(np.median([fact["seconds"] for fact in facts]))  # the first may compile
    return {
        "policy": point.id,
        "entry": base.id,
        "label": series.label,
        **estimate(series.final)._asdict(),
        "difference": gap.mean if gap else None,
        "difference_low": gap.low if gap else None,
        "difference_high": gap.high if gap else None,
        "share_linear": series.linear,
        "linear_rule": facts[0]["linear_rule"],
        "exponent": series.slope,
        "core_set_rounds": _mean(facts, "rounds core-set"),
        "core_set_open": _mean(facts, "core_set_open"),
        "seconds": seconds,
        "rounds_per_second": float(series.rounds[-1]) / max(seconds, 1e-9),
    } | kept_row(series.kept)


def _compare(rows: Sequence[Row]) -> None:
    """Add to every row its regret relative to the lowest shown; NaN if the lowest is not positive."""
    lowest = min(row["mean"] for row in rows if row["shown"])
    for row in rows:
        row["relative"] = row["mean"] / lowest if lowest > 0 else NAN


def _other_rows(series: Series, facts: Sequence[Row], runs: Sequence[Run]) -> dict[str, list[Row]]:
    return {
        "phases": [
            {"phase": name, **{k: _mean(facts, f"{k} {name}") for k in ("regret", "rounds")}}
            for name in PHASES
        ],
        "queries": [{"vector": i, "mean": float(mean)} for i, mean in enumerate(series.counts)],
        "runs": [{"run": run.job.run} | fact for run, fact in zip(runs, facts, strict=True)],
    }


def _mean(facts: Sequence[Row], name: str) -> float:
    return float(np.mean([fact[name] for fact in facts]))
