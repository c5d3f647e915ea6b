"""Restrictions of one ask, in addition to the set of actions.

    policy.ask(state, actions, rng, restrictions=Restrictions(measure_only=[0, 2], price_cap=0.05))

They hold for this ask only. Every policy of this package supports them; your own policy does if its `ask`
accepts `restrictions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions, Arms, Box, Solid
from sidestep.core.arrays import FloatArray
from sidestep.core.estimator import Evidence
from sidestep.core.posterior import Posteriors, relative_costs
from sidestep.core.problem import Problem, Query
from sidestep.core.validation import (
    SLACK,
    as_numbers,
    check_choice,
    check_integer,
    is_finite,
    shown,
)
from sidestep.errors import InputError
from sidestep.policies.advice.next_measurement import OPEN, verdict_of
from sidestep.policies.advice.posterior_summary import (
    Standpoint,
    belief_of,
    best_in_solid,
    effects_of,
    standpoint_of,
    values_at,
)
from sidestep.policies.advice.recommend import recommend
from sidestep.policies.base import Decision
from sidestep.policies.builtin import BuiltinPolicy
from sidestep.policies.state import Learned, State

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
    >>> given = ss.Restrictions(allowed=[1], measure_only=[0])
    >>> rng = np.random.default_rng(0)
    >>> decision = policy.ask(policy.init(), world.actions, rng, restrictions=given)
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


def checked_restrictions(problem: Problem, given: object, last: FloatArray) -> Restrictions:
    """The restrictions; raises one sentence if they do not fit this problem.

    last: the action of the last tell, used where the restrictions give no `last`.
    """
    if not isinstance(given, Restrictions):
        raise InputError(f"restrictions must be a Restrictions, got {shown(given)}")
    named = [] if given.measure is None else [given.measure]
    for index in (*(given.measure_only or ()), *named):
        check_integer("measure", index, low=0, high=problem.n_protected)
    if given.measure_only is not None and given.measure not in (None, *given.measure_only):
        raise InputError(f"measure must be one of measure_only, got {given.measure}")
    for name in ("largest_step", "last"):
        shape = np.shape(getattr(given, name) if getattr(given, name) is not None else 0.0)
        if shape not in ((), (problem.dim,)):
            raise InputError(f"{name} must have {problem.dim} coordinates, got shape {shape}")
    return given if given.last is not None else replace(given, last=last[: problem.dim])


def playable(actions: Actions, given: Restrictions) -> Actions:
    """The part of the actions that may be played: fewer arms, or a smaller box.

    The other solids are not closed under a step limit; there the action itself is moved back, by
    `within_reach`.
    """
    if isinstance(actions, Arms):
        return _arms(actions, given)
    if given.allowed is not None:
        raise InputError(
            f"allowed must be rows of arms, got {type(actions).__name__}: hand over a smaller one"
        )
    if given.largest_step is None:
        return actions
    if isinstance(actions, Box):
        return _box(actions, given)
    if not actions.contains(np.asarray(given.last)):
        raise InputError(f"last must be an action of the {type(actions).__name__}, got none of it")
    return actions


def within_reach(given: Restrictions, action: FloatArray) -> FloatArray:
    """The action, or the farthest point from `last` towards it that the step limit allows."""
    if given.largest_step is None:
        return action
    last, step = np.asarray(given.last, dtype=float), np.asarray(given.largest_step, dtype=float)
    moved = np.abs(action - last)
    share = float(np.min(np.where(moved > step, step / np.maximum(moved, 1e-300), 1.0)))
    return action if share >= 1.0 else last + share * (action - last)


def _arms(arms: Arms, given: Restrictions) -> Arms:
    """The arms that are allowed and within the step limit."""
    rows = np.arange(len(arms)) if arms.rows is None else np.asarray(arms.rows)
    fits = np.ones(len(arms), dtype=bool)
    if given.allowed is not None:
        unknown = sorted(set(given.allowed) - set(rows.tolist()))
        if unknown:
            raise InputError(f"allowed must name rows of the arms, got {unknown[0]}")
        fits &= np.isin(rows, given.allowed)
    if given.largest_step is not None:
        step = np.asarray(given.largest_step, dtype=float) + SLACK * max(arms.longest, 1.0)
        fits &= (np.abs(arms.vectors - np.asarray(given.last)) <= step).all(axis=1)
    if not fits.any():
        raise InputError("allowed and largest_step must leave an arm, got none that fits both")
    return arms if fits.all() else arms.only(fits)


def _box(box: Box, given: Restrictions) -> Box:
    last, step = np.asarray(given.last, dtype=float), np.asarray(given.largest_step, dtype=float)
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


POINTS = 65  # points checked between today's best action and one that is too expensive, on a solid
LEVEL = 0.95  # level of the intervals that settle an effect


def ask_restricted(
    policy: BuiltinPolicy,
    state: State,
    learned: Learned,
    posteriors: Posteriors | None,
    actions: Actions,
    rng: Generator,
    restrictions: Restrictions,
) -> Decision:
    """What to play and what to measure under restrictions; learned: with pending queries included."""
    given = checked_restrictions(policy.problem, restrictions, state.evidence.last)
    evidence = learned.evidence
    standpoint = None if given.price_cap is None else _standpoint(policy, posteriors, learned)
    menu = playable(actions, given)
    if standpoint is not None and isinstance(menu, Arms):
        menu = _affordable(standpoint, menu, given)
    if given.purpose == CONFIRM:
        decision = _confirmation(policy, state, evidence, menu, given)
    else:
        knobs = _knobs(policy, given)
        decision = policy.decide(learned, posteriors, menu, rng, knobs)
    action = decision.query.action
    if isinstance(menu, Arms):
        _check_on_menu(policy, decision)
    else:
        action = _moved_back(standpoint, menu, given, action)
    index = _measurable(policy, evidence, given, Query(action, decision.query.index))
    decision = replace(decision, query=Query(action, index))
    decision = policy.explained(decision, state, learned, posteriors, menu)
    if standpoint is None or isinstance(menu, Arms):
        return decision
    return replace(decision, price=_price(standpoint, _best(standpoint, menu, given), action))


def _standpoint(
    policy: BuiltinPolicy, posteriors: Posteriors | None, learned: Learned
) -> Standpoint:
    """The standpoint of the policy; raises one sentence if it cannot price an action."""
    if posteriors is None:
        raise InputError(
            "price_cap needs a policy that has a posterior (the Thompson policies do), "
            f"got {type(policy).__name__}"
        )
    return standpoint_of(policy.problem, posteriors, learned.ranks.assumed)


def _knobs(policy: BuiltinPolicy, given: Restrictions) -> Any:
    """The knobs of a policy that weighs costs; vectors that cannot be measured now have infinite cost."""
    if given.measure_only is None or not hasattr(policy.knobs, "costs"):
        return policy.knobs
    costs = np.full(policy.problem.n_vectors, np.inf)
    can = list(given.measure_only)
    costs[can] = policy.knobs.costs[can]
    return policy.knobs._replace(costs=costs)


def _affordable(standpoint: Standpoint, arms: Arms, given: Restrictions) -> Arms:
    """The arms whose price against the best of them is within the cap."""
    values = values_at(standpoint, np.asarray(arms.vectors))
    fits = values.max() - values <= given.price_cap
    return arms if fits.all() else arms.only(fits)


def _moved_back(
    standpoint: Standpoint | None, solid: Solid, given: Restrictions, action: FloatArray
) -> FloatArray:
    """An action of a solid, moved back until the step limit and the price cap allow it.

    The expected loss is convex in the action, so the price only grows on the way from the best action.
    """
    action = within_reach(given, action)
    if standpoint is None:
        return action
    best, cap = _best(standpoint, solid, given), float(given.price_cap or 0.0)
    if _price(standpoint, best, action) <= cap:
        return action
    way = best + np.linspace(0.0, 1.0, POINTS)[:, None] * (action - best)
    values = values_at(standpoint, way)
    return np.array(way[np.flatnonzero(values[0] - values <= cap)[-1]])


def _best(standpoint: Standpoint, solid: Solid, given: Restrictions) -> FloatArray:
    """Today's best action of a solid, within the step limit."""
    return within_reach(given, best_in_solid(standpoint, solid))


