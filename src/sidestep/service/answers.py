"""What programs get: the shape of every answer, for the description of the interface."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

JsonObject = dict[str, Any]
Time = Annotated[str, Field(description="UTC")]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Open(BaseModel):
    """More may come with a later version."""

    model_config = ConfigDict(extra="allow")


class ProblemOut(Open):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] = []


class CardOut(Open):
    """What a person reads; `Accept: text/plain` gives it as text."""

    kind: str
    title: str
    aside: str
    sections: list[JsonObject]


class TicketOut(Open):
    """A question: what to do, what to measure, and what is needed to judge it."""

    ticket: int
    study: str
    round: int
    action: JsonObject
    candidate: int | None
    measure: list[str]
    purpose: str
    effects: JsonObject
    card: CardOut


class ReceiptOut(Open):
    """What was saved, as which entries; `repeated`: it was on record already."""

    study: str
    repeated: bool
    entries: list[JsonObject]
    card: CardOut


class BestOut(Open):
    """What the study recommends today."""

    study: str
    action: JsonObject | None
    candidate: int | None
    effects: JsonObject
    contenders: list[JsonObject]
    counts: dict[str, int]
    results: int
    card: CardOut


class ExplanationOut(Open):
    """Every candidate."""

    study: str
    rows: list[JsonObject]
    card: CardOut


class TradeoffOut(Open):
    """The largest effect at every chance of staying within limits."""

    study: str
    trades: list[JsonObject]
    card: CardOut


class HeadOut(Open):
    """A study in a list: where it stands, and whose turn it is."""

    study: str
    title: str
    status: str
    turn: Annotated[str, Field(description="ask, answer or closed")]
    open: int
    results: int
    entries: int
    hash: Hash
    updated: Time


class StudyOut(Open):
    """A study: how it was set up, and where it stands."""

    study: str
    status: str
    results: int
    rounds: int
    counts: dict[str, int]
    open: list[JsonObject]
    entries: int
    hash: Hash
    updated: Time
    config: JsonObject
    card: CardOut


class StudiesOut(Open):
    """One page of studies; `next` goes on."""

    studies: list[HeadOut]
    next: str | None


class EventOut(Open):
    """An entry of the record."""

    seq: int
    kind: str
    ticket: int | None
    outcome: str | None
    body: JsonObject
    actor: str | None
    reason: str | None
    at: Time
    hash: Hash


class VerdictOut(Open):
    """Whether the record is whole, and what was found where it is not."""

    study: str
    holds: bool
    events: int
    hash: Hash
    flaws: list[JsonObject]
    card: CardOut


class HistoryOut(Open):
    """One page of the record, oldest first; `next` goes on."""

    events: list[EventOut]
    next: int | None


class TokenOut(Open):
    """A token; what to show is said once, when it is made."""

    id: str
    name: str
    roles: list[str]
    studies: list[str]
    created: Time
    expires: Time | None
    revoked: Time | None
    token: str | None = None


class TokensOut(Open):
    """Every token."""

    tokens: list[TokenOut]
