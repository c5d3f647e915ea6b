"""What the results stand by: today's recommendation, and every candidate beside it."""

from collections.abc import Mapping

import numpy as np

from sidestep.core.actions import Arms
from sidestep.errors import InputError
from sidestep.policies.recommend import Recommendation, recommend
from sidestep.studies.advice import Best, Contender, Loss, Row
from sidestep.studies.book import Book
from sidestep.studies.factors import Setting, Value
from sidestep.studies.mind import Mind
from sidestep.studies.narrowing import narrowings
from sidestep.studies.plan import CLEAN

Context = Mapping[str, Value]


def advise(mind: Mind, book: Book, context: Context) -> Best:
    """What the results stand by today; its card is added by the study."""
    plan, counts = mind.plan, {name: count for name, count in book.counts.items() if count}
    needed = mind.dim + len(plan.outcomes) + 1
    if not counts:
        return Best(counts=counts, needed=needed)
    advice = recommend(mind.policy, mind.state, mind.actions(context))
    setting = setting_of_advice(mind, advice)
    effects = {
        outcome.name: mind.effect(index, advice.effects[index])
        for index, outcome in enumerate(plan.outcomes)
    }
    loss = Loss(*(end * plan.target.half for end in advice.loss))
    return Best(
        action=setting,
        candidate=advice.arm,
        effects=effects,
        clean=mind.effect(0, advice.reward) if plan.aim == CLEAN else None,
        within=advice.assured,
        probability=advice.probability,
        contenders=_contenders(mind, advice, setting),
        loss=loss,
        enough=None if plan.target.matters is None else loss.high <= plan.target.matters,
        unsettled=narrowings(mind, advice.action, effects, assured=advice.assured),
        counts=counts,
        needed=needed,
    )


def setting_of_advice(mind: Mind, advice: Recommendation) -> Setting:
    """What is recommended, in units."""
    if advice.arm is not None:
        return mind.plan.candidates.setting(advice.arm)
    return mind.scale.setting(advice.action)


def _contenders(mind: Mind, advice: Recommendation, setting: Setting) -> tuple[Contender, ...]:
    others = (
        Contender(rival.arm, mind.plan.candidates.setting(rival.arm), rival.probability)
        for rival in advice.rivals
    )
    return (Contender(advice.arm, setting, advice.probability), *others)


def explain(mind: Mind, book: Book, context: Context) -> list[Row]:
    """Every candidate with its effects, and how likely it is the best; the likeliest first."""
    actions = mind.actions(context)
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
