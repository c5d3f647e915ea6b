"""Effects of the played actions on every outcome, estimated from the traces alone.

The vectors are hidden, but all policies of one run play the same world: their pooled measurements give
every vector by least squares, and so the effect of every action on every outcome. An effect
along directions in which no policy measured that outcome stays unknown. Where outcomes have levels, these
are fitted as well and subtracted. Where the aim has tolerances, the reward is the value within them.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sidestep.core.actions import UnitBall
from sidestep.core.arrays import FloatArray
from sidestep.core.core_set import best_subset
from sidestep.core.lower_bounds import price_of_protection
from sidestep.core.objective import within
from sidestep.core.problem import Problem
from sidestep.errors import InputError
from sidestep.experiments.analysis.run_facts import NAN, Row, Run

LAST = 0.1  # effects are averages over this share of the rounds, the last ones
REACHED = 1e-9  # a direction below this share of the largest eigenvalue was not measured


class TraceFacts(NamedTuple):
    """Facts from the traces of a world, apart from its regret."""

    problem: Problem | None  # as its policies know it
    on_ball: bool
    eigenvalue: float  # lambda_min of the best spanning set, median of the runs' estimates
    error: float  # standard error of an effect, root mean square
    price: float = (
        NAN  # p G on the unit ball, mean of the runs' estimates (docs/theory.md, Theorem 12)
    )


class Fit(NamedTuple):
    """The vectors of one run by least squares."""

    theta: FloatArray  # (L+1, d), of minimum norm
    span: FloatArray  # (L+1, d, d), projectors on the directions that were measured
    spread: FloatArray  # (L+1, d, d), covariance of theta


def measure(runs: Mapping[str, Sequence[Run]]) -> tuple[TraceFacts, list[Row]]:
    """Facts from the runs of all policies on one world, and the effects of every policy."""
    everything = [run for group in runs.values() for run in group]
    problem = _told([run.problem for run in everything])
    on_ball = all((run.column("arm") == -1).all() for run in everything)
    fits = {
        number: fit(
            [run for run in everything if run.job.run == number],
            levels=problem is not None and problem.intercept,
        )
        for number in {run.job.run for run in everything}
    }
    size = problem.subspace_dim if problem and problem.limits is None else None
    values = [_eigenvalue(vectors, size) for vectors in fits.values()]
    rows, errors = [], []
    for policy, group in runs.items():
        found = [effects_of(run, fits[run.job.run], problem) for run in group]
        rows += _rows(policy, np.array([effect for effect, _ in found]))
        errors += [error for _, error in found]
    error = float(np.sqrt(np.mean(np.square(errors))))
    prices = [_price(vectors, problem) if on_ball else NAN for vectors in fits.values()]
    price = float(np.mean(prices))
    return TraceFacts(problem, on_ball, float(np.median(values)), error, price), rows


def _told(problems: Sequence[Problem | None]) -> Problem | None:
    """The problem of a world: one of those that its policies know, with tolerances if there is one."""
    known = [problem for problem in problems if problem]
    return next((p for p in known if p.limits is not None), known[0] if known else None)


def fit(runs: Sequence[Run], *, levels: bool = False) -> Fit:
    """Every vector from all its measurements, by any policy; the level is the last coordinate."""
    actions = _beside(np.concatenate([run.actions for run in runs]), 1.0 if levels else None)
    index = np.concatenate([run.column("index") for run in runs])
    feedback = np.concatenate([run.column("feedback") for run in runs])
    parts = [
        _least_squares(actions[index == i], feedback[index == i])
        for i in range(len(runs[0].notes["counts"]))
    ]
    return Fit(*(np.array(part) for part in zip(*parts, strict=True)))


def _least_squares(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    values, axes = np.linalg.eigh(x.T @ x)
    reached = values > REACHED * max(float(values[-1]), 1e-300)
    axes, values = axes[:, reached], values[reached]
    inverse = (axes / values) @ axes.T
    theta = inverse @ (x.T @ y)
    misfit = y - x @ theta
    return theta, axes @ axes.T, inverse * (misfit @ misfit / max(len(y) - len(values), 1))


def _beside(actions: FloatArray, last: float | None) -> FloatArray:
    """Actions with a last coordinate for the level: 1 for measurements, 0 for effects; None: without."""
    if last is None:
        return actions
    return np.column_stack([actions, np.full(len(actions), last)])


def effects_of(run: Run, vectors: Fit, problem: Problem | None) -> tuple[FloatArray, float]:
    """Mean and mean size of reward and effects over the last plays, (2, L+2), and their error."""
    actions = run.actions[run.column("round") > (1 - LAST) * run.job.horizon]
    actions = _beside(actions, 0.0 if problem and problem.intercept else None)
    known = [_reaches(span, actions) for span in vectors.span]
    effects = actions @ vectors.theta.T
    effects[:, ~np.array(known)] = NAN
    reward = _rewards(actions, vectors.theta, problem) if all(known) else np.full(len(actions), NAN)
    both = np.column_stack([reward, effects])
    middle = actions.mean(axis=0)
    error = np.sqrt(np.mean([middle @ spread @ middle for spread in vectors.spread]))
    return np.array([both.mean(axis=0), np.abs(both).mean(axis=0)]), float(error)


def _rewards(actions: FloatArray, theta: FloatArray, problem: Problem | None) -> FloatArray:
    """Rewards of actions under the fitted vectors, by the aim of the world; (n,)."""
    if problem and problem.limits is not None:
        return within(theta[None], actions, problem.limits)[0]
    return np.asarray(actions @ _left_over(theta, problem.subspace_dim if problem else None))


def _reaches(span: FloatArray, actions: FloatArray) -> bool:
    return bool(np.abs(actions - actions @ span).max() < 1e-6)


def _left_over(theta: FloatArray, size: int | None) -> FloatArray:
    """Estimate of theta_perp: the target projected off the s strongest protected directions."""
    _, strength, axes = np.linalg.svd(theta[1:], full_matrices=False)
    rank = int((strength > 1e-9).sum()) if size is None else size
    return np.asarray(theta[0] - axes[:rank].T @ (axes[:rank] @ theta[0]))


def _eigenvalue(vectors: Fit, size: int | None) -> float:
    """lambda_min of the best spanning set; NaN if it is empty or was not measured completely."""
    full = all(np.trace(span) > len(span) - 0.5 for span in vectors.span[1:])
    return float(best_subset(vectors.theta[1:], size).eigenvalue) if size and full else NAN


class _Fitted(NamedTuple):
    """A world as its traces show it."""

    theta: FloatArray
    problem: Problem
    actions: UnitBall


def _price(vectors: Fit, problem: Problem | None) -> float:
    """The p G of a world; NaN where vectors were not measured completely, or it has none."""
    d = vectors.theta.shape[1]
    full = all(np.trace(span) > d - 0.5 for span in vectors.span)
    if not full or problem is None or problem.subspace_dim != problem.n_protected:
        return NAN
    try:
        found = price_of_protection(_Fitted(vectors.theta, problem, UnitBall(d)))
        return found.directions * found.noise
    except InputError:
        return NAN


def _rows(policy: str, effects: FloatArray) -> list[Row]:
    """Means over the runs; effects is (runs, 2, L+2)."""
    names = ["reward", "target", *(f"protected {i}" for i in range(1, effects.shape[2] - 1))]
    mean, size = effects.mean(axis=0)
    return [
        {"policy": policy, "outcome": name, "mean": float(mean[k]), "size": float(size[k])}
        for k, name in enumerate(names)
    ]
