"""The recommendation of a study as values, in its units; best_card.py has the sentences."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sidestep.studies.cards.card import Card, Printed
from sidestep.studies.factors import Setting

MOST_ROUNDS = 200  # of the estimate of the rounds left


class Effect(NamedTuple):
    """A change from the baseline in the unit of the outcome, with its 95% interval.

    estimate    the estimated change
    low, high   the ends of the interval
    verdict     of a protected outcome with a tolerance: "within", "beyond" or "not settled"
    """

    estimate: float
    low: float
    high: float
    verdict: str | None = None


class Contender(NamedTuple):
    """A candidate that may be the best.

    candidate     its number; None in a box
    action        its values: {"dose": 40.0, ...}
    probability   that it is the best
    """

    candidate: int | None
    action: Setting
    probability: float


class Row(NamedTuple):
    """A candidate as `explain` lists it.

    candidate     its number
    action        its values: {"dose": 40.0, ...}
    effects       its effect on every outcome, by name
    probability   that it is the best; 0 if it is below 0.01
    """

    candidate: int
    action: Setting
    effects: dict[str, Effect]
    probability: float


class Loss(NamedTuple):
    """Loss of stopping now, in the target's unit.

    mean   its mean
    high   a bound that holds with probability 0.95
    """

    mean: float
    high: float


class Narrowing(NamedTuple):
    """The effect of more results of one outcome, at the recommended setting, on its interval.

    outcome   name of the outcome
    results   number of results that would settle it if the estimate stays; None: no number would
    width     half-length of its interval after these results
    """

    outcome: str
    results: int | None
    width: float


class Settling(NamedTuple):
    """The one result that would remove most of the uncertainty between recommendation and rival.

    candidate   where it is measured; None in a box
    action      its values: {"dose": 40.0, ...}
    outcome     what is measured
    share       share of that variance that it removes
    """

    candidate: int | None
    action: Setting
    outcome: str
    share: float


@dataclass(frozen=True)
class Explanation(Printed):
    """Every candidate, the most probable best first. Prints as a card of the first few.

    rows   a `Row` for every candidate
    card   the card
    """

    rows: tuple[Row, ...]
    card: Card = field(repr=False)

    def to_columns(self) -> dict[str, list[Any]]:
        """Columns for a data frame: factors, effects with intervals, verdicts, probability."""
        columns: dict[str, list[Any]] = {"candidate": [row.candidate for row in self.rows]}
        for name in self.rows[0].action:
            columns[name] = [row.action[name] for row in self.rows]
        for name in self.rows[0].effects:
            for part in ("estimate", "low", "high", "verdict"):
                columns[f"{name} {part}"] = [getattr(row.effects[name], part) for row in self.rows]
        columns["probability"] = [row.probability for row in self.rows]
        return columns

    def __repr__(self) -> str:
        first = f", first no. {self.rows[0].candidate}" if self.rows else ""
        return f"Explanation({len(self.rows)} candidates{first})"


@dataclass(frozen=True)
class Best(Printed):
    """The recommendation if the study stopped today. Prints as its card.

    action        what to set: {"dose": 40.0, ...}; None: there are no results yet
    candidate     its number; None in a box
    effects       its effect on every outcome, by name
    clean         effect on the target that no protected outcome shares; for the aim "clean"
    within        whether it is assured to be within limits; None: aim "clean"
    chance        probability of being within all limits
    probability   that it is the best candidate
    contenders    candidates that may be the best: itself first, then its rivals
    loss          loss of stopping now
    enough        whether the mean loss is less than what matters; None: `matters` is not set
    rounds_left   the fewest and the most rounds until it is enough, if asked for; 200: or more
    unsettled     protected outcomes that are not settled, the least settled first
    settles       the one result that would settle most
    counts        number of results, by outcome
    needed        number of results that a first recommendation needs
    card          the card
    """

    action: Setting | None = None
    candidate: int | None = None
    effects: dict[str, Effect] = field(default_factory=dict)
    clean: Effect | None = None
    within: bool | None = None
    chance: float | None = None
    probability: float | None = None
    contenders: tuple[Contender, ...] = ()
    loss: Loss | None = None
    enough: bool | None = None
    rounds_left: tuple[int, int] | None = None
    unsettled: tuple[Narrowing, ...] = ()
    settles: Settling | None = None
    counts: dict[str, int] = field(default_factory=dict)
    needed: int = 0
    card: Card = field(repr=False, default=Card("best", ""))

    @property
    def results(self) -> int:
        """Number of results it is based on."""
        return sum(self.counts.values())

    def __repr__(self) -> str:
        told = f"action={self.action}, candidate={self.candidate}, within={self.within}"
        return f"Best({told}, results={self.results})"
