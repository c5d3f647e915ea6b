"""What a study returns: a question, and the receipt of a result. Both print as their card."""

from dataclasses import dataclass, field

from sidestep.studies.cards.card import Card, Printed
from sidestep.studies.factors import Setting
from sidestep.studies.plan import Plan


@dataclass(frozen=True)
class Ticket(Printed):
    """A question: what to do, and what to measure. Prints as its card.

    id          number of the question, for `tell`
    round       number of the round, from 1
    action      what to set: {"dose": 40.0, ...}
    candidate   its number in the table or grid; None in a box
    measure     the outcome to measure, or several for a panel
    card        question, reasons and expectations, for terminal, page and program

    >>> from sidestep import Factor, Outcome, Study
    >>> study = Study.create(
    ...     "one", "memory:", factors=[Factor("dose", 0, 4, step=1)],
    ...     target=Outcome("effect", goal="raise", range=(0, 10)),
    ... )
    >>> study.ask().measure
    'effect'
    """

    id: int  # number of its entry in the record
    round: int
    action: Setting
    candidate: int | None  # its number; None in a box
    measure: str | tuple[str, ...]  # one outcome, or a panel
    card: Card = field(repr=False)


def ticket_of(plan: Plan, card: Card) -> Ticket:
    """The ticket of the question on a card."""
    data, panel = card.data, tuple(card.data["measure"])
    return Ticket(
        id=data["ticket"],
        round=data["round"],
        action={factor.name: data["action"][factor.name] for factor in plan.factors},
        candidate=data["candidate"],
        measure=panel[0] if len(panel) == 1 else panel,
        card=card,
    )


@dataclass(frozen=True)
class Receipt(Printed):
    """What was saved, and the numbers of its entries in the record.

    entries    numbers of the entries
    ticket     number of the question; None without one
    repeated   whether it was on record already, so that nothing was written
    card       the card
    """

    entries: tuple[int, ...]
    ticket: int | None
    repeated: bool
    card: Card = field(repr=False)


def receipt_of(card: Card) -> Receipt:
    """The receipt of what a card says was saved."""
    entries = card.data["entries"]
    numbers = tuple(each["entry"] for each in entries)
    return Receipt(numbers, entries[0]["ticket"], card.data["repeated"], card)
