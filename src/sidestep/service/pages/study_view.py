"""A study's page, part by part: the question first, from the record alone; then computed parts."""

from collections.abc import Mapping
from statistics import median
from typing import Any, NamedTuple

from sidestep.service.auth import Visit
from sidestep.service.desk import OpenStudy
from sidestep.service.pages import svg
from sidestep.service.pages.bends_view import bends_view
from sidestep.service.pages.best_view import best_view, is_few
from sidestep.service.pages.entries import lines_of
from sidestep.service.pages.forms import STEP, Form
from sidestep.service.pages.lanes import EVENTS, lanes_view
from sidestep.service.pages.trade_view import trade_view
from sidestep.service.pages.views import day_text, is_partly, question_view, waiting_view
from sidestep.studies.advice import Best, Effect
from sidestep.studies.book import Question
from sidestep.studies.cards.ask_card import change_text
from sidestep.studies.cards.card import VERDICTS, WITHIN
from sidestep.studies.cards.overview import goal_text
from sidestep.studies.cards.words import listed, named, plain
from sidestep.studies.closing import decided_text, ending_of
from sidestep.studies.learning.trajectory import Step
from sidestep.studies.people.roles import ADMIN, EVERYWHERE, ROLES
from sidestep.studies.plan import CLEAN, DECIDE, Plan
from sidestep.studies.request import CONFIRM
from sidestep.studies.storage.events import Event
from sidestep.studies.storage.store import CLOSED

PATIENCE = 0.12  # seconds that a page waits for parts that are not computed yet
LATEST = 8  # entries on the page
NUMBERS = 6  # rounds of the story as a table
CHECKED = 5000  # longest record, in entries, that a page verifies automatically


class Wanted(NamedTuple):
    """What a reader wants to see."""

    question: int | None = None
    saved: int | None = None
    wait: bool = False


def study_context(visit: Visit, wanted: Wanted) -> dict[str, Any]:
    """Everything that the page shows."""
    study, plan = visit.study, visit.study.plan
    head, questions = study.head(), study.questions()
    chosen = chosen_question(study, visit.caller.name, wanted.question)
    patience = None if wanted.wait else PATIENCE
    shown, recent = study.show().data, study.verbs.history(max(0, head.seq - EVENTS))
    usual = usual_wait(recent)
    return {
        **common(visit),
        "facts": facts(study, shown, head.updated.isoformat()),
        "check": check_view(study, head.seq),
        "check_mark": svg.mark(WITHIN),
        "question": question_view(plan, chosen) if chosen else None,
        "waiting": [
            waiting_view(plan, each, usual)
            for each in questions
            if not chosen or each.id != chosen.id
        ],
        "context_factors": plan.context,
        "step_factors": [pair for pair in enumerate(plan.factors) if pair[1].is_number],
        "typed": last_steps(plan, recent),
        "wrong": [],
        "ask_error": "",
        "lanes": lanes_view(plan, recent, questions, shown["counts"]),
        "results": shown["results"],
        "part": parts(study, chosen, patience),
        "record": lines_of(plan, recent[-LATEST:][::-1], study.verbs.about),
        "entries": head.seq,
        "tip": f"{head.hash[:4]}·{head.hash[-4:]}",
        "note": about_policy(plan),
    }


def common(visit: Visit) -> dict[str, Any]:
    """What every page below a study shows."""
    study, plan, rights = visit.study, visit.study.plan, visit.caller.rights
    return {
        "name": study.name,
        "title": plan.title or study.name,
        "words": plan.words,
        "several": several_text(plan.words.round),
        "goal": goal_text(plan),
        "plan": plan,
        "heading": ", ".join(
            [each.name for each in (*plan.factors, *plan.context)]
            + [each.name for each in plan.outcomes]
        ),
        "owner": rights.allow(ADMIN, EVERYWHERE),
        "may": {role: rights.allow(role, study.name) for role in ROLES},
        "closed": ending_view(study),
    }


def several_text(word: str) -> str:
    """The plural of a round: visits, batches."""
    return f"{word}es" if word.endswith("ch") else f"{word}s"


