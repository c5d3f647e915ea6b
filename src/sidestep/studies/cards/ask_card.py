"""The card of a question, from the record alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from sidestep.studies.book import Question
from sidestep.studies.cards.card import Card, Cell, Command, Prose, Section, Table, verdict_of
from sidestep.studies.cards.words import (
    command,
    digits_of,
    digits_of_change,
    digits_of_loss,
    limit_text,
    listed,
    local_time,
    named,
    number,
    percent,
    plain,
    quoted,
    signed,
    with_unit,
)
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import CLEAN, EARN, Plan
from sidestep.studies.request import CONFIRM

NEWS = (
    "New since version 0.2: what this study believes and recommends now allows for responses that bend. "
    "Its questions are asked as before."
)
HARDLY = 0.5  # a price below this share of what matters is not mentioned


def ask_card(plan: Plan, name: str, question: Question) -> Card:
    """The question: what to do, what to measure, why, what it costs, what to expect, what it may move."""
    words, body = plan.words, question.body
    sections = [
        Section(words.verb.capitalize(), (_setting_table(plan, body),)),
        Section("Measure", (Prose(_measure_text(plan, question.panel)),)),
    ]
    if why := why_text(plan, body):
        sections.append(Section("Why", (Prose(why),), spaced=True))
    if body.get("expected"):
        expected = tuple(
            Prose(f"{each} {expect_text(plan.outcome(each), ends)}")
            for each, ends in body["expected"].items()
        )
        sections.append(Section("Expect", expected))
    if body["action"] == plan.baseline:
        sections.append(Section("May move", (Prose(f"Nothing. {baseline_text(plan)}"),)))
    else:
        sections.append(Section("May move", (effects_table(plan, body["effects"]),)))
    if fence := fence_text(plan, body):
        sections.append(Section("", (Prose(fence),)))
    sections.append(Section("Then", (_then(plan, name, question),)))
    if body.get("news"):
        sections.append(Section("", (Prose(NEWS),), spaced=True))
    return Card(
        kind="ask",
        title=f"{words.round.capitalize()} {body['round']}",
        aside=f"question {question.id}, asked {local_time(question.at)}",
        sections=tuple(sections),
        data={"ticket": question.id, "study": name, **body},
    )


def _setting_table(plan: Plan, body: Mapping[str, Any]) -> Table:
    rows = [
        (
            factor.name,
            plain(body["action"][factor.name]),
            factor.unit,
            step_text(plan, body, factor),
        )
        for factor in plan.factors
    ]
    return Table(tuple(rows))


def step_text(plan: Plan, body: Mapping[str, Any], factor: Factor) -> str:
    """How a question changes a factor from the setting before, at first from the baseline."""
    last, value = body.get("last"), body["action"][factor.name]
    before = (last or plan.baseline)[factor.name]
    if value == before:
        return f"as last {plan.words.round}" if last else "the baseline"
    if not factor.is_number or isinstance(value, str) or isinstance(before, str):
        return f"{'before' if last else 'baseline'}: {plain(before)}"
    change = f"{'up' if value > before else 'down'} from {plain(before)}"
    return change if last else f"{change}, the baseline"


def _measure_text(plan: Plan, panel: tuple[str, ...]) -> str:
    units = [f"{name} ({unit})" if (unit := plan.outcome(name).unit) else name for name in panel]
    return f"{units[0]}, and only that" if len(units) == 1 else ", ".join(units)


def why_text(plan: Plan, body: Mapping[str, Any]) -> str:
    """The reasons: the rival, what would separate the two, and the price of the question."""
    if not body["results"]:
        return f"Nothing is known yet. {_beginning_text(plan, body)}"
    sentences = [reason_text(plan, body), price_text(plan, body)]
    return " ".join(sentence for sentence in sentences if sentence)


def caution_of(plan: Plan) -> float | None:
    """The least chance of being within all limits that a question needs; None: none."""
    if plan.caution is not None:
        return plan.caution
    caution = plan.knobs.get("caution")
    return float(caution) if caution else None


def _beginning_text(plan: Plan, body: Mapping[str, Any]) -> str:
    """Why the first questions may be far from the baseline, and what keeps them near."""
    if caution_of(plan):
        return "With caution the first questions stay near the baseline."
    both = "expect side effects both ways."
    if _is_narrowed(body):
        return f"The first questions look in every direction that is allowed; {both}"
    far = "The first questions look in every direction and may be far from the baseline"
    return f"{far}; {both} A largest step keeps them near it."


def reason_text(plan: Plan, body: Mapping[str, Any], *, beside: bool = True) -> str:
    """The rival and what would separate the two; `beside`: also the shares of the other outcomes."""
    measured = body["measure"][0]
    shares, rival = body.get("shares") or {}, body.get("rival")
    if body["purpose"] == CONFIRM:
        return _confirming_text(plan, body, measured)
    if body["phase"] == "held":
        return _held_text(plan, rival)
    if "changes" in body:
        return _deciding_text(plan, body, beside=beside)
    return _separating_text(plan, body, beside=beside) if shares else ""


def _separating_text(plan: Plan, body: Mapping[str, Any], *, beside: bool) -> str:
    """What a named policy asks for: what separates two that contend."""
    words, measured = plan.words, body["measure"][0]
    shares, rival = body["shares"], body.get("rival")
    if body["phase"] == "explore":
        text = (
            f"This {words.candidate} is not expected to be the best. Neither of the two that contend can "
            "show what separates them; this one can."
        )
        doubt = _doubt_text(" It should remove", shares, measured, beside)
        return f"{text}{doubt}." if doubt else text
    if rival is None:
        return f"Of what the decision depends on, {measured} is known least."
    known = f"{_best_words(body)}, " if is_best(body, rival) else ""
    return (
        f"Two {words.candidates} contend: this one and {known}{named(plan, rival['action'])}. "
        + _telling_text(plan, shares, measured, beside)
    )


def _deciding_text(plan: Plan, body: Mapping[str, Any], *, beside: bool) -> str:
    """What the answer of a study's own question could change, and how much of what is open it settles."""
    words, best, rival = plan.words, body["best"], body["rival"]
    sentences = [changes_text(plan, body)]
    if body["questions"] == EARN:
        sentences.insert(0, f"This {words.candidate} is the best in one draw of what may be true.")
    if beside and rival is not None and best["action"] != rival["action"]:
        contender = f"{named(plan, rival['action'])} also contends"
        sentences.append(f"{contender}: {_towards(plan, rival['effect'])} is expected of it.")
    shares = [
        f"{name} {percent(share)}"
        for name, share in sorted(body["shares"].items(), key=lambda each: -each[1])
        if name in body["measure"] and share >= 0.01
    ]
    if shares and beside:
        sentences.append(f"Of what is open the answer settles about: {', '.join(shares)}.")
    return " ".join(each for each in sentences if each)


