"""What a template shows of a question, of an effect, of the record: words of the cards, and pictures."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from sidestep.service.pages import svg
from sidestep.studies.advice import Effect
from sidestep.studies.book import Question
from sidestep.studies.cards.ask_card import (
    baseline_text,
    chance_text,
    changes_text,
    expect_text,
    fence_text,
    is_best,
    loss_text,
    price_text,
    reason_text,
    risk_text,
    step_text,
    why_text,
)
from sidestep.studies.cards.card import VERDICTS, verdict_of
from sidestep.studies.cards.doubt import asked_twice_text
from sidestep.studies.cards.list_card import age_text
from sidestep.studies.cards.markup import Markup
from sidestep.studies.cards.words import (
    MINUS,
    counted,
    digits_of,
    digits_of_change,
    limit_text,
    listed,
    number,
    percent,
    plain,
    signed,
    with_unit,
)
from sidestep.studies.factors import Factor, Value
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import Plan

ARROWS = {"up": "↑", "down": "↓", "before:": "→", "baseline:": "→"}  # by the first word of a change
OLD = 14.0  # days after which an open question is called late


class Given(NamedTuple):
    """One factor of a question."""

    name: str
    value: str
    unit: str
    change: str  # "up from 30"
    arrow: str
    factor: Factor


class EffectRow(NamedTuple):
    """One outcome of a table of effects."""

    name: str
    unit: str
    limit: str
    change: str
    interval: str
    verdict: str  # its words
    tone: str
    mark: Markup
    gauge: Markup
    level: str  # of the goal: to about 137
    is_goal: bool


class Share(NamedTuple):
    """How much of the doubt one outcome would remove."""

    name: str
    text: str
    bar: Markup
    chosen: bool


class Field(NamedTuple):
    """Where one result of a question is typed."""

    name: str
    label: str
    unit: str
    hint: str
    example: str  # of what may be typed
    place: int  # of the outcome


def question_view(plan: Plan, question: Question) -> dict[str, Any]:
    """Everything that the card of a question shows."""
    body, words = question.body, plan.words
    return {
        "id": question.id,
        "round": f"{words.round} {body['round']}",
        "measure": listed(list(question.panel)),
        "awaited": listed(list(question.waiting)),
        "only": len(question.panel) == 1,
        "learning": body.get("phase") == "explore",
        "confirming": body.get("purpose") == "confirm",
        "given": given_rows(plan, body),
        "fields": [field_of(plan, name, body) for name in question.waiting],
        "others": [
            field_of(plan, each.name, body)
            for each in plan.outcomes
            if each.name not in question.panel
        ],
        "outstanding": listed(list(question.waiting)) if is_partly(question) else "",
        "changes": said_changes(plan, body),
        "why": _why(plan, body),
        "decides": "changes" in body,
        "shares": share_rows(body),
        "price": noted_price(plan, body),
        "chance": chance_text(plan, body),
        "told": "" if noted_price(plan, body) else price_text(plan, body),
        "risk": "" if "changes" in body else risk_text(plan),
        "baseline": baseline_text(plan) if body["action"] == plan.baseline else "",
        "effects": effect_rows(plan, _effects(plan, body["effects"])),
        "fence": fence_text(plan, body),
        "asked": f"asked {age_text(question.at)} by {question.actor}",
        "at": question.at,
        "by": question.actor,
        "context": [(name, plain(value)) for name, value in (body.get("context") or {}).items()],
    }


def given_rows(plan: Plan, body: Mapping[str, Any]) -> list[Given]:
    """What to do, with the change from last time."""
    rows = []
    for factor in plan.factors:
        change = step_text(plan, body, factor)
        arrow = ARROWS.get(change.split(" ")[0], "")
        value = plain(body["action"][factor.name])
        rows.append(Given(factor.name, value, factor.unit, change, arrow, factor))
    return rows


def field_of(plan: Plan, name: str, body: Mapping[str, Any]) -> Field:
    """Where a result is typed, with what is expected and what would be asked twice."""
    outcome = plan.outcome(name)
    expected = (body.get("expected") or {}).get(name)
    hint = asked_twice_text(outcome, expected)
    if expected:
        hint = f"Expected {expect_text(outcome, expected)}. {hint}"
    return Field(name, capital(name), outcome.unit, hint, plausible_text(outcome), plan.index(name))


def share_rows(body: Mapping[str, Any]) -> list[Share]:
    """How much of the doubt every outcome would remove, most first."""
    found = sorted((body.get("shares") or {}).items(), key=lambda item: -item[1])
    most = max((share for _, share in found), default=0.0)
    return [
        Share(name, percent(share), svg.bar(share, most), name in body["measure"])
        for name, share in found
    ]


def is_partly(question: Question) -> bool:
    """Whether some of a panel was told, so that the next question need not wait."""
    return question.waiting != question.panel


def said_changes(plan: Plan, body: Mapping[str, Any]) -> str:
    """What the answer could change, as the card says it; empty where it says something else."""
    if "changes" not in body or not body["results"]:
        return ""
    changes = changes_text(plan, body)
    return changes if changes in reason_text(plan, body, beside=False) else ""


def _why(plan: Plan, body: Mapping[str, Any]) -> str:
    """The reasons; what the answer could change stands before, and so do price and chance with it.

    The shares have a picture, and a price that matters has its own note.
    """
    if not body["results"]:
        return why_text(plan, body)
    reason = reason_text(plan, body, beside=False)
    if changes := said_changes(plan, body):
        return reason.replace(changes, "").strip()
    price = chance_text(plan, body) if noted_price(plan, body) else price_text(plan, body)
    return f"{reason} {price}".strip()


def noted_price(plan: Plan, body: Mapping[str, Any]) -> str:
    """What a round costs that is for learning, or that costs more than matters: 2.1 mmHg."""
    price, matters = body.get("price"), plan.target.matters
    if price is None or price <= 0 or is_best(body, body) or not body["results"]:
        return ""
    if body.get("phase") != "explore" and (matters is None or price <= matters):
        return ""
    return loss_text(plan.target, price)


def effect_rows(plan: Plan, effects: Mapping[str, Effect], *, goal: bool = True) -> list[EffectRow]:
    """The outcomes with their changes, against their limits."""
    return [
        _effect_row(outcome, effects[outcome.name], is_goal=outcome is plan.target)
        for outcome in plan.outcomes
        if goal or outcome is not plan.target
    ]


def _effect_row(outcome: Outcome, effect: Effect, *, is_goal: bool) -> EffectRow:
    digits = digits_of_change(outcome)
    estimate, low, high = (signed(end, digits) for end in effect[:3])
    words = "the goal" if is_goal else VERDICTS.get(effect.verdict or "", "")
    level = ""
    if is_goal and outcome.baseline is not None:
        told = outcome.sign * outcome.change_scaled(effect.estimate)
        level = f"to about {number(outcome.value(told), digits_of(outcome))}"
    return EffectRow(
        name=outcome.name,
        unit=outcome.change_unit,
        limit=f"limit {with_unit(limit_text(outcome), outcome.change_unit)}"
        if outcome.tolerance
        else "",
        change=estimate,
        interval=f"{low} to {high}",
        verdict=words,
        tone="goal" if is_goal else svg.TONES[effect.verdict],
        mark=svg.mark(effect.verdict),
        gauge=svg.gauge(outcome, effect),
        level=level,
        is_goal=is_goal,
    )


def _effects(plan: Plan, stored: Mapping[str, Any]) -> dict[str, Effect]:
    """Effects as an ask stored them, with their verdicts."""
    found = {}
    for outcome in plan.outcomes:
        estimate, low, high = stored[outcome.name][:3]
        verdict = None
        if outcome.tolerance is not None and outcome is not plan.target:
            verdict = verdict_of(low, high, outcome.limits).word
        found[outcome.name] = Effect(estimate, low, high, verdict)
    return found


def waiting_view(plan: Plan, question: Question, usual: float | None) -> dict[str, Any]:
    """A question that waits, with its age, and what is usual."""
    days = age_in_days(question.at)
    outcomes, note = listed(list(question.waiting)), ""
    if is_partly(question):
        outcomes += " outstanding"
    if days > OLD:
        note = "A late answer is welcome; or withdraw it."
    elif usual is not None and days > 3 * max(usual, 1 / 24):
        note = f"Results usually come in {span_text(usual)}."
    return {
        "id": question.id,
        "title": f"{capital(plan.words.round)} {question.body['round']}",
        "outcomes": outcomes,
        "asked": f"asked {age_text(question.at)} by {question.actor}",
        "note": note,
    }


def age_in_days(at: str) -> float:
    """How old something is."""
    return (datetime.now(UTC) - datetime.fromisoformat(at)).total_seconds() / 86400


def span_text(days: float) -> str:
    """A span as a person says it."""
    for size, noun in ((1.0, "day"), (1 / 24, "hour")):
        if days >= size:
            return counted(round(days / size), noun)
    return counted(max(round(days * 1440), 1), "minute")


def plain_typed(value: Value) -> str:
    """A value of a factor as it is typed: with the minus of a keyboard."""
    return plain(value).replace(MINUS, "-")


def example_text(factor: Factor) -> str:
    """What a field of a factor may hold: 0 to 40."""
    return f"{plain(factor.low or 0)} to {plain(factor.high or 0)}"


def plausible_text(outcome: Outcome) -> str:
    """What a field of an outcome may hold: 100 to 190."""
    return f"{plain(outcome.low)} to {plain(outcome.high)}"


def capital(text: str) -> str:
    """The same with a capital, as a line begins."""
    return text[:1].upper() + text[1:]


def uncapital(text: str) -> str:
    """The same as it stands within a sentence."""
    return text[:1].lower() + text[1:]


def day_name(day: str) -> str:
    """A day as a person says it: 18 November 2026."""
    at = date.fromisoformat(day)
    return f"{at.day} {at:%B} {at.year}"


def day_text(at: str | datetime) -> str:
    """A time as the clock on the wall has it: 26 August, 10:42; with its year where it is not this."""
    local = (at if isinstance(at, datetime) else datetime.fromisoformat(at)).astimezone()
    now = datetime.now().astimezone()
    if local.date() == now.date():
        return f"today, {local:%H:%M}"
    year = "" if local.year == now.year else f" {local.year}"
    return f"{local.day} {local:%B}{year}, {local:%H:%M}"
