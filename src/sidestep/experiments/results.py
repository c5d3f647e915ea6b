"""Results on disk: one parquet file per run, complete or not there at all.

DIR/EXPERIMENT/spec.json                         the experiment as it was run; see results_folder.py
DIR/EXPERIMENT/traces/WORLD/POLICY/RUN.parquet   one row per recorded round; the rest is in the metadata
DIR/EXPERIMENT/tuning/WORLD/POLICY/RUN.parquet   runs that only choose the point of a grid
"""

import dataclasses
import io
import json
import os
import platform
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from sidestep.core.validation import check_lab
from sidestep.errors import InputError, NotFoundError, ResultsError
from sidestep.experiments.record import Trace
from sidestep.experiments.spec import Job, Spec

if TYPE_CHECKING:
    import polars

FORMAT = 1
KEY = "sidestep"
EXTRA = "extra.html"


@cache
def versions() -> dict[str, str]:
    """What was installed, read once in a process: reading it takes as long as a short run."""
    found = {"python": platform.python_version()}
    for name in ("sidestep", "numpy", "scipy", "numba", "polars"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # numba is an extra
            found[name] = "not installed"
    return found


def to_parquet(job: Job, trace: Trace, notes: Mapping[str, Any], seconds: float) -> bytes:
    """A run as the bytes of a file; `notes` is `notes_of(policy)`."""
    notes = {
        "format": FORMAT,
        "id": job.id,
        "fingerprint": job.fingerprint,
        "job": job._asdict(),
        "policy": trace.policy,
        **notes,
        "counts": trace.counts.tolist(),
        "seconds": seconds,
        "versions": versions(),
    }
    file = io.BytesIO()
    frame = trace.to_frame()
    frame.write_parquet(file, metadata={KEY: json.dumps(notes, default=_plain)})
    return file.getvalue()


def notes_of(policy: Any) -> dict[str, Any]:
    """The problem and the knobs of a policy, as far as it has fields for them."""
    parts = [policy.problem, policy]
    problem, knobs = ({f.name: getattr(x, f.name) for f in _fields(x)} for x in parts)
    return {"problem": problem, "knobs": {k: v for k, v in knobs.items() if k != "problem"}}


def _fields(thing: Any) -> list[Any]:
    """The fields with which a dataclass is built; empty for anything else."""
    if not dataclasses.is_dataclass(thing):
        return []
    return [f for f in dataclasses.fields(thing) if f.init]


def _plain(value: Any) -> Any:
    """A numpy number or array as a JSON value; anything else as its repr."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else str(value)


def trace_path(folder: Path, job: Job) -> Path:
    """Path of the file of a run."""
    kind = "tuning" if job.tuning else "traces"
    return folder / job.experiment / kind / job.world_id / job.policy_id / f"{job.run}.parquet"


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: it is either complete or not there."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    except OSError as error:
        raise _cannot_write(path, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o666 & ~_umask())  # a temporary file is private, a result is not
        os.replace(draft, path)
    except BaseException as error:
        Path(draft).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _cannot_write(path, error) from error
        raise


def _umask() -> int:
    """The umask of this process."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _cannot_write(path: Path, error: OSError) -> ResultsError:
    reason = "the disk is full" if error.errno == 28 else (error.strerror or str(error))
    return ResultsError(f"cannot write {path}: {reason}; finished runs are kept")


def read_notes(path: Path) -> dict[str, Any]:
    """The metadata of the file of a run."""
    check_lab("reading results", "polars")
    import polars  # noqa: PLC0415  (an extra)

    try:
        notes = json.loads(polars.read_parquet_metadata(path)[KEY])
        found = notes["format"]
    except (KeyError, TypeError, ValueError, OSError, polars.exceptions.PolarsError) as error:
        raise InputError(f"{path}: must be a run that sidestep wrote ({error})") from error
    if found != FORMAT:
        raise InputError(
            f"{path}: must have format {FORMAT}, got {found!r}; it was written by sidestep "
            f"{notes.get('versions', {}).get('sidestep', 'unknown')}"
        )
    return dict(notes)


def write_spec(folder: Path, spec: Spec) -> None:
    """Save the experiment beside its runs."""
    text = spec.model_dump_json(indent=1)
    write_whole(folder / spec.name / "spec.json", text.encode())


def write_extra(folder: Path, spec: Spec, fragment: str) -> None:
    """Save a piece of HTML that the report shows at the top of the experiment."""
    write_whole(folder / spec.name / EXTRA, fragment.encode())


def read_extra(folder: Path, spec: Spec) -> str:
    """The piece of HTML saved by `write_extra`; empty if there is none."""
    for file in (folder / spec.name / EXTRA, folder / EXTRA):
        if file.exists():
            return file.read_text(encoding="utf-8")
    return ""


def read_specs(folder: Path) -> list[Spec]:
    """The experiments of a results folder, or of one experiment's folder."""
    files = sorted(folder.glob("*/spec.json")) or sorted(folder.glob("spec.json"))
    if not folder.exists():
        raise NotFoundError(f"{folder}: must be a results folder of sidestep, got no such folder")
    if not files:
        raise InputError(f"{folder}: must be a results folder of sidestep, got no spec.json in it")
    return [read_spec_file(file) for file in files]


def read_spec_file(file: Path) -> Spec:
    """The spec that a sweep saved."""
    try:
        return Spec.model_validate_json(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"{file}: must be a spec that sidestep wrote ({first})") from error


@overload
def load_results(folder: Path | str, *, lazy: Literal[False] = False) -> "polars.DataFrame": ...


@overload
def load_results(folder: Path | str, *, lazy: Literal[True]) -> "polars.LazyFrame": ...


def load_results(
    folder: Path | str, *, lazy: bool = False
) -> "polars.DataFrame | polars.LazyFrame":
    """A results folder as one polars frame, one row per recorded round.

    Every policy has one setting on every world; where a folder holds more, the error says which. Runs
    that only chose the point of a grid are left out.

    folder   what `sidestep run` or `sidestep reproduce` was given as --out
    lazy     True for a LazyFrame: its collect() reads only the columns and rows that are asked for

    >>> import pathlib, tempfile, sidestep as ss
    >>> from sidestep.experiments import spec, sweep
    >>> mine = spec.parse_spec('''name = "mine"
    ... horizon = 20
    ... runs = 2
    ... worlds = [{ id = "hard", world = "failure" }]
    ... policies = [{ id = "uniform", policy = "uniform" }]''', "mine.toml")
    >>> with tempfile.TemporaryDirectory() as out:
    ...     swept = sweep.sweep(mine, pathlib.Path(out))  # as `sidestep run mine.toml` does
    ...     last = ss.load_results(out, lazy=True).filter(round=20).select("run").collect()
    ...     ss.load_results(out).select("policy", "run", "round", "regret").shape, last.height
    ((40, 4), 2)
    """
    check_lab("load_results", "polars")
    import polars  # noqa: PLC0415  (an extra)

    folder = Path(folder)
    paths = sorted(folder.rglob("traces/*/*/*.parquet"))
    if not paths:
        raise InputError(f"{folder}: must hold traces/WORLD/POLICY/RUN.parquet, got none")
    jobs = [read_notes(path)["job"] for path in paths]
    _check_one_setting(folder, jobs)
    runs = zip(paths, jobs, strict=True)
    frame = polars.concat([_labelled(path, job) for path, job in runs], how="diagonal")
    return frame if lazy else frame.collect()


def load_summary(folder: Path | str) -> "polars.DataFrame":
    """What a report says of every policy on every world, as one polars frame.

    A row for every experiment, world and policy: mean final regret, its sd and 95% interval, the
    difference to the reference run by run, the share of linear runs, the exponent, rounds of
    CORE-SET, seconds. Points of grids have a row each; `shown` marks those of the report, `tuned_on` says
    which runs chose them. What is not known is null.

    folder   what `sidestep run` or `sidestep reproduce` was given as --out

    >>> import pathlib, tempfile, sidestep as ss
    >>> from sidestep.experiments import spec, sweep
    >>> mine = spec.parse_spec('''name = "mine"
    ... horizon = 20
    ... runs = 2
    ... worlds = [{ id = "hard", world = "failure" }]
    ... policies = [{ id = "uniform", policy = "uniform" }]''', "mine.toml")
    >>> with tempfile.TemporaryDirectory() as out:
    ...     swept = sweep.sweep(mine, pathlib.Path(out))  # as `sidestep run mine.toml` does
    ...     ss.load_summary(out).select("world", "policy", "n", "relative").rows()
    [('hard', 'uniform', 2, 1.0)]
    """
    check_lab("load_summary", "polars")
    from sidestep.experiments.analysis.summary import summarise  # noqa: PLC0415  (it reads this file)

    return summarise(folder).policies.fill_nan(None)


def _check_one_setting(folder: Path, jobs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse runs of one world and policy that were played with different settings."""
    found: dict[str, list[dict[str, Any]]] = {}
    for job in jobs:
        setting = {
            name: value
            for name, value in job.items()
            if name not in ("run", "seed", "rounds", "tuning")
        }
        setting["first seed"] = job["seed"] - job["run"]
        setting.setdefault("code", "")  # runs of version 0.2 do not have it
        name = f"{job['experiment']}/{job['world_id']}/{job['policy_id']}"
        found.setdefault(name, []).append(setting)
    for name, settings in found.items():
        differ = [key for key in settings[0] if any(s[key] != settings[0][key] for s in settings)]
        if differ:
            words = [", ".join(f"{key} {setting[key]}" for key in differ) for setting in settings]
            counts = [f"{words.count(w)} runs with {w}" for w in dict.fromkeys(words)]
            raise InputError(
                f"{folder}: must hold one setting of {name}, got {' and '.join(counts)}; "
                "keep them in folders of their own"
            )


def _labelled(path: Path, job: Mapping[str, Any]) -> "polars.LazyFrame":
    import polars  # noqa: PLC0415  (an extra)

    return polars.scan_parquet(path).select(
        polars.lit(job["experiment"]).alias("experiment"),
        polars.lit(job["world_id"]).alias("world"),
        polars.lit(job["policy_id"]).alias("policy"),
        polars.lit(job["run"]).alias("run"),
        polars.all(),
    )
