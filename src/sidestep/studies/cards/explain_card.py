"""The candidates side by side: what each does to every outcome, and how likely it is the best."""

from sidestep.studies.advice import Effect, Row
from sidestep.studies.cards.card import BEYOND, OPEN, WITHIN, Card, Prose, Section, Table
from sidestep.studies.cards.words import digits_of_change, named, percent, signed
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan

SHAPES = {WITHIN: "●", OPEN: "◐", BEYOND: "▲", None: ""}


def explain_card(plan: Plan, name: str, rows: tuple[Row, ...], top: int = 8) -> Card:
    """The first few candidates as a table; all of them for a program."""
    shown = rows[:top]
    table = Table(
        rows=tuple(
            line
            for row in shown
            for line in (
                (named(plan, row.action),),
                (
                    "" if row.candidate is None else str(row.candidate),
                    *(_effect_text(each, row.effects[each.name]) for each in plan.outcomes),
                    percent(row.probability) if row.probability else "<1%",
                ),
            )
        ),
        head=("no.", *(outcome.name for outcome in plan.outcomes), "best"),
    )
    limits = any(outcome.tolerance is not None for outcome in plan.protected)
    shapes = " ● within limits, ◐ not settled, ▲ beyond limits." if limits else ""
    legend = (
        f"A {plan.words.candidate} is named by what differs from the baseline. Effects are changes "
        f"from the baseline.{shapes} "
        "best: how likely it is the best."
    )
    return Card(
        kind="explain",
        title=f"The {plan.words.candidates}",
        aside=f"{len(shown)} of {len(rows)}",
        sections=(Section("", (table,)), Section("", (Prose(legend),), spaced=True)),
        data={"study": name, "rows": [_row_data(row) for row in rows]},
    )


def _effect_text(outcome: Outcome, effect: Effect) -> str:
    return f"{signed(effect.estimate, digits_of_change(outcome))} {SHAPES[effect.verdict]}".strip()


def _row_data(row: Row) -> dict[str, object]:
    effects = {name: effect._asdict() for name, effect in row.effects.items()}
    return {**row._asdict(), "effects": effects}