def changes_text(plan: Plan, body: Mapping[str, Any]) -> str:
    """If sodium comes out at 139, you can go to lisinopril 10 mg: 14 mmHg less instead of 6."""
    best, sign = body["best"], plan.target.sign
    said: list[str] = []
    for change in body["changes"]:
        more = sign * change["effect"] > sign * best["effect"]
        results = [
            f"{name} {'comes' if place == 0 else ''} out at {_result(plan, name, value)}".replace(
                "  ", " "
            )
            for place, (name, value) in enumerate(change["results"].items())
        ]
        if len(results) > 2:
            results = [f"all {len(results)} results are {'good' if more else 'bad'}"]
        where = named(plan, change["action"])
        size, now = _towards(plan, change["effect"]), _towards(plan, best["effect"])
        if more:
            verb = "you can go to"
        elif change["action"] == plan.baseline:
            verb = "the recommendation falls back to"
        else:
            verb = "it falls back to" if said else "the recommendation falls back to"
        said.append(f"If {listed(results)}, {verb} {where}: {size} instead of {now}.")
    if said:
        return " ".join(said)
    return f"No single answer changes the recommendation yet ({named(plan, best['action'])})."


def _result(plan: Plan, name: str, value: float) -> str:
    return with_unit(number(value, digits_of(plan.outcome(name))), plan.outcome(name).unit)


