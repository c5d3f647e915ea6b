"""What is asked next, and what a person needs to judge it: numbers in units, for the record."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from sidestep.core.problem import Query
from sidestep.errors import InputError, UnreachedDirectionsWarning
from sidestep.policies.base import Decision
from sidestep.policies.batches import ask_panel
from sidestep.policies.catalog import from_config
from sidestep.policies.recommend import recommend
from sidestep.studies.advice import Effect
from sidestep.studies.advising import setting_of_advice
from sidestep.studies.book import Book
from sidestep.studies.card import OPEN
from sidestep.studies.events import digest
from sidestep.studies.factors import Setting
from sidestep.studies.mind import Mind
from sidestep.studies.outcomes import Outcome
from sidestep.studies.request import CONFIRM, Request
from sidestep.studies.scale import allowed_of

Body = dict[str, Any]
BEYOND_PRICE = 1e12  # times its cost: an outcome that cannot be measured now


def decide(mind: Mind, seq: int, book: Book, request: Request) -> Body:
    """What to ask as entry `seq`."""
    if request.purpose == CONFIRM:
        body = _confirmation(mind, request, book)
    else:
        body = _question(mind, seq, book, request)
    restricted = {"request": request.to_json()} if request != Request() else {}
    context = {"context": dict(request.context)} if request.context else {}
    return {
        **body,
        **restricted,
        **context,
        "purpose": request.purpose,
        "last": book.last,
        "round": book.rounds + 1,
        "results": book.n_results,
        "policy": mind.plan.policy,
        "state": digest(mind.state.to_json()),
    }


def _question(mind: Mind, seq: int, book: Book, request: Request) -> Body:
    """What the policy wants to know."""
    plan, context = mind.plan, dict(request.context)
    rng = np.random.default_rng([plan.seed, seq])
    last = book.last or plan.baseline
    actions = allowed_of(plan, mind.actions(context), request, last)
    with warnings.catch_warnings(action="ignore", category=UnreachedDirectionsWarning):
        policy = _measuring(mind, request.measure_only)
        panel = ask_panel(policy, mind.state, actions, rng, request.panel, _pending(mind, book))
    setting, candidate = _setting(mind, panel[0])
    effects = mind.effects(mind.scale.vector(setting, context)[None])
    return {
        "action": setting,
        "candidate": candidate,
        "measure": _measured(mind, panel, request, effects),
        "phase": panel[0].phase,
        "effects": {name: list(each[0][:3]) for name, each in effects.items()},
    }


def _measured(
    mind: Mind, panel: list[Decision], request: Request, effects: dict[str, list[Effect]]
) -> list[str]:
    """The outcomes to measure; where a policy does not look at costs, the widest of those that can be."""
    wanted = [mind.plan.outcomes[each.query.index].name for each in panel]
    can = request.measure_only
    if not can or set(wanted) <= set(can):
        return wanted
    widths = {
        name: (effects[name][0].high - effects[name][0].low) / mind.plan.outcome(name).half
        for name in can
    }
    kept = [name for name in wanted if name in can]
    others = sorted((name for name in can if name not in kept), key=lambda name: -widths[name])
    return [*kept, *others][: request.panel]


def _confirmation(mind: Mind, request: Request, book: Book) -> Body:
    """What is recommended, and what of it is least settled."""
    if not book.n_results:
        raise InputError("there must be results before something can be confirmed, got none")
    plan, context = mind.plan, dict(request.context)
    advice = recommend(mind.policy, mind.state, mind.actions(context))
    setting = setting_of_advice(mind, advice)
    effects = {
        name: each[0]
        for name, each in mind.effects(mind.scale.vector(setting, context)[None]).items()
    }
    names = [outcome.name for outcome in plan.protected or plan.outcomes]
    names = [name for name in names if not request.measure_only or name in request.measure_only]
    order = sorted(names, key=lambda name: -_doubt(plan.outcome(name), effects[name]))
    return {
        "action": setting,
        "candidate": advice.arm,
        "measure": [request.measure] if request.measure else order[: request.panel],
        "phase": "confirm",
        "effects": {name: list(effect[:3]) for name, effect in effects.items()},
    }


def _doubt(outcome: Outcome, effect: Effect) -> float:
    """How unsettled an effect is: the width of its interval in tolerances, what is settled last."""
    limits = [abs(limit) for limit in outcome.limits if limit]
    width = (effect.high - effect.low) / (min(limits) if limits else outcome.half)
    return width if effect.verdict in (OPEN, None) else width / 1e6


def _pending(mind: Mind, book: Book) -> list[Query]:
    """What was asked and not answered yet: it is counted on to come in as expected."""
    return [
        Query(
            mind.scale.vector(question.body["action"], question.body.get("context") or {}),
            mind.plan.index(name),
        )
        for question in book.open.values()
        for name in question.waiting
    ]


def _measuring(mind: Mind, names: tuple[str, ...]) -> Any:
    """The policy where only these outcomes can be measured: the others are beyond all price."""
    if not names:
        return mind.policy
    costs = [
        outcome.cost * (1.0 if outcome.name in names else BEYOND_PRICE)
        for outcome in mind.plan.outcomes
    ]
    problem = replace(mind.policy.problem, costs=costs)
    try:
        return from_config(mind.plan.policy, problem, mind.plan.knobs)
    except InputError:  # it does not weigh costs: `_measured` sees to it
        return mind.policy


def _setting(mind: Mind, decision: Decision) -> tuple[Setting, int | None]:
    """What was decided, in units: a candidate and its number, or a point of the box."""
    if decision.arm is not None:
        return mind.plan.candidates.setting(decision.arm), decision.arm
    return mind.scale.setting(decision.query.action), None