def ending_view(study: OpenStudy) -> dict[str, str] | None:
    """How the study was closed; None if the study is open."""
    head = study.head()
    if head.status != CLOSED:
        return None
    recent = study.verbs.history(max(0, head.seq - EVENTS))
    ending = ending_of(recent)
    if ending is None or ending.closed is recent[0]:  # its decision may be the entry before
        ending = ending_of(study.verbs.history())
    if ending is None:
        return None
    return {
        "decided": decided_text(study.plan, ending),
        "how": f"recommendation {ending.decision.kind}" if ending.decision else "",
        "reason": ending.closed.reason or "",
        "by": f"{ending.closed.actor}, {day_text(ending.closed.at)}",
    }


def open_text(study: OpenStudy) -> str:
    """That questions are open while the study is closed; empty if none is."""
    questions = study.questions()
    if not questions:
        return ""
    named = listed([f"{each.id} ({listed(list(each.waiting))})" for each in questions])
    noun, verb = ("Question", "is") if len(questions) == 1 else ("Questions", "are")
    return f"{noun} {named} {verb} still open. A late answer is accepted."


def facts(study: OpenStudy, shown: Mapping[str, Any], updated: str) -> dict[str, Any]:
    """Counts of results, open questions and candidates; dates of creation and of the last change."""
    plan = study.plan
    return {
        "results": shown["results"],
        "open": len(shown["open"]),
        "since": since(study),
        "candidates": None if plan.candidates.is_box else len(plan.candidates),
        "updated": day_text(updated),
    }


def since(study: OpenStudy) -> str:
    """The day on which the study was set up."""
    first = study.worked_out("since", lambda it: it.history(0, 1)[0].at)
    return day_text(first).partition(",")[0]


def check_view(
    study: OpenStudy, entries: int, patience: float | None = None
) -> dict[str, Any] | None:
    """Whether the record is valid; None if that is not known within `patience`, in seconds."""
    if entries > CHECKED:
        return None
    patience = PATIENCE if patience is None else patience
    card = study.worked_out_soon("verify", lambda it: it.verify(), patience)
    return None if card is None else dict(card.data)


def chosen_question(study: OpenStudy, actor: str, wanted: int | None) -> Question | None:
    """The question that the page shows: the requested one, else the caller's own, else the oldest.

    One that is partly answered does not hold up the next: it is listed, unless the study is closed.
    """
    questions, closed = study.questions(), study.head().status == CLOSED
    named = [each for each in questions if each.id == wanted]
    whole = [each for each in questions if closed or not is_partly(each)]
    mine = [each for each in whole if each.actor == actor]
    return next(iter([*named, *mine, *whole]), None)


def parts(study: OpenStudy, question: Question | None, patience: float | None) -> dict[str, Any]:
    """The computed parts; None if they are not ready yet."""
    context = context_here(study.plan, question)
    best = study.best_within(patience, context)
    if best is None:
        return {
            "best": None,
            "trade": None,
            "bends": None,
            "story": None,
            "candidates": None,
            "context": [],
        }
    soon = None if patience is None else 0.0
    return {
        "best": best_view(study.plan, best),
        "trade": trade_part(study, best, context, soon),
        "bends": bends_part(study, best, soon),
        "story": story_part(study, best, context, soon),
        "candidates": candidates_part(study, best, question, context, soon),
        "context": [(name, plain(value)) for name, value in (context or {}).items()],
    }


def context_here(plan: Plan, question: Question | None) -> dict[str, Any] | None:
    """The context of the recommendation: that of the question, else the default."""
    if not plan.context:
        return None
    asked = question.body.get("context") if question else None
    return dict(asked) if asked else plan.usual_context


def trade_part(
    study: OpenStudy, best: Best, context: dict[str, Any] | None, patience: float | None
) -> dict[str, Any] | None:
    """What more risk would buy; None if it is not computed yet."""
    plan = study.plan
    if plan.aim == CLEAN or not plan.protected or best.action is None or best.unmeasured:
        return {"any": False}
    found = study.tradeoff_within(patience, context)
    return None if found is None else trade_view(plan, best, found)