def _towards(plan: Plan, effect: float) -> str:
    """A change of the target as it is written on the cards."""
    target = plan.target
    return with_unit(signed(effect, digits_of_change(target)), target.change_unit)


def _confirming_text(plan: Plan, body: Mapping[str, Any], measured: str) -> str:
    """Why a recommendation is tried again."""
    text = "This is what would be recommended today"
    if (body.get("request") or {}).get("measure"):
        return f"{text}; you asked to confirm what it does to {measured}."
    if measured == plan.target.name:
        return f"{text}. This result narrows what it does to {measured}."
    return (
        f"{text}. Of the protected {plan.words.outcomes} {measured} is the least settled; this result "
        "narrows it."
    )


def _best_words(body: Mapping[str, Any]) -> str:
    """The reference of a price, in words; that of a named policy is the best that it may ask."""
    narrowed = "changes" not in body and _is_narrowed(body)
    return "the best that is allowed" if narrowed else "today's best"


def _is_narrowed(body: Mapping[str, Any]) -> bool:
    """Whether this ask excludes some candidates."""
    asked = body.get("request") or {}
    return any(asked.get(name) for name in ("candidates", "ranges", "words", "largest_step"))


def _telling_text(plan: Plan, shares: Mapping[str, float], measured: str, beside: bool) -> str:  # noqa: FBT001
    """The share that the result would remove; not always the largest, since outcomes have costs."""
    most = max(shares.values(), default=0.0)
    if most < 0.01:
        return f"No single result of this {plan.words.candidate} removes 1% of the doubt."
    why = f"What is least certain about this {plan.words.candidate} is what it does to {measured}"
    if shares.get(measured, 0.0) >= most:
        doubt = _doubt_text(": this one result should remove", shares, measured, beside)
        if plan.aim == CLEAN:
            return f"What tells them apart best is what they do to {measured}{doubt}."
        return f"{why}{doubt}."
    if len({outcome.cost for outcome in plan.outcomes}) > 1:
        why += ", for its cost"
    return f"{why}{_doubt_text('; the result should remove', shares, measured, beside)}."


def _doubt_text(begin: str, shares: Mapping[str, float], measured: str, beside: bool) -> str:  # noqa: FBT001
    if measured not in shares:
        return ""
    others = sorted(
        (item for item in shares.items() if item[0] != measured), key=lambda item: -item[1]
    )
    rest = ", ".join(f"{name} {percent(share)}" for name, share in others)
    rest = f" ({rest})" if rest and beside else ""
    share = shares[measured]
    size = "less than 1%" if share < 0.01 else f"about {percent(share)}"
    return f"{begin} {size} of that doubt{rest}"


def _held_text(plan: Plan, rival: Mapping[str, Any] | None) -> str:
    """Caution allows only the baseline; only a person can allow more."""
    text = (
        f"No other {plan.words.candidate} is known well enough to stay within limits, so this one is "
        "asked again. It tells nothing of the others."
    )
    if rival is None:
        return text
    such = named(plan, rival["action"])
    return f"{text} To go on, give another one on your own judgement, such as {such}."


def is_best(body: Mapping[str, Any], candidate: Mapping[str, Any]) -> bool:
    """Whether a candidate is today's best, according to the question."""
    best = body.get("best")
    return best is not None and bool(best["action"] == candidate["action"])


def price_text(plan: Plan, body: Mapping[str, Any]) -> str:
    """The expected loss of this round against today's best, and the chance of being within limits."""
    price, best, target = body.get("price"), body.get("best"), plan.target
    if price is None or best is None:
        return ""
    if is_best(body, body):
        return f"It is {_best_words(body)}."
    rival, now = body.get("rival"), f"this {plan.words.round}"
    said = (rival and is_best(body, rival)) or "changes" in body
    than = _best_words(body) if said else f"{_best_words(body)} ({named(plan, best['action'])})"
    likely = chance_text(plan, body)
    if price <= HARDLY * (target.matters or target.size(1.0) / 20):
        about = f"It should do about as well as {than}: {loss_text(target, price)} less {now}."
        return likely or about
    about = "about " if price <= target.size(1.0) else ""
    less = f"{about}{loss_text(target, price)} worse {now} than {than}"
    if "changes" in body:
        return f"Asking has a price: {less}. {likely}".strip()
    return f"Asking has a price: {less}{risk_text(plan)}."


