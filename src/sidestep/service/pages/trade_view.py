"""What a template shows of the trade between effect and certainty: a picture, three lines, a table."""

from typing import Any

from sidestep.service.pages import svg
from sidestep.studies.advice import Best, Trade, Tradeoff
from sidestep.studies.cards.ask_card import change_text
from sidestep.studies.cards.tradeoff_card import trade_lines
from sidestep.studies.cards.words import named, percent, signed, with_unit
from sidestep.studies.plan import Plan


def trade_view(plan: Plan, best: Best, tradeoff: Tradeoff) -> dict[str, Any]:
    """The largest effect at every chance of staying within limits, the recommendation marked."""
    trades, target = tradeoff.trades, plan.target
    if not trades:
        return {"any": False}
    lines = trade_lines(plan, trades)
    chosen = next((each for each in trades if each.action == best.action), None)
    marked = [each for each, _ in lines if each is not None and each is not chosen]
    return {
        "any": True,
        "name": target.name,
        "unit": target.change_unit,
        "certainty": percent(best.certainty),
        "plot": svg.trade(target, trades, chosen, marked, best.certainty),
        "spoken": _spoken(plan, trades, chosen),
        "lines": [
            (
                svg.key("chosen" if trade is not None and trade is chosen else "other"),
                prose.lead,
                prose.text,
            )
            for trade, prose in lines
        ],
        "rows": [
            (percent(each.chance), change_text(target, each.effect[:3]), named(plan, each.action))
            for each in trades
        ],
    }


def _spoken(plan: Plan, trades: tuple[Trade, ...], chosen: Trade | None) -> str:
    """The picture in a sentence."""
    target, first, last = plan.target, trades[0], trades[-1]
    size = [
        with_unit(signed(each.effect.estimate, 1), target.change_unit) for each in (first, last)
    ]
    said = (
        f"From {size[0]} of {target.name} at a chance of {percent(first.chance)} of staying within "
        f"limits to {size[1]} at {percent(last.chance)}."
    )
    where = f" Recommended: {named(plan, chosen.action)}." if chosen else " Recommended: to stay."
    return said + where
