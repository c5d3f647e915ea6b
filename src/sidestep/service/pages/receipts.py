"""What was saved, read back from the record before a page says so."""

from typing import Any

from sidestep.service.desk import OpenStudy
from sidestep.service.pages.best_view import is_few
from sidestep.service.pages.entries import lines_of
from sidestep.service.pages.views import capital
from sidestep.studies.advice import Best
from sidestep.studies.cards.ask_card import change_text
from sidestep.studies.cards.card import VERDICTS
from sidestep.studies.cards.words import measured_text, named, percent
from sidestep.studies.measurement import measurement_of_body
from sidestep.studies.plan import Plan
from sidestep.studies.storage.events import Event

CHANGING = ("answered", "corrected", "withdrawn", "imported")


def receipt_view(study: OpenStudy, entry: int, reader: str) -> dict[str, Any] | None:
    """The entry that was just written; None if there is none of that number."""
    found = study.verbs.history(entry - 1, 1)
    if not found or found[0].seq != entry:
        return None
    event, plan = found[0], study.plan
    line = lines_of(plan, [event], study.verbs.about)[0]
    return {
        "entry": entry,
        "kind": event.kind,
        "headline": headline(plan, event) or line.title.removesuffix("."),
        "what": f"{line.title} {line.text}",
        "also": also_saved(study, event),
        "at": line.at,
        "by": "you" if event.actor == reader else event.actor,
        "changed": changed_text(study, event) if event.kind in CHANGING else "",
        "correctable": event.kind == "answered",
    }


def also_saved(study: OpenStudy, event: Event) -> list[tuple[int, str]]:
    """The other results of a question that were saved after this one: entry and result."""
    about = study.verbs.about(event.ticket) if event.kind == "answered" and event.ticket else []
    later = [each for each in about if each.kind == "answered" and each.seq > event.seq]
    return [(line.seq, line.text) for line in lines_of(study.plan, later, study.verbs.about)]


def headline(plan: Plan, event: Event) -> str:
    """Recorded: 138 mmol/L."""
    body = event.body
    if event.kind == "answered":
        told = measurement_of_body(body)
        return f"Recorded: {measured_text(plan.outcome(body['outcome']), told, plan.factors)}"
    if event.kind == "corrected" and body["is"] is not None:
        told = measurement_of_body(body, "is")
        return f"Corrected to {measured_text(plan.outcome(body['outcome']), told, plan.factors)}"
    return ""


def changed_text(study: OpenStudy, event: Event) -> str:
    """What a result changed, if the recommendations before and after it are known."""
    before, after = study.bests_around(event.seq)
    if before is None or after is None or is_few(study.plan, after):
        return ""
    sentences = [_effect(study.plan, event, after), _chance(study.plan, before, after)]
    return " ".join(sentence for sentence in sentences if sentence)


def _effect(plan: Plan, event: Event, after: Best) -> str:
    name = event.body.get("outcome")
    if name is None or name not in after.effects or after.action is None:
        return ""
    if after.action == plan.baseline:
        return ""  # nothing changes there, whatever is measured
    effect = after.effects[name]
    change = change_text(plan.outcome(name), effect[:3])
    verdict = f": {VERDICTS[effect.verdict]}" if effect.verdict else ""
    return f"{capital(name)} at {named(plan, after.action)} is now {change}{verdict}."


def _chance(plan: Plan, before: Best, after: Best) -> str:
    if after.action is None or after.probability is None or before.action is None:
        return ""
    now, what = percent(after.probability), capital(named(plan, after.action))
    if before.action != after.action:
        was = named(plan, before.action)
        return f"Recommended was {was}. {what} is now, {now} likely to be the best."
    return f"{what} is {now} likely to be the best, {percent(before.probability or 0)} before."
