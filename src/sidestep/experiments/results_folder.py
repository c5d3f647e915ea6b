"""A folder DIR/EXPERIMENT belongs to one spec: runs of another spec are not replaced or mixed in unasked.

Two specs are the same if all their runs are: titles, labels and notes may differ. A user's own policy or
world, "package.module:Name", is the same as long as its file is.
"""

import hashlib
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sidestep.errors import InputError
from sidestep.experiments.results import read_notes, read_spec_file, trace_path, write_spec
from sidestep.experiments.spec import Job, Spec, jobs_of

SHOWN = 3  # differences that are named


def claim(folder: Path, spec: Spec, *, resume: bool = False, overwrite: bool = False) -> list[Job]:
    """Claim the folder for this spec, and return the runs that are still to play.

    resume      keep existing runs; without it, existing runs are an error
    overwrite   remove existing runs instead: those of another spec, and without `resume` all of them
    """
    there = check_owner(folder, spec, resume=resume, overwrite=overwrite)
    jobs = with_code(jobs_of(spec))
    wanted = {trace_path(folder, job): job.fingerprint for job in jobs}
    kept = {path for path, mark in there.items() if resume and wanted.get(path) == mark}
    for path in there.keys() - kept:
        path.unlink()
    write_spec(folder, spec)
    return [job for job in jobs if trace_path(folder, job) not in kept]


def check_owner(folder: Path, spec: Spec, *, resume: bool, overwrite: bool) -> dict[Path, str]:
    """The existing runs; raises one sentence if they conflict and may not be overwritten."""
    home = folder / spec.name
    there = runs_in(home)
    if overwrite or not there:
        return there
    jobs = {trace_path(folder, job): job for job in with_code(jobs_of(spec))}
    others = [
        path for path, mark in there.items() if path not in jobs or jobs[path].fingerprint != mark
    ]
    changes = _changes(home, spec) or _changed_code(jobs[path] for path in others if path in jobs)
    if changes or others:
        what = f" ({changes})" if changes else ""
        raise InputError(
            f"{home} must hold runs of this spec alone, got {len(there)} of another one{what}: choose "
            "another --out, or add --overwrite to replace them"
        )
    if not resume:
        raise InputError(
            f"{home} must be empty for a fresh start, got {len(there)} runs of this spec: add "
            "--resume to keep them, --overwrite to play them anew, or choose another --out"
        )
    return there


def with_code(jobs: Iterable[Job]) -> list[Job]:
    """The jobs with the digest of the user's own files that they use."""
    digest = cache(_digest)  # a file is read once for all runs
    return [job._replace(code="-".join(filter(None, map(digest, _own(job))))) for job in jobs]


def _own(job: Job) -> list[str]:
    """The names of the policy and the world of a job that are the user's own."""
    return [name for name in (job.policy, job.world) if ":" in name]


def _digest(name: str) -> str:
    """Digest of the source file of "package.module:Name"; empty if it cannot be found."""
    try:
        found = find_spec(name.partition(":")[0])
        content = Path(found.origin).read_bytes() if found and found.origin else b""
    except Exception:  # check_jobs meets the same error and reports it
        return ""
    return hashlib.sha256(content).hexdigest()[:16] if content else ""


def _changed_code(jobs: Iterable[Job]) -> str:
    """Which of the user's own files have changed although the settings are the same."""
    names = dict.fromkeys(name for job in jobs for name in _own(job))
    return f"the code of {' or '.join(names)} differs" if names else ""


def runs_in(home: Path) -> dict[Path, str]:
    """The fingerprint of every run in an experiment's folder that can be read."""
    found = {}
    for path in sorted([*home.glob("traces/*/*/*.parquet"), *home.glob("tuning/*/*/*.parquet")]):
        try:
            found[path] = str(read_notes(path)["fingerprint"])
        except InputError:  # a broken file does not count; the run is played again
            continue
    return found


def _changes(home: Path, spec: Spec) -> str:
    """The differences from the spec of the folder, in words; empty if there are none."""
    try:
        owner = read_spec_file(home / "spec.json")
    except InputError:  # then only the fingerprints of the runs decide
        return ""
    before, now = _settings(owner), _settings(Spec.model_validate_json(spec.model_dump_json()))
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    words = [_change(name, before, now) for name in names[:SHOWN]]
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return "; ".join([*words, *more])


def _settings(spec: Spec) -> dict[str, Any]:
    """The settings on which the runs of a spec depend, by name."""
    names = ("horizon", "runs", "seed", "every", "tune_seeds")
    plain: dict[str, Any] = {name: getattr(spec, name) for name in names}
    worlds = {
        f"world {world.id}": (world.world, world.knobs, world.horizon, world.runs)
        for world in spec.worlds
    }
    policies = {
        f"policy {entry.id}": (entry.policy, entry.knobs, entry.grid, entry.worlds, entry.told)
        for entry in spec.policies
    }
    return plain | worlds | policies


def _change(name: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    if name in before and name in now:
        simple = isinstance(before[name], int)
        return f"{name} {before[name]}, here {now[name]}" if simple else f"{name} differs"
    return f"{name} {'is not in this one' if name in before else 'is new'}"
