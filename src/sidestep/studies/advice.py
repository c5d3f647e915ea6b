"""The recommendation of a study as values, in its units; best_card.py has the sentences."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sidestep.studies.cards.card import Card, Printed
from sidestep.studies.factors import Setting

MOST_ROUNDS = 60  # of the estimate of the rounds left


class Effect(NamedTuple):
    """A change from the baseline in the unit of the outcome, with its interval (95% if not said).

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

    candidate     its number; None in a box
    action        its values: {"dose": 40.0, ...}
    effects       its effect on every outcome, by name
    probability   that it is the best; 0 if it is below 0.01
    """

    candidate: int | None
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


class Bend(NamedTuple):
    """A bend that the results show.

    outcome   whose effect bends
    factor    along which
    kind      "flattens", "steepens" or "turns" as the factor grows
    value     of the factor where it does so
    chance    that it bends in this direction
    """

    outcome: str
    factor: str
    kind: str
    value: float
    chance: float


@dataclass(frozen=True)
class Response:
    """What is believed of an outcome along one factor, with all others at the baseline.

    outcome    its name
    factor     its name
    values     of the factor, over its range
    effects    the change from the baseline at each of them, without what a setting does of its own
    measured   number of results of the outcome at each value of the factor, wherever the others were
    """

    outcome: str
    factor: str
    values: tuple[float, ...]
    effects: tuple[Effect, ...]
    measured: dict[float, int]

    def to_columns(self) -> dict[str, list[float]]:
        """Columns for a data frame: the factor, estimate, low and high."""
        columns = {self.factor: list(self.values)}
        for part in ("estimate", "low", "high"):
            columns[part] = [getattr(each, part) for each in self.effects]
        return columns


class Surprise(NamedTuple):
    """A result that may be grossly wrong.

    outcome   that was measured
    value     the result, or the change against its control
    action    where it was measured
    chance    that it says nothing
    """

    outcome: str
    value: float
    action: Setting
    chance: float


class Unexpected(NamedTuple):
    """An expectation that the results contradict.

    outcome   whose change was expected
    factor    over whose whole range
    low       the least change that would not have surprised; None: no limit
    high      the largest
    chance    that it is not as expected
    """

    outcome: str
    factor: str
    low: float | None
    high: float | None
    chance: float


class Trust(NamedTuple):
    """How far earlier studies are believed to speak of this one.

    studies   number of the earlier studies
    alike     chance that this one is like them; else it is a stranger
    """

    studies: int
    alike: float


class Unseen(NamedTuple):
    """A change of the factors together, whose effect nobody can see.

    outcome   that has results, none of which shows it; None: no two candidates differ by it
    change    of every factor that changes, in its unit
    """

    outcome: str | None
    change: dict[str, float]


class Leader(NamedTuple):
    """The setting that is hoped for most of those that are not recommended.

    candidate   its number; None in a box
    action      its values: {"dose": 40.0, ...}
    effects     its effect on every outcome, by name
    chance      that it is within all limits
    """

    candidate: int | None
    action: Setting
    effects: dict[str, Effect]
    chance: float


class Prospect(NamedTuple):
    """What is expected to be recommended after so many further results, over a few studies.

    results   number of further results
    mean      mean effect on the target, as it will be believed; staying counts as 0
    least     the smallest of the studies
    most      the largest
    moved     share of the studies that recommend more than the baseline
    """

    results: int
    mean: float
    least: float
    most: float
    moved: float


@dataclass(frozen=True)
class Outlook(Printed):
    """What further results are expected to buy. Prints as its card.

    prospects   one for every number of results
    card        the card
    """

    prospects: tuple[Prospect, ...]
    card: Card = field(repr=False)


class Trade(NamedTuple):
    """What is recommended where this chance of staying within all limits is enough.

    chance      of staying within all limits
    candidate   its number; None in a box
    action      its values: {"dose": 40.0, ...}
    effect      its effect on the target
    better      that it is better than the baseline
    """

    chance: float
    candidate: int | None
    action: Setting
    effect: Effect
    better: float


@dataclass(frozen=True)
class Tradeoff(Printed):
    """The largest effect that can be had at every chance of staying within limits. Prints as its card.

    trades   from the largest effect to the largest chance; empty: only the baseline can be recommended
    card     the card
    """

    trades: tuple[Trade, ...]
    card: Card = field(repr=False)

    def at(self, certainty: float) -> Trade | None:
        """What is recommended with this certainty; None: the baseline."""
        return next((each for each in self.trades if each.chance >= certainty), None)

    def to_columns(self) -> dict[str, list[Any]]:
        """Columns for a data frame: chance, candidate, factors, the effect on the target, better."""
        columns: dict[str, list[Any]] = {
            "chance": [each.chance for each in self.trades],
            "candidate": [each.candidate for each in self.trades],
        }
        for name in self.trades[0].action if self.trades else ():
            columns[name] = [each.action[name] for each in self.trades]
        for part in ("estimate", "low", "high"):
            columns[part] = [getattr(each.effect, part) for each in self.trades]
        columns["better"] = [each.better for each in self.trades]
        return columns


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
    better        probability of being better than the baseline; None: it is the baseline
    straight      probability of being within all limits if every effect were a straight line; of the
                  leader where the baseline is recommended; None: the study knows the shape
    leader        the most hopeful setting that is not recommended
    certainty     of limits, intervals and words
    probability   that it is the best candidate
    contenders    candidates that may be the best: itself first, then its rivals
    loss          loss of stopping now; None while an outcome was never measured
    enough        whether the mean loss is less than what matters; None: `matters` is not set
    rounds_left   the fewest and the most rounds until it is enough, if asked for; 60: or more
    unsettled     protected outcomes that are not settled, the least settled first
    settles       the one result that would settle most
    unmeasured    outcomes that were never measured; until they are, nothing is recommended
    unfirm        outcomes with too few results to vouch for a likely setting
    bends         bends that the results show, the surest first
    surprises     results that may be grossly wrong
    trust         how far earlier studies are believed to speak of this one; None: it learned from none
    unexpected    expectations that the results contradict, the surest first
    inside        how many results fell inside what was expected, and of how many something was
    news          whether an earlier version, which believed in straight lines, wrote all there is
    unseen        changes of the factors together whose effect nobody can see, or has seen
    counts        number of results, by outcome
    trades        what is recommended where 50, 80 and 95% of staying within limits are enough
    tried         the fewest results of any outcome at the recommended setting: whole visits there
    needed        fewest results that a first recommendation can rest on
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
    trades: tuple[Trade, ...] = ()
    tried: int = 0
    needed: int = 0
    certainty: float = 0.95
    better: float | None = None
    straight: float | None = None
    leader: Leader | None = None
    unmeasured: tuple[str, ...] = ()
    unfirm: tuple[str, ...] = ()
    bends: tuple[Bend, ...] = ()
    surprises: tuple[Surprise, ...] = ()
    trust: Trust | None = None
    unexpected: tuple[Unexpected, ...] = ()
    inside: tuple[int, int] = (0, 0)
    news: bool = False
    unseen: tuple[Unseen, ...] = ()
    card: Card = field(repr=False, default=Card("best", ""))

    @property
    def results(self) -> int:
        """Number of results it is based on."""
        return sum(self.counts.values())

    def __repr__(self) -> str:
        told = f"action={self.action}, candidate={self.candidate}, within={self.within}"
        return f"Best({told}, results={self.results})"