def _price(standpoint: Standpoint, best: FloatArray, action: FloatArray) -> float:
    """Expected loss of an action against the best."""
    worth = values_at(standpoint, np.stack([best, action]))
    return max(float(worth[0] - worth[1]), 0.0)


def _check_on_menu(policy: BuiltinPolicy, decision: Decision) -> None:
    if decision.arm is None:
        raise InputError(
            'restrictions need a policy that keeps to the menu, got one with design="basis": '
            f"{type(policy).__name__} plays basis vectors off it"
        )


def _measurable(
    policy: BuiltinPolicy, evidence: Evidence, given: Restrictions, query: Query
) -> int:
    """The chosen vector; if it cannot be measured, the least known of those that can."""
    if given.measure_only is None or query.index in given.measure_only:
        return query.index
    can, problem = list(given.measure_only), policy.problem
    action = problem.lifted(np.array(query.action))
    noise = np.nan_to_num(policy.knobs.confidence.noise[can], nan=1.0)
    spread = noise**2 * np.array([action @ evidence.inverse[v] @ action for v in can])
    return can[int(np.argmax(spread / relative_costs(problem)[can]))]


def _confirmation(
    policy: BuiltinPolicy, state: State, evidence: Evidence, menu: Actions, given: Restrictions
) -> Decision:
    """The recommended action, and the vector whose effect is least settled there."""
    advice = recommend(policy, state, menu, LEVEL)
    index = given.measure
    if index is None:
        index = _least_settled(policy, replace(state, evidence=evidence), advice.action, given)
    query = Query(advice.action, index)
    return Decision(query, CONFIRM, advice.reward.estimate, advice.arm, spectrum=advice.spectrum)


def _least_settled(
    policy: BuiltinPolicy, state: State, action: FloatArray, given: Restrictions
) -> int:
    """The protected outcome with the widest interval in units of its tolerance, settled ones last."""
    problem, belief = policy.problem, belief_of(policy, state)
    effects = effects_of(belief, action[None], LEVEL)
    estimate, half = effects.estimate[:, 0], effects.half[:, 0]
    units, limits = _units(problem), problem.limits
    can = range(problem.n_vectors) if given.measure_only is None else given.measure_only
    protected = [index for index in can if index > 0] or list(can)

    def doubt(index: int) -> tuple[bool, float]:
        is_open = True
        if limits is not None and index > 0:
            ends = (estimate[index] - half[index], estimate[index] + half[index])
            is_open = verdict_of(limits.low[index - 1], limits.high[index - 1], *ends) == OPEN
        return is_open, float(half[index] / units[index])

    return max(protected, key=doubt)


def _units(problem: Problem) -> FloatArray:
    """The nearer limit of every outcome; M A where it has no limit, or only zero; (L+1,)."""
    units = np.full(problem.n_vectors, problem.norm_bound * problem.action_bound)
    limits = problem.limits
    if limits is not None:
        nearer = np.minimum(
            np.where(limits.high > 0, limits.high, np.inf),
            np.where(limits.low < 0, -limits.low, np.inf),
        )
        units[1:] = np.where(np.isfinite(nearer), nearer, units[1:])
    return units
