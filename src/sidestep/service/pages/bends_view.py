"""What a template shows of bends: each as a sentence, a picture and a table."""

from typing import Any

from sidestep.service.pages import svg
from sidestep.studies.advice import Best, Response
from sidestep.studies.cards.ask_card import change_text
from sidestep.studies.cards.best_card import bend_text
from sidestep.studies.cards.words import counted, plain, with_unit
from sidestep.studies.plan import Plan
from sidestep.studies.values import rounded_value

EVERY = 5  # of the values that the picture is drawn through, in its table


def bends_view(plan: Plan, best: Best, responses: list[Response]) -> list[dict[str, Any]]:
    """Every bend that the results show, in the order of the recommendation's sentences."""
    shown = []
    for bend, along in zip(best.bends, responses, strict=True):
        outcome = plan.outcome(bend.outcome)
        factor = next(each for each in plan.factors if each.name == bend.factor)
        said = bend_text(plan, bend)
        shown.append(
            {
                "lead": said.lead,
                "text": said.text,
                "unit": outcome.change_unit,
                "plot": svg.response(outcome, factor, along, bend.value),
                "ends": [
                    with_unit(plain(end), factor.unit)
                    for end in (factor.low or 0, factor.high or 0)
                ],
                "factor": factor.name,
                "outcome": outcome.name,
                "measured": ", ".join(
                    f"{plain(value)} ({counted(count, 'result')})"
                    for value, count in along.measured.items()
                ),
                "rows": [
                    (plain(rounded_value(value)), change_text(outcome, effect[:3]))
                    for value, effect in list(zip(along.values, along.effects, strict=True))[
                        ::EVERY
                    ]
                ],
            }
        )
    return shown
