"""Restrictions of one ask, in addition to the set of actions.

    policy.ask(state, actions, rng, restrictions=Restrictions(measure_only=[0, 2], price_cap=0.05))

They hold for this ask only. Every policy of this package supports them; your own policy does if its `ask`
accepts `restrictions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sidestep.core.actions import Actions, Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.checks import SLACK, as_numbers, check_choice, check_integer, is_finite, shown
from sidestep.core.problem import Problem
from sidestep.core.solids import Box
from sidestep.errors import InputError

LEARN, CONFIRM = "learn", "confirm"


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Restrictions of one ask; all are optional.

    allowed        rows of the arms that may be played
    measure_only   indices of the outcomes that can be measured
    largest_step   largest change of every coordinate from `last`: a number, or one each (inf: no limit)
    last           where steps are counted from; None: the last action, zero before the first
    price_cap      largest expected loss against the best allowed action
    purpose        "learn"; or "confirm": play what is recommended, and measure the protected outcome
                   that is least settled, in units of its tolerance
    measure        with "confirm": the vector to measure instead

    >>> import numpy as np, sidestep as ss
    >>> world = ss.environments.failure()
    >>> policy = ss.DirectedThompson(world.problem)
    >>> told = ss.Restrictions(allowed=[1], measure_only=[0])
    >>> rng = np.random.default_rng(0)
    >>> decision = policy.ask(policy.init(), world.actions, rng, restrictions=told)
    >>> decision.arm, decision.query.index
    (1, 0)
    """

    allowed: Sequence[int] | None = None
    measure_only: Sequence[int] | None = None
    largest_step: float | Sequence[float] | None = None
    last: Sequence[float] | FloatArray | None = None
    price_cap: float | None = None
    purpose: str = LEARN
    measure: int | None = None

    def __post_init__(self) -> None:
        check_choice("purpose", self.purpose, (LEARN, CONFIRM))
        for name in ("allowed", "measure_only"):
            object.__setattr__(self, name, _whole_numbers(name, getattr(self, name)))
        for name in ("largest_step", "last"):
            object.__setattr__(self, name, _numbers(name, getattr(self, name)))
        if self.price_cap is not None and not (is_finite(self.price_cap) and self.price_cap >= 0):
            raise InputError(
                f"price_cap must be zero or positive and finite, got {shown(self.price_cap)}"
            )
        if self.measure is not None and self.purpose != CONFIRM:
            raise InputError(
                f'measure is for purpose="confirm", got {self.measure!r} (measure_only restricts)'
            )


def checked_restrictions(problem: Problem, told: object, last: FloatArray) -> Restrictions:
    """The restrictions; raises one sentence if they do not fit this problem.

    last: the action of the last tell, used where the restrictions give no `last`.
    """
    if not isinstance(told, Restrictions):
        raise InputError(f"restrictions must be a Restrictions, got {shown(told)}")
    named = [] if told.measure is None else [told.measure]
    for index in (*(told.measure_only or ()), *named):
        check_integer("measure", index, low=0, high=problem.n_protected)
    if told.measure_only is not None and told.measure not in (None, *told.measure_only):
        raise InputError(f"measure must be one of measure_only, got {told.measure}")
    for name in ("largest_step", "last"):
        shape = np.shape(getattr(told, name) if getattr(told, name) is not None else 0.0)
        if shape not in ((), (problem.dim,)):
            raise InputError(f"{name} must have {problem.dim} coordinates, got shape {shape}")
    return told if told.last is not None else replace(told, last=last[: problem.dim])


def playable(actions: Actions, told: Restrictions) -> Actions:
    """The part of the actions that may be played: fewer arms, or a smaller box.

    The other solids are not closed under a step limit; there the action itself is moved back, by
    `within_reach`.
    """
    if isinstance(actions, Arms):
        return _arms(actions, told)
    if told.allowed is not None:
        raise InputError(
            f"allowed must be rows of arms, got {type(actions).__name__}: hand over a smaller one"
        )
    if told.largest_step is None:
        return actions
    if isinstance(actions, Box):
        return _box(actions, told)
    if not actions.contains(np.asarray(told.last)):
        raise InputError(f"last must be an action of the {type(actions).__name__}, got none of it")
    return actions


def within_reach(told: Restrictions, action: FloatArray) -> FloatArray:
    """The action, or the farthest point from `last` towards it that the step limit allows."""
    if told.largest_step is None:
        return action
    last, step = np.asarray(told.last, dtype=float), np.asarray(told.largest_step, dtype=float)
    moved = np.abs(action - last)
    share = float(np.min(np.where(moved > step, step / np.maximum(moved, 1e-300), 1.0)))
    return action if share >= 1.0 else last + share * (action - last)


def _arms(arms: Arms, told: Restrictions) -> Arms:
    """The arms that are allowed and within the step limit."""
    rows = np.arange(len(arms)) if arms.rows is None else np.asarray(arms.rows)
    fits = np.ones(len(arms), dtype=bool)
    if told.allowed is not None:
        unknown = sorted(set(told.allowed) - set(rows.tolist()))
        if unknown:
            raise InputError(f"allowed must name rows of the arms, got {unknown[0]}")
        fits &= np.isin(rows, told.allowed)
    if told.largest_step is not None:
        step = np.asarray(told.largest_step, dtype=float) + SLACK * max(arms.longest, 1.0)
        fits &= (np.abs(arms.vectors - np.asarray(told.last)) <= step).all(axis=1)
    if not fits.any():
        raise InputError("allowed and largest_step must leave an arm, got none that fits both")
    return arms if fits.all() else arms.only(fits)


def _box(box: Box, told: Restrictions) -> Box:
    last, step = np.asarray(told.last, dtype=float), np.asarray(told.largest_step, dtype=float)
    low, high = np.maximum(box.low, last - step), np.minimum(box.high, last + step)
    if (low > high).any():
        raise InputError("largest_step must leave an action of the box, got none so near to last")
    return Box(low, high)


def _whole_numbers(name: str, value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    numbers = np.atleast_1d(np.asarray(value))
    if numbers.size == 0:
        raise InputError(f"{name} must leave at least one, got none")
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise InputError(f"{name} must be whole numbers, got {shown(value)}")
    return tuple(sorted(set(numbers.tolist())))


def _numbers(name: str, value: object) -> Any:
    """One number, or a tuple of them; a step must not be negative."""
    if value is None:
        return None
    numbers = as_numbers(name, value)
    is_step = name == "largest_step"
    if not (numbers >= 0 if is_step else np.isfinite(numbers)).all():
        must = "zero or positive" if is_step else "finite"
        raise InputError(f"{name} must be {must}, got {shown(value)}")
    return tuple(numbers.tolist()) if numbers.ndim else float(numbers)
