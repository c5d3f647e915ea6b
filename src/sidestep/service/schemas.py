"""What programs may send: strict, with a range on every number, and nothing that is not known."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.people.tokens import MOST_DAYS
from sidestep.studies.values import LARGEST, LONGEST_NAME

NOT_TEXT = "must be a number without quotes and with a point for decimals, such as 1.5"


def _not_text(value: Any) -> Any:
    """Refuse a number in quotes with our own sentence: it may have a decimal comma."""
    if isinstance(value, str):
        raise ValueError(NOT_TEXT)
    return value


Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST), BeforeValidator(_not_text)]
Positive = Annotated[float, Field(gt=0, le=LARGEST), BeforeValidator(_not_text)]
Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Text = Annotated[str, Field(max_length=LONGEST_NAME)]
Reason = Annotated[str, Field(min_length=1, max_length=10_000)]
Row = Annotated[int, Field(ge=0, le=10_000)]
Value = bool | Number | Name  # of a factor: a yes or no, a number, or a word
Setting = Annotated[dict[Name, Value], Field(max_length=1000)]


def _pair(value: Any) -> Any:
    """JSON has no tuples."""
    return tuple(value) if isinstance(value, list) else value


Pair = Annotated[tuple[Number, Number], BeforeValidator(_pair)]
HalfPair = Annotated[tuple[Number | None, Number | None], BeforeValidator(_pair)]
Percent = Annotated[str, Field(pattern=r"^\s*[-+\u2212]?[\d.]+\s*%\s*$", max_length=LONGEST_NAME)]
HalfPercents = Annotated[tuple[Percent | None, Percent | None], BeforeValidator(_pair)]
Percents = Annotated[tuple[Percent, Percent], BeforeValidator(_pair)]
Log = Annotated[str, Field(pattern="^log$")]
Panel = (
    Annotated[int, Field(ge=1, le=100)]
    | Annotated[list[Name], Field(max_length=100)]
    | Annotated[str, Field(pattern="^all$")]
)


class Strict(BaseModel):
    """A number is a number, and nothing is left over."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    def told(self, *without: str) -> dict[str, Any]:
        """What was said, and only that."""
        return {name: getattr(self, name) for name in self.model_fields_set if name not in without}


class FactorIn(Strict):
    """Something that is set in a round."""

    name: Name
    low: Number | None = None
    high: Number | None = None
    unit: Text = ""
    step: Positive | None = None
    levels: Annotated[list[Value], Field(min_length=2, max_length=10_000)] | None = None
    baseline: Value | None = None
    scale: Log | None = None
    offset: Positive | None = None

    def factor(self) -> Factor:
        """As a study has it."""
        return Factor(**self.told())


class OutcomeIn(Strict):
    """Something that is measured."""

    name: Name
    unit: Text = ""
    goal: Annotated[str, Field(pattern="^(raise|lower)$")] | None = None
    baseline: Number | None = None
    range: Pair | None = None
    tolerance: Positive | Percent | HalfPair | HalfPercents | None = None
    penalty: Positive | None = None
    matters: Positive | Percent | None = None
    noise: Positive | Percent | Pair | Percents | None = None
    cost: Positive = 1.0
    digits: Annotated[int, Field(ge=0, le=9)] | None = None
    scale: Log | None = None
    never: HalfPair | None = None

    def outcome(self) -> Outcome:
        """As a study has it."""
        return Outcome(**self.told())


