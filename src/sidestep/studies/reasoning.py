"""The reasons of a question: the policy's reasons in the study's units, as the record stores them.

    rival      the candidate that competes with the one that is asked
    shares     share of the uncertainty that one result of each outcome would remove
    price      expected loss of the round against today's best, in the target's unit
    best       today's best candidate; the one that is asked if the price is zero
    expected   for every outcome that is measured: estimate and 95% interval of the result

All are in closed form (policies/advice/explain.py): nothing in the record depends on posterior draws.
"""

from collections.abc import Sequence
from typing import Any

from sidestep.core.arrays import FloatArray
from sidestep.core.problem import Query
from sidestep.policies.advice.explain import expected_feedback
from sidestep.policies.base import Decision, Interval
from sidestep.studies.factors import Setting
from sidestep.studies.mind import Mind

Body = dict[str, Any]


def reasons_body(
    mind: Mind, found: Decision, asked: Body, action: FloatArray, *, others: bool
) -> Body:
    """The reasons for a question; asked: its candidate, its setting and what it measures.

    others: whether other questions are pending, which the decision takes into account
    """
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
        "price": mind.plan.target.size(float(found.price or 0.0)),
        "best": rival if found.price and rival else played,
        "expected": _expected(mind, found, action, asked["measure"], others=others),
    }


def _expected(
    mind: Mind, found: Decision, action: FloatArray, names: Sequence[str], *, others: bool
) -> dict[str, list[float]]:
    """Predictions of the results: estimate, low, high; pending questions are not taken into account."""
    policy, indices = mind.policy, [mind.plan.index(name) for name in names]
    if found.expected and not others and len(names) == 1 and (action == found.query.action).all():
        predicted = [found.expected]  # by the decision, from the same posterior
    else:
        queries = [Query(action, index) for index in indices]
        evidence = mind.state.evidence
        predicted = expected_feedback(policy.problem, policy.knobs.prior, evidence, queries)
    return {
        name: _in_units(mind, index, each)
        for name, index, each in zip(names, indices, predicted, strict=True)
    }


def _in_units(mind: Mind, index: int, expected: Interval) -> list[float]:
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
