"""Computes today's recommendation and the table of all candidates."""

from collections.abc import Mapping

import numpy as np

from sidestep.core.actions import Arms
from sidestep.core.arrays import FloatArray
from sidestep.errors import InputError
from sidestep.policies.advice.recommend import Recommendation, recommend
from sidestep.policies.advice.rounds_left import rounds_left
from sidestep.studies.advice import (
    MOST_ROUNDS,
    Best,
    Contender,
    Effect,
    Loss,
    Narrowing,
    Row,
    Settling,
)
from sidestep.studies.book import Book
from sidestep.studies.factors import Setting, Value
from sidestep.studies.mind import Mind
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import CLEAN

Context = Mapping[str, Value]


def advise(mind: Mind, book: Book, context: Context) -> Best:
    """Today's recommendation; the study adds its card."""
    plan, counts = mind.plan, {name: count for name, count in book.counts.items() if count}
    needed = mind.dim + len(plan.outcomes) + 1
    if not counts:
        return Best(counts=counts, needed=needed)
    advice = recommend(mind.policy, mind.state, mind.scale.actions(context))
    setting = setting_of(mind, advice.arm, advice.action)
    effects = {
        outcome.name: mind.effect(index, advice.effects[index])
        for index, outcome in enumerate(plan.outcomes)
    }
    loss = Loss(*(plan.target.size(end) for end in advice.loss))
    return Best(
        action=setting,
        candidate=advice.arm,
        effects=effects,
        clean=mind.effect(0, advice.reward) if plan.aim == CLEAN else None,
        within=advice.assured,
        chance=advice.within,
        probability=advice.probability,
        contenders=_contenders(mind, advice, setting),
        loss=loss,
        enough=None if plan.target.matters is None else loss.mean < plan.target.matters,
        unsettled=_unsettled(mind, advice, effects),
        settles=_settles(mind, advice),
        counts=counts,
        needed=needed,
    )


def look_ahead(mind: Mind, context: Context) -> tuple[int, int]:
    """Roughly how many rounds are left, from the fewest to the most (policies/advice/rounds_left.py)."""
    target = mind.plan.target
    if target.matters is None:
        raise InputError(
            f"how many rounds are left needs what matters of {target.name}, got none in this study"
        )
    matters = target.change_scaled(target.matters)
    found = rounds_left(
        mind.policy, mind.state, mind.scale.actions(context), matters=matters, at_most=MOST_ROUNDS
    )
    return found.low, found.high


def setting_of(mind: Mind, arm: int | None, action: FloatArray) -> Setting:
    """An action in units: a candidate, or a point of the box."""
    return mind.scale.setting(action) if arm is None else mind.plan.candidates.setting(arm)


def _unsettled(
    mind: Mind, advice: Recommendation, effects: Mapping[str, Effect]
) -> tuple[Narrowing, ...]:
    """The effect of more results on outcomes that are not settled, the widest in tolerances first."""
    outcomes = mind.plan.outcomes
    found = [
        Narrowing(outcomes[each.vector].name, each.more, outcomes[each.vector].size(each.half))
        for each in advice.unsettled
    ]

    def width(each: Narrowing) -> float:
        effect = effects[each.outcome]
        return (effect.high - effect.low) / _tolerance(mind.plan.outcome(each.outcome))

    return tuple(sorted(found, key=width, reverse=True))


def _tolerance(outcome: Outcome) -> float:
    """The nearer limit; without limits, the outcome's scale."""
    limits = [abs(limit) for limit in outcome.limits if limit]
    return min(limits) if limits else outcome.size(1.0)


def _settles(mind: Mind, advice: Recommendation) -> Settling | None:
    found = advice.settles
    if found is None:
        return None
    setting = setting_of(mind, found.arm, found.action)
    return Settling(found.arm, setting, mind.plan.outcomes[found.vector].name, found.share)


def _contenders(mind: Mind, advice: Recommendation, setting: Setting) -> tuple[Contender, ...]:
    others = (
        Contender(rival.arm, mind.plan.candidates.setting(rival.arm), rival.probability)
        for rival in advice.rivals
    )
    return (Contender(advice.arm, setting, advice.probability), *others)


def explain(mind: Mind, book: Book, context: Context) -> list[Row]:
    """Every candidate with its effects and its probability of being the best, the most probable first."""
    actions = mind.scale.actions(context)
    if not isinstance(actions, Arms):
        raise InputError("explain needs candidates to list, got the box of ranges")
    best = advise(mind, book, context)
    likely = {each.candidate: each.probability for each in best.contenders}
    effects = mind.effects(np.asarray(actions.vectors))
    rows = [
        Row(
            number,
            mind.plan.candidates.setting(number),
            {name: each[number] for name, each in effects.items()},
            likely.get(number, 0.0),
        )
        for number in range(len(actions))
    ]
    sign, target = mind.plan.target.sign, mind.plan.target.name
    return sorted(rows, key=lambda row: (-row.probability, -sign * row.effects[target].estimate))