class Signed(Strict):
    """Something that is written; a program may say for whom."""

    actor: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class NewStudy(Signed):
    """A study to set up."""

    name: Name
    factors: Annotated[list[FactorIn], Field(min_length=1, max_length=100)]
    target: OutcomeIn
    protected: Annotated[list[OutcomeIn], Field(max_length=100)] = []
    candidates: dict[Name, Annotated[list[Value], Field(max_length=20_000)]] | None = None
    aim: Annotated[str, Field(pattern="^(within|clean)$")] = "within"
    rank: Annotated[int, Field(ge=1, le=100)] | None = None
    resolution: Positive | None = None
    shape: Annotated[str, Field(pattern="^(straight|smooth)$")] | None = None
    questions: Annotated[str, Field(pattern="^(decide|earn)$")] = "decide"
    panel: Panel = 1
    largest_step: dict[Name, Positive] | None = None
    caution: Annotated[float, Field(ge=0.5, lt=1)] | None = None
    expect: dict[Name, dict[Name, HalfPair | HalfPercents]] = {}
    learn_from: Annotated[list[Name], Field(max_length=100)] = []
    monotone: dict[Name, dict[Name, Annotated[str, Field(pattern="^(rises|falls)$")]]] = {}
    policy: Name | None = None
    knobs: dict[Name, JsonValue] = {}
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    vocabulary: Annotated[str, Field(pattern="^(clinic|experiment|lab)$")] = "experiment"
    title: Text = ""
    model: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    context: Annotated[list[FactorIn], Field(max_length=100)] = []

    def settings(self) -> dict[str, Any]:
        """What `Study.create` takes."""
        plain = self.told("actor", "name", "factors", "target", "protected", "context")
        return plain | {
            "factors": [factor.factor() for factor in self.factors],
            "target": self.target.outcome(),
            "protected": [outcome.outcome() for outcome in self.protected],
            "context": [factor.factor() for factor in self.context],
        }


class Ask(Signed):
    """A question to put; empty: a plain one."""

    new: bool = False
    purpose: Annotated[str, Field(pattern="^(learn|confirm)$")] = "learn"
    measure: Name | None = None
    panel: Panel | None = None
    measure_only: Annotated[list[Name], Field(max_length=100)] = []
    allowed: (
        Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=20_000)]
        | dict[Name, Pair | Annotated[list[Name | bool], Field(max_length=1000)] | Value]
        | None
    ) = None
    largest_step: dict[Name, Positive] | None = None
    price_cap: Positive | None = None
    context: Setting | None = None


class ReportIn(Strict):
    """A result: one of value, below and change."""

    value: Number | None = None
    below: Annotated[Number | None, Field(description="It is less than this.")] = None
    change: Annotated[
        Number | Percent | None,
        Field(description="Against a control measured side by side; in percent on a log scale."),
    ] = None
    se: Positive | Percent | None = None
    repeats: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    against: Setting | None = None


Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="such as 2026-11-18")]


class Answer(Signed):
    """A result, or one for every outcome of a panel."""

    value: (
        Number
        | Annotated[dict[Name, Number | ReportIn], Field(min_length=1, max_length=100)]
        | None
    ) = None
    below: Number | None = None
    change: Number | Percent | None = None
    se: Positive | Percent | None = None
    repeats: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    against: Setting | None = None
    block: Name | None = None
    on: Annotated[Day | None, Field(description="The day on which it was measured.")] = None
    measured: Name | None = None
    given: Setting | None = None
    context: Setting | None = None
    reason: Reason | None = None

    def told(self, *without: str) -> dict[str, Any]:
        """What was said, and only that."""
        said = super().told(*without)
        if isinstance(self.value, dict):
            said["value"] = {
                name: each.told() if isinstance(each, ReportIn) else each
                for name, each in self.value.items()
            }
        return said


class Correction(Signed):
    """What a result should be, and why."""

    value: Number | None = None
    below: Number | None = None
    change: Number | Percent | None = None
    se: Positive | Percent | None = None
    repeats: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    against: Setting | None = None
    block: Name | None = None
    reason: Reason
    measured: Name | None = None
    given: Setting | None = None
    row: Row | None = None  # of an import


class Withdrawal(Signed):
    """Why there will be no answer, or why it does not count."""

    reason: Reason
    row: Row | None = None  # of an import


class Closing(Signed):
    """How a study ends."""

    accept: bool = False
    overrule: Setting | None = None
    context: Setting | None = None
    reason: Reason | None = None


class Results(Signed):
    """Results from before, as columns of one length."""

    columns: Annotated[
        dict[Name, Annotated[list[Value | None], Field(max_length=10_000)]],
        Field(min_length=1, max_length=1000),
    ]
    again: bool = False  # also where an earlier import holds the same results


class NewToken(Strict):
    """A token to make: what it may do, where, and for how long."""

    name: Name
    roles: Annotated[list[Name], Field(min_length=1, max_length=5)]
    studies: Annotated[list[Name], Field(max_length=1000)] = []  # none: all
    days: Annotated[float, Field(gt=0, le=MOST_DAYS)] | None = None