def chance_text(plan: Plan, body: Mapping[str, Any]) -> str:
    """How likely a question of the study's own is within all limits."""
    if "changes" not in body or not plan.protected or body["action"] == plan.baseline:
        return ""
    return (
        f"This {plan.words.candidate} is {percent(body['chance'])} likely to be within all limits."
    )


def loss_text(target: Outcome, loss: float) -> str:
    """A loss in units: 2.1 mmHg; beyond half the plausible range it is a penalty, and no figure."""
    most = target.size(1.0)
    more = "" if loss <= most else "more than "
    return more + with_unit(number(min(loss, most), digits_of_loss(target)), target.change_unit)


def risk_text(plan: Plan) -> str:
    """What the price of a named policy includes beside the goal; ends a sentence."""
    if plan.aim == CLEAN or not plan.protected:
        return ""
    return ", with a penalty for limits that it may exceed"


def expect_text(outcome: Outcome, ends: Sequence[float]) -> str:
    """About 138.8; 19 times in 20 between 133.4 and 144.2."""
    estimate, low, high = (number(end, digits_of(outcome)) for end in ends)
    return f"about {estimate}; 19 times in 20 between {low} and {high}"


def effects_table(plan: Plan, effects: Mapping[str, Any]) -> Table:
    """The expected change of every outcome, with its interval, against its limits."""
    rows: list[tuple[Cell, ...]] = []
    for outcome in plan.outcomes:
        estimate, low, high = effects[outcome.name][:3]
        change = change_text(outcome, (estimate, low, high))
        if outcome is plan.target:
            rows.append((outcome.name, with_unit(change, outcome.change_unit), "the goal"))
        elif outcome.tolerance is None:
            rows.append((outcome.name, with_unit(change, outcome.change_unit), ""))
        else:
            verdict = verdict_of(low, high, outcome.limits)
            rows.append((outcome.name, change, verdict, f"limit {limit_text(outcome)}"))
    return Table(tuple(rows))


def change_text(outcome: Outcome, ends: tuple[float, float, float]) -> str:
    """A change with its interval: −15 (−21 to −10)."""
    estimate, low, high = (signed(end, digits_of_change(outcome)) for end in ends)
    return f"{estimate} ({low} to {high})"


def baseline_text(plan: Plan) -> str:
    """Why nothing moves at the baseline."""
    begin, target = "It is the baseline, from which every change is counted", plan.target.name
    if not plan.protected:
        return f"{begin}: {target} stays as it is."
    return f"{begin}: {target} and every protected {plan.words.outcome} stay as they are."


def fence_text(plan: Plan, body: Mapping[str, Any]) -> str:
    """What protection means, and what it does not; empty at the baseline, where nothing changes."""
    words = plan.words
    if not plan.protected:
        return "You decide."
    if caution := caution_of(plan):
        return (
            f"Asked with caution: at least {percent(caution)} likely to be within all limits, as far as "
            "is known. You decide."
        )
    if body["action"] == plan.baseline:
        return ""
    aim = "Protection is part of the goal, not a fence"
    if plan.aim == CLEAN:
        aim += " (the aim is the clean effect, what runs through nothing protected)"
    return f"{aim}: this {words.round} may move a protected {words.outcome}. You decide."


def _then(plan: Plan, name: str, question: Question) -> Command:
    factor, otherwise = plan.factors[0].name, f"if something else was {plan.words.done}"
    return tell_command(name, question)._replace(
        call_note=f"(given={{{quoted(factor)}: ...}} {otherwise})",
        command_note=f"(--given {factor}=... {otherwise})",
    )


def tell_command(name: str, question: Question) -> Command:
    """How to tell the result: a value, or a value for every outcome of a panel that is awaited."""
    values, told = ["VALUE"], "value"
    if len(question.panel) > 1:
        names = question.waiting or question.panel
        values = [f"{each}=VALUE" for each in names]
        told = "{" + ", ".join(f"{quoted(each)}: value" for each in names) + "}"
    return Command(
        f"study.tell({question.id}, {told})", command("tell", name, question.id, *values)
    )