def bends_part(study: OpenStudy, best: Best, patience: float | None) -> list[dict[str, Any]] | None:
    """Where effects bend; None if it is not computed yet."""
    if not best.bends:
        return []
    along = [(bend.outcome, bend.factor) for bend in best.bends]
    found = study.responses_within(patience, along)
    return None if found is None else bends_view(study.plan, best, found)


def story_part(
    study: OpenStudy, best: Best, context: dict[str, Any] | None, patience: float | None
) -> dict[str, Any] | None:
    """How the recommendation came about; None if it is not computed yet."""
    if best.action in (None, study.plan.baseline) or is_few(study.plan, best):
        return {"any": False}
    told = study.story_within(patience, best.action, context)
    if told is None:
        return None
    plan = study.plan
    target, *others = [
        {
            "name": outcome.name,
            "unit": outcome.change_unit,
            "plot": svg.plot(outcome, _of(told, outcome.name), 276 if place == 0 else 112),
            "verdict": VERDICTS.get(best.effects[outcome.name].verdict or "", ""),
            "tone": svg.TONES[best.effects[outcome.name].verdict],
            "mark": svg.mark(best.effects[outcome.name].verdict),
        }
        for place, outcome in enumerate(plan.outcomes)
    ]
    return {
        "any": len(told) > 1,
        "called": named(plan, best.action),
        "target": target,
        "others": others,
        "last": told[-1].results,
        "names": [outcome.name for outcome in plan.outcomes],
        "numbers": _numbers(plan, told),
    }


def _of(told: list[Step], name: str) -> list[tuple[int, Effect]]:
    return [(belief.results, belief.effects[name]) for belief in told]


def _numbers(plan: Plan, told: list[Step]) -> list[tuple[int, list[str]]]:
    """The end of the story as numbers, the latest first."""
    return [
        (
            belief.results,
            [change_text(each, belief.effects[each.name][:3]) for each in plan.outcomes],
        )
        for belief in reversed(told[-NUMBERS:])
    ]


def candidates_part(
    study: OpenStudy,
    best: Best,
    question: Question | None,
    context: dict[str, Any] | None,
    patience: float | None,
) -> dict[str, Any] | None:
    """The first few candidates; None if they are not computed yet."""
    from sidestep.service.pages.candidates_view import candidates_view  # noqa: PLC0415

    if study.plan.candidates.is_box or best.action is None:
        return {"rows": [], "total": 0}
    explanation = study.explain_within(patience, context)
    if explanation is None:
        return None
    asked = None if question is None else question.body["candidate"]
    return candidates_view(study.plan, explanation.rows, best=best, asked=asked)


def last_steps(plan: Plan, events: list[Event]) -> Form:
    """The largest steps of the latest question, as the form of the next one begins."""
    asked = [each.body for each in events if each.kind == "asked"]
    latest = next((body for body in reversed(asked) if body.get("purpose") != CONFIRM), {})
    steps = latest.get("request", {}).get("largest_step", {})
    places = enumerate(factor.name for factor in plan.factors)
    return Form({f"{STEP}{n}": [plain(steps[name])] for n, name in places if name in steps})


def usual_wait(events: list[Event]) -> float | None:
    """The usual number of days until an answer; None if there were too few."""
    asked = {event.seq: event.at for event in events if event.kind == "asked"}
    waits = [
        (event.at - asked[event.ticket]).total_seconds() / 86400
        for event in events
        if event.kind == "answered" and event.ticket in asked
    ]
    return median(waits) if len(waits) >= 3 else None


def about_policy(plan: Plan) -> str:
    """The policy and its settings, for the foot of the page."""
    how = "asks what decides" if plan.questions == DECIDE else "plays for today"
    parts = [f"policy {plan.policy}" if plan.policy else how]
    if plan.shape is not None:
        parts.append(f"responses: {plan.shape} (told)")
    if plan.rank is not None:
        parts.append(f"side effects span {plan.rank} directions (told)")
    parts.append(f"aim: {plan.aim}")
    parts.append(f"seed {plan.seed}")
    return " · ".join(parts)
