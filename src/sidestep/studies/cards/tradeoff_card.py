"""What more risk would buy: the largest effect at every chance of staying within limits."""

from collections.abc import Sequence

from sidestep.studies.advice import Trade
from sidestep.studies.cards.ask_card import change_text
from sidestep.studies.cards.card import Card, Prose, Section, Table
from sidestep.studies.cards.words import named, percent, with_unit
from sidestep.studies.plan import Plan

SHOWN = (0.5, 0.8, 0.95)  # certainties that the card of a recommendation names
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
    return Card(
        kind="tradeoff",
        title="What more risk would buy",
        aside=f"{len(kept)} of {len(trades)}" if len(kept) < len(trades) else "",
        sections=(
            *((Section("", trade_lines(plan, trades)),) if trades else ()),
            Section("", (table if trades else nothing,), spaced=bool(trades)),
            *((Section("", (Prose(text),), spaced=True),) if trades else ()),
        ),
        data={"study": name, "trades": [_data(each) for each in trades]},
    )


def trade_lines(plan: Plan, trades: Sequence[Trade]) -> tuple[Prose, ...]:
    """What each of three certainties buys: the effect, and the setting that has it."""
    return tuple(
        Prose(
            "nothing but the baseline." if trade is None else _bought_text(plan, trade),
            lead=f"At least {percent(certainty)} likely within limits:",
        )
        for certainty, trade in zip(SHOWN, shown_of(trades), strict=True)
    )


def shown_of(trades: Sequence[Trade]) -> list[Trade | None]:
    """What is recommended with each of the three certainties; None: the baseline."""
    return [next((t for t in trades if t.chance >= each), None) for each in SHOWN]


def _bought_text(plan: Plan, trade: Trade) -> str:
    return f"{plan.target.name} {_effect_text(plan, trade)} with {named(plan, trade.action)}."


def _effect_text(plan: Plan, trade: Trade) -> str:
    return with_unit(change_text(plan.target, trade.effect[:3]), plan.target.change_unit)


def _data(trade: Trade) -> dict[str, object]:
    return {**trade._asdict(), "effect": trade.effect._asdict()}
