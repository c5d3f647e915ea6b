"""The reasons of a question: the policy's reasons in the study's units, as the record stores them.

    rival      the candidate that competes with the one that is asked
    shares     share of the uncertainty that one result of each outcome would remove
    price      expected loss of the round against today's best, in the target's unit
    best       today's best candidate; the one that is asked if the price is zero
    expected   for every outcome that is measured: estimate and 95% interval of the result

All are in closed form (policies/reasons.py): nothing in the record depends on posterior draws.
"""

from typing import Any

from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Query
from sidestep.policies.base import Decision
from sidestep.policies.reasons import Expected, expected_feedback
from sidestep.studies.factors import Setting
from sidestep.studies.mind import Mind

Body = dict[str, Any]


def reasons_body(mind: Mind, found: Decision, asked: Body, action: FloatArray) -> Body:
    """The reasons for a question; asked: its candidate, its setting and what it measures."""
    if found.shares is None:
        return {}
    rival = None if found.rival is None else _named(mind, found.rival)
    played = {"candidate": asked["candidate"], "action": asked["action"]}
    outcomes = mind.plan.outcomes
    return {
        "rival": rival,
        "shares": {
            outcome.name: float(share)
            for outcome, share in zip(outcomes, found.shares, strict=True)
        },
        "price": float(found.price or 0.0) * mind.plan.target.half,
        "best": rival if found.price and rival else played,
        "expected": {name: _expected(mind, action, name) for name in asked["measure"]},
    }


def _expected(mind: Mind, action: FloatArray, name: str) -> list[float]:
    """Prediction of a result: estimate, low, high; pending questions are not taken into account."""
    index = mind.plan.index(name)
    policy, query = mind.policy, Query(action, index)
    found = expected_feedback(policy.problem, policy.knobs.prior, mind.state.evidence, query)
    return _in_units(mind, index, found)


def _in_units(mind: Mind, index: int, expected: Expected) -> list[float]:
    """The prediction in the outcome's unit; cut at the range if the estimate is inside the range."""
    outcome = mind.plan.outcomes[index]
    estimate, *sides = (outcome.value(end) for end in expected)
    low, high = min(sides), max(sides)
    if outcome.low <= estimate <= outcome.high:
        low, high = max(low, outcome.low), min(high, outcome.high)
    return [estimate, low, high]


def _named(mind: Mind, rival: int | FloatArray) -> Body:
    setting: Setting
    if isinstance(rival, int):
        setting = mind.plan.candidates.setting(rival)
        return {"candidate": rival, "action": setting}
    return {"candidate": None, "action": mind.scale.setting(rival)}
