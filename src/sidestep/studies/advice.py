"""The recommendation of a study as values, in its units; best_card.py has the sentences."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sidestep.studies.cards.card import Card
from sidestep.studies.factors import Setting

MOST_ROUNDS = 200  # of the estimate of the rounds left


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
    probability: float  # of being the best; 0 if it is below 0.01


class Loss(NamedTuple):
    """Loss of stopping now, in the target's unit: the mean, and a bound with probability 0.95."""

    mean: float
    high: float


class Narrowing(NamedTuple):
    """The effect of more results of one outcome, at the recommended setting, on its interval."""

    outcome: str
    results: int | None  # results that would settle it if the estimate stays; None: no number would
    width: float  # half-length of its interval after these results


class Settling(NamedTuple):
    """The one result that would remove most of the uncertainty between recommendation and rival."""

    candidate: int | None
    action: Setting
    outcome: str
    share: float  # share of that variance that it removes


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
    clean: Effect | None = None  # effect that no protected outcome shares; for the aim "clean"
    within: bool | None = None  # whether it is assured to be within limits; None: aim "clean"
    chance: float | None = None  # probability of being within all limits
    probability: float | None = None
    contenders: tuple[Contender, ...] = ()  # itself first, then its rivals
    loss: Loss | None = None
    # whether the mean loss is less than what matters; None: `matters` is not set
    enough: bool | None = None
    rounds_left: tuple[int, int] | None = None  # the fewest and the most; MOST_ROUNDS: or more
    unsettled: tuple[Narrowing, ...] = ()  # the least settled first
    settles: Settling | None = None
    counts: dict[str, int] = field(default_factory=dict)  # results per outcome
    needed: int = 0  # results that a first recommendation needs
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
