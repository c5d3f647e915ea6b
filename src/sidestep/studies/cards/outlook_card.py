"""What further results are expected to buy with this set-up."""

from collections.abc import Sequence

from sidestep.studies.advice import Prospect
from sidestep.studies.cards.card import Card, Prose, Section, Table
from sidestep.studies.cards.words import counted, digits_of_change, percent, signed, with_unit
from sidestep.studies.plan import Plan


def outlook_card(plan: Plan, name: str, prospects: Sequence[Prospect], studies: int) -> Card:
    """A line for every number of results: how often something is recommended, and what it does."""
    target = plan.target
    digits = digits_of_change(target)

    def change(value: float) -> str:
        return with_unit(signed(value, digits), target.change_unit)

    table = Table(
        tuple(
            (
                str(each.results),
                percent(each.moved) if each.moved else "0%",
                change(each.mean),
                f"{signed(each.least, digits)} to {signed(each.most, digits)}",
            )
            for each in prospects
        ),
        head=("results", "more than the baseline", f"{target.name}, mean", "range"),
    )
    text = (
        f"{counted(studies, 'study', 'studies')} that go on in worlds drawn from what is believed now. "
        "What is told of noise, levels and shapes is taken as true."
    )
    return Card(
        kind="outlook",
        title="What further results are expected to buy",
        sections=(Section("", (table,)), Section("", (Prose(text),), spaced=True)),
        data={
            "study": name,
            "prospects": [each._asdict() for each in prospects],
            "studies": studies,
        },
    )
