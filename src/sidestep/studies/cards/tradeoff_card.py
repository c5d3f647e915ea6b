"""What more risk would buy: the largest effect at every chance of staying within limits."""

from collections.abc import Sequence

from sidestep.studies.advice import Trade
from sidestep.studies.cards.ask_card import change_text
from sidestep.studies.cards.card import Card, Prose, Section, Table
from sidestep.studies.cards.words import named, percent, with_unit
from sidestep.studies.plan import Plan

SHOWN = (0.5, 0.8, 0.95)  # certainties that are named, here and on the card of a recommendation
MOST = 12  # lines of the card


def tradeoff_card(plan: Plan, name: str, trades: Sequence[Trade]) -> Card:
    """The whole curve as a table, thinned out to a few lines."""
    step = max(1, -(-len(trades) // MOST))
    kept = [*trades[::step], *trades[-1:]] if (len(trades) - 1) % step else list(trades[::step])
    table = Table(
        tuple(
            (percent(each.chance), _effect_text(plan, each), named(plan, each.action))
            for each in kept
        ),
        head=("within", plan.target.name, plan.words.candidate),
    )
    outcomes = plan.words.outcomes
    text = (
        f"within: how likely all {outcomes} stay within their limits. Every line has the largest "
        f"effect that can be had with at least that chance."
    )
    nothing = Prose(
        f"Nothing but the baseline is likelier than not to keep all {outcomes} within limits."
    )
    said = tuple(prose for _, prose in trade_lines(plan, trades))
    return Card(
        kind="tradeoff",
        title="What more risk would buy",
        aside=f"{len(kept)} of {len(trades)}" if len(kept) < len(trades) else "",
        sections=(
            *((Section("", said),) if said else ()),
            Section("", (table if trades else nothing,), spaced=bool(trades)),
            *((Section("", (Prose(text),), spaced=True),) if trades else ()),
        ),
        data={"study": name, "trades": [trade_data(each) for each in trades]},
    )


def trade_lines(plan: Plan, trades: Sequence[Trade]) -> list[tuple[Trade | None, Prose]]:
    """What 50, 80 and 95% buy: the effect and the setting that has it, or nothing but the baseline.

    What a larger certainty buys too is said once.
    """
    kept = [next((t for t in trades if t.chance >= each), None) for each in SHOWN]
    lines: list[tuple[Trade | None, Prose]] = []
    for place, (certainty, trade) in enumerate(zip(SHOWN, kept, strict=True)):
        if trade is None and place == 0:
            return []
        if trade is not None and trade in kept[place + 1 :]:
            continue
        text = "nothing but the baseline." if trade is None else _bought_text(plan, trade)
        if trade is not None and trade is kept[0] and place == len(SHOWN) - 1:
            text += " More risk would buy nothing more."
        if trade is None and place < len(SHOWN) - 1 and kept[place + 1] is None:
            lead = f"At least {percent(certainty)} likely within limits, or more:"
            return [*lines, (None, Prose(text, lead=lead))]
        lines.append(
            (trade, Prose(text, lead=f"At least {percent(certainty)} likely within limits:"))
        )
    return lines


def _bought_text(plan: Plan, trade: Trade) -> str:
    return f"{plan.target.name} {_effect_text(plan, trade)} with {named(plan, trade.action)}."


def _effect_text(plan: Plan, trade: Trade) -> str:
    return with_unit(change_text(plan.target, trade.effect[:3]), plan.target.change_unit)


def trade_data(trade: Trade) -> dict[str, object]:
    """A trade as JSON."""
    return {**trade._asdict(), "effect": trade.effect._asdict()}
