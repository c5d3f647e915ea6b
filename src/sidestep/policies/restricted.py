"""One ask with restrictions on the action, the measurement and the price."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator

from sidestep.core.actions import Actions, Arms
from sidestep.core.arrays import FloatArray
from sidestep.core.estimator import Evidence
from sidestep.core.posterior import relative_costs
from sidestep.core.problem import Problem, Query
from sidestep.core.solids import Solid
from sidestep.errors import InputError
from sidestep.policies.base import Decision
from sidestep.policies.belief import belief_of, effects_of
from sidestep.policies.compiled_policy import CompiledPolicy
from sidestep.policies.reasons import standpoint_for
from sidestep.policies.recommend import recommend
from sidestep.policies.restrictions import (
    CONFIRM,
    Restrictions,
    checked_restrictions,
    playable,
    within_reach,
)
from sidestep.policies.settling import OPEN, verdict_of
from sidestep.policies.standpoint import Standpoint, best_in_solid, values_at
from sidestep.policies.state import State

POINTS = 65  # points checked between today's best action and one that is too expensive, on a solid
LEVEL = 0.95  # level of the intervals that settle an effect


def ask_restricted(
    policy: CompiledPolicy,
    state: State,
    evidence: Evidence,
    actions: Actions,
    rng: Generator,
    restrictions: Restrictions,
) -> Decision:
    """What to play and what to measure under restrictions; evidence: with pending queries included."""
    told = checked_restrictions(policy.problem, restrictions, state.evidence.last)
    here = None if told.price_cap is None else _standpoint(policy, evidence, state)
    menu = playable(actions, told)
    if here is not None and isinstance(menu, Arms):
        menu = _affordable(here, menu, told)
    if told.purpose == CONFIRM:
        decision = _confirmation(policy, state, evidence, menu, told)
    else:
        knobs = _knobs(policy, told)
        decision = policy.decide(state, evidence, menu, rng, knobs)
    action = decision.query.action
    if isinstance(menu, Arms):
        _check_on_menu(policy, decision)
    else:
        action = _drawn_back(here, menu, told, action)
    index = _measurable(policy, evidence, told, Query(action, decision.query.index))
    decision = replace(decision, query=Query(action, index))
    decision = policy.explained(decision, evidence, state.core_set, menu)
    if here is None or isinstance(menu, Arms):
        return decision
    return replace(decision, price=_price(here, _best(here, menu, told), action))


def _standpoint(policy: CompiledPolicy, evidence: Evidence, state: State) -> Standpoint:
    """The standpoint of the policy; raises one sentence if it cannot price an action."""
    prior = getattr(policy.knobs, "prior", None)
    if prior is None:
        raise InputError(
            "price_cap needs a policy that has a posterior (the Thompson players do), "
            f"got {type(policy).__name__}"
        )
    return standpoint_for(policy.problem, prior, evidence, state.core_set, policy.knobs.rank)


def _knobs(policy: CompiledPolicy, told: Restrictions) -> Any:
    """The knobs of a policy that weighs costs; vectors that cannot be measured now have infinite cost."""
    if told.measure_only is None or not hasattr(policy.knobs, "costs"):
        return policy.knobs
    costs = np.full(policy.problem.n_vectors, np.inf)
    can = list(told.measure_only)
    costs[can] = policy.knobs.costs[can]
    return policy.knobs._replace(costs=costs)


def _affordable(here: Standpoint, arms: Arms, told: Restrictions) -> Arms:
    """The arms whose price against the best of them is within the cap."""
    values = values_at(here, np.asarray(arms.vectors))
    fits = values.max() - values <= told.price_cap
    return arms if fits.all() else arms.only(fits)


def _drawn_back(
    here: Standpoint | None, solid: Solid, told: Restrictions, action: FloatArray
) -> FloatArray:
    """An action of a solid, moved back until the step limit and the price cap allow it.

    The expected loss is convex in the action, so the price only grows on the way from the best action.
    """
    action = within_reach(told, action)
    if here is None:
        return action
    best, cap = _best(here, solid, told), float(told.price_cap or 0.0)
    if _price(here, best, action) <= cap:
        return action
    way = best + np.linspace(0.0, 1.0, POINTS)[:, None] * (action - best)
    values = values_at(here, way)
    return np.array(way[np.flatnonzero(values[0] - values <= cap)[-1]])


def _best(here: Standpoint, solid: Solid, told: Restrictions) -> FloatArray:
    """Today's best action of a solid, within the step limit."""
    return within_reach(told, best_in_solid(here, solid))


def _price(here: Standpoint, best: FloatArray, action: FloatArray) -> float:
    """Expected loss of an action against the best."""
    worth = values_at(here, np.stack([best, action]))
    return max(float(worth[0] - worth[1]), 0.0)


def _check_on_menu(policy: CompiledPolicy, decision: Decision) -> None:
    if decision.arm is None:
        raise InputError(
            'restrictions need a policy that keeps to the menu, got one with design="basis": '
            f"{type(policy).__name__} plays basis vectors off it"
        )


def _measurable(
    policy: CompiledPolicy, evidence: Evidence, told: Restrictions, query: Query
) -> int:
    """The chosen vector; if it cannot be measured, the least known of those that can."""
    if told.measure_only is None or query.index in told.measure_only:
        return query.index
    can, problem = list(told.measure_only), policy.problem
    action = problem.lifted(np.array(query.action))
    noise = np.nan_to_num(policy.knobs.confidence.noise[can], nan=1.0)
    spread = noise**2 * np.array([action @ evidence.inverse[v] @ action for v in can])
    return can[int(np.argmax(spread / relative_costs(problem)[can]))]


def _confirmation(
    policy: CompiledPolicy, state: State, evidence: Evidence, menu: Actions, told: Restrictions
) -> Decision:
    """The recommended action, and the vector whose effect is least settled there."""
    advice = recommend(policy, state, menu, LEVEL)
    index = told.measure
    if index is None:
        index = _least_settled(policy, replace(state, evidence=evidence), advice.action, told)
    query = Query(advice.action, index)
    return Decision(query, CONFIRM, advice.reward.estimate, advice.arm, spectrum=advice.spectrum)


def _least_settled(
    policy: CompiledPolicy, state: State, action: FloatArray, told: Restrictions
) -> int:
    """The protected outcome with the widest interval in units of its tolerance, settled ones last."""
    problem, belief = policy.problem, belief_of(policy, state)
    effects = effects_of(belief, action[None], LEVEL)
    estimate, half = effects.estimate[:, 0], effects.half[:, 0]
    units, limits = _units(problem), problem.limits
    can = range(problem.n_vectors) if told.measure_only is None else told.measure_only
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
