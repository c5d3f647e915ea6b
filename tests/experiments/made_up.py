"""A small experiment as a file, and results folders with made-up traces, as a sweep writes them."""

from dataclasses import dataclass

import numpy as np

from sidestep.core.problem import Problem
from sidestep.experiments import results
from sidestep.experiments.record import Trace, empty_record
from sidestep.experiments.spec import Spec, jobs_of
from sidestep.policies.base import PHASES

TOML = """
name = "mine"
horizon = 60
runs = 3

[[worlds]]
id = "small"
world = "synthetic"
knobs = { dim = 3, n_protected = 2, subspace_dim = 1, arms = 5, noise_scale = 0.1 }

[[policies]]
id = "uniform"
policy = "uniform"

[[policies]]
id = "greedy"
policy = "epsilon-greedy"
"""

HORIZON = 100
PROBLEM = Problem(dim=2, n_protected=1, subspace_dim=1, noise_scale=0.1, norm_bound=1.0)
THETA = np.array([[0.6, 0.8], [1.0, 0.0]])


def spec_of(*policies, worlds=("world",), **changes):
    """An experiment with these policies: ids, or tables of a spec."""
    entries = [p if isinstance(p, dict) else {"id": p, "policy": p} for p in policies]
    tables = [w if isinstance(w, dict) else {"id": w, "world": "synthetic"} for w in worlds]
    settings = {"name": "made-up", "horizon": HORIZON, "runs": 4, "worlds": tables}
    return Spec.model_validate(settings | {"policies": entries} | changes)


def trace_of(job, regret, phases="play", indices=None, actions=None):
    """A trace with this regret a round; the feedback is what THETA gives."""
    record = empty_record(job.horizon, job.every, 2, 2)
    t = np.arange(1, job.horizon + 1)
    kept = (t % job.every == 0) | (t == job.horizon)
    index = np.array([0, 1] * job.horizon)[: job.horizon] if indices is None else indices
    angle = 0.01 * t
    action = np.column_stack([np.cos(angle), np.sin(angle)]) if actions is None else actions
    phase = np.array([phases] * job.horizon) if isinstance(phases, str) else np.array(phases)
    chosen = t, index, np.array([PHASES.index(word) for word in phase])
    record.chosen[:3] = np.array(chosen)[:, kept]
    feedback, value = (action * THETA[index]).sum(axis=1), np.zeros(job.horizon)
    numbers = value, 1 / np.sqrt(t), feedback, regret, np.cumsum(regret)
    record.numbers[:] = np.array(numbers)[:, kept]
    record.action[:] = action[kept]
    record.counts[:] = np.bincount(index, minlength=2)
    return Trace("Made", job.horizon, job.seed, record)


@dataclass(frozen=True)
class Made:
    """Who played a made-up trace."""

    problem: Problem = PROBLEM
    rho: float = 0.5
    delta: float = 0.01
    coreset: str = "certified"


def write(folder, spec, make, player=None):
    """Write the spec and make(job), a trace, an array of regrets or None, for every job."""
    notes = results.notes_of(player or Made())
    results.write_spec(folder, spec)
    for job in jobs_of(spec):
        made = make(job)
        if made is not None:
            trace = made if isinstance(made, Trace) else trace_of(job, np.asarray(made))
            content = results.to_parquet(job, trace, notes, seconds=0.5)
            results.write_whole(results.trace_path(folder, job), content)
    return folder
