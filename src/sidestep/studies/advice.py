"""What a study recommends today, in its units; values only, the sentences are in best_card.py."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sidestep.studies.cards.card import Card
from sidestep.studies.factors import Setting

MOST_ROUNDS = 200  # that are looked ahead


class Effect(NamedTuple):
    """A change from the baseline in the unit of the outcome, with its 95% interval."""

    estimate: float
    low: float
    high: float
    verdict: str | None = None  # of a protected outcome: "within", "beyond", "not settled"


class Contender(NamedTuple):
    """A candidate that may be the best."""

    candidate: int | None
    action: Setting
    probability: float


class Row(NamedTuple):
    """A candidate as `explain` lists it."""

    candidate: int
    action: Setting
    effects: dict[str, Effect]
    probability: float  # of being the best; 0 where it is below one in a hundred


class Loss(NamedTuple):
    """What stopping now gives up, in the target's unit: on average, and at most 19 times in 20."""

    mean: float
    high: float


class Narrowing(NamedTuple):
    """What more results of one outcome, at what is recommended, would do for it."""

    outcome: str
    results: int | None  # that would settle it, its estimate as it is; None: none here would
    width: float  # half of the interval then


class Settling(NamedTuple):
    """The one result that would settle most of what is contested."""

    candidate: int | None
    action: Setting
    outcome: str
    share: float  # of the doubt that it removes


@dataclass(frozen=True)
class Explanation:
    """Every candidate, the most probable best first. Prints as a card of the first few."""

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

    def to_json(self) -> dict[str, Any]:
        """All rows for a program."""
        return self.card.to_json()

    def __repr__(self) -> str:
        first = f", first no. {self.rows[0].candidate}" if self.rows else ""
        return f"Explanation({len(self.rows)} candidates{first})"

    def __str__(self) -> str:
        return str(self.card)

    def _repr_html_(self) -> str:
        return self.card._repr_html_()


@dataclass(frozen=True)
class Best:
    """The recommendation if the study stopped today. Prints as its card."""

    action: Setting | None = None  # None: there are no results yet
    candidate: int | None = None
    effects: dict[str, Effect] = field(default_factory=dict)
    clean: Effect | None = None  # part of the goal that runs through nothing protected; aim "clean"
    within: bool | None = None  # whether it is known to be within limits; None: that is not the aim
    chance: float | None = None  # probability of being within all of them
    probability: float | None = None
    contenders: tuple[Contender, ...] = ()  # itself first, then its rivals
    loss: Loss | None = None
    enough: bool | None = (
        None  # whether its mean is less than what matters; None: that was not said
    )
    rounds_left: tuple[int, int] | None = None  # the fewest and the most; MOST_ROUNDS: or more
    unsettled: tuple[Narrowing, ...] = ()  # the least settled first
    settles: Settling | None = None
    counts: dict[str, int] = field(default_factory=dict)  # results per outcome
    needed: int = 0  # results that a first recommendation takes
    card: Card = field(repr=False, default=Card("best", ""))

    @property
    def results(self) -> int:
        """Number of results it is based on."""
        return sum(self.counts.values())

    def to_json(self) -> dict[str, Any]:
        """The recommendation for a program."""
        return self.card.to_json()

    def __repr__(self) -> str:
        told = f"action={self.action}, candidate={self.candidate}, within={self.within}"
        return f"Best({told}, results={self.results})"

    def __str__(self) -> str:
        return str(self.card)

    def _repr_html_(self) -> str:
        return self.card._repr_html_()
